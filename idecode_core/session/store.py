"""A session's folder: session.json, one npz of scores, and the files that came without a path. Read as if by a stranger.

    NAME/session.json           what is below, checked key by key
    NAME/scores-<hash>.npz      score_vectors (inputs, n) and p_values (inputs,); its hash stands in session.json
    NAME/files/<content hash>   inputs that were uploaded or came as arrays
    NAME/detector/              the detector, where it is none of those that are installed

The scores are written before session.json, which names them: a killed process leaves the old session or the new one.
"""

import hashlib
import io
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.settings import Settings
from idecode_core.errors import SessionError
from idecode_core.files.names import printable
from idecode_core.files.read import DAMAGE, read_arrays, read_json, reason, regular_size
from idecode_core.files.write import write_bytes, write_json

FORMAT = 1
FILE = "session.json"
ROOT_VARIABLE = "IDECODE_SESSIONS"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,78}[A-Za-z0-9]|[A-Za-z0-9]")
HASH = re.compile(r"[0-9a-f]{32}")
STORED = re.compile(r"[0-9a-f]{32}(\.[a-z0-9]{1,8})?")
DIGEST = re.compile(r"[0-9a-f]{64}")
MOST_INPUTS, MOST_TAGS, MOST_PINNED = 20_000, 20, 200
LONGEST_TITLE, LONGEST_TAG, LONGEST_NOTE, LONGEST_PATH = 80, 60, 5_000, 4_096
AGAIN = "Nothing was changed; open another session, or put back this one as it was saved."


@dataclass(frozen=True)
class Input:
    """One file: its name for people, the hash of its decoded content, and where it lies."""

    name: str
    content_hash: str
    path: str = ""
    """Where it lay when it came as a path; empty for one that is stored in the session."""
    stored: str = ""
    """Its name in the session's folder files/."""


@dataclass(frozen=True)
class Mark:
    """Which detector judged: its folder's name, and hashes of its weights and of its calibration."""

    name: str
    folder: str
    """Below the checkpoint root; empty where it is stored in the session."""
    modality: str
    k: int
    scorer_sha256: str
    calibration_sha256: str


@dataclass(frozen=True)
class Pinned:
    """A run to compare with others: a detector with its settings, and the numbers that came out."""

    title: str
    detector: str
    settings: dict[str, Any]
    numbers: dict[str, float]


@dataclass
class Content:
    """All of session.json, and the scores."""

    detector: Mark
    settings: Settings
    inputs: tuple[Input, ...]
    score_vectors: NDArray[np.float64]  # (inputs, n): V
    p_values: NDArray[np.float64]  # (inputs,)
    tags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Content hash -> tags."""
    notes: dict[str, str] = field(default_factory=dict)
    pinned: tuple[Pinned, ...] = ()
    made: str = ""
    """The date, as in 2026-11-18."""
    revision: int = 0
    title: str = ""
    """The name that a person gave it later; empty: its folder's."""


def sessions_root() -> Path:
    """Where sessions lie: the variable IDECODE_SESSIONS, else a folder of the user's own."""
    given = os.environ.get(ROOT_VARIABLE)
    return Path(given) if given else Path.home() / ".idecode" / "sessions"


def folder_of(name: Path | str) -> Path:
    """A session's folder, by its name below the root or by its path."""
    text = str(name)
    if NAME.fullmatch(text) and ((sessions_root() / text).is_dir() or not Path(text).is_dir()):
        return sessions_root() / text
    return Path(name)


def check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise SessionError(
            f"A session's name has up to 80 letters, digits, spaces, dots, - and _, and begins and ends with a letter or digit; "
            f"got {printable(name[:40])!r}. Choose another name."
        )
    return name


