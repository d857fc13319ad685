"""`export`: a detector for another runtime."""

from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli.inputs import DEFAULT_DETECTOR, DetectorName, open_detector
from idecode_core.errors import CheckpointError, SettingError


def export(
    out: Annotated[Path, typer.Option(help="The new folder.", show_default=False)],
    detector: DetectorName = DEFAULT_DETECTOR,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="As an ONNX network, with the calibration beside it.")
    ] = False,
) -> None:
    """Write a detector's network for ONNX Runtime: pixels and drawn transforms in, base scores out. Needs the extra [onnx].

    \b
    Example:
      python -m idecode_core export --onnx --detector fashion-rotations --out fashion-onnx
    """
    if not onnx:
        raise SettingError("Which format? Expected --onnx, the only one that there is.")
    if out.exists():
        raise CheckpointError(f"{out} is there already: expected a new folder; choose another for --out.")
    loaded = open_detector(detector, "cpu")
    from idecode_core.export.onnx import export_onnx

    export_onnx(loaded, out)
    typer.echo(
        f"{out}: model.onnx, calibration.npz with k = {loaded.calibration.k:,}, and onnx.json, which explains both."
    )
