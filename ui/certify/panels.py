"""The Certify page: the threshold in words, the scores around it, and the new ones one by one."""

import warnings
from typing import TYPE_CHECKING, Any

import streamlit as st

from idecode_core.report import Export
from ui.certify.bring import Scores
from ui.frame.choices import one_of
from ui.frame.export import export_row
from ui.frame.links import asked, carry_over, keep, say_unmet
from ui.frame.look import show
from ui.frame.settings import DEFAULT_EPSILON, EPSILONS, usable_epsilon

if TYPE_CHECKING:
    from idecode_core.own.scores import Certified

NAMES = {"c_larger_is": "what a larger score is", "c_epsilon": "epsilon", "c_sure": "how sure"}
"""Keys of the settings, and what a notice calls them."""
KEYS = tuple(NAMES)
SURE = {"on average": None, "90%": 0.1, "99%": 0.01}
"""How sure -> delta."""
SHOWN = 1_000  # rows of the table


def controls() -> dict[str, Any]:
    """The settings, as arguments of `certify`."""
    carry_over(KEYS)
    wanted = asked("certify", KEYS)
    if (linked := usable_epsilon(wanted.get("c_epsilon"))) is not None:
        st.session_state["c_epsilon"] = linked
    larger_is = one_of(
        "A larger score is", ("strange", "normal"), "c_larger_is", label_visibility="visible",
        help="Strange for distances, errors and anomaly scores; normal for likelihoods and confidences.",
    )  # fmt: skip
    epsilon = st.select_slider(
        "False alarms at most, ε", sorted({*EPSILONS, st.session_state.get("c_epsilon", DEFAULT_EPSILON)}), DEFAULT_EPSILON,
        key="c_epsilon", bind="query-params", format_func=lambda value: f"{value:g}",
        help="The share of normal points that may be flagged.",
    )  # fmt: skip
    sure = one_of(
        "How sure?", SURE, "c_sure", label_visibility="visible",
        help="On average over calibration sets, or for this share of all calibration sets of your size.",
    )  # fmt: skip
    keep(KEYS)
    shown = {key: st.session_state[key] for key in KEYS}
    say_unmet("certify", wanted, shown, dict.fromkeys(KEYS, "which is not offered here"), NAMES)
    return {"larger_is": larger_is, "epsilon": float(epsilon), "delta": SURE[sure]}


def result(scores: Scores, settings: dict[str, Any]) -> None:
    """The statement first, then the figure and the new scores."""
    from idecode_core.own.scores import certify

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certified = certify(scores.normal, **settings)
        limit = certified.threshold(certified.epsilon, certified.delta)
        p = None if scores.new is None else certified.p_values(scores.new)
        flagged = None if scores.new is None else certified.predict(scores.new) == -1
    flag, _, promise = certified.statement().partition(". ")
    st.subheader(f"{flag}.", anchor=False)
    st.markdown(promise)
    for sentence in dict.fromkeys(str(one.message) for one in caught):
        st.warning(sentence, icon=":material/warning:")
    figure, caption = _figure(certified, scores, limit)
    show(figure, key="certify_scores", look_for=caption)
    if p is not None:
        _table(certified, scores, p, flagged)
    _downloads(certified, scores, figure, caption)


def _figure(certified: "Certified", scores: Scores, limit: float) -> tuple[Any, str]:
    from idecode_core.plots.histograms import Group, score_histograms
    from idecode_core.plots.style import CALIBRATION, OOD

    groups = [Group("normal", scores.normal, CALIBRATION)]
    caption = f"Grey: your {certified.k:,} normal scores."
    if scores.new is not None:
        groups.append(Group("new", scores.new, OOD))
        caption += f" Orange: {scores.new.size:,} new ones, of which many may be normal too."
    side = "Right" if certified.larger_is == "strange" else "Left"
    caption += f" {side} of the purple line a point is flagged."
    figure = score_histograms(groups, limit, "threshold", height=340)
    figure.update_xaxes(title=str(figure.layout.xaxis.title.text).replace("score F(V)", "score"))
    return figure, caption


def _table(certified: "Certified", scores: Scores, p: Any, flagged: Any) -> None:
    import numpy as np

    assert scores.new is not None
    count, expected = int(flagged.sum()), certified.epsilon * flagged.size
    st.markdown(
        f"**{count:,} of {flagged.size:,}** new scores are flagged. If all of them were normal, at most about {expected:.3g} would be."
    )
    order = np.argsort(p, kind="stable")[:SHOWN]
    st.dataframe(
        {
            "row": order + 1,
            "score": scores.new[order],
            "p-value": p[order],
            "verdict": np.where(flagged[order], "flagged", "not flagged"),
        },
        hide_index=True,
        height=240,
    )
    if flagged.size > SHOWN:
        st.caption(f"The {SHOWN:,} strangest; the CSV has them all.")


def _downloads(certified: "Certified", scores: Scores, figure: Any, caption: str) -> None:
    from idecode_core.report.certified import certified_export

    def export() -> Export:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said on the page
            return certified_export(
                certified, scores.names, scores.normal, scores.new, figure, caption, scores.column
            )

    export_row("certified", export, key="certify_export")
