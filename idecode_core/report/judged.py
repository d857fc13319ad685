"""What pages judge samples with, and the notebook cells that judge them again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from idecode_core.report.content import Row, Value
from idecode_core.report.notebook import Code

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
        return {
            "detector": self.detector,
            "scorer_sha256": self.scorer_sha256,
            "calibration_sha256": self.calibration_sha256,
            "k": k,
            "n": self.n,
            "epsilon": self.epsilon,
            "aggregate": self.aggregate,
            "p_value_kind": "smoothed" if self.smoothed else "conservative",
            **more,
            "seed": self.seed,
        }

    def detector_cell(self) -> Code:
        """Loads the detector by its name and refuses another one."""
        return Code(
            f"""\
from idecode_core import load_detector
from idecode_core.folder.detector import scorer_hash
from idecode_core.report import calibration_hash

detector = load_detector({self.detector!r})
assert scorer_hash(detector.scorer) == {self.scorer_sha256!r}, "other weights or settings"
assert calibration_hash(detector.calibration) == {self.calibration_sha256!r}, "another calibration"
print(detector.name, "·", detector.summary, "· k =", detector.calibration.k)"""
        )

    def judge_cell(
        self,
        samples: str,
        last: str,
        *,
        smoothed_by: str,
        imports: str = "",
        first: str = "",
        more: tuple[str, ...] = (),
    ) -> Code:
        """V of `samples` by the detector, then `judge` with the options of the page. All are code; `first` and `last` are
        lines before and after."""
        names = "judge, smoothing_generator" if self.smoothed else "judge"
        options = (f"smoothed_by=[{smoothed_by}],",) * self.smoothed + more
        return Code(
            f"""\
from idecode_core.conformal.judge import {names}{imports}

n, epsilon, aggregate, seed = {self.n}, {self.epsilon!r}, {self.aggregate!r}, {self.seed}{first}
score_vectors = detector.score_vectors({samples}, n=n, seed=seed)
judgement = judge(
    detector.calibration,
    score_vectors,
    epsilon=epsilon,
    aggregate=aggregate,{"".join(f"{chr(10)}    {option}" for option in options)}
)
{last}"""
        )


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
