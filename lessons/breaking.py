"""Break one assumption at a time: a small world of points, and what each switch does to the promise of Theorem 1."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.errors import SettingError
from lessons import table

DIMENSIONS = 30
OOD_SCALE = 3.0
DIRECTION = np.full(DIMENSIONS, 2.0 / np.sqrt(DIMENSIONS))  # v, of length 2


@dataclass(frozen=True, eq=False)
class Draws:
    """Parameters of g for each point and draw, both (points, n); (1, n) when all points share them."""

    t: FloatArray
    theta: FloatArray


def sample_points(count: int, *, generator: np.random.Generator, scale: float = 1.0) -> FloatArray:
    """x, shape (count, DIMENSIONS). scale = 1 is the training distribution."""
    return scale * generator.normal(size=(count, DIMENSIONS))


def sample_draws(count: int, n: int, *, generator: np.random.Generator) -> Draws:
    """One g for each point and draw: t log-normal around 1, theta standard normal."""
    return Draws(np.exp(0.7 * generator.normal(size=(count, n))), generator.normal(size=(count, n)))


def train(x: FloatArray, *, generator: np.random.Generator) -> FloatArray:
    """M: the least-squares weights w with w . g(x) near theta, from one draw per point. Shape (DIMENSIONS,)."""
    draws = sample_draws(len(x), 1, generator=generator)
    gx = draws.t * x + draws.theta * DIRECTION  # (points, DIMENSIONS)
    # The tiny ridge keeps the equations solvable when there are fewer points than dimensions.
    weights = np.linalg.solve(gx.T @ gx + 1e-6 * np.eye(DIMENSIONS), gx.T @ draws.theta[:, 0])
    return np.asarray(weights, dtype=np.float64)


def score_vectors(weights: FloatArray, x: FloatArray, draws: Draws) -> FloatArray:
    """V: (theta_hat - theta)^2 for each point and draw, shape (points, n)."""
    # w . g(x) = t (w . x) + theta (w . v): the model is linear, so g(x) itself is not needed.
    theta_hat = draws.t * (x @ weights)[:, None] + draws.theta * (DIRECTION @ weights)
    squared_error: FloatArray = (theta_hat - draws.theta) ** 2
    return squared_error


PValueRule = Callable[[FloatArray, FloatArray], FloatArray]
"""Calibration score vectors (k, n) and test score vectors (batch, n) -> p-values (batch,)."""


def sum_rule(calibration: FloatArray, test: FloatArray) -> FloatArray:
    """The paper's: sum the n base scores, then Eq. 5."""
    return conformal.p_values(aggregate_scores(calibration), aggregate_scores(test))


def naive_fisher_rule(calibration: FloatArray, test: FloatArray) -> FloatArray:
    """One p-value for each of the n draws, combined as if they were independent."""
    from idecode_core.conformal.merging import (
        fisher_assuming_independence,
        member_p_values,
    )  # scipy, on first need

    return fisher_assuming_independence(member_p_values(calibration, test))


def tied_rule(calibration: FloatArray, test: FloatArray) -> FloatArray:
    """Discrete scores, the number of draws read badly wrong, ranked with >= as in Eq. 5."""
    return conformal.p_values(_count_of_misreadings(calibration), _count_of_misreadings(test))


def strict_tied_rule(calibration: FloatArray, test: FloatArray) -> FloatArray:
    """The same discrete scores, ranked with > instead of >=."""
    just_above = np.nextafter(_count_of_misreadings(test), np.inf)
    return conformal.p_values(_count_of_misreadings(calibration), just_above)


def _count_of_misreadings(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.count_nonzero(vectors > 0.5, axis=1), dtype=np.float64)


RULES: dict[str, PValueRule] = {
    "sum": sum_rule,
    "tied": tied_rule,
    "strict": strict_tied_rule,
    "Fisher": naive_fisher_rule,
}


