"""The views of the Evaluate page: one figure each, with a caption that says what to look for; and from a number to its pictures, the
worst misses and the worst false alarms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.errors import IdecodeError
from idecode_core.folder.shelf import ScoreSet
from idecode_core.plots.evaluation import (
    against_n,
    methods_side_by_side,
    roc_curves,
    roc_words,
)
from idecode_core.plots.histograms import groups_of, score_histograms
from idecode_core.quality.methods import runs
from idecode_core.quality.side_by_side import Row
from idecode_core.quality.strength import Extremes, OperatingPoint, extremes
from ui.evaluate.source import Source, curves, growths
from ui.frame.cache import get_configs, get_detector
from ui.frame.links import LINKED, one_of
from ui.frame.look import chart
from ui.frame.samples import THUMBNAIL, smaller


@dataclass(frozen=True, eq=False)
class Shown:
    """What the page is about at the moment."""

    source: Source
    rows: list[Row]
    selected: str  # the label of an OOD set
    n: int
    point: OperatingPoint | None
    epsilon: float
    aggregate: str

    @property
    def row(self) -> Row:
        """iDECODe on the selected set."""
        return next(row for row in self.rows if row.label == self.selected and row.method == "iDECODe")


def drawn(source: Source, arguments: tuple[Any, ...], draw: Callable[[], Any]) -> Any:
    """A figure of stored scores is drawn once for all visitors: making one costs more than its numbers."""
    return _drawn(draw, source.key, arguments) if source.shared else draw()


@st.cache_resource(show_spinner=False, max_entries=400)
def _drawn(_draw: Callable[[], Any], key: str, arguments: tuple[Any, ...]) -> Any:
    return _draw()


def separation_view(shown: Shown) -> tuple[Any, str]:
    """ROC curves of all sets, and the three methods on each."""
    left, right = st.columns(2, gap="medium")
    figure = drawn(
        shown.source,
        ("roc", shown.n, shown.aggregate, shown.selected, shown.epsilon),
        lambda: roc_curves(
            curves(shown.source, shown.n, shown.aggregate),
            shown.selected,
            operating=shown.point.on_roc if shown.point else None,
            epsilon=shown.epsilon,
        ),
    )
    with left:
        st.markdown(
            "## ROC curves",
            help="How much that does not belong is let through (across) when so much of what belongs is kept (up), for every threshold. AUROC, the area under the curve, is 100 when the two are never confused.",
        )
        chart(figure, key="ev_roc", alt=roc_words(curves(shown.source, shown.n, shown.aggregate)))
    with right:
        st.markdown(
            "## Methods side by side",
            help="One draw, one draw ranked among the calibration set, and all n of them. Base score and ICAD nearly coincide: ranking "
            "costs nothing and brings the guarantee. The way to the full mark is what more transforms bring.",
        )
        titles = {"auroc": "AUROC", "tnr": "TNR at 90% TPR"}
        metric = one_of("Metric", titles, "ev_metric", format_func=titles.__getitem__)
        arguments = ("methods", shown.n, shown.aggregate, metric, shown.selected)
        methods = drawn(
            shown.source,
            arguments,
            lambda: methods_side_by_side(shown.rows, metric, shown.selected, height=366),
        )
        chart(
            methods,
            key="ev_methods",
            alt=f"{titles[metric]} in percent: "
            + "; ".join(
                f"{row.label}, {row.method} {100 * getattr(row, metric).mean:.1f}" for row in shown.rows
            ),
        )
    return figure, (
        "The closer a line hugs the upper left corner, the better that set is told apart (beside the name: AUROC). The ring is where 90% "
        "of the iD points are kept, the diamond is where epsilon puts you."
    )


def growth_view(shown: Shown) -> tuple[Any, str]:
    figure = drawn(
        shown.source,
        ("growth", shown.n, shown.aggregate, shown.selected),
        lambda: against_n(growths(shown.source, shown.aggregate), shown.selected, shown.n),
    )
    auroc, tnr = (100 * metric.mean for metric in (shown.row.auroc, shown.row.tnr))
    words = f"AUROC and TNR against n; {shown.selected} has {auroc:.1f} and {tnr:.1f} at n = {shown.n}"
    chart(figure, key="ev_growth", alt=words)
    return figure, (
        "A line that still climbs at the right would gain from more transforms. The band is the spread from run to run."
    )


def scores_view(shown: Shown) -> tuple[Any, str]:
    ood_set = next(score_set for score_set in shown.source.ood_sets if score_set.label == shown.selected)
    known, strange = (
        aggregate_scores(runs(score_set.score_vectors, shown.n)[0], shown.aggregate)
        for score_set in (shown.source.id_set, ood_set)
    )
    calibration = threshold = None
    if shown.source.calibration is not None:
        calibration = shown.source.calibration.scores(shown.n, shown.aggregate)
        threshold = shown.source.calibration.threshold(shown.n, shown.epsilon, shown.aggregate)
    figure = score_histograms(
        groups_of(known, strange, shown.selected, calibration),
        threshold,
        f"flagged at epsilon = {shown.epsilon:g}",
    )
    chart(
        figure,
        key="ev_scores",
        alt=f"Histograms of scores of {shown.source.id_set.label} and of {shown.selected}",
    )
    if threshold is None:
        return figure, "Where the two overlap, no threshold can tell them apart."
    flagged = (
        "What lies right of the line is flagged; orange left of it is missed."
        if isfinite(threshold)
        else f"There are too few calibration scores to flag anything at epsilon = {shown.epsilon:g}."
    )
    return figure, f"Grey and blue should agree: both belong. {flagged}"


VIEWS: dict[str, Callable[[Shown], tuple[Any, str]]] = {
    "Separation": separation_view,
    "More transforms": growth_view,
    "Scores": scores_view,
}


SHOWN = 8  # of each kind
CHECKED = 3  # draws, to see that a picture is the one that was scored


def worst(source: Source, ood_set: ScoreSet, n: int, epsilon: float, aggregate: str) -> None:
    """What does not belong and looks most ordinary, and what belongs and looks strangest, as pictures, once asked for."""
    if not st.toggle(
        "Show the worst misses and the worst false alarms",
        key="ev_worst",
        help="The OOD points that look most ordinary to the detector, and the iD points that look strangest, as pictures.",
        **LINKED,
    ):
        return
    sides = (
        ("The worst misses", ood_set, True, "do not belong and look most ordinary"),
        ("The worst false alarms", source.id_set, False, "belong and look strangest"),
    )
    for title, score_set, is_ood, words in sides:
        extreme = extremes(source.calibration, score_set, n, epsilon, aggregate, most=SHOWN)
        st.markdown(f"## {title}")
        st.caption(f"Those of {score_set.label} that {words}. {counted(extreme, is_ood, epsilon)}")
        pictures = _pictures(source, score_set, tuple(extreme.places))
        if pictures is None:
            how = (
                "put the dataset into the data folder (`idecode data` says where) and look again."
                if source.shared
                else "scores came without files; bring the files under *My files*."
            )
            st.caption(
                f"The pictures of {score_set.label} that were scored are not here: {how} "
                f"Their rows are {', '.join(str(i + 1) for i in extreme.places)}."
            )
            continue
        with st.container(horizontal=True, key=f"ev_worst_{'ood' if is_ood else 'id'}"):
            for place, picture, value, flagged in zip(
                extreme.places, pictures, extreme.values, extreme.is_flagged, strict=True
            ):
                name = "score" if source.calibration is None else "p"
                mark = ":orange[flagged]" if flagged else ":blue[not flagged]"
                with st.container(width=96, gap="xsmall"):
                    st.image(picture, width=88)
                    st.caption(
                        f"row {place + 1}  \n{name} = {value:.3g}"
                        + (f"  \n{mark}" if source.calibration else "")
                    )


def counted(extreme: Extremes, is_ood: bool, epsilon: float) -> str:
    if extreme.flagged is None:
        return "Without calibration scores there is no threshold; they are ranked by their scores."
    missed = extreme.points - extreme.flagged if is_ood else extreme.flagged
    what = "missed" if is_ood else "flagged"
    return f"At epsilon = {epsilon:g}, {missed:,} of {extreme.points:,} are {what}."


def _pictures(source: Source, score_set: ScoreSet, places: tuple[int, ...]) -> Sequence[bytes] | None:
    """From the visitor's files, or from the dataset on this machine; None where neither is here."""
    if score_set.name in source.files:
        return [source.files[score_set.name][i].thumbnail for i in places]
    return _from_dataset(source, score_set, places) if source.shared else None


@st.cache_data(
    show_spinner="Looking for the pictures ...",
    max_entries=40,
    hash_funcs={Source: lambda source: source.key, ScoreSet: lambda score_set: score_set.name},
)
def _from_dataset(source: Source, score_set: ScoreSet, places: tuple[int, ...]) -> list[bytes] | None:
    """The pictures of these rows, where the dataset here is the one that was scored: the first of them is scored again."""
    from idecode_core.image.sets import load_images
    from idecode_core.quality.score_sets import pick

    config = get_configs().get(Path(source.folder).name)
    if config is None or config.modality != "image":
        return None
    try:
        x = list(pick(load_images(score_set.name), len(score_set)).samples)
    except IdecodeError:
        return None
    if len(x) != len(score_set):
        return None
    seed = source.calibration.seed if source.calibration is not None else 0
    again = get_detector(config).score_vectors([x[places[0]]], n=CHECKED, seed=seed)[0]
    if not np.allclose(again, score_set.score_vectors[places[0], :CHECKED], rtol=1e-2, atol=1e-3):
        return None  # another edition of the dataset, with other pictures in these rows
    return [smaller(x[i], THUMBNAIL) for i in places]
