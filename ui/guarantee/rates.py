"""The Guarantee page's fragment: a calibration size, and what follows from it. It slices stored scores only."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from idecode_core.conformal import exceeding_share
from idecode_core.conformal.calibration import Calibration, aggregate_scores
from idecode_core.conformal.observed import ObservedRate, Study, observed_rate, p_value_histogram, study
from idecode_core.conformal.statement import Guarantee
from idecode_core.folder.settings import FolderSettings
from idecode_core.folder.shelf import DRAWS_PER_RUN
from idecode_core.folder.stored import Stored, has_scores
from idecode_core.plots.guarantee import false_detection_rates, p_value_uniformity, rate_law
from idecode_core.quality.methods import runs
from idecode_core.report.content import Value
from idecode_core.report.guarantees import guarantee_notebook, guarantee_report
from ui.frame.cache import get_calibration, get_configs, stored_stamps
from ui.frame.detectors import in_order
from ui.frame.export import download_row
from ui.frame.links import LINKED, asked, explain_unmet_link, one_of
from ui.frame.look import show
from ui.frame.panels import JUDGED, panel
from ui.frame.scores import no_scores, stored_or_none, stored_or_said
from ui.frame.settings import Chosen, current
from ui.guarantee.card import card
from ui.guarantee.groups import groups, warning
from ui.guarantee.shifted import shifted

NAMES = {"g_k": "k", "g_span": "the range", "g_view": "the figure", "g_sure": "how sure"}
"""Keys of the page's own widgets, and what a notice calls them."""
KEYS = tuple(NAMES)
SIZES = (20, 50, 75, 100, 200, 300, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 7500, 10_000)
SPANS = {"0.1": "epsilon to 0.1", "0.5": "epsilon to 0.5"}
VIEWS = {"rate": "Rate", "minus": "Rate minus epsilon"}
REPEATS = 100


@panel("guarantee", on=(*JUDGED, "seed"))
def show_guarantee(config: FolderSettings) -> None:
    """Controls, the figure of rates against epsilon, the statement beside it; below, the details and the card."""
    settings = current()
    wanted = asked("guarantee", KEYS)
    notices = st.container()
    left, right = st.columns([2.1, 1], gap="large")
    stored = stored_or_said(config)
    calibration = stored.calibration if stored else get_calibration(config)
    with left:
        size, beside = st.columns(2, gap="medium", vertical_alignment="bottom")
        k, top, view = controls(calibration.k, wanted.get("g_k", ""), size)
    guarantee = Guarantee(k, settings.epsilon)
    study = study_of(stored, k, top, settings) if stored else None
    with beside:
        others = rates_of_others(config, k, top, settings) if stored else {}
    drawn = figures(guarantee, study, top, others)
    with left:
        st.markdown(
            "## False detection rate (FDR) against epsilon",
            help="The share of inputs that belong and are flagged all the same: false alarms. The paper calls it FDR; it is not the false "
            f"discovery rate, which is the share of the flagged inputs that belong. {how_drawn(guarantee, study)}",
        )
        figure, caption = drawn[view]()
        show(figure, key=f"g_{view}", look_for=caption)
    with right:
        statement(guarantee, study, calibration.k)
    details(guarantee, study)
    n = draws_used(calibration, settings)
    shifted(config, stored, calibration, n, settings)
    worst = groups(stored, n, settings.epsilon, settings.aggregate)
    guarantee = card(guarantee)
    downloads(config, calibration, guarantee, study, settings, drawn)
    if stored is None:
        no_scores(config)
    with notices:
        if worst is not None:
            st.warning(warning(worst, settings.epsilon), icon=":material/groups:")
        shown = {key: _as_in_link(key) for key in KEYS}
        other = {
            key: text for key, text in wanted.items() if text.replace(",", "") != shown[key].replace(",", "")
        }
        explain_unmet_link(
            "guarantee", other, shown, dict.fromkeys(KEYS, "which is not offered for this detector"), NAMES
        )


def _as_in_link(key: str) -> str:
    """A widget's value as the URL has it."""
    value = st.session_state[key]
    if key == "g_k":
        return f"{value:,}"
    if key == "g_sure":
        return f"{value:.0%}"
    return {"g_span": SPANS, "g_view": VIEWS}[key][value]


