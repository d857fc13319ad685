"""Zip files from strangers, read in memory: bombs, climbing paths and wrong types are refused, one sentence each.

Nothing is ever written to disk, so a path cannot climb out; such names are refused all the same, because an
archive that holds one was made to do harm or by mistake.
"""

import io
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from idecode_core.errors import InputError
from idecode_core.files.names import SOUND_BYTES as MAX_BYTES
from idecode_core.files.names import UNPACKED_BYTES as MAX_TOTAL
from idecode_core.files.read import DAMAGE, count_entries

MAX_FILES = 20_000
MAX_ENTRIES = 5 * MAX_FILES
"""With folders and litter. Counted before the archive is opened: four million fit into 200 MB and take 1.6 GB and a minute."""
MAX_RATIO = 200
"""Photos and sounds are compressed already; nothing honest above BOMB_BYTES shrinks this much."""
BOMB_BYTES = 2**20
ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst")
LITTER = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True)
class File:
    """A file's name, as the user knows it, and its content."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Contents:
    """What an archive, or a handful of files, gave: files to go on with and a sentence for each that was refused."""

    files: tuple[File, ...]
    refused: tuple[str, ...]


def read_files(files: Sequence[File], extensions: Sequence[str], most_bytes: int | None = None) -> Contents:
    """Loose files and zips together: zips are opened, the rest is checked by its ending; none stops the others.

    All zips together may unpack to `most_bytes`, MAX_TOTAL if left out; one that would go beyond is refused.
    """
    most_bytes = MAX_TOTAL if most_bytes is None else most_bytes
    good: list[File] = []
    refused: list[str] = []
    for file in files:
        if file.name.lower().endswith(".zip"):
            try:
                contents = read_zip(file, extensions, most_bytes)
            except InputError as error:
                refused.append(str(error))
                continue
            most_bytes -= sum(len(unpacked.data) for unpacked in contents.files)
            good.extend(contents.files)
            refused.extend(contents.refused)
        elif reason := _wrong_type(file.name, extensions):
            refused.append(reason)
        else:
            good.append(file)
    return Contents(tuple(good), tuple(refused))


def read_zip(
    archive: File, extensions: Sequence[str], most_bytes: int | None = None, member_bytes: int = MAX_BYTES
) -> Contents:
    """The files of a zip whose names end in one of `extensions`, in the archive's order; at most `most_bytes` unpacked,
    `member_bytes` of them in one file.

    InputError when the whole archive is refused: not a zip, too many files, too large unpacked.
    """
    most_bytes = MAX_TOTAL if most_bytes is None else most_bytes
    if count_entries(archive.data, MAX_ENTRIES) > MAX_ENTRIES:
        raise InputError(
            f"{archive.name}: holds over {MAX_ENTRIES:,} files and folders; expected at most {MAX_FILES:,} files. Pack fewer in "
            "one zip."
        )
    try:
        opened = zipfile.ZipFile(io.BytesIO(archive.data))
    except DAMAGE:
        raise InputError(
            f"{archive.name}: is not a zip file that can be read; expected a complete zip. Pack or copy it again."
        ) from None
    with opened:
        members = [
            member
            for member in opened.infolist()
            if not member.filename.endswith("/") and not _is_litter(member.filename)
        ]
        if len(members) > MAX_FILES:
            raise InputError(
                f"{archive.name}: holds {len(members):,} files; expected at most {MAX_FILES:,}. Pack fewer in one zip."
            )
        total = sum(member.file_size for member in members)
        if total > most_bytes:
            left = (
                ""
                if most_bytes == MAX_TOTAL
                else f" ({most_bytes / 2**20:,.0f} MB are left after the other archives)"
            )
            raise InputError(
                f"{archive.name}: would unpack to {total / 2**20:,.0f} MB; expected at most {MAX_TOTAL // 2**20:,} MB for all "
                f"archives together{left}. Bring fewer or smaller files at once."
            )
        files: list[File] = []
        refused: list[str] = []
        for member in members:
            try:
                files.append(File(member.filename, _read_member(opened, member, extensions, member_bytes)))
            except InputError as error:
                refused.append(f"{archive.name} / {error}")
    if not members:
        refused.append(f"{archive.name}: is empty; expected files inside. Pack it again.")
    return Contents(tuple(files), tuple(refused))


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, extensions: Sequence[str], most: int
) -> bytes:
    name = member.filename
    if climbs(name):
        raise InputError(
            f"{name}: is a path that leads out of the archive; expected a plain file name. Pack it again."
        )
    if stat.S_ISLNK(member.external_attr >> 16):
        raise InputError(f"{name}: is a link, not a file. Pack the file itself.")
    if reason := _wrong_type(name, extensions):
        raise InputError(reason)
    if member.flag_bits & 0x1:
        raise InputError(f"{name}: is locked with a password; expected an open file. Pack it without one.")
    if member.file_size > most:
        raise InputError(
            f"{name}: has {member.file_size / 2**20:,.0f} MB; expected at most {most // 2**20} MB. Make it smaller."
        )
    if member.file_size > BOMB_BYTES and member.file_size > MAX_RATIO * max(member.compress_size, 1):
        raise InputError(
            f"{name}: unpacks to {member.file_size / max(member.compress_size, 1):,.0f} times its packed size, as zip "
            f"bombs do; expected at most {MAX_RATIO} times. Add the file itself instead."
        )
    try:
        with archive.open(member) as file:
            data = file.read(most + 1)  # the declared size may be a lie
    except DAMAGE:
        raise InputError(
            f"{name}: is damaged or packed in an unknown way; expected a sound zip. Pack it again."
        ) from None
    if len(data) > most:
        raise InputError(f"{name}: has more than {most // 2**20} MB. Make it smaller.")
    return data


def zip_folder(folder: Path, name: str) -> bytes:
    """The files of a folder, in a zip that unpacks into a folder called `name`; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            member = zipfile.ZipInfo(f"{name}/{path.relative_to(folder).as_posix()}")  # dated 1980
            member.external_attr = 0o644 << 16
            archive.writestr(member, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def climbs(name: str) -> bool:
    """Whether a member's name is absolute, has a drive letter or goes up with `..`, on any operating system."""
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in name or "\0" in name


def _is_litter(name: str) -> bool:
    """What operating systems leave in archives; not worth a sentence."""
    parts = PurePosixPath(name).parts
    return any(part in LITTER for part in parts) or (bool(parts) and parts[-1].startswith("._"))


def _wrong_type(name: str, extensions: Sequence[str]) -> str:
    """Why a file of this name is refused, or nothing."""
    ending = PurePosixPath(name).suffix.lower()
    if ending in extensions:
        return ""
    if ending in ARCHIVES:
        return f"{name}: is an archive that is not opened here; expected files or one plain zip. Unpack it first."
    return f"{name}: is of another type; expected {', '.join(extensions)}. Leave it out or convert it."
