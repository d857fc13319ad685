"""What familiarity adds: the plain base NCM on the same points and draws, and the table that compares the two."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from small import read_scores

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError
from idecode_core.files import write_npz
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import ScoreSet, write_scores
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.quality.score_sets import image_sets, pick, score_test_sets
from idecode_core.transforms import Rotations
from paper.tables import familiarity
from research.familiarity_choice import CANDIDATES, answers


def save_tiny(folder: Path, base_ncm: str = "cross_entropy_and_familiarity") -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Equivariant(ModelConfig("compact", outputs=4, widths=(4, 4, 4)))
    scorer = ImageScorer(model, Rotations("all"), base_ncm, Preprocessing(16))
    calibration = Calibration(np.random.default_rng(0).random((30, 20)))
    save_detector(Detector(folder.name, scorer, calibration, "test images", "cifar10"), folder)


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    generator = np.random.default_rng(1)
    for name, points in (("cifar10-test", 7), ("svhn-test", 5)):
        x = generator.integers(0, 256, size=(points, 16, 16, 3), dtype=np.uint8)
        write_npz(tmp_path / "data" / f"{name}.npz", {"x": x, "y": np.zeros(points, np.int64)})
    return tmp_path / "data"


def test_plain_scores_are_those_of_the_base_ncm_without_familiarity(tmp_path: Path, data_root: Path):
    folder = tmp_path / "cifar10-rotations"
    save_tiny(folder)
    score_test_sets(folder, image_sets("cifar10", data_root, id_points=6), draws=40, without_familiarity=True)
    scorer = load_detector(folder).scorer
    plain = replace(scorer, base_ncm="cross_entropy")
    found = read_scores(folder, read_settings(folder).scorer_sha256, "cross_entropy")
    assert [score_set.name for score_set in found] == ["cifar10-test", "svhn-test"]
    for score_set in found:
        images = pick(load_images(score_set.name, data_root), 6).x  # of seven iD points, six are in the table
        expected = plain.score(images, n=40, seed=0).score_vectors
        np.testing.assert_allclose(score_set.score_vectors, expected, rtol=1e-4, atol=1e-5)


def test_a_detector_without_familiarity_has_nothing_to_leave_out(tmp_path: Path, data_root: Path):
    save_tiny(tmp_path / "tiny", "cross_entropy")
    with pytest.raises(CheckpointError, match="nothing to leave out"):
        score_test_sets(tmp_path / "tiny", image_sets("cifar10", data_root), without_familiarity=True)


def test_the_table_holds_both_aurocs_as_scikit_learn_computes_them(tmp_path: Path):
    folder = tmp_path / "cifar10-rotations"
    save_tiny(folder)
    identity = read_settings(folder).scorer_sha256
    generator = np.random.default_rng(2)
    expected = {}
    for scorer, shift in (("", 1.0), ("cross_entropy", 0.3)):
        known = generator.normal(size=(60, 100)).astype(np.float32)
        strange = generator.normal(shift, size=(40, 100)).astype(np.float32)
        write_scores(folder, ScoreSet("cifar10-test", "iD", False, known), identity, scorer)
        write_scores(folder, ScoreSet("svhn-test", "SVHN", True, strange), identity, scorer)
        labels = np.repeat([0, 1], [60, 40])
        runs = [
            roc_auc_score(labels, np.concatenate([known, strange])[:, 20 * r : 20 * r + 5].sum(axis=1))
            for r in range(5)
        ]
        expected[scorer] = f"{100 * np.mean(runs):.1f} ± {100 * np.std(runs, ddof=1):.1f}"
    body = familiarity(tmp_path).body
    without, together = (re.escape(expected[scorer]) for scorer in ("cross_entropy", ""))
    assert re.search(rf"\| SVHN \| {without} \[.+\] \| {together} \[.+\] \|", body)  # intervals behind them
    assert "gains on 1 of 1 sets" in body


def test_candidates_of_the_choice_agree_with_the_base_ncm(tmp_path: Path):
    """Without jitter, the candidate that was kept is the base NCM."""
    save_tiny(tmp_path / "tiny")
    scorer = replace(load_detector(tmp_path / "tiny").scorer, transforms=Rotations("all", jitter=0))
    images = np.random.default_rng(4).integers(0, 256, size=(6, 16, 16, 3), dtype=np.uint8)
    found = CANDIDATES["cross-entropy - familiarity"](answers(scorer, images)).mean(dim=1)
    expected = scorer.score(images, n=1, seed=0).score_vectors[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert all(candidate(answers(scorer, images)).shape == (6, 4) for candidate in CANDIDATES.values())
