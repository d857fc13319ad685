"""What pages judge samples with."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from idecode_core.report.content import Row, Value

if TYPE_CHECKING:
    from idecode_core.conformal.judge import Verdict


@dataclass(frozen=True, eq=False)
class Judged:
    """A detector and the settings of a page."""

    detector: str
    """The name of its folder below the checkpoint root."""
    scorer_sha256: str
    calibration_sha256: str
    n: int
    epsilon: float
    aggregate: str
    smoothed: bool
    seed: int

    def settings(self, k: int, **more: Value) -> dict[str, Value]:
        names = ("detector", "scorer_sha256", "calibration_sha256", "n", "epsilon", "aggregate", "seed")
        kind = "smoothed" if self.smoothed else "conservative"
        return {**{name: getattr(self, name) for name in names}, "k": k, "p_value_kind": kind, **more}


def verdict_row(verdict: "Verdict", score_vector: tuple[float, ...], content_hash: str) -> Row:
    """The columns that say how a sample was judged."""
    return {
        "verdict": verdict.answer,
        "p_value": verdict.p_value,
        "rank": verdict.rank,
        "k": verdict.k,
        "score": verdict.score,
        "score_vector": score_vector,
        "content_hash": content_hash,
    }
