"""Many inputs at once: control of the false *discovery* rate.

The false *discovery* rate is the expected share of iD points among the *flagged* points. The paper's false
*detection* rate is the share of flagged points among the *iD* points. At a plain p < epsilon with few OOD points,
most flags can be false although the false detection rate is kept.
Conformal p-values that share a calibration set depend on each other, but positively (PRDS), so these procedures
stay valid: Bates et al. (2023), "Testing for outliers with conformal p-values".
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idecode_core.conformal import FloatArray, checked_p_values
from idecode_core.errors import ScoreError, SettingError

BoolArray = NDArray[np.bool_]
LARGEST_K = 10**7
"""p-values of at most so many calibration points are known to be i/(k+1) exactly, though they come as floats."""


def benjamini_hochberg(p_values: ArrayLike, q: float) -> BoolArray:
    """Flags the i* smallest p-values, i* = max{i : p_(i) <= q i / m}; the false discovery rate is at most q m_iD / m.

    Benjamini & Hochberg (1995). One discovery among m points needs k >= m/q - 1 calibration points.

    >>> benjamini_hochberg([0.001, 0.02, 0.03, 0.9], q=0.1)
    array([ True,  True,  True, False])
    """
    _check_q(q)
    p = checked_p_values(p_values)
    return _step_up(p, q, Fraction(p.size))


def benjamini_hochberg_cut(p_values: ArrayLike, q: float) -> float:
    """The epsilon to which Benjamini-Hochberg amounts for this batch: flagged means p < the cut.

    It lies just above the largest flagged p-value; when nothing is flagged, just above q / m, what one point alone
    would have had to reach.

    >>> round(benjamini_hochberg_cut([0.001, 0.02, 0.03, 0.9], q=0.1), 3)
    0.03
    """
    p = checked_p_values(p_values)
    flagged = benjamini_hochberg(p, q)
    if flagged.any():
        return math.nextafter(float(p[flagged].max()), 1.0)
    # q / m may round onto a p-value that was not flagged, and up to 1.
    return min(math.nextafter(q / p.size, 1.0), float(p.min()), math.nextafter(1.0, 0.0))


def storey(p_values: ArrayLike, q: float, *, k: int, level: float = 0.5) -> BoolArray:
    """Benjamini-Hochberg at q / pi, with pi = (1 + #{p >= L}) / (m (1 - L)) as the estimated share of iD points.

    Flags the i* smallest p-values, i* = max{i : p_(i) < L and p_(i) <= q i / (pi m)}.

    Storey, Taylor & Siegmund (2004); for conformal p-values L must be a multiple of 1/(k+1) (Bates et al. 2023;
    Marandon et al. 2024), so `level` is rounded up to one. Gains when many points are OOD.

    >>> storey([0.001, 0.02, 0.03, 0.04, 0.6], q=0.1, k=999)
    array([ True,  True,  True,  True, False])
    """
    _check_q(q)
    p = checked_p_values(p_values)
    step = math.ceil(level * (k + 1) - 1e-9)
    if not 0 < step < k + 1:
        raise SettingError(f"level must lie strictly between 0 and 1 on the scale of 1/{k + 1}, got {level}.")
    lattice_level = step / (k + 1)
    ordinary = int(np.count_nonzero(p >= lattice_level))
    return _step_up(p, q, Fraction((1 + ordinary) * (k + 1), k + 1 - step), below=lattice_level)  # pi m


def _step_up(p: FloatArray, q: float, points: Fraction, below: float = math.inf) -> BoolArray:
    """Flags the i* smallest, i* = max{i : p_(i) points <= q i and p_(i) < below}.

    Where floats cannot tell, ranks are compared as integers: p = i/(k+1), and q is the decimal number that was typed. Else ties on
    the line are lost to rounding, as [3/650] * 3 + [1] * 62 at 0.1.
    """
    ordered = np.sort(p)
    line = q * np.arange(1, p.size + 1)  # (m,)
    excess = ordered * float(points) - line
    passes = excess < 0
    for i in np.flatnonzero((np.abs(excess) <= 1e-9 * line) & (ordered < below)).tolist():
        passes[i] = _fraction(float(ordered[i])) * points <= Fraction(str(float(q))) * (i + 1)
    passing = np.flatnonzero(passes & (ordered < below))
    return p <= ordered[passing[-1]] if passing.size else np.zeros(p.size, dtype=np.bool_)


def _fraction(p: float) -> Fraction:
    """The fraction of small denominator that a float stands for, where there is one; else the float itself."""
    near = Fraction(p).limit_denominator(LARGEST_K)
    return near if near.numerator / near.denominator == p else Fraction(p)


def false_discovery_proportion(flagged: ArrayLike, is_ood: ArrayLike) -> float:
    """The share of iD points among the flagged ones; 0 when nothing is flagged. Its mean is the false discovery rate.

    >>> false_discovery_proportion([True, True, False], is_ood=[True, False, False])
    0.5
    """
    flags, truth = np.asarray(flagged, dtype=np.bool_), np.asarray(is_ood, dtype=np.bool_)
    if flags.shape != truth.shape:
        raise ScoreError(f"flagged and is_ood must have one shape, got {flags.shape} and {truth.shape}.")
    return int(np.count_nonzero(flags & ~truth)) / max(int(np.count_nonzero(flags)), 1)


def _check_q(q: float) -> None:
    if not 0.0 < q < 1.0:
        raise SettingError(f"q must lie strictly between 0 and 1, got {q}. A usual choice is 0.1.")
