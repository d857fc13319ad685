"""The learning curve that lies beside a trained detector's weights."""

from pathlib import Path

from idecode_core.files import write_text
from idecode_core.folder.detector import Writer
from idecode_core.plots.training import learning_curve_svg
from idecode_core.training.run_state import kept_epoch, read_log


def learning_curve(run_folder: Path, name: str) -> dict[str, Writer]:
    """File name -> what writes it, from a run's log; for `training.finish`, which draws nothing by itself."""
    log = read_log(run_folder)
    curve = learning_curve_svg([vars(entry) for entry in log], kept_epoch(log).epoch, name)
    return {"learning-curve.svg": lambda path: write_text(path, curve)}
