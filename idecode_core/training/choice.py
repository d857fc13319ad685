"""Which of several models is taken: judged on files kept from fitting, against strangers that are made, or by outliers that a user
knows; and what these gained. No file that calibrates or tests chooses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from idecode_core.quality.metrics import auroc, auroc_interval
from idecode_core.quality.user_data import N
from idecode_core.scorer import Scorer

CLEARLY = 0.05
"""How much better (AUROC) than the usual model another must be."""
KNOWN = "known outliers"
"""The kind of stranger that is not made: outliers that the user knows."""
LOCAL = ("patches", "places")
"""What is taken for small changes alone."""
FEWEST_TO_MEASURE = 10
"""Known outliers that say what was gained; fewer say too little."""
Tried = Mapping[str, Mapping[str, float]]
"""Model -> kind of stranger -> AUROC; the usual model is the first."""


@dataclass(frozen=True, eq=False)
class Known:
    """Known outliers as a scorer takes them: some choose the model, the others measure what that gained."""

    choose: Sequence[Any]
    measure: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted scorer with what was found while fitting."""

    scorer: Scorer
    accuracy: float | None
    """Share of the calibration files whose class is named right."""
    left_out: dict[str, float]
    """Class -> AUROC of its calibration files against the others', by a scorer that does not know the class."""
    taken: str
    """Which model it is."""
    tried: dict[str, dict[str, float]] = field(default_factory=dict)
    """Where there was a choice: model -> kind of stranger, made for it or known -> AUROC."""
    gained: str = ""
    """What known outliers gained by choosing, in words."""

    def words(self) -> str:
        """What was taken, and why; "" where there was no choice."""
        return f"{choice_in_words(self.taken, self.tried)} {self.gained}".strip()


def choice_in_words(taken: str, tried: Tried) -> str:
    """One sentence.

    >>> choice_in_words("a", {"a": {"cuts": 0.9, "scratches": 0.8}, "b": {"cuts": 0.5, "scratches": 0.6}})
    'Taken: a, with AUROC 85.0 % on files kept from fitting against changed ones (cuts, scratches); b 55.0 %.'
    >>> choice_in_words("places", {"a": {"cuts": 0.5}, "places": {"cuts": 0.9}}).partition("a 50.0 %. ")[2]
    'It looks for small changes: if other kinds of things are what does not belong, name --model mahalanobis.'
    """
    if not tried:
        return ""
    against = f"changed ones ({', '.join(tried[taken])})"
    local = " It looks for small changes: if other kinds of things are what does not belong, name --model mahalanobis."
    local *= taken in LOCAL and KNOWN not in tried[taken]
    if KNOWN in tried[taken]:
        against, tried = KNOWN, {name: {KNOWN: by_kind[KNOWN]} for name, by_kind in tried.items()}
    means = {name: 100 * float(np.mean(list(by_kind.values()))) for name, by_kind in tried.items()}
    others = ", ".join(f"{name} {mean:.1f} %" for name, mean in means.items() if name != taken)
    return f"Taken: {taken}, with AUROC {means[taken]:.1f} % on files kept from fitting against {against}; {others}.{local}"


def best(tried: Tried, clearly: float = CLEARLY, good: float = 0.0) -> str:
    """By the mean over the strangers that were made: the first one, unless another is clearly better, and good.

    >>> best({"mahalanobis": {"scratched": 0.6}, "patches": {"scratched": 0.65}})
    'mahalanobis'
    >>> best({"mahalanobis": {"scratched": 0.6}, "patches": {"scratched": 0.69}}, good=0.7)
    'mahalanobis'
    >>> best({"mahalanobis": {"scratched": 0.6, KNOWN: 0.9}, "patches": {"scratched": 0.9, KNOWN: 0.1}})
    'patches'
    """
    means = {
        name: float(np.mean([value for kind, value in by_kind.items() if kind != KNOWN]))
        for name, by_kind in tried.items()
    }
    usual, *others = means
    other = max(others, key=means.__getitem__)
    return other if means[other] > max(means[usual] + clearly, good) else usual


def learned(tried: Tried, usual: str) -> str:
    """The model that tells known outliers best, if it does so clearly better than the one that is taken without them.

    >>> learned({"mahalanobis": {KNOWN: 0.6}, "neighbours": {KNOWN: 0.7}, "patches": {KNOWN: 0.65}}, "mahalanobis")
    'neighbours'
    """
    other = max(tried, key=lambda name: tried[name][KNOWN])
    return other if tried[other][KNOWN] > tried[usual][KNOWN] + CLEARLY else usual


def gained(taken: Fitted, usual: str, usual_scorer: Callable[[], Scorer], test: Any, known: Known) -> str:
    """What the choice by known outliers gained, on the test files and the outliers that did not choose: neither had a part in it."""
    if taken.taken == usual:
        return f"Nothing gained by the {len(known.choose)} known outliers that may choose: it is what is taken without them."
    count = len(known.measure)
    if count < FEWEST_TO_MEASURE:
        return (
            f"Without known outliers it would be {usual}; the {count} that did not choose are too few to measure what that "
            f"gained ({FEWEST_TO_MEASURE} at least)."
        )

    def measured(scorer: Scorer) -> str:
        inside, outside = (
            scorer.score(points, n=N, seed=0).score_vectors.sum(axis=1) for points in (test, known.measure)
        )
        low, high = auroc_interval([inside], [outside])
        return f"{100 * auroc(inside, outside):.1f} % ({100 * low:.1f} to {100 * high:.1f})"

    return (
        f"Gained by {len(known.choose)} known outliers: on your test files and {count} others, which had no part in the choice, AUROC "
        f"{measured(taken.scorer)}, where {usual}, taken without them, has {measured(usual_scorer())}; 95 % intervals."
    )
