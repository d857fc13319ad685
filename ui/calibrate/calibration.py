"""Calibrate's fragment: new files against the shipped calibration, what is lost, and the new detector to use."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal import smallest_epsilon
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.conformal.observed import counted_rate
from idecode_core.conformal.same_source import SourceComparison, compare
from idecode_core.conformal.settings import Settings
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from idecode_core.plots.histograms import Group, score_histograms
from idecode_core.plots.style import CALIBRATION, ID
from idecode_core.quality.user_data import what_is_lost
from idecode_core.report.calibrations import calibration_notebook, calibration_report
from idecode_core.report.content import Value
from ui.calibrate.lost import OWN_SET, bundled_vectors, show_lost
from ui.calibrate.review import reviewed
from ui.calibrate.train import may_train
from ui.calibrate.use import offer
from ui.frame.export import download_row
from ui.frame.look import show
from ui.frame.panels import JUDGED, panel
from ui.frame.samples import Sample
from ui.frame.scores import score_vectors
from ui.frame.settings import Chosen, current

FEW = 100  # below this many files a caption says what that costs


@panel("calibration", on=JUDGED)
def result(
    config: FolderSettings,
    detector: Detector,
    samples: Sequence[Sample],
    vectors: NDArray[np.float64],
    seed: int,
    outside: Sequence[Sample] = (),
) -> None:
    """Are the new files exchangeable with the shipped calibration? What is lost? Then: the detector to use."""
    settings = current()
    n = min(settings.n, detector.calibration.n_max)
    kept = reviewed(samples, vectors, seed, n, settings)
    samples, vectors = [sample for sample, stays in zip(samples, kept, strict=True) if stays], vectors[kept]
    renewed = Calibration(vectors, seed)
    mine, theirs = renewed.scores(n, settings.aggregate), detector.calibration.scores(n, settings.aggregate)
    comparison = compare(mine, theirs)
    left, right = st.columns([1.9, 1], gap="large")
    with left:
        figure, caption = overlay(renewed, detector, n, settings)
    with right:
        reading(comparison, renewed, detector, vectors[:, :n], settings)
    if outside:
        sets = {OWN_SET: score_vectors(detector, outside, seed)}
    else:
        sets = bundled_vectors(config, detector, seed)
    asked = Settings(n, settings.epsilon, None, settings.aggregate, seed, False)
    lost = what_is_lost(
        detector.calibration, renewed, sets, n=n, epsilon=settings.epsilon, aggregate=settings.aggregate
    )
    left, right = st.columns([1, 1.2], gap="large")
    with left:
        show_lost(lost, training=may_train())
    with right:
        name = offer(config, detector, renewed, comparison, n, lost)
    files = ([sample.name for sample in samples], mine.tolist())
    p_values = judge(detector.calibration, vectors, n=n, aggregate=settings.aggregate).p_values.tolist()
    about: dict[str, Value] = {
        "detector": config.name, "folder": config.folder.name, "new name": name, "k": renewed.k, "n": n, "n_max": renewed.n_max,
        "aggregate": settings.aggregate, "seed": seed, **vars(comparison),
    }  # fmt: skip
    download_row(
        "calibration",
        report=lambda: calibration_report(
            config.name, comparison, *files, p_values, about, figure, caption, lost
        ),
        notebook=lambda: calibration_notebook(
            detector, samples, renewed, p_values, comparison, sets, lost, asked
        ),
        key="cal_export",
    )


def overlay(renewed: Calibration, detector: Detector, n: int, settings: Chosen) -> tuple[Any, str]:
    groups = [
        Group("shipped calibration", detector.calibration.scores(n, settings.aggregate), CALIBRATION),
        Group("your files", renewed.scores(n, settings.aggregate), ID),
    ]
    figure = score_histograms(
        groups,
        renewed.threshold(n, settings.epsilon, settings.aggregate),
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
    comparison: SourceComparison,
    renewed: Calibration,
    detector: Detector,
    vectors: NDArray[np.float64],
    settings: Chosen,
) -> None:
    """The comparison in words."""
    colour, icon = ("orange", "difference") if comparison.differs() else ("blue", "check_circle")
    first, _, rest = comparison.reading().partition(". ")
    st.markdown(f"## :{colour}[:material/{icon}: {first}]")
    st.markdown(rest)
    judged = judge(detector.calibration, vectors, epsilon=settings.epsilon, aggregate=settings.aggregate)
    seen = counted_rate(int(judged.is_ood.sum()), len(judged), settings.epsilon)
    st.markdown(
        f"The shipped calibration would flag **{seen.flagged:,} of your {seen.total:,}** files at epsilon = {settings.epsilon:g} "
        f"({seen.rate:.1%}; for files that belong expect about {settings.epsilon:.1%})."
    )
    st.caption(
        f"Kolmogorov-Smirnov p = {comparison.ks_p_value:.3g} · Mann-Whitney p = {comparison.rank_p_value:.3g} · "
        f"k = {renewed.k:,}, smallest usable epsilon = {smallest_epsilon(renewed.k):.3g}"
        + (
            ". With so few files the rate of a single calibration set varies much; bring more."
            if renewed.k < FEW
            else ""
        )
    )
