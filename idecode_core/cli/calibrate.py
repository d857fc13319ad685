"""`calibrate`: a detector for your own data from an existing detector's model."""

from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli import inputs
from idecode_core.cli.own_files import different_samples
from idecode_core.files.names import NOUNS

EPSILON = 0.05


def calibrate(
    folder: Annotated[
        str,
        typer.Argument(
            help="Folder of in-distribution files, a CSV of their paths, or a dataset's name.",
            show_default=False,
        ),
    ],
    out: inputs.NewDetector,
    detector: inputs.DetectorName = inputs.DEFAULT_DETECTOR,
    n_max: Annotated[int, typer.Option(help="Draws per point: the largest n that can be used later.")] = 20,
    seed: inputs.Seed = 0,
    summary: Annotated[str, typer.Option(help="What is in distribution, in a few words.")] = "",
    device: inputs.Device = None,
    data_root: inputs.DataRoot = None,
    ood: Annotated[
        list[str] | None,
        typer.Option(help="What the new detector should still catch; else sets that come with the project."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a folder with files that cannot be read.")
    ] = False,
) -> None:
    """Calibrate an existing detector's model on data of your own, for a source that has drifted a little.

    It repairs false alarms, not detection: for another kind of files use `train FOLDER`. The files must not have been used
    for training. With k of them the smallest p-value is 1 / (k + 1).

    \b
    Examples:
      python -m idecode_core calibrate my-photos/ --detector cifar10-rotations --out checkpoints/my-photos
      python -m idecode_core calibrate fashion-sample --out checkpoints/fashion-again
    """
    from idecode_core.detector import Detector
    from idecode_core.evaluation.recalibrated import what_is_lost
    from idecode_core.files.names import printable
    from idecode_core.folder.detector import save_detector
    from idecode_core.guarantees.same_source import compare
    from idecode_core.modality import modality_named
    from idecode_core.report.calibrations import calibration_card, lost_rows

    out = inputs.new_place(out)
    base = inputs.open_detector(detector, device)
    noun, modality = NOUNS[base.scorer.modality], base.scorer.modality
    points = different_samples(folder, modality, data_root, strict)
    given = {name: different_samples(name, modality, data_root) for name in ood or ()}
    outside = given or modality_named(modality).bundled(base.dataset)
    belongs = summary or printable(f"{noun.capitalize()}s like those of {Path(folder).name}")
    with inputs.progress_bar("calibrating", len(points)) as progress:
        made = Detector.calibrate(
            out.name, base.scorer, points, n_max=n_max, seed=seed, summary=belongs, progress=progress
        )
    n_max = made.calibration.n_max
    n = min(5, n_max, base.calibration.n_max)
    vectors = {name: base.score_vectors(some, n=n, seed=seed) for name, some in outside.items()}
    lost = what_is_lost(base.calibration, made.calibration, vectors, n=n, epsilon=EPSILON)
    comparison = compare(made.calibration.scores(n), base.calibration.scores(n))
    card = calibration_card(out.name, base, made.calibration, comparison, n, belongs=belongs, lost=lost)
    save_detector(made, out, card)
    k = made.calibration.k
    typer.echo(
        f"{out}: calibrated on {k:,} {noun}s with {n_max} draws each. The smallest p-value is {1 / (k + 1):.3g}; "
        f"epsilon must be larger. Use it with --detector {out}"
    )
    typer.echo(f"What is still caught at epsilon = {EPSILON:g}, n = {n}: {lost.reading()}")
    for row in lost_rows(lost):
        typer.echo(f"  {row['set']}: {base.name} {row['parent_catches']}, now {row['still_caught']}")
    typer.echo(
        "Recalibrating repairs false alarms, not detection: for another kind of files use `train FOLDER`."
    )
