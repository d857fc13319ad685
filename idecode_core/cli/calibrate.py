"""`calibrate`: a detector for your own data from an existing detector's model."""

from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli.inputs import (
    DEFAULT_DETECTOR,
    NOUNS,
    DataRoot,
    DetectorName,
    Device,
    Seed,
    open_detector,
    progress_bar,
    samples,
)
from idecode_core.errors import CheckpointError


def calibrate(
    folder: Annotated[
        str, typer.Argument(help="Folder of in-distribution files, or a dataset's name.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Where the new detector folder is written.", show_default=False)],
    detector: DetectorName = DEFAULT_DETECTOR,
    n_max: Annotated[int, typer.Option(help="Draws per point: the largest n that can be used later.")] = 20,
    seed: Seed = 0,
    summary: Annotated[str, typer.Option(help="What is in distribution, in a few words.")] = "",
    device: Device = None,
    data_root: DataRoot = None,
) -> None:
    """Calibrate an existing detector's model on data of your own.

    The files must not have been used for training. With k of them the smallest p-value is 1 / (k + 1).

    \b
    Examples:
      python -m idecode_core calibrate my-photos/ --detector cifar10-rotations --out checkpoints/my-photos
      python -m idecode_core calibrate fashion-sample --out checkpoints/fashion-again
    """
    from idecode_core.detector import Detector
    from idecode_core.folder.detector import save_detector

    refuse_to_replace(out)
    base = open_detector(detector, device)
    noun = NOUNS[base.scorer.modality]
    points = samples(folder, base.scorer.modality, data_root)
    with progress_bar("calibrating", len(points)) as progress:
        made = Detector.calibrate(
            out.name,
            base.scorer,
            points,
            n_max=n_max,
            seed=seed,
            summary=summary or f"{noun.capitalize()}s like those of {Path(folder).name}",
            progress=progress,
        )
    save_detector(made, out)
    k = made.calibration.k
    typer.echo(
        f"{out}: calibrated on {k:,} {noun}s with {n_max} draws each. The smallest p-value is {1 / (k + 1):.3g}; "
        f"epsilon must be larger. Use it with --detector {out}"
    )


def refuse_to_replace(out: Path) -> None:
    """A detector is never overwritten by accident."""
    if (out / "config.json").exists():
        raise CheckpointError(
            f"{out} already holds a detector: expected a new folder; choose another for --out."
        )
