"""Files from strangers and files that faults leave behind: each test is a hole that was found in a trial."""

import csv
import io
import os
import tempfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from idecode_core.audio.read import FORMATS, read_sound
from idecode_core.errors import DataError, IdecodeError, InputError
from idecode_core.files import archives, write_npz
from idecode_core.files.archives import File, read_files
from idecode_core.files.names import printable
from idecode_core.files.read import declared_shape, read_arrays, read_json
from idecode_core.image import fetch
from idecode_core.image.read import read_image
from idecode_core.report.content import Report
from idecode_core.report.html import to_csv

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


READERS: dict[str, Callable[[Path], object]] = {
    "image": read_image,
    "sound": read_sound,
    "npz": lambda path: read_arrays(path, what="x", error=InputError, hint=""),
    "json": lambda path: read_json(path, what="x", error=InputError, hint=""),
}


@pytest.mark.parametrize("name", READERS)
def test_devices_pipes_and_folders_are_refused_and_never_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    results: list[str] = []

    def read_all() -> None:
        for path in (Path("/dev/zero"), Path("/dev/random"), tmp_path / "pipe", tmp_path):
            with pytest.raises(InputError) as caught:
                READERS[name](path)
            results.append(str(caught.value))

    worker = threading.Thread(target=read_all, daemon=True)
    worker.start()
    worker.join(timeout=20)
    assert len(results) == 4
    assert all("plain file" in sentence for sentence in results)


def test_a_file_that_says_it_is_empty_and_never_ends_is_read_no_further_than_the_limit(tmp_path, monkeypatch):
    """As files of /proc do; here one that grows after it was measured."""
    monkeypatch.setattr("idecode_core.image.read.MAX_BYTES", 100)
    monkeypatch.setattr("idecode_core.image.read.regular_size", lambda path: 0)
    (tmp_path / "grown").write_bytes(bytes(1000))
    with pytest.raises(InputError, match="expected at most"):
        read_image(tmp_path / "grown")


def npz_member(shape: tuple[int, ...], held: bytes, descr: str = "<f8") -> bytes:
    """An npz file whose array declares a shape of its own choice."""
    array, buffer = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": descr, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("score_vectors.npy", array.getvalue() + held)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npz_member((2**31, 1), bytes(64)), "declares .* and holds"),  # 16 GiB of which nothing is there
        (
            npz_member((2**62, 2**62), bytes(64)),
            "declares .* and holds",
        ),  # a product of int64 would wrap to 0
        (npz_member((2**17,), bytes(2**20)), "unpacks to"),  # a megabyte of zeros in a kilobyte
        (npz_member((1,), b"12345678", "|O"), "holds objects"),
    ],
    ids=["lie", "overflow", "bomb", "objects"],
)
def test_what_an_npz_declares_is_checked_before_room_is_made_for_it(data, message, monkeypatch):
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("room was made"))
    monkeypatch.setattr("idecode_core.files.read.MOST_BYTES", 2**19)
    with pytest.raises(DataError, match=message):
        read_arrays(data, what="scores", error=DataError, hint="", name="x")


@pytest.mark.parametrize("kind", ["bytes", "file"])
def test_an_npz_of_very_many_arrays_is_refused_before_one_is_read(kind, tmp_path, monkeypatch):
    """Each header takes a moment; a million of them fit into an upload, and took minutes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for i in range(1_001):
            archive.writestr(f"{i}.npy", b"")
    (tmp_path / "x.npz").write_bytes(buffer.getvalue())
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("it was taken apart"))
    source = buffer.getvalue() if kind == "bytes" else tmp_path / "x.npz"
    with pytest.raises(DataError, match="holds more than 1,000 files"):
        read_arrays(source, what="scores", error=DataError, hint="", name="x")


def test_the_shape_of_an_array_is_read_from_its_header(tmp_path: Path) -> None:
    write_npz(tmp_path / "x.npz", {"a": np.zeros((3, 7)), "b": np.zeros(2)})
    assert declared_shape(tmp_path / "x.npz", "a") == (3, 7)


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


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_json_or_one_sentence(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        assert one_sentence(lambda: read_json(Path(file.name), what="settings", error=InputError, hint=""))


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


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\ufeff=1", "＝1+1"])
def test_a_cell_that_a_spreadsheet_would_run_is_defused(cell: str) -> None:
    text = to_csv(Report("t", (), {}, ({"file": cell, "score": -1.5, "p": (0.5, -2.0)},)))
    assert text.splitlines()[0] == "file,score,p_1,p_2"
    assert "'" + cell in text
    assert text.rstrip("\n").endswith(",-1.5,0.5,-2.0")  # numbers stay numbers


@pytest.mark.parametrize("mark", ["\r", "\n", "\r\n", "\x0b", "\u2028"])
def test_a_line_break_in_a_name_begins_no_row_that_a_spreadsheet_would_run(mark: str) -> None:
    name = f"a{mark}=cmd|' /C calc'!A0,x"
    text = to_csv(Report("t", (), {}, ({"file": name, "score": 1.5}, {"file": "b", "score": 2.5})))
    for rows in (
        list(csv.reader(io.StringIO(text, newline=""))),
        list(csv.reader(text.splitlines(keepends=True))),
    ):
        assert [len(row) for row in rows] == [2, 2, 2]
        assert rows[1] == ["a\n'=cmd|' /C calc'!A0,x", "1.5"]
    frame = pandas.read_csv(io.StringIO(text))
    assert frame["score"].tolist() == [1.5, 2.5]
    assert not any(line.startswith("=") for cell in frame["file"] for line in cell.splitlines())
    assert not any(line.lstrip('"').startswith("=") for line in text.splitlines())


@given(st.text())
def test_a_printable_name_has_nothing_that_a_terminal_obeys(name: str) -> None:
    shown = printable(name)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u200b\u2028" for c in shown)
    assert printable(shown) == shown
    shown.encode()  # also where the name was not valid text


def test_ordinary_names_of_all_languages_stay_as_they_are() -> None:
    for name in ("photo 1.png", "café.jpg", "照片.png", "фото.png", "x-[1] (2)_é.wav"):
        assert printable(name) == name


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
