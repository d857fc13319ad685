"""Images in: files, bytes, PIL images or arrays -> uint8 (h, w, 3), or one clear sentence why not.

Pictures as floats that must reach the network as they are: an attack's changes are finer than 8 bits.

    detector.detect(Unrounded(attacked))

Other float pictures are brought to 8 bits when they are read, as files are. A picture whose floats are 8-bit values is read
as that 8-bit picture, so it has the same key, the same draws and the same scores, however it was written down.
"""

import io
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps

from idecode_core.draws import Prepared
from idecode_core.errors import InputError
from idecode_core.files.names import IMAGE_BYTES as MAX_BYTES
from idecode_core.files.read import read_at_most, regular_size

Floats = NDArray[np.float32]  # (h, w, 3) in [0, 1]


@dataclass(frozen=True, eq=False)
class Unrounded:
    """One picture or several: tensors (N, 3, h, w) as everywhere in torch, arrays (N, h, w, 3), floats in [0, 1]."""

    x: Any

    def pictures(self) -> Iterator[NDArray[np.uint8] | Floats]:
        """One after the other (h, w, 3): floats, or uint8 where that says the same."""
        channels_first = hasattr(self.x, "detach")
        floats = np.asarray(self.x.detach().cpu() if channels_first else self.x)
        if floats.ndim == 3:
            floats = floats[None]
        if channels_first and floats.ndim == 4:
            floats = floats.transpose(0, 2, 3, 1)
        if (
            floats.ndim != 4
            or floats.shape[3] != 3
            or not np.issubdtype(floats.dtype, np.floating)
            or not np.isfinite(floats).all()
            or (floats.size and (floats.min() < 0 or floats.max() > 1))
        ):
            raise InputError(
                "Unrounded pictures must be floats from 0 to 1, a tensor (N, 3, h, w) or an array (N, h, w, 3); got "
                f"{floats.dtype} of shape {np.shape(self.x)}. Scale or transpose them first."
            )
        for picture in floats.astype(np.float32):
            eight_bits = np.round(picture * 255).astype(np.uint8)
            same = np.array_equal(eight_bits.astype(np.float32) / np.float32(255), picture)
            yield eight_bits if same else np.ascontiguousarray(picture)


MAX_PIXELS = 50_000_000
MIN_SIDE = 8
STRIP = 256  # rows
EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif")
# Only these: PIL also knows formats that start other programs (EPS). JPEG includes MPO, which many phones write.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF")
# What PIL's decoders raise on damaged files, found by cutting and changing bytes at random.
DAMAGE = (
    OSError,
    ValueError,
    SyntaxError,
    TypeError,
    LookupError,
    EOFError,
    OverflowError,
    MemoryError,
    struct.error,
)

Pixels = NDArray[np.uint8]  # (h, w, 3)


def read_image(source: Path | str | bytes | Image.Image | NDArray[np.generic], name: str = "") -> Pixels:
    """Decode anything that shows one picture into uint8 (h, w, 3).

    Grey becomes RGB, transparency is laid on mid-grey, 16-bit is scaled, EXIF rotation is applied.
    """
    if isinstance(source, np.ndarray):
        return _from_array(source, name or "the array")
    if isinstance(source, Image.Image):
        return _from_pil(source, name or "the image")
    if isinstance(source, bytes):
        data, name = source, name or "the upload"
    else:
        if not isinstance(source, str | Path):
            raise InputError(
                f"Expected an image: a path, bytes, a PIL image or an array; got {type(source).__name__}."
            )
        path = Path(source)
        name = name or path.name
        try:
            size = regular_size(path)
            data = read_at_most(path, MAX_BYTES) if size <= MAX_BYTES else b""
        except (OSError, ValueError) as error:  # ValueError: a path with a null character
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{name}: could not be opened ({reason}); expected an image file.") from error
        if size > MAX_BYTES:
            raise InputError(_too_many_bytes(name, size))
    if len(data) > MAX_BYTES:
        raise InputError(_too_many_bytes(name, len(data)))
    if not data:
        raise InputError(f"{name}: is empty; expected an image file. Export or copy it again.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # we have our own limit
            image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError:
        raise InputError(
            f"{name}: has more than {MAX_PIXELS // 10**6} megapixels; make it smaller."
        ) from None
    except DAMAGE:
        raise InputError(
            f"{name}: is not an image that can be read; expected PNG, JPEG, WebP, BMP, TIFF or GIF. Check the file."
        ) from None
    return _from_pil(image, name)


def _too_many_bytes(name: str, size: int) -> str:
    return f"{name}: has {size / 2**20:.0f} MB; expected at most {MAX_BYTES // 2**20} MB. Make it smaller."


def _check_size(width: int, height: int, name: str) -> None:
    if width * height > MAX_PIXELS:
        raise InputError(
            f"{name}: has {width * height / 1e6:.0f} megapixels ({width} x {height}); expected at most "
            f"{MAX_PIXELS // 10**6}. Make it smaller."
        )
    if min(width, height) < MIN_SIDE:
        raise InputError(
            f"{name}: is {width} x {height} pixels; expected at least {MIN_SIDE} x {MIN_SIDE}. Use a larger image."
        )


def _from_pil(image: Image.Image, name: str) -> Pixels:
    _check_size(*image.size, name)
    try:
        if image.format != "MPO" and _has_more_frames(image):
            # An MPO's other frames are previews or depth of the same picture.
            raise InputError(
                f"{name}: is animated or has several pages; expected one still image. Save a single frame."
            )
        if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:  # else it would be copied all the same
            image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I") or image.mode == "F":
            return _from_array(np.asarray(image), name)
        return _eight_bits(image)
    except InputError:
        raise
    except (*DAMAGE, Image.DecompressionBombError) as error:
        raise InputError(
            f"{name}: is damaged or cut off ({error}); expected a complete image. Export or copy it again."
        ) from None


def _eight_bits(image: Image.Image) -> Pixels:
    """Colours as RGB, transparency laid on mid-grey; a strip after the other: a large picture is not held four times over."""
    width, height = image.size
    transparent = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    pixels = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, STRIP):
        strip = image.crop((0, top, width, min(top + STRIP, height)))
        if transparent:
            grey = Image.new("RGBA", strip.size, (128, 128, 128, 255))
            strip = Image.alpha_composite(grey, strip.convert("RGBA"))
        pixels[top : top + strip.height] = np.asarray(strip.convert("RGB"))
    return pixels


