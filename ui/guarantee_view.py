"""The Guarantee page's fragment: a calibration size, and what follows from it. It slices stored scores only."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from ui.evaluation_source import no_scores, stamps, stored_sets
from ui.export import download_row
from ui.links import carry_over, keep
from ui.messages import guard
from ui.settings import Settings, current, finished

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.evaluation import ScoreSet
    from idecode_core.guarantee import Study
    from idecode_core.promise import Promise

LIVE = dict.fromkeys(("n", "epsilon", "aggregate", "p", "seed"), ("guarantee",))
"""Which fragment a setting reruns, see `ui.settings.sidebar`."""
KEYS = ("g_k", "g_span", "g_sure")
CHART = {"displayModeBar": False}
SIZES = (20, 50, 75, 100, 200, 300, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 7500, 10_000)
SPANS = {"0.1": "epsilon to 0.1", "0.5": "epsilon to 0.5"}
REPEATS = 100
SURE = (0.8, 0.9, 0.95, 0.99)


@st.fragment(key="guarantee")
def guarantee(config: dict[str, Any], detector: "Detector") -> None:
    """Controls, the figure of rates against epsilon, the promise beside it; below, the details and the card."""
    from idecode_core.promise import Promise

    with guard():
        settings = current()
        carry_over(KEYS)
        left, right = st.columns([2.1, 1], gap="large")
        with left:
            k, top = controls(detector.calibration.k)
        promise = Promise(k, settings.epsilon)
        id_set = next((s for s in stored_sets(config) if not s.is_ood), None)
        found = None if id_set is None else study_of(config, detector, id_set, k, top, settings)
        with left:
            figure, caption = rates(promise, found, top)
        with right:
            the_promise(promise, found)
        details(promise, found)
        promise = card(promise)
        downloads(config, detector, promise, found, settings, figure, caption)
        if id_set is None:
            no_scores(config)
        keep(KEYS)
        finished("guarantee")


def controls(pool: int) -> tuple[int, float]:
    """The calibration size and how far epsilon goes."""
    sizes = [size for size in SIZES if size < pool] + [pool]
    if st.session_state.get("g_k", pool) not in sizes:  # of another detector
        st.session_state["g_k"] = pool
    a, b = st.columns([3, 2], vertical_alignment="bottom")
    k = a.select_slider(
        "Calibration size, k", sizes, pool, key="g_k", bind="query-params", format_func=lambda size: f"{size:,}",
        help=f"How many of the {pool:,} calibration inputs are used. Fewer make the rate of a single set vary more.",
    )  # fmt: skip
    span = b.segmented_control(
        "Range", list(SPANS), default="0.5", required=True, key="g_span", bind="query-params",
        format_func=SPANS.__getitem__, label_visibility="collapsed",
    )  # fmt: skip
    return int(k), float(span)


def study_of(
    config: dict[str, Any], detector: "Detector", id_set: "ScoreSet", k: int, top: float, settings: Settings
) -> "Study":
    identity = (config["folder"], stamps(config))
    n = min(settings.n, detector.calibration.n_max)
    return _study(detector, id_set, identity, k, top, n, settings.aggregate, settings.smoothed, settings.seed)


@st.cache_data(show_spinner=False, max_entries=500)
def _study(
    _detector: "Detector",
    _id_set: "ScoreSet",
    identity: tuple[Any, ...],
    k: int,
    top: float,
    n: int,
    aggregate: str,
    smoothed: bool,
    seed: int,
) -> "Study":
    import numpy as np

    from idecode_core.calibration import aggregate_scores
    from idecode_core.evaluation import runs
    from idecode_core.guarantee import study

    return study(
        _detector.calibration.scores(n, aggregate),
        aggregate_scores(runs(_id_set.score_vectors, n)[0], aggregate),
        k=k,
        epsilons=[round(top * i / 10, 4) for i in range(1, 11)],
        repeats=REPEATS,
        smoothed=smoothed,
        generator=np.random.default_rng(seed),
    )


def rates(promise: "Promise", found: "Study | None", top: float) -> tuple[Any, str]:
    from idecode_core.plots.guarantee import false_detection_rates

    epsilons = [round(top * i / 10, 4) for i in range(1, 11)]
    figure = false_detection_rates(
        promise.k,
        epsilons,
        resampled=None if found is None else found.resampled,
        observed=() if found is None else found.observed,
        epsilon=promise.epsilon,
    )
    caption = (
        "On average the rate stays on or below the purple line. A single calibration set may lie above it, as far as the grey "
        "band goes; a larger k narrows the band."
    )
    if found is not None:
        caption += (
            f" Boxes: {len(found.resampled)} sets of k drawn with replacement from the calibration inputs (whiskers 5% to "
            "95%). Blue: k of these inputs taken once. All use "
            f"one test set of {len(found.p_values):,}, so its chance deviations move them together."
        )
    st.plotly_chart(figure, key="g_rates", config=CHART, alt=caption)
    st.caption(caption)
    return figure, caption


def the_promise(promise: "Promise", found: "Study | None") -> None:
    """What is promised, in words, beside the figure."""
    st.markdown("#### What is promised")
    st.markdown(promise.statement())
    st.markdown("#### What happens with one set")
    st.markdown(promise.one_set())
    if found is not None:
        seen = observed(promise, found)
        st.markdown(
            f"Observed here: **{seen.flagged:,} of {seen.total:,}** iD test inputs flagged, **{seen.rate:.2%}** (95% interval "
            f"of the true rate {seen.low:.2%} to {seen.high:.2%})."
        )


def observed(promise: "Promise", found: "Study") -> Any:
    from idecode_core.guarantee import observed_rate

    return observed_rate(found.p_values, promise.epsilon)


def details(promise: "Promise", found: "Study | None") -> None:
    """The law at this epsilon, and whether iD p-values are uniform."""
    from idecode_core.guarantee import exceeding_share, p_value_histogram
    from idecode_core.plots.guarantee import p_value_uniformity, rate_law

    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("#### One calibration set, at your epsilon")
        if promise.can_flag:
            caption = (
                f"The exact law of the true rate over calibration sets of {promise.k:,}: Beta({promise.law.J:,}, "
                f"{promise.k + 1 - promise.law.J:,}). The orange part, {exceeding_share(promise.law):.0%}, lies above epsilon."
            )
            st.plotly_chart(rate_law(promise.law), key="g_law", config=CHART, alt=caption)
            st.caption(caption)
        else:
            st.info("Nothing can be flagged, so the rate is always 0.", icon=":material/info:")
    with right:
        st.markdown("#### Are p-values uniform on data that belongs?")
        if found is None:
            st.caption("This needs the scores of an iD test set.")
        elif promise.k < 19:
            st.caption("This needs at least 19 calibration inputs.")
        else:
            histogram = p_value_histogram(found.p_values, promise.k)
            outside = int(((histogram.counts < histogram.low) | (histogram.counts > histogram.high)).sum())
            caption = (
                f"Bars should be level, between the grey lines; {outside} of {len(histogram.counts)} lie outside, and about one "
                "would by chance. A tall left bar means that test inputs are stranger than the calibration set."
            )
            st.plotly_chart(p_value_uniformity(histogram), key="g_uniform", config=CHART, alt=caption)
            st.caption(caption)


def card(promise: "Promise") -> "Promise":
    """The guarantee card: the numbers to plan with, assumptions, limits. Returns the promise as sure as asked for."""
    from idecode_core.conformal import smallest_epsilon
    from idecode_core.promise import ASSUMPTIONS, NOT_PROMISED

    st.markdown("### The guarantee card")
    numbers = st.columns(4)
    words, choice = st.columns([2.1, 1], vertical_alignment="center", gap="large")
    sure = choice.segmented_control(
        "How sure?", SURE, default=0.9, required=True, key="g_sure", bind="query-params",
        format_func=lambda share: f"{share:.0%}", help="The share of calibration sets for which the stricter promise holds.",
    )  # fmt: skip
    promise = replace(promise, delta=round(1 - sure, 4))
    words.markdown(promise.correction())
    for column, (label, value, help_text) in zip(
        numbers,
        (
            (
                "Smallest usable epsilon",
                f"{smallest_epsilon(promise.k):.3g}",
                f"Just above 1/(k+1) for k = {promise.k:,}.",
            ),
            (
                f"k needed for epsilon = {promise.epsilon:g}",
                f"{promise.k_needed:,}",
                "With fewer calibration inputs nothing can ever be flagged. Move epsilon in the sidebar to plan for another.",
            ),
            (
                f"k needed to be {sure:.0%} sure",
                f"{promise.k_needed_when_sure:,}",
                "The fewest calibration inputs with which the corrected epsilon can flag anything.",
            ),
            (
                "Corrected epsilon",
                "none" if promise.corrected is None else f"{promise.corrected:.4g}",
                "Set this in place of your epsilon, and the rate stays below yours for the share of calibration sets chosen.",
            ),
        ),
        strict=True,
    ):
        column.metric(label, value, help=help_text)
    left, right = st.columns(2, gap="large")
    left.markdown("**It assumes**\n" + "\n".join(f"- {line}" for line in ASSUMPTIONS))
    right.markdown("**It does not promise**\n" + "\n".join(f"- {line}" for line in NOT_PROMISED))
    return promise


def downloads(
    config: dict[str, Any],
    detector: "Detector",
    promise: "Promise",
    found: "Study | None",
    settings: Settings,
    figure: Any,
    caption: str,
) -> None:
    from idecode_core.report.guarantees import guarantee_notebook, guarantee_report

    values = {
        "n": min(settings.n, detector.calibration.n_max),
        "aggregate": settings.aggregate,
        "smoothed": settings.smoothed,
        "seed": settings.seed,
    }
    download_row(
        "guarantee",
        report=lambda: guarantee_report(config["name"], promise, found, values, figure, caption),
        notebook=lambda: guarantee_notebook(
            config["name"], config["folder"], detector.calibration, promise, found, values
        ),
        key="g_export",
    )
