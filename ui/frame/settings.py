"""Settings that all pages share, in a bar that stays in view. They survive changing pages and are in the URL, so a link
reproduces the view.

Each widget's key is also its name in the URL; Streamlit keeps the two in step and leaves out what is at its default.
Where a link asks for something that cannot be shown, a notice says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from idecode_core.conformal.calibration import AGGREGATES as KNOWN
from idecode_core.conformal.settings import Settings
from idecode_core.folder.settings import FolderSettings
from ui.frame import links, session
from ui.frame.cache import get_configs
from ui.frame.detectors import choose_detector, in_order
from ui.frame.links import LINKED, asked, copy_link, link_value
from ui.frame.messages import escape
from ui.frame.panels import page_begins, rerun_on

DEFAULT_N = 5
DEFAULT_EPSILON = Settings().epsilon
EPSILONS = tuple(
    sorted(
        {i / 1000 for i in range(1, 20)}
        | {i / 200 for i in range(4, 20)}
        | {i / 100 for i in range(10, 30, 2)}
        | {0.3, 0.4, 0.5}
    )
)
LEAST_EPSILON, LARGEST_EPSILON = 1e-6, 0.99
AGGREGATES = tuple(KNOWN)
P_KINDS = ("conservative", "smoothed")
KEYS = ("detector", "n", "epsilon", "aggregate", "p", "seed")


@dataclass(frozen=True)
class Chosen(Settings):
    """What the visitor chose in the bar: the shared settings, n within what the detector has, and the detector."""

    n: int = DEFAULT_N
    aggregate: str = AGGREGATES[0]
    detector: str = ""  # name of the folder below the checkpoint root


def settings_bar(title: str = "", draws: int | None = None) -> Chosen:
    """Draw the settings above the page, under its title, and return them. Inside of a panel read `current()`: its
    arguments are those of the last full run. `draws` is for a page that shows scores of a visitor's own: they have so many per
    point, and no detector of ours has to do with them."""
    enter_by_app(has_bar=True)
    page_begins()
    session.enter()
    wanted = asked("settings", KEYS)
    links.restore("settings")
    configs = get_configs()
    offered = in_order(configs)
    if wanted.get("detector") in configs:
        st.session_state["detector"] = wanted["detector"]
    elif st.session_state.get("detector") not in configs:
        st.session_state["detector"] = offered[0]
    with st.container(key="bar", horizontal=True, vertical_alignment="bottom", gap="medium"):
        if title:
            st.title(title, width="content")
        if draws is None:
            with st.container(key="bar_detector", width="stretch", gap=None):
                choose_detector(configs, offered)
        config = configs[st.session_state["detector"]]
        n_max = draws or config.n_max
        st.session_state["n_max"] = n_max
        if n_max == 1:  # n waits for a detector that has one, and the bar says why there is none
            wanted.pop("n", None)
        elif st.session_state.get("n", 1) > n_max:
            st.session_state["n"] = n_max
        # Also where it is written in another way than Streamlit would.
        if (epsilon := usable_epsilon(wanted.get("epsilon"))) is not None:
            st.session_state["epsilon"] = epsilon
        if draws != 1:
            with st.container(key="bar_n", width="stretch"):
                _n_slider(n_max)
        with st.container(key="bar_epsilon", width="stretch"):
            _epsilon_slider()
        with st.container(key="bar_exact", width=104):
            _exact_epsilon()
        with st.popover(
            "", icon=":material/tune:", help="For experts: F, p-value, seed", key="experts", type="tertiary"
        ):
            _kinds()
        copy_link()
    explain_unmet_link(wanted, config)
    session.in_sidebar()
    links.keep("settings", KEYS)
    return current()


def explain_unmet_link(wanted: Mapping[str, str], config: FolderSettings) -> None:
    """A sentence for each setting that a link asks for and that is not what is shown."""
    why = {
        "detector": "which is not here",
        "n": f"but {escape(config.name)} has 1 to {config.n_max} transforms",
        "epsilon": f"but it must be a share between {LEAST_EPSILON:g} and {LARGEST_EPSILON:g}",
        "aggregate": f"but it must be one of {', '.join(map(escape, AGGREGATES))}",
        "p": f"but it must be one of {', '.join(P_KINDS)}",
        "seed": "but it must be a whole number from 0 on",
    }
    shown = {key: st.session_state.get(key) for key in KEYS}
    links.explain_unmet_link("settings", wanted, shown, why)


def usable_epsilon(text: object) -> float | None:
    """An epsilon of a link or of the exact entry; None when it is none."""
    return links.number_in(text, LEAST_EPSILON, LARGEST_EPSILON)


# Fragments, because of what Streamlit does before the callback of a widget: outside of a fragment it takes the whole page for
# old, and forgets the downloads and sounds that are on it. A slider is never drawn again by its own move: what arrives while
# the visitor presses on would put the handle back.
@st.fragment(key="n_slider")
def _n_slider(n_max: int) -> None:
    if n_max == 1:
        st.caption("n = 1: this method looks at the input once, as it is.")
    else:
        st.slider(
            "Transforms, n",
            1,
            n_max,
            min(DEFAULT_N, n_max),
            help="How many random transforms of the input are scored. More make the answer steadier.",
            **_setting("n"),
        )


@st.fragment(key="epsilon_slider")
def _epsilon_slider() -> None:
    asked_for = usable_epsilon(link_value("epsilon")), st.session_state.get("epsilon")
    st.select_slider(
        "False alarms, epsilon",
        sorted({*EPSILONS, *(epsilon for epsilon in asked_for if epsilon is not None)}),
        DEFAULT_EPSILON,
        format_func=lambda epsilon: f"{epsilon:g}",
        help="Of in-distribution inputs, at most this share is flagged, on average. An input is flagged when p < epsilon.",
        key="epsilon",
        on_change=_slid,
        **LINKED,
    )


def _slid() -> None:
    st.session_state["epsilon_slid"] = True
    rerun_on("epsilon", first=("exact_epsilon",))


@st.fragment(key="exact_epsilon")
def _exact_epsilon() -> None:
    st.session_state.pop("epsilon_slid", None)
    st.session_state["exact"] = st.session_state["epsilon"]
    st.number_input(
        "epsilon, exactly",
        LEAST_EPSILON,
        LARGEST_EPSILON,
        step=0.001,
        format="%g",
        key="exact",
        on_change=_typed,
    )


def _typed() -> None:
    """Nobody types and slides at once: what comes together with a move of the slider is what the box held before, and late."""
    if not st.session_state.pop("epsilon_slid", False):
        _set_epsilon(st.session_state["exact"])
        rerun_on("epsilon", first=("epsilon_slider", "exact_epsilon"))


def use_epsilon(epsilon: float) -> None:
    """For callbacks of other widgets: set epsilon and run the whole page. A fragment that runs before the slider's would use up
    the news that its value has changed."""
    _set_epsilon(epsilon)
    st.rerun()


def _set_epsilon(epsilon: float) -> None:
    if (usable := usable_epsilon(epsilon)) is not None:
        st.session_state["epsilon"] = usable


@st.fragment(key="kinds")
def _kinds() -> None:
    st.selectbox(
        "Aggregate, F",
        AGGREGATES,
        help="How the n scores of one input become one score. The paper sums; any choice keeps the guarantee.",
        **_setting("aggregate"),
    )
    st.selectbox(
        "p-value",
        P_KINDS,
        help="Conservative, as in the paper, counts ties against the flag. Smoothed breaks ties at random, so that p is exactly "
        "uniform on in-distribution data.",
        **_setting("p"),
    )
    st.number_input(
        "Seed",
        0,
        2**31 - 1,
        0,
        help="Chooses the random transforms, together with the input's content. Same input and seed, same answer.",
        **_setting("seed"),
    )


def _setting(name: str) -> dict[str, Any]:
    """Key, URL and callback of one widget."""
    return {"key": name, "on_change": lambda: rerun_on(name), **LINKED}


def current() -> Chosen:
    """The settings as they are now; also right inside a fragment and in callbacks."""
    state = st.session_state
    return Chosen(
        detector=state["detector"],
        n=min(int(state.get("n", DEFAULT_N)), int(state["n_max"])),
        epsilon=float(state["epsilon"]),
        aggregate=state["aggregate"],
        smoothed=state["p"] == "smoothed",
        seed=int(state["seed"]),
    )


def enter_by_app(has_bar: bool = False) -> None:
    """Run app.py first when a link to one page is the first visit to a new server. A page without the bar of settings has its
    *Copy link* in the sidebar.

    Until st.navigation has been called once, Streamlit takes a folder named pages/ for its older kind of app and runs the page
    alone, without navigation and page settings. Asked of this visit, since another one that came at the same moment may have called it
    in between.
    """
    run = get_script_run_ctx()
    if "visit" not in st.session_state and run is not None and Path(run.main_script_path).name == "app.py":
        PagesManager.uses_pages_directory = False
        st.rerun()
    session.take_token()
    if not has_bar:
        with st.sidebar:
            copy_link()
