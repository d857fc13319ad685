"""Trials behind the ESC-50 recipes: train on folds 1 and 2, judge on fold 3. Fold 4, the test, is not looked at.

    python -m research.audio_trials [TRIAL ...]      # all of them: a quarter of an hour on one core

Every trial is the recipe with something changed. AUROC in percent is of summed scores, without calibration (fold 3
judges here, so it cannot calibrate as well). Results go to results/audio-trials.json; those that are there are kept.
docs/audio-findings.md reads them.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from idecode_core.audio.sets import ESC50_CATEGORIES, SoundSet, esc50_classes, load_sounds
from idecode_core.files import write_json
from idecode_core.ncm import softmax_baseline
from idecode_core.quality.metrics import auroc
from idecode_core.training.loop import train
from idecode_core.training.parts import by_fold, divide
from idecode_core.training.recipe import Recipe, Sounds
from idecode_core.training.recipes import get_recipe
from idecode_core.training.tasks import make_task
from idecode_core.transforms.specaugment import PAPER_MASKS, SpecAugment
from paper.audio import NCM_NAMES

RESULTS = Path(__file__).parent.parent / "results" / "audio-trials.json"
MASKS = {
    "usual masks": SpecAugment(),  # 28 % hidden
    "wide masks": SpecAugment(time_width=16, frequency_width=8, time_masks=6, frequency_masks=3),  # 44 %
    "paper's masks": PAPER_MASKS,  # 82 %
}
OOD_CLIPS = 160
DRAWS = 20


@dataclass(frozen=True)
class Trial:
    """What is changed in the recipe, the masks to score with, the categories to try."""

    mixup: float
    trained_with: SpecAugment = MASKS["usual masks"]
    masks: Sequence[str] = ("usual masks",)
    categories: Sequence[str] = ESC50_CATEGORIES

    def recipe(self, category: str) -> Recipe[Sounds]:
        usual = get_recipe(f"esc50-{category}")
        return replace(usual, transforms=self.trained_with, shows=replace(usual.shows, mixup=self.mixup))


TRIALS = {
    "mixup": Trial(0.3, masks=("usual masks", "wide masks")),
    "plain": Trial(0.0, masks=("usual masks", "wide masks", "paper's masks")),
    "trained with the paper's masks": Trial(
        0.0, PAPER_MASKS, ("usual masks", "paper's masks"), ("animals", "urban")
    ),
}


def try_recipe(recipe: Recipe[Sounds], masks: Sequence[str], sounds: SoundSet) -> dict[str, object]:
    """Train on folds 1 and 2; accuracy, SBP and every base NCM at n = 1, 5 and 20 on fold 3."""
    own = sounds.where(esc50_classes(recipe.shows.part))
    parts = divide(own, by_fold(own, (1, 2), (3,), len(own), recipe.seed))
    inside = parts.calibration  # fold 3, which judges here
    outside = others(recipe, sounds, 3)
    task = make_task(recipe, parts)
    with tempfile.TemporaryDirectory() as folder:
        scorer = task.scorer(train(task, Path(folder)))
    logits = scorer.logits(inside.samples)
    sbp = [softmax_baseline(answers).numpy() for answers in (logits, scorer.logits(outside.samples))]
    outcome: dict[str, object] = {
        "accuracy": float((logits.argmax(dim=1).numpy() == inside.y).mean()),
        "SBP": auroc(*sbp),
    }
    for name in masks:
        masked = replace(scorer, transforms=MASKS[name])
        known, strange = (
            masked.score_under(list(NCM_NAMES), part.samples, n=DRAWS, seed=0) for part in (inside, outside)
        )
        outcome[name] = {
            ncm: {
                f"n={n}": mean_auroc(known[ncm].score_vectors, strange[ncm].score_vectors, n)
                for n in (1, 5, 20)
            }
            for ncm in NCM_NAMES
        }
    return outcome


def others(recipe: Recipe[Sounds], sounds: SoundSet, fold: int) -> SoundSet:
    """OOD clips of a fold: some of the other categories."""
    classes = esc50_classes(recipe.shows.part)
    outside = sounds.where([c for c in range(50) if c not in classes], (fold,))
    return outside.take(np.sort(np.random.default_rng(1).permutation(len(outside))[:OOD_CLIPS]))


def mean_auroc(known: np.ndarray, strange: np.ndarray, n: int) -> float:
    """Over the runs of n draws that there are."""
    cuts = [slice(i, i + n) for i in range(0, DRAWS - n + 1, n)]
    return float(np.mean([auroc(known[:, cut].sum(axis=1), strange[:, cut].sum(axis=1)) for cut in cuts]))


def main(names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    sounds = load_sounds("esc50-train")
    wanted = [(name, category) for category in ESC50_CATEGORIES for name in names or TRIALS]
    for name, category in wanted:
        trial = TRIALS[name]
        if category not in trial.categories or category in results.setdefault(name, {}):
            continue
        results[name][category] = outcome = try_recipe(trial.recipe(category), trial.masks, sounds)
        write_json(RESULTS, results)
        best = outcome["usual masks"]["soft_disagreement"]  # type: ignore[index]
        print(f"{name}, {category}: SBP {100 * outcome['SBP']:.1f}, soft disagreement {best}", flush=True)  # type: ignore[operator]


if __name__ == "__main__":
    main(sys.argv[1:])
