"""A detector of a user's own recordings: a classifier of blocks, the nearest sound by its statistics, or both merged.

With few recordings the classifier learns little and the statistics are far better; with many in kinds that can be told apart it
is the other way round (docs/audio-findings.md). Which is taken is decided on validation files, against strangers that are made.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from idecode_core.audio.scorer import AudioScorer
from idecode_core.quality.metrics import auroc
from idecode_core.scorer import Scorer, Vectors
from idecode_core.scorers.merged import MergedScorer, merge_vectors
from idecode_core.scorers.sound_statistics import SoundStatistics
from idecode_core.training.choice import KNOWN, Fitted, Known, best, gained, learned
from idecode_core.training.merge import REFERENCE_DRAWS
from idecode_core.training.plan import Plan
from idecode_core.training.strangers import strange_sounds
from idecode_core.training.tasks.audio import AudioTask

JUDGED_DRAWS = 5
CLEARLY = 0.075
"""How much better than both one alone must be: about the standard error of an AUROC with a dozen validation files."""
CLASSIFIER, STATISTICS, BOTH = "classifier", "statistics", "both"
Judged = dict[str, dict[str, float]]
"""Model -> kind of stranger -> AUROC."""


def fit_sounds(
    plan: Plan, task: AudioTask, model: torch.nn.Module | None, seed: int, known: Known | None = None
) -> Fitted:
    """The scorer that the plan names, or the best of three; `model` is the trained classifier, where the plan has one."""
    training = task.parts.training
    statistics = SoundStatistics.fit(
        training.samples,
        torch.from_numpy(training.y),
        features=task.features,
        transforms=task.masks,
        classes=training.classes,
        device=task.device,
    )
    if model is None:
        return Fitted(statistics, nearest_right(statistics, task.parts.calibration), {}, STATISTICS)
    classifier = task.scorer(model)
    named = classifier.logits(task.parts.calibration.samples).argmax(dim=1).numpy()
    accuracy = float(np.mean(named == task.parts.calibration.y))
    if plan.model == CLASSIFIER:
        return Fitted(classifier, accuracy, {}, CLASSIFIER)
    merged = both(classifier, statistics, task.parts.validation.samples, seed)
    scorers: dict[str, Scorer] = {BOTH: merged, STATISTICS: statistics, CLASSIFIER: classifier}
    tried = judged(merged, task.parts.validation.samples, seed, known) if plan.tries else {}
    usual = best(tried, CLEARLY) if tried else BOTH
    taken = usual if known is None else learned(tried, usual)
    fitted = Fitted(scorers[taken], accuracy, {}, taken, tried)
    if known is None or task.parts.test is None:
        return fitted
    gain = gained(fitted, usual, lambda: scorers[usual], task.parts.test.samples, known)
    return replace(fitted, gained=gain)


def nearest_right(scorer: SoundStatistics, part: Any) -> float:
    """Share of clips whose nearest training clip is of their class."""
    places = [
        int(scorer.nearest(scorer.described(scorer.prepare(clip, 0).x.blocks))[1]) for clip in part.samples
    ]
    return float(np.mean(scorer.labels.cpu().numpy()[places] == part.y))


def both(
    classifier: AudioScorer, statistics: SoundStatistics, clips: Sequence[Any], seed: int
) -> MergedScorer:
    """Merged, ranked among the validation clips."""
    members = (classifier, statistics)
    references = tuple(member.score(clips, n=REFERENCE_DRAWS, seed=seed).score_vectors for member in members)
    return MergedScorer(members, (CLASSIFIER, STATISTICS), references, (1.0, 1.0))


def judged(merged: MergedScorer, clips: Sequence[Any], seed: int, known: Known | None = None) -> Judged:
    """How well each member, and both together, tell the validation clips from strangers, and from outliers that may choose. A
    validation clip is ranked among the others, never among itself."""

    def scored(points: Sequence[Any]) -> list[Vectors]:
        return [member.score(points, n=JUDGED_DRAWS, seed=seed).score_vectors for member in merged.members]

    def left_one_out(parts: Sequence[Vectors]) -> Vectors:
        rows = [
            merge_vectors(
                [part[i : i + 1] for part in parts],
                [np.delete(r, i, axis=0) for r in merged.references],
                merged.weights,
            )
            for i in range(len(clips))
        ]
        return np.concatenate(rows)

    known_vectors = scored(clips)
    tried = Judged()
    inside = {BOTH: left_one_out(known_vectors), CLASSIFIER: known_vectors[0], STATISTICS: known_vectors[1]}
    strangers: dict[str, Sequence[Any]] = {
        **strange_sounds(clips),
        **({KNOWN: known.choose} if known else {}),
    }
    for kind, points in strangers.items():
        strange = scored(points)
        outside = {BOTH: merged.merge(strange), CLASSIFIER: strange[0], STATISTICS: strange[1]}
        for name, vectors in inside.items():
            tried.setdefault(name, {})[kind] = auroc(vectors.sum(axis=1), outside[name].sum(axis=1))
    return tried
