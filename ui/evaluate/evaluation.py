"""The results of the Evaluate page: a fragment that slices stored scores; it never runs the model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from idecode_core.conformal.observed import counted_rate
from idecode_core.conformal.statement import Guarantee
from idecode_core.quality.methods import METHODS, Metric, draws
from idecode_core.quality.metrics import Bounds
from idecode_core.quality.side_by_side import Row, cautions, columns_used, counting_columns, table_rows
from idecode_core.quality.strength import OperatingPoint
from idecode_core.report.evaluations import AT_WORST, EvaluationShown, evaluation_notebook, evaluation_report
from ui.evaluate.side_by_side import detectors_view, has_costs, passes_view
from ui.evaluate.source import PRINTED, Source, at_worst, evaluations, point_of
from ui.evaluate.views import VIEWS, Shown, worst
from ui.frame.export import download_row, pin_button, pinned_runs
from ui.frame.links import LINKED, asked, explain_unmet_link, one_of
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.settings import current

NAMES = {"ev_view": "the view", "ev_set": "the OOD set"}
BOUNDS = ("AUROC at least", "TNR at least", "FPR at most")
PASSES = "AUROC per pass"
DETECTORS = "Detectors"
"""The view of several detectors; a visitor's own scores have only one."""


@panel("evaluation", on=JUDGED)
def evaluation(source: Source) -> None:
    """Choose a view and an OOD set; figure, headline, table, downloads."""
    settings = current()
    wanted = asked("evaluate", NAMES)
    notices = st.container()
    n = min(settings.n, source.n_max)
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    views = (*VIEWS, DETECTORS) if source.shared else tuple(VIEWS)
    if source.shared and has_costs(source.dataset):
        views = (*views, PASSES)
    if st.session_state.get("ev_view", views[0]) not in views:
        st.session_state["ev_view"] = views[0]
    with left:
        view = one_of("Look at", views, "ev_view", width="stretch", wrap=True)
    labels = [score_set.label for score_set in source.ood_sets]
    if st.session_state.get("ev_set", labels[0]) not in labels:  # of another detector
        st.session_state["ev_set"] = labels[0]
    selected = right.selectbox(
        "OOD set", labels, key="ev_set", **LINKED, label_visibility="collapsed",
        disabled=len(labels) == 1, help="The set in full colour, and the one the sentence is about.",
    )  # fmt: skip
    with notices:
        shown_now = {"ev_view": view, "ev_set": selected}
        explain_unmet_link(
            "evaluate", wanted, shown_now, dict.fromkeys(NAMES, "which is not offered here"), NAMES
        )
    if n < settings.n:
        st.caption(f"These scores have {source.n_max} draws per point, so n = {n}.")
    rows = all_rows(source, n, settings.aggregate)
    ood_set = next(score_set for score_set in source.ood_sets if score_set.label == selected)
    point = point_of(source, ood_set, n, settings.epsilon, settings.aggregate)
    shown = Shown(source, rows, selected, n, point, settings.epsilon, settings.aggregate)
    st.markdown(headline(shown, settings.smoothed))
    if not source.shared:
        notes_on_user_scores(shown)
    if view == DETECTORS:
        detectors_view(source, selected, n, settings)
    elif view == PASSES:
        passes_view(selected)
    else:
        figure, caption = VIEWS[view](shown)
        chance = is_it_chance(source, point) if point and point.id_share > settings.epsilon else ""
        st.caption(f"{caption}  \n{chance}")
        table(source, rows, at_worst(source, n, settings.aggregate))
        worst(source, ood_set, n, settings.epsilon, settings.aggregate)
        downloads(shown, figure, caption)
        pinned_runs()


def all_rows(source: Source, n: int, aggregate: str) -> list[Row]:
    by_method = {method: evaluations(source, method, draws(method, n), aggregate) for method in METHODS}
    return table_rows(source.ood_sets, by_method, n, source.dataset, source.transforms, PRINTED)


def headline(shown: Shown, smoothed: bool) -> str:
    """The result as a sentence first."""
    row = shown.row
    text = (
        f"**{escape(shown.selected[0].upper() + shown.selected[1:])}:** keeping 90% of what belongs, n = {shown.n} transforms detect **{row.tnr.mean:.1%}** of what does "
        f"not (AUROC **{100 * row.auroc.mean:.1f}**, 95% interval {interval(row)})."
    )
    if shown.point is not None:
        text += (
            f" At epsilon = {shown.epsilon:g} it flags **{shown.point.ood_share:.1%}** of {escape(shown.selected)} and **{shown.point.id_flagged:,} of "
            f"{shown.point.id_points:,}** ({shown.point.id_share:.2%}) of {escape(shown.source.id_set.label)}"
        )
        if shown.source.shared:
            text += (
                ", with conservative p-values; Guarantee shows the smoothed ones that you have chosen."
                if smoothed
                else ", as on Guarantee."
            )
        else:
            text += "."
    return text


def is_it_chance(source: Source, point: OperatingPoint) -> str:
    """More false alarms than epsilon, held against what chance explains; the words of the Guarantee page."""
    assert source.calibration is not None  # else there is no operating point
    seen = counted_rate(point.id_flagged, point.id_points, point.epsilon)
    words = Guarantee(source.calibration.k, point.epsilon).chance(seen)
    return words.replace("That is", f"{seen.rate:.2%} is", 1)


