"""Lessons that move: their numbers in the link and in the session, the lesson itself in the browser."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from idecode_core.conformal.streams import MARTINGALES
from lessons.component import changed_values, moving_lesson
from ui.frame.links import link_value, put_in_link
from ui.frame.look import PRESENT


class Number(NamedTuple):
    """A number that can be dragged, or one of a few words; the same as in the lesson's module."""

    low: float
    high: float
    start: Any
    kind: Callable[[str], Any] = float
    choices: tuple[Any, ...] = ()


Numbers = Mapping[str, Number]
SEED, EPSILON = Number(0, 99_999, 0, int), Number(0.01, 0.5, 0.1)
NUMBERS: Numbers = {
    "seed": SEED._replace(start=9),
    "lean": Number(-60.0, 60.0, 14.0),
    "epsilon": EPSILON,
    "n": Number(1, 20, 5, int),
    "turn": Number(0.0, 359.5, 47.0),
}
BATCH: Numbers = {
    "seed": SEED,
    "size": Number(20, 500, 100, int, (20, 50, 100, 200, 500)),
    "ood": Number(0, 50, 10, int),
    "strangeness": Number(0.0, 6.0, 4.0),
    "epsilon": EPSILON._replace(start=0.05),
    "q": Number(0.01, 0.5, 0.1),
    "k": Number(100, 5_000, 1_000, int, (100, 200, 500, 1_000, 2_000, 5_000)),
}
STREAM: Numbers = {
    "seed": SEED,
    "change": Number(0, 1_000, 500, int),
    "strangeness": Number(0.0, 3.0, 1.0),
    "martingale": Number(0, 0, "simple jumper", str, tuple(MARTINGALES)),
    "alpha": Number(0.001, 0.1, 0.01, float, (0.001, 0.01, 0.05, 0.1)),
    "mean_time": Number(100, 100_000, 10_000, int, (100, 1_000, 10_000, 100_000)),
}


def show_step(
    step: int, world: Mapping[str, Any] | None = None, *, numbers: Numbers = NUMBERS, link: str = "how_"
) -> None:
    """A step of the module, with the numbers of the link, else those that it had."""
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
        state.setdefault(key, number.start)
        text = link_value(key)
        if text is not None and text != seen.get(key) and (asked := usable(number, text)) is not None:
            state[key] = asked
            state[f"{link}version"] += 1
        if text is None or usable(number, text) != state[key]:  # "5.0" is as good as "5", and stays
            shown = state[key] if isinstance(state[key], str) else f"{state[key]:.10g}"
            put_in_link(key, None if state[key] == number.start else shown)
        seen[key] = link_value(key)


def _take_changed(numbers: Numbers, link: str) -> None:
    for name, value in changed_values(link).items():
        if name in numbers and (found := usable(numbers[name], str(value))) is not None:
            st.session_state[link + name] = found


def usable(number: Number, text: str) -> Any:
    """A number of a link or of the browser; None where the lesson does not have it."""
    try:
        value = number.kind(text)
    except ValueError:
        return None
    if number.choices:
        return value if value in number.choices else None
    return value if number.low <= value <= number.high else None
