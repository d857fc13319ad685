"""Detectors that a visitor has calibrated: they live in this session, beside those of the checkpoint root.

They are kept in memory. The scorer is the parent's, only the calibration is new.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from idecode_core.folder.settings import FolderSettings, checkpoint_root

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.quality.user_data import Lost

MOST = 8  # per session; the oldest goes


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
    while len(store) >= MOST:
        del store[next(iter(store))]
    store[detector.name] = SessionDetector(config, detector, card, parent.name, lost)
    return store[detector.name]


def forget_detector(name: str) -> None:
    session_detectors().pop(name, None)


def made_here(config: FolderSettings) -> SessionDetector | None:
    """The session's detector that these settings are of."""
    made = session_detectors().get(config.folder.name)
    return made if made is not None and made.config == config else None
