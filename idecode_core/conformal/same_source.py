"""Do new calibration points come from the same source as the old ones? Two-sample tests of exchangeability on scores.

A test can find a difference; it cannot prove that there is none.
"""

from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import stats

from idecode_core.conformal import checked_scores


@dataclass(frozen=True)
class SourceComparison:
    """How the scores of new points compare with those of the shipped calibration set."""

    ks_p_value: float  # Kolmogorov-Smirnov: any difference between the two distributions
    rank_p_value: float  # Mann-Whitney: one of the two tends to be stranger
    stranger: float
    """P(a new point scores above an old one), ties counted half; 0.5 when neither is stranger."""

    @property
    def p_value(self) -> float:
        """Both tests in one, by Bonferroni."""
        return min(1.0, 2 * min(self.ks_p_value, self.rank_p_value))

    def differs(self, level: float = 0.01) -> bool:
        return self.p_value < level

    def reading(self, level: float = 0.01) -> str:
        """What the tests say, in plain words."""
        if not self.differs(level):
            return (
                f"No difference was found (p = {self.p_value:.3g}). Your files may well come from the same source as "
                "the shipped calibration set. A test like this can miss a difference, above all with few files."
            )
        if self.stranger > 0.55:
            way = f"Yours are stranger: a file of yours beats a shipped one {self.stranger:.0%} of the time."
        elif self.stranger < 0.45:
            way = f"Yours are more ordinary: a file of yours beats a shipped one only {self.stranger:.0%} of the time."
        else:
            way = "Neither is clearly stranger; the scores are spread differently."
        p = (
            f"p = {self.p_value:.2g}" if self.p_value >= 0.001 else "p < 0.001"
        )  # 1e-53 says no more, and looks like more
        return (
            f"The two differ ({p}). {way} With the shipped calibration the bound would not hold "
            "for files like yours; with your own calibration it does."
        )


def compare(new_scores: ArrayLike, old_scores: ArrayLike) -> SourceComparison:
    """Compare aggregated scores of new calibration points with those of the old.

    >>> compare([3.0, 4.0, 5.0], [1.0, 2.0]).stranger
    1.0
    """
    new = checked_scores(new_scores, "new_scores")
    old = checked_scores(old_scores, "old_scores")
    ks = stats.ks_2samp(new, old)
    ranks = stats.mannwhitneyu(new, old)
    return SourceComparison(
        float(ks.pvalue), float(ranks.pvalue), float(ranks.statistic) / (new.size * old.size)
    )
