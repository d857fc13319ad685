"""Sets of sounds: ESC-50's folds, FSDnoisy18k's folder."""

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile
from test_tasks_audio import RATE

from idecode_core.audio.sets import ESC50_CATEGORIES, FSD_SETS, load_fsdnoisy18k, load_sounds
from idecode_core.errors import DataError
from idecode_core.training.parts import load_parts
from idecode_core.training.recipes import get_recipe


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
    parts = load_parts(get_recipe("esc50-human"), tmp_path)
    assert set(parts.training.fold) == {1, 2}
    assert len(parts.training) == 160
    assert len(parts.validation) == 0
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
    with pytest.raises(DataError, match="cannot be read as a set of sounds"):
        load_sounds("bad-train", tmp_path)


def make_fsdnoisy18k(folder: Path, per_class: int = 17) -> None:
    """The official layout with one second of noise per clip: verified and unverified training clips, test clips."""
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
                for i in range(per_class + 2 if part == "train" else 2):
                    name = f"{number}.wav"
                    number += 1
                    rows.writerow(
                        [name, label, "/m/x", *(["0" if i < 2 else "1", "0"] if part == "train" else [])]
                    )
                    soundfile.write(audio / name, generator.uniform(-0.1, 0.1, 8000), 32_000)


def test_fsdnoisy18k_is_read_from_its_official_folder(tmp_path: Path) -> None:
    make_fsdnoisy18k(tmp_path / "FSDnoisy18k")
    parts = load_parts(get_recipe("paper-fsdnoisy18k-set2"), tmp_path)
    assert parts.training.classes == FSD_SETS[2]
    assert len(parts.training) == 5 * (17 - 15)  # unverified clips are left out, 15 per class calibrate
    assert np.bincount(parts.calibration.y).tolist() == [15] * 5
    assert len(parts.test) == 10
    assert list(parts.outside) == ["fsdnoisy18k-set0", "fsdnoisy18k-set1", "fsdnoisy18k-set3"]
    assert parts.test.clips[0].sample_rate == 32_000


def test_a_folder_that_is_not_fsdnoisy18k_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not FSDnoisy18k"):
        load_fsdnoisy18k(tmp_path, "train", FSD_SETS[0])
