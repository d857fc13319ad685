"""Splits: a random partition of the paper's proportions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idecode_core.errors import CheckpointError
from idecode_core.folder.record import (
    read_training,
    split_indices,
)
from idecode_core.report.card import describe_training


@given(st.integers(20, 3000), st.integers(0, 2**31))
def test_a_split_is_a_random_partition_of_the_papers_proportions(size, seed):
    split = split_indices(size, seed=seed)
    together = np.concatenate([split.proper, split.validation, split.calibration])
    assert sorted(together.tolist()) == list(range(size))
    assert len(split.calibration) == round(size / 10)
    assert abs(len(split.validation) - 0.05 * 0.9 * size) <= 1
    again = split_indices(size, seed=seed)
    assert np.array_equal(again.calibration, split.calibration)


def test_training_records_of_earlier_versions_still_load(tmp_path: Path) -> None:
    """As version 0.1 wrote them: neither a machine nor accuracies on other sets than validation and test."""
    text = """{"recipe": "tiny", "dataset": "tiny", "task": "label", "epochs": 14, "best_epoch": 13, "hours": 0.8,
        "validation_loss": 0.3, "validation_accuracy": 0.9, "test_accuracy": null, "proper_training_points": 80,
        "validation_points": 10, "calibration_points": 10, "seed": 0,
        "settings": {"model": {"backbone": "compact"}, "label_smoothing": 0.0}}"""
    (tmp_path / "training.json").write_text(text)
    record = read_training(tmp_path)
    assert record is not None
    assert (record.best_epoch, record.calibration_accuracy, record.test_points) == (13, None, 0)
    assert "two CPU cores (shared with other work)" in describe_training(record)
    (tmp_path / "training.json").write_text('{"recipe": "tiny"}')
    with pytest.raises(CheckpointError, match="cannot be read as a training record"):
        read_training(tmp_path)
