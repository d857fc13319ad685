"""Finishing a run calibrates on exactly the stored indices."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_loop import CLASSIFIER, tiny_images, tiny_task

from idecode_core.errors import DataError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import (
    read_split,
    read_training,
    split_indices,
)
from idecode_core.report.card import learning_curve
from idecode_core.training.finish import finish
from idecode_core.training.loop import train
from idecode_core.training.parts import calibration_indices


def test_indices_are_stored_and_finishing_calibrates_on_exactly_those(tmp_path: Path) -> None:
    images, task = tiny_images(), tiny_task(CLASSIFIER)
    train(task, tmp_path / "run", epochs=1)
    split = read_split(tmp_path / "run")
    expected = split_indices(64, seed=0)
    np.testing.assert_array_equal(split.calibration, expected.calibration)
    seen: list[int] = []
    curve = learning_curve(tmp_path / "run", "tiny")
    finish(task, tmp_path / "run", tmp_path / "detector", n_max=3, progress=seen.append, beside=curve)
    detector = load_detector(tmp_path / "detector")
    assert detector.calibration.score_vectors.shape == (6, 3)
    again = detector.score_vectors(images.x[split.calibration], n=3)
    np.testing.assert_allclose(detector.calibration.score_vectors, again, rtol=1e-4, atol=1e-7)
    assert seen[-1] == 6
    record = read_training(tmp_path / "detector")
    assert record is not None
    assert (record.epochs, record.calibration_points) == (1, 6)
    answers = load_detector(tmp_path / "detector", "cpu").scorer.logits(images.x[split.calibration]).argmax(1)
    right = sum(int(answer) == images.y[i] for answer, i in zip(answers, split.calibration, strict=True))
    assert record.calibration_accuracy == round(right / 6, 4)
    assert record.test_accuracy is None  # there is no test set of these images
    np.testing.assert_array_equal(read_split(tmp_path / "detector").proper, expected.proper)
    log = (tmp_path / "detector" / "log.jsonl").read_text()
    assert json.loads(log)["epoch"] == 0
    assert "<svg" in (tmp_path / "detector" / "learning-curve.svg").read_text()


def test_finishing_with_other_data_than_that_of_the_run_is_refused(tmp_path: Path) -> None:
    train(tiny_task(CLASSIFIER), tmp_path, epochs=1)
    with pytest.raises(DataError, match="expected 64 points in its split, got 60"):
        finish(tiny_task(CLASSIFIER, tiny_images(60)), tmp_path, tmp_path / "out")


def test_calibration_points_are_a_random_part_when_there_are_too_many() -> None:
    split = split_indices(60_000, seed=0)
    chosen = calibration_indices(split)
    assert len(chosen) == 5000
    assert set(chosen) <= set(split.calibration)
    assert not np.array_equal(chosen, split.calibration[:5000])
