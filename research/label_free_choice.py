"""What could a detector without labels be asked besides its turn? Tried on development data: `python -m research.label_free_choice`.

First table: networks of the same narrow backbone and number of steps, learned from CIFAR-10's proper training set without labels.
Second table: the shipped `cifar10-rotations` with one random range per draw and with all four, at equal numbers of passes.
Third table: its turn, and how far x itself lies from the training set by its features, merged by ranks as a merged detector does.
docs/rotations.md says what came of it; results/label-free-choice.json is written method by method and read again.
Fourth table, with `--networks FOLDER` for each: rotation networks that hold out the same points, alone and together.
"""

from dataclasses import replace
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from idecode_core.errors import DataError
from idecode_core.files import write_json
from idecode_core.files.read import read_json
from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import Split, read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.scorer import Scorer, Vectors
from idecode_core.scorers.distances import TurnedMahalanobisOnce, shared_gaussian, squared_distances
from idecode_core.scorers.logits import Energy
from idecode_core.scorers.merged import merge_vectors
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
EVERY, OF_TRAINING, DRAWS = 3, 6, 5
"""Third table: one in this many of the larger sets (of the validation part, one in two), and of the training set; draws."""
TURN, SHIPPED, DISTANCE, NEIGHBOUR = "turn", "turn and familiarity", "Mahalanobis of x", "10th neighbour of x"
TURNED = "Mahalanobis, turned and mirrored"
TOGETHER = {
    TURN: {TURN: 1.0},
    f"{SHIPPED} (`cifar10-rotations`)": {SHIPPED: 1.0},
    DISTANCE: {DISTANCE: 1.0},
    NEIGHBOUR: {NEIGHBOUR: 1.0},
    f"{TURN} + {DISTANCE}": {TURN: 1.0, DISTANCE: 1.0},
    f"{SHIPPED} + {DISTANCE}": {SHIPPED: 1.0, DISTANCE: 1.0},
    f"twice {SHIPPED} + {DISTANCE}": {SHIPPED: 2.0, DISTANCE: 1.0},
    f"{SHIPPED} + twice {DISTANCE}": {SHIPPED: 1.0, DISTANCE: 2.0},
    f"{SHIPPED} + {NEIGHBOUR}": {SHIPPED: 1.0, NEIGHBOUR: 1.0},
    TURNED: {TURNED: 1.0},
    f"{SHIPPED} + {TURNED}": {SHIPPED: 1.0, TURNED: 1.0},
    f"{SHIPPED} + twice {TURNED}": {SHIPPED: 1.0, TURNED: 2.0},
}
"""What is added up, with its weight."""
BEFORE = (
    "buildings and roads",
    "natural scenes",
    "invertebrates",
    "trees",
    "house numbers",
    "textures",
    "photographs",
)
"""The development sets when the first two tables were made: `research.development` says why there are others now."""
Aurocs = dict[str, list[float]]
"""By what is asked or drawn: AUROC on each development set."""


def aurocs(scorer: Scorer, sets: list[NDArray[np.uint8]], n: int = 1) -> list[float]:
    """Of the first set, which belongs, against each of the others."""
    known, *strange = (scorer.score(x, n=n, seed=0).score_vectors.sum(axis=1) for x in sets)
    return [auroc(known, scores) for scores in strange]


def members_of(
    scorer: ImageScorer, sets: list[NDArray[np.uint8]], training: NDArray[np.uint8]
) -> list[dict[str, Vectors]]:
    """Of each set, base scores (N, DRAWS) of all that can be added up; distances learn from pictures of the training set."""
    fitted = features(scorer, training[::OF_TRAINING])  # (M, d)
    turned = TurnedMahalanobisOnce.fit(scorer, training, torch.zeros(len(training)))
    known = normalize(fitted, dim=-1)
    gaussian = shared_gaussian(known, torch.zeros(len(known), dtype=torch.long))
    ncms = {TURN: "cross_entropy", SHIPPED: "cross_entropy_and_familiarity"}
    members = []
    for x in sets:
        turns = scorer.score_under(list(ncms.values()), x, n=DRAWS, seed=0)
        z = normalize(features(scorer, x), dim=-1)
        once = {
            DISTANCE: squared_distances(z, *gaussian).amin(dim=1),
            NEIGHBOUR: torch.cdist(z, known).kthvalue(10, dim=1).values,
            TURNED: torch.from_numpy(turned.score(x).score_vectors[:, 0]),
        }
        parts = {name: turns[ncm].score_vectors for name, ncm in ncms.items()}
        members.append(
            parts | {name: values.double().numpy()[:, None].repeat(DRAWS, 1) for name, values in once.items()}
        )
    return members


