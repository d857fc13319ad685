"""Part 11: fuzzing. hypothesis on the invariants of the tests, with many more examples; atheris on the readers, where it installs.

    python -m trial.fuzz image CORPUS -max_total_time=30      # what `with_atheris` starts, for one reader

atheris follows which lines a file reaches and changes those files further that reach new ones. It ends its process with
the first error that it finds, so each reader has a process of its own.
"""

import atexit
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from trial.bad_files import array_file, good_files
from trial.table import Outcome

ROOT = Path(__file__).parent.parent
INVARIANTS = (
    "tests/trust/test_fuzz.py",
    "tests/trust/test_hostile_folders.py::test_no_change_of_any_file_gives_a_traceback_or_another_answer",
)
NO_FUZZING = "tests/trust/test_fuzz.py::test_the_files_that_are_damaged_were_good"
READERS = ("image", "sound", "scores", "zip", "settings", "arrays")
"""The kinds of `trial.files`, and what a detector folder is made of."""
LONGEST = 65_536  # bytes of an input that atheris makes


def try_fuzz(short: bool, seed: int, root: Path) -> Iterator[Outcome]:
    yield with_hypothesis(100 if short else 5000)
    yield with_atheris(2 if short else 30, seed, root)


def with_hypothesis(examples: int) -> Outcome:
    what = f"hypothesis: readers, folders, conformal functions, {examples:,} examples each"
    outcome = Outcome("fuzz", what)
    begin = time.monotonic()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "2",
            "-p",
            "no:cacheprovider",
            "--disable-warnings",
            "--deselect",  # it takes no examples, and would be counted as if it did
            NO_FUZZING,
            *INVARIANTS,
        ],
        cwd=ROOT,
        env={**os.environ, "IDECODE_FUZZ": str(examples)},
        capture_output=True,
        text=True,
        check=False,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    outcome.cases = examples * int(passed[1]) if passed else 0
    outcome.seconds = time.monotonic() - begin
    if done.returncode or not passed:
        outcome.blame("wrong", (done.stdout + done.stderr)[-1500:])
    return outcome


def with_atheris(seconds: int, seed: int, root: Path) -> Outcome:
    outcome, begin = Outcome("fuzz", f"atheris: readers, {seconds} s each"), time.monotonic()
    if importlib.util.find_spec("atheris") is None:
        outcome.what = "atheris: not run, it is not installed (it installs on Linux with Python 3.11 to 3.13)"
        return outcome
    running = [start_reader(kind, seconds, seed, root / kind) for kind in READERS]
    for kind, process in zip(READERS, running, strict=True):
        try:
            said = process.communicate(timeout=seconds + 120)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            outcome.blame("hangs", kind)
            continue
        units = re.search(r"number_of_executed_units: (\d+)", said)
        outcome.cases += int(units[1]) if units else 0
        if process.returncode or not units:
            outcome.blame("hangs" if "libFuzzer: timeout" in said else "tracebacks", f"{kind}: {said[-500:]}")
    outcome.seconds = time.monotonic() - begin
    return outcome


def start_reader(kind: str, seconds: int, seed: int, corpus: Path) -> "subprocess.Popen[str]":
    """atheris on one reader, from good files of that kind."""
    corpus.mkdir(parents=True)
    for i, data in enumerate(good_of(kind, seed)):
        (corpus / str(i)).write_bytes(data)
    return subprocess.Popen(
        [
            sys.executable, "-m", "trial.fuzz", kind, str(corpus), f"-seed={seed + 1}", f"-max_total_time={seconds}",
            f"-max_len={LONGEST}", "-timeout=30", "-rss_limit_mb=2048", "-print_final_stats=1",
            f"-artifact_prefix={corpus.parent}/{kind}-",
        ],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
    )  # fmt: skip


def good_of(kind: str, seed: int) -> list[bytes]:
    generator = np.random.default_rng(seed)
    if kind == "settings":
        return [path.read_bytes() for path in sorted((ROOT / "checkpoints").glob("*/config.json"))]
    if kind == "arrays":
        vectors = generator.random((9, 4)).astype(np.float32)
        return [array_file(save, score_vectors=vectors) for save in (np.savez, np.savez_compressed)]
    return [data for found, _, data in good_files(generator) if found == kind]


def reader(kind: str) -> Callable[[bytes], object]:
    """What reads such a file in the program."""
    from idecode_core.audio.read import read_sound
    from idecode_core.errors import CheckpointError
    from idecode_core.files.archives import File, read_files
    from idecode_core.files.read import read_arrays
    from idecode_core.files.tables import read_table
    from idecode_core.folder.settings import FILES, read_settings
    from idecode_core.image.read import read_image

    folder = Path(tempfile.mkdtemp(prefix="idecode-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in FILES:
        (folder / name).touch()

    def read_config(data: bytes) -> object:
        (folder / "config.json").write_bytes(data)
        return read_settings(folder)

    return {
        "image": read_image,
        "sound": read_sound,
        "scores": lambda data: read_table(File(ending(data), data)).vectors(),
        "zip": lambda data: read_files([File("x.zip", data)], (".png", ".wav")),
        "settings": read_config,
        "arrays": lambda data: read_arrays(data, what="scores", error=CheckpointError, hint="", name="x.npz"),
    }[kind]


def ending(data: bytes) -> str:
    """A name that fits how the file begins, so that all three readers of scores are reached."""
    return {b"\x93N": "x.npy", b"PK": "x.npz"}.get(data[:2], "x.csv")


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["idecode_core", "PIL", "zipfile", "numpy.lib"]):
        read = reader(sys.argv[1])
    from idecode_core.errors import IdecodeError

    def one(data: bytes) -> None:
        try:
            read(data)
        except IdecodeError as error:
            if "\n" in str(error):
                raise ValueError(f"several lines: {error}") from error

    atheris.Setup([sys.argv[0], *sys.argv[2:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
