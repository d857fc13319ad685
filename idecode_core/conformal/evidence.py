"""Many inputs, more than one draw or more than one look: e-values that do not flip with the seed, and a bound for every cut.

`derandomised_e_values` and `e_benjamini_hochberg`. Promised: the false discovery rate is at most q, however many seeds are averaged
and however they depend on each other. Not promised: more power than one run has; and all runs share one set of test points.
`Envelope`. Promised: with probability 1 - delta over calibration and test points, its bound on the false discovery proportion holds
for all cuts at once, so the cut may be chosen after looking. Not promised: the average, which Benjamini-Hochberg controls.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idecode_core.conformal.ranking import FloatArray, IntArray, check_k, checked_p_values, checked_scores
from idecode_core.errors import ScoreError, SettingError


def derandomised_e_values(calibration_scores: ArrayLike, test_scores: ArrayLike, q: float) -> FloatArray:
    """The mean over runs of conformal e-values: scores (runs, k) and (runs, m), a run per seed. (m,)

    In one run, T is the lowest score at which (m / k) #{calibration >= T} / #{test >= T} is at most q; points at or above T get
    (k + 1) / (1 + #{calibration >= T}), all others 0. Bashari, Epstein, Romano & Sesia (2023), "Derandomized novelty detection
    with FDR control via conformal e-values". Choose q here as half the level of `e_benjamini_hochberg`: then a point that is
    flagged in half of the runs is flagged.

    >>> derandomised_e_values([[1.0, 2.0, 3.0, 4.0]], [[9.0, 0.5]], 0.25)
    array([5., 0.])
    """
    _check_level(q)
    calibration = checked_scores(calibration_scores, "calibration_scores", ndim=2)
    test = checked_scores(test_scores, "test_scores", ndim=2)
    if len(calibration) != len(test):
        raise ScoreError(
            f"Each run needs its own calibration and test scores, got {len(calibration)} and {len(test)} runs."
        )
    return np.asarray(
        np.mean([_e_values(c, t, q) for c, t in zip(calibration, test, strict=True)], axis=0),
        dtype=np.float64,
    )


def stable_discoveries(calibration_scores: ArrayLike, test_scores: ArrayLike, q: float) -> NDArray[np.bool_]:
    """e-BH at q over runs: scores (runs, k) and (runs, m), a run per seed or per draw. (m,)

    >>> generator = np.random.default_rng(0)
    >>> stable_discoveries(generator.normal(size=(5, 200)), generator.normal(size=(5, 4)) + [9, 9, 0, 0], q=0.2)
    array([ True,  True, False, False])
    """
    return e_benjamini_hochberg(derandomised_e_values(calibration_scores, test_scores, q / 2), q)


def _e_values(calibration: FloatArray, test: FloatArray, q: float) -> FloatArray:
    cuts = np.unique(np.concatenate([calibration, test]))  # rising; points of one score are counted together
    known = calibration.size - np.searchsorted(np.sort(calibration), cuts, side="left")
    asked = test.size - np.searchsorted(np.sort(test), cuts, side="left")
    fits = np.flatnonzero((asked > 0) & (known * test.size <= q * calibration.size * asked))
    if fits.size == 0:
        return np.zeros(test.size)
    e = (calibration.size + 1) / (1 + int(known[fits[0]]))
    return np.where(test >= cuts[fits[0]], e, 0.0)


def e_benjamini_hochberg(e_values: ArrayLike, q: float) -> NDArray[np.bool_]:
    """Flags the i* largest e-values, i* = max{i : e_(i) >= m / (q i)}. Valid whatever the dependence (Wang & Ramdas 2022).

    >>> e_benjamini_hochberg([40.0, 30.0, 0.5], q=0.1)
    array([ True,  True, False])
    """
    _check_level(q)
    e = checked_scores(e_values, "e-values")
    if e.min() < 0:
        raise ScoreError(
            f"e-values must not be negative, got {e.min():g}. Did log values come in their place?"
        )
    falling = np.sort(e)[::-1]
    passes = np.flatnonzero(falling * q * np.arange(1, e.size + 1) >= e.size * (1 - 1e-12))
    return e >= falling[passes[-1]] if passes.size else np.zeros(e.size, dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Envelope:
    """How many of m points that belong have a p-value of at most i/(k+1), for all i at once, with probability 1 - delta."""

    k: int
    m: int
    delta: float
    most: IntArray  # (k + 1,): the bound at i = 1, ..., k+1

    def false_discoveries(self, p_values: ArrayLike) -> FloatArray:
        """For each p-value as the cut: at most this share of the points flagged at or below it belongs. (m,)"""
        p = checked_p_values(p_values)
        if p.size != self.m:
            raise ScoreError(f"The envelope is for {self.m} points judged together, got {p.size}.")
        place = np.clip(np.ceil(p * (self.k + 1) - 1e-9 * (self.k + 1)).astype(np.int64), 1, self.k + 1)
        flagged = np.searchsorted(np.sort(p), p, side="right")
        # A smaller cut's bound carries over: at most its false ones, and all that came since.
        order = np.argsort(p, kind="stable")
        bound = np.minimum(self.most[place - 1], flagged)[order].astype(np.float64)
        flagged_in_order = flagged[order]
        extra = np.minimum.accumulate(bound - flagged_in_order) + flagged_in_order
        share = np.empty(p.size)
        share[order] = np.minimum(bound, extra) / flagged_in_order
        return share

    def widest(self, p_values: ArrayLike, share: float) -> float:
        """The largest p-value that, as the cut, has at most this share of flags that belong; 0 where none has."""
        p = checked_p_values(p_values)
        return float(p[self.false_discoveries(p) <= share].max(initial=0.0))

    def sentence(self, p_values: ArrayLike, cut: float) -> str:
        """What is promised of the points with a p-value of at most `cut`, and what is not.

        >>> bound = envelope(999, 4, 0.1, generator=np.random.default_rng(0))
        >>> bound.sentence([0.001, 0.001, 0.001, 0.9], 0.01)[:66]
        'With probability 0.9 at most 0 of the 3 flags at p <= 0.01 belong:'
        """
        p = checked_p_values(p_values)
        flagged = p <= cut
        share = self.false_discoveries(p)[flagged & (p == p[flagged].max(initial=0.0))][:1]
        false, count = round(float(share.sum()) * int(flagged.sum())), int(flagged.sum())
        return (
            f"With probability {1 - self.delta:g} at most {false:,} of the {count:,} flags at p <= {cut:.3g} "
            f"{'belongs' if false == 1 else 'belong'}: that holds for all cuts at once, so the cut may be chosen after looking. "
            "Not promised: it for another batch, or after points were added to this one."
        )


def envelope(
    k: int, m: int, delta: float = 0.1, *, generator: np.random.Generator, repeats: int = 1_000
) -> Envelope:
    """The envelope by simulation: p-values of m points that belong and share k calibration points follow a law that no score can
    change (a Pólya urn; Gazin, Blanchard & Roquain 2024, "Transductive conformal inference with adaptive scores").

    The count at i exceeds its mean m i/(k+1) by at most c standard deviations; c is the ceil((1-delta)(repeats+1))-th smallest of
    what `repeats` simulated worlds needed, so the simulation's own randomness is in the promise.
    """
    check_k(k)
    if not 0 < delta < 1 or m < 1:
        raise SettingError(
            f"delta must lie strictly between 0 and 1 and m be at least 1, got {delta} and {m}."
        )
    order = math.ceil((1 - delta) * (repeats + 1))
    if order > repeats:
        raise SettingError(
            f"repeats={repeats} are too few for delta={delta:g}. Use at least {math.ceil(1 / delta)}."
        )
    share = np.arange(1, k + 1) / (k + 1)
    spread = np.sqrt(m * share * (1 - share) * (1 + m / (k + 2))) + 0.5  # beta-binomial, and some at the ends
    needed = np.empty(repeats)
    for repeat in range(repeats):
        known = np.sort(generator.random(k))
        ranks = k - np.searchsorted(known, generator.random(m))  # p = (rank + 1)/(k+1)
        counts = np.cumsum(np.bincount(ranks, minlength=k + 1))[:k]
        needed[repeat] = np.max((counts - m * share) / spread)
    c = float(np.partition(needed, order - 1)[order - 1])
    most = np.append(np.minimum(np.floor(m * share + c * spread + 1e-9), m), m).astype(np.int64)
    return Envelope(k, m, delta, np.maximum(np.maximum.accumulate(most), 0))


def _check_level(q: float) -> None:
    if not 0.0 < q < 1.0:
        raise SettingError(f"q must lie strictly between 0 and 1, got {q}. A usual choice is 0.1.")
