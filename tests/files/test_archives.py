"""Zips from strangers. Each test builds a real archive in memory."""

import io
import stat
import struct
import zipfile

import pytest

from idecode_core.errors import InputError
from idecode_core.files import archives
from idecode_core.files.archives import File, climbs, read_files, read_zip

IMAGES = (".png", ".jpg")


def packed(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> File:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return File("mine.zip", buffer.getvalue())


def test_files_come_out_as_they_went_in_and_in_order():
    contents = read_zip(packed({"b/2.png": b"two", "a/1.JPG": b"one"}), IMAGES)
    assert contents.files == (File("b/2.png", b"two"), File("a/1.JPG", b"one"))
    assert contents.refused == ()


@pytest.mark.parametrize(
    "name", ["../up.png", "a/../../up.png", "/etc/x.png", "C:\\x.png", "..\\up.png", "\\\\server\\x.png"]
)
def test_a_path_that_climbs_out_is_refused_and_the_rest_goes_through(name):
    contents = read_zip(packed({name: b"bad", "good.png": b"good"}), IMAGES)
    assert [file.name for file in contents.files] == ["good.png"]
    assert len(contents.refused) == 1
    assert "leads out of the archive" in contents.refused[0]


@pytest.mark.parametrize("name", ["a.png", "a/b.png", "a..b/c...png", "..a/b.png"])
def test_ordinary_names_do_not_climb(name):
    assert not climbs(name)


def test_a_member_that_unpacks_to_far_more_than_its_packed_size_is_a_bomb():
    contents = read_zip(packed({"bomb.png": bytes(5 * 2**20), "good.png": b"good"}), IMAGES)
    assert [file.name for file in contents.files] == ["good.png"]
    assert "zip bombs" in contents.refused[0]


def test_a_large_member_is_refused_by_its_size_even_when_stored_plainly():
    big = packed({"big.png": bytes(archives.MAX_BYTES + 1)}, zipfile.ZIP_STORED)
    contents = read_zip(big, IMAGES)
    assert contents.files == ()
    assert "at most 50 MB" in contents.refused[0]


def test_many_bombs_together_are_refused_before_any_is_unpacked(monkeypatch):
    monkeypatch.setattr(archives, "MAX_TOTAL", 1000)
    monkeypatch.setattr(archives, "_read_member", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(InputError, match="would unpack to"):
        read_zip(packed({f"{i}.png": bytes(101) for i in range(10)}), IMAGES)


def test_too_many_files_are_refused(monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    with pytest.raises(InputError, match="holds 4 files"):
        read_zip(packed({f"{i}.png": b"x" for i in range(4)}), IMAGES)


def test_a_table_of_contents_without_an_end_is_refused_before_it_is_taken_apart(monkeypatch):
    """500,000 entries of 47 bytes each, without one file: 22 MB took 180 MB and seconds, and 200 MB are allowed."""
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<H", 1) + bytes(16) + b"a"
    table = entry * (archives.MAX_ENTRIES + 1)
    data = table + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(table), 0, 0)
    alone = entry + data[-22:-10] + struct.pack("<IIH", len(entry), 0, 0)
    assert len(zipfile.ZipFile(io.BytesIO(alone)).infolist()) == 1
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("it was taken apart"))
    with pytest.raises(InputError, match=r"mine.zip: holds over 100,000 files and folders"):
        read_zip(File("mine.zip", data), IMAGES)


def test_a_declared_size_that_lies_does_not_get_more_than_the_limit_through():
    archive = packed({"liar.png": bytes(3 * 2**20)})
    # Say 10 bytes in the central directory (offset 24 of its header) and in the local header (offset 22).
    data = bytearray(archive.data)
    central = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, central + 24, 10)
    struct.pack_into("<I", data, 22, 10)
    contents = read_zip(File("mine.zip", bytes(data)), IMAGES)
    assert contents.files == ()
    assert "damaged" in contents.refused[0]


def test_archives_inside_archives_are_not_opened():
    inner = packed({"x.png": b"x"}).data
    contents = read_zip(packed({"inner.zip": inner, "more.tar.gz": b"?"}), IMAGES)
    assert contents.files == ()
    assert all("Unpack it first" in reason for reason in contents.refused)


def test_links_are_refused():
    link = zipfile.ZipInfo("link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    contents = read_zip(File("mine.zip", buffer.getvalue()), IMAGES)
    assert contents.files == ()
    assert "is a link" in contents.refused[0]


def test_a_locked_member_is_refused_with_a_sentence():
    data = bytearray(packed({"secret.png": b"secret"}).data)
    data[6] |= 1  # flag bits of the local header, then of the central directory
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    contents = read_zip(File("mine.zip", bytes(data)), IMAGES)
    assert contents.files == ()
    assert "password" in contents.refused[0]


def test_a_damaged_member_does_not_stop_the_others():
    archive = packed({"a.png": b"A" * 100, "b.png": b"B" * 100}, zipfile.ZIP_STORED)
    contents = read_zip(File("mine.zip", archive.data.replace(b"A" * 100, b"A" * 99 + b"x")), IMAGES)
    assert [file.name for file in contents.files] == ["b.png"]
    assert "damaged" in contents.refused[0]


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_what_is_not_a_zip_is_one_sentence(data):
    with pytest.raises(InputError, match="not a zip file that can be read"):
        read_zip(File("mine.zip", data), IMAGES)


def test_litter_of_operating_systems_is_passed_over_in_silence():
    litter = {
        "__MACOSX/._a.png": b"",
        ".DS_Store": b"",
        "a/Thumbs.db": b"",
        "a/._b.png": b"",
        "a/b.png": b"b",
    }
    contents = read_zip(packed(litter), IMAGES)
    assert [file.name for file in contents.files] == ["a/b.png"]
    assert contents.refused == ()


def test_loose_files_and_zips_go_together_and_each_bad_one_gets_its_sentence():
    files = [
        File("a.png", b"a"),
        packed({"b.png": b"b", "notes.txt": b"?"}),
        File("broken.zip", b"?"),
        File("song.mp3", b"?"),
    ]
    contents = read_files(files, IMAGES)
    assert [file.name for file in contents.files] == ["a.png", "b.png"]
    assert len(contents.refused) == 3
    assert [reason.split(":")[0] for reason in contents.refused] == [
        "mine.zip / notes.txt",
        "broken.zip",
        "song.mp3",
    ]


def test_an_empty_zip_says_so():
    assert "is empty" in read_zip(packed({}), IMAGES).refused[0]
