"""The new detector in use: a name, what belongs, at once on every page; to download; on one's own machine, to keep."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from idecode_core.folder.settings import FolderSettings, checkpoint_root
from ui.frame.cache import SessionDetector, add_detector, forget_detector, get_configs, session_detectors
from ui.frame.catalogue import link
from ui.frame.messages import escape
from ui.frame.panels import rerun_panels
from ui.frame.session import at_this_machine

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.conformal.same_source import SourceComparison
    from idecode_core.detector import Detector
    from idecode_core.quality.user_data import Lost

LONGEST_NAME, LONGEST_BELONGS = 60, 120


def ask_name(default: str, key: str) -> tuple[str, str, str]:
    """Name, what belongs, and what is still wrong with them ("" when nothing is)."""
    left, right = st.columns([1, 1.2], vertical_alignment="bottom")
    name = left.text_input(
        "Name of the new detector",
        default[:LONGEST_NAME],
        key=f"{key}_name",
        help="Letters, digits, dots, dashes and underscores.",
    ).strip()
    belongs = right.text_input(
        "What belongs?",
        key=f"{key}_belongs",
        max_chars=LONGEST_BELONGS,
        placeholder="In a few words, such as: temples by daylight",
        help="It stands beside every verdict.",
    ).strip()
    return name, belongs, what_is_missing(name, belongs)


def what_is_missing(name: str, belongs: str) -> str:
    if not is_name(name):
        return f"{escape(name) or 'An empty name'} cannot be a folder's name. Use letters, digits, dots, dashes, underscores."
    if name in get_configs() and name not in session_detectors():
        return f"There is a detector called {escape(name)} already. Choose another name."
    if not belongs:
        return "Say what belongs: it is what a verdict is about."
    if not belongs.isprintable():
        return "What belongs must be one line of plain text."
    return ""


def is_name(name: str) -> bool:
    return len(name) <= LONGEST_NAME and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is not None


def offer(
    config: FolderSettings,
    detector: "Detector",
    calibration: "Calibration",
    comparison: "SourceComparison",
    n: int,
    lost: "Lost",
) -> str:
    """Name it, then use it or take it home; returns the name."""
    from idecode_core.detector import Detector
    from idecode_core.report.calibrations import calibration_card

    st.markdown("### Make it yours")
    name, belongs, missing = ask_name(f"{config.folder.name}-mine", "cal")
    renewed = Detector(name, detector.scorer, calibration, belongs)  # no dataset: no public one belongs now
    parent = replace(detector, name=config.folder.name)  # as the visitor knows it
    card = calibration_card(name, parent, calibration, comparison, n, belongs=belongs, lost=lost)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Use it now",
            type="primary",
            icon=":material/play_arrow:",
            key="cal_use",
            disabled=bool(missing),
            on_click=use,
            args=(renewed, card, config, lost),
            help="On every page, for as long as this page is open.",
        )
        if not missing:
            download(renewed, card)
    if missing:
        st.caption(missing)
    return name


def use(detector: "Detector", card: str, parent: FolderSettings, lost: "Lost | None" = None) -> None:
    """The callback: from the next run on, all pages use it."""
    add_detector(detector, card, parent, lost)
    st.session_state["detector"] = detector.name
    rerun_panels()


def where_to_go(name: str) -> None:
    """With a detector that was made here."""
    link("inspect", "Inspect a file with it", "search", {"detector": name})
    link("guarantee", "What is promised", "verified", {"detector": name})


def in_use(joined: SessionDetector) -> None:
    """What the visitor has made, where to go with it, how to keep it, and what was lost."""
    detector = joined.detector
    st.success(
        f"**{escape(detector.name)}** is in use on every page. What belongs: **{escape(detector.summary)}**. It is "
        f"{escape(joined.parent)}, calibrated on {detector.calibration.k:,} files of yours, and lives as long as this page is open.",
        icon=":material/check_circle:",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        where_to_go(detector.name)
        download(detector, joined.card, key="own_download")
        if at_this_machine() and st.button(
            "Save to my detectors",
            icon=":material/save:",
            key="own_save",
            help=f"A folder below {checkpoint_root().name}/; it is in the list whenever you start the program.",
        ):
            keep_it(joined)
        st.button(
            "Forget it", icon=":material/delete:", key="own_forget", type="tertiary", on_click=forget_detector,
            args=(detector.name,),
        )  # fmt: skip
    if joined.lost is not None:
        from ui.calibrate.calibration import show_lost

        show_lost(joined.lost, training=False)


def download(detector: "Detector", card: str, key: str = "cal_download") -> None:
    st.download_button(
        "Download",
        lambda: packed_detector(detector, card),
        file_name=f"{detector.name}.zip",
        mime="application/zip",
        key=key,
        icon=":material/download:",
        on_click="ignore",
        help="config.json, model.safetensors, calibration.npz and card.md. Unpack it into checkpoints/ and it is in the list.",
    )


def packed_detector(detector: "Detector", card: str) -> bytes:
    """The folder that `save_detector` writes, zipped."""
    from idecode_core.files.archives import zip_folder
    from idecode_core.folder.detector import save_detector

    with tempfile.TemporaryDirectory() as folder:
        save_detector(detector, folder, card)
        return zip_folder(Path(folder), detector.name)


def keep_it(joined: SessionDetector) -> None:
    """Into the checkpoint root; from then on it is a detector like any other."""
    from idecode_core.errors import CheckpointError
    from idecode_core.folder.detector import save_detector
    from idecode_core.folder.place import new_place

    name = joined.detector.name
    if (checkpoint_root() / name).exists():
        raise CheckpointError(
            f"{name} is there already: expected a new name. Calibrate again under another name, or move that folder away."
        )
    with st.spinner("Saving ..."):
        save_detector(joined.detector, new_place(Path(name)), joined.card, replace=False)
    forget_detector(name)
    st.session_state["own_saved"] = name
    st.rerun()


def was_saved() -> None:
    """Once, after saving."""
    if name := st.session_state.pop("own_saved", None):
        st.success(f"{escape(name)} is among your detectors now.", icon=":material/save:")
