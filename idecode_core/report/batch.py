"""A batch of many as a report and as a notebook that judges it again, with the page's seed and settings."""

from collections.abc import Mapping

import numpy as np

from idecode_core.plots.batch import batch_ranks, rule_boxes
from idecode_core.report.content import Export, Figure, Report, Value
from idecode_core.report.steps import Expression, Seed, Step, seen, steps_notebook, take
from idecode_core.simulate import BATCH_RULES, BatchComparison, mixed_batch

TITLE = "A batch of many: plain threshold, Benjamini-Hochberg, Storey"
INTRODUCTION = (
    "The false *discovery* rate is the share of iD points among the flagged; Benjamini-Hochberg keeps it to q. The "
    "false *detection* rate is the share of flagged points among the iD; p < epsilon keeps it to epsilon."
)
RATES = {
    "false_discovery_rate": "false_discovery_proportions",
    "false_detection_rate": "false_detection_rates",
    "detection_rate": "detection_rates",
}
"""Columns of the table -> arrays of the result, each (rules, repeats)."""


def batch_export(result: BatchComparison, arguments: Mapping[str, Value], *, seed: int) -> Export:
    """Three rules on the same batches: the rates that are easily confused, side by side."""
    one = Step(
        "figure",
        batch_ranks,
        {
            "p_values": Expression("result.p_values"),
            "is_ood": Expression("result.is_ood"),
            "flagged": Expression("result.flagged[1]"),
            "epsilon": result.epsilon,
            "q": result.q,
        },
        text="## One batch\n\nBenjamini-Hochberg flags the filled points: all up to the last one under the slanted line.",
        show=True,
    )
    proportions = {
        rule: Expression(f"result.false_discovery_proportions[{i}]") for i, rule in enumerate(BATCH_RULES)
    }
    many = Step(
        "boxes",
        rule_boxes,
        {"values_by_rule": proportions, "y_title": "false among the flagged", "limit": result.q},
        text="## Over many batches\n\nThe mean (diamond) is the false discovery rate. Single batches vary.",
        show=True,
    )
    results = {"result": result}
    report = Report(
        TITLE,
        (
            INTRODUCTION.replace("*", ""),
            "Rates are means over many batches, each with a calibration set of its own.",
        ),
        {**arguments, "seed": seed},
        tuple(
            {"rule": rule, **{name: float(getattr(result, array)[i].mean()) for name, array in RATES.items()}}
            for i, rule in enumerate(BATCH_RULES)
        ),
        (
            Figure(
                take(one, results),
                "One batch: blue points are iD, orange OOD. Benjamini-Hochberg flags the filled points.",
            ),
            Figure(take(many, results), "Over many batches: the mean (diamond) is the false discovery rate."),
        ),
    )
    # A rate of points that are not there is NaN, which equals nothing.
    shown = [
        f"result.{array}.mean(axis=1)"
        for array in RATES.values()
        if not np.isnan(getattr(result, array)).any()
    ]
    steps = [Step("result", mixed_batch, {**arguments, "generator": Seed(seed)}), one, many]
    return Export(report, steps_notebook(TITLE, INTRODUCTION, steps, seen(shown, results)))
