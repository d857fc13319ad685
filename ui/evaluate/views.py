"""The figures of the Evaluate page: one view each, with a caption that says what to look for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.evaluation.methods import runs
from idecode_core.evaluation.operating import OperatingPoint
from idecode_core.evaluation.side_by_side import Row
from idecode_core.plots.evaluation import against_n, methods_side_by_side, roc_curves
from idecode_core.plots.histograms import groups_of, score_histograms
from ui.evaluate.source import Source, curves, growths
from ui.frame.choices import one_of
from ui.frame.look import chart


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
        chart(figure, key="ev_roc", alt="ROC curves")
    with right:
        titles = {"auroc": "AUROC", "tnr": "TNR at 90% TPR"}
        metric = one_of("Metric", titles, "ev_metric", format_func=titles.__getitem__)
        arguments = ("methods", shown.n, shown.aggregate, metric, shown.selected)
        methods = drawn(
            shown.source,
            arguments,
            lambda: methods_side_by_side(shown.rows, metric, shown.selected, height=370),
        )
        chart(methods, key="ev_methods", alt="Methods side by side")
    return figure, (
        "Lines: the closer one hugs the upper left corner, the better that set is told apart (beside the name: AUROC); the straight "
        "line is guessing, the ring is where 90% of the iD points are kept, the diamond is where epsilon puts you. Marks: base score and ICAD use a single draw and nearly coincide, for "
        "ranking among calibration points costs nothing and brings the guarantee; the way to the full mark is what more "
        "transforms bring."
    )


def growth_view(shown: Shown) -> tuple[Any, str]:
    figure = drawn(
        shown.source,
        ("growth", shown.n, shown.aggregate, shown.selected),
        lambda: against_n(growths(shown.source, shown.aggregate), shown.selected, shown.n),
    )
    chart(figure, key="ev_growth", alt="AUROC and TNR against n")
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
    chart(figure, key="ev_scores", alt="Histograms of scores")
    return figure, (
        "Grey and blue should agree: both belong. What lies right of the line is flagged; orange left of it is missed."
        if calibration is not None
        else "Where the two overlap, no threshold can tell them apart."
    )


VIEWS: dict[str, Callable[[Shown], tuple[Any, str]]] = {
    "Separation": separation_view,
    "More transforms": growth_view,
    "Scores": scores_view,
}
