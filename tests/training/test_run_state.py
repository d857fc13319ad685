"""A run's state: another recipe's or a damaged one is told in words."""

from dataclasses import replace
from pathlib import Path

import pytest
from test_loop import ROTATIONS, tiny_task

from idecode_core.errors import CheckpointError, TrainingError
from idecode_core.folder.record import (
    read_log,
)
from idecode_core.training.loop import train


def test_a_run_of_another_recipe_or_length_is_not_resumed(tmp_path: Path) -> None:
    task = tiny_task(ROTATIONS)
    train(task, tmp_path, epochs=1)
    with pytest.raises(TrainingError, match="another recipe or of another number of epochs"):
        train(task, tmp_path, epochs=2)
    with pytest.raises(TrainingError, match="--no-resume"):
        train(tiny_task(replace(ROTATIONS, shows=replace(ROTATIONS.shows, crop=1))), tmp_path, epochs=1)
    train(task, tmp_path, epochs=2, resume=False)
    assert len(read_log(tmp_path)) == 2


@pytest.mark.parametrize("file", ["state.safetensors", "log.jsonl"])
def test_a_damaged_run_is_told_in_words(file: str, tmp_path: Path) -> None:
    train(tiny_task(ROTATIONS), tmp_path, epochs=1)
    (tmp_path / file).write_bytes(b"not what was here")
    with pytest.raises(CheckpointError, match="--no-resume"):
        train(tiny_task(ROTATIONS), tmp_path, epochs=1)
