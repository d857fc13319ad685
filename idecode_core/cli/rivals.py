"""`score-rivals`: scores of other methods on our networks. `rival`: one of them as a detector of its own."""

from typing import Annotated

import typer

from idecode_core.cli.inputs import DataRoot, NewDetector, new_place


def score_rivals(
    names: Annotated[
        list[str] | None, typer.Argument(help="Rivals; all if left out. A wrong name lists them.")
    ] = None,
    data_root: DataRoot = None,
) -> None:
    """Score the test sets with rival methods on the networks of our detectors, and measure what each method costs.

    Small files below checkpoints/rivals/ take the scores; `reproduce rivals` and the Evaluate page read them. What is stored
    is left alone, so a stopped run goes on where it was.

    \b
    Examples:
      python -m idecode_core score-rivals --data-root data
      python -m idecode_core score-rivals vim odin
    """
    from idecode_core.evaluation import rival_scores
    from idecode_core.folder.settings import checkpoint_root
    from idecode_core.folder.stored import open_all

    root = checkpoint_root()
    made = rival_scores.score_rivals(root, names or [], data_root=data_root, say=typer.echo)
    detectors = [stored.name for stored in open_all(root)]
    rival_scores.score_costs(root, detectors, data_root=data_root, say=typer.echo)
    typer.echo(f"{root / 'rivals'}: {', '.join(made) or 'nothing new'}.")


def rival(
    method: Annotated[str, typer.Argument(help="A rival; a wrong name lists them.", show_default=False)],
    out: NewDetector,
    data_root: DataRoot = None,
) -> None:
    """Make a rival method a detector: fitted on the training data of its network, calibrated on held-out points.

    From then on it is a detector as any other: in the app, in `detect`, `merge` and `score`, with the same bound.

    \b
    Example:
      python -m idecode_core rival vim --out checkpoints/vim
    """
    from idecode_core.detector import Detector
    from idecode_core.errors import SettingError
    from idecode_core.evaluation.rival_scores import RIVALS, fit, open_network
    from idecode_core.folder.detector import save_detector
    from idecode_core.folder.settings import find_detector
    from idecode_core.report.card import write_card

    if method not in RIVALS:
        raise SettingError(f"No rival is called {method!r}; expected one of {', '.join(RIVALS)}.")
    out = new_place(out)
    network = open_network(find_detector(RIVALS[method].network), data_root)
    made = Detector.calibrate(
        out.name,
        fit(RIVALS[method], network),
        network.parts.calibration.samples,
        summary=network.settings.summary,
        dataset=network.settings.dataset,
    )
    save_detector(made, out)
    write_card(out)
    typer.echo(f"{out}: {RIVALS[method].title}, calibrated on {made.calibration.k:,} held-out images.")
