"""What a visitor looks at: one picture or sound, as the file it came in and a hash of its decoded content."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from idecode_core.draws import content_key
from idecode_core.errors import InputError
from idecode_core.images import read_image

THUMBNAIL, PICTURE = 64, 320  # pixels, the longer side: in lists, shown large
MAX_FILES = 200


@dataclass(frozen=True)
class Sample:
    """One input. Only the file is kept; it is decoded again when it is scored or shown large."""

    name: str
    data: bytes  # the file as it came, or a lossless copy
    content_hash: str  # of the decoded pixels or samples; with the seed it fixes the draws
    address: str  # what stands for it in the URL
    thumbnail: bytes  # a small PNG
    picture: bytes  # a larger one; browsers do not show every kind of file, and files may be huge
    truth: str = ""  # "in-distribution" or "something else", where that is known
    modality: str = "image"

    def decode(self) -> Any:
        """Pixels (h, w, 3), or a Sound."""
        if self.modality == "audio":
            from idecode_core.sounds import read_sound

            return read_sound(self.data, name=self.name)
        return read_image(self.data, self.name)


def image_sample(name: str, data: bytes, *, address: str = "", truth: str = "") -> Sample:
    """Check and hash an image file; an InputError says in one sentence why it cannot be used."""
    pixels = read_image(data, name)
    return hashed_sample(name, data, pixels, pixels, address=address, truth=truth)


def hashed_sample(
    name: str,
    data: bytes,
    content: NDArray[Any],
    pixels: NDArray[np.uint8],
    *,
    address: str,
    truth: str,
    modality: str = "image",
) -> Sample:
    """A sample known by the hash of its decoded content, with its pictures."""
    identity = content_key(content, seed=0).tobytes().hex()
    return Sample(
        name,
        data,
        identity,
        address or f"file-{identity[:12]}",
        smaller(pixels, THUMBNAIL),
        smaller(pixels, PICTURE),
        truth,
        modality,
    )


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


def data_uri(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def uploads(read: Any, label: str, help_text: str) -> list[Sample]:
    """Files of the visitor, read by `read(name, data) -> Sample`; kept for the session, over page changes too.

    A file that cannot be used costs one sentence; the others go through.
    """
    st.file_uploader(
        label,
        accept_multiple_files=True,
        key="files",
        help=help_text,
        on_change=_mark_changed,
        label_visibility="collapsed",
    )
    if st.session_state.pop("files_changed", False):
        files = st.session_state["files"]
        st.session_state["row"], st.session_state["draw"] = 0, None
        st.session_state["uploads"], st.session_state["refused"] = read_files(
            [(file.name, file.getvalue()) for file in files[:MAX_FILES]], read
        )
        if len(files) > MAX_FILES:
            st.session_state["refused"].append(
                f"{len(files)} files came; the first {MAX_FILES} are shown. Use the command line for more."
            )
    return list(st.session_state.get("uploads", []))


def read_files(files: Sequence[tuple[str, bytes]], read: Any) -> tuple[list[Sample], list[str]]:
    """The samples that could be read, and a sentence for each file that could not."""
    samples, refused = [], []
    for name, data in files:
        try:
            samples.append(read(name, data))
        except InputError as error:
            refused.append(str(error))
    return samples, refused


def _mark_changed() -> None:
    st.session_state["files_changed"] = True
