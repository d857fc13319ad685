"""What is kept between runs, keyed by what determines the answer.

Models are shared by all visitors and only read. Nothing that a visitor uploads goes into a shared cache: detectors that a visitor has
calibrated live in this session, beside those of the checkpoint root. Their scorer is the parent's, only the calibration is new.
torch is imported on first need, so that a page can paint before.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from idecode_core.errors import CheckpointError
from idecode_core.folder.listing import list_detectors
from idecode_core.folder.settings import FILES, FolderSettings, checkpoint_root

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.detector import Detector
    from idecode_core.folder.stored import Stored
    from idecode_core.quality.user_data import Lost


MOST_DETECTORS = 8  # of one session; the oldest goes


@dataclass(frozen=True, eq=False)
class SessionDetector:
    """A detector with the settings and the card that its folder will have, once it is saved."""

    config: FolderSettings
    detector: "Detector"
    card: str
    parent: str
    lost: "Lost | None" = None
    """What the new calibration costs."""


def session_detectors() -> dict[str, SessionDetector]:
    """Name -> detector of this session."""
    store: dict[str, SessionDetector] = st.session_state.setdefault("session_detectors", {})
    return store


def add_detector(
    detector: "Detector", card: str, parent: FolderSettings, lost: "Lost | None" = None
) -> SessionDetector:
    """Offer a detector on every page of this session. It has the parent's scorer and nothing else of it."""
    config = replace(
        parent,
        folder=checkpoint_root() / detector.name,  # where a saved or unpacked copy will lie
        name=detector.name,
        summary=detector.summary,
        k=detector.calibration.k,
        n_max=detector.calibration.n_max,
        dataset=detector.dataset,
        files={},
    )
    store = session_detectors()
    store.pop(detector.name, None)
    while len(store) >= MOST_DETECTORS:
        del store[next(iter(store))]
    store[detector.name] = SessionDetector(config, detector, card, parent.name, lost)
    return store[detector.name]


def forget_detector(name: str) -> None:
    session_detectors().pop(name, None)


def made_here(config: FolderSettings) -> SessionDetector | None:
    """The session's detector that these settings are of."""
    made = session_detectors().get(config.folder.name)
    return made if made is not None and made.config == config else None


STORED_FILES = ("config.json", "calibration.npz", "training.json", "scores/*.npz")
"""All that what is stored with a detector is read from."""
T = TypeVar("T")
Stamps = tuple[tuple[str, int], ...]


def get_configs() -> dict[str, FolderSettings]:
    """Name -> settings of every complete detector folder and of this session's own detectors; quick, imports no torch."""
    root = checkpoint_root()
    saved = _read_configs(str(root), stamps(root, *(f"*/{name}" for name in FILES)))
    configs = {**saved, **{name: made.config for name, made in session_detectors().items()}}
    if not configs:
        raise CheckpointError(
            f"No detector was found: expected folders with {', '.join(FILES)} below {root}. Run from a complete copy "
            f"of the project, or point IDECODE_CHECKPOINTS to a folder that has some."
        )
    return configs


def stamps(folder: Path, *patterns: str) -> Stamps:
    """When each of the files that are there was written; 0 for one that has just gone, or a link to nothing."""
    paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return tuple((str(path.relative_to(folder)), written(path)) for path in paths)


def written(path: Path) -> int:
    """When a file was written; 0 for one that is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def by_files(*patterns: str) -> dict[Any, Any]:
    """For Streamlit's caches: a detector is the same as long as these files of its folder are."""
    return {FolderSettings: lambda config: (str(config.folder), stamps(config.folder, *patterns))}


@st.cache_resource(show_spinner=False, max_entries=4)
def _read_configs(root: str, stamps: Stamps) -> dict[str, FolderSettings]:
    return {config.folder.name: config for config in list_detectors(root)}


def get_detector(config: FolderSettings) -> "Detector":
    """The detector of a folder, loaded once for all visitors; or one of this session's own."""
    if made := made_here(config):
        return made.detector
    return _load_detector(config)


@st.cache_resource(show_spinner="Loading the detector ...", max_entries=12, hash_funcs=by_files(*FILES))
def _load_detector(config: FolderSettings) -> "Detector":
    from idecode_core.folder.detector import load_detector
    from idecode_core.studio import user_network

    return load_detector(config.folder, **user_network(config.scorer))


def get_calibration(config: FolderSettings) -> "Calibration":
    """A detector's calibration, without torch."""
    from idecode_core.folder.manifest import read_calibration

    made = made_here(config)
    return made.detector.calibration if made else read_calibration(config)


def stored_stamps(config: FolderSettings) -> Stamps:
    """With the folder, a key for caches."""
    return stamps(config.folder, *STORED_FILES)


def get_stored(config: FolderSettings) -> "Stored | None":
    """A detector's calibration and stored scores, without torch; None where no scores are stored.

    An IdecodeError says what is wrong with them.
    """
    from idecode_core.folder.stored import has_scores

    return _open_stored(config) if has_scores(config.folder) else None


@st.cache_resource(
    show_spinner="Reading the stored scores ...", max_entries=12, hash_funcs=by_files(*STORED_FILES)
)
def _open_stored(config: FolderSettings) -> "Stored":
    from idecode_core.folder.stored import open_stored

    return open_stored(config.folder)


def session_store(name: str, size: int) -> dict[Any, Any]:
    """A session's own store; the oldest entries go when it is full."""
    store: dict[Any, Any] = st.session_state.setdefault(name, {})
    while len(store) > size:
        del store[next(iter(store))]
    return store


def remembered(name: str, size: int, key: object, make: Callable[[], T]) -> T:
    """What a session's own store holds under a key; made when it is missing."""
    store: dict[object, T] = session_store(name, size)
    if key not in store:
        store[key] = make()
    return store[key]


@st.cache_resource(show_spinner=False)
def pause_garbage_collector(page: str) -> None:
    """Take what a page has loaded for good out of garbage collection; once for each page, not for each visit.

    Streamlit collects garbage twice at every move of a slider. With all of torch and Plotly in view, that takes a
    hundred milliseconds and more, without them less than one.
    """
    gc.collect()
    gc.freeze()
