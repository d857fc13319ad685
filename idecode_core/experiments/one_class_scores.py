"""The slow half of `reproduce one-class`: train on one class, score its test points and those of the others.

One small file per set and method, `<root>/one-class/scores/<set>--<method>.npz`; what is there is left alone, so a stopped
run goes on where it was. Runs of training are resumed too.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.baselines.auxiliary import Auxiliary, AuxiliaryShifts
from idecode_core.baselines.csi import CSI
from idecode_core.baselines.deep_svdd import DeepSVDD
from idecode_core.baselines.fitting import Budget
from idecode_core.baselines.geometric import Geometric
from idecode_core.baselines.goad import GOAD, AffineGOAD
from idecode_core.baselines.oc_svm import OCSVM
from idecode_core.baselines.once import OnceScorer
from idecode_core.baselines.rotnet import RotNet
from idecode_core.errors import DataError, SettingError
from idecode_core.evaluation.one_class_rivals import GROUPS, PARTS, score_path
from idecode_core.files import write_npz
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet, load_images
from idecode_core.scorer import chunks, prepared
from idecode_core.training.loop import train
from idecode_core.training.parts import load_parts
from idecode_core.training.recipe import Pictures, Recipe
from idecode_core.training.recipes import COARSE, get_recipe
from idecode_core.training.tasks import make_task
from idecode_core.transforms.rotations import RANGES

STRANGE_PER_CLASS = 50
ONE_DRAWS, ALL_DRAWS = 20, 5
"""Draws per point in the modes "one" (one g per draw) and "all" (all four ranges per draw)."""
POINTS_AT_ONCE = 32
Float32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Points:
    """What a one-class method is given and tested on; calibration and test points are new to it."""

    training: ImageSet
    calibration: ImageSet
    known: ImageSet  # test points of the class
    strange: ImageSet  # a random part of the test points of the others, as many of each


def test_points(recipe: Recipe[Pictures], root: Path | None) -> tuple[ImageSet, ImageSet]:
    """Test points of the recipe's classes, and of each other class (of CIFAR-100: superclass) as many, at random by a
    fixed seed."""
    test, own = load_images(f"{recipe.dataset}-test", root), recipe.shows.classes
    groups = groups_of(test)
    inside = np.isin(test.y, own)
    generator = np.random.default_rng(0)
    strange = [
        generator.permutation(np.flatnonzero((groups == group) & ~inside))[:STRANGE_PER_CLASS]
        for group in np.unique(groups[~inside])
    ]
    return test.take(np.flatnonzero(inside)), test.take(np.sort(np.concatenate(strange)))


def groups_of(images: ImageSet) -> NDArray[np.int64]:
    """The class of each point; of CIFAR-100, its superclass."""
    groups: NDArray[np.int64] = (
        np.array(COARSE, int)[images.y] if images.name.startswith("cifar100-") else images.y
    )
    return groups


def points_of(recipe: Recipe[Pictures], root: Path | None) -> Points:
    parts = load_parts(recipe, root)
    known, strange = test_points(recipe, root)
    if not len(known):
        raise DataError(
            f"{recipe.dataset}-test has no pictures of the classes {recipe.shows.classes}: expected some. Get the dataset again."
        )
    return Points(parts.training, parts.calibration, known, strange)


def idecode_scores(
    recipe: Recipe[Pictures], points: Points, root: Path | None, runs: Path
) -> dict[str, Float32]:
    """Trained by the recipe: per part (N, 20) for one range per draw, and (N, 5, 4) for all four, not yet averaged."""
    task = make_task(recipe, load_parts(recipe, root))
    scorer = task.scorer(train(task, runs / recipe.name))
    assert isinstance(scorer, ImageScorer)
    single = replace(scorer, transforms=replace(scorer.transforms, per_draw="one"))  # type: ignore[type-var]
    found = {}
    for part in PARTS:
        x = getattr(points, part).samples
        found[f"{part}_one"] = single.score(x, n=ONE_DRAWS, seed=0).score_vectors.astype(np.float32)
        found[f"{part}_all"] = each_variant(scorer, x, ALL_DRAWS)
    return found


def each_variant(scorer: ImageScorer, x: NDArray[np.uint8], n: int) -> Float32:
    """The base scores of all variants of all draws, before those of a draw are averaged: (N, n, variants)."""
    rows = []
    for chunk in chunks(prepared(scorer, x, seed=0), POINTS_AT_ONCE):
        drawn = scorer.transforms.sample(np.stack([point.key for point in chunk]), n)
        with torch.inference_mode():
            scores = scorer.predict(scorer.tensor(chunk), drawn).scores(
                scorer.base_ncm
            )  # (batch, n * variants)
        rows.append(scores.float().numpy().reshape(len(chunk), n, -1))
    return np.concatenate(rows)


RIVALS: dict[str, tuple[type[OnceScorer], ...]] = {
    "rotnet": (RotNet, Auxiliary),
    "oc_svm": (OCSVM,),
    "deep_svdd": (DeepSVDD,),
    "geometric": (Geometric,),
    "goad": (GOAD,),
    "auxiliary_shifts": (AuxiliaryShifts,),
    "csi": (CSI,),
    "goad_affine": (AffineGOAD,),
}
"""What is fitted, and what else looks at the same network."""
METHODS = ("idecode", *RIVALS)


def rival_scores(method: str, recipe: Recipe[Pictures], points: Points) -> dict[str, dict[str, NDArray[Any]]]:
    """By kind: the scores of each part, (N, 1), and the classes of the strange points. As many steps of as many pictures as
    iDECODe's recipe."""
    fitted_kind, *others = RIVALS[method]
    scorer = fitted_kind.fit(points.training.x, budget_of(recipe, len(points.training)))  # type: ignore[attr-defined]
    scorers = [scorer, *(other(**vars(scorer)) for other in others)]
    groups = groups_of(points.strange).astype(np.int16)
    return {
        one.kind: {
            part: one.score(getattr(points, part).samples).score_vectors.astype(np.float32) for part in PARTS
        }
        | {GROUPS: groups}
        for one in scorers
    }