def controls(pool: int, wanted: str, size: Any) -> tuple[int, float, str]:
    """The calibration size, in its place, how far epsilon goes, and which of the two figures is shown; `wanted` is a link's size."""
    sizes = [size for size in SIZES if size < pool] + [pool]
    by_hand = {str(size): size for size in sizes}  # a link by hand has no comma
    if wanted in by_hand:
        st.session_state["g_k"] = by_hand[wanted]
    if st.session_state.get("g_k", pool) not in sizes:  # of another detector
        st.session_state["g_k"] = pool
    k = size.select_slider(
        "Calibration size, k", sizes, pool, key="g_k", **LINKED, format_func=lambda size: f"{size:,}",
        help=f"How many of the {pool:,} calibration inputs are used. Fewer make the rate of a single set vary more.",
    )  # fmt: skip
    with st.container(horizontal=True):
        view = one_of("Figure", VIEWS, "g_view", format_func=VIEWS.__getitem__)
        span = one_of("Range", SPANS, "g_span", default="0.5", format_func=SPANS.__getitem__)
    return int(k), float(span), str(view)


def study_of(stored: Stored, k: int, top: float, settings: Chosen) -> Study:
    """What calibration sets of size k do to the iD test set, in the precision of its stored scores."""
    n = draws_used(stored.calibration, settings)
    return _study(stored, k, top, n, settings.aggregate, settings.smoothed, settings.seed)


def draws_used(calibration: Calibration, settings: Chosen) -> int:
    """n, as far as the stored scores go; the same on Evaluate."""
    return min(settings.n, calibration.n_max, DRAWS_PER_RUN)


@st.cache_data(
    show_spinner=False,
    max_entries=500,
    hash_funcs={Stored: lambda stored: (str(stored.folder), stored_stamps(stored.settings))},
)
def _study(stored: Stored, k: int, top: float, n: int, aggregate: str, smoothed: bool, seed: int) -> Study:
    return study(
        stored.calibration.scores(n, aggregate),
        aggregate_scores(runs(stored.id_set.score_vectors, n)[0], aggregate),
        k=k,
        epsilons=epsilons(top),
        repeats=REPEATS,
        smoothed=smoothed,
        generator=np.random.default_rng(seed),
    )


def epsilons(top: float) -> list[float]:
    """Ten of them, up to `top`."""
    return [round(top * i / 10, 4) for i in range(1, 11)]


def rates_of_others(
    config: FolderSettings, k: int, top: float, settings: Chosen
) -> dict[str, Sequence[ObservedRate]]:
    """Other detectors to lay over this one: name -> what was observed with as many calibration inputs, or all that it has."""
    configs = get_configs()
    offered = [
        name for name in in_order(configs) if name != config.folder.name and has_scores(configs[name].folder)
    ]
    if "g_beside" in st.session_state:
        st.session_state["g_beside"] = [name for name in st.session_state["g_beside"] if name in offered]
    chosen = st.multiselect(
        "Detectors beside it", offered, key="g_beside", **LINKED, max_selections=4, placeholder="Lay other detectors over it",
        label_visibility="collapsed",
    )  # fmt: skip
    by_name: dict[str, Sequence[ObservedRate]] = {}
    for name in chosen:
        if (stored := stored_or_none(configs[name])) is not None:
            by_name[name] = study_of(stored, min(k, stored.calibration.k), top, settings).observed
    return by_name


def how_drawn(guarantee: Guarantee, study: Study | None) -> str:
    """What the marks are, for who wants to know."""
    if study is None:
        return "Grey: the true rates of nine in ten calibration sets."
    return (
        f"Dots: {guarantee.k:,} calibration inputs taken once, {len(study.p_values):,} test inputs. Boxes: {len(study.resampled)} sets "
        "of k drawn with replacement from the calibration inputs (whiskers 5% to 95%). All use one test set, so its chance "
        "deviations move them together."
    )


