"""What the teaching pages share: a seed that can be re-drawn, verdicts, questions and a plan for the class, the presenter view."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import streamlit as st

from idecode_core.simulate.breaking import SWITCHES
from ui.frame.catalogue import PAGES, link
from ui.frame.links import asked, say_unmet
from ui.frame.look import PRESENT, PRESENTER_STYLE
from ui.frame.settings import enter_by_app

LINKED: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
"""For widgets: the value is in the URL under the widget's key, and stays while another step, view or page is shown."""
OWN_KEYS = ("how_", "break_", "batch_", "stream_", "play_", "step", "view")
"""How the keys of these pages' widgets begin; the rest of a link is for other pages."""


class PlanRow(NamedTuple):
    """Some minutes of a class: what to do, and the page that shows it, in the state it begins with."""

    minutes: str
    page: str  # a file of pages/
    label: str
    link: str
    """The state, as in the page's URL."""
    todo: str

    @property
    def state(self) -> dict[str, str]:
        return dict(parse_qsl(self.link))


PLAN = tuple(
    PlanRow(*(cell.strip() for cell in row.split("|")))
    for row in f"""
    0 to 5   | how_it_works     | 1 Rank            | step=1 Rank&how_lean=14.0                         | Let the class count. Ask for the chance of being the strangest of 20.
    5 to 10  | how_it_works     | 2 p-value         | step=2 p-value&how_lean=14.0                      | Work out one p-value on the board. Which values are possible?
    10 to 14 | how_it_works     | 3 Threshold       | step=3 Threshold&how_epsilon=0.1                  | Move the newcomer until it is flagged.
    14 to 17 | how_it_works     | ε = 0.05          | step=3 Threshold&how_lean=60.0&how_epsilon=0.05   | The newcomer lies down. Why is it not flagged?
    17 to 21 | how_it_works     | 4 Model           | step=4 Model                                      | Check one error by hand.
    21 to 25 | how_it_works     | 5 Draws           | step=5 Draws&how_lean=20.0                        | Compare n = 1 with n = 20.
    25 to 28 | how_it_works     | 6 Algorithm       | step=6 Algorithm&how_lean=20.0                    | Read it aloud, line by line.
    28 to 32 | break_it         | A shared draw     | break_switch={SWITCHES["shared_draw"].title}              | Vote first, then look. How much does the rate vary?
    32 to 35 | break_it         | OOD points inside | break_switch={SWITCHES["contaminated_calibration"].title} | Vote again. The false alarms went down: so what is wrong?
    35 to 38 | break_it         | Naive Fisher      | break_switch={SWITCHES["naive_fisher"].title}&break_n=20  | Then set n to 1. What happens, and why?
    38 to 41 | many_and_streams | A batch           | view=A batch of many                              | Two rates that sound alike: which one does a plain threshold bound?
    41 to 43 | many_and_streams | A stream          | view=A stream that changes                        | Drag the change. Who reacts more slowly?
    43 to 45 | inspect          | Inspect           | source=Files                                      | A picture of your own. What does the verdict promise, and what not?
    """.strip().splitlines()
)
"""Forty-five minutes with the teaching pages."""


@contextmanager
def lesson(text: str) -> Iterator[None]:
    """A teaching page with its title; where its link asks for something else than what is shown, a notice says so."""
    enter_by_app()
    wanted = asked("lesson", [key for key in st.query_params if key.startswith(OWN_KEYS)])
    if wanted:
        st.session_state["lesson_asked"] = list(wanted)
    title(text)
    notices = st.container()
    yield
    with notices:
        shown = {key: _in_link(key) for key in st.session_state.get("lesson_asked", ())}
        here = {key: value for key, value in wanted.items() if shown[key] is not None}
        say_unmet("lesson", here, shown, dict.fromkeys(here, "which this page does not have"))


def _in_link(key: str) -> object:
    """A widget's value as the URL has it; None where it is not on the page."""
    value = st.session_state.get(key)
    if isinstance(value, bool):
        return str(value).lower()
    return SWITCHES[value].title if value in SWITCHES else value


def title(text: str) -> None:
    """The page's title, with the switch for a lecture room beside it."""
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        st.title(text, width="content")
        presents = st.toggle(
            "Present",
            key=PRESENT,
            **LINKED,
            help="For a projector: large type, no sidebar. It is in the link.",
        )
    if presents:
        st.html(PRESENTER_STYLE)


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
    """Forty-five minutes with the teaching pages; each row opens its page in the right state."""
    icons = {entry.name: entry.icon for entry in PAGES}
    with st.expander("A 45-minute class from these pages", icon=":material/schedule:"):
        for row in PLAN:
            minutes, page, todo = st.columns([0.9, 2.4, 5], vertical_alignment="center")
            minutes.markdown(row.minutes)
            with page:
                link(row.page, row.label, icons[row.page], row.state)
            todo.markdown(row.todo)
        st.caption(
            "The seed is in the link: prepare a view at home, send the link, and the class sees the same numbers."
        )


def ask_the_class(*texts: str) -> None:
    """A question, the answer one hopes for, which is behind a button; the next question, and so on."""
    with st.expander("Ask the class", icon=":material/groups:"):
        for question, answer in zip(texts[::2], texts[1::2], strict=True):
            _question(question, answer)


@st.fragment
def _question(question: str, answer: str) -> None:
    key = f"reveal-{zlib.crc32(question.encode()):08x}"
    seen = bool(st.session_state.get(f"{key}-seen"))
    st.markdown(f"**{question}**")
    st.button(
        "Hide" if seen else "Reveal",
        key=key,
        icon=":material/visibility_off:" if seen else ":material/visibility:",
        type="tertiary",
        on_click=_turn,
        args=(f"{key}-seen",),
    )
    if seen:
        st.caption(answer)


def _turn(key: str) -> None:
    st.session_state[key] = not st.session_state.get(key, False)


def verdict(flagged: bool, sentence: str) -> None:
    """The answer as a sentence, in the colour that its point has in the figures. Formulas do not break over lines."""
    for sign in "=<≥":
        sentence = sentence.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    st.markdown(f"### :{'orange' if flagged else 'blue'}[{sentence}]")


def percent(share: float) -> str:
    """A rate as the pages write it: 0.0512 -> "5.1 %", with a space that does not break."""
    return f"{100 * share:.1f}\u00a0%"
