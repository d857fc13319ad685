"""Part 2: damaged, foreign and hostile detector folders. Refused with one line, or exactly the detector that it was."""

import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trial.progress import Progress
from trial.table import Outcome
from trial.watch import DIED, HANG, READ, TRACEBACK, Watched

Change = tuple[str, Callable[[Path], None]]
"""What is done to a copy of a good folder, in words and in deed."""
NAMES = (
    "config.json",
    "calibration.npz",
    "model.safetensors",
    "split.npz",
    "scores/inside.npz",
    "training.json",
)


def make_good(folder: Path) -> None:
    """A folder with everything: weights, calibration, split, training record, stored scores."""
    from idecode_core.folder.detector import load_detector
    from idecode_core.folder.settings import read_settings
    from idecode_core.folder.shelf import ScoreSet, write_scores
    from trial.kills import train_and_finish

    train_and_finish(folder.parent / "made")
    (folder.parent / "made" / "detector").rename(folder)
    vectors = np.random.default_rng(0).random((9, 100)).astype(np.float32)
    identity = read_settings(folder).scorer_sha256
    write_scores(folder, ScoreSet("inside", "inside", False, vectors), identity)
    write_scores(folder, ScoreSet("outside", "outside", True, vectors + 1), identity)
    load_detector(folder, "cpu")


def handle(folder: Path | None) -> str:
    """What the app and the commands do with a folder; its answers, so that they can be compared."""
    from idecode_core.folder.detector import load_detector
    from idecode_core.folder.listing import list_folders
    from idecode_core.folder.stored import open_stored
    from trial.small import pictures

    if folder is None:
        return ""
    listed = list_folders(folder.parent)
    assert len(listed.detectors) + len(listed.broken) <= 1
    detector = load_detector(folder, "cpu")
    found = detector.detect(pictures(2, 1), n=3, epsilon=0.2)
    stored = open_stored(folder)
    training = stored.training and stored.training.settings
    names = [s.name for s in (stored.id_set, *stored.ood_sets)]
    sums = [float(s.score_vectors.sum()) for s in (stored.id_set, *stored.ood_sets)]
    return json.dumps([found.p_values.tolist(), found.scores.tolist(), detector.name, names, sums, training])


def changes(generator: np.random.Generator, good: Path, other: Path, count: int) -> Iterator[Change]:
    for name in NAMES:
        size = (good / name).stat().st_size
        yield f"{name} missing", lambda f, name=name: (f / name).unlink()  # type: ignore[misc]
        yield f"{name} of another detector", lambda f, name=name: copy(other, f, name)  # type: ignore[misc]
        for share in (0.0, 0.2, 0.5, 0.9, 0.999):
            yield f"{name} cut", put(name, lambda data, share=share: data[: int(share * len(data))])  # type: ignore[misc]
        for i in range(count):
            places, values = generator.integers(0, size, 1 + i % 4), generator.integers(0, 256, 1 + i % 4)
            yield f"{name} changed", put(name, changed(places, values))
        for what, data in HOSTILE.items():
            yield f"{name}: {what}", put(name, lambda _, data=data: data)  # type: ignore[misc]
        yield f"{name} is a device", lambda f, name=name: link(f / name, "/dev/zero")  # type: ignore[misc]
        yield f"{name} is a pipe", lambda f, name=name: pipe(f / name)  # type: ignore[misc]
        yield f"{name} is a folder", lambda f, name=name: directory(f / name)  # type: ignore[misc]
    for key in (
        "name",
        "summary",
        "modality",
        "k",
        "n_max",
        "scorer_sha256",
        "scorer",
        "dataset",
        "choice",
        "files",
        "format",
    ):
        for value in (
            None,
            "",
            "x",
            0,
            -1,
            10**30,
            1.5,
            True,
            [],
            {},
            [[]],
            "\x1b[2J",
            "![x](http://example.com)",
            "9" * 5000,
        ):
            yield (
                f"config {key} = {str(value)[:20]}",
                edit(lambda c, key=key, value=value: c.update({key: value})),
            )  # type: ignore[misc]
        yield f"config without {key}", edit(lambda c, key=key: c.pop(key, None))  # type: ignore[misc]
    for path, values in SETTINGS.items():
        for value in values:
            yield f"settings {path} = {str(value)[:20]}", honest_hash(path, value)


HOSTILE = {
    "empty": b"",
    "zeros": bytes(5000),
    "pickle": b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "deep JSON": b"[" * 200_000,
    "a long number": b'{"format": ' + b"9" * 100_000 + b"}",
    "lying safetensors": (2**40).to_bytes(8, "little") + b"{}",
    "an empty zip": b"PK\x05\x06" + bytes(18),
}
SETTINGS: dict[str, tuple[Any, ...]] = {
    "preprocessing.size": (0, -1, "16", 30_000, 1.5, None, []),
    "model.outputs": (0, -1, "4", 10**9),
    "model.widths": ([], [0], [30_000] * 3, "888", [8] * 1000),
    "model.hidden": (-1, 10**9, "x"),
    "model.backbone": ("x", None, 3),
    "model.mean": ([], [0.0] * 10, "x"),
    "transforms.jitter": (-1, 10**9, "ten", None, 1.5),
    "transforms.name": ("x", None, "specaugment", "projective"),
    "base_ncm": ("x", None, 3, "invariance"),
    "classes": (3, "abc", [1], [["a"]], ["\x1b[2J"]),
    "kind": ("x", None, "audio", "merged", "os:system"),
}


