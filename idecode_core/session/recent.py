"""The sessions of this user in a list, to go on with one of them."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from idecode_core.errors import IdecodeError
from idecode_core.session import store


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


def recent(most: int = 8, root: Path | None = None) -> list[Recent]:
    """The sessions of this user, the last changed first; a broken one is a line with its sentence."""
    root = root or store.sessions_root()
    lines = []
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
