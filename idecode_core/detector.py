"""Detector = Scorer + Calibration: Algorithm 1. It cannot exist uncalibrated.

It also has scikit-learn's verbs, with scikit-learn's signs: larger is more normal, +1 is normal and -1 is flagged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.conformal import check_epsilon
from idecode_core.conformal.calibration import Aggregate, Calibration, chosen_n
from idecode_core.conformal.judge import Judgement, judge
from idecode_core.errors import SettingError
from idecode_core.files.find import found_files
from idecode_core.guarantees.conditional import corrected_epsilon
from idecode_core.modality import modality_named
from idecode_core.scorer import Inspected, Progress, Samples, Scorer

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import torch

    from idecode_core.ncm import BaseNCM
    from idecode_core.own.model import PredictFn
    from idecode_core.own.scorer import Loss
    from idecode_core.transforms import TransformSet


@dataclass(frozen=True, eq=False, kw_only=True)
class Detection(Judgement):
    """What Algorithm 1 found for a batch of points: their verdicts, and what they were drawn from."""

    score_vectors: NDArray[np.float64]  # (batch, n): V(x)
    parameters: tuple[Tensor, ...]
    """The transforms drawn for each point; `Detector.describe` puts them in words."""
    names: tuple[str, ...] = ()
    """The files, where samples came as files, folders or globs."""
    promised: float
    """The epsilon that was asked for. `epsilon` is what p-values are compared with, and is smaller with a delta."""
    delta: float | None = None
    """With a delta: the rate is at most `promised` for a share 1 - delta of all calibration sets, else on average."""

    def to_frame(self) -> "pandas.DataFrame":
        """One row per point, as a pandas data frame."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise SettingError("A data frame needs the package pandas: run `pip install pandas`.") from error
        return DataFrame(
            {
                **({"file": self.names} if self.names else {}),
                "is_ood": self.is_ood,
                "p_value": self.p_values,
                "score": self.scores,
                "rank": self.ranks,
            }
        )


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
        """Score the held-out calibration set, each point with its own n_max draws; with one where the scorer draws nothing."""
        n_max = min(n_max, getattr(scorer, "most_draws", n_max))
        calibration_set, _ = found_files(calibration_set, modality_named(scorer.modality).extensions)
        scored = scorer.score(calibration_set, n=n_max, seed=seed, progress=progress)
        return Detector(name, scorer, Calibration(scored.score_vectors, seed), summary, dataset)

    @staticmethod
    def around(
        network: Any = None,
        *,
        calibration: Samples,
        predict_fn: "PredictFn | None" = None,
        transforms: "TransformSet | None" = None,
        base_ncm: "str | BaseNCM | Loss" = "label_logit",
        size: int,
        mean: Sequence[float] = (0.485, 0.456, 0.406),
        std: Sequence[float] = (0.229, 0.224, 0.225),
        features: str | None = None,
        classes: Sequence[str] = (),
        device: "str | torch.device | None" = None,
        name: str = "own",
        summary: str = "",
        n_max: int = 20,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> "Detector":
        """A detector around your own network, calibrated on pictures that it has not been trained on.

        `network` is a torch.nn.Module that answers with logits or features (batch, outputs), or with an output that has
        logits (Hugging Face), or a torch.export program; anything else comes as `predict_fn`, arrays in, arrays out.
        Pictures are cut to the middle square at `size` pixels and normalised by `mean` and `std` (ImageNet's, unless you
        say otherwise); one number each is for networks that take grey pictures. `features` names the layer whose output
        familiarity looks at. docs/your-own-model.md says which transforms and which base NCM suit which network.
        """
        from idecode_core.device import choose_device
        from idecode_core.own.scorer import own_scorer

        scorer = own_scorer(
            network,
            predict_fn=predict_fn,
            transforms=transforms,
            base_ncm=base_ncm,
            size=size,
            mean=mean,
            std=std,
            features=features,
            classes=classes,
            device=choose_device(device),
        )
        return Detector.calibrate(
            name, scorer, calibration, n_max=n_max, seed=seed, summary=summary, progress=progress
        )

    def detect(
        self,
        samples: Samples,
        *,
        n: int | None = None,
        epsilon: float = 0.05,
        delta: float | None = None,
        seed: int = 0,
        aggregate: str | Aggregate = "sum",
        sample_rate: int | None = None,
        progress: Progress | None = None,
    ) -> Detection:
        """Algorithm 1, for each point of a batch: files, folders, globs, arrays, tensors, datasets, loaders.

        n is 5 if it is left out, or 1 for a detector without random draws.
        With `delta`, the rate is at most epsilon for a share 1 - delta of all calibration sets, not only on average.
        Sounds as bare arrays need their `sample_rate` in Hz.
        """
        n = chosen_n(n, self.calibration.n_max, self.name)
        cut = self._cut(epsilon, delta)
        samples, names = found_files(samples, modality_named(self.scorer.modality).extensions)
        if sample_rate is not None:
            from idecode_core.audio.read import decode

            samples = decode(samples, sample_rate)
        drawn = self.scorer.score(samples, n=n, seed=seed, progress=progress)  # g_1, ..., g_n and V(x)
        judged = judge(self.calibration, drawn.score_vectors, epsilon=cut, aggregate=aggregate)  # F, Eq. 5
        return Detection(
            **vars(judged),
            score_vectors=drawn.score_vectors,
            parameters=drawn.parameters,
            names=names,
            promised=epsilon,
            delta=delta,
        )

    def fit(
        self, samples: Samples, y: object = None, *, seed: int = 0, progress: Progress | None = None
    ) -> "Detector":
        """This detector calibrated on other samples that belong: a new one, because a detector never changes. What belongs is
        no longer a public dataset that the program knows.

        It repairs false alarms where the source has drifted, not detection. `y` is not used.
        """
        n_max = self.calibration.n_max
        fitted = Detector.calibrate(
            self.name, self.scorer, samples, n_max=n_max, seed=seed, progress=progress
        )
        return replace(self, calibration=fitted.calibration, dataset="")

    def score_samples(self, samples: Samples, **settings: Any) -> NDArray[np.float64]:
        """scikit-learn's verb: -F(V(x)), larger for what belongs: (batch,). Settings are those of `detect`."""
        return -self.detect(samples, **settings).scores

    def decision_function(self, samples: Samples, **settings: Any) -> NDArray[np.float64]:
        """scikit-learn's verb: how far each score lies on the normal side of the threshold; below 0 is flagged."""
        found = self.detect(samples, **settings)
        return found.threshold - found.scores

    def predict(self, samples: Samples, **settings: Any) -> NDArray[np.int64]:
        """scikit-learn's verb: +1 for what belongs, -1 for what is flagged. Settings are those of `detect`."""
        return np.where(self.detect(samples, **settings).is_ood, -1, 1)

    def score_vectors(
        self, samples: Samples, *, n: int, seed: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """V(x) for each point: (batch, n). n may exceed n_max: it is only limited where p-values are asked for."""
        samples, _ = found_files(samples, modality_named(self.scorer.modality).extensions)
        return self.scorer.score(samples, n=n, seed=seed, progress=progress).score_vectors

    def inspect(self, sample: Any, *, n: int, seed: int = 0) -> Inspected:
        """One sample's V(x), its transformed versions with what was applied, predicted and scored, and each draw's
        terms: all from the one pass that scores it."""
        return self.scorer.inspect(sample, n=n, seed=seed)

    def describe(self, detection: Detection, index: int) -> list[str]:
        """The transforms drawn for one point of a detection, in words."""
        return self.scorer.describe(detection.parameters[index])

    def _cut(self, epsilon: float, delta: float | None) -> float:
        """What p-values are compared with."""
        if delta is not None:
            return corrected_epsilon(self.calibration.k, epsilon, delta)
        check_epsilon(epsilon, self.calibration.k)
        return epsilon
