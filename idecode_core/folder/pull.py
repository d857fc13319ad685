"""Detectors from elsewhere: a Hugging Face repository, any web folder, or a zip; checked before they take their place.

config.json lists the hash of every other file that counts, so the sha256 of config.json, or of the zip, vouches for the
whole. Nothing that is fetched can run code (`folder.detector`).
"""

import hashlib
import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlparse

from idecode_core.errors import CheckpointError, InputError, SettingError
from idecode_core.files import write_folder
from idecode_core.files.archives import File, climbs, read_zip
from idecode_core.files.read import DAMAGE, reason
from idecode_core.folder.detector import load_detector
from idecode_core.folder.manifest import LISTED, check_file
from idecode_core.folder.settings import BUNDLED, FILES, checkpoint_root, own_detectors, read_settings

MOST_BYTES = 2**30
"""What one detector may have: more than ten times the largest of ours."""
SECONDS = 60.0  # of silence, after which a server counts as gone
BLOCK = 2**20
FOR_READERS = ("card.md", "learning-curve.svg", "log.jsonl")  # fetched where they are there
ENDINGS = (".json", ".safetensors", ".npz", ".md", ".svg", ".jsonl")
Report = Callable[[str], None]


def web_folder(source: str, name: str) -> str:
    """The address of a detector's files: `source` is owner/repository at Hugging Face, or a web folder."""
    if re.fullmatch(r"[\w.-]+/[\w.-]+", source):
        hub = (
            os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        )  # Hugging Face's own variable for mirrors
        return f"{hub.rstrip('/')}/{source}/resolve/main/{quote(name)}"
    checked_address(source)
    return f"{source.rstrip('/')}/{quote(name)}"


def checked_address(url: str) -> str:
    if urlparse(url).scheme not in ("http", "https"):
        raise SettingError(
            f"{url} is not an address to fetch from: expected https://..., or owner/repository for Hugging Face."
        )
    return url


def check_vouched(url: str, sha256: str) -> None:
    """SettingError for plain http from another machine without a sha256: whoever is on the way could put in another detector."""
    parts = urlparse(url)
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1") and not sha256:
        raise SettingError(
            f"{url} is fetched over plain http, which anybody on the way can change: expected https://, or --sha256 to check it by."
        )


def new_home(name: str) -> Path:
    """Where a detector of this name goes: among the others. An installed package gets a folder of the user's own, with a
    copy of the detector that it brought along, so that all of them are found together."""
    root = checkpoint_root()
    if root != BUNDLED:
        return root / name
    own = own_detectors()
    for bundled in sorted(BUNDLED.iterdir()):
        write_folder(own / bundled.name, partial(shutil.copytree, bundled, dirs_exist_ok=True))
    return own / name


def pull(
    name: str, source: str, *, sha256: str = "", out: Path | None = None, report: Report = print
) -> Path:
    """Fetch the detector called `name` from `source`, see `web_folder`; the folder that it is in now."""
    if climbs(name) or "/" in name or not name.strip(". "):
        raise SettingError(f"{name!r} is not a detector's name: expected one like fashion-rotations.")
    address = web_folder(source, name)
    check_vouched(address, sha256)
    return _place(out or new_home(name), lambda new: _fetch_folder(address, new, sha256, report))


def pull_zip(url: str, *, sha256: str = "", out: Path | None = None, report: Report = print) -> Path:
    """Fetch a zip that holds one detector folder, as the app and `zip_folder` write them."""
    name = PurePosixPath(urlparse(checked_address(url)).path).stem
    check_vouched(url, sha256)
    return _place(out or new_home(name), lambda new: _fetch_zip(url, new, sha256, report))


def _place(folder: Path, fetch: Callable[[Path], None]) -> Path:
    if (folder / "config.json").exists():
        raise CheckpointError(
            f"{folder} already holds a detector; remove it first, or choose another place with --out."
        )

    def fill(new: Path) -> None:
        fetch(new)
        settings = read_settings(new)
        for listed in settings.files:
            check_file(settings, listed)
        load_detector(new, "cpu")  # refuses whatever does not belong together

    write_folder(folder, fill)
    return folder


def _fetch_folder(address: str, new: Path, sha256: str, report: Report) -> None:
    config = download(f"{address}/config.json", report)
    check_sha256(f"{address}/config.json", config, sha256)
    (new / "config.json").write_bytes(config)
    try:
        listed = [str(name) for name in json.loads(config).get("files", {})]
    except (*DAMAGE, AttributeError) as error:  # AttributeError: a list, say, in the place of a table
        raise CheckpointError(
            f"{address}/config.json is not a detector's settings ({reason(error)}). Check the address."
        ) from None
    for listed_name in listed:
        if climbs(listed_name) or not any(fnmatch(listed_name, pattern) for pattern in LISTED):
            raise CheckpointError(
                f"{address}/config.json lists {listed_name[:60]!r}, which is no part of a detector. Do not use this source."
            )
    room = MOST_BYTES
    for file in dict.fromkeys((*FILES[1:], *listed, *FOR_READERS)):
        try:
            data = download(f"{address}/{quote(file)}", report, room)
        except InputError:
            if file in FOR_READERS:
                continue
            raise
        room -= len(data)
        (new / file).parent.mkdir(parents=True, exist_ok=True)
        (new / file).write_bytes(data)


def _fetch_zip(url: str, new: Path, sha256: str, report: Report) -> None:
    data = download(url, report)
    check_sha256(url, data, sha256)
    contents = read_zip(File(url, data), ENDINGS, MOST_BYTES)
    tops = {PurePosixPath(file.name).parts[0] for file in contents.files}
    if contents.refused or len(tops) != 1:
        problem = contents.refused[0] if contents.refused else f"{url}: holds {len(tops)} folders."
        raise CheckpointError(f"{problem} Expected a zip with one detector folder; pack that folder again.")
    for file in contents.files:
        path = new.joinpath(*PurePosixPath(file.name).parts[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)


def check_sha256(url: str, data: bytes, expected: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if expected and found != expected.lower().removeprefix("sha256:"):
        raise CheckpointError(
            f"{url} has the sha256 {found}, not the one that was given: it is another file. Nothing was kept."
        )


def download(url: str, report: Report, most_bytes: int = MOST_BYTES) -> bytes:
    """The content at an address; InputError with one sentence when it cannot be had or is too large."""
    try:
        with urllib.request.urlopen(checked_address(url), timeout=SECONDS) as answer:
            data = bytearray()
            while block := answer.read(BLOCK):
                data += block
                if len(data) > most_bytes:
                    raise InputError(
                        f"{url}: has more than {most_bytes / 2**20:,.0f} MB, more than a detector may have."
                    )
    except urllib.error.HTTPError as error:
        raise InputError(
            f"{url}: the server answers {error.code} ({error.reason}). Check the name and the source."
        ) from None
    except OSError as error:
        cause = getattr(error, "reason", error)  # URLError wraps it
        cause = cause if isinstance(cause, BaseException) else error
        raise InputError(
            f"{url}: cannot be fetched ({reason(cause)}). Check the address and the network."
        ) from None
    report(f"{url}: {len(data):,} bytes")
    return bytes(data)
