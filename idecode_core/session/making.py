"""A new session, made of what a detector found: files that lie somewhere, arrays, or files that came as bytes; and a list of those that
are there, to go on with one of them."""

import datetime
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from idecode_core.conformal.settings import Settings
from idecode_core.errors import IdecodeError, InputError, SessionError, SettingError
from idecode_core.files.names import printable
from idecode_core.modality import content_of
from idecode_core.session import store
from idecode_core.session.session import Session, mark_of
from idecode_core.session.store import Content, Input

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.detector import Detection, Detector


class File(Protocol):
    """A file that came as bytes, such as an upload."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def content_hash(self) -> str: ...


def session_of_detection(detection: "Detection", name: str) -> Session:
    """Files stay where they are, arrays are stored in the session."""
    inputs, files = _inputs_of(detection)
    vectors, p_values = detection.score_vectors, detection.p_values
    return _new(detection.detector, detection.settings, inputs, vectors, p_values, name=name, files=files)


def session_of_files(
    detector: "Detector",
    settings: Settings,
    files: Sequence[File],
    score_vectors: "FloatArray",
    p_values: "FloatArray",
    *,
    name: str = "",
    folder: Path | None = None,
) -> Session:
    """Files that came as bytes, with their V (files, n) and p-values; they are stored in the session."""
    stored = {file.content_hash + suffix(file.name): file.data for file in files}
    inputs = [
        Input(printable(file.name)[:1000], file.content_hash, stored=file.content_hash + suffix(file.name))
        for file in files
    ]
    return _new(detector, settings, inputs, score_vectors, p_values, name=name, files=stored, folder=folder)


def _new(
    detector: "Detector",
    settings: Settings,
    inputs: Sequence[Input],
    score_vectors: "FloatArray",
    p_values: "FloatArray",
    *,
    name: str,
    files: Mapping[str, bytes],
    folder: Path | None = None,
) -> Session:
    """Saved; below the root by its name, or in the folder that is given."""
    mark, is_new = mark_of(detector)
    content = Content(
        mark,
        settings,
        tuple(inputs),
        np.ascontiguousarray(score_vectors, np.float64),
        np.ascontiguousarray(p_values, np.float64),
        made=datetime.date.today().isoformat(),
    )
    if folder is None:
        folder = store.sessions_root() / (store.check_name(name) if name else free_name(mark.folder))
        if name and (folder / store.FILE).exists():
            raise SessionError(
                f"There is a session {name} already. Open it with Session.open, or choose another name."
            )
    session = Session(folder, content, files).save()
    if is_new:
        from idecode_core.folder.detector import save_detector

        save_detector(detector, session.folder / "detector")
    return session


def suffix(name: str) -> str:
    """The ending of a file's name, if it is a plain one.

    >>> suffix("a.PNG"), suffix("b"), suffix("c.p/ng")
    ('.png', '', '')
    """
    ending = name.rpartition(".")[2].lower()
    return f".{ending}" if ending.isascii() and ending.isalnum() and len(ending) <= 8 and "." in name else ""


def _inputs_of(detection: "Detection") -> tuple[list[Input], dict[str, bytes]]:
    samples = [Path(name) for name in detection.names] if detection.names else detection.samples
    if samples is None:
        raise SettingError(
            "These points came from an iterator that has ended, so a session cannot show them: detect a list of files or arrays."
        )
    inputs, files = [], {}
    for i, decoded in enumerate(detection.detector.scorer.decode(samples)):
        identity = content_of(decoded)
        if detection.names:
            path = Path(detection.names[i]).absolute()
            inputs.append(Input(printable(path.name), identity, path=str(path)))
        else:
            stored, data = _lossless(decoded, identity)
            inputs.append(Input(f"input {i + 1}", identity, stored=stored))
            files[stored] = data
    return inputs, files


def _lossless(decoded: Any, identity: str) -> tuple[str, bytes]:
    """The stored name and the file of an array: PNG for pixels, WAV of floats for a sound."""
    buffer = io.BytesIO()
    if hasattr(decoded, "sample_rate"):
        import soundfile

        soundfile.write(buffer, decoded.samples, decoded.sample_rate, format="WAV", subtype="FLOAT")
        return f"{identity}.wav", buffer.getvalue()
    if decoded.dtype != np.uint8:
        raise InputError(
            f"A session stores pictures of 8 bits per channel, got {decoded.dtype}. Save them as files and detect those."
        )
    from PIL import Image

    Image.fromarray(np.ascontiguousarray(decoded)).save(buffer, "PNG")
    return f"{identity}.png", buffer.getvalue()


def free_name(detector: str) -> str:
    """Of a session that is not named: its detector's folder and the date, and a number where there is such a session."""
    known = detector if store.NAME.fullmatch(detector) else "own"
    root, stem = store.sessions_root(), f"{known[:60]} {datetime.date.today().isoformat()}"
    names: Iterable[str] = (stem if i == 1 else f"{stem} {i}" for i in range(1, 10_000))
    return next(name for name in names if not (root / name).exists())


@dataclass(frozen=True)
class Recent:
    """A line about a session in a list."""

    name: str
    title: str
    detector: str
    inputs: int
    tagged: int
    changed: datetime.datetime
    sentence: str = ""
    """What is wrong with it, if something is."""


def recent(most: int = 8) -> list[Recent]:
    """The sessions of this user, the last changed first; a broken one is a line with its sentence."""
    root, lines = store.sessions_root(), []
    try:
        paths = [path for path in root.glob(f"*/{store.FILE}") if store.NAME.fullmatch(path.parent.name)]
        stamped = sorted(((path.stat().st_mtime, path) for path in paths), reverse=True)[:most]
    except OSError:
        return []
    for stamp, path in stamped:
        name, changed = path.parent.name, datetime.datetime.fromtimestamp(stamp)
        try:
            content = store.read(path.parent)
            title, inputs, tagged = content.title or name, len(content.inputs), len(content.tags)
            lines.append(Recent(name, title, content.detector.name, inputs, tagged, changed))
        except IdecodeError as error:
            lines.append(Recent(name, name, "", 0, 0, changed, str(error)))
    return lines
