"""Detector = Scorer + Calibration: Algorithm 1. It cannot exist uncalibrated."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.conformal import check_epsilon
from idecode_core.conformal.calibration import Aggregate, Calibration
from idecode_core.conformal.judge import Judgement, judge
from idecode_core.errors import SettingError
from idecode_core.scorer import Inspected, Progress, Samples, Scorer


@dataclass(frozen=True, eq=False, kw_only=True)
class Detection(Judgement):
    """What Algorithm 1 found for a batch of points: their verdicts, and what they were drawn from."""

    score_vectors: NDArray[np.float64]  # (batch, n): V(x)
    parameters: tuple[Tensor, ...]
    """The transforms drawn for each point; `Detector.describe` puts them in words."""


@dataclass(frozen=True, eq=False)
class Detector:
    """A scorer with the score vectors of the calibration set that were made with it."""

    name: str
    scorer: Scorer
    calibration: Calibration
    summary: str = ""
    """What is in-distribution, in a few words."""
    dataset: str = ""
    """The public dataset that is in-distribution, where it is one: it has a gallery, labels and numbers of the paper."""

    @staticmethod
    def calibrate(
        name: str,
        scorer: Scorer,
        calibration_set: Samples,
        *,
        n_max: int = 20,
        seed: int = 0,
        summary: str = "",
        dataset: str = "",
        progress: Progress | None = None,
    ) -> "Detector":
        """Score the held-out calibration set, each point with its own n_max draws."""
        scored = scorer.score(calibration_set, n=n_max, seed=seed, progress=progress)
        return Detector(name, scorer, Calibration(scored.score_vectors, seed), summary, dataset)

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
            from idecode_core.audio.read import decode

            samples = decode(samples, sample_rate)
        drawn = self.scorer.score(samples, n=n, seed=seed, progress=progress)  # g_1, ..., g_n and V(x)
        judged = judge(
            self.calibration, drawn.score_vectors, epsilon=epsilon, aggregate=aggregate
        )  # F, Eq. 5
        return Detection(**vars(judged), score_vectors=drawn.score_vectors, parameters=drawn.parameters)

    def score_vectors(
        self, samples: Samples, *, n: int, seed: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """V(x) for each point: (batch, n). n may exceed n_max: it is only limited where p-values are asked for."""
        return self.scorer.score(samples, n=n, seed=seed, progress=progress).score_vectors

    def inspect(self, sample: Any, *, n: int, seed: int = 0) -> Inspected:
        """One sample's V(x), its transformed versions with what was applied, predicted and scored, and each draw's
        terms: all from the one pass that scores it."""
        return self.scorer.inspect(sample, n=n, seed=seed)

    def describe(self, detection: Detection, index: int) -> list[str]:
        """The transforms drawn for one point of a detection, in words."""
        return self.scorer.describe(detection.parameters[index])

    def _check(self, n: int, epsilon: float) -> None:
        if not 1 <= n <= self.calibration.n_max:
            raise SettingError(
                f"n must lie between 1 and {self.calibration.n_max}, the draws that {self.name} was calibrated with, "
                f"got {n}. Calibrate again with a larger n_max to use more draws."
            )
        check_epsilon(epsilon, self.calibration.k)
