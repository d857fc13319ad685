"""The slow half of `reproduce one-class`: train on one class, score its test points and those of the others.

What is on the shelf is left alone, so a stopped run goes on where it was. Runs of training are resumed too.
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

from idecode_core.errors import DataError, SettingError
from idecode_core.folder.detector import scorer_hash
from idecode_core.folder.shelf import CALIBRATION, About, ScoreSet, score_path, write_scores
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet, class_names, load_images
from idecode_core.quality.score_sets import label
from idecode_core.scorer import chunks, prepared
from idecode_core.scorers.once import OnceScorer
from idecode_core.training.loop import train
from idecode_core.training.parts import Parts, load_parts
from idecode_core.training.recipe import Pictures, Recipe
from idecode_core.training.recipes import COARSE, get_recipe
from idecode_core.training.tasks import make_task
from idecode_core.transforms.rotations import RANGES
from paper.one_class_stored import RIVALS as TITLES
from paper.one_class_stored import place
from paper.rivals.csi import CSI
from paper.rivals.goad import GOAD, AffineGOAD
from paper.rivals.one_class import Budget
from paper.rivals.svdd import OCSVM, DeepSVDD
from paper.rivals.turns import Auxiliary, AuxiliaryShifts, Geometric, RotNet

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


def sets_of(recipe: Recipe[Pictures], points: Points) -> list[tuple[ScoreSet, ImageSet]]:
    """The test points of the class, those of the others, and the calibration set, which comes last: it says that all is there.
    Each as it is stored, still without scores."""
    dataset, own, none = recipe.dataset, recipe.shows.classes, np.empty((0, 1), np.float32)
    known = f"{dataset}-{class_names(dataset)[own[0]]}" if len(own) == 1 else recipe.name
    numbers = groups_of(points.strange)
    groups = np.array(class_names(dataset))[numbers] if len(own) == 1 else numbers.astype(str)
    return [
        (ScoreSet(known, label(known), False, none), points.known),
        (ScoreSet(dataset, label(dataset), True, none, groups=groups), points.strange),
        (ScoreSet(CALIBRATION, label(CALIBRATION), False, none), points.calibration),
    ]


def points_of(recipe: Recipe[Pictures], root: Path | None) -> Points:
    parts = load_parts(recipe, root)
    known, strange = test_points(recipe, root)
    if not len(known):
        raise DataError(
            f"{recipe.dataset}-test has no pictures of the classes {recipe.shows.classes}: expected some. Get the dataset again."
        )
    return Points(parts.training, parts.calibration, known, strange)


Store = Callable[[Path, str, OnceScorer | ImageScorer, Callable[[Any], NDArray[np.floating]]], None]
"""Called with a place, a name there, a scorer, and what gives its score vectors of pictures."""


def store_idecode(
    recipe: Recipe[Pictures], parts: Parts[ImageSet], root: Path, run: Path, store: Store
) -> None:
    """Trained by the recipe: (N, 20) for one range per draw, and (N, 5 * 4) for all four, not yet averaged."""
    task = make_task(recipe, parts)
    scorer = task.scorer(train(task, run))
    assert isinstance(scorer, ImageScorer)
    single = replace(scorer, transforms=replace(scorer.transforms, per_draw="one"))  # type: ignore[type-var]
    wide = place(root, recipe.name, all_ranges=True)
    store(wide, IDECODE, scorer, lambda x: each_variant(scorer, x, ALL_DRAWS).reshape(len(x), -1))
    store(
        place(root, recipe.name),
        IDECODE,
        single,
        lambda x: single.score(x, n=ONE_DRAWS, seed=0).score_vectors,
    )


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
IDECODE = "idecode"
METHODS = (IDECODE, *RIVALS)


def store_rivals(recipe: Recipe[Pictures], points: Points, root: Path, method: str, store: Store) -> None:
    """As many steps of as many pictures as iDECODe's recipe; what is fitted comes last, and says that all is done."""
    fitted_kind, *others = RIVALS[method]
    scorer = fitted_kind.fit(points.training.x, budget_of(recipe, len(points.training)))  # type: ignore[attr-defined]
    folder = place(root, recipe.name)
    for rival in (*(other(**vars(scorer)) for other in others), scorer):
        store(folder, rival.kind, rival, lambda x, rival=rival: rival.score(x).score_vectors)  # type: ignore[misc]


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


def stored_as(method: str, seed: int, budget: int) -> str:
    """A name on the shelf for each training of a method; what it is, stands in its `About`. iDECODe's first is the place's own.

    >>> stored_as("goad", 0, 10), stored_as("idecode", 0, 1), stored_as("idecode", 2, 1)
    ('goad-budget-10', '', 'idecode-seed-2')
    """
    more = f"-budget-{budget}" * (budget > 1) + f"-seed-{seed}" * (seed > 0)
    return method + more if more or method != IDECODE else ""


def score_one(
    name: str, method: str, root: Path, data_root: Path | None, runs: Path, seed: int = 0, budget: int = 1
) -> str:
    """Fit one method on one set and write its scores; in a process of one thread. The points are those of the recipe, whatever
    the seed of the training."""
    torch.set_num_threads(1)
    recipe = get_recipe(name)
    points = points_of(recipe, data_root)
    trained = replace(recipe, seed=seed, epochs=budget * recipe.epochs)

    def store(where: Path, kind: str, scorer: Any, scores: Callable[[Any], NDArray[np.floating]]) -> None:
        about = About(TITLES.get(kind, "iDECODe"), knows=name, seed=seed, budget=budget)
        for empty, images in sets_of(recipe, points):
            scored = replace(empty, score_vectors=scores(images.samples))
            write_scores(where, scored, scorer_hash(scorer), stored_as(kind, seed, budget), about)

    if method == IDECODE:
        run = runs / name / stored_as(method, seed, budget)
        store_idecode(trained, load_parts(recipe, data_root), root, run, store)
    else:
        store_rivals(trained, points, root, method, store)
    return f"{name}, {method}, seed {seed}"


def is_stored(root: Path, name: str, method: str, seed: int = 0, budget: int = 1) -> bool:
    return score_path(place(root, name), CALIBRATION, stored_as(method, seed, budget)).exists()


def score_all(
    names: Sequence[str],
    methods: Sequence[str],
    *,
    root: Path,
    data_root: Path | None,
    runs: Path,
    report: Callable[[str], None],
    seed: int = 0,
    budget: int = 1,
) -> None:
    """Every named set with every method, method by method, so that useful results come early."""
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise SettingError(f"No method is called {unknown[0]!r}; expected some of {', '.join(METHODS)}.")
    missing = [(n, m) for m in methods for n in names if not is_stored(root, n, m, seed, budget)]
    # New processes, not copies of this one: torch's threads do not survive a fork.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        started = [pool.submit(score_one, n, m, root, data_root, runs, seed, budget) for n, m in missing]
        for job in started:
            report(job.result())