def write(folder: Path, content: Content) -> None:
    """Scores first, then session.json, which names them; then scores of earlier revisions go."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, score_vectors=content.score_vectors, p_values=content.p_values)
    digest = hashlib.sha256(
        content.score_vectors.tobytes() + content.p_values.tobytes()
    ).hexdigest()  # of the numbers: a zip has dates in it
    scores = folder / f"scores-{digest[:16]}.npz"
    if not scores.exists():
        write_bytes(scores, buffer.getvalue())
    value = {
        "format": FORMAT,
        "revision": content.revision,
        "made": content.made,
        "title": content.title,
        "detector": asdict(content.detector),
        "settings": asdict(content.settings),
        "scores_sha256": digest,
        "inputs": [
            {key: value for key, value in asdict(item).items() if value}
            | {
                "tags": list(content.tags.get(item.content_hash, ())),
                "note": content.notes.get(item.content_hash, ""),
            }
            for item in content.inputs
        ],
        "pinned": [asdict(run) for run in content.pinned],
    }
    write_json(folder / FILE, value)
    for old in folder.glob(f"scores-{'[0-9a-f]' * 16}.npz"):  # a file of such a name by somebody else stays
        if old != scores:
            old.unlink(missing_ok=True)


def read(folder: Path) -> Content:
    """A session's folder, every key checked; SessionError with one sentence on what is wrong with it."""
    path = folder / FILE
    if not path.is_file():
        raise SessionError(
            f"There is no session {printable(folder.name)}: expected {FILE} in {printable(str(folder))}. Check the name, or save the session again."
        )
    value = read_json(path, what="a session", error=SessionError, hint=AGAIN)
    check = Checker(path)
    check(isinstance(value, dict), "a table")
    version = value.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise SessionError(
            f"{path} was saved by a newer version of this program (format {version}, this one reads {FORMAT}): update this program."
        )
    check(version == FORMAT, f"format {FORMAT}")
    detector = check.table(
        value.get("detector"), "detector", {**dict.fromkeys(Mark.__dataclass_fields__, str), "k": int}
    )
    check(detector["k"] >= 1, "detector.k to be at least 1")
    check(detector["modality"] in ("image", "audio"), "detector.modality image or audio")
    check(
        not detector["folder"] or Path(detector["folder"]).name == detector["folder"],
        "detector.folder a name",
    )
    check(detector["folder"] not in (".", ".."), "detector.folder a name")
    inputs, tags, notes = _inputs(value.get("inputs"), check)
    digest = value.get("scores_sha256")
    check(isinstance(digest, str) and bool(DIGEST.fullmatch(digest)), "scores_sha256 a hash")
    vectors, p_values = _scores(folder / f"scores-{digest[:16]}.npz", digest, len(inputs))
    revision, made = value.get("revision"), value.get("made", "")
    check(type(revision) is int and revision >= 0, "revision a number")
    check(isinstance(made, str) and len(made) <= 40, "made a date")
    return Content(
        Mark(**detector),
        _settings(value.get("settings"), check),
        inputs,
        vectors,
        p_values,
        tags,
        notes,
        _pinned(value.get("pinned", []), check),
        made,
        revision,
        check.text(value.get("title", ""), "title", LONGEST_TITLE),
    )