def interval(row: Row) -> str:
    low, high = row.interval
    return f"{100 * low:.1f} to {100 * high:.1f}"


def notes_on_user_scores(shown: Shown) -> None:
    """Of a visitor's own scores and files: which columns were used, and what may be wrong with them."""
    source, n = shown.source, shown.n
    if source.columns:
        used = "; ".join(
            columns_used(name, titles, count, min(n, count)) for name, titles, count in source.columns
        )
        st.caption(f"Used: {escape(used)}. One row per point, larger is stranger.")
    sentences = cautions(
        {"iD points": len(source.id_set), "OOD points": len(source.ood_sets[0])},
        shown.row.auroc.mean,
        shown.row.interval,
        shown.point,
    )
    sets = (source.id_set, *source.ood_sets)
    counted = sorted(
        {column + 1 for score_set in sets for column in counting_columns(score_set.score_vectors[:, :n])}
    )
    if counted and source.columns:
        which = ", ".join(map(str, counted))
        sentences.append(
            f"Column {which} only counts the rows and was taken for scores. Leave it out of the file."
        )
    for sentence in sentences:
        st.warning(escape(sentence), icon=":material/warning:")


def plus_minus(metric: Metric) -> str:
    mean = f"{100 * metric.mean:.1f}"
    return f"{mean} ± {100 * metric.spread:.1f}" if len(metric.values) > 1 else mean


def table(source: Source, rows: list[Row], bounds: Sequence[Bounds | None]) -> None:
    """One line per OOD set: AUROC, TNR and FPR of iDECODe with their bounds, beside the paper's where it has that setting; base score
    and ICAD, which are near each other, on demand."""
    every = st.toggle(
        "Base score and ICAD too", key="ev_every", **LINKED,
        help="The score of one draw, and its rank among the calibration set: what n = 1 gives, without and with the guarantee.",
    )  # fmt: skip
    compared = {metric for metric in ("auroc", "tnr") if any(getattr(row, f"paper_{metric}") for row in rows)}
    lines = []
    for ood_set, worst_case in zip(source.ood_sets, bounds, strict=True):
        by_method = {row.method: row for row in rows if row.ood_set == ood_set.name}
        line = {"OOD set": ood_set.label}
        for short, metric in (("AUROC", "auroc"), ("TNR", "tnr")):
            shown = by_method if every else {"iDECODe": by_method["iDECODe"]}
            line |= {f"{short}: {method}": plus_minus(getattr(row, metric)) for method, row in shown.items()}
            if metric == "auroc":
                line["AUROC: 95% interval"] = interval(by_method["iDECODe"])
            if metric in compared:
                number = getattr(by_method["iDECODe"], f"paper_{metric}")
                line[f"{short}: paper"] = f"{number.mean:.1f} ± {number.spread:.1f}" if number else "–"
        line["FPR: iDECODe"] = plus_minus(by_method["iDECODe"].fpr)
        if worst_case is not None:
            shares = (worst_case.auroc, worst_case.tnr, worst_case.fpr)
            line |= {title: f"{100 * share:.1f}" for title, share in zip(BOUNDS, shares, strict=True)}
        lines.append(line)
    helped = {title: st.column_config.TextColumn(help=AT_WORST) for title in BOUNDS}
    st.dataframe(lines, hide_index=True, key="ev_table", column_config=helped)
    count = max(len(row.auroc.values) for row in rows)
    notes = [
        f"Percent, mean ± standard deviation over {count} runs." if count > 1 else "Percent, one run.",
        "TNR: OOD points detected when 90% of the iD points are kept. FPR: OOD points let through when 95% are kept. The interval is "
        "about the number of test points (DeLong). At least, at most: with probability 95% each, for endless test points of these kinds.",
    ]
    if compared:
        notes.append(
            "The paper's column is iDECODe with the same transforms and n; its networks are larger and trained far "
            "longer, and Tiny-ImageNet, Places and the LSUN proxy only stand in for its ImageNet, Places365 and LSUN."
        )
    st.caption(" ".join(notes))


def pin_evaluation(shown: Shown) -> None:
    """Pin iDECODe's numbers on the OOD set in full colour."""
    settings = {"n": shown.n, "epsilon": shown.epsilon, "aggregate": shown.aggregate}
    row = shown.row
    numbers = {"AUROC": row.auroc.mean, "TNR at 90% TPR": row.tnr.mean, "FPR at 95% TPR": row.fpr.mean}
    pin_button(f"Evaluate: {row.label}", shown.source.name, settings, numbers)


def downloads(shown: Shown, figure: Any, caption: str) -> None:
    source = shown.source
    values = EvaluationShown(
        source.name,
        source.id_set,
        source.ood_sets,
        shown.rows,
        shown.n,
        shown.aggregate,
        shown.epsilon,
        shown.selected,
        Path(source.folder).name if source.shared else "",
    )
    download_row(
        "evaluation",
        report=lambda: evaluation_report(values, figure, caption),
        notebook=lambda: evaluation_notebook(values, source.folder, source.calibration, source.shared),
        key="ev_export",
        zipped=not source.shared,
        beside=lambda: pin_evaluation(shown),
    )
