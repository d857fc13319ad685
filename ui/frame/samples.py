"""What a visitor looks at: one picture or sound, as the file it came in, known by a hash of its decoded content."""

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

if TYPE_CHECKING:
    from ui.frame.modality import Modality

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
    identity, pixels = modality.hash_of(decoded), modality.picture_of(decoded)
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