def figures(
    guarantee: Guarantee, study: Study | None, top: float, others: Mapping[str, Sequence[ObservedRate]]
) -> dict[str, Callable[[], tuple[Any, str]]]:
    """Both figures with their captions, by the name of the view, each drawn when it is asked for."""
    here = observed(guarantee, study) if study is not None else None
    parts: dict[str, Any] = {
        "resampled": None if study is None else study.resampled,
        "observed": () if study is None else study.observed,
        "epsilon": guarantee.epsilon,
        "here": here,
        "others": others,
    }
    captions = {
        "rate": "On average the rate stays on or below the purple line.",
        "minus": "On average the rate stays at 0 or below; what is above 0 is above the bound.",
    }
    chance = (
        "One calibration set may lie above it, as far as the grey band goes; a larger k narrows the band."
        if study is None
        else "One dot above it but inside the grey band is chance, one above the band is not."
    )

    def drawn(view: str) -> tuple[Any, str]:
        figure = false_detection_rates(guarantee.k, epsilons(top), **parts, minus=view == "minus")
        return figure, f"{captions[view]} {chance}"

    return {"rate": lambda: drawn("rate"), "minus": lambda: drawn("minus")}


def statement(guarantee: Guarantee, study: Study | None, pool: int) -> None:
    """What is promised, in words, beside the figure; what was seen, and whether that is chance."""
    st.markdown("## What is promised")
    st.markdown(guarantee.statement())
    st.markdown("## What happens with one set")
    st.markdown(guarantee.one_set())
    if study is None:
        return
    seen = observed(guarantee, study)
    which = (
        ""
        if guarantee.k == pool
        else f" with {guarantee.k:,} of the {pool:,} calibration inputs; Evaluate uses all"
    )
    st.markdown(
        f"Observed here: **{seen.flagged:,} of {seen.total:,}** iD test inputs flagged, **{seen.rate:.2%}**{which}. "
        f"{guarantee.chance(seen)}"
    )


def observed(guarantee: Guarantee, study: Study) -> ObservedRate:
    return observed_rate(study.p_values, guarantee.epsilon)


def details(guarantee: Guarantee, study: Study | None) -> None:
    """The law at this epsilon, and whether iD p-values are uniform."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("## One calibration set, at your epsilon")
        if guarantee.can_flag:
            caption = (
                f"The exact law of the true rate over calibration sets of {guarantee.k:,}: Beta({guarantee.law.J:,}, "
                f"{guarantee.k + 1 - guarantee.law.J:,}). The orange part, {exceeding_share(guarantee.law):.0%}, lies above epsilon."
            )
            show(rate_law(guarantee.law), key="g_law", look_for=caption)
        else:
            st.info("Nothing can be flagged, so the rate is always 0.", icon=":material/info:")
    with right:
        st.markdown("## Are p-values uniform on data that belongs?")
        if study is None:
            st.caption("This needs the scores of an iD test set.")
        elif guarantee.k < 19:
            st.caption("This needs at least 19 calibration inputs.")
        else:
            histogram = p_value_histogram(study.p_values, guarantee.k)
            outside = int(((histogram.counts < histogram.low) | (histogram.counts > histogram.high)).sum())
            caption = (
                f"Bars should be level, between the grey lines; {outside} of {len(histogram.counts)} lie outside, about one would by "
                "chance. A tall left bar: the test inputs are stranger."
            )
            show(p_value_uniformity(histogram), key="g_uniform", look_for=caption)


def downloads(
    config: FolderSettings,
    calibration: Calibration,
    guarantee: Guarantee,
    study: Study | None,
    settings: Chosen,
    drawn: dict[str, Callable[[], tuple[Any, str]]],
) -> None:
    values: dict[str, Value] = {
        "n": draws_used(calibration, settings),
        "aggregate": settings.aggregate,
        "smoothed": settings.smoothed,
        "seed": settings.seed,
    }
    download_row(
        "guarantee",
        report=lambda: guarantee_report(
            config.name, guarantee, study, values, [draw() for draw in drawn.values()]
        ),
        notebook=lambda: guarantee_notebook(
            config.name, str(config.folder), calibration, guarantee, study, values
        ),
        key="g_export",
        zipped=False,
    )
