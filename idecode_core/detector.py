"""Detector = Scorer + Calibration: Algorithm 1. It cannot exist uncalibrated."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.calibration import Aggregate, Calibration, aggregate_scores
from idecode_core.conformal import check_epsilon
from idecode_core.errors import SettingError
from idecode_core.scoring import Progress, Samples, Scorer, Variant
from idecode_core.sounds import decode_sounds


@dataclass(frozen=True, eq=False)
class Detection:
    """What Algorithm 1 found for a batch of points."""

    score_vectors: NDArray[np.float64]  # (batch, n): V(x)
    scores: NDArray[np.float64]  # (batch,): F(V(x))
    p_values: NDArray[np.float64]  # (batch,): P of Eq. 5
    is_ood: NDArray[np.bool_]  # (batch,): P < epsilon
    epsilon: float
    parameters: tuple[Tensor, ...]
    """The transforms drawn for each point; `Detector.describe` puts them in words."""

    def __len__(self) -> int:
        return len(self.p_values)


@dataclass(frozen=True, eq=False)
class Detector:
    """A scorer with the score vectors of the calibration set that were made with it."""

    name: str
    scorer: Scorer
    calibration: Calibration
    summary: str = ""
    """What is in-distribution, in a few words."""

    @staticmethod
    def calibrate(
        name: str,
        scorer: Scorer,
        calibration_set: Samples,
        *,
        n_max: int = 20,
        seed: int = 0,
        summary: str = "",
        progress: Progress | None = None,
    ) -> "Detector":
        """Score the held-out calibration set, each point with its own n_max draws."""
        scored = scorer.score(calibration_set, n=n_max, seed=seed, progress=progress)
        return Detector(name, scorer, Calibration(scored.score_vectors, seed), summary)

    def detect(
        self,
        samples: Samples,
        *,
        n: int = 5,
        epsilon: float = 0.05,
        seed: int = 0,
        aggregate: str | Aggregate = "sum",
        sample_rate: int | None = None,
        progress: Progress | None = None,
    ) -> Detection:
        """Algorithm 1, for each point of a batch. Sounds as bare arrays need their `sample_rate` in Hz."""
        self._check(n, epsilon)
        if sample_rate is not None:
            samples = decode_sounds(samples, sample_rate)
        drawn = self.scorer.score(samples, n=n, seed=seed, progress=progress)  # g_1, ..., g_n and V(x)
        scores = aggregate_scores(drawn.score_vectors, aggregate)  # F(V(x))
        p_values = self.calibration.p_values(drawn.score_vectors, aggregate)  # Eq. 5
        is_ood = p_values < epsilon
        return Detection(drawn.score_vectors, scores, p_values, is_ood, epsilon, drawn.parameters)

    def score_vectors(
        self, samples: Samples, *, n: int, seed: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """V(x) for each point: (batch, n). n may exceed n_max: it is only limited where p-values are asked for."""
        return self.scorer.score(samples, n=n, seed=seed, progress=progress).score_vectors

    def describe(self, detection: Detection, index: int) -> list[str]:
        """The transforms drawn for one point of a detection, in words."""
        return self.scorer.describe(detection.parameters[index])

    def variants(self, sample: Any, *, n: int, seed: int = 0) -> list[Variant]:
        """Each transformed version of one sample, with what was applied, predicted and scored, for display."""
        return self.scorer.variants(sample, n=n, seed=seed)

    def _check(self, n: int, epsilon: float) -> None:
        if not 1 <= n <= self.calibration.n_max:
            raise SettingError(
                f"n must lie between 1 and {self.calibration.n_max}, the draws that {self.name} was calibrated with, "
                f"got {n}. Calibrate again with a larger n_max to use more draws."
            )
        check_epsilon(epsilon, self.calibration.k)
