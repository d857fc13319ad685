"""config.json: what a detector folder says of itself. Typed, checked, and read without torch.

Who a detector is stands there in so many words; nothing is ever guessed from its name.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idecode_core.errors import CheckpointError
from idecode_core.files.names import printable
from idecode_core.files.read import read_json
from idecode_core.files.write import recovered

FORMAT = 2
"""Since 2, the list of files with their hashes is part of every folder; those of format 1 may be without."""
WITH_COPIES = 3
"""As 2, and a tensor that two members share is stored once; only folders that need it say so, for older versions cannot read it."""
READABLE = (1, FORMAT, WITH_COPIES)
FILES = ("config.json", "model.safetensors", "calibration.npz")
PACKAGE = Path(__file__).resolve().parent.parent
CHECKPOINTS = PACKAGE.parent / "checkpoints"
"""Detectors that come with the project, beside a checkout."""
BUNDLED = PACKAGE / "detectors"
"""The small one that an installed package brings along."""
TEXT, COUNT, TABLE = (str, "a text"), (int, "a number of at least 1"), (dict, "a table")
KINDS: dict[str, tuple[type, str]] = {
    "name": TEXT,
    "summary": TEXT,
    "modality": TEXT,
    "k": COUNT,
    "n_max": COUNT,
    "scorer_sha256": TEXT,
    "scorer": TABLE,
    "dataset": TEXT,
    "choice": TEXT,
    "files": TABLE,
}
OPTIONAL: dict[str, Any] = {"summary": "", "dataset": "", "choice": "", "files": {}}
"""What folders of earlier versions need not have."""
MODALITIES = ("image", "audio")
LONGEST_TEXT = {"name": 500, "summary": 500, "dataset": 500, "choice": 5000}
MOST_POINTS, MOST_DRAWS = 100_000_000, 10_000
AGAIN = "Use the folder as it was saved, or update this program."


@dataclass(frozen=True)
class FolderSettings:
    """A detector folder's settings; quick to read, no weights are loaded."""

    folder: Path
    name: str
    summary: str
    """What is in-distribution, in a few words."""
    modality: str
    k: int
    n_max: int
    scorer_sha256: str
    scorer: dict[str, Any]
    """The scorer's own settings, see `Scorer.settings`."""
    dataset: str = ""
    """The public dataset that is in-distribution, where it is one: it has a gallery, labels and numbers of the paper."""
    selection_leak: str = ""
    """What was looked at while its settings were chosen, and should not have been; empty where nothing was."""
    files: dict[str, str] = field(default_factory=dict)
    """The content hashes of the folder's files (`folder.manifest`); may be empty in folders of format 1."""
    format: int = FORMAT

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes that the model knows; empty where it has none."""
        return tuple(str(name) for name in self.scorer.get("classes", ()))

    @property
    def takes_sounds(self) -> bool:
        return self.modality == "audio"


def read_settings(folder: Path | str) -> FolderSettings:
    """The settings of a detector folder; a CheckpointError says in one sentence what is wrong with it."""
    folder = Path(folder)
    recovered(folder)
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{folder} is not a detector folder: expected {', '.join(FILES)}, missing {', '.join(missing)}. "
            f"Choose a folder that save_detector or `train` has written."
        )
    path = folder / "config.json"
    what = f"a detector's settings of format {FORMAT}"
    config = read_json(path, what=what, error=CheckpointError, hint=AGAIN)
    if not isinstance(config, dict) or config.get("format") not in READABLE:
        raise CheckpointError(f"{path} cannot be read as {what}: its format is another one. {AGAIN}")
    values = {**OPTIONAL, **{key: config[key] for key in KINDS if key in config}}
    for key, (kind, words) in KINDS.items():
        value = values.get(key)
        if type(value) is not kind or (isinstance(value, int) and value < 1):
            raise CheckpointError(f"{path}: expected {key} to be {words}, got {str(value)[:40]!r}. {AGAIN}")
    check_words(path, values)
    if config["format"] != 1 and "calibration.npz" not in values["files"]:
        raise CheckpointError(
            f"{path}: expected files to list the calibration's hash, without which nobody knows whose it is. {AGAIN}"
        )
    leak = values.pop("choice")
    return FolderSettings(folder=folder, selection_leak=leak, **values, format=config["format"])


def check_words(path: Path, values: dict[str, Any]) -> None:
    """CheckpointError unless what pages and commands show of a detector has the form that they expect."""

    def expect(key: str, sound: bool, words: str, value: Any) -> None:
        if not sound:
            raise CheckpointError(
                f"{path}: expected {key} to be {words}, got {printable(str(value)[:40])!r}. {AGAIN}"
            )

    for key, most in LONGEST_TEXT.items():
        text = values[key]
        expect(key, printable(text) == text and len(text) <= most, "one line of text", text)
    expect("name", bool(values["name"].strip()), "a name", values["name"])
    expect(
        "modality", values["modality"] in MODALITIES, f"one of {', '.join(MODALITIES)}", values["modality"]
    )
    takes = {"image": "image", "audio": "audio"}.get(str(values["scorer"].get("kind")), values["modality"])
    expect("modality", values["modality"] == takes, f"{takes}, as its scorer's", values["modality"])
    for key, most in (("k", MOST_POINTS), ("n_max", MOST_DRAWS)):
        expect(key, values[key] <= most, f"at most {most:,}", values[key])
    files = values["files"]
    expect("files", all(isinstance(digest, str) for digest in files.values()), "a table of hashes", files)
    scorer = values["scorer"]
    for key in ("classes", "names"):
        names = scorer.get(key, [])
        sound = isinstance(names, list) and all(
            isinstance(name, str) and printable(name) == name for name in names
        )
        expect(f"scorer.{key}", sound, "a list of texts", names)
    expect(
        "scorer.transforms",
        isinstance(scorer.get("transforms", {}), dict),
        "a table",
        scorer.get("transforms"),
    )


def user_detectors() -> Path:
    """Where an installed package keeps the detectors that a user has fetched."""
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "idecode" / "detectors"


def checkpoint_root() -> Path:
    """Where detector folders lie: the variable IDECODE_CHECKPOINTS, else `checkpoints/` of a checkout, else the user's
    own, else what the package brings along."""
    if given := os.environ.get("IDECODE_CHECKPOINTS"):
        return Path(given)
    return next((place for place in (CHECKPOINTS, user_detectors(), BUNDLED) if place.is_dir()), CHECKPOINTS)


def find_detector(name: Path | str) -> Path:
    """A detector folder: as given, or by its name among those that are installed, from any directory."""
    roots = (checkpoint_root(), CHECKPOINTS, CHECKPOINTS.parent, user_detectors(), BUNDLED)
    for folder in (Path(name), *(root / name for root in roots)):
        recovered(folder)
        if (folder / "config.json").is_file():
            return folder
    places = sorted(checkpoint_root().glob("*/config.json"))
    known = ", ".join(path.parent.name for path in places if path.parent.name[0] != ".") or "none is here"
    raise CheckpointError(
        f"No detector is called {name}: expected a detector folder, or one of: {known}. Check the name, make one "
        f"with `train` or `calibrate`, or fetch one with `pull`."
    )
