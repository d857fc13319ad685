"""A stream that changes as a report and as a notebook that watches it again, with the page's seed and settings."""

from collections.abc import Mapping

import numpy as np

from idecode_core.plots.stream import stream_paths
from idecode_core.report.content import Export, Figure, Report, Value
from idecode_core.report.steps import Expression, Seed, Step, seen, steps_notebook, take
from idecode_core.simulate import StreamRun, changing_stream

TITLE = "A stream that changes"
INTRODUCTION = (
    "A martingale bets against p-values being uniform. Without a change it reaches 1/alpha with probability at most "
    "alpha, ever. CUSUM forgets earlier losses; without a change its first alarm comes after mean_time points or "
    "more, on average."
)


def stream_export(run: StreamRun, arguments: Mapping[str, Value], *, seed: int, martingale: str) -> Export:
    """A stream, the chosen martingale and CUSUM: one row per point."""
    watchers = (martingale, "CUSUM")
    rows = tuple(
        {
            "point": t + 1,
            "score": float(run.scores[t]),
            "p_value": float(run.p_values[t]),
            **{f"log10 {name}": float(run.watchers[name].log_path[t] / np.log(10)) for name in watchers},
            **{f"alarm of {name}": bool(t in run.watchers[name].alarms) for name in watchers},
        }
        for t in range(run.p_values.size)
    )
    paths = {
        name: tuple(
            Expression(f"run.watchers[{name!r}].{part}") for part in ("log_path", "log_threshold", "alarms")
        )
        for name in watchers
    }
    figure = Step(
        "figure",
        stream_paths,
        {"p_values": Expression("run.p_values"), "paths": paths, "change_at": run.change_at},
        show=True,
    )
    results = {"run": run}
    report = Report(
        TITLE,
        (" ".join(_story(run, name) for name in watchers), INTRODUCTION),
        {**arguments, "martingale": martingale, "seed": seed},
        rows,
        (Figure(take(figure, results)),),
    )
    shown = ["run.p_values.sum()", *(f"run.watchers[{name!r}].alarms" for name in watchers)]
    steps = [Step("run", changing_stream, {**arguments, "generator": Seed(seed)}), figure]
    return Export(report, steps_notebook(TITLE, INTRODUCTION, steps, seen(shown, results)))


def _story(run: StreamRun, name: str) -> str:
    delay = run.delay(name)
    noticed = f"alarm {delay} points after the change" if delay else "no alarm after the change"
    return f"{name}: {run.false_alarms(name)} false alarms, {noticed}."
