"""How good a detector of a user's own data is, and what to try where it is weak. From its folder alone."""

from dataclasses import dataclass

import numpy as np

from idecode_core.conformal import flagging_rank, k_needed
from idecode_core.evaluation.methods import evaluate_sets, flagged_share
from idecode_core.evaluation.rates import RateInBand, rates_in_bands
from idecode_core.folder.stored import Stored
from idecode_core.folder.training_record import TrainingRecord

N, EPSILON = 5, 0.05
NEAR_FIFTY, MODEST = 0.6, 0.8
"""AUROC below which a detector hardly tells two sets apart, and below which it does so only half-way."""
ABOVE_CHANCE = 0.15
"""How far above chance, as a share of the way to 1, an accuracy counts as better than chance."""


@dataclass(frozen=True)
class Against:
    """The test files against one set that does not belong; rates are 0 to 1."""

    label: str
    points: int
    auroc: float
    detected: float  # share with p < EPSILON


@dataclass(frozen=True)
class OwnResult:
    """What was measured, and what is weak about it."""

    against: tuple[Against, ...]
    false_detections: RateInBand
    weak: tuple[str, ...]
    """A sentence for each weakness, with what to try."""


def own_result(stored: Stored) -> OwnResult:
    """Numbers at n = 5 and epsilon = 0.05."""
    found = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, N)
    against = tuple(
        Against(
            one.label,
            len(one),
            numbers.auroc.mean,
            flagged_share(stored.calibration, one.score_vectors, N, EPSILON),
        )
        for one, numbers in zip(stored.ood_sets, found, strict=True)
    )
    (rate,) = rates_in_bands(stored, N, (EPSILON,))
    return OwnResult(against, rate, tuple(weaknesses(stored, against, rate)))


def weaknesses(stored: Stored, against: tuple[Against, ...], rate: RateInBand) -> list[str]:
    said = [] if stored.training is None else [*about_classes(stored.training)]
    k = stored.calibration.k
    if flagging_rank(k, EPSILON) == 0:
        said.append(
            f"With {k} calibration files no p-value is below {1 / (k + 1):.2g}, so epsilon = {EPSILON:g} never flags anything. "
            f"Bring at least {int(np.ceil(k_needed(EPSILON) / 0.3))} files, or use a larger epsilon."
        )
    blind = [one.label for one in against if one.auroc < NEAR_FIFTY]
    modest = [one.label for one in against if NEAR_FIFTY <= one.auroc < MODEST]
    if blind:
        said.append(
            f"It hardly tells your files from {', '.join(blind)} (AUROC near 50 %). If these do not belong: bring more files, "
            "name another --model, or files that show the difference more clearly (closer, less background)."
        )
    if modest:
        said.append(
            f"It tells your files from {', '.join(modest)} only half-way (AUROC below {MODEST:.0%}). More files, or `merge` of two "
            "detectors with different --model, may help."
        )
    if not rate.inside:
        said.append(
            f"Of your test files {rate.rate:.0%} are flagged at epsilon = {EPSILON:g}, outside of the band {rate.low:.0%} to "
            f"{rate.high:.0%}: the files may not be independent (bursts, frames of one video). Keep one of each."
        )
    return said


def about_classes(record: TrainingRecord) -> list[str]:
    """Labels that cannot be seen, and classes that pass for each other."""
    said = []
    count = len(record.settings.get("class_names", ())) or (4 if record.task == "transform_class" else 0)
    accuracy = (
        record.validation_accuracy if record.validation_accuracy is not None else record.calibration_accuracy
    )
    if accuracy is not None and count > 1 and accuracy < 1 / count + ABOVE_CHANCE * (1 - 1 / count):
        what = "rotations" if record.task == "transform_class" else "classes"
        hint = (
            "If your pictures look alike when they are turned, use --model mahalanobis."
            if what == "rotations"
            else "If the folders are not kinds that can be seen or heard, use --labels none."
        )
        said.append(
            f"On validation files {accuracy:.0%} of the {what} are named right, near chance ({1 / count:.0%}). {hint}"
        )
    left_out: dict[str, float] = record.settings.get("left_out", {})
    passing = [name for name, value in left_out.items() if value < NEAR_FIFTY]
    if left_out and len(passing) * 2 >= len(left_out):
        said.append(
            f"Other classes pass as familiar: fitted without {', '.join(passing[:5])}, it does not find them stranger than the "
            "rest. Something that is as close to your files as they are to each other will not be flagged."
        )
    return said