def thinned(sets: list[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
    return [sets[0][::2], *(x[::EVERY] if len(x) > 400 else x for x in sets[1:])]


def compare_networks(folders: list[Path], data_root: Path | None) -> Aurocs:
    """Of every set of networks: their turns, their distances and both, all with equal weights. No point that all of them keep for
    calibration has a part in it."""
    splits = [read_split(folder) for folder in folders]
    calibration = reduce(np.intersect1d, [split.calibration for split in splits])
    held_out = np.union1d(splits[0].validation, splits[0].calibration)
    split = Split(splits[0].proper, np.setdiff1d(held_out, calibration), calibration)
    outside = development_sets(data_root)
    sets = thinned([validation_images(split, data_root).x, *(images.x for images in outside.values())])
    proper = load_images("cifar10-train", data_root).take(split.proper).x[::OF_TRAINING]
    parts: list[dict[str, Vectors]] = [{} for _ in sets]
    for folder in folders:
        scorer = load_detector(folder).scorer
        assert isinstance(scorer, ImageScorer)
        for together, members in zip(parts, members_of(scorer, sets, features(scorer, proper)), strict=True):
            together |= {f"{folder.name}: {name}": vectors for name, vectors in members.items()}
    several = [names for size in range(1, len(folders) + 1) for names in combinations(folders, size)]
    rows: Aurocs = {}
    for names in several:
        for asked in ((SHIPPED,), (DISTANCE,), (SHIPPED, DISTANCE)):
            weights = {f"{folder.name}: {name}": 1.0 for folder in names for name in asked}
            title = f"{' + '.join(folder.name for folder in names)}: {' and '.join(asked)}"
            rows |= {f"{title}, n = {n}": merged_aurocs(parts, weights, n) for n in (1, DRAWS)}
    return rows


def features(scorer: ImageScorer, x: NDArray[np.uint8]) -> Tensor:
    return Energy(model=scorer.model, preprocessing=scorer.preprocessing).encode(x)


def merged_aurocs(sets: list[dict[str, Vectors]], weights: dict[str, float], n: int) -> list[float]:
    """Half of the first set ranks, its other half is held against each of the others."""
    half = len(next(iter(sets[0].values()))) // 2
    vectors = [[parts[name][:, :n] for name in weights] for parts in sets]
    references = [member[:half] for member in vectors[0]]
    vectors[0] = [member[half:] for member in vectors[0]]
    known, *strange = (
        merge_vectors(of_set, references, [*weights.values()]).sum(axis=1) for of_set in vectors
    )
    return [auroc(known, scores) for scores in strange]


def show(title: str, names: list[str], aurocs: Aurocs) -> None:
    if any(len(values) != len(names) for values in aurocs.values()):
        names = list(BEFORE)
    rows = [
        [asked, *(f"{100 * value:.1f}" for value in values), f"{100 * np.mean(values):.1f}"]
        for asked, values in aurocs.items()
    ]
    typer.echo(table([title, *names, "mean"], rows) + "\n")


def main(
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
    networks: Annotated[
        list[Path] | None, typer.Option(help="Detectors by turns: only these are compared.")
    ] = None,
) -> None:
    """Try what has not been tried yet, then print the tables."""
    if networks:
        show("networks", list(development_sets(data_root)), compare_networks(networks, data_root))
        return
    trials: Aurocs = (
        read_json(RESULTS, what="trials", error=DataError, hint="Delete it.") if RESULTS.exists() else {}
    )
    split, outside = read_split(FOLDER), development_sets(data_root)
    sets = [validation_images(split, data_root).x, *(images.x for images in outside.values())]
    proper = load_images("cifar10-train", data_root).take(split.proper)
    for name, method in ASKED.items():
        if name not in trials:
            trials[name] = aurocs(method.fit(proper.x, BUDGET), sets)
            write_json(RESULTS, trials)
    shipped = load_detector(FOLDER).scorer
    assert isinstance(shipped, ImageScorer)
    for name, (per_draw, n) in WAYS.items():
        if name not in trials:
            way = replace(shipped, transforms=SharpRotations(per_draw))  # type: ignore[arg-type]
            trials[name] = aurocs(way, sets, n)
            write_json(RESULTS, trials)
    added = {f"{name}, n = {n}": (weights, n) for name, weights in TOGETHER.items() for n in (1, DRAWS)}
    if not added.keys() <= trials.keys():
        parts = members_of(shipped, thinned(sets), proper.x)
        trials |= {name: merged_aurocs(parts, *each) for name, each in added.items()}
        write_json(RESULTS, trials)
    show("what is asked", list(outside), {name: trials[name] for name in ASKED})
    show("turns", list(outside), {name: trials[name] for name in WAYS})
    show("added up", list(outside), {name: trials[name] for name in added})


if __name__ == "__main__":
    typer.run(main)
