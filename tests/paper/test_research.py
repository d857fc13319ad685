"""How choices were made: the tables that members, weights and development data were chosen by."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from small import random_images, small_scorer

from idecode_core.detector import Detector
from idecode_core.folder.detector import save_detector
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet
from research import merge_choice
from research.development import house_numbers
from research.merge_choice import try_weights, weight_grid


def test_the_grid_holds_each_choice_of_weights_once_up_to_a_factor() -> None:
    grid = weight_grid(2)
    ratios = {(a / max(a, b), b / max(a, b)) for a, b in grid}
    assert len(ratios) == len(grid)
    assert {(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 1.0), (0.25, 1.0)} <= ratios


def test_the_choice_prefers_the_member_that_sees_the_difference() -> None:
    generator = np.random.default_rng(0)

    def member(shift: float) -> dict[str, np.ndarray]:
        return {"validation": generator.normal(size=(200, 10)), "far": generator.normal(shift, size=(80, 10))}

    best, *_, worst = try_weights([member(1.5), member(0.0)], weight_grid(2))
    assert best.weights[0] > best.weights[1]
    assert worst.weights == (0.0, 2.0)
    assert best.mean > 0.9
    assert worst.mean == pytest.approx(0.5, abs=0.15)


def test_house_numbers_are_colour_pictures_of_the_model_size() -> None:
    digits = ImageSet("digits", np.full((3, 28, 28, 3), 255, np.uint8), np.arange(3))
    drawn = house_numbers(digits, generator=np.random.default_rng(0))
    assert drawn.x.shape == (3, 32, 32, 3)
    assert drawn.x.std() > 5


def test_the_table_of_weights_holds_each_member_alone_and_scores_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = ImageSet("known", random_images(20, seed=1), np.zeros(20, np.int64))
    strange = ImageSet("strange", random_images(12, seed=2) // 3, np.zeros(12, np.int64))
    scorers = {"first": small_scorer(seed=1), "second": small_scorer(seed=2)}
    for name, scorer in scorers.items():
        save_detector(Detector.calibrate(name, scorer, random_images(5), n_max=2), tmp_path / name)
    monkeypatch.chdir(tmp_path)  # scores are kept in runs/
    monkeypatch.setattr(merge_choice, "member_parts", lambda *_: (known, None, None))
    monkeypatch.setattr(merge_choice, "development_sets", lambda _: {"strange": strange})
    merge_choice.main(list(scorers), None, 2)
    printed = capsys.readouterr().out
    for weights, scorer in zip(("2 | 0", "0 | 2"), scorers.values(), strict=True):
        inside, outside = (scorer.score(images.x, n=10, seed=0).score_vectors for images in (known, strange))
        reference, judged = inside[:10], inside[10:]
        points = np.concatenate([judged, outside])
        ranks = (1 + (reference.ravel() >= points[..., None]).sum(axis=-1)) / (1 + reference.size)
        sums = -np.log(ranks).reshape(len(points), 2, 5).sum(axis=2)  # two runs of n = 5
        labels = np.repeat([0, 1], [len(judged), len(outside)])
        auroc = 100 * np.mean([roc_auc_score(labels, sums[:, run]) for run in range(2)])
        assert f"| {weights} | {auroc:.1f} | {auroc:.2f} |" in printed
    monkeypatch.setattr(ImageScorer, "score", lambda *_, **__: pytest.fail("scored again"))
    merge_choice.main(list(scorers), None, 2)
    assert capsys.readouterr().out == printed
