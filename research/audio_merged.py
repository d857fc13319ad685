"""The shipped ESC-50 detectors: the trained classifier of each folder merged with the nearest sound by statistics.

    python -m idecode_core train esc50-animals --out checkpoints/esc50-animals     # and the other four: the classifiers
    python -m research.audio_merged                                                # half an hour on one core

A merged score ranks each member's score among reference clips that neither trained the member nor calibrate. Folds 1 and 2 train,
fold 3 calibrates, so nothing is left; the references are cross-fitted instead: the recipe and the statistics of fold 1 score fold 2,
and the other way round. These 160 score vectors per member are a function of folds 1 and 2 alone, so Theorem 1 holds for what is
calibrated on fold 3. They come from members with half of the clips, so ranks of clips that are new to the shipped members lie a
little too low; calibration and test clips alike. That both are merged, with equal weights, was decided inside of folds 1 and 2
(`python -m research.audio_trials merged`; docs/audio-findings.md). References are kept in runs/audio-references.
"""

from pathlib import Path

import numpy as np
import torch

from idecode_core.audio.sets import ESC50_CATEGORIES, SoundSet, load_sounds
from idecode_core.errors import DataError
from idecode_core.files import write_npz
from idecode_core.files.read import read_arrays
from idecode_core.scorer import Vectors
from idecode_core.training.fit_sounds import CLASSIFIER, STATISTICS
from idecode_core.training.merge import REFERENCE_DRAWS
from idecode_core.training.recipe import Recipe, Sounds
from idecode_core.training.recipes import get_recipe
from research.audio_trials import cross_fitted

REFERENCES = Path("runs/audio-references")


def references(recipe: Recipe[Sounds], sounds: SoundSet) -> list[Vectors]:
    """What members of fold 1 say of fold 2, then the other way round: (160, draws) for each member."""
    path = REFERENCES / f"{recipe.name}.npz"
    if not path.exists():
        halves = [
            cross_fitted(recipe, sounds, fit, judge, REFERENCE_DRAWS).inside
            for fit, judge in ((1, 2), (2, 1))
        ]
        by_member = [np.concatenate(vectors) for vectors in zip(*halves, strict=True)]
        write_npz(path, dict(zip((CLASSIFIER, STATISTICS), by_member, strict=True)))
    arrays = read_arrays(
        path, (CLASSIFIER, STATISTICS), what="references", error=DataError, hint="Delete it."
    )
    return [arrays[name].astype(np.float64) for name in (CLASSIFIER, STATISTICS)]


def main() -> None:
    torch.set_num_threads(1)
    sounds = load_sounds("esc50-train")
    for category in ESC50_CATEGORIES:
        vectors = references(get_recipe(f"esc50-{category}"), sounds)
        print(category, *(part.shape for part in vectors), flush=True)


if __name__ == "__main__":
    main()
