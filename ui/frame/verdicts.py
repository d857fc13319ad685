"""Verdicts under the settings of a moment, from score vectors; never runs the model."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.judge import Judgement, Verdict, judge, smoothing_generator
from idecode_core.verdict import sentence
from ui.frame.settings import Chosen

if TYPE_CHECKING:
    from idecode_core.detector import Detector


def verdicts(
    detector: "Detector",
    hashes: Iterable[str],
    vectors: NDArray[np.float64],
    settings: Chosen,
    *,
    together: bool = False,
) -> Judgement:
    """Of inputs with these content hashes and V at n_max, (batch, n_max): each alone, or all together."""
    smoothed_by = [smoothing_generator(key, settings.seed) for key in hashes] if settings.smoothed else None
    return judge(
        detector.calibration,
        vectors,
        n=min(settings.n, detector.calibration.n_max),
        epsilon=settings.epsilon,
        aggregate=settings.aggregate,
        smoothed_by=smoothed_by,
        false_discovery_control=together,
    )


def coloured_answer(verdict: Verdict, noun: str) -> tuple[str, str]:
    """The answer with its colour and sign, and the reason."""
    colour, icon = ("orange", "flag") if verdict.is_ood else ("blue", "check_circle")
    answer, _, reason = sentence(verdict, noun).partition(":")
    return f":{colour}[:material/{icon}: {answer}]:", reason.strip()
