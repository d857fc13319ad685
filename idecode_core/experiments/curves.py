"""AUROC and TNR as n = |V(x)| grows from 1 to 20 (Fig. 2, App. C.1.2)."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from idecode_core.evaluation.methods import Evaluation, evaluate_sets
from idecode_core.evaluation.paper import reported
from idecode_core.experiments.results import Section
from idecode_core.experiments.tables import seeds
from idecode_core.folder.stored import open_all
from idecode_core.plots.style import CALIBRATION, ID, OOD, OTHERS, THRESHOLD
from idecode_core.plots.svg import Line, chart
from idecode_core.report.tables import beside_the_paper, fpr, interval, percent, table

NS = tuple(range(1, 21))
SHOWN = (1, 2, 5, 10, 20)
COLOURS = (OOD, ID, THRESHOLD, *OTHERS, CALIBRATION)
TITLES = {"auroc": "AUROC", "tnr": "TNR at 90 % TPR"}
Which = Literal["auroc", "tnr"]
SURE: dict[Which, tuple[str, Callable[[Evaluation], str]]] = {
    "auroc": ("95 % interval", interval),
    "tnr": ("FPR95", fpr),
}
"""What stands beside the metric, and how it is written."""


def versus_n(root: Path | str, which: Which) -> Section:
    parts, figures = [], {}
    for stored in open_all(root):
        by_n = [evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, n) for n in NS]
        by_set = [
            (ood_set, [one.auroc if which == "auroc" else one.tnr for one in found], found[-1])
            for ood_set, found in zip(stored.ood_sets, zip(*by_n, strict=True), strict=True)
        ]
        lines = [
            Line(
                ood_set.label,
                [float(n) for n in NS],
                [100 * metric.mean for metric in metrics],
                COLOURS[i % len(COLOURS)],
                low=[100 * (metric.mean - metric.spread) for metric in metrics],
                high=[100 * (metric.mean + metric.spread) for metric in metrics],
            )
            for i, (ood_set, metrics, _) in enumerate(by_set)
        ]
        figures[f"{which}-vs-n-{stored.name}.svg"] = chart(
            lines, title=stored.name, x_title="n, the number of draws", y_title=TITLES[which], width=720
        )
        words, said = SURE[which]
        rows = [
            [ood_set.label, *(percent(metrics[n - 1]) for n in SHOWN), said(last)]
            for ood_set, metrics, last in by_set
        ]
        pairs = []
        for ood_set, metrics, _ in by_set:
            theirs = reported(stored.settings.dataset, stored.transforms, ood_set.name, "iDECODe", 20, which)
            if theirs:
                pairs.append((ood_set.label, 100 * metrics[-1].mean, theirs.mean))
        rising = sum(metrics[-1].mean > metrics[0].mean for _, metrics, _ in by_set)
        sentence = f"n=20 is above n=1 on {rising} of {len(by_set)} sets."
        parts.append(
            f"### {stored.name}\n\n{seeds(stored)}\n\n"
            f"{table(['OOD set', *(f'n={n}' for n in SHOWN), f'{words}, n={NS[-1]}'], rows)}\n\n"
            f"{sentence} {beside_the_paper(pairs, f'{TITLES[which]} at n=20')}"
        )
    return Section(f"{which}-vs-n", f"{TITLES[which]} as n grows", "\n\n".join(parts), figures)
