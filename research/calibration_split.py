"""Why does `cifar10-rotations` flag 7.5 % of its own validation part at 0.05? `python -m research.calibration_split`.

A second network of the same recipe is trained on the same proper training set, shorter and with another seed. If the points
in the tail are hard pictures, both networks find the same ones hard; if something went wrong in the first training, only
that one does. docs/rotations.md says what was found.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.stats import hypergeom, spearmanr

from idecode_core.conformal.ranking import threshold
from idecode_core.folder.detector import load_detector
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.report.tables import table
from idecode_core.training.loop import train
from idecode_core.training.parts import load_parts
from idecode_core.training.recipes import get_recipe
from idecode_core.training.tasks import make_task
from idecode_core.transforms import Rotations, SharpRotations

EPOCHS, SEED, EPSILON = 6, 1, 0.05
TRAINED = 2500  # points of the proper training set, to compare
BINS = 50
BASE_NCMS = ("cross_entropy", "cross_entropy_and_familiarity")
Scores = dict[str, NDArray[np.float64]]
"""By part: calibration, validation, test, training."""


def flagged(scores: Mapping[str, NDArray[np.float64]], part: str) -> NDArray[np.bool_]:
    """Which points of a part are above the calibration set's threshold."""
    return scores[part] > threshold(scores["calibration"], EPSILON)


def chance(scores: Mapping[str, NDArray[np.float64]]) -> float:
    """How often a random division of the held-out points gives the validation part as many of the strangest or more."""
    k, v = len(scores["calibration"]), len(scores["validation"])
    above = int(flagged(scores, "validation").sum())
    return float(hypergeom.sf(above - 1, k + v, above + int(flagged(scores, "calibration").sum()), v))


def excess(first: Scores, other: Scores, part: str) -> tuple[float, float]:
    """How much stranger the first network finds the points of a part than test points that the second finds as strange, with its
    standard error. Points that the first one has learned would be far less strange to it."""
    edges = np.quantile(other["test"], np.linspace(0, 1, BINS + 1)[1:-1])
    of_test, of_part = (np.digitize(other[name], edges) for name in ("test", part))
    usual = np.array([first["test"][of_test == i].mean() for i in range(BINS)])
    difference = first[part] - usual[of_part]
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def main(
    folder: Annotated[Path, typer.Argument(help="The detector in question.")] = Path(
        "checkpoints/cifar10-rotations"
    ),
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
    run: Annotated[Path, typer.Option(help="Where the second network is trained; goes on there.")] = Path(
        "runs/second-rotations"
    ),
) -> None:
    """Shares flagged at 0.05 by both networks, with and without familiarity and bicubic sampling; how far they agree."""
    recipe = get_recipe("cifar10-rotations")
    parts = load_parts(recipe, data_root)  # by the recipe's own seed
    shorter = replace(
        recipe,
        name="second-rotations",
        seed=SEED,
        epochs=EPOCHS,
        shows=replace(recipe.shows, bfloat16=True),
        transforms=SharpRotations("all"),
    )
    task = make_task(shorter, parts)
    first, second = load_detector(folder).scorer, task.scorer(train(task, run))
    assert isinstance(first, ImageScorer)
    assert isinstance(second, ImageScorer)
    sets = {
        "calibration": parts.calibration,
        "validation": parts.validation,
        "test": load_images("cifar10-test", data_root),
        "training": parts.training.take(np.random.default_rng(0).permutation(len(parts.training))[:TRAINED]),
    }
    by_key: dict[tuple[str, str, str], Scores] = {}
    for network, scorer in {"shipped": first, "second": second}.items():
        for sampling, kind in {"bicubic": SharpRotations, "bilinear": Rotations}.items():
            turned = replace(scorer, transforms=kind(per_draw="all"))
            for part, images in sets.items():
                for name, scored in turned.score_under(BASE_NCMS, images.x, n=1, seed=0).items():
                    by_key.setdefault((network, sampling, name), {})[part] = scored.score_vectors[:, 0]
    rows = [
        [
            *key,
            *(f"{100 * flagged(scores, part).mean():.1f}" for part in ("validation", "test")),
            f"{chance(scores):.5f}",
            *(f"{scores[part].mean():.3f}" for part in sets),
        ]
        for key, scores in by_key.items()
    ]
    typer.echo(
        table(
            [
                "network",
                "sampling",
                "base NCM",
                "validation",
                "test",
                "chance",
                *(f"mean, {part}" for part in sets),
            ],
            rows,
        )
    )
    shipped, other = (by_key[network, "bicubic", "cross_entropy"] for network in ("shipped", "second"))
    rows = []
    for part in sets:
        both = flagged(shipped, part) & flagged(other, part)
        shared = both.sum() / max(1, flagged(shipped, part).sum())
        stranger, error = excess(shipped, other, part)
        rows.append(
            [
                part,
                f"{100 * shared:.0f}",
                f"{spearmanr(shipped[part], other[part]).statistic:.2f}",
                f"{stranger:+.3f} ± {error:.3f}",
            ]
        )
    titles = [
        "part",
        "of those that the shipped one flags, the second flags (%)",
        "rank correlation",
        "shipped, beyond what the second expects",
    ]
    typer.echo(table(titles, rows))


if __name__ == "__main__":
    typer.run(main)
