"""`calibrate`: an existing detector on a source of your own. `merge`: several detectors as one."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from idecode_core.cli import inputs
from idecode_core.errors import InputError
from idecode_core.files.names import NOUNS, printable


def calibrate(
    folder: Annotated[
        str,
        typer.Argument(
            help="Folder of in-distribution files, a CSV of their paths, or a dataset's name.",
            show_default=False,
        ),
    ],
    out: inputs.NewDetector,
    replace: inputs.Replace = False,
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
    review: Annotated[
        int, typer.Option(help="Name the so many strangest files, and ask which of them do not belong.")
    ] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a folder with files that cannot be read.")
    ] = False,
    allow_training_files: inputs.AllowTrainingFiles = False,
    model: inputs.Model = None,
    trust_program: inputs.TrustProgram = False,
    as_json: inputs.Json = False,
    as_csv: inputs.Csv = False,
) -> None:
    """Calibrate an existing detector's model on data of your own, for a source that has drifted a little.

    It repairs false alarms, not detection: for another kind of files use `train FOLDER`. The files must not have been used
    for training. Copies count: a source that sends the same picture often does so tomorrow. With k files the smallest p-value is 1 / (k + 1).

    \b
    Examples:
      python -m idecode_core calibrate my-photos/ --detector cifar10-rotations --out checkpoints/my-photos
      python -m idecode_core calibrate fashion-sample --out checkpoints/fashion-again
      python -m idecode_core calibrate my-photos/ --review 20 --out checkpoints/my-photos
    """
    from idecode_core.training.calibrate_folder import calibrate_folder

    with inputs.progress_bars() as report:
        made = calibrate_folder(
            detector,
            folder,
            out,
            ood=ood or (),
            n_max=n_max,
            seed=seed,
            summary=summary,
            strict=strict,
            review=review,
            do_not_belong=ask,
            allow_training_files=allow_training_files,
            model=model,
            trust_program=trust_program,
            replace=replace,
            device=device,
            data_root=data_root,
            report=report,
        )
    catches = [vars(catch) for catch in made.lost.catches]
    told = {"detector": str(made.folder), "k": made.detector.calibration.k, "n": made.n}
    told |= {"suspected": made.dirt.beyond if made.warns else 0, "removed": len(made.removed)}
    rows = [{**told, "sets": catches}] if as_json else [{**told, **catch} for catch in catches]
    if inputs.print_rows(rows, as_json=as_json, as_csv=as_csv):
        return
    if made.scanned is not None and (made.scanned.broken or made.scanned.copies or made.scanned.others):
        typer.echo("\n".join(made.scanned.sentences()))
    typer.echo("\n".join(made.sentences()))


def ask(names: Sequence[str]) -> list[int]:
    """Which of these files, the strangest first, do not belong: numbers on one line of standard input. Asks again after a slip."""
    for number, name in enumerate(names, 1):
        typer.echo(f"{number:>4}  {printable(name)}", err=True)
    while True:
        typer.echo("Numbers of those that do not belong (none: just Enter):", err=True)
        line = sys.stdin.readline()
        if not line:
            raise InputError(
                "--review asks on standard input, and it ended: expected numbers or just Enter. Answer there."
            )
        words = line.replace(",", " ").split()
        if all(word.isascii() and word.isdigit() and 1 <= int(word) <= len(names) for word in words):
            return sorted({int(word) - 1 for word in words})
        inputs.complain(f"Expected numbers from 1 to {len(names)}, such as 1 3 4, got {' '.join(words)!r}.")


def merge(
    members: Annotated[
        list[str],
        typer.Argument(
            help="Detector folders; FOLDER@BASE_NCM for another base NCM, FOLDER@energy, FOLDER@vim or FOLDER@distance for x alone.",
            show_default=False,
        ),
    ],
    out: inputs.NewDetector,
    replace: inputs.Replace = False,
    weight: Annotated[
        list[float] | None, typer.Option(help="A member's weight, once for each member; 1 if left out.")
    ] = None,
    data_root: inputs.DataRoot = None,
    as_json: inputs.Json = False,
    as_csv: inputs.Csv = False,
) -> None:
    """Merge detectors that were trained on the same points.

    Each member's score becomes -log of its rank among held-out points; the weighted sum is calibrated on the
    held-out points, so the bound on false detections holds for the merged detector too.

    \b
    Example:
      python -m idecode_core merge checkpoints/cifar10-rotations checkpoints/cifar10-invariance@label_cross_entropy \\
        --weight 1 --weight 2 --out checkpoints/mine
    """
    from idecode_core.training.merge import merge as merge_detectors

    with inputs.progress_bars() as report:
        place, made = merge_detectors(
            members, out, weights=weight, data_root=data_root, replace=replace, report=report
        )
    k = made.calibration.k
    advice = f"\nTest it: python -m idecode_core evaluate --detector {place} --id FOLDER --ood FOLDER"
    inputs.told(
        f"{place}: merged {len(members)} member{'' if len(members) == 1 else 's'}, calibrated on {k:,} held-out {NOUNS[made.scorer.modality]}s. Use it with "
        f"--detector {place}{'' if made.dataset else advice}",
        {"detector": str(place), "members": members, "k": k},
        as_json,
        as_csv,
    )
