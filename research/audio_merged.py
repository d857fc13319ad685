"""The shipped ESC-50 detectors: a classifier whose parts are hidden, merged with the relative distance of a sound's features.

    python -m idecode_core train esc50-animals --out runs/esc50-animals            # and the other four: the classifiers
    python -m idecode_core paper score-sets runs/esc50-animals                     # their scores, which are used again
    python -m research.audio_merged                                                # the table that decides
    python -m research.audio_merged build                                          # checkpoints/esc50-*

A merged score ranks each member's score among reference clips that neither trained the member nor calibrate. Folds 1 and 2 train,
fold 3 calibrates, so nothing is left; the references are cross-fitted instead: members that are fitted to fold 1 score fold 2, and
the other way round. These 160 score vectors per member are a function of folds 1 and 2 alone, so Theorem 1 holds for what is
calibrated on fold 3. They come from members with half of the clips, so ranks of clips that are new to the shipped members lie a
little off; those of calibration and test clips alike. The weights, too, were chosen inside of folds 1 and 2, with the other
categories' clips of the same folds as strangers (docs/audio-findings.md). What was scored is kept in runs/audio-merged.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from idecode_core.audio.sets import ESC50_CATEGORIES, SoundSet, esc50_classes, load_sounds
from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import DataError
from idecode_core.files import write_npz
from idecode_core.files.read import read_arrays
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.quality.metrics import auroc
from idecode_core.quality.score_sets import score_test_sets, sound_sets
from idecode_core.report.card import write_card
from idecode_core.scorer import Vectors
from idecode_core.scorers.merged import MergedScorer, merge_vectors
from idecode_core.scorers.sound_distance import SoundDistance
from idecode_core.training.finish import N_MAX, SELECTION_LEAKS
from idecode_core.training.fit_sounds import CLASSIFIER
from idecode_core.training.loop import train
from idecode_core.training.merge import REFERENCE_DRAWS
from idecode_core.training.parts import by_fold, divide, load_parts
from idecode_core.training.recipe import Recipe, Sounds
from idecode_core.training.recipes import get_recipe
from idecode_core.training.tasks import make_task
from paper.audio import NCM_NAMES

RUNS, CHECKPOINTS = Path("runs"), Path("checkpoints")
KEPT = RUNS / "audio-merged"
DISTANCE = "distance"
MEMBERS = (CLASSIFIER, DISTANCE)
WEIGHTS = {"both": (1.0, 1.0), "distance twice": (1.0, 2.0), "distance four times": (1.0, 4.0)}
TAKEN = "distance four times"
FEW = 5
Halves = list[dict[str, Vectors]]
"""For each of two folds what the members of the other say: "classifier inside", "distance outside" and so on, (clips, draws)."""


@contextmanager
def remembered(file: Path = KEPT / "features.npz") -> Iterator[None]:
    """The features of a clip are computed once, whichever detector asks."""
    known: dict[str, Tensor] = {}
    if file.exists():
        with np.load(file) as arrays:
            known = dict(zip(arrays["keys"].tolist(), torch.from_numpy(arrays["z"]), strict=True))
    compute, before = SoundDistance.encode, len(known)

    def encode(scorer: SoundDistance, blocks: Tensor) -> Tensor:
        key = hashlib.sha256(blocks.numpy().tobytes()).hexdigest()
        if key not in known:
            known[key] = compute(scorer, blocks)
        return known[key]

    with patch.object(SoundDistance, "encode", encode):
        yield
    if len(known) > before:
        write_npz(file, {"keys": np.array(list(known)), "z": torch.stack(list(known.values())).numpy()})


def halves(recipe: Recipe[Sounds], sounds: SoundSet) -> Halves:
    """Members of fold 1 on fold 2, and the other way round."""
    return [half(recipe, sounds, fit, judge) for fit, judge in ((1, 2), (2, 1))]


def half(recipe: Recipe[Sounds], sounds: SoundSet, fit: int, judge: int) -> dict[str, Vectors]:
    path = KEPT / f"{recipe.name}-{fit}.npz"
    names = [f"{member} {side}" for member in MEMBERS for side in ("inside", "outside")]
    if not path.exists():
        classes = esc50_classes(recipe.shows.part)
        own = sounds.where(classes)
        parts = divide(own, by_fold(own, (fit,), (judge,), len(own), recipe.seed))
        outside = sounds.where([c for c in range(50) if c not in classes], (judge,))
        task = make_task(recipe, parts)
        with tempfile.TemporaryDirectory() as folder:
            classifier = task.scorer(train(task, Path(folder)))
        y = torch.from_numpy(parts.training.y)
        scorers = (classifier, SoundDistance.fit(parts.training.samples, y, classes=parts.training.classes))
        vectors = [
            scorer.score(part.samples, n=REFERENCE_DRAWS, seed=0).score_vectors
            for scorer in scorers
            for part in (parts.calibration, outside)
        ]
        write_npz(path, dict(zip(names, vectors, strict=True)))
    arrays = read_arrays(path, names, what="scores", error=DataError, hint="Delete it.")
    return {name: arrays[name].astype(np.float64) for name in names}


def aurocs(scores: dict[str, Vectors]) -> dict[str, float]:
    """Of each member and of both, five draws. A clip that belongs is ranked among the others, never among itself."""
    inside, outside = ([scores[f"{member} {side}"] for member in MEMBERS] for side in ("inside", "outside"))
    pairs = {member: (inside[i][:, :FEW], outside[i][:, :FEW]) for i, member in enumerate(MEMBERS)}
    for name, weights in WEIGHTS.items():
        known = [
            merge_vectors(
                [vectors[i : i + 1, :FEW] for vectors in inside],
                [np.delete(vectors, i, 0) for vectors in inside],
                weights,
            )
            for i in range(len(inside[0]))
        ]
        strange = merge_vectors([vectors[:, :FEW] for vectors in outside], inside, weights)
        pairs[name] = (np.concatenate(known), strange)
    return {name: auroc(a.sum(axis=1), b.sum(axis=1)) for name, (a, b) in pairs.items()}


def build(recipe: Recipe[Sounds], sounds: SoundSet) -> None:
    """Merge, calibrate on fold 3, score fold 4."""
    trained, folder = RUNS / recipe.name, CHECKPOINTS / recipe.name
    detector, parts = load_detector(trained), load_parts(recipe)
    assert parts.test is not None
    training = parts.training
    distance = SoundDistance.fit(training.samples, torch.from_numpy(training.y), classes=training.classes)
    both = halves(recipe, sounds)
    references = tuple(np.concatenate([part[f"{member} inside"] for part in both]) for member in MEMBERS)
    merged = MergedScorer((detector.scorer, distance), MEMBERS, references, WEIGHTS[TAKEN])
    vectors = merged.score(parts.calibration.samples, n=N_MAX, seed=0).score_vectors
    new = Detector(recipe.name, merged, Calibration(vectors, 0), detector.summary, detector.dataset)
    record = {
        name: partial(shutil.copy, trained / name) for name in ("training.json", "split.npz", "log.jsonl")
    }
    save_detector(new, folder, beside=record, selection_leak=SELECTION_LEAKS[recipe.name], replace=True)
    score_test_sets(
        folder,
        sound_sets(recipe.name, parts.test, parts.outside, parts.calibration),
        ablations=list(NCM_NAMES),
        members=[trained],
    )
    write_card(folder)


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    sounds = load_sounds("esc50-train")
    rows = []
    with remembered():
        for category in ESC50_CATEGORIES:
            recipe = get_recipe(f"esc50-{category}")
            if "build" in names:
                build(recipe, sounds)
                continue
            by_fold = [aurocs(part) for part in halves(recipe, sounds)]
            rows.append([[part[name] for name in (*MEMBERS, *WEIGHTS)] for part in by_fold])
            print(
                category,
                *(f"{100 * a:.1f}, {100 * b:.1f}" for a, b in zip(*rows[-1], strict=True)),
                sep=" | ",
                flush=True,
            )
    if rows:
        means = np.mean(rows, axis=(0, 1))
        print(
            "mean",
            *(f"{name} {100 * mean:.1f}" for name, mean in zip((*MEMBERS, *WEIGHTS), means, strict=True)),
            sep=" | ",
        )


if __name__ == "__main__":
    main(sys.argv[1:])
