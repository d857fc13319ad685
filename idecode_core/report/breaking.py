"""A run of 'Break it' as a report and as a notebook that runs it again, with the page's seed and settings."""

from collections.abc import Mapping

import numpy as np

from idecode_core.plots.breaking import density, uniformity
from idecode_core.report.content import Export, Figure, Report, Value
from idecode_core.report.steps import Expression, Seed, Step, seen, steps_notebook, take
from idecode_core.simulate import Comparison, break_it


def break_it_export(
    comparison: Comparison, arguments: Mapping[str, Value], *, seed: int, epsilon: float
) -> Export:
    """An intact and a broken run: rates for every epsilon. `arguments` are what the page gave `break_it`."""
    runs = {"intact": comparison.intact, "broken": comparison.broken}
    rates = {
        f"{name}_{kind}": np.mean(getattr(run, f"{kind}s"), axis=0).tolist()
        for kind in ("false_detection_rate", "detection_rate")
        for name, run in runs.items()
    }  # each (epsilons,)
    top = round(1.1 * max(float(density(run.p_values).max()) for run in runs.values()), 3)
    steps, figures = [Step("comparison", break_it, {**arguments, "generator": Seed(seed)})], []
    for name in runs:
        about = f"{name.capitalize()}: p-values of in-distribution points"
        p_values = Expression(f"comparison.{name}.p_values")
        bars = Step(
            "figure",
            uniformity,
            {"p_values": p_values, "epsilon": epsilon, "top": top},
            text=f"## {about}\n\n{comparison.switch.right}",
            show=True,
        )
        steps.append(bars)
        figures.append(Figure(take(bars, {"comparison": comparison}), f"{about}. {comparison.switch.right}"))
    report = Report(
        f"Break it: {comparison.switch.title}",
        (
            f"At epsilon = {epsilon:g}, {comparison.broken.mean_false_detection_rate(epsilon):.1%} of in-distribution points "
            f"are flagged; {comparison.intact.mean_false_detection_rate(epsilon):.1%} when nothing is broken.",
            comparison.why,
        ),
        {**arguments, "epsilon": epsilon, "seed": seed},
        tuple(
            {"epsilon": float(at), **{name: values[i] for name, values in rates.items()}}
            for i, at in enumerate(comparison.intact.epsilons)
        ),
        tuple(figures),
    )
    shown = seen(
        [
            f"comparison.{name}.mean_{kind}({epsilon!r})"
            for name in runs
            for kind in ("false_detection_rate", "detection_rate")
        ],
        {"comparison": comparison},
    )
    return Export(report, steps_notebook(report.title, comparison.why, steps, shown))
