"""How should pictures be turned? Tried on development data: `python -m research.rotation_choice FOLDER...`.

Detectors of rotations, each with three ways to turn a picture: exact quarter turns, the paper's ranges with bilinear
sampling, and the same ranges with bicubic sampling. docs/rotations.md holds the table.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.transforms import Rotations, SharpRotations
from research.development import development_sets, validation_images

DRAWS = 2
WAYS: dict[str, Rotations] = {
    "quarter turns": Rotations("all", jitter=0),
    "ranges, bilinear": Rotations("all"),
    "ranges, bicubic": SharpRotations("all"),
}


def sums(scorer: ImageScorer, images: ImageSet) -> NDArray[np.float64]:
    """F over a few draws: (N,)."""
    total: NDArray[np.float64] = scorer.score(images.x, n=DRAWS, seed=0).score_vectors.sum(axis=1)
    return total


def main(
    folders: Annotated[list[Path], typer.Argument(help="Detectors of rotations, trained on one split.")],
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
) -> None:
    """AUROC in percent on every development set, and the mean."""
    outside, rows = development_sets(data_root), []
    for folder in folders:
        known = validation_images(read_split(folder), data_root)
        scorer = load_detector(folder).scorer
        assert isinstance(scorer, ImageScorer)
        for name, transforms in WAYS.items():
            way = replace(scorer, transforms=transforms)
            inside = sums(way, known)
            aurocs = [auroc(inside, sums(way, images)) for images in outside.values()]
            cells = [f"{100 * value:.1f}" for value in aurocs]
            rows.append([folder.name, name, *cells, f"{100 * np.mean(aurocs):.1f}"])
    typer.echo(table(["detector", "pictures are turned by", *outside, "mean"], rows))


if __name__ == "__main__":
    typer.run(main)
