"""Sounds that come with the project, to try a detector at once: spoken digits, and other things.

Digits and formula sounds are made by tools/make_spoken_digits.py; the recordings are from Debian's package
sound-theme-freedesktop, unchanged (licences: embedded/sounds/README.md).
"""

from dataclasses import dataclass
from pathlib import Path

from idecode_core.data import EMBEDDED

FOLDER = EMBEDDED / "sounds"


@dataclass(frozen=True)
class GallerySound:
    """A bundled file, what it is called, and whether it is OOD for the detector `spoken-digits`."""

    name: str
    is_ood: bool
    path: Path


def gallery_sounds(folder: Path = FOLDER) -> list[GallerySound]:
    """The bundled sounds, digits first."""
    found = []
    for path in sorted(folder.glob("*.flac")) + sorted(folder.glob("*.oga")):
        kind, _, rest = path.stem.partition("-")
        name = rest.partition("-")[2] if kind == "digit" else rest.replace("-", " ")
        found.append(GallerySound(name, kind != "digit", path))
    return sorted(found, key=lambda sound: (sound.is_ood, sound.path.name))
