"""What the Certify page shows, as a report and as a notebook that computes it again."""

from typing import TYPE_CHECKING, Any

from idecode_core.report.content import Export, Figure, Report, Row
from idecode_core.report.notebook import Code
from idecode_core.report.steps import Expression, Step, steps_notebook

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.own.scores import Certified

EMBEDDED = 20_000
"""Scores that a notebook holds itself; of more, it reads the file that lies beside it."""


def certified_export(
    certified: "Certified",
    names: tuple[str, str],
    calibration: "FloatArray",
    new: "FloatArray | None",
    figure: Any,
    caption: str,
    column: str = "",
) -> Export:
    """One row per new score; `names` are the files that the scores came in."""
    from idecode_core.own.scores import certify

    limit = certified.threshold(certified.epsilon, certified.delta)
    settings = {**certified.get_params(), "k": certified.k, "threshold": limit}
    rows: tuple[Row, ...] = ()
    steps: list[Step | Code] = [
        _scores("calibration", names[0], calibration, column),
        Step("certified", certify, {"scores": Expression("calibration"), **certified.get_params()}),
        Code("print(certified.statement())"),
    ]
    shown: dict[str, Any] = {"certified.threshold(certified.epsilon, certified.delta)": limit}
    if new is not None:
        p, flagged = certified.p_values(new), certified.predict(new) == -1
        rows = tuple(
            {"score": float(s), "p_value": float(q), "is_ood": bool(f)}
            for s, q, f in zip(new, p, flagged, strict=True)
        )
        steps += [_scores("new", names[1], new, column), Code("p_values = certified.p_values(new)")]
        shown |= {
            "p_values.mean()": float(p.mean()),
            "np.count_nonzero(certified.predict(new) == -1)": int(flagged.sum()),
        }
    report = Report(
        "A certified threshold", (certified.statement(),), settings, rows, (Figure(figure, caption),)
    )
    why = "This notebook computes again what the Certify page showed."
    return Export(report, steps_notebook("A certified threshold", why, steps, shown))


def _scores(name: str, file: str, scores: "FloatArray", column: str) -> Code:
    if scores.size <= EMBEDDED:
        return Code(f"{name} = np.array({scores.tolist()!r})")
    return Code(
        "from pathlib import Path\n\n"
        "from idecode_core.files.archives import File\n"
        "from idecode_core.files.one_column import read_scores\n\n"
        f"{name} = read_scores(File({file!r}, Path({file!r}).read_bytes()), {column!r})  # put the file beside this notebook"
    )
