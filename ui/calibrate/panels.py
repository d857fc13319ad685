"""The Calibrate page's fragment: new files against the shipped calibration, and the new detector to take home."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.folder.settings import FolderSettings
from ui.frame.export import download_row
from ui.frame.look import show
from ui.frame.messages import escape
from ui.frame.samples import Sample
from ui.frame.settings import Settings, current, panel

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.detector import Detector
    from idecode_core.guarantees.same_source import SourceComparison
    from idecode_core.report.content import Value

LIVE = dict.fromkeys(("n", "epsilon", "aggregate"), ("calibration",))
"""Which panel a setting reruns, see `ui.frame.settings.sidebar`."""
FEW = 100  # below this many files a caption says what that costs


@panel("calibration")
def result(
    config: FolderSettings,
    detector: "Detector",
    samples: Sequence[Sample],
    vectors: NDArray[np.float64],
    seed: int,
) -> None:
    """Are the new files exchangeable with the shipped calibration? Then: the detector to download."""
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.guarantees.same_source import compare

    settings = current()
    n = min(settings.n, detector.calibration.n_max)
    own = Calibration(vectors, seed)
    mine, theirs = own.scores(n, settings.aggregate), detector.calibration.scores(n, settings.aggregate)
    comparison = compare(mine, theirs)
    left, right = st.columns([1.9, 1], gap="large")
    with left:
        figure, caption = overlay(own, detector, n, settings)
    with right:
        reading(comparison, own, detector, vectors[:, :n], settings)
        name = save(detector, own, comparison, n)
    values = (str(config.folder), detector.calibration, own, comparison, n, settings.aggregate)
    files = ([sample.name for sample in samples], mine.tolist())
    p_values = detector.calibration.p_values(vectors[:, :n], settings.aggregate).tolist()
    about: dict[str, Value] = {
        "detector": config.name, "new name": name, "k": own.k, "n": n, "n_max": own.n_max,
        "aggregate": settings.aggregate, "seed": seed, "ks_p_value": comparison.ks_p_value,
        "rank_p_value": comparison.rank_p_value, "stranger": comparison.stranger,
    }  # fmt: skip
    from idecode_core.report.calibrations import calibration_notebook, calibration_report

    download_row(
        "calibration",
        report=lambda: calibration_report(config.name, comparison, *files, p_values, about, figure, caption),
        notebook=lambda: calibration_notebook(*values),
        key="cal_export",
    )


def overlay(own: "Calibration", detector: "Detector", n: int, settings: Settings) -> tuple[Any, str]:
    from idecode_core.plots.histograms import Group, score_histograms
    from idecode_core.plots.style import CALIBRATION, ID

    groups = [
        Group("shipped calibration", detector.calibration.scores(n, settings.aggregate), CALIBRATION),
        Group("your files", own.scores(n, settings.aggregate), ID),
    ]
    figure = score_histograms(
        groups,
        own.threshold(n, settings.epsilon, settings.aggregate),
        f"your threshold at epsilon = {settings.epsilon:g}",
        height=400,
    )
    caption = (
        "Blue over grey: your files look like the shipped calibration set to this detector. Blue further right: they are "
        "stranger to it."
    )
    show(figure, key="cal_overlay", look_for=caption)
    return figure, caption


def reading(
    comparison: "SourceComparison",
    own: "Calibration",
    detector: "Detector",
    vectors: NDArray[np.float64],
    settings: Settings,
) -> None:
    """The comparison in words."""
    from idecode_core.conformal import smallest_epsilon
    from idecode_core.guarantees.observed import observed_rate

    colour, icon = ("orange", "difference") if comparison.differs() else ("blue", "check_circle")
    first, _, rest = comparison.reading().partition(". ")
    st.markdown(f"### :{colour}[:material/{icon}: {first}]")
    st.markdown(rest)
    seen = observed_rate(detector.calibration.p_values(vectors, settings.aggregate), settings.epsilon)
    st.markdown(
        f"The shipped calibration would flag **{seen.flagged:,} of your {seen.total:,}** files at epsilon = {settings.epsilon:g} "
        f"({seen.rate:.1%}; for files that belong expect about {settings.epsilon:.1%})."
    )
    st.caption(
        f"Kolmogorov-Smirnov p = {comparison.ks_p_value:.3g} · Mann-Whitney p = {comparison.rank_p_value:.3g} · "
        f"k = {own.k:,}, smallest usable epsilon = {smallest_epsilon(own.k):.3g}"
        + (
            ". With so few files the rate of a single calibration set varies much; bring more."
            if own.k < FEW
            else ""
        )
    )


def save(detector: "Detector", own: "Calibration", comparison: "SourceComparison", n: int) -> str:
    """A name and the download of the new detector folder."""
    name = st.text_input(
        "Name of the new detector",
        f"{detector.name}-mine",
        key="cal_name",
        help="Letters, digits, dots, dashes and underscores.",
    ).strip()
    if not is_name(name):
        st.warning(
            f"{escape(name) or 'An empty name'} cannot be a folder's name. Use letters, digits, dots, dashes, underscores."
        )
        return name
    st.download_button(
        "Download the detector",
        lambda: packed_detector(name, detector, own, comparison, n),
        file_name=f"{name}.zip",
        mime="application/zip",
        key="cal_download",
        type="primary",
        icon=":material/download:",
        on_click="ignore",
        help="config.json, model.safetensors, calibration.npz and card.md. Unpack it into checkpoints/ and it is in the list.",
    )
    return name


def is_name(name: str) -> bool:
    return (
        0 < len(name) <= 60
        and name[0].isalnum()
        and all(c.isalnum() or c in "._-" for c in name)
        and name.isascii()
    )


def packed_detector(
    name: str, detector: "Detector", own: "Calibration", comparison: "SourceComparison", n: int
) -> bytes:
    """The folder that `save_detector` writes, zipped."""
    from idecode_core.detector import Detector
    from idecode_core.files.archives import zip_folder
    from idecode_core.folder.detector import save_detector
    from idecode_core.report.calibrations import calibration_card

    made = Detector(name, detector.scorer, own, detector.summary)
    with tempfile.TemporaryDirectory() as folder:
        save_detector(made, folder, calibration_card(name, detector, own, comparison, n))
        return zip_folder(Path(folder), name)
