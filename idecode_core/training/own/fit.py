"""A detector around the frozen network: features of the proper training set, a distance, a calibration.

What takes time is kept in the run's folder piece by piece, so a stopped run goes on where it was.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.baselines.features import Features, FeatureScorer
from idecode_core.baselines.mahalanobis import Mahalanobis
from idecode_core.baselines.neighbours import Neighbours
from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import IdecodeError
from idecode_core.files import write_json, write_npz
from idecode_core.files.read import read_arrays
from idecode_core.folder.detector import Writer, save_detector
from idecode_core.folder.training_record import TrainingRecord
from idecode_core.image.features import Preprocessing
from idecode_core.models.pretrained import NAME
from idecode_core.training.finish import machine, short
from idecode_core.training.own.frozen import pretrained
from idecode_core.training.own.plan import N_MAX, Plan
from idecode_core.training.parts import Parts
from idecode_core.transforms import SmallAffine

FIT_SEED = 1  # of the draws for fitting
PIECE = 32  # files whose results are stored together
DISTANCES: dict[str, type[FeatureScorer]] = {"mahalanobis": Mahalanobis, "neighbours": Neighbours}
MOST_LEFT_OUT, FEWEST_TO_JUDGE = 8, 3
"""How many classes are left out in turn, and how many validation files such a class must have."""

Report = Callable[[str, int, int], None]
"""Called with (what is done, files done, files)."""


def in_pieces(
    paths: Sequence[Path],
    folder: Path,
    what: str,
    work: Callable[[list[Path]], NDArray[Any]],
    report: Report | None,
) -> NDArray[Any]:
    """`work` on all files, in pieces that are stored and not done again."""
    done: list[NDArray[Any]] = []
    for start in range(0, len(paths), PIECE):
        piece = list(paths[start : start + PIECE])
        stored = folder / f"{start:07d}.npz"
        try:
            found = read_arrays(stored, ("found",), what="a piece of a run", error=IdecodeError, hint="")[
                "found"
            ]
        except IdecodeError:  # not there, or cut off
            found = work(piece)
            write_npz(stored, {"found": found})
        done.append(found)
        if report is not None:
            report(what, start + len(piece), len(paths))
    return np.concatenate(done)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted scorer with what was found while fitting."""

    scorer: FeatureScorer
    accuracy: float | None
    """Share of the validation files whose class is named right."""
    left_out: dict[str, float]
    """Class -> AUROC of its validation files against the others', by a scorer that does not know the class."""


def features_of(plan: Plan, device: torch.device) -> Features:
    return Features(
        model=pretrained(), transforms=SmallAffine(), preprocessing=Preprocessing(plan.size), device=device
    )


def seconds_per_variant(seen: Features) -> float:
    """How long one g(x) takes here, from one small batch after another that warms up."""
    size = seen.preprocessing.size
    x = torch.rand(8, 3, size, size, device=seen.device)
    times = []
    with torch.inference_mode():
        for _ in range(2):
            began = time.monotonic()
            seen.model(x)
            times.append((time.monotonic() - began) / len(x))
    return times[-1]


def fit(
    plan: Plan, seen: Features, parts: Parts[Any], classes: tuple[str, ...], run: Path, report: Report | None
) -> Fitted:
    """Features of the training files, a distance from them, and how well it does on the validation files."""

    def encoded(part: Any, name: str, n: int) -> Tensor:
        found = in_pieces(
            part.samples,
            run / name,
            name,
            lambda piece: seen.encode(piece, n=n, seed=FIT_SEED).numpy(),
            report,
        )
        return torch.from_numpy(found)

    z, y = encoded(parts.training, "fitting", plan.fit_draws), torch.from_numpy(parts.training.y)
    held_out, held_y = encoded(parts.validation, "validating", 1)[:, 0], parts.validation.y

    def fitted(chosen: Tensor) -> FeatureScorer:
        rows, labels = z[chosen].flatten(0, 1), y[chosen].repeat_interleave(z.shape[1])
        return DISTANCES[plan.model].fit(rows, labels, **vars(seen), classes=classes)

    scorer = fitted(torch.ones(len(y), dtype=torch.bool))
    if not classes:
        return Fitted(scorer, None, {})
    named = scorer.nearest(held_out.to(seen.device)).cpu().numpy()
    left_out = {}
    counts = np.bincount(held_y, minlength=len(classes))
    for c in [int(c) for c in np.argsort(-counts) if counts[c] >= FEWEST_TO_JUDGE][:MOST_LEFT_OUT]:
        if len(classes) > 2 and counts[c] < len(held_y):
            scores = fitted(y != c).distances(held_out.to(seen.device)).cpu().numpy()
            left_out[classes[c]] = share_above(scores[held_y == c], scores[held_y != c])
    return Fitted(scorer, float(np.mean(named == held_y)), left_out)


def share_above(strange: NDArray[np.floating[Any]], known: NDArray[np.floating[Any]]) -> float:
    """AUROC: P(a strange one scores above a known one), ties counted half."""
    above = strange[:, None] - known
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def make_frozen(
    plan: Plan,
    seen: Features,
    parts: Parts[Any],
    run: Path,
    folder: Path,
    *,
    name: str,
    dataset: str,
    summary: str,
    classes: tuple[str, ...],
    seed: int,
    settings: Mapping[str, Any],
    beside: Mapping[str, Writer],
    report: Report | None = None,
) -> Detector:
    """Fit, calibrate on the held-out files, save as a detector folder."""
    began = time.monotonic()
    found = fit(plan, seen, parts, classes, run, report)
    scorer = found.scorer
    vectors = in_pieces(
        parts.calibration.samples,
        run / "calibrating",
        "calibrating",
        lambda piece: scorer.score(piece, n=N_MAX, seed=seed).score_vectors,
        report,
    )
    detector = Detector(name, scorer, Calibration(vectors, seed), summary)
    record = TrainingRecord(
        recipe=plan.model,
        dataset=dataset,
        task="features",
        epochs=0,
        best_epoch=0,
        hours=round((time.monotonic() - began) / 3600, 3),
        machine=machine(seen.device),
        validation_loss=None,
        validation_accuracy=short(found.accuracy, 4),
        test_accuracy=None,
        proper_training_points=len(parts.training),
        validation_points=len(parts.validation),
        calibration_points=len(parts.calibration),
        test_points=0 if parts.test is None else len(parts.test),
        seed=seed,
        settings={**settings, **asdict(plan), "network": NAME, "left_out": found.left_out},
    )
    split = {key: indices.astype(np.int32) for key, indices in vars(parts.split).items()}
    save_detector(
        detector,
        folder,
        beside={
            "training.json": lambda path: write_json(path, asdict(record)),
            "split.npz": lambda path: write_npz(path, split),
            **beside,
        },
    )
    return detector
