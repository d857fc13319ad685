"""What a visitor looks at: one picture or sound, as the file it came in, known by a hash of its decoded content; and what differs
between pictures and sounds on the pages: one object for each, so that no page branches on a word.

A new kind of input is one file like `pictures` and one line in `modality_of`.
"""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from streamlit.runtime.uploaded_file_manager import UploadedFile

from idecode_core.folder.settings import FolderSettings
from idecode_core.modality import content_of

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.scorer import Inspected, Variant


THUMBNAIL, PICTURE = 64, 320  # pixels, the longer side: in lists, shown large


@dataclass(frozen=True, eq=False)
class Sample:
    """One input. It is decoded when it arrives; what is kept is small, or the file itself."""

    name: str
    data: bytes  # the file as it came, or a lossless copy
    modality: "Modality"
    content_hash: str  # of the decoded pixels or samples; with the seed it fixes the draws
    address: str  # what stands for it in the URL
    thumbnail: bytes  # a small PNG
    picture: bytes  # a larger one; browsers do not show every kind of file, and files may be huge
    truth: str = ""  # "in-distribution" or "something else", where that is known

    def decode(self) -> Any:
        """Pixels (h, w, 3), or a Sound: again, for another seed or detector than those it arrived with."""
        return self.modality.read(self.data, self.name)


def decoded_sample(
    modality: "Modality", name: str, data: bytes, decoded: Any, *, address: str = "", truth: str = ""
) -> Sample:
    """A sample from its file and what was decoded of it."""
    identity, pixels = content_of(decoded), modality.picture_of(decoded)
    address = address or f"file-{identity[:12]}"
    small, large = smaller(pixels, THUMBNAIL), smaller(pixels, PICTURE)
    return Sample(name, data, modality, identity, address, small, large, truth)


def smaller(pixels: NDArray[np.uint8], side: int) -> bytes:
    """A PNG that fits into a square of `side` pixels; small images stay as they are."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((side, side))
    return png(np.asarray(image))


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Decoded pixels (h, w, 3) as a lossless file."""
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    return file.getvalue()


def data_uri(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


@dataclass(frozen=True)
class Gallery:
    """Bundled samples to try with one detector: address -> what the visitor clicks on, in Markdown."""

    belonging: Mapping[str, str]
    foreign: Mapping[str, str]
    first: str = ""
    """The address that is shown when the visitor has not chosen yet."""
    foreign_title: str = "Something else"
    note: str = ""


@dataclass(frozen=True)
class Capture:
    """The camera or the microphone."""

    source: str
    name: str
    """Of what was captured."""
    words: str
    """What the visitor does there."""
    hint: str
    take: Callable[[], UploadedFile | None]


@dataclass(frozen=True, eq=False)
class Modality:
    """Pictures, or sounds."""

    name: str  # as in config.json
    noun: str  # in verdicts, as in "calibration images"
    thing: str  # what pages call one of them
    icon: str
    extensions: tuple[str, ...]
    formats: str
    """Which files may be dropped in, in words."""
    prefix: str
    """Of the keys of widgets, which differ because their choices do."""
    width: int  # pixels of a sample beside its verdict
    capture: Capture
    read: Callable[[bytes, str], Any]
    """File and name -> decoded; an InputError says in one sentence why it cannot be used."""
    picture_of: Callable[[Any], NDArray[np.uint8]]
    """Decoded -> pixels (h, w, 3)."""
    gallery: Callable[[FolderSettings], Gallery]
    find: Callable[[FolderSettings, str], Sample | None]
    """The bundled sample of an address, in the gallery or not."""
    show: Callable[[Sample], None]
    """Draw a sample beside its verdict."""
    enlarge: "Callable[[Detector, Inspected, Sequence[Variant]], None]"
    """Draw the variants of one draw in full."""
    closer: "Callable[[Detector, Sample, Inspected, int], None] | None" = None
    """Draw what else there is to see of a sample, with n draws."""

    @property
    def plural(self) -> str:
        return f"{self.thing}s"


def modality_of(config: FolderSettings) -> Modality:
    """What a detector takes in."""
    from ui.frame.pictures import PICTURES
    from ui.frame.sounds import SOUNDS

    return SOUNDS if config.modality == SOUNDS.name else PICTURES
