"""The guarantee card: the numbers to plan with, and an epsilon that keeps the rate for most calibration sets."""

from dataclasses import replace

import streamlit as st

from idecode_core.conformal import smallest_epsilon
from idecode_core.conformal.statement import ASSUMPTIONS, NOT_GUARANTEED, Guarantee
from ui.frame.links import one_of
from ui.frame.settings import use_epsilon

SURE = (0.8, 0.9, 0.95, 0.99)


def card(guarantee: Guarantee) -> Guarantee:
    """The guarantee card: the numbers to plan with, each once; assumptions, limits. Returns the guarantee as sure as asked for."""
    st.markdown("## The guarantee card")
    least, fewest, choice = st.columns([1, 1, 2.2], gap="large")
    with choice:
        sure = one_of(
            "How sure?", SURE, "g_sure", default=0.9, label_visibility="visible", format_func=lambda share: f"{share:.0%}",
            help="The share of calibration sets for which the stricter promise holds.",
        )  # fmt: skip
        guarantee = replace(guarantee, delta=round(1 - sure, 4))
        before = st.session_state.get("g_corrected_from")
        taken = before is not None and before[1] == guarantee.epsilon
        st.markdown(guarantee.kept_rate() if taken else guarantee.correction())
        use_corrected(guarantee)
    least.metric(
        f"Smallest epsilon, k = {guarantee.k:,}",
        f"{smallest_epsilon(guarantee.k):.3g}",
        help="Just above 1/(k+1): below it nothing can ever be flagged.",
    )
    fewest.metric(
        f"Fewest k, epsilon = {guarantee.epsilon:g}",
        f"{guarantee.k_needed:,}",
        help=f"With fewer calibration inputs nothing can ever be flagged. To be {sure:.0%} sure as well, it takes at least "
        f"{guarantee.k_needed_when_sure:,}. Move epsilon in the bar to plan for another.",
    )
    left, right = st.columns(2, gap="large")
    left.markdown("**It assumes**\n" + "\n".join(f"- {line}" for line in ASSUMPTIONS))
    right.markdown("**It does not promise**\n" + "\n".join(f"- {line}" for line in NOT_GUARANTEED))
    return guarantee


def use_corrected(guarantee: Guarantee) -> None:
    """The corrected epsilon, one click away; and the way back from it."""
    before: tuple[float, float] | None = st.session_state.get("g_corrected_from")
    if before and before[1] == guarantee.epsilon:
        label, epsilon, help_text = f"Back to {before[0]:g}", before[0], "The epsilon that you had before."
        now = None
    elif guarantee.corrected is not None:
        label, epsilon = "Use it", guarantee.corrected
        help_text = f"With it, {1 - guarantee.delta:.0%} of all calibration sets keep the true rate at or below {guarantee.epsilon:g}."
        now = (guarantee.epsilon, epsilon)
    else:
        return
    st.button(label, key="g_use", help=help_text, on_click=_use, args=(epsilon, now), icon=":material/check:")


def _use(epsilon: float, corrected_from: tuple[float, float] | None) -> None:
    st.session_state["g_corrected_from"] = corrected_from
    use_epsilon(epsilon)
