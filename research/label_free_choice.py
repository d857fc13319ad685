"""What could a detector without labels be asked besides its turn? Tried on development data: `python -m research.label_free_choice`.

First table: networks of the same narrow backbone and number of steps, learned from CIFAR-10's proper training set without labels.
Second table: the shipped `cifar10-rotations` with one random range per draw and with all four, at equal numbers of passes.
docs/rotations.md says what came of it; results/label-free-choice.json is written method by method and read again.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from idecode_core.errors import DataError
from idecode_core.files import write_json
from idecode_core.files.read import read_json
from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.scorer import Scorer
from idecode_core.transforms import SharpRotations
from paper.rivals.csi import CSI
from paper.rivals.goad import GOAD
from paper.rivals.one_class import Budget, OneClass
from paper.rivals.turns import Auxiliary, AuxiliaryShifts, Geometric
from research.development import development_sets, validation_images

RESULTS = Path("results/label-free-choice.json")
FOLDER = Path("checkpoints/cifar10-rotations")
BUDGET = Budget(steps=2000)
ASKED: dict[str, type[OneClass]] = {
    "the turn": Auxiliary,
    "the turn and two shifts": AuxiliaryShifts,
    "which of 72 views": Geometric,
    "the view, by distance from its centre (triplet)": GOAD,
    "the turn, with a contrastive term": CSI,
}
WAYS = {
    f"{per_draw} per draw, n = {n}": (per_draw, n)
    for per_draw, n in (("one", 1), ("one", 4), ("all", 1), ("one", 20), ("all", 5))
}
Found = dict[str, list[float]]
"""By what is asked or drawn: AUROC on each development set."""


def aurocs(scorer: Scorer, sets: list[NDArray[np.uint8]], n: int = 1) -> list[float]:
    """Of the first set, which belongs, against each of the others."""
    known, *strange = (scorer.score(x, n=n, seed=0).score_vectors.sum(axis=1) for x in sets)
    return [auroc(known, one) for one in strange]


def show(title: str, names: list[str], found: Found) -> None:
    rows = [
        [asked, *(f"{100 * value:.1f}" for value in values), f"{100 * np.mean(values):.1f}"]
        for asked, values in found.items()
    ]
    typer.echo(table([title, *names, "mean"], rows) + "\n")


def main(data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None) -> None:
    """Try what has not been tried yet, then print both tables."""
    found: Found = (
        read_json(RESULTS, what="trials", error=DataError, hint="Delete it.") if RESULTS.exists() else {}
    )
    split, outside = read_split(FOLDER), development_sets(data_root)
    sets = [validation_images(split, data_root).x, *(images.x for images in outside.values())]
    proper = load_images("cifar10-train", data_root).take(split.proper)
    for name, method in ASKED.items():
        if name not in found:
            found[name] = aurocs(method.fit(proper.x, BUDGET), sets)
            write_json(RESULTS, found)
    shipped = load_detector(FOLDER).scorer
    assert isinstance(shipped, ImageScorer)
    for name, (per_draw, n) in WAYS.items():
        if name not in found:
            way = replace(shipped, transforms=SharpRotations(per_draw))  # type: ignore[arg-type]
            found[name] = aurocs(way, sets, n)
            write_json(RESULTS, found)
    show("what is asked", list(outside), {name: found[name] for name in ASKED})
    show("turns", list(outside), {name: found[name] for name in WAYS})


if __name__ == "__main__":
    typer.run(main)
