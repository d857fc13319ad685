"""Which base NCM for one-class detection: the paper's, or with familiarity? `python -m research.one_class_choice`.

Development data only: one class of Fashion-MNIST at a time, its held-out training points against training points of the other
nine. No picture of CIFAR is looked at. docs/one-class.md says what came out; results/one-class-choice.json is written class
by class and read again.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from idecode_core.errors import DataError
from idecode_core.files import write_json
from idecode_core.files.read import read_json
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.models import ModelConfig
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.training.loop import train
from idecode_core.training.parts import image_parts
from idecode_core.training.recipe import Pictures, Recipe
from idecode_core.training.recipes import get_recipe
from idecode_core.training.tasks import make_task

RESULTS, RUNS = Path("results/one-class-choice.json"), Path("runs/one-class-choice")
SETS = {"pullover": 2, "sandal": 5}
NCMS = ("cross_entropy", "cross_entropy_and_familiarity")
OOD_POINTS, DRAWS, EPOCHS = 1000, 5, 2


def fashion_recipe(known_class: int) -> Recipe[Pictures]:
    """The recipe of CIFAR-10's classes, for grey pictures of clothing."""
    recipe = get_recipe("cifar10-horses")
    model = ModelConfig("compact", outputs=4, widths=(16, 64, 128), mean=(0.5,) * 3, std=(0.35,) * 3)
    return replace(
        recipe,
        name=f"fashion-{known_class}",
        dataset="fashion",
        shows=replace(recipe.shows, model=model, grey=True, classes=(known_class,)),
        epochs=EPOCHS,
    )


def trial(known_class: int, data_root: Path | None) -> dict[str, float]:
    """AUROC by base NCM on one class."""
    recipe, pictures = fashion_recipe(known_class), load_images("fashion-train", data_root)
    task = make_task(recipe, image_parts(recipe, pictures))
    scorer = task.scorer(train(task, RUNS / recipe.name))
    assert isinstance(scorer, ImageScorer)
    others = pictures.take(np.flatnonzero(pictures.y != known_class))
    strange = others.x[np.sort(np.random.default_rng(0).permutation(len(others))[:OOD_POINTS])]
    known, outside = (
        scorer.score_under(NCMS, x, n=DRAWS, seed=0) for x in (task.parts.calibration.x, strange)
    )
    sums = {ncm: [scored[ncm].score_vectors.sum(axis=1) for scored in (known, outside)] for ncm in NCMS}
    return {ncm: auroc(*pair) for ncm, pair in sums.items()}


def main(data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None) -> None:
    """Try what has not been tried yet, then print the table."""
    trials = read_json(RESULTS, what="trials", error=DataError, hint="Delete it.") if RESULTS.exists() else {}
    for name, known_class in SETS.items():
        if name not in trials:
            trials[name] = trial(known_class, data_root)
            write_json(RESULTS, trials)
    rows = []
    for ncm in NCMS:
        values = [100 * trials[name][ncm] for name in SETS]
        rows.append([ncm, *(f"{value:.1f}" for value in values), f"{np.mean(values):.1f}"])
    typer.echo(table([f"AUROC, n={DRAWS}", *SETS, "mean"], rows))


if __name__ == "__main__":
    typer.run(main)
