"""One input, however it was made, takes at most 1 GB above idle, measured through `detect` in a process of its own."""

import io
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image
from small import random_images, small_scorer

from idecode_core.audio.read import read_sound
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, InputError
from idecode_core.files.archives import File
from idecode_core.files.tables import read_table
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.image.read import read_image

MOST_MB = 1024
MEASURE = """
import sys
from pathlib import Path
from idecode_core.detector import Detector
from idecode_core.errors import IdecodeError
from idecode_core.folder.detector import load_detector

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

detector = load_detector(sys.argv[1], "cpu")
detector.detect([Path(sys.argv[2])], n=1)
idle = peak()
for path in sys.argv[3:]:
    try:
        detector.detect([Path(path)], n=1)
        said = "judged"
    except IdecodeError as error:
        said = str(error)
    print(f"{peak() - idle:.0f}\t{said}")
"""


def measured(detector: str, small: Path, *files: Path) -> list[tuple[float, str]]:
    """For each file: MB at the peak above idle, and what was said."""
    command = [sys.executable, "-c", MEASURE, detector, str(small), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    rows = [line.split("\t", 1) for line in done.stdout.splitlines()]
    return [(float(megabytes), said) for megabytes, said in rows]


def test_the_largest_pictures_take_at_most_a_gigabyte(tmp_path: Path) -> None:
    """49 megapixels in 16 bits took 1.4 GB, from a file of 93 KB."""
    side = 7_000
    Image.fromarray(np.full((64, 64, 3), 9, np.uint8)).save(tmp_path / "small.png")
    Image.fromarray(np.zeros((side, side), np.uint16)).save(tmp_path / "sixteen.png", compress_level=1)
    Image.fromarray(np.zeros((side, side), np.float32)).save(
        tmp_path / "floats.tif", compression="tiff_deflate"
    )
    Image.new("RGBA", (side, side), (9, 9, 9, 100)).save(tmp_path / "clear.png", compress_level=1)
    names = ("sixteen.png", "floats.tif", "clear.png")
    found = measured("fashion-rotations", tmp_path / "small.png", *(tmp_path / name for name in names))
    assert [said for _, said in found] == ["judged"] * len(names)
    assert max(megabytes for megabytes, _ in found) < MOST_MB, found


def test_the_largest_sounds_take_at_most_a_gigabyte(tmp_path: Path) -> None:
    """FLAC packs silence to almost nothing: eight channels at 655 kHz took 1.5 GB."""

    def silence(name: str, rate: int, channels: int, seconds: int) -> Path:
        with soundfile.SoundFile(tmp_path / name, "w", rate, channels) as file:
            for _ in range(seconds):
                file.write(np.zeros((rate, channels), np.int16))
        return tmp_path / name

    small = tmp_path / "small.wav"
    soundfile.write(small, np.random.default_rng(0).normal(0, 0.1, 8_000), 8_000)
    files = [silence("many.flac", 655_350, 8, 18), silence("studio.flac", 192_000, 8, 60)]
    (_, many), *allowed = found = measured("spoken-digits", small, *files)
    assert "expected at most 16 channels, and at most 92 million samples" in many
    assert [said for _, said in allowed] == ["judged"]
    assert max(megabytes for megabytes, _ in found) < MOST_MB, found


def test_a_sound_of_255_channels_is_refused_before_it_is_unpacked() -> None:
    """132 KB of OGG took 4.5 GB and 48 seconds."""
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros((2_000, 255), np.float32), 16_000, format="OGG", subtype="VORBIS")
    with pytest.raises(InputError, match="has 255 channels"):
        read_sound(buffer.getvalue())


def test_small_numbers_count_as_the_float64_that_they_become() -> None:
    """An npz of 160 million bytes took 1.3 GB."""
    array = io.BytesIO()
    np.save(array, np.zeros(30_000_000, np.uint8))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("score_vectors.npy", array.getvalue())
    for file in (File("a.npz", packed.getvalue()), File("a.npy", array.getvalue())):
        with pytest.raises(InputError, match="more than"):
            read_table(file).vectors()


def test_a_million_empty_tensors_are_refused_at_once(tmp_path: Path) -> None:
    """They took 86 seconds and 1.5 GB."""
    folder = tmp_path / "tiny"
    save_detector(Detector.calibrate("tiny", small_scorer(), random_images(20), n_max=2), folder)
    entries = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(1_000_000))
    header = f"{{{entries}}}".encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    start = time.perf_counter()
    with pytest.raises(CheckpointError, match="its list of tensors has"):
        load_detector(folder, "cpu")
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("kind", ["uint16", "int32", "float32", "RGBA", "P", "CMYK", "LA"])
def test_pictures_that_are_read_in_strips_are_what_they_were(kind: str) -> None:
    """Computed the other way: the whole picture at once, in float64 or by PIL."""
    generator = np.random.default_rng(4)
    if kind in ("uint16", "int32"):
        array = generator.integers(0, 65536, (600, 11)).astype(kind)
        expected = np.round(array.astype(np.int64) / 257).astype(np.uint8)[..., None].repeat(3, 2)
        np.testing.assert_array_equal(read_image(array), expected)
    elif kind == "float32":
        array = generator.random((600, 11, 3)).astype(kind)
        np.testing.assert_array_equal(
            read_image(array), np.round(array.astype(np.float64) * 255).astype(np.uint8)
        )
    else:
        picture = Image.fromarray(generator.integers(0, 256, (600, 11, 4), dtype=np.uint8)).convert(
            "RGB" if kind in ("P", "CMYK") else "RGBA"
        ).convert(kind)  # fmt: skip
        grey = Image.new("RGBA", picture.size, (128, 128, 128, 255))
        clear = kind in ("RGBA", "LA")
        whole = Image.alpha_composite(grey, picture.convert("RGBA")) if clear else picture
        np.testing.assert_array_equal(read_image(picture), np.asarray(whole.convert("RGB")))


def test_a_float_picture_that_is_not_between_0_and_1_is_refused() -> None:
    for value in (np.nan, np.inf, -0.1, 1.1):
        array = np.full((9, 9), 0.5, np.float32)
        array[3, 3] = value
        with pytest.raises(InputError, match="between 0 and 1"):
            read_image(array)
