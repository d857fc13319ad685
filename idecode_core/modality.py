"""How files and datasets of a detector's modality are read, for all that takes them: library, commands and service.

A modality is looked up when it is needed: reading sounds takes packages that pictures do without, and commands start without torch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idecode_core.data import data_root as find_root
from idecode_core.draws import content_hash
from idecode_core.errors import DataError, InputError
from idecode_core.files.find import expanded
from idecode_core.files.names import IMAGE_BYTES, NOUNS, SOUND_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Readers:
    """How pictures, or sounds, are read."""

    extensions: tuple[str, ...]
    """Which files of a folder are taken."""
    most_bytes: int  # of one file
    read: Callable[[Path | bytes, str], Any]
    """File, or its content, and its name for people -> decoded, or an InputError."""
    load: "Callable[[str, Path | None], Sequence[Any] | NDArray[np.uint8]]"
    """A dataset by its name, in this data root -> its samples."""
    bundled: Callable[[str], dict[str, Any]]
    """Label -> some samples of each set that comes with the project, all but those of a detector's own dataset."""


def modality_named(name: str) -> Readers:
    """ "image" or "audio", as in config.json.

    >>> ".png" in modality_named("image").extensions
    True
    """
    if name == "audio":
        from idecode_core.audio.read import EXTENSIONS as SOUNDS
        from idecode_core.audio.read import read_sound
        from idecode_core.audio.sets import bundled_sounds, load_sounds

        return Readers(
            SOUNDS,
            SOUND_BYTES,
            lambda path, name: read_sound(path, name=name),
            lambda name, root: load_sounds(name, root).samples,
            bundled_sounds,
        )
    from idecode_core.image.read import EXTENSIONS as PICTURES
    from idecode_core.image.read import read_image
    from idecode_core.image.sets import bundled_pictures, load_images

    return Readers(
        PICTURES,
        IMAGE_BYTES,
        lambda path, name: read_image(path, name=name),
        lambda name, root: load_images(name, root).samples,
        bundled_pictures,
    )


def content_of(sample: Any) -> str:
    """The hash of a decoded picture or sound: the same for all copies, whatever their files are called."""
    rate = getattr(sample, "sample_rate", None)
    return content_hash(sample) if rate is None else content_hash(sample.samples, rate)


@dataclass(eq=False)
class Reading:
    """Many files, decoded one after the other as they are asked for; what cannot be read is collected and passed over."""

    paths: Iterable[Path]
    modality: Readers
    good: list[Path] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """A sentence for each file that cannot be read."""

    def __iter__(self) -> Iterator[Any]:
        for path in self.paths:
            try:
                sample = self.modality.read(path, str(path))
            except InputError as error:
                self.failed.append(str(error))
                continue
            self.good.append(path)
            yield sample


def samples_of(
    source: str, modality: str, data_root: Path | None = None
) -> "Sequence[Any] | NDArray[np.uint8]":
    """The files of a folder, or a dataset by its name ("fashion-sample")."""
    folder, noun = Path(source), NOUNS[modality]
    if folder.is_dir():
        return expanded(folder, modality_named(modality).extensions)
    if folder.is_file():
        raise InputError(f"{source} is a file: expected a folder of {noun}s. Put it into one, and give that.")
    if folder.name != source:  # no dataset has a slash in its name
        raise InputError(f"There is no folder {source}: expected a folder of {noun}s. Check the path.")
    try:
        return modality_named(modality).load(source, data_root)
    except DataError:
        from idecode_core.image.fetch import SOURCES

        if (find_root(data_root) / f"{source}.npz").exists() or source.rpartition("-")[0] in SOURCES:
            raise  # damaged, or to be fetched: the error says so
        raise InputError(
            f"{source!r} is not here, neither as a folder nor as a dataset: expected a folder of {noun}s, or a dataset's "
            "name. Check the name; `python -m idecode_core data check` lists the datasets."
        ) from None
