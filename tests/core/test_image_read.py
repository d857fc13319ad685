"""Images in: every kind that can be read gives the right pixels, every other one a clear sentence."""

import io

import numpy as np
import pytest
from PIL import Image
from small import random_images

from idecode_core.errors import InputError
from idecode_core.image import read as images
from idecode_core.image.read import read_image

COLOUR = random_images(1, 24)[0][:, :20]  # (24, 20, 3)
GREY = COLOUR[..., 0]


def encode(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def frames(kind: str) -> bytes:
    first, second = Image.fromarray(COLOUR), Image.fromarray(COLOUR[::-1].copy())
    return encode(first, kind, save_all=True, append_images=[second])


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "WEBP"])
def test_lossless_files_give_their_pixels(kind):
    data = encode(Image.fromarray(COLOUR), kind, **({"lossless": True} if kind == "WEBP" else {}))
    assert np.array_equal(read_image(data), COLOUR)


def test_a_jpeg_and_a_gif_are_read_too():
    assert read_image(encode(Image.fromarray(COLOUR), "JPEG")).shape == (24, 20, 3)
    assert read_image(encode(Image.fromarray(COLOUR).convert("P"), "GIF")).shape == (24, 20, 3)


def test_a_path_its_bytes_and_its_array_are_the_same_image(tmp_path):
    path = tmp_path / "an image without extension"
    path.write_bytes(encode(Image.fromarray(COLOUR)))
    for source in (path, str(path), path.read_bytes(), Image.open(path), COLOUR):
        assert np.array_equal(read_image(source), COLOUR)


def test_grey_becomes_three_equal_channels():
    expected = np.repeat(GREY[..., None], 3, axis=2)
    assert np.array_equal(read_image(encode(Image.fromarray(GREY))), expected)
    assert np.array_equal(read_image(GREY), expected)
    assert np.array_equal(read_image(GREY[..., None]), expected)


def test_black_and_white_pictures_are_read():
    black_and_white = GREY > 127
    expected = np.repeat(255 * black_and_white[..., None], 3, axis=2)
    assert np.array_equal(read_image(encode(Image.fromarray(black_and_white))), expected)


def test_transparency_is_laid_on_mid_grey():
    alpha = np.zeros_like(GREY)
    alpha[:12] = 255
    rgba = np.dstack([COLOUR, alpha])
    for source in (encode(Image.fromarray(rgba)), Image.fromarray(rgba), rgba):
        pixels = read_image(source)
        assert np.array_equal(pixels[:12], COLOUR[:12])
        assert (pixels[12:] == 128).all()
    grey_and_alpha = Image.fromarray(np.dstack([GREY, alpha]), "LA")
    assert (read_image(encode(grey_and_alpha))[12:] == 128).all()


def test_half_transparent_pixels_are_mixed():
    rgba = np.dstack([np.full_like(COLOUR, 228), np.full_like(GREY, 128)])
    assert np.abs(read_image(rgba).astype(int) - (128 + 100 * 128 / 255)).max() <= 1


def test_a_palette_gives_its_colours_with_and_without_transparency():
    indexed = Image.fromarray(COLOUR).quantize(16)
    assert np.array_equal(read_image(encode(indexed)), np.asarray(indexed.convert("RGB")))
    index = int(np.asarray(indexed)[0, 0])
    pixels = read_image(encode(indexed, transparency=index))
    transparent = np.asarray(indexed) == index
    assert (pixels[transparent] == 128).all()
    assert np.array_equal(pixels[~transparent], np.asarray(indexed.convert("RGB"))[~transparent])


def test_sixteen_bits_are_scaled_to_eight():
    deep = (GREY.astype(np.uint16) * 257)[..., None].repeat(3, axis=2)
    expected = np.repeat(GREY[..., None], 3, axis=2)
    assert np.array_equal(read_image(encode(Image.fromarray(deep[..., 0]))), expected)
    assert np.array_equal(read_image(encode(Image.fromarray(deep[..., 0]), "TIFF")), expected)
    assert np.array_equal(read_image(deep), expected)
    assert np.array_equal(read_image(deep[..., 0]), expected)


def test_floats_between_zero_and_one_are_scaled():
    assert np.array_equal(read_image(COLOUR / 255), COLOUR)
    assert np.array_equal(read_image((COLOUR / 255).astype(np.float32)), COLOUR)


def test_cmyk_is_converted():
    cmyk = Image.fromarray(COLOUR).convert("CMYK")
    assert np.array_equal(read_image(encode(cmyk, "TIFF")), np.asarray(cmyk.convert("RGB")))


@pytest.mark.parametrize(
    ("orientation", "upright"),
    [(1, lambda a: a), (3, lambda a: np.rot90(a, 2)), (6, lambda a: np.rot90(a, -1)), (8, np.rot90)],
)
def test_the_rotation_in_exif_is_applied(orientation, upright):
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert np.array_equal(read_image(encode(Image.fromarray(COLOUR), exif=exif)), upright(COLOUR))


