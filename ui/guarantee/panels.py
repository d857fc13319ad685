"""The Guarantee page's fragment: a calibration size, and what follows from it. It slices stored scores only."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from idecode_core.folder.settings import FolderSettings
from ui.evaluate.source import no_scores, stored_or_said
from ui.frame.cache import stored_stamps
from ui.frame.export import download_row
from ui.frame.links import carry_over, keep
from ui.frame.look import show
from ui.frame.settings import Settings, current, panel

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.folder.stored import Stored
    from idecode_core.guarantees.observed import ObservedRate, Study
    from idecode_core.guarantees.statement import Guarantee
    from idecode_core.report.content import Value

LIVE = dict.fromkeys(("n", "epsilon", "aggregate", "p", "seed"), ("guarantee",))
"""Which panel a setting reruns, see `ui.frame.settings.sidebar`."""
KEYS = ("g_k", "g_span", "g_sure")
SIZES = (20, 50, 75, 100, 200, 300, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 7500, 10_000)
SPANS = {"0.1": "epsilon to 0.1", "0.5": "epsilon to 0.5"}
REPEATS = 100
SURE = (0.8, 0.9, 0.95, 0.99)


@panel("guarantee")
def show_guarantee(config: FolderSettings) -> None:
    """Controls, the figure of rates against epsilon, the statement beside it; below, the details and the card."""
    from idecode_core.folder.calibration import read_calibration
    from idecode_core.guarantees.statement import Guarantee

    settings = current()
    carry_over(KEYS)
    left, right = st.columns([2.1, 1], gap="large")
    stored = stored_or_said(config)
    calibration = stored.calibration if stored else read_calibration(config)
    with left:
        k, top = controls(calibration.k)
    guarantee = Guarantee(k, settings.epsilon)
    found = study_of(stored, k, top, settings) if stored else None
    with left:
        figure, caption = rates(guarantee, found, top)
    with right:
        statement(guarantee, found)
    details(guarantee, found)
    guarantee = card(guarantee)
    downloads(config, calibration, guarantee, found, settings, figure, caption)
    if stored is None:
        no_scores(config)
    keep(KEYS)


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


def study_of(stored: "Stored", k: int, top: float, settings: Settings) -> "Study":
    """What calibration sets of size k do to the iD test set, in the precision of its stored scores."""
    identity = (str(stored.folder), stored_stamps(stored.settings))
    n = min(settings.n, stored.calibration.n_max)
    return _study(stored, identity, k, top, n, settings.aggregate, settings.smoothed, settings.seed)


@st.cache_data(show_spinner=False, max_entries=500)
def _study(
    _stored: "Stored",
    identity: tuple[Any, ...],
    k: int,
    top: float,
    n: int,
    aggregate: str,
    smoothed: bool,
    seed: int,
) -> "Study":
    import numpy as np

    from idecode_core.conformal.calibration import aggregate_scores
    from idecode_core.evaluation.methods import runs
    from idecode_core.guarantees.observed import study

    return study(
        _stored.calibration.scores(n, aggregate),
        aggregate_scores(runs(_stored.id_set.score_vectors, n)[0], aggregate),
        k=k,
        epsilons=epsilons(top),
        repeats=REPEATS,
        smoothed=smoothed,
        generator=np.random.default_rng(seed),
    )


def epsilons(top: float) -> list[float]:
    """Ten of them, up to `top`."""
    return [round(top * i / 10, 4) for i in range(1, 11)]


def rates(guarantee: "Guarantee", found: "Study | None", top: float) -> tuple[Any, str]:
    from idecode_core.plots.guarantee import false_detection_rates

    figure = false_detection_rates(
        guarantee.k,
        epsilons(top),
        resampled=None if found is None else found.resampled,
        observed=() if found is None else found.observed,
        epsilon=guarantee.epsilon,
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
    show(figure, key="g_rates", look_for=caption)
    return figure, caption


def statement(guarantee: "Guarantee", found: "Study | None") -> None:
    """What is promised, in words, beside the figure."""
    st.markdown("#### What is promised")
    st.markdown(guarantee.statement())
    st.markdown("#### What happens with one set")
    st.markdown(guarantee.one_set())
    if found is not None:
        seen = observed(guarantee, found)
        st.markdown(
            f"Observed here: **{seen.flagged:,} of {seen.total:,}** iD test inputs flagged, **{seen.rate:.2%}** (95% interval "
            f"of the true rate {seen.low:.2%} to {seen.high:.2%})."
        )


def observed(guarantee: "Guarantee", found: "Study") -> "ObservedRate":
    from idecode_core.guarantees.observed import observed_rate

    return observed_rate(found.p_values, guarantee.epsilon)


def details(guarantee: "Guarantee", found: "Study | None") -> None:
    """The law at this epsilon, and whether iD p-values are uniform."""
    from idecode_core.conformal import exceeding_share
    from idecode_core.guarantees.observed import p_value_histogram
    from idecode_core.plots.guarantee import p_value_uniformity, rate_law

    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("#### One calibration set, at your epsilon")
        if guarantee.can_flag:
            caption = (
                f"The exact law of the true rate over calibration sets of {guarantee.k:,}: Beta({guarantee.law.J:,}, "
                f"{guarantee.k + 1 - guarantee.law.J:,}). The orange part, {exceeding_share(guarantee.law):.0%}, lies above epsilon."
            )
            show(rate_law(guarantee.law), key="g_law", look_for=caption)
        else:
            st.info("Nothing can be flagged, so the rate is always 0.", icon=":material/info:")
    with right:
        st.markdown("#### Are p-values uniform on data that belongs?")
        if found is None:
            st.caption("This needs the scores of an iD test set.")
        elif guarantee.k < 19:
            st.caption("This needs at least 19 calibration inputs.")
        else:
            histogram = p_value_histogram(found.p_values, guarantee.k)
            outside = int(((histogram.counts < histogram.low) | (histogram.counts > histogram.high)).sum())
            caption = (
                f"Bars should be level, between the grey lines; {outside} of {len(histogram.counts)} lie outside, and about one "
                "would by chance. A tall left bar means that test inputs are stranger than the calibration set."
            )
            show(p_value_uniformity(histogram), key="g_uniform", look_for=caption)


def card(guarantee: "Guarantee") -> "Guarantee":
    """The guarantee card: the numbers to plan with, assumptions, limits. Returns the guarantee as sure as asked for."""
    from idecode_core.conformal import smallest_epsilon
    from idecode_core.guarantees.statement import ASSUMPTIONS, NOT_GUARANTEED

    st.markdown("### The guarantee card")
    numbers = st.columns(4)
    words, choice = st.columns([2.1, 1], vertical_alignment="center", gap="large")
    sure = choice.segmented_control(
        "How sure?", SURE, default=0.9, required=True, key="g_sure", bind="query-params",
        format_func=lambda share: f"{share:.0%}", help="The share of calibration sets for which the stricter promise holds.",
    )  # fmt: skip
    guarantee = replace(guarantee, delta=round(1 - sure, 4))
    words.markdown(guarantee.correction())
    for column, (label, value, help_text) in zip(
        numbers,
        (
            (
                "Smallest usable epsilon",
                f"{smallest_epsilon(guarantee.k):.3g}",
                f"Just above 1/(k+1) for k = {guarantee.k:,}.",
            ),
            (
                f"k needed for epsilon = {guarantee.epsilon:g}",
                f"{guarantee.k_needed:,}",
                "With fewer calibration inputs nothing can ever be flagged. Move epsilon in the sidebar to plan for another.",
            ),
            (
                f"k needed to be {sure:.0%} sure",
                f"{guarantee.k_needed_when_sure:,}",
                "The fewest calibration inputs with which the corrected epsilon can flag anything.",
            ),
            (
                "Corrected epsilon",
                "none" if guarantee.corrected is None else f"{guarantee.corrected:.4g}",
                "Set this in place of your epsilon, and the rate stays below yours for the share of calibration sets chosen.",
            ),
        ),
        strict=True,
    ):
        column.metric(label, value, help=help_text)
    left, right = st.columns(2, gap="large")
    left.markdown("**It assumes**\n" + "\n".join(f"- {line}" for line in ASSUMPTIONS))
    right.markdown("**It does not promise**\n" + "\n".join(f"- {line}" for line in NOT_GUARANTEED))
    return guarantee


def downloads(
    config: FolderSettings,
    calibration: "Calibration",
    guarantee: "Guarantee",
    found: "Study | None",
    settings: Settings,
    figure: Any,
    caption: str,
) -> None:
    from idecode_core.report.guarantees import guarantee_notebook, guarantee_report

    values: dict[str, Value] = {
        "n": min(settings.n, calibration.n_max),
        "aggregate": settings.aggregate,
        "smoothed": settings.smoothed,
        "seed": settings.seed,
    }
    download_row(
        "guarantee",
        report=lambda: guarantee_report(config.name, guarantee, found, values, figure, caption),
        notebook=lambda: guarantee_notebook(
            config.name, str(config.folder), calibration, guarantee, found, values
        ),
        key="g_export",
    )
