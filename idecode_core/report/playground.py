"""The playground on a line as a report and as a notebook: any score has a p-value that can be trusted."""

import numpy as np

from idecode_core.conformal import FloatArray, p_values
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.plots.playground import playground
from idecode_core.plots.ranks import staircase
from idecode_core.report.content import Export, Figure, Report
from idecode_core.report.notebook import Code
from idecode_core.report.steps import Expression, Seed, Step, source, steps_notebook
from idecode_core.simulate.playground import draw_points, strangeness
from idecode_core.verdict import comparison


def playground_export(
    shape: str | None,
    proper_training_set: FloatArray,
    calibration_set: FloatArray,
    *,
    ncm: str,
    x: float,
    epsilon: float,
    seed: int,
) -> Export:
    """A newcomer at x on a line; points drawn by the seed, or a visitor's own (`shape` None), which go in as numbers."""
    scores = strangeness(ncm, proper_training_set, calibration_set)
    calibration = Calibration(scores[:, None])
    (verdict,) = judge(calibration, strangeness(ncm, proper_training_set, [x])[:, None], epsilon=epsilon)
    k = verdict.k
    if shape is None:
        drawn: list[Step | Code] = [
            Code(f"calibration_set = {source(calibration_set)}"),
            Code(f"proper_training_set = {source(proper_training_set)}"),
        ]
    else:
        arguments = {"shape": shape, "count": k, "generator": Expression("generator")}
        drawn = [
            Code(f"generator = {source(Seed(seed))}"),
            Step("proper_training_set", draw_points, arguments),
            Step("calibration_set", draw_points, arguments),
        ]
    measure = {"ncm": ncm, "proper_training_set": Expression("proper_training_set")}
    stairs = {
        "scores": Expression("scores"),
        "test_score": Expression("float(score[0])"),
        "x_title": ncm.lower(),
        "epsilon": epsilon,
    }
    steps = [
        *drawn,
        Step("scores", strangeness, {**measure, "points": Expression("calibration_set")}),
        Step("score", strangeness, {**measure, "points": [x]}),
        Step("p", p_values, {"calibration_scores": Expression("scores"), "test_scores": Expression("score")}),
        Step("figure", staircase, stairs, show=True),
    ]
    sentence = (
        f"{verdict.answer.capitalize()}: {verdict.rank:,} of {k:,} points are at least as strange, "
        f"p = {verdict.rank + 1:,}/{k + 1:,} = {comparison(verdict.p_value, epsilon).removeprefix('p = ')}."
    )
    line = np.linspace(
        min(0.0, float(calibration_set.min())), max(10.0, float(calibration_set.max())), 1001
    ).round(4)
    p_line = judge(calibration, strangeness(ncm, proper_training_set, line)[:, None]).p_values
    report = Report(
        f"A newcomer at {x:g}, among {k} points on a line",
        (sentence, "Any score keeps the promise on false alarms. A good one also finds strangers."),
        {"points": shape or "own numbers", "ncm": ncm, "x": x, "epsilon": epsilon, "seed": seed},
        tuple(
            {"calibration_point": float(point), "strangeness": float(value)}
            for point, value in zip(calibration_set, scores, strict=True)
        ),
        (
            Figure(
                playground(calibration_set, x, line, p_line, epsilon=epsilon),
                "The p-value that a newcomer would have at each place; in the orange zones it is flagged.",
            ),
        ),
    )
    return Export(report, steps_notebook(report.title, sentence, steps, {"p": [verdict.p_value]}))