def test_the_second_picture_in_a_phones_jpeg_is_no_animation():
    data = frames("MPO")
    assert Image.open(io.BytesIO(data)).n_frames == 2
    assert read_image(data).shape == (24, 20, 3)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_an_animation_is_refused(kind):
    with pytest.raises(InputError, match=r"clip: is animated or has several pages; expected one still image"):
        read_image(frames(kind), name="clip")


def test_a_tiff_of_many_pages_is_refused_without_counting_them():
    """Repair: 180,000 pages took 680 s to count. Now the second page is enough."""
    pages = [Image.new("L", (8, 8)) for _ in range(400)]
    buffer = io.BytesIO()
    pages[0].save(buffer, "TIFF", save_all=True, append_images=pages[1:])
    image = Image.open(io.BytesIO(buffer.getvalue()))
    seen = []
    seek = type(image)._seek
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(image), "_seek", lambda self, frame: (seen.append(frame), seek(self, frame))[1])
        with pytest.raises(InputError, match="several pages"):
            read_image(buffer.getvalue(), name="scan")
    assert max(seen) <= 1


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 100, 3), (100, 7, 3)])
def test_tiny_images_are_refused(shape):
    array = np.zeros(shape, np.uint8)
    for source in (array, encode(Image.fromarray(array))):
        with pytest.raises(InputError, match="expected at least 8 x 8"):
            read_image(source)


def test_an_image_of_10000_pixels_a_side_is_refused_before_it_is_decoded(monkeypatch):
    data = encode(Image.new("1", (10_000, 10_000)))
    assert len(data) < images.MAX_BYTES
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(InputError, match=r"100 megapixels \(10000 x 10000\); expected at most 50"):
        read_image(data)


def test_a_decompression_bomb_is_refused():
    data = encode(Image.new("1", (20_000, 20_000)))
    with pytest.raises(InputError, match="more than 50 megapixels; make it smaller"):
        read_image(data)


def test_long_and_narrow_images_are_fine():
    assert read_image(encode(Image.new("L", (10_000, 10)))).shape == (10, 10_000, 3)


def test_too_large_a_file_is_refused_without_reading_it(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "MAX_BYTES", 2**20)
    path = tmp_path / "large.png"
    path.write_bytes(bytes(2 * 2**20))
    for source, name in ((path, "large.png"), (path.read_bytes(), "the upload")):
        with pytest.raises(InputError, match=f"{name}: has 2 MB; expected at most 1 MB"):
            read_image(source)


def test_an_empty_file_a_text_file_and_a_folder_are_refused_by_name(tmp_path):
    cases = {"empty.png": "is empty", "text.png": "is not an image", "no.png": "could not be opened"}
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("not a picture, whatever its name says")
    for name, message in cases.items():
        with pytest.raises(InputError, match=f"{name}: {message}"):
            read_image(tmp_path / name)
    with pytest.raises(InputError, match="could not be opened"):
        read_image(tmp_path)
    with pytest.raises(InputError, match="could not be opened"):
        read_image("a\0b.png")


def test_formats_that_start_other_programs_are_not_opened():
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n%%EOF\n"
    with pytest.raises(InputError, match="is not an image that can be read; expected PNG, JPEG"):
        read_image(eps)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "GIF", "WEBP"])
def test_a_cut_off_file_is_refused(kind):
    data = encode(Image.fromarray(COLOUR), kind)
    with pytest.raises(InputError, match=r"(is damaged or cut off|is not an image)"):
        read_image(data[: len(data) // 2])


@pytest.mark.filterwarnings("ignore::UserWarning")  # PIL's remarks about damaged headers
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "GIF", "WEBP"])
def test_damaged_bytes_give_an_image_or_a_sentence_and_nothing_else(kind):
    generator = np.random.default_rng(0)
    whole = frames(kind) if kind == "GIF" else encode(Image.fromarray(COLOUR), kind)
    for cut in range(0, len(whole), max(1, len(whole) // 60)):
        decode_or_explain(whole[:cut])
    for _ in range(60):
        damaged = np.frombuffer(whole, np.uint8).copy()
        places = generator.integers(0, min(len(damaged), generator.choice([64, len(damaged)])), 4)
        damaged[places] = generator.integers(0, 256, 4)
        decode_or_explain(damaged.tobytes())


def decode_or_explain(data: bytes) -> None:
    try:
        pixels = read_image(data)
    except InputError:
        return
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == 3


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((16, 16, 2), np.uint8), r"shape \(16, 16, 2\)"),
        (np.zeros(16, np.uint8), r"shape \(16,\)"),
        (np.zeros((2, 16, 16, 3, 3), np.uint8), "shape"),
        (np.full((16, 16, 3), 255.0), "finite values between 0 and 1"),
        (np.full((16, 16, 3), np.nan), "finite values between 0 and 1"),
        (np.full((16, 16, 3), -1, np.int32), "values from -1"),
        (np.full((16, 16, 3), 70_000, np.int32), "to 70000"),
        (np.zeros((16, 16, 3), complex), "type complex128"),
        (np.zeros((16, 16, 3), dtype="S1"), "type"),
    ],
)
def test_arrays_that_are_no_images_are_refused(array, message):
    with pytest.raises(InputError, match=message):
        read_image(array)
