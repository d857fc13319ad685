"""Reading files: devices, endless files and archives that lie are refused before there is room for them."""

import io
import os
import tempfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_hostile_files import one_sentence

from idecode_core.audio.read import read_sound
from idecode_core.errors import DataError, InputError
from idecode_core.files import write_npz
from idecode_core.files.read import declared_shape, read_arrays, read_json
from idecode_core.image.read import read_image

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


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_json_or_one_sentence(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        assert one_sentence(lambda: read_json(Path(file.name), what="settings", error=InputError, hint=""))
