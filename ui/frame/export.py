"""The result on a page as files to keep, and as a notebook: each is made when it is asked for."""

import datetime
from collections.abc import Callable

import streamlit as st

from idecode_core import studio
from idecode_core.errors import IdecodeError
from idecode_core.report import Notebook, Report, to_csv, to_html, to_json
from idecode_core.session.store import sessions_root
from ui.frame.messages import escape
from ui.frame.session import is_own_machine, opened


def download_row(
    stem: str,
    *,
    report: Callable[[], Report],
    notebook: Callable[[], Notebook],
    key: str = "export",
    zipped: bool = True,
    in_session: Callable[[], Notebook] | None = None,
    beside: Callable[[], None] | None = None,
) -> None:
    """Offer the result on the screen as files named `stem`, and as a notebook in JupyterLab on one's own machine.

    `zipped`: the notebook comes with files; `in_session`: the one to be written into the open session's folder, if that is another;
    `beside` draws further buttons into the row. `report` and `notebook` run on a click only, in a thread of their own, where
    Streamlit's commands do nothing: let them close over values (results, settings, figures), not over widgets or session state.
    """
    st.caption("Keep this result. The notebook computes it again.")
    files: tuple[tuple[str, str, str, str, Callable[[], str | bytes], str], ...] = (
        ("csv", "CSV", "table", "text/csv", lambda: to_csv(report()), "The table, for a spreadsheet"),
        ("json", "JSON", "data_object", "application/json", lambda: to_json(report()), "All numbers and settings"),
        ("html", "Report", "description", "text/html", lambda: to_html(report()), "One page that works offline"),
        ("zip", "Notebook", "code_blocks", "application/zip", lambda: notebook().zipped(), "With its files; unpack it anywhere, then run the notebook")
        if zipped
        else ("ipynb", "Notebook", "code_blocks", "application/x-ipynb+json", lambda: notebook().text, "Computes the result again, in any folder"),
    )  # fmt: skip
    with st.container(horizontal=True):
        for extension, label, icon, mime, text, help_text in files:
            st.download_button(
                label,
                text,
                file_name=f"{stem}.{extension}",
                mime=mime,
                key=f"{key}-{extension}",
                help=help_text,
                on_click="ignore",
                icon=f":material/{icon}:",
            )
        if is_own_machine():
            st.button(
                "Open as notebook",
                key=f"{key}-open",
                icon=":material/open_in_new:",
                help="Writes the notebook into a folder of yours and opens it in JupyterLab.",
                on_click=_open,
                args=(key, in_session or notebook),
            )
        if beside is not None:
            beside()
    _say_opened(key)


def _open(key: str, notebook: Callable[[], Notebook]) -> None:
    """Into the session's folder where one is open, else into a new folder beside the sessions."""
    state = st.session_state
    try:
        book, session = notebook(), opened()
        new = f"notebooks/{book.name} {datetime.datetime.now():%Y-%m-%d %H.%M.%S}"
        path = book.write_into(session.folder if session is not None else sessions_root().parent / new)
        state[f"{key}-opened"] = (str(path), "")
        state[f"{key}-opened"] = (str(path), studio.open_notebook(path))
    except IdecodeError as error:
        state[f"{key}-trouble"] = str(error)


def _say_opened(key: str) -> None:
    """Where the notebook lies, and the way to it; a browser opens no page that was not clicked for."""
    if trouble := st.session_state.pop(f"{key}-trouble", None):
        st.warning(escape(trouble), icon=":material/code_off:")
    path, link = st.session_state.get(f"{key}-opened", ("", ""))
    if link:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.link_button("Go to the notebook", link, icon=":material/arrow_outward:", type="primary")
            st.caption(f"It lies at {escape(path)} and runs in JupyterLab.")
