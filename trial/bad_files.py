"""Bad files by the thousand: pictures, sounds, scores and archives that are cut, changed, mislabelled, hostile or odd.

The same seed gives the same files, but for the random number that every OGG file begins with. Nothing here is written to disk.
"""

import io
import json
import struct
import wave
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import soundfile
from numpy.typing import NDArray
from PIL import Image

PICTURES = {
    "PNG": ".png",
    "JPEG": ".jpg",
    "WEBP": ".webp",
    "BMP": ".bmp",
    "TIFF": ".tif",
    "GIF": ".gif",
}
SOUNDS = (
    ("WAV", "PCM_16"),
    ("WAV", "FLOAT"),
    ("WAV", "IMA_ADPCM"),
    ("WAV", "MS_ADPCM"),
    ("AIFF", "PCM_16"),
    ("AU", "PCM_16"),
    ("FLAC", "PCM_16"),
    ("OGG", "VORBIS"),
    ("OGG", "OPUS"),
    ("MP3", "MPEG_LAYER_III"),
)
FOREIGN = (("W64", "PCM_16"), ("CAF", "PCM_16"), ("VOC", "PCM_16"), ("RF64", "PCM_16"), ("MAT5", "PCM_16"))


@dataclass(frozen=True)
class BadFile:
    """A file as a user could drop it in; `kind` is what it is read as: image, sound, scores or zip."""

    kind: str
    name: str
    data: bytes
    what: str
    must_be_refused: bool = False


def bad_files(seed: int, changes: int = 12, large: bool = True) -> Iterator[BadFile]:
    """All of them; `changes` is how many random damages every good file gets. `large` ones take seconds to make."""
    generator = np.random.default_rng(seed)
    for kind, name, data in good_files(generator):
        yield from damages(generator, kind, name, data, changes)
        yield from mislabelled(kind, name, data)
    yield from odd_pictures(generator, large)
    yield from odd_sounds(generator, large)
    yield from odd_scores(large)
    yield from odd_archives(large)


def good_files(generator: np.random.Generator) -> Iterator[tuple[str, str, bytes]]:
    pixels = generator.integers(0, 256, (24, 20, 3)).astype(np.uint8)
    for name, ending in PICTURES.items():
        yield "image", f"good{ending}", saved(Image.fromarray(pixels), name)
    yield "image", "grey16.png", saved(Image.fromarray(pixels[..., 0].astype(np.uint16) * 257), "PNG")
    yield "image", "palette.png", saved(Image.fromarray(pixels).convert("P"), "PNG")
    yield "image", "clear.png", saved(Image.fromarray(np.dstack([pixels, pixels[..., :1]])), "PNG")
    yield "image", "cmyk.jpg", saved(Image.fromarray(pixels).convert("CMYK"), "JPEG")
    for name, subtype in SOUNDS:
        yield "sound", f"good-{subtype}.{name.lower()}", sound(tone(generator), name, subtype)
    vectors = generator.random((40, 5))
    yield "scores", "good.npy", array_file(np.save, vectors)
    yield "scores", "good.npz", array_file(np.savez, score_vectors=vectors)
    yield "scores", "packed.npz", array_file(np.savez_compressed, score_vectors=vectors)
    yield "scores", "good.csv", "\n".join(",".join(map(str, row)) for row in vectors).encode()
    yield (
        "zip",
        "good.zip",
        archive({"a.png": saved(Image.fromarray(pixels), "PNG"), "b.wav": sound(tone(generator))}),
    )


