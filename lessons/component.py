"""The lesson of try-it.html as a part of a page of the app: the same module and style, mounted by Streamlit.

What is dragged changes in the browser at once; the page hears of it when the drag has ended.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from lessons import PAGE


def part(identifier: str) -> str:
    """The style or the script with this id, out of the page."""
    match = re.search(
        rf'<(style|script)[^>]* id="{identifier}">(.*?)</\1>', PAGE.read_text("utf-8"), re.DOTALL
    )
    assert match, f"{PAGE.name} has no part {identifier}"
    return match[2]


_lesson = st.components.v2.component("moving_lesson", css=part("lesson"), js=part("lesson-module"))


def moving_lesson(
    step: int,
    values: Mapping[str, Any],
    *,
    version: int,
    link: str,
    on_change: Callable[[], None],
    world: Mapping[str, Any] | None = None,
    presents: bool = False,
) -> None:
    """One of the steps with these values (`STEPS` in the module has them; their `numbers` have names and ranges).

    While it is shown it keeps its own; a new `version` says that the page's go first. In the URL each is named `link` and
    its name. `on_change` is called when some were changed; `changed_values` has them. `world` is what a step needs of the
    server, such as the picture of step 7. `presents`: for a projector, without the questions below.
    """
    data = {"step": step, "values": dict(values), "version": version, "link": link, "world": world}
    data["presents"] = presents
    _lesson(key=f"lesson_{link}", data=data, on_values_change=on_change)


def changed_values(link: str) -> dict[str, Any]:
    """What the visitor has dragged the numbers to."""
    return dict(st.session_state[f"lesson_{link}"].get("values") or {})
