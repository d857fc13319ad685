"""What the Guarantee page shows, as a report and as a notebook that computes it again."""

from typing import TYPE_CHECKING, Any

from idecode_core.report.content import Figure, Report, Value
from idecode_core.report.notebook import HOME, Cell, Code, Text, to_notebook
from idecode_core.report.score_cells import STORED_SETS, calibration_cell

if TYPE_CHECKING:
    from idecode_core.calibration import Calibration
    from idecode_core.guarantee import Study
    from idecode_core.promise import Promise


def guarantee_report(
    name: str,
    promise: "Promise",
    study: "Study | None",
    settings: dict[str, Value],
    figure: Any,
    caption: str,
) -> Report:
    """The statement, and one row an epsilon: the bound, the exact law, what was observed."""
    from idecode_core.conformal import FalseDetectionLaw
    from idecode_core.promise import ASSUMPTIONS, NOT_PROMISED

    rows: list[dict[str, Value]] = []
    for i, epsilon in enumerate(study.epsilons if study else ()):
        law = FalseDetectionLaw(promise.k, epsilon)
        low, high = law.interval(0.9)
        assert study is not None
        observed = study.observed[i]
        rows.append(
            {
                "epsilon": epsilon,
                "mean_rate_by_the_law": law.mean,
                "law_5_percent": low,
                "law_95_percent": high,
                "observed_rate": observed.rate,
                "observed_flagged": observed.flagged,
                "observed_points": observed.total,
                "observed_low": observed.low,
                "observed_high": observed.high,
                "resampled_mean": float(study.resampled[:, i].mean()),
            }
        )
    return Report(
        title=f"The guarantee of {name} with k = {promise.k:,}",
        sentences=(
            promise.statement(),
            promise.one_set(),
            promise.correction(),
            "It assumes: " + " ".join(ASSUMPTIONS),
            "It does not promise: " + " ".join(NOT_PROMISED),
        ),
        settings={
            "detector": name,
            "k": promise.k,
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            **settings,
        },
        rows=tuple(rows),
        figures=(Figure(figure, caption),),
    )


def guarantee_notebook(
    name: str,
    folder: str,
    calibration: "Calibration",
    promise: "Promise",
    study: "Study | None",
    settings: dict[str, Value],
) -> str:
    """Loads the stored scores, draws the same calibration sets and asserts the rates of the page."""
    cells: list[Cell] = [
        Text(
            f"# The guarantee of {name} with k = {promise.k:,}\n\nThis notebook computes again what the Guarantee page showed. "
            "Run it from top to bottom. It stops at the first difference."
        ),
        Code(HOME),
        Code(
            f"""\
from idecode_core.promise import Promise

promise = Promise(k={promise.k}, epsilon={promise.epsilon!r}, delta={promise.delta!r})
print(promise.statement(), promise.one_set(), promise.correction(), sep="\\n\\n")
assert promise.law.interval(0.9) == {promise.law.interval(0.9)!r}"""
        ),
        Code(calibration_cell(folder, calibration)),
    ]
    if study is not None:
        cells += [
            Code(STORED_SETS),
            Text("## Calibration sets of size k, and what they flag among the iD test points"),
            Code(
                f"""\
import numpy as np

from idecode_core.calibration import aggregate_scores
from idecode_core.evaluation import runs
from idecode_core.guarantee import study
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
false_detection_rates(found.k, found.epsilons, resampled=found.resampled, observed=found.observed, epsilon=promise.epsilon)"""
            ),
            Text("## As on the page?"),
            Code(
                f"""\
np.testing.assert_allclose([rate.rate for rate in found.observed], {[rate.rate for rate in study.observed]!r})
np.testing.assert_allclose(found.resampled.mean(axis=0), {study.resampled.mean(axis=0).tolist()!r})
print("As on the page.")"""
            ),
        ]
    return to_notebook(cells)
