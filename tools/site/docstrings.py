"""Docstrings for the site: examples with >>> become blocks of code. An extension of griffe, which mkdocstrings reads code with."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^[ ]*>>> .*\n?(?:^[ ]*(?:>>>|\.\.\.).*\n?|^[ ]*\S.*\n?)*)", re.MULTILINE)


class Examples(griffe.Extension):
    """Wraps each example in a fence; Markdown would take >>> for three quotations."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring and ">>>" in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """An example and what it prints, up to the next empty line, between fences."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
