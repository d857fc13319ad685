"""Training for sounds: learns, resumes to the same weights, and takes the sets that the recipes name."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from idecode_core.audio_parts import load_parts
from idecode_core.audio_recipes import AUDIO_RECIPES, get_audio_recipe
from idecode_core.audio_training import Blocks, mixed, rate_factor, read_audio_log, train_audio
from idecode_core.errors import DataError, SettingError, TrainingError
from idecode_core.features import LogMel
from idecode_core.sound_sets import ESC50_CATEGORIES, FSD_SETS, SoundSet, load_fsdnoisy18k, load_sounds
from idecode_core.sounds import Sound
from idecode_core.synthetic_sounds import MAKERS, in_a_room

RATE = 16_000
RECIPE = replace(
    AUDIO_RECIPES["spoken-digits"],
    name="small",
    epochs=4,
    batch=8,
    widths=(8, 16),
    masks_from=2,
    features=LogMel(RATE),
)


def kinds(count: int, seed: int = 0) -> SoundSet:
    """`count` clips each of tones and of noise: two classes that are easy to tell apart."""
    generator = np.random.default_rng(seed)
    clips, y = [], []
    for kind, name in enumerate(("tone", "noise")):
        for _ in range(count):
            clips.append(
                Sound(in_a_room(MAKERS[name](1.5, RATE, generator=generator), generator=generator), RATE)
            )
            y.append(kind)
    return SoundSet("kinds", tuple(clips), np.array(y), ("tone", "noise"), np.zeros(len(y), np.int64))


def test_the_model_learns_to_tell_tones_from_noise(tmp_path: Path) -> None:
    scorer = train_audio(replace(RECIPE, epochs=8), tmp_path, kinds(16))
    test = kinds(8, seed=1)
    right = scorer.shares(test.clips).argmax(axis=1) == test.y
    assert right.mean() > 0.9
    log = read_audio_log(tmp_path / "log.jsonl")
    assert [entry.epoch for entry in log] == list(range(8))
    assert log[-1].loss < log[0].loss


def test_a_killed_run_ends_with_the_weights_of_an_unbroken_one(tmp_path: Path) -> None:
    sounds = kinds(8)
    unbroken = train_audio(RECIPE, tmp_path / "a", sounds)

    class Killed(Exception):
        pass

    def kill(epoch: int, step: int, steps: int, loss: float) -> None:
        if epoch == 2 and step == 1:
            raise Killed

    with pytest.raises(Killed):
        train_audio(RECIPE, tmp_path / "b", sounds, progress=kill)
    resumed = train_audio(RECIPE, tmp_path / "b", sounds)
    for name, value in unbroken.model.state_dict().items():
        torch.testing.assert_close(resumed.model.state_dict()[name], value)
    with pytest.raises(TrainingError, match="another recipe"):
        train_audio(replace(RECIPE, seed=5), tmp_path / "b", sounds)


def test_statistics_are_those_of_the_proper_training_set() -> None:
    sounds = kinds(3)
    blocks = Blocks(sounds, LogMel(RATE), RECIPE)
    features = LogMel(RATE)
    values = np.concatenate(
        [features.padded(features.decibels(c.samples)).numpy().ravel() for c in sounds.clips]
    )
    assert blocks.features.mean == pytest.approx(values.mean(), abs=1e-3)
    assert blocks.features.std == pytest.approx(values.std(), rel=1e-4)


def test_without_shift_every_block_of_every_clip_is_an_example() -> None:
    long = Sound(
        np.random.default_rng(0).standard_normal(9 * RATE).astype(np.float32) / 10, RATE
    )  # 282 frames
    sounds = SoundSet("long", (long, long), np.array([0, 1]), ("a", "b"), np.zeros(2, np.int64))
    x, y = Blocks(sounds, LogMel(RATE), replace(RECIPE, shift=False)).epoch(np.random.default_rng(0))
    assert x.shape == (4, 64, 128)
    assert y.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_mixup_names_the_classes_of_both_parts_and_the_larger_share(seed: int) -> None:
    x, y = torch.eye(6), torch.arange(6)  # example i is the unit vector i, so a mixture shows what is in it
    shown, others, share = mixed(x, y, 0.3, np.random.default_rng(seed))
    assert 0.5 <= share <= 1
    for i in range(6):
        expected = np.zeros(6)
        expected[i] += share
        expected[int(others[i])] += 1 - share
        np.testing.assert_allclose(shown[i], expected, atol=1e-6)
    alone, _, whole = mixed(x, y, 0.0, np.random.default_rng(seed))
    assert whole == 1
    assert alone is x


def test_the_papers_learning_rate_falls_by_a_tenth_every_two_epochs() -> None:
    paper = get_audio_recipe("paper-fsdnoisy18k-set0")
    factors = [rate_factor(paper, epoch, 0.0) for epoch in range(5)]
    assert factors == pytest.approx([1, 1, 0.9, 0.9, 0.81])
    assert (paper.learning_rate, paper.batch, paper.epochs, paper.masks_from) == (5e-4, 128, 30, 10)
    assert paper.features == LogMel(32_000)


def test_an_unknown_recipe_lists_the_known_ones() -> None:
    with pytest.raises(SettingError, match="esc50-animals"):
        get_audio_recipe("esc50-robots")


def write_set(path: Path, fold: np.ndarray, y: np.ndarray, classes: int) -> None:
    x = np.random.default_rng(0).integers(-9000, 9000, size=(len(y), 2000)).astype(np.int16)
    np.savez(
        path,
        x=x.ravel(),
        offsets=np.arange(len(y) + 1) * 2000,
        y=y,
        sample_rate=RATE,
        classes=[f"c{i}" for i in range(classes)],
        fold=fold,
    )


def test_esc50_calibrates_and_tests_on_folds_that_the_model_has_never_heard(tmp_path: Path) -> None:
    y, fold = np.tile(np.repeat(np.arange(50), 8), 4), np.repeat([1, 2, 3, 4], 400)
    write_set(tmp_path / "esc50-train.npz", fold, y, 50)
    parts = load_parts(get_audio_recipe("esc50-human"), tmp_path)
    assert set(parts.training.fold) == {1, 2}
    assert len(parts.training) == 160
    assert set(parts.calibration.fold) == {3}
    assert len(parts.calibration) == 75
    assert set(parts.test.fold) == {4}
    assert len(parts.test) == 80
    assert parts.training.classes == tuple(f"c{i}" for i in range(20, 30))
    assert set(parts.training.y) == set(range(10))
    assert list(parts.outside) == [f"esc50-{c}" for c in ESC50_CATEGORIES if c != "human"]
    assert all(len(part) == 80 and set(part.fold) == {4} for part in parts.outside.values())


def test_a_missing_or_damaged_set_of_sounds_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="are not here"):
        load_sounds("esc50-train", tmp_path)
    (tmp_path / "bad-train.npz").write_bytes(b"not a zip file")
    with pytest.raises(DataError, match="is not a set of sounds"):
        load_sounds("bad-train", tmp_path)


def make_fsdnoisy18k(folder: Path, a_class: int = 17) -> None:
    """The official layout with one second of noise a clip: verified and unverified training clips, test clips."""
    generator = np.random.default_rng(0)
    for part, columns in (
        ("train", ["fname", "label", "aso_id", "manually_verified", "noisy_small"]),
        ("test", ["fname", "label", "aso_id"]),
    ):
        audio = folder / f"FSDnoisy18k.audio_{part}"
        audio.mkdir(parents=True)
        (folder / "FSDnoisy18k.meta").mkdir(exist_ok=True)
        with (folder / "FSDnoisy18k.meta" / f"{part}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(columns)
            number = 0
            for label in (label for labels in FSD_SETS for label in labels):
                for i in range(a_class + 2 if part == "train" else 2):
                    name = f"{number}.wav"
                    number += 1
                    rows.writerow(
                        [name, label, "/m/x", *(["0" if i < 2 else "1", "0"] if part == "train" else [])]
                    )
                    soundfile.write(audio / name, generator.uniform(-0.1, 0.1, 8000), 32_000)


def test_fsdnoisy18k_is_read_from_its_official_folder(tmp_path: Path) -> None:
    make_fsdnoisy18k(tmp_path / "FSDnoisy18k")
    parts = load_parts(get_audio_recipe("paper-fsdnoisy18k-set2"), tmp_path)
    assert parts.training.classes == FSD_SETS[2]
    assert len(parts.training) == 5 * (17 - 15)  # unverified clips are left out, 15 a class calibrate
    assert np.bincount(parts.calibration.y).tolist() == [15] * 5
    assert len(parts.test) == 10
    assert list(parts.outside) == ["fsdnoisy18k-set0", "fsdnoisy18k-set1", "fsdnoisy18k-set3"]
    assert parts.test.clips[0].sample_rate == 32_000


def test_a_folder_that_is_not_fsdnoisy18k_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not FSDnoisy18k"):
        load_fsdnoisy18k(tmp_path, "train", FSD_SETS[0])


def test_a_loss_that_is_not_finite_stops_with_the_last_state_intact(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="loss became"):
        train_audio(replace(RECIPE, learning_rate=1e30), tmp_path, kinds(8))
