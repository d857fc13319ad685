"""Memory that large photographs take: each shipped detector of pictures scores many of 12 megapixels.

    python -m benchmarks.memory                  # 500 photographs per detector; let nothing else run
    python -m benchmarks.memory --photographs 5  # only to see that it works

Each detector is measured in a process of its own: peak resident memory while scoring, less what is resident once the
detector is loaded and has scored one small picture. Goal: at most 1,024 MB.
"""

import argparse
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from idecode_core.folder.detector import load_detector
from idecode_core.folder.listing import list_detectors

WIDTH, HEIGHT = 4000, 3000
GOAL = 1024


def write_photographs(folder: Path) -> None:
    """Two JPEG files of 12 megapixels. Made outside of the process that is measured: making them takes memory too."""
    generator = np.random.default_rng(0)
    for i in range(2):
        coarse = generator.integers(0, 256, (HEIGHT // 50, WIDTH // 50, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
        picture.save(folder / f"{i}.jpg", quality=85)


def resident() -> float:
    """The process's peak so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # macOS counts in bytes


def measure(name: str, folder: Path, count: int) -> float:
    """MB above idle while `count` photographs are scored with n = 1."""
    detector = load_detector(name)
    detector.score_vectors(np.zeros((1, 32, 32, 3), np.uint8), n=1)
    idle = resident()
    detector.score_vectors((folder / f"{i % 2}.jpg" for i in range(count)), n=1)
    return resident() - idle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=int, default=500)
    parser.add_argument("--measure", nargs=2, metavar=("DETECTOR", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(measure(arguments.measure[0], Path(arguments.measure[1]), arguments.photographs))
        return
    print(
        f"{arguments.photographs} photographs of 12 megapixels, n = 1; MB above idle (goal: at most {GOAL:,})"
    )
    with TemporaryDirectory() as folder:
        write_photographs(Path(folder))
        for settings in list_detectors():
            if settings.modality == "image":
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks.memory",
                    "--photographs",
                    str(arguments.photographs),
                ]
                command += ["--measure", settings.folder.name, folder]
                found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                print(f"  {settings.name:24} {float(found):8.0f}")


if __name__ == "__main__":
    main()
