"""The settings that all pages share: they survive changing pages and are in the URL, so a link reproduces the view.

Each widget's key is also its name in the URL; Streamlit keeps the two in step and leaves out what is at its default.
Where a link asks for something that cannot be shown, a notice says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from idecode_core.folder.settings import FolderSettings
from ui.frame import links
from ui.frame.cache import get_configs
from ui.frame.detectors import DEFAULT_DETECTOR, describe, in_order, menu
from ui.frame.links import asked, carry_over, keep, link_value
from ui.frame.messages import escape
from ui.frame.panels import Live, page_begins, rerun_panels

DEFAULT_N = 5
DEFAULT_EPSILON = 0.05
EPSILONS = tuple(
    sorted(
        {i / 1000 for i in range(1, 20)}
        | {i / 200 for i in range(4, 20)}
        | {i / 100 for i in range(10, 30, 2)}
        | {0.3, 0.4, 0.5}
    )
)
LEAST_EPSILON, LARGEST_EPSILON = 1e-6, 0.99
AGGREGATES = ("sum", "mean", "max", "sum_of_logs")  # as in conformal.calibration, which is slow to import
P_KINDS = ("conservative", "smoothed")
DEFAULTS = {
    "detector": DEFAULT_DETECTOR,
    "n": DEFAULT_N,
    "epsilon": DEFAULT_EPSILON,
    "aggregate": AGGREGATES[0],
    "p": P_KINDS[0],
    "seed": 0,
}
KEYS = tuple(DEFAULTS)


@dataclass(frozen=True)
class Settings:
    """What the visitor chose in the sidebar."""

    detector: str  # name of the folder below the checkpoint root
    n: int
    epsilon: float
    aggregate: str
    smoothed: bool
    seed: int


def sidebar(live: Live | None = None) -> Settings:
    """Draw the settings in the sidebar and return them.

    A page with panels names in `live` those that a setting reruns, for instance {"epsilon": ["verdict"]}; inside
    such a panel read `current()`, because its arguments are those of the last full run.
    """
    enter_by_app()
    page_begins()
    carry_over(KEYS, DEFAULTS)
    wanted = asked("settings", KEYS)
    live = live or {}
    configs = get_configs()
    if st.session_state.get("detector", next(iter(configs))) not in configs:
        del st.session_state["detector"]  # its folder is gone

    with st.sidebar:
        st.selectbox(
            "Detector",
            in_order(configs),
            help="A trained model with its calibration. What it was trained on is 'in-distribution' for it.",
            key="detector",
            bind="query-params",
        )
        config = configs[st.session_state["detector"]]
        describe(config)
        menu(configs)
        settle_n(config.n_max)
        if config.n_max == 1:
            wanted.pop("n", None)  # the sidebar says why there is none
        # Also where it is written in another way than Streamlit would.
        if (epsilon := usable_epsilon(wanted.get("epsilon"))) is not None:
            st.session_state["epsilon"] = epsilon
        _sliders(config.n_max, live)
        with st.expander("For experts", icon=":material/tune:"):
            _kinds(live)
            st.number_input(
                "Seed",
                0,
                2**31 - 1,
                0,
                help="Chooses the random transforms, together with the input's content. Same input and seed, same answer.",
                key="seed",
                bind="query-params",
            )
    say_unmet(wanted, config)
    return current()


def settle_n(n_max: int) -> None:
    """Before the slider is drawn: n within its range. Where there is none, n waits for a detector that has one."""
    st.session_state["n_max"] = n_max
    if n_max == 1:  # else Streamlit forgets it with the slider
        st.session_state["n"] = st.session_state.get("n", DEFAULT_N)
    elif st.session_state.get("n", 1) > n_max:
        st.session_state["n"] = n_max


def say_unmet(wanted: Mapping[str, str], config: FolderSettings) -> None:
    """A sentence for each setting that a link asks for and that is not what is shown."""
    why = {
        "detector": "which is not here",
        "n": f"but {escape(config.name)} has 1 to {config.n_max} transforms",
        "epsilon": f"but it must be a share between {LEAST_EPSILON:g} and {LARGEST_EPSILON:g}",
        "aggregate": f"but it must be one of {', '.join(map(escape, AGGREGATES))}",
        "p": f"but it must be one of {', '.join(P_KINDS)}",
        "seed": "but it must be a whole number from 0 on",
    }
    shown = {key: st.session_state[key] for key in KEYS}
    links.say_unmet("settings", wanted, shown, why)


def usable_epsilon(text: object) -> float | None:
    """An epsilon of a link or of the exact entry, with as many digits as a link carries; None when it is none."""
    try:
        number = float(str(text))
    except ValueError:
        return None
    if not LEAST_EPSILON <= number <= LARGEST_EPSILON:
        return None
    return float(f"{number:g}")


# Fragments, because of what Streamlit does before the callback of a widget: outside of a fragment it takes the whole page for
# old, and forgets the downloads and sounds that are on it.
@st.fragment(key="sliders")
def _sliders(n_max: int, live: Live) -> None:
    if n_max == 1:
        st.caption(
            "n = 1: this method looks at the input once, as it is, so there are no transforms to draw."
        )
    else:
        st.slider(
            "Transforms, n",
            1,
            n_max,
            min(DEFAULT_N, n_max),
            help="How many random transforms of the input are scored. More make the answer steadier.",
            **_link("n", live),
        )
    asked_for = usable_epsilon(link_value("epsilon")), st.session_state.get("epsilon")
    st.select_slider(
        "False alarms allowed, epsilon",
        sorted({*EPSILONS, *(epsilon for epsilon in asked_for if epsilon is not None)}),
        DEFAULT_EPSILON,
        format_func=lambda epsilon: f"{epsilon:g}",
        help="Of in-distribution inputs, at most this share is flagged, on average. An input is flagged when p < epsilon.",
        **_link("epsilon", live, "sliders"),
    )
    st.session_state["exact_epsilon"] = st.session_state["epsilon"]
    st.number_input(
        "epsilon, exactly",
        LEAST_EPSILON,
        LARGEST_EPSILON,
        step=0.001,
        format="%g",
        help="Any value; the slider above has the usual ones.",
        key="exact_epsilon",
        on_change=_take_exact_epsilon,
        args=(tuple(live.get("epsilon", ())),),
    )


def _take_exact_epsilon(panels: tuple[str, ...]) -> None:
    use_epsilon(st.session_state["exact_epsilon"], *(("sliders", *panels) if panels else ()))


def use_epsilon(epsilon: float, *panels: str) -> None:
    """For callbacks: set epsilon and rerun these panels. Other panels than the slider's own have the whole page rerun:

    a fragment that runs before the slider's would use up the news that its value has changed.
    """
    if (usable := usable_epsilon(epsilon)) is not None:
        st.session_state["epsilon"] = usable
    rerun_panels(*panels)


@st.fragment(key="kinds")
def _kinds(live: Live) -> None:
    st.selectbox(
        "Aggregate, F",
        AGGREGATES,
        help="How the n scores of one input become one score. The paper sums; any choice keeps the guarantee.",
        **_link("aggregate", live),
    )
    st.selectbox(
        "p-value",
        P_KINDS,
        help="Conservative, as in the paper, counts ties against the flag. Smoothed breaks ties at random, so that p is exactly "
        "uniform on in-distribution data.",
        **_link("p", live),
    )


def _link(name: str, live: Live, *also: str) -> dict[str, Any]:
    """Key, URL and callback of one widget; `also` are panels that are drawn again together with the page's own."""
    panels = live.get(name, ())
    return {
        "key": name,
        "bind": "query-params",
        "on_change": partial(rerun_panels, *((*panels, *also) if panels else ())),
    }


def current() -> Settings:
    """The settings as they are now; also right inside a fragment and in callbacks."""
    state = st.session_state
    keep(KEYS)
    return Settings(
        detector=state["detector"],
        n=min(int(state["n"]), int(state.get("n_max", state["n"]))),
        epsilon=float(state["epsilon"]),
        aggregate=state["aggregate"],
        smoothed=state["p"] == "smoothed",
        seed=int(state["seed"]),
    )


def enter_by_app() -> None:
    """Run app.py first when a link to one page is the first visit to a new server.

    Until st.navigation has been called once, Streamlit takes a folder named pages/ for its older kind of app and
    runs the page alone, without navigation and page settings.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
