"""Results -> files to keep: CSV, JSON, a self-contained HTML page, and a notebook that computes them again."""

from idecode_core.report.content import Export, Figure, Picture, Report
from idecode_core.report.html import to_html
from idecode_core.report.inspection import (
    InspectedSample,
    Inspection,
    inspect_batch,
    inspection_notebook,
    inspection_report,
)
from idecode_core.report.sources import calibration_hash
from idecode_core.report.steps import Expression, Seed, Step, steps_notebook
from idecode_core.report.text import to_csv, to_json

__all__ = [
    "Export",
    "Expression",
    "Figure",
    "InspectedSample",
    "Inspection",
    "Picture",
    "Report",
    "Seed",
    "Step",
    "calibration_hash",
    "inspect_batch",
    "inspection_notebook",
    "inspection_report",
    "steps_notebook",
    "to_csv",
    "to_html",
    "to_json",
]
