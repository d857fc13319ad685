"""What the teaching pages share: a seed that can be re-drawn, verdicts, questions and a plan for the class, the presenter view."""

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st

import lessons
from lessons.breaking import SWITCHES
from lessons.plan import PLAN
from ui.frame.catalogue import PAGES, link
from ui.frame.links import asked, explain_unmet_link, link_value
from ui.frame.settings import enter_by_app
from ui.learn.present import state_of

CLASS = "class"
"""In a link: the plan of the class is open."""
WORKSHEET = Path(lessons.__file__).with_name("worksheet.html")
TRY_IT = WORKSHEET.with_name("try-it.html")
LINKED: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
"""For widgets: the value is in the URL under the widget's key, and stays while another step, view or page is shown."""
OWN_KEYS = ("how_", "break_", "batch_", "stream_", "play_", "step", "view")
"""How the keys of these pages' widgets begin; the rest of a link is for other pages."""


@contextmanager
def lesson(text: str) -> Iterator[None]:
    """A teaching page with its title; where its link asks for something else than what is shown, a notice says so."""
    enter_by_app()
    wanted = asked("lesson", [key for key in st.query_params if key.startswith(OWN_KEYS)])
    if wanted:
        st.session_state["lesson_asked"] = list(wanted)
    with st.container(key="lesson_title"):
        st.title(text)
    notices = st.container()
    class_plan(above=True)
    yield
    with notices:
        shown = {key: _in_link(key) for key in st.session_state.get("lesson_asked", ())}
        here = {key: value for key, value in wanted.items() if shown[key] is not None}
        explain_unmet_link("lesson", here, shown, dict.fromkeys(here, "which this page does not have"))


def _in_link(key: str) -> object:
    """A widget's value as the URL has it; None where it is not on the page."""
    value = st.session_state.get(key)
    if isinstance(value, bool):
        return str(value).lower()
    return SWITCHES[value].title if value in SWITCHES else value


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


def class_plan(*, above: bool = False) -> None:
    """Forty-five minutes with the teaching pages; each row opens its page in the right state. And what is printed for it.

    Below the lesson and closed; above it and open where the link asks for it.
    """
    if above != (link_value(CLASS) is not None):
        return
    icons = {entry.name: entry.icon for entry in PAGES}
    with (
        st.container(key="class_plan"),
        st.expander(
            "A 45-minute class from these pages",
            icon=":material/schedule:",
            expanded=above,
        ),
    ):
        st.markdown("Afterwards your students can\n\n" + "\n".join(f"- {goal}" for goal in learning_goals()))
        for number, row in enumerate(PLAN):
            minutes, page, todo = st.columns([0.9, 2.4, 5], vertical_alignment="center")
            minutes.markdown(row.minutes)
            with page:
                link(row.page, row.label, icons[row.page], state_of(number))
            todo.markdown(row.todo)
        with st.container(horizontal=True, vertical_alignment="center"):
            for name, label, icon in (
                (WORKSHEET, "Worksheet with solutions and exit quiz", "print"),
                (TRY_IT, "The lesson as one page, without a server", "public"),
            ):
                st.download_button(
                    label, name.read_bytes, file_name=name.name, mime="text/html", key=f"take_{name.stem}",
                    icon=f":material/{icon}:", on_click="ignore",
                )  # fmt: skip
        st.caption(
            "Present, in the sidebar, is for the projector: PageDown, PageUp and the arrow keys lead through these rows. The seed is in "
            "the link: prepare a view at home, send the link, and the class sees the same numbers."
        )


def learning_goals() -> list[str]:
    """As the worksheet has them: one list for both."""
    [found] = re.findall(r'<ul id="goals">(.*?)</ul>', WORKSHEET.read_text("utf-8"), re.DOTALL)
    return [re.sub(r"\s+", " ", goal).strip() for goal in re.findall(r"<li>(.*?)</li>", found, re.DOTALL)]


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
    st.markdown(f"## :{'orange' if flagged else 'blue'}[{sentence}]")


def percent(share: float) -> str:
    """A rate as the pages write it: 0.0512 -> "5.1 %", with a space that does not break."""
    return f"{100 * share:.1f}\u00a0%"
