"""How files and datasets of a detector's modality are read, for all that takes them: library, commands and service.

A modality is looked up when it is needed: reading sounds takes packages that pictures do without, and commands start without torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idecode_core.files.limits import IMAGE_BYTES, SOUND_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Modality:
    """Pictures, or sounds."""

    extensions: tuple[str, ...]
    """Which files of a folder are taken."""
    most_bytes: int  # of one file
    read: Callable[[Path, str], Any]
    """File and its name for people -> decoded, or an InputError."""
    load: "Callable[[str, Path | None], Sequence[Any] | NDArray[np.uint8]]"
    """A dataset by its name, in this data root -> its samples."""
    bundled: Callable[[str], dict[str, Any]]
    """Label -> some samples of each set that comes with the project, all but those of a detector's own dataset."""


def modality_named(name: str) -> Modality:
    """ "image" or "audio", as in config.json.

    >>> ".png" in modality_named("image").extensions
    True
    """
    if name == "audio":
        from idecode_core.audio.gallery import bundled_sounds
        from idecode_core.audio.read import EXTENSIONS as SOUNDS
        from idecode_core.audio.read import read_sound
        from idecode_core.audio.sets import load_sounds

        return Modality(
            SOUNDS,
            SOUND_BYTES,
            lambda path, name: read_sound(path, name=name),
            lambda name, root: load_sounds(name, root).samples,
            bundled_sounds,
        )
    from idecode_core.image.read import EXTENSIONS as PICTURES
    from idecode_core.image.read import read_image
    from idecode_core.image.sets import bundled_pictures, load_images

    return Modality(
        PICTURES,
        IMAGE_BYTES,
        lambda path, name: read_image(path, name=name),
        lambda name, root: load_images(name, root).samples,
        bundled_pictures,
    )
