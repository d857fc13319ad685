"""The simulations of 'Break it' and 'Many and streams', as a report and as a notebook that runs them again.

Each export holds the seed and the settings of the page, so the notebook draws the same random numbers.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from idecode_core.plots import teaching_rates
from idecode_core.report.content import Figure, Picture, Report, Value
from idecode_core.report.steps import Expression, Seed, Step, steps_notebook
from idecode_core.simulate import (
    BATCH_RULES,
    BatchComparison,
    Comparison,
    StreamRun,
    break_it,
    changing_stream,
    mixed_batch,
)

Arguments = Mapping[str, int | float | str]
"""What a page passed to the simulation, but for the generator."""


class Export(NamedTuple):
    """A simulation to keep."""

    report: Report
    notebook: str


def break_it_export(comparison: Comparison, arguments: Arguments, *, seed: int, epsilon: float) -> Export:
    """An intact and a broken run: rates for every epsilon."""
    runs = {"intact": comparison.intact, "broken": comparison.broken}
    top = 1.1 * max(_tallest_bar(run.p_values) for run in runs.values())
    rates = np.stack([run.false_detection_rates.mean(axis=0) for run in runs.values()])  # (2, epsilons)
    found = np.stack([run.detection_rates.mean(axis=0) for run in runs.values()])
    rows = tuple(
        {
            "epsilon": float(comparison.intact.epsilons[i]),
            "intact_false_detection_rate": float(rates[0, i]),
            "broken_false_detection_rate": float(rates[1, i]),
            "intact_detection_rate": float(found[0, i]),
            "broken_detection_rate": float(found[1, i]),
        }
        for i in range(rates.shape[1])
    )
    steps = [Step("comparison", break_it, {**arguments, "generator": Seed(seed)})]
    shown: dict[str, float] = {}
    figures = []
    for name, run in runs.items():
        steps.append(
            Step(
                "figure",
                teaching_rates.uniformity,
                {
                    "p_values": Expression(f"comparison.{name}.p_values"),
                    "epsilon": epsilon,
                    "top": round(top, 3),
                },
                text=f"## {name.capitalize()}: p-values of in-distribution points\n\nFlat at the dashed line is right.",
                show=True,
            )
        )
        shown[f"comparison.{name}.mean_false_detection_rate({epsilon!r})"] = run.mean_false_detection_rate(
            epsilon
        )
        shown[f"comparison.{name}.mean_detection_rate({epsilon!r})"] = run.mean_detection_rate(epsilon)
        figures.append(
            Figure(
                teaching_rates.uniformity(run.p_values, epsilon=epsilon, top=top),
                f"{name.capitalize()}: p-values of in-distribution points. Flat at the dashed line is right.",
            )
        )
    title = f"Break it: {comparison.switch.title}"
    report = Report(
        title,
        (
            f"At epsilon = {epsilon:g}, {comparison.broken.mean_false_detection_rate(epsilon):.1%} of in-distribution points "
            f"are flagged; {comparison.intact.mean_false_detection_rate(epsilon):.1%} when nothing is broken.",
            comparison.why,
        ),
        {**arguments, "epsilon": epsilon, "seed": seed},
        rows,
        tuple(figures),
    )
    return Export(report, steps_notebook(title, comparison.why, steps, shown))


def _tallest_bar(p_values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(np.histogram(p_values, np.linspace(0, 1, 21))[0].max() / p_values.size * 20)


def batch_export(result: BatchComparison, arguments: Arguments, *, seed: int) -> Export:
    """Three rules on the same batches: the rates that are easily confused, side by side."""
    rates = {
        "false_discovery_rate": result.false_discovery_proportions,
        "false_detection_rate": result.false_detection_rates,
        "detection_rate": result.detection_rates,
    }  # each (rules, repeats)
    rows: list[dict[str, Value | Picture]] = []
    for i, rule in enumerate(BATCH_RULES):
        rows.append({"rule": rule, **{name: float(values[i].mean()) for name, values in rates.items()}})
    steps = [
        Step("result", mixed_batch, {**arguments, "generator": Seed(seed)}),
        Step(
            "figure",
            teaching_rates.batch_ranks,
            {
                "p_values": Expression("result.p_values"),
                "is_ood": Expression("result.is_ood"),
                "flagged": Expression("result.flagged[1]"),
                "epsilon": result.epsilon,
                "q": result.q,
            },
            text="## One batch\n\nBenjamini-Hochberg flags the filled points: all up to the last one under the slanted line.",
            show=True,
        ),
        Step(
            "boxes",
            teaching_rates.rule_boxes,
            {
                "values_by_rule": {
                    rule: Expression(f"result.false_discovery_proportions[{i}]")
                    for i, rule in enumerate(BATCH_RULES)
                },
                "y_title": "false among the flagged",
                "limit": result.q,
            },
            text="## Over many batches\n\nThe mean (diamond) is the false discovery rate. Single batches vary.",
            show=True,
        ),
    ]
    shown = {
        f"result.{name}.mean(axis=1)": values.mean(axis=1).tolist()
        for name, values in _arrays(result).items()
    }
    title = "A batch of many: plain threshold, Benjamini-Hochberg, Storey"
    introduction = (
        "The false *discovery* rate is the share of iD points among the flagged; Benjamini-Hochberg keeps it to q. The "
        "false *detection* rate is the share of flagged points among the iD; p < epsilon keeps it to epsilon."
    )
    report = Report(
        title,
        (
            introduction.replace("*", ""),
            "Rates are means over many batches, each with a calibration set of its own.",
        ),
        {**arguments, "seed": seed},
        tuple(rows),
        (
            Figure(
                teaching_rates.batch_ranks(
                    result.p_values, result.is_ood, result.flagged[1], epsilon=result.epsilon, q=result.q
                ),
                "One batch: blue points are iD, orange OOD. Benjamini-Hochberg flags the filled points.",
            ),
            Figure(
                teaching_rates.rule_boxes(
                    dict(zip(BATCH_RULES, result.false_discovery_proportions, strict=True)),
                    y_title="false among the flagged",
                    limit=result.q,
                ),
                "Over many batches: the mean (diamond) is the false discovery rate.",
            ),
        ),
    )
    return Export(report, steps_notebook(title, introduction, steps, shown))


def _arrays(result: BatchComparison) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Arrays by their name on the result; those that have no such points are left out, because NaN equals nothing."""
    names = ("false_discovery_proportions", "false_detection_rates", "detection_rates")
    return {name: values for name in names if not np.isnan(values := getattr(result, name)).any()}


