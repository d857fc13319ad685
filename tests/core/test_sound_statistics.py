"""Statistics of sounds and their distance from the nearest training sound: computed another way, permuted, saved, inspected."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from idecode_core.audio.features import LogMel
from idecode_core.audio.read import Sound
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.scorer import SCORERS
from idecode_core.scorers.sound_statistics import SoundStatistics, statistics
from idecode_core.transforms import SpecAugment
from tools.synthetic_sounds import MAKERS

RATE = 16_000
FEATURES = LogMel(RATE, mean=-40.0, std=20.0)


def sounds(kind: str, count: int, seconds: float = 5.0, seed: int = 0) -> list[Sound]:
    generator = np.random.default_rng(seed)
    return [Sound(MAKERS[kind](seconds, RATE, generator=generator), RATE) for _ in range(count)]


@pytest.fixture(scope="module")
def scorer() -> SoundStatistics:
    clips = sounds("noise", 6) + sounds("claps", 6)
    return SoundStatistics.fit(
        clips, torch.arange(12) // 6, features=FEATURES, transforms=SpecAugment(), classes=("noise", "claps")
    )


def by_hand(clip: Sound, drawn: torch.Tensor) -> np.ndarray:
    """One draw's statistics (numbers, bands), band by band in plain loops; NaN where a band is hidden throughout."""
    blocks = FEATURES.blocks(clip.samples).double().numpy()
    found = np.full((6, 64), np.nan)
    for band in range(64):
        cells, steps = [], []
        for block, masks in zip(blocks, drawn.tolist(), strict=True):
            row = block[band].copy()
            for place, (first, width) in enumerate(masks):
                if place < 8:
                    row[first : first + width] = np.nan
                elif first <= band < first + width:
                    row[:] = np.nan
            cells += row[~np.isnan(row)].tolist()
            steps += [b - a for a, b in pairwise(row) if not np.isnan(b - a)]
        if cells:
            found[:, band] = [
                np.mean(cells),
                np.std(cells),
                np.std(steps),
                *np.quantile(cells, (0.1, 0.5, 0.9)),
            ]
    return found


def test_scores_are_mean_squared_differences_from_the_nearest_clip_of_what_the_masks_leave(scorer) -> None:  # type: ignore[no-untyped-def]
    clips = sounds("tone", 1) + sounds("claps", 1, 9.0, seed=3)
    scored = scorer.score(clips, n=2, seed=7)
    for clip, vector, drawn in zip(clips, scored.score_vectors, scored.parameters, strict=True):
        for draw in range(2):
            z = (by_hand(clip, drawn[draw]) - scorer.centre.numpy()) / scorer.scale.numpy()
            expected = min(np.nanmean((z - row) ** 2) for row in scorer.bank.numpy())
            assert vector[draw] == pytest.approx(expected, rel=1e-3)


def test_without_masks_a_training_clip_has_no_distance_and_its_own_class(scorer) -> None:  # type: ignore[no-untyped-def]
    for clip, name in ((sounds("noise", 6)[2], "noise"), (sounds("claps", 6)[5], "claps")):
        each, place = scorer.nearest(scorer.described(FEATURES.blocks(clip.samples)))
        assert float(each.sum()) < 1e-4
        assert scorer.classes[int(scorer.labels[place[0]])] == name


def test_a_batch_is_only_a_batch_and_fewer_draws_are_the_first_ones(scorer) -> None:  # type: ignore[no-untyped-def]
    clips = [*sounds("tone", 2), *sounds("noise", 1, 1.0, seed=4)]
    whole = scorer.score(clips, n=3, seed=1).score_vectors
    order = [2, 0, 1]
    np.testing.assert_allclose(
        scorer.score([clips[i] for i in order], n=3, seed=1).score_vectors, whole[order]
    )
    np.testing.assert_allclose(scorer.score(clips, n=2, seed=1).score_vectors, whole[:, :2])
    assert np.all(whole[:, 0] != whole[:, 1])  # masks make a difference


def test_what_is_inspected_is_what_is_scored_and_its_terms_add_up(scorer) -> None:  # type: ignore[no-untyped-def]
    (clip,) = sounds("claps", 1, 9.0, seed=5)
    inspected = scorer.inspect(clip, n=3, seed=2)
    np.testing.assert_allclose(inspected.score_vector, scorer.score(clip, n=3, seed=2).score_vectors[0])
    sums = [sum(term.value for term in terms) for terms in inspected.terms]
    np.testing.assert_allclose(sums, inspected.score_vector, rtol=1e-5)
    assert all(variant.predicted == "closest to claps" for variant in inspected.variants)
    blocks = len(FEATURES.blocks(clip.samples))
    assert blocks > 1
    assert inspected.by_block.scores.shape == (blocks, 3)
    assert inspected.by_block.seconds.shape == (blocks, 2)


def test_a_saved_one_scores_alike_and_other_sounds_are_flagged(scorer, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert SCORERS["sound_statistics"].endswith("SoundStatistics")
    known = sounds("noise", 20, seed=8) + sounds("claps", 20, seed=9)
    detector = Detector.calibrate("heard", scorer, known, n_max=2)
    save_detector(detector, tmp_path / "heard")
    again = load_detector(tmp_path / "heard", "cpu")
    strange = sounds("tone", 5, seed=6)
    np.testing.assert_array_equal(again.score_vectors(strange, n=2), detector.score_vectors(strange, n=2))
    assert again.detect(strange, n=2, epsilon=0.1).is_ood.all()


def test_a_hidden_band_counts_nothing_and_one_clip_is_too_few() -> None:
    blocks = torch.zeros(1, 4, 10)
    blocks[0, 1] = torch.arange(10.0)
    keep = torch.ones(1, 1, 4, 10, dtype=torch.bool)
    keep[0, 0, 2] = False
    found = statistics(blocks, keep)[0]
    assert found[:, 2].isnan().all()
    assert found[:3, 1].tolist() == pytest.approx([4.5, np.std(np.arange(10)), 0.0])
    with pytest.raises(SettingError, match="at least 2 training points"):
        SoundStatistics.fit(
            sounds("noise", 1), torch.zeros(1, dtype=torch.long), features=FEATURES, transforms=SpecAugment()
        )
