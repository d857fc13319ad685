"""Attacks and their strengths: what cannot be used is said."""

# ruff: noqa: F811  `linear` is a fixture of another file

from functools import partial

import pytest
from test_classic import (
    Linear,
    around,
    grey_pictures,
    linear,  # noqa: F401  a fixture
)

from idecode_core.attacks import ATTACKS, Victim, attack, attack_detector
from idecode_core.errors import SettingError

AS_FGSM = "As far as the paper's FGSM goes"


@pytest.mark.parametrize("strength", [0, -0.1, float("nan"), 4321.0])
@pytest.mark.parametrize("name", list(ATTACKS))
def test_a_strength_that_cannot_be_used_is_said_with_the_papers(
    linear: Victim, name: str, strength: float
) -> None:
    x, y = grey_pictures(1)
    run = partial(attack, linear, x, y, name)
    if ATTACKS[name].on_detector:
        run = partial(attack_detector, linear, around(Linear()), x, y)
    with pytest.raises(SettingError, match=f"got {strength:g}.*The paper uses|got {strength:g}.*{AS_FGSM}"):
        run(strength=strength)


def test_strength_zero_says_that_it_changes_nothing(linear: Victim) -> None:
    with pytest.raises(SettingError, match="Strength 0 leaves every picture as it is"):
        attack(linear, *grey_pictures(1), "fgsm", 0)
