"""`reproduce familiarity`: what the familiarity of g(x) adds to the paper's base NCM, on the same network and draws.

The plain base NCM's scores of the same test points are stored beside the detector's own, in `plain/scores/`.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from idecode_core.checkpoint import load_detector, read_config
from idecode_core.data import load_images
from idecode_core.errors import CheckpointError
from idecode_core.evaluation import Metric, ScoreSet, id_and_ood, read_scores, runs, write_scores
from idecode_core.experiments.results import Section, percent, table
from idecode_core.experiments.scores import pick
from idecode_core.experiments.stored import open_stored
from idecode_core.experiments.tables import N, paper_number, seeds
from idecode_core.metrics import auroc
from idecode_core.ncm import BASE_NCMS
from idecode_core.one_pass import score_in_one_pass
from idecode_core.paper import reported
from idecode_core.scoring import ImageScorer

DETECTOR = "cifar10-rotations"
SUFFIX = "_and_familiarity"
PLAIN = "plain"


def score_without_familiarity(folder: Path | str, *, data_root: Path | str | None = None) -> None:
    """Score the stored test sets with the detector's base NCM less familiarity, same points and draws."""
    folder = Path(folder)
    scorer = load_detector(folder).scorer
    if not isinstance(scorer, ImageScorer) or not BASE_NCMS[scorer.base_ncm].familiarity:
        raise CheckpointError(f"{folder} does not use familiarity: there is nothing to leave out.")
    plain = replace(scorer, base_ncm=scorer.base_ncm.removesuffix(SUFFIX))
    identity = str(read_config(folder)["scorer_sha256"])
    for own in read_scores(folder, identity):
        images = pick(load_images(own.name, data_root), len(own))
        vectors = score_in_one_pass(plain, images.x, [plain.base_ncm], n=own.score_vectors.shape[1], seed=0)
        found = vectors[plain.base_ncm].astype(np.float32)
        write_scores(folder / PLAIN, replace(own, score_vectors=found), identity)


def separation(id_set: ScoreSet, ood_set: ScoreSet, n: int) -> Metric:
    """AUROC of F(V), the sum of n scores, over the runs."""
    pairs = zip(runs(id_set.score_vectors, n), runs(ood_set.score_vectors, n), strict=True)
    return Metric.of([auroc(known.sum(axis=1), strange.sum(axis=1)) for known, strange in pairs])


def familiarity(root: Path | str = "checkpoints") -> Section:
    stored = open_stored(root, DETECTOR)
    identity = str(stored.config["scorer_sha256"])
    plain_id, plain_ood = id_and_ood(read_scores(stored.folder / PLAIN, identity), f"{stored.folder}/{PLAIN}")
    by_name = {ood_set.name: ood_set for ood_set in plain_ood}
    rows, gains = [], []
    for ood_set in stored.ood_sets:
        without = separation(plain_id, by_name[ood_set.name], N)
        together = separation(stored.id_set, ood_set, N)
        theirs = reported(stored.dataset, stored.transforms, ood_set.name, "iDECODe", N, "auroc")
        rows.append([ood_set.label, percent(without), percent(together), paper_number(theirs)])
        gains.append((ood_set.label, 100 * (together.mean - without.mean)))
    grid = table(
        [
            f"OOD set, AUROC at n={N}",
            "cross-entropy (the paper's)",
            "with familiarity (shipped)",
            "paper, with its network",
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
