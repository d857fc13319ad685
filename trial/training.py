"""Part 5: `train FOLDER` as somebody uses it: onto its own input, two at once, bad files among the good, files that change meanwhile.

The stored calibration must be that of the contents which files.csv lists, whatever happened.
"""

import csv
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from idecode_core.draws import content_hash
from idecode_core.errors import IdecodeError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.image.read import read_image
from idecode_core.training.train_folder import train_folder
from trial import small
from trial.bad_files import bad_files, saved
from trial.table import Outcome

FILES = 40
PATIENCE = 600.0
REFUSED = 2  # the exit status


def write_pictures(folder: Path, seed: int) -> Path:
    folder.mkdir(parents=True)
    for i, pixels in enumerate(small.pictures(FILES, seed)):
        (folder / f"{i:03d}.png").write_bytes(saved(Image.fromarray(pixels), "PNG"))
    return folder


def try_training(short: bool, seed: int, root: Path) -> Iterator[Outcome]:
    os.environ["IDECODE_CHECKPOINTS"] = str(root / "detectors")
    yield try_places(root)
    yield try_at_once(seed, root / "at once")
    yield try_changes(seed, 1 if short else 8, root / "changes")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def try_places(root: Path) -> Outcome:
    """Places where a detector would take something away."""
    outcome = Outcome("training", "onto its input, above it, onto other folders")
    photos = write_pictures(root / "data" / "photos", 1)
    save_detector(small.detector("kept"), root / "detectors" / "kept")
    (root / "data" / "letter.txt").write_text("Dear Ada,")
    (root / "data" / "link").symlink_to("photos")
    before = contents(root)
    places = (
        *("data/photos", "data/link", "data", "data/photos/..", "data/photos/.", "data/letter.txt", "data/letter.txt/new"),
        *("detectors", "detectors/kept/..", ".", "..", "", "data/../data/photos/../photos", "data/photos/000.png"),
    )  # fmt: skip
    with outcome.timed():
        for place in places:
            for replace in (False, True):
                train = partial(
                    train_folder, photos, root / place if place else Path(), replace=replace, device="cpu", epochs=1,
                    model="rotations", runs=root / "runs",
                )  # fmt: skip
                outcome.is_refused(f"--out {place!r}", train, must_fail=True)
    if contents(root) != before:
        outcome.blame("wrong", "something was written or is gone")
    return outcome


def command(source: Path, out: Path, root: Path) -> "subprocess.Popen[str]":
    words = [
        "train",
        str(source),
        "--model",
        "rotations",
        "--epochs",
        "2",
        "--device",
        "cpu",
        "--out",
        str(out),
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "idecode_core", *words],
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[1])},
    )


def ended(outcome: Outcome, process: "subprocess.Popen[str]", what: str) -> tuple[int | None, str]:
    """The exit status and the last line that was said."""
    outcome.cases += 1
    try:
        _, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        outcome.blame("hangs", what)
        return None, ""
    if "Traceback" in said:
        outcome.blame("tracebacks", f"{what}: {said[-300:]}")
    return process.returncode, said.strip().splitlines()[-1] if said.strip() else ""


def check_calibration(outcome: Outcome, made: Path, pool: Path, what: str) -> None:
    """The stored calibration, computed again from the files of `pool` that have the contents which files.csv lists."""
    found = {content_hash(read_image(path)): path for path in pool.rglob("*.png") if path.name[0].isdigit()}
    try:
        detector = load_detector(made, "cpu")
        with (made / "files.csv").open(encoding="utf-8", newline="") as file:
            listed = [row["content"] for row in csv.DictReader(file) if row["part"] == "calibration"]
        stored = detector.calibration.score_vectors
        again = detector.score_vectors([found[content] for content in listed], n=stored.shape[1])
        if not np.allclose(stored, again, rtol=1e-4):
            outcome.blame("wrong", f"{what}: the calibration is not that of the listed files")
    except (IdecodeError, KeyError, OSError) as error:
        outcome.blame("wrong", f"{what}: {type(error).__name__}: {error}"[:300])


def try_at_once(seed: int, root: Path) -> Outcome:
    """Two trainings of one name with other files, one of them with bad files too, and a third that does the same as the first."""
    outcome = Outcome("training", "three of one name at once, bad files among the good")
    first, second = (write_pictures(root / name, seed + i) for i, name in enumerate(("first", "second")))
    for i, file in enumerate(bad_files(seed, changes=1, large=False)):
        if file.must_be_refused and file.kind == "image" and i % 3 == 0:
            (second / f"bad-{i}.png").write_bytes(file.data)
    with outcome.timed():
        outs = [root / "one" / "mine", root / "two" / "mine", root / "three" / "mine"]
        running = [
            command(source, out, root) for source, out in zip((first, second, first), outs, strict=True)
        ]
        done = [ended(outcome, process, out.parent.name) for process, out in zip(running, outs, strict=True)]
    refused = [said for status, said in done if status == REFUSED]
    if any(status not in (0, REFUSED) for status, _ in done) or done[1][0] != 0 or len(refused) > 1:
        outcome.blame("wrong", f"ended with {done}"[:300])
    elif any("in use by " not in said for said in refused):
        outcome.blame("wrong", f"refused otherwise: {refused}"[:300])
    for (status, _), out, source in zip(done, outs, (first, second, first), strict=True):
        if status == 0:
            check_calibration(outcome, out, source, out.parent.name)
        elif out.exists():
            outcome.blame("wrong", f"{out.parent.name} was refused and is there")
    return outcome


def try_changes(seed: int, count: int, root: Path) -> Outcome:
    """A file gets another content at a random moment: one sentence and no detector, or one of the contents that it was listed with."""
    outcome, generator = Outcome("training", "files that change meanwhile"), np.random.default_rng(seed)
    pool = root / "pool"
    write_pictures(pool / "old", seed + 7)
    write_pictures(pool / "new", seed + 8)
    with outcome.timed():
        for i in range(count):
            source, out = write_pictures(root / f"case-{i}", seed + 7), root / f"out-{i}" / "mine"
            process = command(source, out, root)
            time.sleep(float(generator.uniform(2, 12)))
            for name in generator.choice(FILES, 20, replace=False):
                (source / f"{name:03d}.png").write_bytes((pool / "new" / f"{name:03d}.png").read_bytes())
            status, said = ended(outcome, process, "a change")
            if status == 0:
                check_calibration(outcome, out, pool, "a change")
            elif status != REFUSED or out.exists():
                outcome.blame("wrong", f"ended with {status}: {said}"[:300])
    return outcome
