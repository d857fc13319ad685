"""What the Guarantee page and the Certify page show, as a report and as a notebook that computes it again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idecode_core.report.content import Export, Figure, Report, Row, Value, command
from idecode_core.report.notebook import Notebook, from_template

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.conformal.certify import Certified
    from idecode_core.conformal.observed import Study
    from idecode_core.conformal.statement import Guarantee


def guarantee_report(
    name: str,
    guarantee: "Guarantee",
    study: "Study | None",
    settings: dict[str, Value],
    figures: Sequence[tuple[Any, str]],
) -> Report:
    """The statement, and one row per epsilon: the bound, the exact law, what was observed. All rates are 0 to 1.

    `figures` are with their captions.
    """
    from idecode_core.conformal.statement import ASSUMPTIONS, NOT_GUARANTEED

    options = {
        "--detector": settings.get("folder", name), "--n": settings.get("n"), "--epsilon": guarantee.epsilon,
        "--aggregate": settings.get("aggregate"),
    }  # fmt: skip
    return Report(
        title=f"The guarantee of {name} with k = {guarantee.k:,}",
        sentences=(
            guarantee.statement(),
            guarantee.one_set(),
            *((seen_sentence(guarantee, study),) if study else ()),
            guarantee.correction(),
            "It assumes: " + " ".join(ASSUMPTIONS),
            "It does not promise: " + " ".join(NOT_GUARANTEED),
        ),
        settings={"detector": name, **vars(guarantee), **settings},
        rows=tuple(_row(study, i) for i in range(len(study.epsilons))) if study else (),
        figures=tuple(Figure(figure, caption) for figure, caption in figures),
        commands=(command("evaluate", **options),) if study else (),
    )


def seen_sentence(guarantee: "Guarantee", study: "Study") -> str:
    """What was observed at the epsilon in use, and whether it is chance."""
    from idecode_core.conformal.observed import observed_rate

    seen = observed_rate(study.p_values, guarantee.epsilon)
    return f"Observed: {seen.flagged:,} of {seen.total:,} iD test inputs flagged, {seen.rate:.2%}. {guarantee.chance(seen)}"


def _row(study: "Study", i: int) -> dict[str, Value]:
    from idecode_core.conformal import FalseDetectionLaw
    from idecode_core.conformal.observed import predictive_bands

    law, observed = FalseDetectionLaw(study.k, study.epsilons[i]), study.observed[i]
    low, high = law.interval(0.9)
    (seen_low,), (seen_high,) = predictive_bands(study.k, [study.epsilons[i]], observed.total)
    return {
        "epsilon": study.epsilons[i],
        "mean_rate_by_the_law": law.mean,
        "law_5_percent": low,
        "law_95_percent": high,
        "observed_rate": observed.rate,
        "observed_flagged": observed.flagged,
        "observed_points": observed.total,
        "true_rate_low_95": observed.low,
        "true_rate_high_95": observed.high,
        "chance_low_99": float(seen_low),
        "chance_high_99": float(seen_high),
        "resampled_mean": float(study.resampled[:, i].mean()),
    }


def guarantee_notebook(
    name: str,
    folder: str,
    calibration: "Calibration",
    guarantee: "Guarantee",
    study: "Study | None",
    settings: dict[str, Value],
) -> Notebook:
    """Reads the stored scores, draws the same calibration sets and asserts the rates of the page."""
    shown: dict[str, Any] = {"interval_90": list(guarantee.law.interval(0.9))}
    more: dict[str, Any] = {}
    if study is not None:
        more = {**settings, "epsilons": list(study.epsilons), "repeats": len(study.resampled)}
        shown |= {
            "observed": [rate.rate for rate in study.observed],
            "resampled_mean": study.resampled.mean(axis=0),
        }
    return from_template(
        "guarantee",
        f"The guarantee of {name} with k = {guarantee.k:,}",
        {
            "detector": Path(folder).name,
            "calibration_sha256": calibration.sha256,
            **vars(guarantee),
            **more,
        },
        shown,
        can_flag=guarantee.can_flag,
        studied=study is not None,
        uniform=guarantee.k >= 19,
    )


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
