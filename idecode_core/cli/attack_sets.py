"""`attack-sets`: the attacked pictures that the adversarial experiment scores."""

from typing import Annotated

import typer

from idecode_core.cli.inputs import DataRoot, progress_bars
from idecode_core.errors import SettingError


def attack_sets(
    victim: Annotated[
        str, typer.Argument(help="A detector whose network names classes.", show_default=False)
    ],
    attacks: Annotated[
        list[str] | None, typer.Option("--attack", help="fgsm, bim, deepfool, cw; all of them if left out.")
    ] = None,
    detectors: Annotated[
        list[str] | None,
        typer.Option("--detector", help="Instead: PGD on the victim and this detector together."),
    ] = None,
    points: Annotated[
        int, typer.Option(min=1, help="Pictures per set, all named right by the victim.")
    ] = 1000,
    data_root: DataRoot = None,
) -> None:
    """Attack test pictures of the victim's dataset at the paper's settings and keep them, unrounded, in runs/attacked/.

    What is stored is left alone, so a stopped run goes on where it was, and a larger --points adds to it.

    \b
    Examples:
      python -m idecode_core attack-sets cifar10-invariance --data-root data
      python -m idecode_core attack-sets cifar10-invariance --detector cifar10-rotations --points 200
    """
    from idecode_core.attacks import ATTACKS, Victim
    from idecode_core.attacks.on_detector import NAME
    from idecode_core.attacks.sets import make_attacked_set
    from idecode_core.folder.detector import load_detector
    from idecode_core.image.sets import load_images

    if attacks and detectors:
        raise SettingError(
            "Give either --attack or --detector: one run attacks the victim alone or both together."
        )
    source = load_detector(victim)
    against = Victim.from_detector(source)
    images = load_images(f"{source.dataset}-test", data_root)
    names = attacks or [name for name, kind in ATTACKS.items() if not kind.on_detector]
    wanted = (
        [(NAME, load_detector(name)) for name in detectors] if detectors else [(name, None) for name in names]
    )
    with progress_bars() as report:
        for name, detector in wanted:
            part = name if detector is None else f"{name} ({detector.name})"
            made = make_attacked_set(
                against,
                images,
                name,
                points,
                detector=detector,
                report=lambda done, part=part: report(part, done, points),  # type: ignore[misc]
            )
            typer.echo(f"{len(made.indices):,} pictures. {made.result.summary()}")
