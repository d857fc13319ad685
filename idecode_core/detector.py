"""Detector = Scorer + Calibration: Algorithm 1. It cannot exist uncalibrated.

It also has scikit-learn's verbs, with scikit-learn's signs: larger is more normal, +1 is normal and -1 is flagged.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.conformal.calibration import Aggregate, Calibration
from idecode_core.conformal.dirty import trimmed
from idecode_core.conformal.evidence import stable_discoveries
from idecode_core.conformal.judge import Judgement, judge
from idecode_core.conformal.settings import Settings
from idecode_core.files.find import found_files
from idecode_core.files.names import printable
from idecode_core.files.shown import Shown, data_frame, progress_bar
from idecode_core.modality import modality_named
from idecode_core.scorer import Inspected, Progress, Samples, Scorer, Seen

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import torch

    from idecode_core.ncm import BaseNCM
    from idecode_core.scorers.call_network import PredictFn
    from idecode_core.scorers.user_network import Loss
    from idecode_core.transforms import TransformSet

SHOWN = 8
"""Points of a detection that a terminal shows."""
UNNAMED = "own"
"""What `Detector.around` calls a detector that was given no name; once saved, it has its folder's."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Detection(Shown, Judgement):
    """What Algorithm 1 found for a batch of points: their verdicts, and what they were drawn from."""

    score_vectors: NDArray[np.float64]  # (batch, n): V(x)
    parameters: tuple[Tensor, ...]
    """The transforms drawn for each point; `Detector.describe` puts them in words."""
    names: tuple[str, ...] = ()
    """The files, where samples came as files, folders or globs."""
    settings: Settings
    """What was asked for. With a delta, `epsilon`, which p-values are compared with, is smaller than the one in here."""
    detector: "Detector"
    """Who judged."""
    samples: Any = None
    """The samples themselves, where they came as arrays."""

    @property
    def promised(self) -> float:
        """The epsilon that was asked for."""
        return self.settings.epsilon

    @property
    def delta(self) -> float | None:
        """With one: the rate is at most `promised` for a share 1 - delta of all calibration sets, else on average."""
        return self.settings.delta

    def __repr__(self) -> str:
        lines = [
            f"{int(self.is_ood.sum()):,} of {len(self):,} flagged at epsilon = {self.promised:g} (k = {self.k:,})"
        ]
        order = np.lexsort((-self.scores, self.p_values))  # the strangest first
        for i in order[:SHOWN]:
            name = printable(self.names[i]) if self.names else f"point {i}"
            lines.append(
                f"  {self[i].answer:>11}  p = {self.p_values[i]:<8.3g} score = {self.scores[i]:<9.4g} {name}"
            )
        if len(self) > SHOWN:
            lines.append(f"  ... and {len(self) - SHOWN:,} less strange; to_frame() has all")
        return "\n".join(lines)

    def stable(self, q: float) -> NDArray[np.bool_]:
        """Who is flagged together, each draw a run of its own (e-BH): at most q of them belong on average, and another seed changes
        few of the verdicts. Not promised: as many flags as Benjamini-Hochberg has with one seed."""
        known = self.detector.calibration.score_vectors[:, : self.score_vectors.shape[1]]
        return stable_discoveries(known.T, self.score_vectors.T, q)

    def to_frame(self) -> "pandas.DataFrame":
        """One row per point, as a pandas data frame."""
        return data_frame(
            {
                **({"file": self.names} if self.names else {}),
                "is_ood": self.is_ood,
                "p_value": self.p_values,
                "score": self.scores,
                "rank": self.ranks,
            }
        )


