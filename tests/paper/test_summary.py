"""The results on one page, and the paper's base NCM beside ours: both follow from the stored scores."""

import re
from pathlib import Path

import numpy as np
import pytest

from idecode_core.folder.stored import open_stored
from idecode_core.quality.methods import runs
from idecode_core.quality.metrics import auroc
from paper.experiments import summary
from paper.results import INTRODUCTION
from paper.tables import with_the_papers_ncm

ROOT = Path(__file__).parents[2]
CHECKPOINTS = ROOT / "checkpoints"


def test_the_page_of_results_is_what_the_stored_scores_say() -> None:
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == summary(CHECKPOINTS), (
        "docs/results.md is not what the scores say: run `python -m idecode_core reproduce all`"
    )


def test_the_papers_base_ncm_is_the_error_itself() -> None:
    """By hand: AUROC of the mean over runs of sums of exp(V), which is the squared error that V is the logarithm of."""
    stored = open_stored(CHECKPOINTS / "cifar10-projective")
    (row,) = [line for line in with_the_papers_ncm(stored).splitlines() if line.startswith("| SVHN")]
    svhn = next(one for one in stored.ood_sets if one.label == "SVHN")
    inside, outside = (np.exp(one.score_vectors.astype(float)) for one in (stored.id_set, svhn))
    by_hand = np.mean(
        [auroc(inside[:, s : s + 5].sum(1), outside[:, s : s + 5].sum(1)) for s in range(0, 25, 5)]
    )
    assert float(re.findall(r"[\d.]+(?= ±)", row)[2]) == pytest.approx(100 * by_hand, abs=0.051)


def test_the_words_on_runs_say_which_draws_are_taken() -> None:
    def taken(draws: int, n: int) -> list[str]:
        return [f"{run[0, 0]:.0f}-{run[0, -1]:.0f}" for run in runs(np.arange(1, draws + 1)[None], n)]

    five, twenty, alone = taken(40, 5), taken(40, 20), taken(25, 20)
    assert (len(five), len(twenty), len(alone)) == (5, 2, 1)
    assert f"of 40 draws, n=5 takes {', '.join(five[:2])} and so on, five runs" in INTRODUCTION
    assert f"n=20 takes {' and '.join(twenty)}; of 25, n=20 takes {alone[0]} alone" in INTRODUCTION
    (words,) = {
        line
        for line in (ROOT / "RESULTS.md").read_text("utf-8").splitlines()
        if line.startswith("`cifar10-rotations`: k")
    }
    assert (
        words
        == "`cifar10-rotations`: k = 5,000; 2,000 iD test points; 40 draws with seed 0. Training: 1.6 h, seed 0."
    )
