"""Detector folders: the same answer bit for bit, no mismatch, no pickle, no half-written file."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small import random_images, small_scorer

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.settings import read_settings
from idecode_core.scorers.merged import MergedScorer
from idecode_core.training.run_state import rounded
from idecode_core.transforms import Projective, Rotations, SharpRotations, SmallAffine

IMAGES = random_images(5, seed=3)
SCORERS = {
    "rotations": lambda: small_scorer(Rotations(per_draw="all")),
    "sharp rotations": lambda: small_scorer(SharpRotations(per_draw="all")),
    "projective": lambda: small_scorer(Projective(), "parameter_error", outputs=8, pair=True),
    "small affine": lambda: small_scorer(SmallAffine(degrees=9.0), "label_cross_entropy", outputs=10),
    "merged": lambda: MergedScorer(
        (small_scorer(seed=1), small_scorer(SmallAffine(), "invariance", outputs=10)),
        ("one", "two"),
        (np.linspace(0, 3, 50).reshape(10, 5), np.linspace(0, 1, 20).reshape(4, 5)),
        (1.0, 0.5),
    ),
}


def calibrated(scorer, seed: int = 0) -> Detector:
    return Detector.calibrate("small", scorer, random_images(7, seed=4), n_max=3, seed=seed, summary="noise")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "detector"
    save_detector(calibrated(small_scorer()), path)
    return path


@pytest.mark.parametrize("name", SCORERS)
def test_a_loaded_detector_gives_the_same_answer_bit_for_bit(name, tmp_path):
    detector = calibrated(SCORERS[name](), seed=6)
    save_detector(detector, tmp_path / "new" / "folder")
    loaded = load_detector(tmp_path / "new" / "folder", device="cpu")
    before, after = (d.detect(IMAGES, n=3, epsilon=0.3, seed=8) for d in (detector, loaded))
    assert np.array_equal(before.score_vectors, after.score_vectors)
    assert np.array_equal(before.p_values, after.p_values)
    assert np.array_equal(before.is_ood, after.is_ood)
    assert np.array_equal(detector.calibration.score_vectors, loaded.calibration.score_vectors)
    assert (loaded.name, loaded.summary, loaded.calibration.seed) == ("small", "noise", 6)
    assert [v.predicted for v in loaded.inspect(IMAGES[0], n=2).variants] == [
        v.predicted for v in detector.inspect(IMAGES[0], n=2).variants
    ]


def test_a_package_that_is_not_installed_is_no_fault_of_the_folder(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(
        SettingError, match=r"^The network efficientnet-lite0 needs the package timm.*pip install"
    ):
        load_detector(Path(__file__).parents[2] / "checkpoints" / "cifar10-pretrained")


def test_a_device_that_is_not_there_is_no_fault_of_the_folder(folder):
    with pytest.raises(SettingError, match=r"^No device is called 'gpu': expected cpu"):
        load_detector(folder, "gpu")


def test_saving_again_writes_the_same_bytes(folder, tmp_path):
    save_detector(load_detector(folder, "cpu"), tmp_path / "again")
    for path in folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_weights_that_half_precision_holds_take_half_the_room_and_come_back_bit_for_bit(tmp_path):
    plain, short = small_scorer(), small_scorer()
    rounded(short.model)
    assert not torch.equal(plain.model.head.weight, short.model.head.weight)
    for name, scorer in (("plain", plain), ("short", short)):
        save_detector(calibrated(scorer), tmp_path / name)
        loaded = load_detector(tmp_path / name, "cpu").scorer
        for key, value in scorer.model.state_dict().items():
            assert loaded.model.state_dict()[key].dtype == value.dtype
            assert torch.equal(loaded.model.state_dict()[key], value)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("short", "plain")]
    assert sizes[0] < 0.65 * sizes[1]


def test_config_says_what_the_detector_is(folder):
    settings = read_settings(folder)
    assert (settings.name, settings.k, settings.n_max, settings.modality) == ("small", 7, 3, "image")
    assert settings.dataset == ""  # never guessed from a name
    assert "7 points" in (folder / "card.md").read_text()


def refuse(folder: Path, message: str) -> None:
    with pytest.raises(CheckpointError, match=message) as caught:
        load_detector(folder, "cpu")
    assert str(folder) in str(caught.value)


def test_changed_weights_are_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["head.bias"][0] += 1e-6
    save_file(tensors, folder / "model.safetensors")
    refuse(folder, "were changed after saving")


def test_other_weights_with_their_own_hash_do_not_take_the_calibration_along(folder, tmp_path):
    """Weights and config of another model, consistent with each other: only the calibration gives it away."""
    save_detector(calibrated(small_scorer(seed=1)), tmp_path / "other")
    for name in ("model.safetensors", "config.json"):
        shutil.copy(tmp_path / "other" / name, folder / name)
    refuse(folder, "made with other weights or settings.*calibrate again")


def test_the_calibration_of_another_detector_is_refused(folder, tmp_path):
    save_detector(calibrated(small_scorer(Rotations(jitter=5))), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "calibration.npz", folder / "calibration.npz")
    refuse(folder, "made with other weights or settings")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "calibration.npz"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    refuse(folder, f"missing {name}")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "calibration.npz"])
@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b"\x80\x04garbage" + b[9:]]
)
def test_a_damaged_file_is_refused(folder, name, damage):
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError):
        load_detector(folder, "cpu")


def test_a_calibration_that_is_not_finite_or_not_two_dimensional_is_refused(folder):
    with np.load(folder / "calibration.npz") as arrays:
        parts = dict(arrays)
    for vectors in (np.full((3, 2), np.nan), np.zeros((0, 2)), np.zeros(3), np.array([["a"]])):
        np.savez(folder / "calibration.npz", **{**parts, "score_vectors": vectors})
        refuse(folder, "calibration.npz")


class Payload:
    """Unpickling this would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_in_a_checkpoint_is_never_run(folder, tmp_path):
    trace = tmp_path / "code was run"
    with np.load(folder / "calibration.npz") as arrays:
        parts = dict(arrays)
    poisoned = np.array([[Payload(trace)]], dtype=object)
    np.savez(folder / "calibration.npz", **{**parts, "score_vectors": poisoned})
    refuse(folder, "holds objects, which are never loaded")
    torch.save({"weights": Payload(trace)}, folder / "model.safetensors")
    refuse(folder, "cannot be read as weights")
    assert not trace.exists()


def test_the_calibration_of_the_same_scorer_on_other_data_is_refused(folder, tmp_path):
    """Repair: it has the same scorer hash, and was accepted: digits flagged fell from 99 to 8 of 100, silently."""
    other = Detector.calibrate("other", small_scorer(), random_images(7, seed=9), n_max=3)
    save_detector(other, tmp_path / "other")
    shutil.copy(tmp_path / "other" / "calibration.npz", folder / "calibration.npz")
    refuse(folder, "not the file that was saved with this detector")


@pytest.mark.parametrize("key", ["k", "n_max"])
def test_a_config_that_lies_about_the_calibration_is_refused(folder, key):
    config = json.loads((folder / "config.json").read_text())
    config[key] += 1
    (folder / "config.json").write_text(json.dumps(config))
    refuse(folder, "do not belong together")


def test_a_scorer_that_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    class Other:
        modality = "smell"

    with pytest.raises(CheckpointError, match="cannot be saved"):
        save_detector(Detector("x", Other(), Calibration([[1.0]])), tmp_path / "folder")  # type: ignore[arg-type]
    assert not (tmp_path / "folder").exists()