def budget_of(recipe: Recipe[Pictures], training_points: int) -> Budget:
    """What iDECODe's recipe spends, in a rival's words: it shows each picture in all four ranges."""
    shows = recipe.shows
    return Budget(
        steps=recipe.epochs * max(1, training_points // recipe.batch),
        batch=recipe.batch * RANGES,
        widths=shows.model.widths,
        size=shows.size,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
    )


def score_one(name: str, method: str, root: Path, data_root: Path | None, runs: Path) -> str:
    """Fit one method on one set and write its scores; in a process of one thread."""
    torch.set_num_threads(1)
    recipe = get_recipe(name)
    points = points_of(recipe, data_root)
    if method == "idecode":
        found: dict[str, dict[str, NDArray[Any]]] = {method: idecode_scores(recipe, points, data_root, runs)}
    else:
        found = rival_scores(method, recipe, points)
    for kind, arrays in reversed(found.items()):  # the file that says that all is done comes last
        write_npz(score_path(root, name, kind), arrays)
    return f"{name}, {method}"


def score_all(
    names: Sequence[str],
    methods: Sequence[str],
    *,
    root: Path,
    data_root: Path | None,
    runs: Path,
    report: Callable[[str], None],
) -> None:
    """Every named set with every method, method by method, so that useful results come early."""
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise SettingError(f"No method is called {unknown[0]!r}; expected some of {', '.join(METHODS)}.")
    missing = [(n, m) for m in methods for n in names if not score_path(root, n, m).exists()]
    # New processes, not copies of this one: torch's threads do not survive a fork.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        started = [pool.submit(score_one, n, m, root, data_root, runs) for n, m in missing]
        for one in started:
            report(one.result())
