"""Methods side by side, from stored scores: any number of detectors and rivals over each other on one OOD set, as ROC curves and one
table; and AUROC against passes per picture, what an AUROC costs, ours and other methods' on our networks."""

import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import checkpoint_root
from idecode_core.folder.stored import RIVALS, rivals_beside
from idecode_core.plots.evaluation import (
    detector_curves,
    roc_words,
)
from idecode_core.plots.passes import auroc_against_passes, passes_words
from idecode_core.quality.cost import COSTS, NS, Costed, costed_methods
from idecode_core.quality.side_by_side import DetectorOnSet
from idecode_core.report.evaluations import detectors_notebook, detectors_report
from ui.evaluate.source import Source, on_set, rival_source, stored_source
from ui.frame.cache import Stamps, get_configs, stamps
from ui.frame.detectors import in_order
from ui.frame.export import download_row
from ui.frame.links import LINKED, asked, notice, request
from ui.frame.look import chart
from ui.frame.messages import escape
from ui.frame.settings import Chosen

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
    return stored_source(configs[name], silent=True) if name in configs else rival_source(name)


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


DATASET = "cifar10"
"""What the methods of known cost know."""


def has_costs(dataset: str) -> bool:
    """Whether there is something to show beside a detector of this dataset."""
    return dataset == DATASET and (checkpoint_root() / RIVALS / COSTS).is_file()


def passes_view(selected: str) -> None:
    """The figure with the front, and all methods, the cheapest first."""
    root = checkpoint_root()
    files = (f"{RIVALS}/{COSTS}", f"{RIVALS}/scores/*/*.npz", "*/config.json", "*/scores/*.npz")
    methods = _methods(str(root), stamps(root, *files))
    if not methods:
        st.info("What the methods cost is not stored here.", icon=":material/info:")
        return
    st.markdown(
        "## AUROC against passes per picture",
        help="A pass is one picture that goes through a network once. iDECODe takes one for the input and one for each of its n "
        "variants, of each member of a merged detector.",
    )
    chart(auroc_against_passes(methods), key="ev_passes", alt=passes_words(methods))
    st.caption(
        "Up is better, left is cheaper. On the dashed steps no method is above at that many passes. Other methods look at the input "
        "once, on networks of ours, named in brackets, and are calibrated as ours are. Hollow marks began with weights made on ImageNet, "
        "full ones learned from CIFAR-10 alone: compare the two to choose a detector, not a method. n in the bar moves nothing here: detectors "
        f"are measured at n = {', '.join(map(str, NS[:-1]))} and {NS[-1]}."
    )
    lines = [
        {
            "Method": method.title,
            "Passes": f"{method.passes:g}",
            "Mean AUROC": f"{method.mean:.1f}",
            **({f"AUROC: {selected}": f"{method.aurocs[selected]:.1f}"} if selected in method.aurocs else {}),
        }
        for method in sorted(methods, key=lambda method: (method.passes, -method.mean))
    ]
    st.dataframe(lines, hide_index=True, key="ev_passes_table")


@st.cache_resource(show_spinner="Reading the stored scores ...", max_entries=2)
def _methods(root: str, stamps: Stamps) -> list[Costed]:
    try:
        return costed_methods(root)
    except IdecodeError:
        return []
