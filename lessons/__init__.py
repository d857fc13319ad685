"""Lessons: their worlds in Python, for the notebook of the class, and one page that moves in the browser, try-it.html."""

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("try-it.html")


def table(name: str) -> Any:
    """A table of try-it.html's module that is written as JSON, so that page, app and notebook have the same."""
    return json.loads(
        re.split(rf"^export const {name} = ", PAGE.read_text("utf-8"), flags=re.M)[1].split(";\n")[0]
    )
