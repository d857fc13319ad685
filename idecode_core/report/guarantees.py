"""What the Guarantee page shows, as a report and as a notebook that computes it again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from idecode_core.report.content import Figure, Report, Value
from idecode_core.report.notebook import Cell, Code, Text, opening, to_notebook
from idecode_core.report.sources import calibration_cell, stored_cell
from idecode_core.report.steps import as_on_the_page

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.guarantees.observed import Study
    from idecode_core.guarantees.statement import Guarantee


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
    from idecode_core.guarantees.statement import ASSUMPTIONS, NOT_GUARANTEED

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
    )


def seen_sentence(guarantee: "Guarantee", study: "Study") -> str:
    """What was observed at the epsilon in use, and whether it is chance."""
    from idecode_core.guarantees.observed import observed_rate

    seen = observed_rate(study.p_values, guarantee.epsilon)
    return f"Observed: {seen.flagged:,} of {seen.total:,} iD test inputs flagged, {seen.rate:.2%}. {guarantee.chance(seen)}"


def _row(study: "Study", i: int) -> dict[str, Value]:
    from idecode_core.conformal import FalseDetectionLaw
    from idecode_core.guarantees.observed import predictive_bands

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
) -> str:
    """Reads the stored scores, draws the same calibration sets and asserts the rates of the page."""
    cells: list[Cell] = [
        *opening(
            f"The guarantee of {name} with k = {guarantee.k:,}",
            "This notebook computes again what the Guarantee page showed.",
        ),
        Code(
            f"""\
from idecode_core.guarantees.statement import Guarantee

guarantee = {guarantee!r}
print(guarantee.statement(), guarantee.one_set(), guarantee.correction(), sep="\\n\\n")
assert guarantee.law.interval(0.9) == {guarantee.law.interval(0.9)!r}"""
        ),
    ]
    if study is None:
        return to_notebook([*cells, Code(calibration_cell(folder, calibration))])
    return to_notebook(
        [
            *cells,
            Code(stored_cell(folder, calibration)),
            Text("## Calibration sets of size k, and what they flag among the iD test points"),
            Code(
                f"""\
import numpy as np

from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.evaluation.methods import runs
from idecode_core.guarantees.observed import observed_rate, study
from idecode_core.plots.guarantee import false_detection_rates

n, aggregate = {settings["n"]!r}, {settings["aggregate"]!r}
found = study(
    calibration.scores(n, aggregate),
    aggregate_scores(runs(id_set.score_vectors, n)[0], aggregate),
    k={study.k},
    epsilons={list(study.epsilons)!r},
    repeats={len(study.resampled)},
    smoothed={settings["smoothed"]!r},
    generator=np.random.default_rng({settings["seed"]!r}),
)
here = observed_rate(found.p_values, guarantee.epsilon)
print(f"{{here.flagged:,}} of {{here.total:,}} iD test inputs flagged, {{here.rate:.2%}}.", guarantee.chance(here))
false_detection_rates(
    found.k, found.epsilons, resampled=found.resampled, observed=found.observed, epsilon=guarantee.epsilon, here=here
)"""
            ),
            *as_on_the_page(
                {
                    "[rate.rate for rate in found.observed]": [rate.rate for rate in study.observed],
                    "found.resampled.mean(axis=0)": study.resampled.mean(axis=0),
                },
                rtol=1e-7,
            ),
        ]
    )
