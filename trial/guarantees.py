"""Every guarantee, measured: `python -m trial.guarantees --write docs/guarantees.md`. Seeded; the long run takes some minutes.

A rate lies in its exact 99.9 % band where its law is known, and below the upper end where only a bound is promised.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from idecode_core.conformal import flagging_rank, p_values
from idecode_core.conformal.conditional import corrected_epsilon
from idecode_core.conformal.cross import cross_bound, cross_p_values, cross_scores, neighbour_p_values
from idecode_core.conformal.dirty import label_trim, strangest
from idecode_core.conformal.evidence import derandomised_e_values, e_benjamini_hochberg, envelope
from idecode_core.conformal.groups import mondrian_p_values
from idecode_core.conformal.integrative import integrative_p_values
from idecode_core.conformal.multiple import benjamini_hochberg, false_discovery_proportion, storey
from idecode_core.conformal.online import online_discoveries
from idecode_core.conformal.streams import online_p_values, shiryaev_roberts_alarms, ville_alarms
from idecode_core.conformal.weighted import weighted_p_values, weighted_selection
from idecode_core.files import write_text
from idecode_core.quality.metrics import conformal_bounds
from trial.table import Outcome

LEVEL = 0.999
BEGIN, END = "<!-- measured by trial/guarantees.py -->", "<!-- end of measured -->"


@dataclass(frozen=True)
class Measured:
    """One line of the table."""

    promise: str
    assumption: str
    bound: float
    seen: float
    trials: int
    low: float
    high: float
    command: str

    @property
    def sound(self) -> bool:
        return self.low <= self.seen <= self.high

    def row(self) -> str:
        band = f"{self.low:.4f} to {self.high:.4f}" if self.low > 0 else f"at most {self.high:.4f}"
        band = f"at least {self.low:.1f}" if np.isinf(self.high) else band
        return f"| {self.promise} | {self.assumption} | {self.bound:g} | {self.seen:.4f} in {self.trials:,} | {band} | {self.command} |"


def rate(
    promise: str, assumption: str, bound: float, hits: int, trials: int, command: str, exact: bool = False
) -> Measured:
    """A share of worlds, with its exact binomial band."""
    tail = (1 - LEVEL) / 2
    low = stats.binom.ppf(tail, trials, bound) / trials if exact else 0.0
    return Measured(
        promise,
        assumption,
        bound,
        hits / trials,
        trials,
        low,
        stats.binom.ppf(1 - tail, trials, bound) / trials,
        command,
    )


def mean(promise: str, assumption: str, bound: float, values: list[float], command: str) -> Measured:
    """A mean that is bounded, with the normal band of its own spread."""
    margin = stats.norm.ppf((1 + LEVEL) / 2) * float(np.std(values)) / np.sqrt(len(values))
    return Measured(
        promise, assumption, bound, float(np.mean(values)), len(values), 0.0, bound + margin, command
    )


def _plain(trials: int, generator: np.random.Generator) -> Measured:
    k, epsilon, hits = 99, 0.055, 0
    j = flagging_rank(k, epsilon)
    for start in range(0, trials, 10_000):
        block = generator.random((min(10_000, trials - start), k + 1))
        hits += int(np.count_nonzero((block[:, :k] >= block[:, k:]).sum(axis=1) < j))
    return rate(
        "an input that belongs is flagged with probability J/(k+1) <= epsilon", "exchangeable with the calibration inputs",
        j / (k + 1), hits, trials, "`detect --epsilon 0.055`", exact=True,
    )  # fmt: skip


def _conditional(trials: int, generator: np.random.Generator) -> Measured:
    k, epsilon, delta = 200, 0.1, 0.1
    j = flagging_rank(k, corrected_epsilon(k, epsilon, delta))
    true = 1 - np.array([np.partition(generator.random(k), k - j)[k - j] for _ in range(trials)])
    return rate(
        "at most a share delta of all calibration sets has a true rate above epsilon", "the same; no ties needed",
        delta, int(np.count_nonzero(true > epsilon)), trials, "`detect --epsilon 0.1 --delta 0.1`",
    )  # fmt: skip


def _groups(trials: int, generator: np.random.Generator) -> Measured:
    hits = 0
    groups = np.repeat(["a", "b"], 60)
    for _ in range(trials):
        scores = generator.normal(size=120) * np.where(groups == "a", 1, 4)
        hits += mondrian_p_values(scores, groups, [4 * generator.normal()], ["b"])[0] < 0.1
    return rate(
        "within each group the rate is at most epsilon", "exchangeable within the group",
        flagging_rank(60, 0.1) / 61, int(hits), trials, "`certify --groups COLUMN`", exact=True,
    )  # fmt: skip


def _dirty(trials: int, generator: np.random.Generator) -> Measured:
    hits = 0
    for _ in range(trials):
        scores = np.r_[generator.normal(size=120), generator.normal(8, size=6)]
        shown = strangest(scores, 20)
        kept = label_trim(scores, 20, shown[shown >= 120])
        hits += p_values(scores[kept], [generator.normal()])[0] < 0.1
    return rate(
        "after the review the rate is at most epsilon", "what was taken out did not belong, and nothing like it is left",
        flagging_rank(120, 0.1) / 121, int(hits), trials, "`calibrate --review 20`", exact=True,
    )  # fmt: skip


def _weighted(trials: int, generator: np.random.Generator) -> Measured:
    hits = 0
    for _ in range(trials):
        x, new = generator.normal(size=100), generator.normal(1.0)
        p = weighted_p_values(
            x + generator.normal(size=100), np.exp(x), [new + generator.normal()], [np.exp(new)]
        )
        hits += p[0] < 0.1
    return rate(
        "under a shift of the source the rate is at most epsilon", "covariate shift with the true weights (estimated ones only come close)",
        0.1, int(hits), trials, "`certify --shifted-to FILE`",
    )  # fmt: skip


def _integrative(trials: int, generator: np.random.Generator) -> Measured:
    hits = 0
    for _ in range(trials):
        known, strange = generator.normal(size=(100, 2)), generator.normal((0.0, 3.0), size=(15, 2))
        hits += integrative_p_values(known, strange, generator.normal(size=(1, 2)))[0] < 0.1
    return rate(
        "with known outliers the rate is at most epsilon", "exchangeable with the calibration inputs; any outliers",
        0.1, int(hits), trials, "`certify --outliers FILE`",
    )  # fmt: skip


def _discoveries(
    flag: Callable[[np.ndarray, int], np.ndarray], trials: int, generator: np.random.Generator
) -> list[float]:
    """False discovery proportions of 40 points, a quarter of them strange, with one calibration set of 500."""
    is_ood = np.arange(40) % 4 == 0
    found = []
    for _ in range(trials):
        p = p_values(generator.normal(size=500), generator.normal(size=40) + 3.5 * is_ood)
        found.append(false_discovery_proportion(flag(p, 500), is_ood))
    return found


def _together(trials: int, generator: np.random.Generator) -> Iterator[Measured]:
    assumption = "points that belong are exchangeable with the calibration inputs"
    promise = "of the flags, on average at most q belong"
    rules: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
        "bh": lambda p, k: benjamini_hochberg(p, 0.2),
        "storey": lambda p, k: storey(p, 0.2, k=k),
    }
    for name, rule in rules.items():
        yield mean(
            f"{promise} ({name})",
            assumption,
            0.2,
            _discoveries(rule, trials, generator),
            f"`certify --many {name}`",
        )
    for name in ("lord++", "saffron", "addis", "e-lond"):
        found = _discoveries(lambda p, k, name=name: online_discoveries(p, 0.2, name), trials // 4, generator)
        proven = (
            "any dependence"
            if name == "e-lond"
            else "proven for independent p-values; measured here with one calibration set"
        )
        yield mean(
            f"{promise}, each answered at once ({name})", proven, 0.2, found, f"`certify --many {name}`"
        )
    is_ood, e_found, w_found = np.arange(40) % 4 == 0, [], []
    for _ in range(trials // 4):
        known, asked = generator.normal(size=200), generator.normal(size=40) + 3.5 * is_ood
        runs = known + 0.7 * generator.normal(size=(10, 200)), asked + 0.7 * generator.normal(size=(10, 40))
        e_found.append(
            false_discovery_proportion(e_benjamini_hochberg(derandomised_e_values(*runs, 0.1), 0.2), is_ood)
        )
        x, new = generator.normal(size=200), generator.normal(1.0, size=40)
        flagged = weighted_selection(
            x + generator.normal(size=200),
            np.exp(x),
            new + generator.normal(size=40) + 6 * is_ood,
            np.exp(new),
            0.2,
        )
        w_found.append(false_discovery_proportion(flagged, is_ood))
    yield mean(f"{promise}, stable over seeds (e-BH)", assumption, 0.2, e_found, "`certify --many e-bh`")
    yield mean(f"{promise} under a shift (weighted selection)", "covariate shift with the true weights", 0.2, w_found,
               "`certify --shifted-to FILE --many bh`")  # fmt: skip


def _envelope(trials: int, generator: np.random.Generator) -> Measured:
    bound, broken, is_ood = envelope(200, 40, 0.2, generator=generator, repeats=2_000), 0, np.arange(40) < 10
    for _ in range(trials):
        p = p_values(generator.normal(size=200), generator.normal(size=40) + 3.0 * is_ood)
        true = np.array([false_discovery_proportion(p <= cut, is_ood) for cut in p])
        broken += bool((true > bound.false_discoveries(p) + 1e-12).any())
    return rate(
        "with probability 1 - delta no cut has more false flags than the envelope says", "the same",
        0.2, broken, trials, "`certify --many envelope`",
    )  # fmt: skip


def _streams(trials: int, generator: np.random.Generator) -> Iterator[Measured]:
    alarms, times = 0, []
    for _ in range(trials):
        p = online_p_values(generator.normal(size=50), generator.normal(size=500), generator=generator)
        alarms += ville_alarms(p, alpha=0.05).alarms.size > 0
        first = shiryaev_roberts_alarms(p, mean_time=100).alarms
        times.append(float(first[0] + 1) if first.size else 500.0)
    yield rate("until a restart, any alarm without a change has probability at most alpha", "the stream is exchangeable with the calibration inputs",
               0.05, alarms, trials, "`serve` (`idecode_log_martingale`)")  # fmt: skip
    margin = stats.norm.ppf((1 + LEVEL) / 2) * np.std(times) / np.sqrt(len(times))
    yield Measured("the mean time to a false alarm is at least 100, from each restart on (Shiryaev-Roberts)", "the same", 100.0,
                   float(np.mean(times)), trials, 100.0 - margin, float("inf"), "`certify --many shiryaev-roberts`")  # fmt: skip


def _bounds(trials: int, generator: np.random.Generator) -> Measured:
    broken = sum(
        conformal_bounds(generator.normal(size=100), generator.normal(2, size=60), 0.2).auroc
        > stats.norm.cdf(2 / np.sqrt(2))
        for _ in range(trials)
    )
    return rate("with probability 1 - delta the true AUROC is at least what is said", "test points independent", 0.2, broken, trials,
                "`evaluate`")  # fmt: skip


def _cross(trials: int, generator: np.random.Generator) -> Measured:
    """A model that overfits: the distance from the nearest of few points in the plane."""

    def nearest(fitted: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return np.sqrt(((asked[:, None] - fitted) ** 2).sum(axis=2)).min(axis=1)

    hits = 0
    for _ in range(trials):
        points = generator.normal(size=(25, 2))
        scores = cross_scores(nearest, points[:24], points[24:], folds=8, generator=generator)
        hits += int(cross_p_values(*scores)[0] < 0.1)
    return rate("with few points that fit and calibrate in turn, the rate is at most 2 epsilon + (1 - K/n)/(K+1) (cross-conformal)",
                "exchangeable; the model does not depend on the order of its points; folds of equal size", cross_bound([3] * 8, 0.1),
                hits, trials, "`certify --folds COLUMN`")  # fmt: skip


def _full(trials: int, generator: np.random.Generator) -> Measured:
    """The same few points and the same distance, with the new point among those that fit: p has any rank alike."""
    hits = 0
    for _ in range(trials):
        points = generator.normal(size=(25, 2))
        hits += int(neighbour_p_values(points[:24], points[24:])[0] < 0.1)
    return rate("with few points that all fit and calibrate, the rate is at most epsilon (full conformal)",
                "exchangeable; a distance from near neighbours", 0.08, hits, trials, "`train FOLDER --judge NEW`")  # fmt: skip


def measured(short: bool = False, seed: int = 0) -> Iterator[Measured]:
    """All lines; the short run is for tests."""
    few, some, many = (200, 400, 20_000) if short else (2_000, 100_000, 1_000_000)
    streams = np.random.default_rng(seed).spawn(12)
    yield _plain(many, streams[0])
    yield _conditional(many, streams[1])
    yield _groups(many, streams[2])
    yield _dirty(some, streams[3])
    yield _weighted(many, streams[4])
    yield _integrative(few if short else 10_000, streams[5])
    yield from _together(few, streams[6])
    yield _envelope(few, streams[7])
    yield from _streams(few, streams[8])
    yield _bounds(few, streams[9])
    yield _cross(some if short else 20_000, streams[10])
    yield _full(some, streams[11])


def try_guarantees(short: bool, seed: int) -> Iterator[Outcome]:
    """As a part of the trial: a promise whose measured rate leaves its band is wrong."""
    outcome = Outcome("guarantees", "promises, each simulated many times; wrong: outside of the 99.9 % band")
    with outcome.timed():
        for one in measured(short, seed):
            outcome.cases += 1
            if not one.sound:
                outcome.blame("wrong", one.row())
    yield outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trial.guarantees", description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="the document whose table is written, docs/guarantees.md")
    chosen = parser.parse_args()
    found = []
    for one in measured(chosen.short, chosen.seed):
        print(one.row(), "" if one.sound else "  <- NOT SOUND", flush=True)
        found.append(one)
    if chosen.write:
        head = "| promise | assumption | promised | measured | 99.9 % band | where |\n|---|---|---|---|---|---|\n"
        table = head + "\n".join(one.row() for one in found)
        before, _, rest = chosen.write.read_text().partition(BEGIN)
        write_text(chosen.write, f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")
    return 0 if all(one.sound for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