def put(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return apply


def changed(places: Any, values: Any) -> Callable[[bytes], bytes]:
    def apply(data: bytes) -> bytes:
        content = bytearray(data)
        for place, value in zip(places, values, strict=True):
            content[place] = value
        return bytes(content)

    return apply


def copy(source: Path, folder: Path, name: str) -> None:
    shutil.copy(source / name, folder / name)


def link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))

    return apply


def honest_hash(path: str, value: Any) -> Callable[[Path], None]:
    """A stranger's settings with the hash that belongs to them, so that only their content can give them away."""

    def apply(folder: Path) -> None:
        from safetensors.torch import load_file

        from idecode_core.folder.detector import _hash, restore

        config = json.loads((folder / "config.json").read_text())
        *parents, last = path.split(".")
        place = config["scorer"]
        for parent in parents:
            place = place[parent]
        place[last] = value
        tensors = {name: restore(tensor) for name, tensor in load_file(folder / "model.safetensors").items()}
        config["scorer_sha256"] = _hash(config["scorer"], tensors)
        config["files"] = {}
        (folder / "config.json").write_text(json.dumps(config))
        for name in ("calibration.npz", "scores/inside.npz", "scores/outside.npz"):
            rename_scorer(folder / name, config["scorer_sha256"])

    return apply


def rename_scorer(path: Path, identity: str) -> None:
    with np.load(path) as arrays:
        parts = {**arrays, "scorer": np.array(identity)}
    buffer = io.BytesIO()
    np.savez(buffer, **parts)
    path.write_bytes(buffer.getvalue())
    assert zipfile.is_zipfile(path)


def try_folders(seed: int, short: bool, root: Path) -> Iterator[Outcome]:
    """An answer that differs from the good folder's is wrong, unless the change is one that anyone may make."""
    outcome = Outcome("folders", "damaged, foreign, hostile")
    good, other, case = root / "good" / "detector", root / "other" / "detector", root / "case" / "detector"
    for folder in (good, other):
        folder.parent.mkdir(parents=True)
    make_good(good)
    make_other(good, other)
    generator = np.random.default_rng(seed)
    everything = list(changes(generator, good, other, 2 if short else 40))
    if short:
        everything = [everything[i] for i in generator.permutation(len(everything))[:60]]
    begin, progress = time.monotonic(), Progress("detector folders", len(everything))
    with Watched(handle) as read:
        expected = json.loads(read(good).words)
        for what, change in everything:
            shutil.rmtree(case.parent, ignore_errors=True)
            shutil.copytree(good, case)
            change(case)
            ended = read(case)
            outcome.cases += 1
            progress(outcome.cases)
            outcome.weigh(ended.megabytes)
            if ended.how in (TRACEBACK, DIED):
                outcome.blame("tracebacks", f"{what}: {ended.words[:200]}")
            elif ended.how == HANG:
                outcome.blame("hangs", what)
            elif ended.how == READ and not equal(json.loads(ended.words), expected, what):
                outcome.blame("wrong", f"{what}: another answer")
            elif ended.how != READ and "\n" in ended.words:
                outcome.blame("wrong", f"{what}: several lines")
    outcome.seconds = time.monotonic() - begin
    yield outcome


def equal(found: list[Any], expected: list[Any], what: str) -> bool:
    """The verdicts and stored sums are the same; names are for people, and stored sets may be missing."""
    if what.startswith("settings"):
        return True  # another scorer with its own hash: it is what it says it is
    missing = len(found[3]) < len(expected[3])
    sums_fit = all(total in expected[4] for total in found[4])
    return found[:2] == expected[:2] and (sums_fit if missing else found[4] == expected[4])


def make_other(good: Path, other: Path) -> None:
    """The same scorer calibrated on other data, with other scores: only content hashes tell them apart."""
    from idecode_core.detector import Detector
    from idecode_core.folder.detector import load_detector, save_detector
    from idecode_core.folder.settings import read_settings
    from idecode_core.folder.shelf import ScoreSet, write_scores
    from trial.small import pictures

    scorer = load_detector(good, "cpu").scorer
    beside = {
        "split.npz": lambda path: np.savez(
            path, proper=np.arange(5), validation=np.arange(5), calibration=np.arange(5)
        ),
        "training.json": lambda path: path.write_text((good / "training.json").read_text() + " "),
    }
    calibrated = Detector.calibrate("tiny", scorer, pictures(8, 9), n_max=20)
    save_detector(calibrated, other, beside=beside)
    vectors = np.random.default_rng(1).random((9, 100)).astype(np.float32)
    write_scores(other, ScoreSet("inside", "inside", False, vectors), read_settings(other).scorer_sha256)
