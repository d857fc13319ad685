"""The detector that judges the pictures of the Attack lab: the bar's, or one that knows such photographs."""

from collections.abc import Mapping

import streamlit as st

from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import get_configs
from ui.frame.detectors import in_order
from ui.frame.messages import escape
from ui.frame.settings import Chosen


def choose_judge(settings: Chosen, victim: FolderSettings) -> FolderSettings | None:
    """The settings of the detector that judges; a line where it is not the bar's. None when no detector can."""
    configs = get_configs()
    asked = configs[settings.detector]
    if suits(asked, victim):
        return asked
    stand_in = best_of(configs, victim)
    why = (
        f"**{escape(asked.name)}** listens to sounds, and what is attacked here are pictures."
        if asked.takes_sounds
        else f"**{escape(asked.name)}** knows other pictures ({escape(asked.summary)}), and would find all of these strange."
    )
    if stand_in is None:
        st.warning(
            f"{why} No detector here knows what the victim knows, so nothing is judged.",
            icon=":material/block:",
        )
        return None
    with st.container(horizontal=True, vertical_alignment="center", key="attack_judge"):
        st.caption(f"{why} Judged by **{escape(stand_in.name)}** instead.", width="stretch")
        st.button(
            f"Choose {stand_in.folder.name}",
            key="use_judge",
            type="tertiary",
            help="In the bar, for all pages.",
            on_click=_use,
            args=(stand_in.folder.name,),
        )
    return stand_in


def suits(config: FolderSettings, victim: FolderSettings) -> bool:
    """Whether a detector takes what the victim takes. One without a public dataset is somebody's own: they will know."""
    return not config.takes_sounds and config.dataset in ("", victim.dataset)


def best_of(configs: Mapping[str, FolderSettings], victim: FolderSettings) -> FolderSettings | None:
    """The first that is offered and knows what the victim knows."""
    offered = (configs[name] for name in in_order(configs))
    return next((c for c in offered if suits(c, victim) and c.dataset == victim.dataset), None)


def _use(name: str) -> None:
    st.session_state["detector"] = name
