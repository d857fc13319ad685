"""A batch with a known mix of iD and OOD points: a plain threshold beside Benjamini-Hochberg, over many batches."""

import math
from typing import Any

import numpy as np
import streamlit as st

from idecode_core.plots import batch as plots
from idecode_core.report.batch import batch_export
from idecode_core.simulate import BATCH_RULES, BatchComparison, mixed_batch
from ui.frame.choices import one_of
from ui.frame.export import export_row
from ui.frame.look import show
from ui.learn.teaching import LINKED, ask_the_class, percent, seed_control, verdict

REPEATS = 200
SIZES = (20, 50, 100, 200, 500)
K = (100, 200, 500, 1_000, 2_000, 5_000)
PLAIN, BH = BATCH_RULES[:2]


@st.cache_data(show_spinner=False, max_entries=64)
def simulate(arguments: dict[str, Any], seed: int) -> BatchComparison:
    """All rules on the same batches."""
    return mixed_batch(**arguments, generator=np.random.default_rng(seed))


def choose() -> dict[str, Any]:
    """The controls, as arguments of `mixed_batch`."""
    size = st.select_slider("Points in the batch", SIZES, 100, key="batch_size", **LINKED)
    share = st.slider("Share that is OOD, in %", 0, 50, 10, key="batch_ood", **LINKED)
    strangeness = st.slider(
        "How strange the OOD points are", 0.0, 6.0, 4.0, 0.5, key="batch_strangeness", **LINKED,
        help="iD scores follow a bell curve of width 1; OOD scores lie this much higher.",
    )  # fmt: skip
    epsilon = st.slider("Plain threshold: flag p < ε", 0.01, 0.2, 0.05, 0.01, key="batch_epsilon", **LINKED)
    q = st.slider(
        "Benjamini-Hochberg: q", 0.01, 0.5, 0.1, 0.01, key="batch_q", **LINKED,
        help="The share of false flags among the flags that one accepts, on average.",
    )  # fmt: skip
    k = st.select_slider("Calibration points, k", K, 1_000, key="batch_k", **LINKED)
    return {
        "size": size,
        "ood_share": share / 100,
        "strangeness": strangeness,
        "epsilon": epsilon,
        "q": q,
        "k": k,
        "repeats": REPEATS,
    }


def batch_lesson() -> None:
    """The view."""
    left, right = st.columns([1, 2.9], gap="medium")
    with left:
        arguments = choose()
        seed = seed_control("batch_seed")
    result = simulate(arguments, seed)
    discoveries = dict(zip(BATCH_RULES, result.false_discovery_proportions, strict=True))
    found = dict(zip(BATCH_RULES, result.detection_rates, strict=True))
    with right:
        verdict(
            bool(discoveries[PLAIN].mean() > result.q),
            f"Of what the plain threshold flags, {percent(discoveries[PLAIN].mean())} is false. "
            f"With Benjamini-Hochberg, {percent(discoveries[BH].mean())}.",
        )
        one, two = st.columns(2)
        with one:
            flagged = result.flagged[1]
            show(
                plots.batch_ranks(
                    result.p_values, result.is_ood, flagged, epsilon=result.epsilon, q=result.q
                ),
                key="batch-ranks",
                look_for="One batch: blue points are iD, orange OOD. Below the dashed line the plain threshold flags. "
                "Benjamini-Hochberg flags the filled points: all up to the last one under the slanted line.",
            )
        with two:
            rates = ("False among flagged", "OOD found")
            discovery = one_of("Over many batches", rates, "batch_show", **LINKED) == rates[0]
            if not discovery and not result.is_ood.any():
                st.info("There are no OOD points to find. Raise their share.", icon=":material/info:")
            else:
                show(
                    plots.rule_boxes(
                        discoveries if discovery else found,
                        y_title="false among the flagged" if discovery else "OOD points found",
                        limit=result.q if discovery else None,
                    ),
                    key=f"batch-boxes-{discovery}",
                    look_for=f"{REPEATS} batches; diamonds are means. "
                    + (
                        "The mean is the false discovery rate: it should be at or below q. Single batches vary."
                        if discovery
                        else "What care costs: fewer false flags, fewer finds."
                    ),
                )
        _table(result)
        if result.k < len(result.is_ood) / result.q - 1:
            st.warning(
                f"With k = {result.k:,}, Benjamini-Hochberg cannot flag a single lone point in a batch of {len(result.is_ood)}: "
                f"the smallest p-value is 1/{result.k + 1:,}. That takes k of at least "
                f"{math.ceil(len(result.is_ood) / result.q - 1):,}.",
                icon=":material/warning:",
            )
        ask_the_class(
            "The plain threshold keeps its promise of ε. Why are so many of its flags false?",
            "ε counts false flags among the many iD points. If 95 of 100 points are iD, ε = 0.05 of them are "
            "about as many as all the OOD points there are.",
            "Set the OOD share to 0. What is the false discovery proportion of a batch now?",
            "Every flag is false: 100 % as soon as anything is flagged, else 0. Benjamini-Hochberg flags something "
            "in at most a share q of the batches.",
            "You look at one photo a day. Which of the two rates do you care about?",
            "The false detection rate. The false discovery rate is for those who follow up a whole list of flags.",
        )
        export_row("batch", lambda: batch_export(result, arguments, seed=seed))


def _table(result: BatchComparison) -> None:
    """The three rates of each rule; the two that are easily confused stand side by side, in words."""

    def cell(rates: np.ndarray) -> str:
        return "none there" if np.isnan(rates).any() else percent(float(rates.mean()))

    rows = [
        f"| {rule} | {cell(result.false_discovery_proportions[i])} | {cell(result.false_detection_rates[i])} | {cell(result.detection_rates[i])} |"
        for i, rule in enumerate(BATCH_RULES)
    ]
    st.markdown(
        "| rule | false *discovery* rate: iD among the flagged | false *detection* rate: flagged among the iD | OOD found |\n"
        "|---|---|---|---|\n" + "\n".join(rows)
    )
