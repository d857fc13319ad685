"""`idecode score`: two workers against one, the share of reading, and what resuming costs. Ratios within one run.

    python -m benchmarks.scale            # about two minutes; let nothing else run; needs two idle cores
    python -m benchmarks.scale --quick    # only to see that it works

Workers are Ray's actors with one thread each. Starting Ray and its actors takes seconds whatever the number of files, so
rates are taken from when each worker has written its first part to when the last part is written.
"""

import argparse
import os
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image

from idecode_core.conformal.settings import Settings
from idecode_core.folder.settings import find_detector
from idecode_core.scale import run
from idecode_core.scale.cluster import score_on_ray
from idecode_core.scale.part import Job, Worker

N = 5
PART = 10


def write_pictures(folder: Path, count: int) -> None:
    generator = np.random.default_rng(0)
    folder.mkdir()
    for i in range(count):
        Image.fromarray(generator.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(folder / f"{i:06d}.png")


def start_run(source: Path, out: Path, detector: Path) -> Job:
    run.BLOCK = PART
    return run.open_run(source, out, detector, Settings(N), print)


def rate(source: Path, out: Path, detector: Path, workers: int) -> float:
    """Files per second by Ray's workers, from the first finished part of each on."""
    job = start_run(source, out, detector)
    score_on_ray(
        out, job, run.look_at(out, job, PART).todo, workers=workers, address=None, device="cpu", seconds=0,
        progress=lambda _: None,
    )  # fmt: skip
    written = sorted(path.stat().st_mtime for path in out.glob("part-*.parquet"))
    return PART * (len(written) - workers) / (written[-1] - written[workers - 1])


def shares(source: Path, out: Path, detector: Path) -> tuple[float, float]:
    """Of one worker's time with everything: what goes into reading and decoding, and what a run takes that has nothing
    left to do."""
    job = start_run(source, out, detector)
    worker = Worker(out, job, "cpu", seconds=0)
    todo = run.look_at(out, job, PART).todo
    worker.score(todo[0])  # warm
    start = time.perf_counter()
    for part in todo[1:]:
        worker.score(part)
    whole = time.perf_counter() - start
    files = sorted(str(path) for path in source.iterdir())[PART:]
    start = time.perf_counter()
    for _ in worker.read(files):
        pass
    reading = time.perf_counter() - start
    start = time.perf_counter()
    run.score_files(source, out, detector, n=N, workers=1, device="cpu", tell=lambda sentence: None)
    return reading / whole, (time.perf_counter() - start) / whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few pictures, only to see that it works")
    parser.add_argument("--detector", default="cifar10-rotations", help="one with the compact network")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    detector = find_detector(arguments.detector)
    with TemporaryDirectory() as folder:
        source, out = Path(folder) / "pictures", Path(folder) / "scores"
        write_pictures(source, 100 if arguments.quick else 500)
        print(
            f"{len(list(source.iterdir())):,} pictures of 32 x 32, n = {N}, {arguments.detector}, one thread per worker"
        )
        reading, resuming = shares(source, out, detector)
        print(f"  reading and decoding          {reading:8.1%} (goal: at most 20 %)")
        print(f"  resuming                      {resuming:8.2%} (goal: less than 1 %)", flush=True)
        rates = {}
        for workers in (1, 2):
            shutil.rmtree(out)
            rates[workers] = rate(source, out, detector, workers)
            print(f"  {workers} workers                     {rates[workers]:8.1f} files/s", flush=True)
        print(f"  ratio                         {rates[2] / rates[1]:8.2f} (goal: at least 1.80)")


if __name__ == "__main__":
    main()
