"""Detectors from elsewhere: a Hugging Face repository, any web folder, or a zip; checked before they take their place.

config.json lists the hash of every other file that counts, so the sha256 of config.json, or of the zip, vouches for the
whole. Nothing that is fetched can run code (`folder.detector`).
"""

import hashlib
import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlparse

from idecode_core.errors import CheckpointError, IdecodeError, InputError, SettingError
from idecode_core.files.archives import File, climbs, read_zip
from idecode_core.files.read import DAMAGE, read_json, reason
from idecode_core.folder.manifest import LISTED, check_file
from idecode_core.folder.place import check_name, new_place, write_detector_folder
from idecode_core.folder.settings import FILES, read_settings, user_detectors

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
        hub = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"  # their own variable for mirrors
        return f"{hub.rstrip('/')}/{source}/resolve/main/{quote(name)}"
    checked_address(source)
    return f"{source.rstrip('/')}/{quote(name)}"


def checked_address(url: str) -> str:
    try:
        is_web = urlparse(url).scheme in ("http", "https")
    except ValueError:  # "http://[", say
        is_web = False
    if not is_web:
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


def registry_path() -> Path:
    """Where names are looked up: the variable IDECODE_REGISTRY, else registry.json among the user's own data."""
    given = os.environ.get("IDECODE_REGISTRY")
    return Path(given) if given else user_detectors().parent / "registry.json"


def read_registry() -> dict[str, dict[str, str]]:
    """Name -> {"source": as for `pull`, or the address of a zip, "sha256": ""}; empty where there is no such file."""
    path = registry_path()
    if not path.exists():
        return {}
    what, hint = "a registry of detectors", 'Expected {"name": {"source": "https://...", "sha256": "..."}}.'
    registry = read_json(path, what=what, error=SettingError, hint=hint)
    for entry in registry.values() if isinstance(registry, dict) else [None]:
        words = [entry.get("source"), entry.get("sha256", "")] if isinstance(entry, dict) else [None]
        if not all(isinstance(word, str) for word in words):
            raise SettingError(f"{path} cannot be read as {what}. {hint}")
    return {
        name: {"source": entry["source"], "sha256": entry.get("sha256", "")}
        for name, entry in registry.items()
    }


def pull(
    detector: str,
    source: str = "",
    *,
    sha256: str = "",
    out: Path | None = None,
    replace: bool = False,
    report: Report = print,
) -> Path:
    """Fetch a detector; the folder that it is in now.

    `detector` is the address of a zip that holds one detector folder, as the app and `zip_folder` write them; or a name, whose
    folder lies at `source` (see `web_folder`) or which the registry knows.
    """
    from idecode_core.folder.detector import load_detector  # which needs torch: a list of names does not

    is_zip = "://" in detector
    if is_zip:
        name = PurePosixPath(urlparse(checked_address(detector)).path).stem
        address = detector
    else:
        check_name(name := detector)  # which may be its place
        if not source:
            entry = registered(name)
            source, sha256, is_zip = (
                entry["source"],
                sha256 or entry["sha256"],
                entry["source"].endswith(".zip"),
            )
        address = checked_address(source) if is_zip else web_folder(source, name)
    check_vouched(address, sha256)
    folder = new_place(out or name, replace)

    def fill(new: Path) -> None:
        fetch = _fetch_zip if is_zip else _fetch_folder
        fetch(address, new, sha256, report)
        settings = read_settings(new)
        for listed in settings.files:
            check_file(settings, listed)
        load_detector(new, "cpu")  # refuses whatever does not belong together

    write_detector_folder(folder, fill, replace=replace)
    return folder


def registered(name: str) -> dict[str, str]:
    """What the registry knows of a detector."""
    known = read_registry()
    if name not in known:
        raise SettingError(
            f"Where is {name} to come from? Expected --source owner/repository, --source https://..., the variable "
            f"IDECODE_SOURCE, or an entry in {registry_path()}, which knows {', '.join(known) or 'none'}."
        )
    return known[name]


def _fetch_folder(address: str, new: Path, sha256: str, report: Report) -> None:
    config = download(f"{address}/config.json", report, sha256=sha256)
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
            data = download(f"{address}/{quote(file)}", report, room, sha256)
        except InputError:
            if file in FOR_READERS:
                continue
            raise
        room -= len(data)
        (new / file).parent.mkdir(parents=True, exist_ok=True)
        (new / file).write_bytes(data)


def _fetch_zip(url: str, new: Path, sha256: str, report: Report) -> None:
    data = download(url, report, sha256=sha256)
    check_sha256(url, data, sha256)
    contents = read_zip(File(url, data), ENDINGS, MOST_BYTES, member_bytes=MOST_BYTES)
    tops = {PurePosixPath(file.name).parts[0] for file in contents.files}
    if contents.refused or len(tops) != 1:
        problem = contents.refused[0] if contents.refused else f"{url}: holds {len(tops)} folders."
        raise CheckpointError(f"{problem} Expected a zip with one detector folder; pack that folder again.")
    for file in contents.files:
        path = new.joinpath(*PurePosixPath(file.name).parts[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)


def check_sha256(url: str, data: bytes, expected: str) -> None:
    actual = hashlib.sha256(data).hexdigest()
    if expected and actual != expected.lower().removeprefix("sha256:"):
        raise CheckpointError(
            f"{url} has the sha256 {actual}, not the one that was given: it is another file. Nothing was kept."
        )


class Vouched(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to plain http on another machine, unless a sha256 vouches for what comes; nor to ftp, which urllib would."""

    def __init__(self, sha256: str) -> None:
        self.sha256 = sha256

    def redirect_request(self, *given: Any) -> urllib.request.Request | None:
        check_vouched(checked_address(str(given[-1])), self.sha256)
        return super().redirect_request(*given)


def download(url: str, report: Report, most_bytes: int = MOST_BYTES, sha256: str = "") -> bytes:
    """The content at an address; InputError with one sentence when it cannot be had or is too large."""
    try:
        opener = urllib.request.build_opener(Vouched(sha256))
        with opener.open(checked_address(url), timeout=SECONDS) as answer:
            data = bytearray()
            while block := answer.read(BLOCK):
                data += block
                if len(data) > most_bytes:
                    raise InputError(
                        f"{url}: has more than {most_bytes / 2**20:,.0f} MB, more than a detector may have."
                    )
    except urllib.error.HTTPError as error:
        raise InputError(
            f"{url}: the server answers {error.code} ({' '.join(str(error.reason).split())}). Check the name and the source."
        ) from None
    except IdecodeError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", error)  # URLError wraps it
        cause = cause if isinstance(cause, BaseException) else error
        raise InputError(
            f"{url}: cannot be fetched ({reason(cause)}). Check the address and the network."
        ) from None
    report(f"{url}: {len(data):,} bytes")
    return bytes(data)
