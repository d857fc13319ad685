"""Four download buttons under a result: CSV, JSON, HTML report, notebook. Each file is made when it is asked for."""

from collections.abc import Callable

import streamlit as st

from idecode_core.report import Export, Report, to_csv, to_html, to_json


def download_row(
    stem: str, *, report: Callable[[], Report], notebook: Callable[[], str], key: str = "export"
) -> None:
    """Offer the result on the screen as files named `stem`.

    `report` and `notebook` run on a click only, in a thread of their own, where Streamlit's commands do nothing:
    let them close over values (results, settings, figures), not over widgets or session state.
    """
    st.caption("Keep this result. The notebook computes it again.")
    files: tuple[tuple[str, str, str, str, Callable[[], str], str], ...] = (
        ("csv", "CSV", "table", "text/csv", lambda: to_csv(report()), "The table, for a spreadsheet"),
        ("json", "JSON", "data_object", "application/json", lambda: to_json(report()), "All numbers and settings"),
        ("html", "Report", "description", "text/html", lambda: to_html(report()), "One page that works offline"),
        ("ipynb", "Notebook", "code_blocks", "application/x-ipynb+json", notebook, "Computes the result again"),
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


def export_row(stem: str, export: Callable[[], Export], key: str = "") -> None:
    """The same for what is put together as one."""
    download_row(stem, report=lambda: export().report, notebook=lambda: export().notebook, key=key or stem)
