"""AUROC and TNR as n = |V(x)| grows from 1 to 20 (Fig. 2, App. C.1.2)."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from idecode_core.evaluation.methods import Metric, evaluate_sets
from idecode_core.evaluation.paper import reported
from idecode_core.evaluation.precision import Precision, precisions
from idecode_core.experiments.results import Section
from idecode_core.experiments.tables import seeds
from idecode_core.folder.stored import Stored, open_all
from idecode_core.plots.style import CALIBRATION, ID, OOD, OTHERS, THRESHOLD
from idecode_core.plots.svg import Line, chart
from idecode_core.report.tables import beside_the_paper, fpr, interval, percent, table

NS = tuple(range(1, 21))
SHOWN = (1, 2, 5, 10, 20)
COLOURS = (OOD, ID, THRESHOLD, *OTHERS, CALIBRATION)
TITLES = {"auroc": "AUROC", "tnr": "TNR at 90 % TPR"}
Which = Literal["auroc", "tnr"]
SURE: dict[Which, tuple[str, Callable[[Precision], str]]] = {
    "auroc": ("95 % interval", interval),
    "tnr": ("FPR95", fpr),
}
"""What stands beside the metric, and how it is written."""


def growth_by_set(stored: Stored, which: Which) -> dict[str, list[Metric]]:
    """For each OOD set, the metric at n = 1, ..., 20."""
    found: dict[str, list[Metric]] = {ood_set.label: [] for ood_set in stored.ood_sets}
    for n in NS:
        evaluations = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, n)
        for ood_set, evaluation in zip(stored.ood_sets, evaluations, strict=True):
            found[ood_set.label].append(evaluation.auroc if which == "auroc" else evaluation.tnr)
    return found


def versus_n(root: Path | str, which: Which) -> Section:
    parts, figures = [], {}
    for stored in open_all(root):
        found = growth_by_set(stored, which)
        lines = [
            Line(
                label,
                [float(n) for n in NS],
                [100 * metric.mean for metric in metrics],
                COLOURS[i % len(COLOURS)],
                low=[100 * (metric.mean - metric.spread) for metric in metrics],
                high=[100 * (metric.mean + metric.spread) for metric in metrics],
            )
            for i, (label, metrics) in enumerate(found.items())
        ]
        figures[f"{which}-vs-n-{stored.name}.svg"] = chart(
            lines, title=stored.name, x_title="n, the number of draws", y_title=TITLES[which], width=720
        )
        sure = precisions(stored.calibration, stored.id_set, stored.ood_sets, NS[-1])
        words, said = SURE[which]
        rows = [
            [label, *(percent(metrics[n - 1]) for n in SHOWN), said(precise)]
            for (label, metrics), precise in zip(found.items(), sure, strict=True)
        ]
        pairs = []
        for ood_set in stored.ood_sets:
            theirs = reported(stored.settings.dataset, stored.transforms, ood_set.name, "iDECODe", 20, which)
            if theirs:
                pairs.append((ood_set.label, 100 * found[ood_set.label][-1].mean, theirs.mean))
        rising = [label for label, metrics in found.items() if metrics[-1].mean > metrics[0].mean]
        sentence = f"n=20 is above n=1 on {len(rising)} of {len(found)} sets."
        parts.append(
            f"### {stored.name}\n\n{seeds(stored)}\n\n"
            f"{table(['OOD set', *(f'n={n}' for n in SHOWN), f'{words}, n={NS[-1]}'], rows)}\n\n"
            f"{sentence} {beside_the_paper(pairs, f'{TITLES[which]} at n=20')}"
        )
    return Section(f"{which}-vs-n", f"{TITLES[which]} as n grows", "\n\n".join(parts), figures)


def auroc_vs_n(root: Path | str = "checkpoints") -> Section:
    return versus_n(root, "auroc")


def tnr_vs_n(root: Path | str = "checkpoints") -> Section:
    return versus_n(root, "tnr")
