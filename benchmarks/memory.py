"""Memory that many files take: `score` with 200 and with 2,000 small ones, and photographs of 12 megapixels.

    python -m benchmarks.memory                  # 500 photographs per detector; let nothing else run
    python -m benchmarks.memory --photographs 5  # only to see that it works
    python -m benchmarks.memory --photographs 0  # `score` alone: a minute

Each run is measured in a process of its own: peak resident memory while scoring, less what is resident once the
detector is loaded and has scored one small picture. Goals: ten times as many files take `score` (in one process) at
most 20 MB more; photographs take at most 1,024 MB.
"""

import argparse
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from benchmarks.scale import write_pictures
from idecode_core.folder.detector import load_detector
from idecode_core.folder.listing import list_detectors
from idecode_core.folder.settings import find_detector
from idecode_core.scale.run import score_files

WIDTH, HEIGHT = 4000, 3000
GOAL = 1024
FEW, MANY, MOST_MORE = 200, 2_000, 20


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


def measure_score(source: Path) -> float:
    """MB above idle while `score` works on a folder with n = 1."""
    folder = find_detector("fashion-rotations")
    load_detector(folder).score_vectors(np.zeros((1, 32, 32, 3), np.uint8), n=1)
    idle = resident()
    out = source.with_name(f"{source.name}-scores")
    score_files(source, out, folder, n=1, workers=1, device="cpu")
    return resident() - idle


def in_its_own_process(*arguments: str) -> float:
    command = [sys.executable, "-m", "benchmarks.memory", *arguments]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=int, default=500)
    parser.add_argument("--measure", nargs=2, metavar=("DETECTOR", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--measure-score", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure_score:
        print(measure_score(arguments.measure_score))
        return
    if arguments.measure:
        print(measure(arguments.measure[0], Path(arguments.measure[1]), arguments.photographs))
        return
    print(f"score, pictures of 32 x 32, n = 1; MB above idle (goal: at most {MOST_MORE} more)")
    with TemporaryDirectory() as folder:
        for count in (FEW, MANY):
            write_pictures(Path(folder) / str(count), count)
            found = in_its_own_process("--measure-score", str(Path(folder) / str(count)))
            print(f"  {count:>6,} files             {found:8.0f}", flush=True)
    if not arguments.photographs:
        return
    print(
        f"{arguments.photographs} photographs of 12 megapixels, n = 1; MB above idle (goal: at most {GOAL:,})"
    )
    with TemporaryDirectory() as folder:
        write_photographs(Path(folder))
        for settings in list_detectors():
            if settings.modality == "image":
                found = in_its_own_process(
                    "--photographs", str(arguments.photographs), "--measure", settings.folder.name, folder
                )
                print(f"  {settings.name:24} {found:8.0f}", flush=True)


if __name__ == "__main__":
    main()
