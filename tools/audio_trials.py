"""Trials behind the ESC-50 recipes: train on folds 1 and 2, judge on fold 3. Fold 4, the test, is not looked at.

    python tools/audio_trials.py [TRIAL ...]      # all of them: a quarter of an hour on one core

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

from idecode_core.audio_recipes import AUDIO_RECIPES, AudioRecipe
from idecode_core.audio_training import train_audio
from idecode_core.experiments.audio_scores import ABLATIONS, score_in_one_pass, softmax_baseline
from idecode_core.files import write_json
from idecode_core.metrics import auroc
from idecode_core.sound_sets import ESC50_CATEGORIES, SoundSet, esc50_classes, load_sounds
from idecode_core.transforms.specaugment import PAPER_MASKS, SpecAugment

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
    """Changes of the recipe, the masks to score with, the categories to try."""

    changes: dict[str, object]
    masks: Sequence[str] = ("usual masks",)
    categories: Sequence[str] = ESC50_CATEGORIES


TRIALS = {
    "mixup": Trial({"mixup": 0.3}, ("usual masks", "wide masks")),
    "plain": Trial({"mixup": 0.0}, ("usual masks", "wide masks", "paper's masks")),
    "trained with the paper's masks": Trial(
        {"mixup": 0.0, "transforms": PAPER_MASKS}, ("usual masks", "paper's masks"), ("animals", "urban")
    ),
}


def judge(recipe: AudioRecipe, masks: Sequence[str], sounds: SoundSet) -> dict[str, object]:
    """Train on folds 1 and 2; accuracy, SBP and every base NCM at n = 1, 5 and 20 on fold 3."""
    own = esc50_classes(recipe.part)
    inside = sounds.where(own, (3,))
    outside = sounds.where([c for c in range(50) if c not in own], (3,))
    outside = outside.take(np.sort(np.random.default_rng(1).permutation(len(outside))[:OOD_CLIPS]))
    with tempfile.TemporaryDirectory() as folder:
        scorer = train_audio(recipe, Path(folder), sounds.where(own, (1, 2)))
    shares = scorer.shares(inside.clips)
    found: dict[str, object] = {
        "accuracy": float((shares.argmax(axis=1) == inside.y).mean()),
        "SBP": auroc(1 - shares.max(axis=1), softmax_baseline(scorer, outside.clips)),
    }
    for name in masks:
        masked = replace(scorer, transforms=MASKS[name])
        known, strange = (
            score_in_one_pass(masked, part.clips, ABLATIONS, n=DRAWS, seed=0) for part in (inside, outside)
        )
        found[name] = {
            ncm: {f"n={n}": mean_auroc(known[ncm], strange[ncm], n) for n in (1, 5, 20)} for ncm in ABLATIONS
        }
    return found


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
        recipe = replace(AUDIO_RECIPES[f"esc50-{category}"], **trial.changes)  # type: ignore[arg-type]
        results[name][category] = found = judge(recipe, trial.masks, sounds)
        write_json(RESULTS, results)
        best = found["usual masks"]["soft_disagreement"]  # type: ignore[index]
        print(f"{name}, {category}: SBP {100 * found['SBP']:.1f}, soft disagreement {best}", flush=True)  # type: ignore[operator]


if __name__ == "__main__":
    main(sys.argv[1:])
