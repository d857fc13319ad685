"""The figures of the Evaluate page: one view each, with a caption that says what to look for.

Any number of detectors and rivals over each other on one OOD set: ROC curves and one table, from stored scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.folder.stored import rivals_beside
from idecode_core.plots.evaluation import (
    against_n,
    detector_curves,
    methods_side_by_side,
    roc_curves,
    roc_words,
)
from idecode_core.plots.histograms import groups_of, score_histograms
from idecode_core.quality.methods import runs
from idecode_core.quality.side_by_side import DetectorOnSet, Row
from idecode_core.quality.strength import OperatingPoint
from idecode_core.report.evaluations import detectors_notebook, detectors_report
from ui.evaluate.source import Source, curves, growths, on_set, other_source, rival_source
from ui.frame.cache import get_configs
from ui.frame.detectors import in_order
from ui.frame.export import download_row
from ui.frame.links import LINKED, asked, notice, one_of, request
from ui.frame.look import chart
from ui.frame.messages import escape
from ui.frame.settings import Chosen


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


KEY = "ev_detectors"


def choose(settings: Chosen) -> list[str]:
    """Names of what to lay over the detector of the bar; at first the detectors that know the same dataset. Rivals, of
    which only scores are stored, come last."""
    configs = get_configs()
    others = [name for name in in_order(configs) if name != settings.detector]
    dataset = configs[settings.detector].dataset
    alike = [name for name in others if dataset and configs[name].dataset == dataset]
    others += [name for name in rivals_beside(settings.detector) if name not in configs]
    if st.session_state.get("ev_detectors_beside", settings.detector) != settings.detector:
        st.session_state[KEY] = alike  # another detector in the bar: begin again
    st.session_state["ev_detectors_beside"] = settings.detector
    linked = st.query_params.get_all(KEY) if asked("detectors", (KEY,)) else []
    if KEY in st.session_state:
        st.session_state[KEY] = [name for name in st.session_state[KEY] if name in others]
    chosen = st.multiselect(
        f"Beside {escape(settings.detector)}", others, alike, key=KEY, **LINKED,
        help="Any number of detectors and of rival methods (the last ones) that have stored scores of this OOD set.",
    )  # fmt: skip
    shown = ", ".join(chosen) or "none"
    unmet = [request("a detector", name, "which is not here", shown) for name in linked if name not in others]
    notice("detectors", unmet, tuple(chosen))
    return chosen


def detectors_view(source: Source, selected: str, n: int, settings: Chosen) -> None:
    """The figure, the table and the files of the chosen detectors."""
    chosen = choose(settings)
    name = next(score_set.name for score_set in source.ood_sets if score_set.label == selected)
    sources = {settings.detector: source} | {
        other: stored for other in chosen if (stored := stored_scores(other)) is not None
    }
    rows: dict[str, DetectorOnSet] = {}
    for folder, scores in sources.items():
        if (row := on_set(scores, name, n, settings.epsilon, settings.aggregate)) is not None:
            rows[folder] = row
    figure = detector_curves(
        [row.curve for row in rows.values()],
        [row.point.on_roc for row in rows.values()],
        settings.epsilon,
    )
    chart(figure, key="ev_detectors_roc", alt=roc_words([row.curve for row in rows.values()]))
    caption = (
        f"Each line is one detector against {selected}; the closer it hugs the upper left corner, the better. The diamonds are where "
        f"epsilon = {settings.epsilon:g} puts them: at the height of its false alarms, further left where it catches more."
    )
    st.caption(caption)
    if missing := [other for other in chosen if other not in rows]:
        st.caption(f"No scores of {escape(selected)} are stored with {escape(', '.join(missing))}.")
    st.dataframe([line(row) for row in rows.values()], hide_index=True, key="ev_detectors_table")
    st.caption(
        "Percent. The interval is about the number of test points (95%, DeLong). Caught and false alarms: flagged at epsilon, of "
        "what does not belong and of what does."
    )
    shown, folders = list(rows.values()), {folder: row.n for folder, row in rows.items()}
    download_row(
        "detectors",
        report=lambda: detectors_report(shown, settings.aggregate, figure, caption, list(folders)),
        notebook=lambda: detectors_notebook(shown, folders, name, settings.aggregate),
        key="ev_detectors_export",
        zipped=False,
    )


def stored_scores(name: str) -> Source | None:
    configs = get_configs()
    return other_source(configs[name]) if name in configs else rival_source(name)


def line(row: DetectorOnSet) -> dict[str, str]:
    low, high = row.interval
    return {
        "Detector": row.detector,
        "Belongs": row.id_label,
        "n": str(row.n),
        "AUROC": f"{100 * row.auroc.mean:.1f}",
        "95% interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "TNR at 90% TPR": f"{100 * row.tnr.mean:.1f}",
        "FPR at 95% TPR": f"{100 * row.fpr.mean:.1f}",
        f"Caught at {row.point.epsilon:g}": f"{100 * row.point.ood_share:.1f}",
        f"False alarms at {row.point.epsilon:g}": f"{100 * row.point.id_share:.2f}",
    }
