"""Figures of sounds: titled axes, what was masked."""

import numpy as np
import pytest
import torch
from test_audio_listening import FEATURES, RATE, tone

from idecode_core.audio.listening import spectrogram
from idecode_core.audio.scorer import HIDDEN, spectrogram_picture
from idecode_core.plots import audio as figures


def test_the_picture_has_low_frequencies_below_and_grey_where_hidden() -> None:
    blocks = torch.zeros(1, 64, 128)
    blocks[0, 0] = 3.0  # the lowest band is loud
    keep = torch.ones(1, 64, 128, dtype=torch.bool)
    keep[0, :, :10] = False
    image = spectrogram_picture(blocks, keep)
    assert image.shape == (64, 128, 3)
    assert image[-1, 50].sum() > image[0, 50].sum()
    assert (image[:, :10] == HIDDEN).all()


def test_the_spectrogram_has_seconds_and_hertz_and_gaps_where_hidden() -> None:
    seen = spectrogram(tone(2000, 30.0), FEATURES)
    hidden = np.zeros(seen.decibels.shape, bool)
    hidden[10:20] = True
    figure = figures.spectrogram(seen.decibels, seen.seconds_per_frame, seen.hertz, hidden)
    heat = figure.data[0]
    assert heat.x[-1] == pytest.approx(30.0, abs=0.2)
    assert np.isnan(np.asarray(heat.z)[10:20]).all()
    assert not np.isnan(np.asarray(heat.z)[:10]).any()
    loudest = int(np.nanargmax(np.asarray(heat.z)[:, 100]))
    two_thousand = figure.layout.yaxis.tickvals[list(figure.layout.yaxis.ticktext).index("2,000")]
    assert loudest == pytest.approx(two_thousand, abs=1)


def test_the_waveform_reaches_from_the_lowest_to_the_highest_sample() -> None:
    figure = figures.waveform(tone(440, 3.0).samples, RATE)
    high, low = (np.asarray(trace.y) for trace in figure.data)
    assert high.max() == pytest.approx(0.5, abs=1e-3)
    assert low.min() == pytest.approx(-0.5, abs=1e-3)
    assert (high >= low).all()


def test_blocks_above_the_calibration_band_are_orange() -> None:
    seconds = np.array([[0.0, 4.0], [4.0, 8.0]])
    figure = figures.block_scores(seconds, np.array([[0.1, 0.1], [5.0, 5.0]]), np.linspace(0, 1, 100))
    lines = [trace for trace in figure.data if trace.line.width == 6]
    assert [line.line.color for line in lines] == [figures.ID, figures.OOD]
