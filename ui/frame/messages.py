"""Errors as one clear sentence on the page, never a traceback."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from idecode_core.errors import IdecodeError

log = logging.getLogger("idecode.app")
SENTENCES = 12  # refusals that are shown in full


@contextmanager
def guard() -> Iterator[None]:
    """Show what a user can put right as a sentence; log anything else; in both cases stop the page here.

    Streamlit's own signals (rerun, stop) are no `Exception` and pass through.
    """
    try:
        yield
    except IdecodeError as error:
        st.error(escape(str(error)), icon=":material/error:")
        st.stop()
    except Exception:
        log.exception("Unexpected error on a page")
        st.error(
            "Something went wrong in the program, not in what you did; the details are in the server's log. "
            "Reload the page; if it happens again, please report it.",
            icon=":material/bug_report:",
        )
        st.stop()


def refused(messages: list[str]) -> None:
    """One sentence for each file that could not be used, as far as anybody reads them; the others go on."""
    if messages:
        count, rest = len(messages), len(messages) - SENTENCES
        lead = "One file was left out" if count == 1 else f"{count} files were left out"
        more = [f"... and {rest} more for reasons like these."] if rest > 0 else []
        sentences = [f"- {escape(message)}" for message in [*messages[:SENTENCES], *more]]
        st.warning("\n".join([f"{lead}:", "", *sentences]))


def escape(text: str) -> str:
    """Plain text for Markdown: names of files, and what a detector says of itself, come from strangers.

    A picture in Markdown would be fetched by every visitor's browser.
    """
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#+-!|$~:" else c for c in text)
