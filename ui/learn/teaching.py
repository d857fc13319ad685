"""What the teaching pages share: a seed that can be re-drawn, verdicts, questions for the class."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from ui.frame.export import download_row

if TYPE_CHECKING:
    from idecode_core.report import Export

LINKED: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
"""For widgets: the value is in the URL under the widget's key, and stays while another step, view or page is shown."""

CLASS_PLAN = """
| minutes | page | what to do |
|---|---|---|
| 0 to 5 | How it works, 1 Rank | Let the class count. Ask for the chance of being the strangest of 20. |
| 5 to 10 | 2 p-value | Work out one p-value on the board. Which values are possible? |
| 10 to 17 | 3 Threshold | Move the newcomer until it is flagged. Then ε = 0.05: why is nothing ever flagged? |
| 17 to 25 | 4 Model, 5 Draws | Check one error by hand. Compare n = 1 with n = 20. |
| 25 to 28 | 6 Algorithm | Read it aloud, line by line. |
| 28 to 38 | Break it | Vote first, then look. Three switches: shared draw, OOD in the calibration set, naive Fisher. |
| 38 to 43 | Many and streams | Two rates that sound alike. Then drag the change of the stream. |
| 43 to 45 | Inspect | A picture of your own. What does the verdict promise, and what not? |

The seed is in the link: prepare a view at home, send the link, and the class sees the same numbers.
"""


def seed_control(key: str, *, default: int = 0, what: str = "Draw again") -> int:
    """A seed with a button that moves on to the next one. It is in the URL, so a link shows the same draw."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = st.number_input(
            "Seed",
            0,
            99_999,
            default,
            key=key,
            **LINKED,
            width=90,
            help="All chance on this page comes from this number: the same seed shows the same draw. It is in the link.",
        )
        st.button(what, key=f"{key}_next", icon=":material/casino:", on_click=_next_seed, args=(key,))
    return int(seed)


def _next_seed(key: str) -> None:
    st.session_state[key] = (int(st.session_state[key]) + 1) % 100_000


def class_plan() -> None:
    """Forty-five minutes with the teaching pages."""
    with st.expander("A 45-minute class from these pages", icon=":material/schedule:"):
        st.markdown(CLASS_PLAN)


def ask_the_class(*questions: tuple[str, str]) -> None:
    """Questions to ask, each with the answer one hopes for."""
    with st.expander("Ask the class", icon=":material/groups:"):
        for question, answer in questions:
            st.markdown(f"**{question}**")
            st.caption(answer)


def export_row(stem: str, export: "Callable[[], Export]") -> None:
    """Download what is on the screen; it is put together on a click only."""
    download_row(stem, report=lambda: export().report, notebook=lambda: export().notebook, key=stem)


def verdict(flagged: bool, sentence: str) -> None:
    """The answer as a sentence, in the colour that its point has in the figures. Formulas do not break over lines."""
    for sign in "=<≥":
        sentence = sentence.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    st.markdown(f"### :{'orange' if flagged else 'blue'}[{sentence}]")


def percent(share: float) -> str:
    """A rate as the pages write it: 0.0512 -> "5.1 %", with a space that does not break."""
    return f"{100 * share:.1f}\u00a0%"