class Checker:
    """Raises one sentence that names the file and what was expected there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, sound: bool, expected: str) -> None:
        if not sound:
            raise SessionError(f"{self.path} cannot be read as a session: expected {expected}. {AGAIN}")

    def text(self, value: Any, what: str, most: int, *, lines: bool = False) -> str:
        self(
            isinstance(value, str) and len(value) <= most,
            f"{what} to be a text of at most {most:,} characters",
        )
        one_line = value.replace("\n", " ") if lines else value
        self(printable(one_line) == one_line, f"{what} without hidden characters")
        return str(value)

    def table(self, value: Any, what: str, kinds: Mapping[str, type]) -> dict[str, Any]:
        self(isinstance(value, dict) and set(value) == set(kinds), f"{what} to have {', '.join(kinds)}")
        for key, kind in kinds.items():
            self(type(value[key]) is kind, f"{what}.{key} to be {kind.__name__}")
            if kind is str:
                self.text(value[key], f"{what}.{key}", 500)
        return dict(value)


def _inputs(
    value: Any, check: Checker
) -> tuple[tuple[Input, ...], dict[str, tuple[str, ...]], dict[str, str]]:
    check(isinstance(value, list) and len(value) <= MOST_INPUTS, f"a list of at most {MOST_INPUTS:,} inputs")
    inputs, tags, notes = [], {}, {}
    for i, item in enumerate(value):
        where = f"input {i + 1}"
        check(isinstance(item, dict), f"{where} to be a table")
        name = check.text(item.get("name"), f"{where}: name", 1_000)
        identity, path, stored = item.get("content_hash"), item.get("path", ""), item.get("stored", "")
        check(
            isinstance(identity, str) and bool(HASH.fullmatch(identity)),
            f"{where}: content_hash to be a hash",
        )
        check.text(path, f"{where}: path", LONGEST_PATH)
        check(isinstance(stored, str) and bool(path) != bool(stored), f"{where}: a path, or a stored file")
        check(
            not stored or bool(STORED.fullmatch(stored)),
            f"{where}: its stored file inside of the session's folder",
        )
        check(not path or Path(path).is_absolute(), f"{where}: path to be absolute")
        inputs.append(Input(name, identity, path, stored))
        given = item.get("tags", [])
        check(isinstance(given, list) and len(given) <= MOST_TAGS, f"{where}: at most {MOST_TAGS} tags")
        words = tuple(check.text(tag, f"{where}: a tag", LONGEST_TAG) for tag in given)
        note = check.text(item.get("note", ""), f"{where}: note", LONGEST_NOTE, lines=True)
        if words:
            tags[identity] = words
        if note:
            notes[identity] = note
    return tuple(inputs), tags, notes


def _settings(value: Any, check: Checker) -> Settings:
    check(isinstance(value, dict) and set(value) == set(Settings.__dataclass_fields__), "settings")
    n, epsilon, delta = value["n"], value["epsilon"], value["delta"]
    check(n is None or (type(n) is int and 1 <= n <= 10_000), "settings.n to be a number from 1 on")
    check(_is_share(epsilon), "settings.epsilon to be between 0 and 1")
    check(delta is None or _is_share(delta), "settings.delta to be between 0 and 1")
    check.text(value["aggregate"], "settings.aggregate", 40)
    check(type(value["seed"]) is int and 0 <= value["seed"] < 2**63, "settings.seed to be a number from 0 on")
    check(type(value["smoothed"]) is bool, "settings.smoothed to be true or false")
    return Settings(**value)


def _is_share(value: Any) -> bool:
    return isinstance(value, float) and isfinite(value) and 0 < value < 1


def _pinned(value: Any, check: Checker) -> tuple[Pinned, ...]:
    check(isinstance(value, list) and len(value) <= MOST_PINNED, f"at most {MOST_PINNED} pinned runs")
    kinds = {"title": str, "detector": str, "settings": dict, "numbers": dict}
    runs = []
    for i, table in enumerate(value):
        run = check.table(table, f"pinned run {i + 1}", kinds)
        for key, entry in (*run["settings"].items(), *run["numbers"].items()):
            check.text(key, f"pinned run {i + 1}", 100)
            check(
                entry is None or isinstance(entry, str | int | float | bool),
                f"pinned run {i + 1}: plain values",
            )
            if isinstance(entry, str):
                check.text(entry, f"pinned run {i + 1}", 500)
        check(
            all(type(entry) in (int, float) for entry in run["numbers"].values()),
            f"pinned run {i + 1}: numbers",
        )
        runs.append(Pinned(**run))
    return tuple(runs)


def _scores(path: Path, digest: str, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    arrays = read_arrays(
        path, ("score_vectors", "p_values"), what="a session's scores", error=SessionError, hint=AGAIN
    )
    vectors, p_values = arrays["score_vectors"], arrays["p_values"]
    sound = (
        vectors.dtype == p_values.dtype == np.float64
        and vectors.ndim == 2
        and vectors.shape[:1] == p_values.shape == (count,)
        and bool(np.isfinite(vectors).all() and np.isfinite(p_values).all())
    )
    if not sound or hashlib.sha256(vectors.tobytes() + p_values.tobytes()).hexdigest() != digest:
        raise SessionError(f"{path} does not hold the scores of this session's {count:,} inputs. {AGAIN}")
    return vectors, p_values


def input_bytes(folder: Path, item: Input, most: int) -> bytes:
    """The file of an input; SessionError with one sentence where it is gone, is no plain file, or lies outside."""
    try:
        path = Path(item.path) if item.path else folder / "files" / item.stored
        if not item.path and not path.resolve().is_relative_to(folder.resolve()):
            raise OSError("it lies outside of the session's folder")
        if regular_size(path) > most:
            raise OSError(f"it has more than {most // 2**20} MB")
        return path.read_bytes()
    except DAMAGE as error:
        raise SessionError(
            f"{printable(item.name)} can no longer be read: {reason(error)}. The rest of the session is shown."
        ) from error
