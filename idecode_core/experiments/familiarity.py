"""`reproduce familiarity`: what the familiarity of g(x) adds to the paper's base NCM, on the same network and draws.

The plain base NCM's scores of the same test points are stored beside the detector's own, in `plain/scores/`.
"""

from pathlib import Path

import numpy as np

from idecode_core.evaluation.methods import evaluate
from idecode_core.evaluation.paper import reported
from idecode_core.evaluation.score_sets import PLAIN
from idecode_core.experiments.results import Section
from idecode_core.experiments.tables import N, paper_number, seeds
from idecode_core.folder.scores import id_and_ood, read_scores
from idecode_core.folder.stored import open_stored
from idecode_core.report.tables import fpr, interval, percent, table

DETECTOR = "cifar10-rotations"


def familiarity(root: Path | str = "checkpoints") -> Section:
    stored = open_stored(Path(root) / DETECTOR)
    identity = stored.settings.scorer_sha256
    plain_id, plain_ood = id_and_ood(read_scores(stored.folder / PLAIN, identity), f"{stored.folder}/{PLAIN}")
    by_name = {ood_set.name: ood_set for ood_set in plain_ood}
    rows, gains = [], []
    for ood_set in stored.ood_sets:
        without = evaluate(None, plain_id, by_name[ood_set.name], N)  # of F(V), the sum of n scores
        together = evaluate(None, stored.id_set, ood_set, N)
        theirs = reported(stored.settings.dataset, stored.transforms, ood_set.name, "iDECODe", N, "auroc")
        rows.append(
            [
                ood_set.label,
                f"{percent(without.auroc)} {interval(without)}",
                f"{percent(together.auroc)} {interval(together)}",
                paper_number(theirs),
                fpr(without),
                fpr(together),
            ]
        )
        gains.append((ood_set.label, 100 * (together.auroc.mean - without.auroc.mean)))
    grid = table(
        [
            f"OOD set, AUROC at n={N}",
            "cross-entropy (the paper's)",
            "with familiarity (shipped)",
            "paper, with its network",
            "FPR95, the paper's",
            "FPR95, shipped",
        ],
        rows,
    )
    better = [label for label, gain in gains if gain > 0]
    body = (
        f"{seeds(stored)}\n\nThe paper's base NCM for rotations is the cross-entropy between M's answer and the rotation. "
        "Ours takes off the log of M's mean activation on g(x): how much of what M has learned to look for is "
        "there at all. Same network, points and draws in both columns; "
        "[docs/familiarity.md](docs/familiarity.md) says how it was found and chosen.\n\n"
        f"{grid}\n\nFamiliarity gains on {len(better)} of {len(gains)} sets, "
        f"{np.mean([gain for _, gain in gains]):.1f} points in the mean. **The numbers of `cifar10-rotations` and "
        "`cifar10-merged` elsewhere on this page use it, the paper's do not.**"
    )
    return Section("familiarity", "What familiarity adds to the paper's base NCM", body)
