"""`make dist`: wheel and source archive, built twice; the same bytes both times, or it says what differs.

Times are those of the last commit (SOURCE_DATE_EPOCH where it is set), owners and the order of files are fixed.
"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def when() -> int:
    """The time that all files get."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    told = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(told.stdout.strip() or 1_700_000_000)


def steady(archive: Path, time: int) -> None:
    """Write a source archive again: files in order, one time, no owner. setuptools leaves those as the disk has them."""
    with tarfile.open(archive) as source:
        members = sorted(source.getmembers(), key=lambda member: member.name)
        content = {member.name: source.extractfile(member).read() for member in members if member.isfile()}  # type: ignore[union-attr]
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as target:
        for member in members:
            again = tarfile.TarInfo(member.name)
            again.type, again.size, again.mtime = member.type, member.size, time
            again.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            target.addfile(again, io.BytesIO(content[member.name]) if member.isfile() else None)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", mtime=time, fileobj=file) as packed:
        packed.write(plain.getvalue())


def build(source: Path, out: Path) -> dict[str, str]:
    """Name -> SHA-256 of what was built of a folder."""
    time = when()
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(time)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for archive in out.glob("*.tar.gz"):
        steady(archive, time)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}


def clean_copy(target: Path) -> Path:
    """What a release is made of: files that git knows, without what earlier builds left."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        wanted = not name.startswith("checkpoints/") or name.startswith("checkpoints/fashion-rotations/")
        if wanted and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


def main(out: Path = ROOT / "dist") -> int:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        first, second = [build(clean_copy(work / f"source-{i}"), work / f"out-{i}") for i in (1, 2)]
        if first != second:
            print(f"Two builds differ: {first}, {second}", file=sys.stderr)
            return 1
        out.mkdir(exist_ok=True)
        for name, digest in first.items():
            shutil.copy(work / "out-1" / name, out / name)
            print(f"{digest}  dist/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
