"""The plan of the class on the pages: what the teaching pages share, a title with a notice about its link and the plan below the lesson;
and the presenter view of every page: large type, no sidebar, the plan by PageDown, PageUp and the arrow keys."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

import lessons
from lessons.plan import PLAN
from ui.frame.catalogue import PAGES, link
from ui.frame.links import LINKED, asked, explain_unmet_link, link_value, put_in_link
from ui.frame.look import PRESENT
from ui.frame.settings import enter_by_app

ROW = "plan"
"""The row of the plan that is shown, in the link."""
LAST = "plan_last"
"""The row that was shown last: a page beside the plan leads back to it."""
KEY, BACK, NEXT = "presenter", "presenter_back", "presenter_next"
STYLE = """
<style>
html { font-size: clamp(15px, 2.4vh, 30px); }
[data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], [data-testid="stHeader"], .st-key-class_plan,
[data-testid="stLayoutWrapper"]:is(:has(> .st-key-presenter_back), :has(> .st-key-presenter_next)) { display: none; }
[data-testid="stMainBlockContainer"] { padding: 0.6rem 2rem 3.2rem !important; max-width: none; }
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p { font-size: 0.9rem; }
:is(.st-key-lesson_title, .st-key-lesson_steps), [data-testid="stLayoutWrapper"]:is(:has(> .st-key-lesson_title), :has(> .st-key-lesson_steps)) {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.st-key-presenter, [data-testid="stElementContainer"]:has(> [data-testid="stHtml"] > :is(style, script):only-child) { position: absolute; }
/* Guarantee: the figure in place of its views; Attack lab: both pictures with their words. */
[data-testid="stLayoutWrapper"]:has(> [data-testid="stHorizontalBlock"] > .st-key-g_view) { display: none; }
.st-key-attacked { zoom: 0.86; }
</style>
"""
HTML = """
<style>
nav { position: fixed; left: 0; right: 0; bottom: 0; z-index: 999992; display: flex; align-items: center; gap: 1rem; height: 2.4rem;
  padding: 0 1.5rem; box-sizing: border-box; background: var(--st-secondary-background-color); color: var(--st-text-color);
  border-top: 1px solid var(--st-border-color); font-size: 1rem; }
p { flex: 1; margin: 0; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
button { font: inherit; color: inherit; background: none; border: none; cursor: pointer; padding: 0.1rem 0.6rem; border-radius: 0.4rem; }
button:hover:enabled, button:focus-visible { color: var(--st-primary-color); outline: 2px solid var(--st-primary-color); }
button:disabled { opacity: 0.35; cursor: default; }
@media (max-width: 640px) { p { font-size: 0.85rem; } nav { padding: 0 0.5rem; gap: 0.3rem; } }
</style>
<nav aria-label="Plan of the class"><button data-by="-1">← Back</button><p></p><button data-by="1">Next →</button><button data-by="0">End</button></nav>
"""
KEYS = """
export default function ({ data, parentElement, setTriggerValue }) {
  const [back, next] = [parentElement.querySelector('[data-by="-1"]'), parentElement.querySelector('[data-by="1"]')];
  parentElement.querySelector("p").textContent = data.words;
  back.disabled = data.first;
  next.disabled = data.last;
  // A link within one page is not in the browser's address by itself, and a reload would lead back.
  const address = new URL(location);
  if (data.address && address.searchParams.get("plan") !== data.address.plan) {
    address.search = new URLSearchParams(data.address);
    history.replaceState(history.state, "", address);
  }
  const move = (by) => {
    dispatchEvent(new Event("plan"));
    if (by === 0) setTriggerValue("end", true);
    else document.querySelector(`.st-key-${by > 0 ? "NEXT" : "BACK"} a`)?.click();
  };
  for (const button of parentElement.querySelectorAll("button")) button.onclick = () => move(Number(button.dataset.by));
  // A remote control sends PageDown and PageUp: they go on whatever has the focus. Arrows belong to what is held, if something is.
  const pressed = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const at = event.composedPath()[0];
    const held = at.closest?.("input, textarea, select, [contenteditable=true], [role=slider], [role=radio], [role=tab], [role=combobox], [role=option]");
    const by = { PageDown: 1, PageUp: -1 }[event.key] ?? (held ? undefined : { ArrowRight: 1, ArrowLeft: -1 }[event.key]);
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    move(by);
  };
  document.addEventListener("keydown", pressed, true);
  return () => document.removeEventListener("keydown", pressed, true);
}
"""


def present(page: str) -> None:
    """The switch in the sidebar; where it is on, the view, and the row of the plan that was asked for. `page` is a file's name."""
    on = st.sidebar.toggle(
        "Present",
        key=PRESENT,
        **LINKED,
        help="For a projector: large type, no sidebar, PageDown and PageUp lead through the plan of the class. It is in the link.",
    )
    if not on:
        return
    st.html(STYLE)
    row = row_shown(page, link_value(ROW))
    st.session_state[LAST] = row
    shown = PLAN[row]
    # The browser follows them: a program cannot set what is bound to a widget in the address.
    for key, other in ((BACK, row - 1), (NEXT, row + 1)):
        with st.container(key=key):
            if 0 <= other < len(PLAN):
                stays = (
                    {PRESENT: "true"} if PLAN[other].page == page else {}
                )  # to another page the switch goes along by itself
                link(PLAN[other].page, PLAN[other].label, "school", {**state_of(other), **stays})
    here = "" if shown.page == page else "Back to the plan at "
    strip = st.components.v2.component(KEY, html=HTML, js=KEYS.replace("BACK", BACK).replace("NEXT", NEXT))
    strip(
        key=KEY,
        data={
            "words": f"{row + 1} of {len(PLAN)} · {here}{shown.minutes} min · {shown.label}: {shown.todo}",
            "first": row == 0,
            "last": row == len(PLAN) - 1,
            "address": {**state_of(row), PRESENT: "true"} if link_value(ROW) == str(row) else None,
        },
        on_end_change=_end,
    )
    put_in_link(ROW, str(row))


def _end() -> None:
    st.session_state[PRESENT] = False


def row_shown(page: str, asked: str | None) -> int:
    """The row that the link says; else the one of this page that is most like what is shown, else the last that was shown."""
    if asked is not None and asked.isdecimal() and int(asked) < len(PLAN):
        return int(asked)
    alike = {
        i: sum(link_value(k) == v for k, v in row.state.items())
        for i, row in enumerate(PLAN)
        if row.page == page
    }
    return max(alike, key=alike.__getitem__, default=st.session_state.get(LAST, 0))


def state_of(row: int) -> dict[str, str]:
    """What a link to a row of the plan carries."""
    return {**PLAN[row].state, ROW: str(row)}


CLASS = "class"
"""In a link: the plan of the class is open."""
WORKSHEET = Path(lessons.__file__).with_name("worksheet.html")
TRY_IT = WORKSHEET.with_name("try-it.html")
LESSON_KEYS = ("how_", "break_", "batch_", "stream_", "play_", "step", "view")
"""How the keys of these pages' widgets begin; the rest of a link is for other pages."""


@contextmanager
def lesson(text: str) -> Iterator[None]:
    """A teaching page with its title; where its link asks for something else than what is shown, a notice says so."""
    enter_by_app()
    wanted = asked("lesson", [key for key in st.query_params if key.startswith(LESSON_KEYS)])
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
