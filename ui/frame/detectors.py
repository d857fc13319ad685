"""The detectors that the sidebar offers: their order, what each knows, how good it is, and the device it runs on."""

from collections.abc import Mapping
from typing import Any, NoReturn

import streamlit as st

from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import device_name
from ui.frame.messages import escape
from ui.frame.strength import known_strength, strength_of

DEFAULT_DETECTOR = "fashion-rotations"
FOR_PHOTOGRAPHS = "cifar10-merged"
"""The one to begin with for photographs: the best mean over the OOD sets of RESULTS.md."""


def in_order(configs: Mapping[str, FolderSettings]) -> list[str]:
    """Names of detectors as they are offered: the one to begin with, then those of pictures, the one to begin with for
    photographs first, then those of sounds."""
    return sorted(
        configs,
        key=lambda name: (
            name != DEFAULT_DETECTOR,
            configs[name].takes_sounds,
            name != FOR_PHOTOGRAPHS,
            name,
        ),
    )


def describe(config: FolderSettings) -> None:
    """What the chosen detector knows, and how good it is; the latter once it is known, see `show_device`."""
    place, strength = st.empty(), str(known_strength(config) or "")
    st.session_state["strength_place"] = None if strength else (place, config)
    _describe(place, config, strength)


def _describe(place: Any, config: FolderSettings, strength: str) -> None:
    facts = (f"In-distribution: {escape(config.summary or 'see its card')}", f"k = {config.k:,}", strength)
    place.caption(" · ".join(fact for fact in facts if fact))


def menu(configs: Mapping[str, FolderSettings]) -> None:
    """All detectors, pictures and sounds apart: what each knows and how good it is, each a click away."""
    with st.popover(
        "What each detector knows", icon=":material/list:", type="tertiary", key="menu", on_change="rerun"
    ) as opened:
        if not opened.open:  # the stored scores of all detectors are read when somebody wants to know
            return
        for title, sounds in (("Pictures", False), ("Sounds", True)):
            names = [name for name in in_order(configs) if configs[name].takes_sounds == sounds]
            if names:
                st.markdown(f"#### {title}")
            with st.container(gap="xxsmall"):
                for name in names:
                    st.button(
                        f"**{escape(name)}** · {escape(one_line(configs[name]))}",
                        key=f"menu_{name}",
                        type="tertiary",
                        disabled=name == st.session_state["detector"],
                        on_click=_choose_detector,
                        args=(name,),
                    )
        st.caption(
            "AUROC in percent, the mean over the stored OOD sets; 50 is guessing, 100 never errs. Below 80 is weak: many strange "
            "inputs pass."
        )


def one_line(config: FolderSettings) -> str:
    """What a detector knows, and how good it is."""
    strength = strength_of(config)
    return f"{config.summary or 'see its card'} · {strength or 'no test scores are stored'}"


def _choose_detector(name: str) -> None:
    st.session_state["detector"] = name
    st.session_state["menu"] = False


def forget_place() -> None:
    """Before a page: a run that was interrupted, by a click on another page, has left a place in a sidebar that is no more."""
    st.session_state.pop("strength_place", None)


def show_device() -> None:
    """What is known only after the page: how good the detector is, and, at the foot of the sidebar, the device it runs on."""
    if known := st.session_state.pop("strength_place", None):
        place, config = known
        if strength := strength_of(config):
            _describe(place, config, str(strength))
    if name := device_name():
        st.sidebar.caption(f"Runs on the {name}")


def wait_for_input() -> NoReturn:
    """For a page that has nothing to judge yet: it ends here, with what the frame would show after it."""
    show_device()
    st.stop()