def _has_more_frames(image: Image.Image) -> bool:
    """Whether there is a second frame. Counting them all takes minutes for a TIFF that claims many."""
    try:
        image.seek(1)
    except (EOFError, ValueError, OSError, AttributeError):
        return False
    return True


def _from_array(array: NDArray[np.generic], name: str) -> Pixels:
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        raise InputError(
            f"{name}: has shape {array.shape}; expected (height, width), (height, width, 3) or (height, width, 4)."
        )
    _check_size(array.shape[1], array.shape[0], name)
    scaled: NDArray[np.uint8]
    if array.dtype == np.uint8:
        scaled = array.astype(np.uint8, copy=False)
    elif np.issubdtype(array.dtype, np.integer):  # 16-bit pictures arrive as uint16 or as PIL's int32
        low, high = int(array.min()), int(array.max())
        if low < 0 or high > 65535:
            raise InputError(f"{name}: has values from {low} to {high}; expected 0 to 65535.")
        scaled = _by_strips(array, lambda whole: whole / 257)
    elif np.issubdtype(array.dtype, np.floating):
        if not (array.min() >= 0 and array.max() <= 1):  # nan is neither
            raise InputError(
                f"{name}: is a float image; expected finite values between 0 and 1. Scale it first."
            )
        scaled = _by_strips(array, lambda share: share * 255)
    else:
        raise InputError(f"{name}: has type {array.dtype}; expected uint8, uint16 or floats in [0, 1].")
    if scaled.shape[2] == 4:
        return _from_pil(Image.fromarray(np.ascontiguousarray(scaled), "RGBA"), name)
    return np.ascontiguousarray(np.broadcast_to(scaled, (*scaled.shape[:2], 3)))


def _by_strips(
    array: NDArray[Any], scale: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.uint8]:
    """(h, w, channels) brought to 8 bits; a strip after the other, because float64 takes eight times the room."""
    scaled = np.empty(array.shape, np.uint8)
    for top in range(0, len(array), STRIP):
        strip = slice(top, top + STRIP)
        scaled[strip] = np.round(scale(array[strip].astype(np.float64)))
    return scaled


def decode(samples: Any) -> Iterator[Any]:
    """Every accepted form of samples, one decoded image after the other; prepared samples pass through.

    Torch tensors are (C, H, W) or (N, C, H, W), as everywhere in torch; of (image, label) the label is left out.
    """
    samples = _as_array(samples)
    if isinstance(samples, str | Path | bytes | Image.Image | Prepared | Unrounded) or (
        isinstance(samples, np.ndarray) and samples.ndim < 4
    ):
        samples = [samples]
    elif (
        not isinstance(samples, Iterable) and hasattr(samples, "__getitem__") and hasattr(samples, "__len__")
    ):
        dataset = samples
        samples = (dataset[i] for i in range(len(dataset)))  # a torch Dataset need not end by itself
    if not isinstance(samples, Iterable):
        raise InputError(
            f"Expected images: an array (N, H, W, 3), a tensor (N, 3, H, W), a list of paths, PIL images or arrays, or "
            f"an iterable of batches; got {type(samples).__name__}."
        )
    for sample in samples:
        sample = _as_array(_without_label(sample))
        if isinstance(sample, Prepared):
            yield sample
        elif isinstance(sample, Unrounded):
            yield from sample.pictures()
        elif isinstance(sample, np.ndarray) and sample.ndim == 4:
            yield from (read_image(image) for image in sample)
        elif isinstance(sample, list | tuple):
            yield from decode(sample)
        else:
            yield read_image(sample)


def _without_label(sample: Any) -> Any:
    """The image or images of (image, label), of a loader's [images, labels] and of {"image": ..., "label": ...}."""
    if isinstance(sample, dict):
        return next((sample[key] for key in ("image", "pixel_values", "img") if key in sample), sample)
    if isinstance(sample, list | tuple) and len(sample) == 2:
        label = sample[1]
        if label is None or isinstance(label, int | np.integer) or getattr(label, "ndim", 2) < 2:
            return sample[0]
    return sample


def _as_array(sample: Any) -> Any:
    """A torch tensor, channels first, as an array, channels last; anything else as it is. Needs no torch here."""
    if not (hasattr(sample, "detach") and hasattr(sample, "movedim")):
        return sample
    tensor = sample.detach().cpu()
    if tensor.ndim in (3, 4):
        if tensor.shape[-3] not in (1, 3, 4):
            raise InputError(
                f"The tensor has shape {tuple(tensor.shape)}; expected channels first, (N, 3, H, W) or (3, H, W). Use "
                "tensor.movedim(-1, -3), or give arrays, which have channels last."
            )
        tensor = tensor.movedim(-3, -1)
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