def damages(
    generator: np.random.Generator, kind: str, name: str, data: bytes, changes: int
) -> Iterator[BadFile]:
    """Cut, bytes changed, pieces removed, doubled, reversed or filled with zeros."""
    size = len(data)
    for share in (0.0, 0.05, 0.3, 0.6, 0.9, 0.99):
        # of a picture the first part may be all that matters; of a sound something is missing
        must_be_refused = share == 0 or kind == "sound"
        yield BadFile(kind, name, data[: int(share * size)], f"cut to {share:.0%}", must_be_refused)
    for i in range(changes):
        changed = bytearray(data)
        for place in generator.integers(0, size, 1 + i % 5):
            changed[place] = generator.integers(0, 256)
        yield BadFile(kind, name, bytes(changed), f"{1 + i % 5} bytes changed")
    for _ in range(changes // 2):
        a, b = sorted(generator.integers(0, size, 2))
        yield BadFile(kind, name, data[:a] + data[b:], "a piece removed")
        yield BadFile(kind, name, data[:b] + data[a:], "a piece doubled")
        yield BadFile(kind, name, data[:a] + bytes(b - a) + data[b:], "a piece of zeros")
    # Numbers in headers: the first bytes, one after the other, as large as they can be.
    for place in range(0, min(60, size - 4), 4):
        yield BadFile(
            kind,
            name,
            data[:place] + b"\xff\xff\xff\xff" + data[place + 4 :],
            "a header's number at its largest",
        )
    yield BadFile(kind, name, data[::-1], "reversed")
    yield BadFile(kind, name, data + generator.bytes(1000), "followed by noise")


def mislabelled(kind: str, name: str, data: bytes) -> Iterator[BadFile]:
    for other, ending in (
        ("image", ".png"),
        ("sound", ".wav"),
        ("scores", ".npz"),
        ("scores", ".csv"),
        ("zip", ".zip"),
    ):
        if other != kind:
            yield BadFile(other, name + ending, data, f"a file for {kind} called {ending}")


def odd_pictures(generator: np.random.Generator, large: bool) -> Iterator[BadFile]:
    for size in ((1, 1), (7, 7), (1, 5000), (5000, 1), (8, 8), (20_000, 9)):
        yield BadFile(
            "image", "size.png", saved(Image.new("RGB", size), "PNG"), f"{size[0]} x {size[1]} pixels"
        )
    for size in ((65_000, 65_000), (100_000, 10), (2**31 - 1, 2**31 - 1), (0, 0), (9_000, 9_000)):
        yield BadFile(
            "image", "claims.png", png_that_claims(*size), f"claims {size[0]} x {size[1]} pixels", True
        )
    frames = [Image.fromarray(generator.integers(0, 256, (16, 16, 3)).astype(np.uint8)) for _ in range(30)]
    for name in ("GIF", "WEBP", "PNG", "TIFF"):
        yield BadFile("image", f"frames{PICTURES[name]}", saved(frames[0], name, save_all=True, append_images=frames[1:]),
                      "30 frames", True)  # fmt: skip
    yield BadFile(
        "image", "circle.tif", tiff_of_many_pages(3, circle=True), "a TIFF whose pages go in a circle"
    )
    if large:
        yield BadFile("image", "pages.tif", tiff_of_many_pages(180_000), "a TIFF of 180,000 pages", True)
        yield BadFile(
            "image",
            "large.png",
            saved(Image.new("RGB", (7000, 7000)), "PNG"),
            "49 megapixels, which is allowed",
        )
        yield BadFile(
            "image", "large.jpg", saved(Image.new("CMYK", (7000, 7000)), "JPEG"), "the same in CMYK"
        )
        yield BadFile(
            "image",
            "large.webp",
            saved(Image.new("RGBA", (7000, 7000)), "WEBP"),
            "the same with transparency",
        )
        yield BadFile("image", "text.png", png_with_text(50_000_000), "50 MB of packed text in a PNG")
    for name, data in {
        "page.svg.png": b"<svg xmlns='http://www.w3.org/2000/svg'><image href='http://example.com/x'/></svg>",
        "script.eps.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) run\n",
        "document.pdf.png": b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>",
        "zeros.png": bytes(1000),
        "text.png": b"this is a text, not a picture",
        "signature.png": b"\x89PNG\r\n\x1a\n",
        "page.html.jpg": b"<html><script>alert(1)</script></html>",
        "too large.png": bytes(21 * 2**20),
    }.items():
        yield BadFile("image", name, data, "not a picture", True)
    for name in (
        "../../etc/passwd",
        "a\nb.png",
        "\x1b[31m.png",
        "<img src=x>.png",
        "\u202egnp.exe",
        "x" * 5000 + ".png",
    ):
        yield BadFile("image", name, b"bad", "a strange name", True)


def odd_sounds(generator: np.random.Generator, large: bool) -> Iterator[BadFile]:
    for name, subtype in FOREIGN:
        yield BadFile(
            "sound", f"foreign.{name.lower()}", sound(tone(generator), name, subtype), f"format {name}", True
        )
    for rate in (0, 1, 999, 8_000, 767_999, 2**31):
        yield BadFile(
            "sound", "rate.wav", wav_that_claims(rate=rate), f"claims {rate} Hz", not 1000 <= rate <= 768_000
        )
    for channels in (0, 2, 100, 65_535):
        yield BadFile(
            "sound", "channels.wav", wav_that_claims(channels=channels), f"claims {channels} channels"
        )
    for length in (1, 2**31, 2**32 - 2):
        yield BadFile(
            "sound", "length.wav", wav_that_claims(length=length), f"claims {length:,} bytes of sound"
        )
    for value in (np.nan, np.inf, 1e30):
        samples = tone(generator)
        samples[7] = value
        yield BadFile("sound", "values.wav", sound(samples, "WAV", "FLOAT"), f"holds {value}", True)
    for seconds in (0.0, 0.01, 61.0, 600.0):
        samples = np.zeros(int(seconds * 8000), np.float32)
        yield BadFile("sound", "long.wav", sound(samples, rate=8000), f"{seconds} seconds", True)
    if large:
        yield BadFile("sound", "long.flac", sound(np.zeros(8000 * 3000, np.float32), "FLAC", rate=8000), "50 minutes of silence", True)  # fmt: skip
        yield BadFile("sound", "most.wav", sound(np.zeros((60 * 44_100, 8), np.float32), rate=44_100), "60 seconds of 8 channels")  # fmt: skip
    for name, data in {
        "zeros.wav": bytes(5000),
        "text.mp3": b"this is a text, not a sound",
        "riff.wav": b"RIFF\xff\xff\xff\xffWAVE",
        "form.aiff": b"FORM\x00\x00\x00\x04AIFF",
        "snd.au": b".snd" + struct.pack(">IIIII", 24, 2**32 - 1, 3, 2**31 - 1, 2**31 - 1),
        "list.wav": b"RIFF" + struct.pack("<I", 500) + b"WAVE" + b"LIST\x00\x00\x00\x00" * 60,
        "playlist.mp3": b"#EXTM3U\nhttp://example.com/x.mp3\n",
        "too large.wav": bytes(51 * 2**20),
    }.items():
        yield BadFile("sound", name, data, "not a sound", True)


def odd_scores(large: bool) -> Iterator[BadFile]:
    for shape in ((2**31, 4), (2**62, 2**62), (0, 5), (5, 0), (3, 3, 3), (-1, 4)):
        yield BadFile("scores", "shape.npy", npy_that_claims(shape), f"claims the shape {shape}", True)
        yield BadFile(
            "scores",
            "shape.npz",
            archive({"score_vectors.npy": npy_that_claims(shape)}),
            f"claims {shape}",
            True,
        )
    for dtype in ("|O", "<c16", "<U9", "|V8", "<M8[s]", "[('a','<f8')]", "__import__('os')"):
        yield BadFile("scores", "type.npy", npy_that_claims((4, 2), dtype), f"claims the type {dtype}", True)
    if large:
        big = npy_that_claims((2**24, 8), held=bytes(2**30))
        yield BadFile(
            "scores", "bomb.npz", archive({"score_vectors.npy": big}), "1 GiB of zeros packed", True
        )
        del big
        yield BadFile("scores", "wide.csv", b"1," * 2_000_000 + b"1", "one row of two million cells")
        yield BadFile("scores", "long.csv", b"1,2\n" * 5_000_000, "five million rows")
        most = array_file(np.save, np.zeros((2_000_000, 10), np.float32))
        yield BadFile("scores", "most.npy", most, "twenty million scores, which is allowed")
    yield BadFile("scores", "members.npz", archive({f"a{i}.npy": array_file(np.save, np.zeros(2)) for i in range(3000)}), "3,000 arrays", True)  # fmt: skip
    for words in (
        "=cmd()",
        "1e999",
        "nan",
        "1;2,3",
        '"1',
        "\ufeff",
        "0x10",
        "１２",
        "1_000",
        "1\x00",
        "--1",
        "1,2\n3",
    ):
        yield BadFile("scores", "odd.csv", f"1,2\n{words},2\n".encode(), "an odd cell")
    yield BadFile("scores", "line.csv", b"9" * 5_000_000, "a number of five million digits", True)
    yield BadFile("scores", "deep.json.csv", json.dumps([[[1]]]).encode(), "JSON", True)


def odd_archives(large: bool) -> Iterator[BadFile]:
    picture = saved(Image.new("RGB", (16, 16)), "PNG")
    for name in (
        "../up.png",
        "/etc/x.png",
        "C:\\x.png",
        "a/../../b.png",
        "\x00.png",
        "x" * 60_000 + ".png",
        "con.png",
        "",
    ):
        yield BadFile("zip", "path.zip", archive({name: picture}), "a path that leads out or is odd")
    if large:
        yield BadFile("zip", "bomb.zip", archive({f"{i}.png": bytes(40 * 2**20) for i in range(3)}), "a bomb")
        yield BadFile("zip", "table.zip", table_without_an_end(4_000_000), "4,000,000 entries, no file", True)
        yield BadFile("scores", "table.npz", table_without_an_end(10**6), "1,000,000 entries, no array", True)
    yield BadFile(
        "zip", "many.zip", archive({f"{i}.png": b"" for i in range(21_000)}), "21,000 members", True
    )
    yield BadFile(
        "zip",
        "nested.zip",
        archive({"a.zip": archive({"b.zip": archive({"c.png": picture})})}),
        "zips in zips",
    )
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed = archive({"a.png": picture * 20}, method)
        for place in range(40, min(len(packed), 400), 12):
            damaged = packed[:place] + b"\x55" + packed[place + 1 :]
            yield BadFile("zip", "method.zip", damaged, "another method, damaged")
            yield BadFile("scores", "method.npz", damaged, "another method, damaged")
    locked = bytearray(archive({"a.npy": array_file(np.save, np.zeros((3, 2)))}))
    locked[6] |= 1
    locked[locked.rindex(b"PK\x01\x02") + 8] |= 1
    yield BadFile("scores", "locked.npz", bytes(locked), "locked", True)
    yield BadFile("zip", "locked.zip", bytes(locked), "locked")


def saved(image: Image.Image, name: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, name, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def tone(generator: np.random.Generator, seconds: float = 0.5) -> NDArray[np.float32]:
    time = np.arange(int(16_000 * seconds))
    return (0.3 * np.sin(time * generator.uniform(0.02, 0.2))).astype(np.float32)


def sound(
    samples: NDArray[np.float32], name: str = "WAV", subtype: str = "PCM_16", rate: int = 16_000
) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=name, subtype=subtype)
    data = bytearray(buffer.getvalue())
    if name == "WAV" and (place := data.find(b"PEAK")) > 0:
        data[place + 12 : place + 16] = bytes(4)  # the time of day
    return bytes(data)


def array_file(save: Callable[..., None], *arrays: object, **named: object) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    return buffer.getvalue()


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as opened:
        for name, data in members.items():
            opened.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def table_without_an_end(entries: int) -> bytes:
    """A zip that is nothing but a table of contents."""
    table = (b"PK\x01\x02" + bytes(24) + struct.pack("<H", 1) + bytes(16) + b"a") * entries
    return table + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(table), 0, 0)


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_that_claims(width: int, height: int) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


