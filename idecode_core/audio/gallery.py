"""Sounds that come with the project, to try a detector at once: spoken digits, and other things.

Digits and formula sounds are made by tools/make_spoken_digits.py; the recordings are from Debian's package
sound-theme-freedesktop, unchanged (licences: embedded/sounds/README.md).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from idecode_core.data import EMBEDDED

if TYPE_CHECKING:
    from idecode_core.audio.read import Sound

FOLDER = EMBEDDED / "sounds"
LABELS = {"digit": "spoken digits", "other": "made sounds", "recorded": "recordings"}


@dataclass(frozen=True)
class GallerySound:
    """A bundled file, what it is called, and whether it is OOD for the detector `spoken-digits`."""

    name: str
    is_ood: bool
    path: Path


def gallery_sounds() -> list[GallerySound]:
    """The bundled sounds, digits first."""
    found = []
    for path in sorted(FOLDER.glob("*.flac")) + sorted(FOLDER.glob("*.oga")):
        kind, _, rest = path.stem.partition("-")
        name = rest.partition("-")[2] if kind == "digit" else rest.replace("-", " ")
        found.append(GallerySound(name, kind != "digit", path))
    return sorted(found, key=lambda sound: (sound.is_ood, sound.path.name))


def bundled_sounds(dataset: str = "") -> "dict[str, list[Sound]]":
    """Label -> the bundled sounds of that kind; without spoken digits where these are the dataset."""
    from idecode_core.audio.read import read_sound

    found: dict[str, list[Sound]] = {}
    for sound in gallery_sounds():
        if sound.is_ood or dataset != "spokendigits":
            kind = sound.path.stem.partition("-")[0]
            found.setdefault(LABELS.get(kind, kind), []).append(
                read_sound(sound.path.read_bytes(), name=sound.name)
            )
    return found
