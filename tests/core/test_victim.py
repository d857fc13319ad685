"""Victims: what cannot be attacked is said in one sentence."""

# ruff: noqa: F811  `linear` is a fixture of another file

from typing import Any

import pytest
import torch
from small import SIZE, random_images, small_scorer
from test_classic import (
    grey_pictures,
    linear,  # noqa: F401  a fixture
)
from torch import Tensor

from idecode_core.attacks import Victim, attack
from idecode_core.detector import Detector
from idecode_core.errors import InputError, SettingError


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (torch.zeros(1, 3, 32, 32), [0], "takes pictures of 16 x 16 pixels, got 32 x 32"),
        (torch.zeros(1, 1, 16, 16), [0], r"got \(1, 1, 16, 16\)"),
        (torch.zeros(0, 3, 16, 16), [], r"got \(0, 3, 16, 16\)"),
        (torch.full((1, 3, 16, 16), 255.0), [0], "divide 8-bit pictures by 255"),
        (torch.full((1, 3, 16, 16), torch.nan), [0], "floats from 0 to 1"),
        (torch.zeros(1, 3, 16, 16, dtype=torch.uint8), [0], "floats from 0 to 1"),
        (torch.zeros(1, 3, 16, 16), [2], "from 0 to 1"),
        (torch.zeros(1, 3, 16, 16), [0, 1], "one class per picture"),
        (torch.zeros(1, 3, 16, 16), [0.5], "whole numbers"),
    ],
)
def test_pictures_and_classes_that_do_not_fit_the_victim_are_said(
    linear: Victim, x: Tensor, y: Any, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        attack(linear, x, y, "fgsm")


def test_unknown_names_and_networks_without_classes_are_said(linear: Victim) -> None:
    with pytest.raises(SettingError, match="No attack is called 'fgms'"):
        attack(linear, *grey_pictures(1), "fgms")
    with pytest.raises(SettingError, match="use attack_detector"):
        attack(linear, *grey_pictures(1), "pgd-detector")
    pictures = random_images(10)
    turns = Detector.calibrate("turns", small_scorer(), pictures, n_max=1)
    with pytest.raises(SettingError, match="The network of turns names no classes"):
        Victim.from_detector(turns)
    function = Detector.around(
        predict_fn=lambda x: x.reshape(len(x), -1)[:, :2],
        calibration=pictures,
        size=SIZE,
        classes=("a", "b"),
        n_max=1,
    )
    with pytest.raises(SettingError, match="function without gradients"):
        Victim.from_detector(function)
