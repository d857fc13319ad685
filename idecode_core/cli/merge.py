"""`merge`: several trained detectors into one, with the bound kept."""

from typing import Annotated

import typer

from idecode_core.cli.inputs import DataRoot, NewDetector, new_place, progress_bars
from idecode_core.errors import SettingError
from idecode_core.files.names import NOUNS


def merge(
    members: Annotated[
        list[str],
        typer.Argument(help="Detector folders; FOLDER@BASE_NCM for another base NCM.", show_default=False),
    ],
    out: NewDetector,
    weight: Annotated[
        list[float] | None, typer.Option(help="A member's weight, once for each member; 1 if left out.")
    ] = None,
    data_root: DataRoot = None,
) -> None:
    """Merge detectors that were trained on the same points.

    Each member's score becomes -log of its rank among held-out points; the weighted sum is calibrated on the
    held-out points, so the bound on false detections holds for the merged detector too.

    \b
    Example:
      python -m idecode_core merge checkpoints/cifar10-rotations checkpoints/cifar10-invariance@label_cross_entropy \\
        --weight 1 --weight 2 --out checkpoints/mine
    """
    from idecode_core.folder.detector import save_detector
    from idecode_core.report.card import write_card
    from idecode_core.training.merge import Member, build_merged, choice_of

    out = new_place(out)
    weights = weight or [1.0] * len(members)
    if len(weights) != len(members):
        raise SettingError(
            f"Expected --weight once for each of the {len(members)} members, got {len(weights)}; add or leave out some."
        )
    chosen = [Member.parse(text, value) for text, value in zip(members, weights, strict=True)]
    with progress_bars() as report:
        made = build_merged(chosen, data_root=data_root, name=out.name, progress=report)
    save_detector(made, out, choice=choice_of(chosen))
    write_card(out)
    typer.echo(
        f"{out}: merged {len(chosen)} members, calibrated on {made.calibration.k:,} held-out "
        f"{NOUNS[made.scorer.modality]}s."
    )