def png_with_text(size: int) -> bytes:
    plain = saved(Image.new("RGB", (16, 16)), "PNG")
    return plain[:33] + chunk(b"zTXt", b"x\x00\x00" + zlib.compress(bytes(size))) + plain[33:]


def tiff_of_many_pages(pages: int, circle: bool = False) -> bytes:
    entries = {256: 8, 257: 8, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 8, 279: 64}
    size = 2 + 12 * len(entries) + 4
    body = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries.items())
    last = 72 if circle else 0
    following = [72 + (i + 1) * size for i in range(pages - 1)] + [last]
    directories = [struct.pack("<H", len(entries)) + body + struct.pack("<I", place) for place in following]
    return struct.pack("<2sHI", b"II", 42, 72) + bytes(64) + b"".join(directories)


def wav_that_claims(rate: int = 16_000, channels: int = 1, length: int = 2000) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(4000))
    data = bytearray(buffer.getvalue())
    struct.pack_into("<HI", data, 22, channels, rate & 0xFFFFFFFF)
    struct.pack_into("<I", data, 40, length)
    return bytes(data)


def npy_that_claims(shape: tuple[int, ...], dtype: str = "<f8", held: bytes = bytes(64)) -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.replace("'[(", "[(").replace(")]'", ")]").ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + held
