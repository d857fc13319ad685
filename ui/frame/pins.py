"""Pinned runs: a detector with settings and its numbers, kept beside others to see what differs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from idecode_core.session.store import Pinned
from ui.frame.session import opened, save
from ui.frame.settings import current

if TYPE_CHECKING:
    from idecode_core.conformal.judge import Judgement


def pin_button(title: str, detector: str, settings: Mapping[str, Any], numbers: Mapping[str, float]) -> None:
    """Pins the run on the page."""
    run = Pinned(title, detector, dict(settings), {key: float(value) for key, value in numbers.items()})
    st.button(
        "Pin this run",
        icon=":material/push_pin:",
        key="pin_run",
        help="Keeps its numbers here, beside those of other runs, to see what differs.",
        disabled=run in pinned(),
        on_click=_pin,
        args=(run,),
    )


def pinned_runs() -> None:
    """All pinned runs beside each other, with what differs; nothing where there are none."""
    if runs := pinned():
        st.markdown("#### Pinned runs")
        st.dataframe(side_by_side(runs), hide_index=True, key="pinned_runs")
        st.button("Unpin all", key="unpin", type="tertiary", on_click=_unpin)


def pin_judgement(title: str, judgement: "Judgement") -> None:
    """Pin how many of the batch on the screen are flagged."""
    settings = dict(vars(current()))
    numbers = {
        "inputs": len(judgement),
        "flagged": judgement.is_ood.sum(),
        "median p": np.median(judgement.p_values),
    }
    pin_button(title, settings.pop("detector"), settings, numbers)


def pinned() -> tuple[Pinned, ...]:
    session = opened()
    return session.pinned if session is not None else tuple(st.session_state.get("pins", ()))


def _pin(run: Pinned) -> None:
    if (session := opened()) is not None:
        session.pin(run.title, run.detector, run.settings, run.numbers)
        save(session)
    else:
        st.session_state["pins"] = (*pinned(), run)


def _unpin() -> None:
    if (session := opened()) is not None:
        for run in session.pinned:
            session.unpin(run)
        save(session)
    st.session_state["pins"] = ()


def side_by_side(runs: Sequence[Pinned]) -> list[dict[str, Any]]:
    """One row per run: of the settings those that differ between the runs, and all numbers.

    >>> runs = [Pinned("t", "d", {"n": n, "seed": 0}, {"flagged": 3.0}) for n in (5, 20)]
    >>> side_by_side(runs)[1]
    {'run': 't', 'detector': 'd', 'n': 20, 'flagged': 3.0}
    """
    keys = list(dict.fromkeys(key for run in runs for key in run.settings))
    differing = [key for key in keys if len({str(run.settings.get(key)) for run in runs}) > 1]
    return [
        {
            "run": run.title,
            "detector": run.detector,
            **{key: run.settings.get(key) for key in differing},
            **run.numbers,
        }
        for run in runs
    ]
