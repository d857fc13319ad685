"""`score-attacks`: the scores that the table of adversarial inputs is made of."""

from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli.inputs import DataRoot, progress_bars


def score_attacks(
    attacked: Annotated[Path, typer.Option(help="Where attack-sets has put attacked pictures.")] = Path(
        "runs/attacked"
    ),
    points: Annotated[int, typer.Option(min=10, help="Pictures per victim, from the first.")] = 1000,
    data_root: DataRoot = None,
) -> None:
    """Score attacked pictures with every detector of CIFAR-10 and with the paper's rivals; `reproduce adversarial` reads the
    scores.

    Rivals are fitted on the training side of each victim first. A picture that is stored is left alone, so a stopped run goes
    on where it was, and a larger --points adds to it.

    \b
    Examples:
      python -m idecode_core attack-sets cifar10-invariance --data-root data
      python -m idecode_core score-attacks --data-root data
    """
    from idecode_core.experiments.attack_scores import FOLDER
    from idecode_core.experiments.score_attacks import score_attacks as run
    from idecode_core.folder.settings import checkpoint_root

    root = checkpoint_root()
    with progress_bars() as report:
        names = run(root, attacked, data_root, points=points, report=report)
    typer.echo(f"{root / FOLDER}: scores of attacks on {', '.join(names)} are stored.")