@dataclass(frozen=True)
class Setup:
    """How one repeat is run; the defaults are the intact detector."""

    share_calibration_draw: bool = False
    train_on_calibration: bool = False
    test_contrast: float = 1.0  # what a different preprocessing does to the test points
    test_shift: float = 0.0  # how far the iD test points have drifted, each coordinate
    ood_in_calibration: float = 0.0  # share of calibration points that are OOD
    rule: PValueRule = sum_rule


@dataclass(frozen=True)
class Switch:
    """One assumption that can be violated; its words are those of the lesson in the browser."""

    name: str
    title: str
    why: str
    broken: Setup
    intact: Setup


@dataclass(frozen=True, eq=False)
class Run:
    """What came of many repeats of one setup."""

    p_values: FloatArray  # (repeats, tests) of iD test points; uniform when all is well
    ood_p_values: FloatArray  # (repeats, tests) of OOD test points

    def mean_false_detection_rate(self, epsilon: float) -> float:
        """The mean over repeats; Theorem 1 says at most epsilon."""
        return float(np.mean(self.p_values < epsilon))

    def mean_detection_rate(self, epsilon: float) -> float:
        """The share of OOD points found, mean over repeats."""
        return float(np.mean(self.ood_p_values < epsilon))


@dataclass(frozen=True, eq=False)
class Comparison:
    """An intact and a broken run, and why they differ."""

    switch: Switch
    intact: Run
    broken: Run

    @property
    def why(self) -> str:
        """One paragraph on what went wrong."""
        return self.switch.why


SWITCHES = {
    entry["name"]: Switch(
        entry["name"],
        entry["title"],
        entry["why"],
        *(
            Setup(**setup | {"rule": RULES[setup.get("rule", "sum")]})
            for setup in (entry["broken"], entry.get("intact", {}))
        ),
    )
    for entry in table("SWITCHES")
}


def break_it(
    switch: str,
    *,
    generator: np.random.Generator,
    k: int = 100,
    n: int = 5,
    tests: int = 100,
    repeats: int = 200,
) -> Comparison:
    """The intact and the broken run of one switch (a key of SWITCHES), with independent random numbers.

    >>> comparison = break_it("naive_fisher", generator=np.random.default_rng(0), repeats=20)
    >>> comparison.broken.mean_false_detection_rate(0.05) > comparison.intact.mean_false_detection_rate(0.05)
    True
    """
    if switch not in SWITCHES:
        raise SettingError(f"switch must be one of {', '.join(SWITCHES)}, got {switch!r}.")
    if min(k, n, tests, repeats) < 1:
        raise SettingError(
            f"k, n, tests and repeats must be at least 1, got {k}, {n}, {tests} and {repeats}."
        )
    chosen, runs = SWITCHES[switch], []
    for setup, child in zip((chosen.intact, chosen.broken), generator.spawn(2), strict=True):
        results = [_repeat(setup, k, n, tests, generator=child) for _ in range(repeats)]
        runs.append(Run(*map(np.stack, zip(*results, strict=True))))
    return Comparison(chosen, *runs)


def _repeat(
    setup: Setup, k: int, n: int, tests: int, *, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """p-values (tests,) of iD and of OOD test points, from one model and one calibration set."""
    calibration_set = sample_points(k, generator=generator)
    strangers = round(setup.ood_in_calibration * k)
    calibration_set[:strangers] *= OOD_SCALE
    proper_training_set = (
        calibration_set if setup.train_on_calibration else sample_points(k, generator=generator)
    )
    model = train(proper_training_set, generator=generator)
    calibration_draws = sample_draws(1 if setup.share_calibration_draw else k, n, generator=generator)
    calibration = score_vectors(model, calibration_set, calibration_draws)  # (k, n)

    new = (setup.test_shift + sample_points(tests, generator=generator)) * setup.test_contrast
    ood = sample_points(tests, generator=generator, scale=OOD_SCALE) * setup.test_contrast
    v, ood_v = (score_vectors(model, x, sample_draws(tests, n, generator=generator)) for x in (new, ood))
    return setup.rule(calibration, v), setup.rule(calibration, ood_v)
