"""Strange sounds: another speed, and those that choose are in no test."""

import numpy as np
import pytest
from test_fit_sounds import RATE, tones

from idecode_core.audio.sets import bundled_sounds
from idecode_core.training.strangers import at_speed, for_choosing, for_testing, strange_sounds


def test_at_another_speed_the_pitch_moves_and_the_length_stays():
    (clip,) = tones(1)
    for speed in (0.7, 1.4):
        changed = at_speed(clip, speed)
        assert len(changed.samples) == len(clip.samples)
        spectrum = np.abs(np.fft.rfft(changed.samples[: RATE // 2]))
        assert np.argmax(spectrum) * 2 == pytest.approx(440 * speed, abs=4)


def test_sounds_that_choose_are_in_no_test():
    for bundled in bundled_sounds().values():
        chosen, tested = (
            {sound.samples.tobytes() for sound in part(bundled)} for part in (for_choosing, for_testing)
        )
        assert chosen
        assert tested
        assert not chosen & tested
    made = strange_sounds(tones(3))
    assert {name: len(some) for name, some in made.items()} == {"slower": 3, "faster": 3, "other sounds": 13}
    assert all(sound.seconds == pytest.approx(1.0, abs=1e-3) for sounds in made.values() for sound in sounds)
