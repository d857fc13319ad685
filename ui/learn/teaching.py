"""What the teaching pages share: a title with a notice about its link, and the plan of the class."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

import lessons
from lessons.plan import PLAN
from ui.frame.catalogue import PAGES, link
from ui.frame.links import asked, explain_unmet_link, link_value
from ui.frame.settings import enter_by_app
from ui.learn.present import state_of

CLASS = "class"
"""In a link: the plan of the class is open."""
WORKSHEET = Path(lessons.__file__).with_name("worksheet.html")
TRY_IT = WORKSHEET.with_name("try-it.html")
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
        shown = {key: st.session_state.get(key) for key in st.session_state.get("lesson_asked", ())}
        here = {key: value for key, value in wanted.items() if shown[key] is not None}
        explain_unmet_link("lesson", here, shown, dict.fromkeys(here, "which this page does not have"))


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
    [goals] = re.findall(r'<ul id="goals">(.*?)</ul>', WORKSHEET.read_text("utf-8"), re.DOTALL)
    return [re.sub(r"\s+", " ", goal).strip() for goal in re.findall(r"<li>(.*?)</li>", goals, re.DOTALL)]
