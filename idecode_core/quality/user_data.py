"""How good a detector of a user's own data is, and what to try where it is weak. From its folder alone.

What calibrating again costs: it repairs false alarms, not detection.

Files that are strange to the model have large scores. As a calibration set they raise the threshold for everything, so
that what the parent caught may pass. The model has learned nothing about what belongs now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from idecode_core.conformal import FloatArray, flagging_rank, k_needed
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.folder.record import TrainingRecord
from idecode_core.folder.stored import Stored
from idecode_core.quality.methods import evaluate_sets, flagged_share
from idecode_core.quality.strength import RateInBand, rates_in_bands

N, EPSILON, LARGER = 5, 0.05, 0.1
NEAR_FIFTY, MODEST = 0.6, 0.8
"""AUROC below which a detector hardly tells two sets apart, and below which it does so only half-way."""
FEW_FLAGGED = 0.5
"""Share of what does not belong; with less a larger epsilon is shown, where few files calibrate."""
FAILED = "Failed: it tells your files from nothing that it was tried on. Do not rely on it."
AT_CHANCE = (
    "Failed: its network answers no better than chance even on the files that it learned from. Do not rely on it: bring more "
    "files, or name another --model."
)
ABOVE_CHANCE = 0.15
"""How far above chance, as a share of the way to 1, an accuracy counts as better than chance."""


@dataclass(frozen=True)
class Against:
    """The test files against one set that does not belong; rates are 0 to 1."""

    label: str
    points: int
    auroc: float
    interval: tuple[float, float]
    """Of the AUROC, at 95 % (DeLong): what other test points of the same kind would give."""
    detected: float  # share with p < EPSILON

    def __str__(self) -> str:
        """For people.

        >>> str(Against("vehicles", 30, 0.9312, (0.871, 0.984), 0.5))
        'vehicles: AUROC 93.1 % (95 % interval 87.1 to 98.4), 50% flagged (30 points)'
        """
        low, high = (f"{100 * end:.1f}" for end in self.interval)
        return (
            f"{self.label}: AUROC {100 * self.auroc:.1f} % (95 % interval {low} to {high}), {self.detected:.0%} flagged "
            f"({self.points:,} points)"
        )


@dataclass(frozen=True)
class UserResult:
    """What was measured, and what is weak about it."""

    tested: int
    """Test files that belong."""
    against: tuple[Against, ...]
    false_detections: RateInBand
    weak: tuple[str, ...]
    """A sentence for each weakness, with what to try."""
    at_chance: bool = False
    """Its network, where one was trained, names what it was trained on no better than chance."""

    @property
    def failed(self) -> bool:
        """Learned nothing, or no better than chance against everything that does not belong: not weak, but no detector."""
        return self.at_chance or (bool(self.against) and all(ood.auroc < NEAR_FIFTY for ood in self.against))

    @property
    def failure(self) -> tuple[str, ...]:
        """A sentence if it failed."""
        return (AT_CHANCE if self.at_chance else FAILED,) * self.failed


def user_result(stored: Stored) -> UserResult:
    """Numbers at n = 5 and epsilon = 0.05."""
    evaluations = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, N)
    against = tuple(
        Against(
            ood_set.label,
            len(ood_set),
            numbers.auroc.mean,
            numbers.interval,
            flagged_share(stored.calibration, ood_set.score_vectors, N, EPSILON),
        )
        for ood_set, numbers in zip(stored.ood_sets, evaluations, strict=True)
    )
    (rate,) = rates_in_bands(stored, N, (EPSILON,))
    return UserResult(
        len(stored.id_set),
        against,
        rate,
        tuple(weaknesses(stored, against, rate)),
        at_chance=stored.training is not None and learned_nothing(stored.training),
    )


def near_chance(accuracy: float, count: int) -> bool:
    """Of `count` answers.

    >>> near_chance(0.27, 4), near_chance(0.5, 4)
    (True, False)
    """
    return accuracy < 1 / count + ABOVE_CHANCE * (1 - 1 / count)


def answers(record: TrainingRecord) -> int:
    """How many there are to choose from: turns, or classes; 0 where nothing is named."""
    return 4 if record.task == "transform_class" else len(record.settings.get("class_names", ()))


def learned_nothing(record: TrainingRecord) -> bool:
    """The answers of a network that was trained are at chance even on what it was trained on; one that a distance was taken in
    place of does not count."""
    count, accuracy = answers(record), record.training_accuracy
    taken = record.settings.get("tried", {}) and record.recipe == "statistics"
    return not taken and accuracy is not None and count > 1 and near_chance(accuracy, count)


def weaknesses(stored: Stored, against: tuple[Against, ...], rate: RateInBand) -> list[str]:
    sentences = [] if stored.training is None else [*about_classes(stored.training)]
    sentences += few_calibrate(stored, against)
    others = stored.training is None or has_other_models(stored.training)
    blind = [ood_set.label for ood_set in against if ood_set.auroc < NEAR_FIFTY]
    modest = [ood_set.label for ood_set in against if NEAR_FIFTY <= ood_set.auroc < MODEST]
    if blind:
        sentences.append(
            f"It hardly tells your files from {', '.join(blind)} (AUROC near 50 %). If these do not belong: bring more files, "
            f"{'name another --model, ' * others}or files that show the difference more clearly (closer, less background)."
        )
    if modest:
        sentences.append(
            f"It tells your files from {', '.join(modest)} only half-way (AUROC below {MODEST:.0%}). More files"
            f"{', or `merge` of two detectors with different --model,' * others} may help."
        )
    if not rate.inside:
        sentences.append(
            f"Of your test files {rate.rate:.0%} are flagged at epsilon = {EPSILON:g}, outside of the band {rate.low:.0%} to "
            f"{rate.high:.0%}: the files may not be independent (bursts, frames of one video). Keep one of each."
        )
    return sentences


def few_calibrate(stored: Stored, against: tuple[Against, ...]) -> list[str]:
    """A sentence where so few files calibrate that nothing is flagged at the usual epsilon, or too little: what a larger one would
    flag, of what does not belong and of what does."""
    calibration, k = stored.calibration, stored.calibration.k
    rank = flagging_rank(k, EPSILON)
    if rank > 1 or (rank == 1 and all(ood_set.detected >= FEW_FLAGGED for ood_set in against)):
        return []
    flagged = ", ".join(
        f"{flagged_share(calibration, ood_set.score_vectors, N, LARGER):.0%} of {ood_set.label}"
        for ood_set in stored.ood_sets
    )
    files = k if stored.training is None else int(stored.training.settings.get("files", k))
    more = ceil(k_needed(EPSILON) * (rank + 1) * files / k) - files
    little = (
        f"epsilon = {EPSILON:g} flags only what is stranger than all of them"
        if rank
        else f"no p-value is below {1 / (k + 1):.2g}, so epsilon = {EPSILON:g} never flags anything"
    )
    return [
        f"With {k} calibration files {little}. Epsilon = {LARGER:g} (at most {LARGER:.0%} of files like yours) flags {flagged}: "
        f"use that, or bring about {more} files more."
    ]


def has_other_models(record: TrainingRecord) -> bool:
    """Whether another model could help: sounds have two and both merged, and where there was a choice all were tried."""
    return record.settings.get("modality") != "audio" or not (
        record.settings.get("tried") or record.recipe == "both"
    )


def about_classes(record: TrainingRecord) -> list[str]:
    """Labels that cannot be seen, and classes that pass for each other."""
    sentences = []
    count = answers(record)
    part, accuracy = "validation", record.validation_accuracy
    if accuracy is None:
        part, accuracy = "calibration", record.calibration_accuracy
    if accuracy is not None and count > 1 and near_chance(accuracy, count):
        what = "rotations" if record.task == "transform_class" else "classes"
        hint = (
            "If your pictures look alike when they are turned, use --model mahalanobis."
            if what == "rotations"
            else "If the folders are not kinds that can be seen or heard, use --labels none."
        )
        sentences.append(
            f"On {part} files {accuracy:.0%} of the {what} are named right, near chance ({1 / count:.0%}). {hint}"
        )
    left_out: dict[str, float] = record.settings.get("left_out", {})
    passing = [name for name, value in left_out.items() if value < NEAR_FIFTY]
    if left_out and len(passing) * 2 >= len(left_out):
        sentences.append(
            f"Other classes pass as familiar: fitted without {', '.join(passing[:5])}, it does not find them stranger than the "
            "rest. Something that is as close to your files as they are to each other will not be flagged."
        )
    return sentences


@dataclass(frozen=True)
class Catch:
    """How many points of one set were flagged by the parent, and are flagged by the new detector."""

    label: str
    total: int
    before: int
    after: int


@dataclass(frozen=True)
class Lost:
    """What a new calibration costs, over all sets."""

    epsilon: float
    k: int
    catches: tuple[Catch, ...]

    @property
    def before(self) -> float:
        """The share that the parent catches."""
        return self._share([catch.before for catch in self.catches])

    @property
    def after(self) -> float:
        """The share that the new detector catches."""
        return self._share([catch.after for catch in self.catches])

    def _share(self, flagged: Sequence[int]) -> float:
        return sum(flagged) / max(sum(catch.total for catch in self.catches), 1)

    @property
    def blind(self) -> bool:
        """Hardly more is caught than is flagged of what belongs."""
        return bool(self.catches) and self.after <= 2 * self.epsilon

    def reading(self) -> str:
        """One or two sentences."""
        shares = f"{self.after:.0%} of these samples, the parent {self.before:.0%}"
        if flagging_rank(self.k, self.epsilon) == 0:
            return (
                f"It cannot flag anything: with {self.k:,} calibration points epsilon = {self.epsilon:g} is too small. "
                f"Bring {k_needed(self.epsilon):,} files or more, or allow a larger epsilon."
            )
        if self.blind:
            was = (
                "The parent was no better."
                if self.before <= 2 * self.epsilon
                else "What you brought is strange to this model."
            )
            return (
                f"This detector is blind: it catches {shares}, and of what belongs it may flag {self.epsilon:.0%}. {was} "
                "Train a detector on your own files instead."
            )
        if self.after < self.before / 2:
            return f"More than half of the detection is lost: it catches {shares}."
        return f"It still detects: it catches {shares}."


def what_is_lost(
    parent: Calibration,
    recalibrated: Calibration,
    score_vectors: Mapping[str, FloatArray],
    *,
    n: int,
    epsilon: float,
    aggregate: str = "sum",
) -> Lost:
    """How many of each set, label -> V (batch, at least n), are flagged under the parent's calibration and under the new one."""
    catches = []
    for label, vectors in score_vectors.items():
        before, after = (
            int(judge(calibration, vectors, n=n, epsilon=epsilon, aggregate=aggregate).is_ood.sum())
            for calibration in (parent, recalibrated)
        )
        catches.append(Catch(label, len(vectors), before, after))
    return Lost(epsilon, recalibrated.k, tuple(catches))
