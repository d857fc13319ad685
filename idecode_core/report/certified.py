"""What the Certify page shows, as a report and as a notebook that computes it again."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from idecode_core.report.content import Export, Figure, Report, Row, command
from idecode_core.report.notebook import from_template

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.conformal.certify import Certified


def certified_export(
    certified: "Certified",
    names: tuple[str, str],
    calibration: "FloatArray",
    new: "FloatArray | None",
    figure: Any,
    caption: str,
    column: str = "",
    kept: Mapping[str, Sequence[Any]] | None = None,
) -> Export:
    """One row per new score; `names` are the files that the scores came in, `kept` the other columns of the new ones' file."""
    limit = certified.threshold(certified.epsilon, certified.delta)
    settings = certified.get_params()
    rows: tuple[Row, ...] = ()
    arrays, shown = {"calibration": calibration}, {"threshold": limit}
    if new is not None:
        p, flagged = certified.p_values(new), certified.predict(new) == -1
        rows = tuple(
            {
                **{title: cells[i] for title, cells in (kept or {}).items()},
                "score": float(s),
                "p_value": float(q),
                "is_ood": bool(f),
            }
            for i, (s, q, f) in enumerate(zip(new, p, flagged, strict=True))
        )
        arrays["new"] = new
        shown |= {"mean_p_value": float(p.mean()), "flagged": int(flagged.sum())}
    report = Report(
        "A certified threshold",
        (certified.statement(),),
        {**settings, "k": certified.k, "threshold": limit},
        rows,
        (Figure(figure, caption),),
        commands=(_command(certified, names, column),),
    )
    notebook = from_template(
        "certified",
        report.title,
        {"arrays": "certified.npz", **settings},
        shown,
        arrays=arrays,
        judged=new is not None,
    )
    return Export(report, notebook)


def _command(certified: "Certified", names: tuple[str, str], column: str) -> str:
    options = {
        "--test": names[1],
        "--larger-is": certified.larger_is,
        "--epsilon": certified.epsilon,
        "--delta": certified.delta,
        "--column": column,
    }
    return command("certify", names[0], **options)
