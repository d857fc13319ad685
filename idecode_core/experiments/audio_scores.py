"""Score an audio detector's test sets once and store what the tables need beside it.

`scores/<set>.npz` as for images (five runs of 20 draws), `softmax/<set>.npz` for SBP, and `ablations/<base NCM>.npz`
with one run of 20 draws of every set for other base NCMs that read the same predictions.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.audio_parts import Parts
from idecode_core.audio_scoring import AudioScorer, clip_mean, held_against
from idecode_core.checkpoint import load_detector, read_config
from idecode_core.errors import CheckpointError
from idecode_core.evaluation import DRAWS_PER_RUN, RUNS, ScoreSet, write_scores
from idecode_core.files import write_npz
from idecode_core.scoring import VARIANTS_PER_BATCH
from idecode_core.sound_sets import SoundSet
from idecode_core.sounds import Sound

ABLATIONS = ("invariance", "kl_divergence", "argmax_disagreement", "label_cross_entropy", "soft_disagreement")
CALIBRATION = "calibration"  # the calibration set's name among the stored sets
Report = Callable[[str, int, int], None]
"""Called with (set, points done, points)."""


def score_in_one_pass(
    scorer: AudioScorer, clips: Sequence[Sound], base_ncms: Sequence[str], *, n: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Score vectors (N, n) by base NCM: what `scorer` with that base NCM would give with the same seed."""
    found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in base_ncms}
    for batch in scorer.batches(clips, VARIANTS_PER_BATCH // n):
        with torch.inference_mode():
            per_block, reference = scorer.predict(batch, scorer.draw(batch, n, seed))
            prediction = torch.stack([clip_mean(shares) for shares in per_block])
            on_x = torch.stack([clip_mean(shares) for shares in reference])
            for name in base_ncms:
                found[name].append(held_against(name, prediction, on_x).double().cpu().numpy())
    return {name: np.concatenate(vectors) for name, vectors in found.items()}


def softmax_baseline(scorer: AudioScorer, clips: Sequence[Sound]) -> NDArray[np.float64]:
    """SBP: 1 - max softmax of M(x) for each clip (N,)."""
    scores: NDArray[np.float64] = 1 - scorer.shares(clips).max(axis=1)
    return scores


def score_audio_sets(
    folder: Path | str, parts: Parts, test_name: str, *, report: Report | None = None
) -> None:
    """Score iD test set, OOD sets and (for SBP and the ablations) the calibration set; goes on where it was stopped."""
    folder = Path(folder)
    detector = load_detector(folder)
    scorer = detector.scorer
    if not isinstance(scorer, AudioScorer):
        raise CheckpointError(
            f"{folder} is no audio detector: expected one that `train` has made from sounds."
        )
    identity, seed = str(read_config(folder)["scorer_sha256"]), detector.calibration.seed
    sets: dict[str, SoundSet] = {test_name: parts.test, **parts.outside, CALIBRATION: parts.calibration}
    others = {name: dict[str, NDArray[np.float32]]() for name in ABLATIONS if name != scorer.base_ncm}
    for name, sounds in sets.items():
        draws = DRAWS_PER_RUN * (1 if name == CALIBRATION else RUNS)
        vectors = score_in_one_pass(scorer, sounds.clips, (scorer.base_ncm, *others), n=draws, seed=seed)
        if name != CALIBRATION:
            own = vectors[scorer.base_ncm].astype(np.float32)
            write_scores(folder, ScoreSet(name, label(name), name != test_name, own), identity)
        baseline = softmax_baseline(scorer, sounds.clips).astype(np.float32)
        write_npz(folder / "softmax" / f"{name}.npz", {"scores": baseline, "scorer": np.array(identity)})
        for base_ncm, found in others.items():
            found[name] = vectors[base_ncm][:, :DRAWS_PER_RUN].astype(np.float32)
        if report is not None:
            report(name, len(sounds), len(sounds))
    for base_ncm, found in others.items():
        write_npz(folder / "ablations" / f"{base_ncm}.npz", {**found, "scorer": np.array(identity)})


def label(name: str) -> str:
    """A set's name for readers.

    >>> label("esc50-urban"), label("plucked-string")
    ('ESC-50 urban', 'plucked string')
    """
    prefix, _, rest = name.partition("-")
    known = {"esc50": "ESC-50", "fsdnoisy18k": "FSDnoisy18k"}
    return f"{known[prefix]} {rest}" if prefix in known else name.replace("-", " ")
