"""Points that a recipe shares with another detector are held out, or it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_loop import ROTATIONS, tiny_images
from test_tasks_image import (
    JOINT,
    two_classes,  # noqa: F401  a fixture
)

from idecode_core.errors import DataError, TrainingError
from idecode_core.folder.record import Split
from idecode_core.image.sets import ImageSet
from idecode_core.training.parts import image_parts
from idecode_core.training.tasks import image


def test_a_recipe_that_holds_out_another_detectors_points_refuses_where_these_are_not_known(
    tmp_path: Path,
) -> None:
    images: ImageSet = tiny_images(200)
    alike = replace(JOINT, seed=7, shows=replace(JOINT.shows, split_of=str(tmp_path / "tiny")))
    with pytest.raises(DataError, match=r"got no split\.npz.*train tiny --out"):
        image_parts(alike, images)
    (tmp_path / "tiny").mkdir()
    np.savez(tmp_path / "tiny" / "split.npz", **vars(image_parts(ROTATIONS, images).split))
    np.testing.assert_array_equal(
        image_parts(alike, images).split.proper, image_parts(ROTATIONS, images).split.proper
    )
    with pytest.raises(DataError, match="expected its split of 100 pictures, got a split of 200"):
        image_parts(alike, tiny_images(100))


def test_what_starts_from_a_trained_network_calibrates_on_points_that_one_never_learned_from(
    tmp_path: Path,
) -> None:
    images: ImageSet = tiny_images(200)
    before = image_parts(ROTATIONS, images).split
    np.savez(tmp_path / "split.npz", **vars(before))
    started = replace(JOINT, seed=7, shows=replace(JOINT.shows, start_from=str(tmp_path)))
    after: Split = image_parts(started, images).split
    np.testing.assert_array_equal(after.proper, before.proper)
    held_out = np.concatenate([before.validation, before.calibration])
    np.testing.assert_array_equal(
        np.sort(np.concatenate([after.validation, after.calibration])), np.sort(held_out)
    )
    assert len(after.calibration) == len(before.calibration)
    assert set(after.calibration) != set(before.calibration)
    other = image_parts(replace(started, seed=8), images).split
    assert set(other.calibration) != set(after.calibration)
    elsewhere = image_parts(replace(ROTATIONS, seed=3), images)  # a split that the network knows nothing of
    with pytest.raises(TrainingError, match="another split"):
        image.trained_backbone(tmp_path, elsewhere.split)