def stream_export(run: StreamRun, arguments: Arguments, *, seed: int, martingale: str) -> Export:
    """A stream, the chosen martingale and CUSUM: one row a point."""
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
    steps = [
        Step("run", changing_stream, {**arguments, "generator": Seed(seed)}),
        Step(
            "figure",
            teaching_rates.stream_paths,
            {"p_values": Expression("run.p_values"), "paths": paths, "change_at": run.change_at},
            show=True,
        ),
    ]
    shown: dict[str, float | list[float]] = {"run.p_values.sum()": float(run.p_values.sum())}
    for name in watchers:
        shown[f"run.watchers[{name!r}].alarms"] = [int(alarm) for alarm in run.watchers[name].alarms]
    title = "A stream that changes"
    introduction = (
        "A martingale bets against p-values being uniform. Without a change it reaches 1/alpha with probability at most "
        "alpha, ever. CUSUM forgets earlier losses; without a change its first alarm comes after mean_time points or "
        "more, on average."
    )
    settings: dict[str, Value] = {**arguments, "martingale": martingale, "seed": seed}
    report = Report(
        title, (_story(run, watchers), introduction), settings, rows, (Figure(_stream_figure(run, watchers)),)
    )
    return Export(report, steps_notebook(title, introduction, steps, shown))


def _story(run: StreamRun, watchers: tuple[str, ...]) -> str:
    parts = []
    for name in watchers:
        delay = run.delay(name)
        noticed = f"alarm {delay} points after the change" if delay else "no alarm after the change"
        parts.append(f"{name}: {run.false_alarms(name)} false alarms, {noticed}.")
    return " ".join(parts)


def _stream_figure(run: StreamRun, watchers: tuple[str, ...]) -> object:
    paths = {
        name: (run.watchers[name].log_path, run.watchers[name].log_threshold, run.watchers[name].alarms)
        for name in watchers
    }
    return teaching_rates.stream_paths(run.p_values, paths, change_at=run.change_at)
