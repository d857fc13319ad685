"""Results -> files to keep: CSV, JSON, a self-contained HTML page, and a notebook that computes them again."""

from idecode_core.report.content import Export, Figure, Picture, Report
from idecode_core.report.html import to_csv, to_html, to_json
from idecode_core.report.inspection import (
    InspectedSample,
    Inspection,
    inspect_batch,
    inspection_files,
    inspection_notebook,
    inspection_report,
)
from idecode_core.report.notebook import Notebook

__all__ = [
    "Export",
    "Figure",
    "InspectedSample",
    "Inspection",
    "Notebook",
    "Picture",
    "Report",
    "inspect_batch",
    "inspection_files",
    "inspection_notebook",
    "inspection_report",
    "to_csv",
    "to_html",
    "to_json",
]
