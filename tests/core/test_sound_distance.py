"""Features of a network that has heard music, modulations, and the relative distance: computed another way, permuted, saved."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from safetensors.numpy import load_file
from sklearn.covariance import LedoitWolf
from sklearn.datasets import make_blobs

from idecode_core.audio.read import Sound
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.models.music_network import WEIGHTS, music_network
from idecode_core.scorers.sound_distance import HEARD, SoundDistance, learned, modulations
from tools.make_music_network import fields, number
from tools.synthetic_sounds import MAKERS

RATE = 16_000


def sounds(kind: str, count: int, seconds: float = 2.0, seed: int = 0) -> list[Sound]:
    generator = np.random.default_rng(seed)
    return [Sound(MAKERS[kind](seconds, RATE, generator=generator), RATE) for _ in range(count)]


@pytest.fixture(scope="module")
def scorer() -> SoundDistance:
    clips = sounds("noise", 5) + sounds("claps", 5)
    return SoundDistance.fit(clips, torch.arange(10) // 5, classes=("noise", "claps"))


def test_the_network_computes_what_its_weights_say() -> None:
    """Four layers in NumPy: windows times kernels, ReLU, norm, the largest of each pool."""
    weights = {name: value.astype(np.float64) for name, value in load_file(WEIGHTS).items()}
    decibels = np.random.default_rng(0).normal(-40, 15, (16, 40))  # (bands, frames)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        mean, variance, scale, shift = (
            weights[f"{name}.{key}"][:, None, None]
            for key in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / np.sqrt(variance + 1e-3) * scale + shift

    x = norm(np.log10(1e4 * 10 ** (decibels / 10) + 1).T[None], "input_norm")  # (1, frames, bands)
    expected = []
    for layer, (tall, wide) in enumerate(((4, 1), (2, 2), (2, 2), (2, 2))):
        windows = sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1))), (3, 3), axis=(1, 2))
        x = np.einsum("ctbhw,ochw->otb", windows, weights[f"convolutions.{layer}.weight"], optimize=True)
        x = np.maximum(x + weights[f"convolutions.{layer}.bias"][:, None, None], 0)
        pools = sliding_window_view(norm(x, f"norms.{layer}"), (tall, wide), axis=(1, 2))
        x = pools[:, ::2, ::2].max(axis=(3, 4))
        if layer >= 2:
            over_time = x.mean(axis=2)
            expected += [over_time.mean(axis=1), over_time.std(axis=1, ddof=1), x.max(axis=2).mean(axis=1)]
    with torch.inference_mode():
        said = music_network()(torch.from_numpy(decibels)[None].float())[0]
    np.testing.assert_allclose(said, np.concatenate(expected), atol=2e-3)


def test_modulations_tell_how_fast_and_in_which_direction_levels_move() -> None:
    time, band = np.arange(312), np.arange(96)[:, None]
    ripple = {
        name: 10 * np.sin(2 * np.pi * (12 * time / 312 + way * 4 * band / 96))
        for name, way in {"rising": -1, "falling": 1}.items()
    }
    blocks = torch.from_numpy(
        np.stack([*ripple.values(), 10 * np.sin(2 * np.pi * 48 * (time / 312 + 0 * band))])
    )
    rising, falling, fast = modulations(blocks.float())
    by_band, both = rising[:128], rising[128:]  # (rates of 16 groups), then each direction
    half = len(both) // 2
    loudest = int(both.argmax())
    assert abs(int(falling[128:].argmax()) - loudest) == half  # the same place in the other direction
    assert int(fast[:128].argmax()) // 16 > int(by_band.argmax()) // 16  # four times faster: a later octave
    assert int(falling[:128].argmax()) // 16 == int(by_band.argmax()) // 16  # one band alone cannot tell


def test_the_score_is_the_closest_distance_over_the_mean_of_all() -> None:
    z, y = make_blobs(60, 90, centers=3, cluster_std=4.0, random_state=0)
    z[:, :5] *= 30
    points, new = torch.from_numpy(z[:40]).float(), torch.from_numpy(z[40:]).float()
    blank = {"features": HEARD, "model": music_network()}
    scorer = SoundDistance(**blank, **learned(points, torch.from_numpy(y[:40])))
    standard = (z - z[:40].mean(axis=0)) / z[:40].std(axis=0, ddof=1)
    means = np.stack([standard[:40][y[:40] == c].mean(axis=0) for c in range(3)])
    inverse = np.linalg.inv(LedoitWolf(assume_centered=True).fit(standard[:40] - means[y[:40]]).covariance_)
    away = standard[40:, None] - means
    squares = np.einsum("ncd,de,nce->nc", away, inverse, away)
    np.testing.assert_allclose(scorer.distances(new), squares, rtol=5e-3)
    np.testing.assert_allclose(scorer.strangeness(new), squares.min(axis=1) / squares.mean(axis=1), rtol=5e-3)
    alone = SoundDistance(**blank, **learned(points, torch.zeros(40, dtype=torch.int64)))
    np.testing.assert_allclose(
        alone.strangeness(new), alone.distances(new)[:, 0]
    )  # one class: the distance itself


def test_strange_sounds_score_higher_and_order_does_not_matter(scorer: SoundDistance) -> None:
    clips = sounds("noise", 2, seed=1) + sounds("claps", 2, seed=1) + sounds("plucked string", 4, seed=1)
    scored = scorer.score(clips, n=3, seed=0).score_vectors
    assert scored.shape == (8, 3)
    assert scored[:4].max() < scored[4:].min()
    order = np.random.default_rng(0).permutation(8)
    again = scorer.score([clips[i] for i in order], n=1, seed=5).score_vectors
    np.testing.assert_allclose(again[:, 0], scored[order, 2])  # it draws nothing


def test_a_saved_one_scores_alike_and_says_what_is_closest(scorer: SoundDistance, tmp_path: Path) -> None:
    calibration = sounds("noise", 4, seed=2)
    detector = Detector.calibrate("heard", scorer, calibration, n_max=1, seed=0)
    save_detector(detector, tmp_path / "heard")
    loaded = load_detector(tmp_path / "heard", "cpu")
    np.testing.assert_allclose(
        loaded.score_vectors(calibration, n=1), detector.score_vectors(calibration, n=1), rtol=1e-4
    )
    assert (tmp_path / "heard" / "model.safetensors").stat().st_size < 1_300_000  # in half precision
    long = sounds("claps", 1, seconds=12.0, seed=3)[0]
    inspected = loaded.scorer.inspect(long, n=2, seed=0)
    assert {variant.predicted for variant in inspected.variants} == {"closest to claps"}
    assert len(inspected.by_block.scores) == len(HEARD.blocks(long.samples)) == 3
    assert inspected.terms[0][0].value == pytest.approx(float(inspected.score_vector[0]))


def test_features_that_are_all_the_same_are_refused() -> None:
    with pytest.raises(SettingError, match="at least 2"):
        SoundDistance.fit(sounds("noise", 1), torch.zeros(1, dtype=torch.int64))


def test_the_reader_of_checkpoints_knows_varints_and_messages() -> None:
    """Examples of the protocol buffers' own documentation: 150 is 96 01, and field 2 is the text "testing"."""
    assert number(bytes([0x96, 0x01]), 0) == (150, 2)
    assert fields(bytes.fromhex("08 96 01 12 07 74 65 73 74 69 6e 67")) == {1: 150, 2: b"testing"}
