"""Files from strangers and files that faults leave behind: each test is a hole that was found in a trial."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from idecode_core.audio.read import FORMATS, read_sound
from idecode_core.errors import DataError, IdecodeError, InputError
from idecode_core.files import archives
from idecode_core.files.archives import File, read_files
from idecode_core.files.read import read_arrays
from idecode_core.image import fetch
from idecode_core.image.read import read_image

SOUND = (0.3 * np.sin(np.arange(16_000) * 0.05)).astype(np.float32)
KINDS = [
    (name, subtype)
    for name in FORMATS
    for subtype in soundfile.available_subtypes(name)
    if soundfile.check_format(name, subtype)
    # These the library reads or writes only in part.
    and not subtype.startswith(("DWVW", "MPEG"))
] + [("MP3", "MPEG_LAYER_III")]


def as_file(name: str, subtype: str) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, SOUND, 16_000, format=name, subtype=subtype)
    return buffer.getvalue()


@pytest.mark.parametrize(("name", "subtype"), KINDS)
def test_a_sound_that_was_cut_off_is_refused_and_the_whole_one_is_read(name: str, subtype: str) -> None:
    """32 of 54 were scored without a word, one at 43 % of its length. Compressed formats are padded by under a block."""
    whole = as_file(name, subtype)
    assert 0 <= len(read_sound(whole).samples) - len(SOUND) < 512
    for share in (0.02, 0.1, 0.43, 0.7, 0.9, 0.98):
        with pytest.raises(InputError, match=r"cut off|not a sound|holds no samples|expected at least"):
            read_sound(whole[: int(share * len(whole))])


@pytest.mark.parametrize("name", ["W64", "CAF", "VOC", "RF64", "AVR"])
def test_a_container_whose_length_is_not_known_beforehand_is_named_and_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"of the format {name}; expected WAV"):
        read_sound(as_file(name, "PCM_16"))


def damaged(data: bytes) -> list[bytes]:
    generator = np.random.default_rng(7)
    variants = [data[: int(share * len(data))] for share in (0, 0.3, 0.9, 0.99)]
    for _ in range(60):
        changed = bytearray(data)
        for place in generator.integers(0, len(data), 4):
            changed[place] = generator.integers(0, 256)
        variants.append(bytes(changed))
    return variants


def one_sentence(read: Callable[[], object]) -> bool:
    """Whether reading succeeds or is refused with one line; any other error comes through."""
    try:
        read()
    except IdecodeError as error:
        return "\n" not in str(error)
    return True


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_damaged_npz_is_one_sentence_or_still_readable(method: int) -> None:
    """zlib.error, LZMAError, TokenError, RuntimeError of a locked member: whatever a library raises."""
    array, buffer = io.BytesIO(), io.BytesIO()
    np.save(array, np.arange(200.0))
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("a.npy", array.getvalue())
    refused = 0
    for data in damaged(buffer.getvalue()):
        try:
            read_arrays(data, ("a",), what="scores", error=InputError, hint="Again.", name="x")
        except InputError as error:
            refused += "\n" not in str(error)
    assert refused > 30


def zipped(name: str, count: int, size: int) -> File:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for i in range(count):
            archive.writestr(f"{name}-{i}.png", bytes(size))
    return File(f"{name}.zip", buffer.getvalue())


def test_the_archives_of_one_upload_share_one_limit() -> None:
    """Four of 1.15 MiB took 4.1 GB: each alone was within the limit."""
    files = [zipped("a", 4, 1000), zipped("b", 4, 1000), zipped("c", 1, 1000), zipped("d", 2, 1000)]
    found = read_files(files, (".png",), most_bytes=6_000)
    assert [file.name for file in found.files] == [*(f"a-{i}.png" for i in range(4)), "c-0.png"]
    assert [sentence.split(":")[0] for sentence in found.refused] == ["b.zip", "d.zip"]
    assert "all archives together" in found.refused[0]
    assert archives.MAX_TOTAL <= 2**30


def test_lsun_is_not_downloaded_over_plain_http(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="without a checksum, so it is not downloaded"):
        list(fetch.fetch("lsun", tmp_path))


def test_every_download_has_a_checksum() -> None:
    """torchvision compares each archive with a checksum of its own, some of them come over plain http."""
    from torchvision.datasets import CIFAR10, CIFAR100, DTD, SVHN, FashionMNIST, Places365

    sums = [CIFAR10.tgz_md5, CIFAR100.tgz_md5, DTD._MD5, Places365._IMAGES_META["val", True][1]]
    sums += [SVHN.split_list[split][2] for split in ("train", "test")]
    sums += [Places365._DEVKIT_META["standard"][1], *(md5 for _, md5 in FashionMNIST.resources)]
    assert all(len(md5) == 32 for md5 in sums)
    assert {*fetch.SOURCES} == {"cifar10", "cifar100", "svhn", "fashion", "places365", "dtd", "lsun"}
    assert "http://" not in Path(fetch.__file__).read_text()


def test_pictures_survive_any_single_change_of_a_byte() -> None:
    """No traceback for any of 300 damaged pictures in six formats."""
    pixels = np.random.default_rng(0).integers(0, 256, (12, 12, 3)).astype(np.uint8)
    for kind in ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF"):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, kind)
        for data in damaged(buffer.getvalue())[:50]:
            assert one_sentence(lambda: read_image(data))  # noqa: B023


def test_a_complaint_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    from idecode_core.cli.inputs import complain

    complain("\x1b[2Jevil\r.png: is empty")
    assert capsys.readouterr().err == "idecode: \\x1b[2Jevil\\r.png: is empty\n"
