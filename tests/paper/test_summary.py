"""The results on one page, and the paper's base NCM beside ours: both follow from the stored scores."""

import re
from pathlib import Path

import numpy as np
import pytest

from idecode_core.folder.stored import open_stored
from idecode_core.quality.metrics import auroc
from paper.summary import summary
from paper.tables import stored_runs, with_the_papers_ncm

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
    words = stored_runs(open_stored(CHECKPOINTS / "cifar10-projective"))
    assert (
        words
        == "25 draws of each point are stored: n=5 has 5 runs, draws 1-5, 6-10, ...; n=20 has 1 run, draws 1-20"
    )
