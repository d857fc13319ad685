"""The result on a page to keep: as files and as a notebook, each made when it is asked for; and as a pinned run, a detector with settings
and its numbers beside others, to see what differs."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from idecode_core import studio
from idecode_core.errors import IdecodeError
from idecode_core.report import Notebook, Report, to_csv, to_html, to_json
from idecode_core.session.store import Pinned, sessions_root
from ui.frame.messages import escape
from ui.frame.session import at_this_machine, opened, save
from ui.frame.settings import current

if TYPE_CHECKING:
    from idecode_core.conformal.judge import Judgement


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
        if at_this_machine():
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


def pin_button(title: str, detector: str, settings: Mapping[str, Any], numbers: Mapping[str, float]) -> None:
    """Pins the run on the page."""
    run = Pinned(title, detector, dict(settings), {key: float(value) for key, value in numbers.items()})
    st.button(
        "Pin this run",
        icon=":material/push_pin:",
        key="pin_run",
        help="Keeps its numbers here, beside those of other runs, to see what differs.",
        disabled=run in pinned(),
        on_click=_pin,
        args=(run,),
    )


def pinned_runs() -> None:
    """All pinned runs beside each other, with what differs; nothing where there are none."""
    if runs := pinned():
        st.markdown("#### Pinned runs")
        st.dataframe(side_by_side(runs), hide_index=True, key="pinned_runs")
        st.button("Unpin all", key="unpin", type="tertiary", on_click=_unpin)


def pin_judgement(title: str, judgement: "Judgement") -> None:
    """Pin how many of the batch on the screen are flagged."""
    settings = dict(vars(current()))
    numbers = {
        "inputs": len(judgement),
        "flagged": judgement.is_ood.sum(),
        "median p": np.median(judgement.p_values),
    }
    pin_button(title, settings.pop("detector"), settings, numbers)


def pinned() -> tuple[Pinned, ...]:
    session = opened()
    return session.pinned if session is not None else tuple(st.session_state.get("pins", ()))


def _pin(run: Pinned) -> None:
    if (session := opened()) is not None:
        session.pin(run.title, run.detector, run.settings, run.numbers)
        save(session)
    else:
        st.session_state["pins"] = (*pinned(), run)


def _unpin() -> None:
    if (session := opened()) is not None:
        for run in session.pinned:
            session.unpin(run)
        save(session)
    st.session_state["pins"] = ()


def side_by_side(runs: Sequence[Pinned]) -> list[dict[str, Any]]:
    """One row per run: of the settings those that differ between the runs, and all numbers.

    >>> runs = [Pinned("t", "d", {"n": n, "seed": 0}, {"flagged": 3.0}) for n in (5, 20)]
    >>> side_by_side(runs)[1]
    {'run': 't', 'detector': 'd', 'n': 20, 'flagged': 3.0}
    """
    keys = list(dict.fromkeys(key for run in runs for key in run.settings))
    differing = [key for key in keys if len({str(run.settings.get(key)) for run in runs}) > 1]
    return [
        {
            "run": run.title,
            "detector": run.detector,
            **{key: run.settings.get(key) for key in differing},
            **run.numbers,
        }
        for run in runs
    ]
