"""How well a detector separates iD from OOD, recomputed from the score vectors stored beside it.

`checkpoints/<name>/scores/<set>.npz` holds 100 base scores for each test point: five independent runs of 20
draws. Run r with n draws is columns 20 r .. 20 r + n - 1, so every table and figure follows from files in seconds.
"""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.calibration import Aggregate, Calibration, aggregate_scores
from idecode_core.conformal import FloatArray
from idecode_core.errors import CheckpointError, DataError, SettingError
from idecode_core.files import write_npz
from idecode_core.metrics import auroc, tnr_at_tpr

DRAWS_PER_RUN = 20
RUNS = 5
METHODS = ("base score", "ICAD", "iDECODe")
"""base score: one draw, its raw score. ICAD: one draw, its p-value. iDECODe: n draws, the p-value of F(V)."""


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """The stored score vectors of one test set; `name` is the file's, `label` is what people call it."""

    name: str
    label: str
    is_ood: bool
    score_vectors: NDArray[np.float32]  # (N, runs * 20)

    def __len__(self) -> int:
        return len(self.score_vectors)


def write_scores(folder: Path | str, score_set: ScoreSet, scorer_sha256: str) -> Path:
    """Write one set into the detector folder's scores/, tied to the scorer that made it."""
    path = Path(folder) / "scores" / f"{score_set.name}.npz"
    arrays = {
        "score_vectors": score_set.score_vectors.astype(np.float32),
        "is_ood": np.array(score_set.is_ood),
        "label": np.array(score_set.label),
        "scorer": np.array(scorer_sha256),
    }
    write_npz(path, arrays)
    return path


def read_score_file(path: Path | str, scorer_sha256: str | None = None) -> ScoreSet:
    """One stored set; with a hash given, only if it was made with the scorer of that hash."""
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            vectors = np.asarray(arrays["score_vectors"], dtype=np.float32)
            is_ood, label, made_with = bool(arrays["is_ood"]), str(arrays["label"]), str(arrays["scorer"])
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{path} cannot be read as stored scores: {error}. Score the set anew."
        ) from error
    if scorer_sha256 is not None and made_with != scorer_sha256:
        raise CheckpointError(
            f"{path} was made with other weights or settings: expected scorer {scorer_sha256[:12]}, got "
            f"{made_with[:12]}. Score the set anew."
        )
    if (
        vectors.ndim != 2
        or not len(vectors)
        or vectors.shape[1] < DRAWS_PER_RUN
        or not np.isfinite(vectors).all()
    ):
        raise CheckpointError(
            f"{path}: expected finite score vectors (N, at least {DRAWS_PER_RUN}), got shape {vectors.shape}; "
            "score the set anew."
        )
    return ScoreSet(path.stem, label, is_ood, vectors)


def read_scores(folder: Path | str, scorer_sha256: str | None = None) -> list[ScoreSet]:
    """All stored sets of a detector folder, the iD test set first; an empty list when none was stored."""
    found = [read_score_file(path, scorer_sha256) for path in sorted((Path(folder) / "scores").glob("*.npz"))]
    return sorted(found, key=lambda score_set: (score_set.is_ood, _place(score_set.name)))


def _place(name: str) -> tuple[int, str]:
    """Sets in the order of the paper's tables, others after them."""
    order = ("svhn", "lsun", "lsunproxy", "cifar100", "places", "tinyimagenet", "isun")
    dataset = name.rsplit("-", 1)[0]
    return (order.index(dataset) if dataset in order else len(order), name)


def id_and_ood(score_sets: Sequence[ScoreSet], where: str = "the folder") -> tuple[ScoreSet, list[ScoreSet]]:
    """The one iD test set and the OOD sets."""
    known = [score_set for score_set in score_sets if not score_set.is_ood]
    if len(known) != 1:
        raise DataError(
            f"{where}: expected the stored scores of exactly one iD test set, got {len(known)}. Write them with "
            "`python -m idecode_core score-sets`."
        )
    return known[0], [score_set for score_set in score_sets if score_set.is_ood]


def runs(score_vectors: NDArray[np.floating], n: int) -> list[FloatArray]:
    """The independent runs of n draws: run r is columns 20 r .. 20 r + n - 1, each (N, n). Fewer columns are one run."""
    limit = min(DRAWS_PER_RUN, score_vectors.shape[1])
    if not 1 <= n <= limit:
        raise SettingError(f"n must lie between 1 and {limit}, the draws of one stored run, got {n}.")
    count = max(score_vectors.shape[1] // DRAWS_PER_RUN, 1)
    vectors = score_vectors.astype(np.float64)
    return [vectors[:, DRAWS_PER_RUN * r : DRAWS_PER_RUN * r + n] for r in range(count)]


@dataclass(frozen=True)
class Metric:
    """One number over the independent runs: its mean and its standard deviation from run to run."""

    mean: float
    spread: float
    values: tuple[float, ...]

    @staticmethod
    def of(values: Sequence[float]) -> "Metric":
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return Metric(float(np.mean(values)), spread, tuple(float(value) for value in values))


@dataclass(frozen=True)
class Evaluation:
    """One method against one OOD set; rates are 0 to 1."""

    auroc: Metric
    tnr: Metric  # at 90 % TPR


def method_scores(
    calibration: Calibration,
    score_vectors: NDArray[np.floating],
    n: int,
    method: str = "iDECODe",
    aggregate: str | Aggregate = "sum",
) -> list[FloatArray]:
    """One score a point for each run, larger = stranger: raw for the base score, -P (Eq. 5) for the others."""
    if method not in METHODS:
        raise SettingError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    if method == "base score":
        return [aggregate_scores(run, "sum") for run in runs(score_vectors, 1)]
    draws = 1 if method == "ICAD" else n
    # Stored scores are float32: the calibration is rounded alike, so that what was tied stays tied.
    calibration = Calibration(calibration.score_vectors.astype(score_vectors.dtype), calibration.seed)
    return [-calibration.p_values(run, aggregate) for run in runs(score_vectors, draws)]


def evaluate(
    calibration: Calibration,
    id_set: ScoreSet,
    ood_set: ScoreSet,
    n: int = 5,
    aggregate: str | Aggregate = "sum",
    method: str = "iDECODe",
) -> Evaluation:
    """AUROC and TNR at 90 % TPR of one method, over the independent runs."""
    known = method_scores(calibration, id_set.score_vectors, n, method, aggregate)
    strange = method_scores(calibration, ood_set.score_vectors, n, method, aggregate)
    pairs = list(zip(known, strange, strict=True))
    return Evaluation(
        Metric.of([auroc(id_run, ood_run) for id_run, ood_run in pairs]),
        Metric.of([tnr_at_tpr(id_run, ood_run, 0.9) for id_run, ood_run in pairs]),
    )
