"""Lessons that move: their numbers in the link and in the session, the lesson itself in the browser."""

from functools import partial
from typing import Any

import streamlit as st

from lessons import table
from lessons.component import changed_values, moving_lesson
from ui.frame.links import link_value, put_in_link
from ui.frame.look import PRESENT

Numbers = dict[str, dict[str, Any]]
NUMBERS: dict[str, Numbers] = table("NUMBERS")
"""What can be dragged, chosen or typed in each lesson: name -> range or choices, and where it begins."""
NUMBERS["break"]["switch"]["choices"] = [switch["title"] for switch in table("SWITCHES")]


def show_step(step: int, lesson: str = "how", world: dict[str, Any] | None = None) -> None:
    """A step of the module, with the numbers of the link, else those that it had."""
    numbers, link = NUMBERS[lesson], f"{lesson}_"
    _follow_link(numbers, link)
    moving_lesson(
        step,
        {name: st.session_state[link + name] for name in numbers},
        version=st.session_state[f"{link}version"],
        link=link,
        on_change=partial(_take_changed, numbers, link),
        world=world,
        presents=bool(st.session_state.get(PRESENT)),
    )


def _follow_link(numbers: Numbers, link: str) -> None:
    """Numbers that the link has and had not when it was last looked at go first; then the link says what is shown."""
    state = st.session_state
    state.setdefault(f"{link}version", 0)
    seen = state.setdefault(f"{link}link", {})
    for name, number in numbers.items():
        key = link + name
        state.setdefault(key, number["start"])
        text = link_value(key)
        if text is not None and text != seen.get(key) and (asked := usable(number, text)) is not None:
            state[key] = asked
            state[f"{link}version"] += 1
        if text is None or usable(number, text) != state[key]:  # "5.0" is as good as "5", and stays
            shown = state[key] if isinstance(state[key], str) else f"{state[key]:.10g}"
            put_in_link(key, None if state[key] == number["start"] else shown)
        seen[key] = link_value(key)


def _take_changed(numbers: Numbers, link: str) -> None:
    for name, value in changed_values(link).items():
        if name in numbers and (changed := usable(numbers[name], str(value))) is not None:
            st.session_state[link + name] = changed


def usable(number: dict[str, Any], text: str) -> Any:
    """A number of a link or of the browser; None where the lesson does not have it."""
    choices = number.get("choices", [])
    try:
        value = type(choices[0] if choices else number.get("step", ""))(text)
    except ValueError:
        return None
    if choices or isinstance(value, str):
        return value if not choices or value in choices else None
    return value if number["min"] <= value <= number["max"] else None