@dataclass(frozen=True, eq=False, repr=False)
class Detector:
    """A scorer with the score vectors of the calibration set that were made with it."""

    name: str
    scorer: Scorer
    calibration: Calibration
    summary: str = ""
    """What is in-distribution, in a few words."""
    dataset: str = ""
    """The public dataset that is in-distribution, where it is one: it has a gallery, labels and numbers of the paper."""

    def __repr__(self) -> str:
        known = f", in-distribution: {self.summary}" if self.summary else ""
        return f"Detector {self.name!r} ({self.scorer.kind}{known}, k = {self.calibration.k:,}, n up to {self.calibration.n_max})"

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
        name: str = UNNAMED,
        summary: str = "",
        n_max: int = 20,
        seed: int = 0,
        progress: Progress | bool | None = True,
    ) -> "Detector":
        """A detector around your own network, calibrated on pictures that it has not been trained on.

        `network` is a torch.nn.Module that answers with logits or features (batch, outputs), or with an output that has
        logits (Hugging Face), or a torch.export program; anything else comes as `predict_fn`, arrays in, arrays out.
        Pictures are cut to the middle square at `size` pixels and normalised by `mean` and `std` (ImageNet's, unless you
        say otherwise); one number each is for networks that take grey pictures. `features` names the layer whose output
        familiarity looks at. docs/your-own-model.md says which transforms and which base NCM suit which network.
        A bar shows how far the calibration is, in a terminal and in a notebook; `progress=False` silences it.
        """
        from idecode_core.device import choose_device
        from idecode_core.scorers.user_network import user_scorer

        scorer = user_scorer(
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
        calibration, _ = found_files(calibration, modality_named(scorer.modality).extensions)
        total = len(calibration) if hasattr(calibration, "__len__") else None
        shown = progress_bar("calibrating", total) if progress is True else nullcontext(progress or None)
        with shown as report:
            return Detector.calibrate(
                name, scorer, calibration, n_max=n_max, seed=seed, summary=summary, progress=report
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
        outliers: Samples | None = None,
        progress: Progress | None = None,
    ) -> Detection:
        """Algorithm 1, for each point of a batch: files, folders, globs, arrays, tensors, datasets, loaders.

        n is 5 if it is left out, or 1 for a detector without random draws.
        With `delta`, the rate is at most epsilon for a share 1 - delta of all calibration sets, not only on average.
        Sounds as bare arrays need their `sample_rate` in Hz. `outliers` are known samples that do not belong: they say in which
        draws to look, and the bound is kept (`conformal.integrative`).
        """
        settings = Settings(n, epsilon, delta, aggregate, seed)
        n, cut = settings.draws(self.calibration.n_max, self.name), settings.cut(self.calibration.k)
        samples, names = found_files(samples, modality_named(self.scorer.modality).extensions)
        if sample_rate is not None:
            from idecode_core.audio.read import decode

            samples = decode(samples, sample_rate)
        kept = samples if not names and isinstance(samples, list | tuple | np.ndarray | Tensor) else None
        drawn = self.scorer.score(samples, n=n, seed=seed, progress=progress)  # g_1, ..., g_n and V(x)
        strange = None if outliers is None else self.score_vectors(outliers, n=n, seed=seed)
        # F, Eq. 5
        judged = judge(
            self.calibration, drawn.score_vectors, epsilon=cut, aggregate=aggregate, outliers=strange
        )
        return Detection(
            **vars(judged),
            score_vectors=drawn.score_vectors,
            parameters=drawn.parameters,
            names=names,
            settings=replace(settings, n=n),
            detector=self,
            samples=kept,
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

    def trimmed(self, m: int, do_not_belong: Sequence[int]) -> "Detector":
        """This detector without those of its m strangest calibration points that a person says do not belong: a new one.

        `conformal.dirty.strangest(detector.calibration.scores(n), m)` are their places, and that room says what is promised.
        """
        return replace(self, calibration=trimmed(self.calibration, m, do_not_belong))

    def score_samples(self, samples: Samples, **settings: Any) -> NDArray[np.float64]:
        """scikit-learn's verb: -F(V(x)), larger for what belongs: (batch,). Settings are those of `detect`."""
        return -self.detect(samples, **settings).scores

    def decision_function(self, samples: Samples, **settings: Any) -> NDArray[np.float64]:
        """scikit-learn's verb: how far each score lies on the normal side of the threshold; below 0 is flagged."""
        detection = self.detect(samples, **settings)
        return detection.threshold - detection.scores

    def predict(self, samples: Samples, **settings: Any) -> NDArray[np.int64]:
        """scikit-learn's verb: +1 for what belongs, -1 for what is flagged. Settings are those of `detect`."""
        return np.where(self.detect(samples, **settings).is_ood, -1, 1)

    def score_vectors(
        self, samples: Samples, *, n: int, seed: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """V(x) for each point: (batch, n). n may exceed n_max: it is only limited where p-values are asked for."""
        samples, _ = found_files(samples, modality_named(self.scorer.modality).extensions)
        return self.scorer.score(samples, n=n, seed=seed, progress=progress).score_vectors

    def inspect(
        self,
        sample: Any,
        *,
        n: int | None = None,
        epsilon: float = 0.05,
        delta: float | None = None,
        seed: int = 0,
        aggregate: str | Aggregate = "sum",
    ) -> Inspected:
        """One sample, or a file: its verdict, V(x), its transformed versions with what was applied, predicted and scored, and
        each draw's terms, all from the one pass that scores it. In a notebook it shows itself, and has `explore()`.

        A scorer may be asked for more draws than the calibration has; then there is no verdict.
        """
        settings = Settings(n, epsilon, delta, aggregate, seed)
        n = n if n is not None else settings.draws(self.calibration.n_max, self.name)
        inspected = self.scorer.inspect(sample, n=n, seed=seed)
        if n > self.calibration.n_max:
            return inspected
        cut = settings.cut(self.calibration.k)
        (verdict,) = judge(self.calibration, inspected.score_vector[None], epsilon=cut, aggregate=aggregate)
        return replace(inspected, seen=Seen(self, replace(settings, n=n), verdict))

    def describe(self, detection: Detection, index: int) -> list[str]:
        """The transforms drawn for one point of a detection, in words."""
        return self.scorer.describe(detection.parameters[index])
