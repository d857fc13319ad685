"""Reports: what is on the screen, as files that say the same."""

import subprocess
import sys

import numpy as np

from idecode_core.conformal.judge import Verdict
from idecode_core.draws import content_hash
from idecode_core.report import (
    InspectedSample,
    Inspection,
)
from ui.frame.samples import png

PIXELS = np.random.default_rng(3).integers(0, 256, (28, 28, 3), dtype=np.uint8)


def sample(name: str = "coat.png", p_value: float = 0.25, is_ood: bool = False) -> InspectedSample:
    vector = (0.1, 1 / 3)
    verdict = Verdict(sum(vector), 0, 3, p_value, 0.05, is_ood, threshold=9.0)
    return InspectedSample(name, png(PIXELS), content_hash(PIXELS), vector, verdict, thumbnail=png(PIXELS))


def inspection(*samples: InspectedSample, **changes: object) -> Inspection:
    settings = {
        "detector": "fashion-rotations",
        "modality": "image",
        "scorer_sha256": "ab" * 32,
        "calibration_sha256": "cd" * 32,
        "k": 3,
        "n": 2,
        "epsilon": 0.05,
        "aggregate": "sum",
        "smoothed": False,
        "seed": 7,
        "false_discovery_control": False,
    }
    return Inspection(**{**settings, **changes}, samples=samples)  # type: ignore[arg-type]


def test_reading_the_report_package_imports_neither_torch_nor_scipy_nor_plotly() -> None:
    code = "import sys, idecode_core.report; print([m for m in ('torch', 'scipy', 'plotly') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_download_row_has_four_buttons_and_makes_no_file_before_a_click() -> None:
    from streamlit.testing.v1 import AppTest

    def page() -> None:
        from ui.frame.export import download_row

        def too_early() -> None:
            raise RuntimeError("built before a click")

        download_row("result", report=too_early, notebook=too_early)  # type: ignore[arg-type]

    app = AppTest.from_function(page).run(timeout=60)
    assert not app.exception
    assert [button.label for button in app.download_button] == ["CSV", "JSON", "Report", "Notebook"]
