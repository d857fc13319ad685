"""From a finished training run to a detector folder: M of the best epoch, calibrated on the held-out points.

The folder also gets the run's log, its learning curve and `training.json`, from which the card is written.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.checkpoint import save_detector
from idecode_core.data import ImageSet, Split, class_names, load_images
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, DataError
from idecode_core.files import write_json, write_npz, write_text
from idecode_core.images import Preprocessing
from idecode_core.models import Equivariant, blank_model
from idecode_core.plots.training import learning_curve_svg
from idecode_core.recipes import Recipe
from idecode_core.run_state import load_weights
from idecode_core.scorer_config import transform_settings
from idecode_core.scoring import ImageScorer, choose_device
from idecode_core.training import EVALUATION_BATCH, read_log

CALIBRATION_POINTS = 5000
N_MAX = 20
SUMMARIES = {
    "cifar10": "CIFAR-10: small photographs of ten kinds of animals and vehicles",
    "cifar100": "CIFAR-100: small photographs of one superclass",
    "svhn": "SVHN: house numbers on photographs",
    "fashion": "Fashion-MNIST: grey pictures of clothing",
    "fashionmini": "Fashion-MNIST: grey pictures of clothing (a small part)",
}


@dataclass(frozen=True)
class TrainingRecord:
    """What a card says about how the model came to be."""

    recipe: str
    dataset: str
    task: str
    epochs: int
    best_epoch: int  # counted from 1
    hours: float
    validation_loss: float
    validation_accuracy: float | None
    test_accuracy: float | None
    proper_training_points: int
    validation_points: int
    calibration_points: int
    seed: int
    settings: dict[str, Any]
    """The recipe's fields, JSON-ready."""


def read_split(folder: Path) -> Split:
    """The indices that a run stored when it began; a detector folder has them too."""
    path = folder / "split.npz"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            parts = (arrays[name].astype(np.int64) for name in ("proper", "validation", "calibration"))
            return Split(*parts)
    except (KeyError, ValueError, OSError, EOFError) as error:
        raise CheckpointError(
            f"{path} cannot be read as the split of a training run: {error}. Train again with --no-resume."
        ) from error


def training_images(recipe: Recipe, data_root: Path | str | None = None) -> ImageSet:
    """The images that a recipe's split counts in."""
    images = load_images(f"{recipe.dataset}-train", data_root)
    return images.only(recipe.classes) if recipe.classes else images


def calibration_indices(split: Split, most: int = CALIBRATION_POINTS) -> NDArray[np.int64]:
    """At most this many of the held-out points, chosen at random by a fixed seed."""
    if len(split.calibration) <= most:
        return split.calibration
    return np.sort(np.random.default_rng(0).permutation(split.calibration)[:most])


@torch.no_grad()
def rounded(model: Equivariant) -> Equivariant:
    """M with its convolutions and matrices at half precision, so that they can be stored in half the room. Scores are
    computed in single precision, before and after saving alike."""
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.copy_(weight.half())
    return model


def build_trained_scorer(recipe: Recipe, run_folder: Path, device: torch.device) -> ImageScorer:
    """M of the run's best epoch with the recipe's G, base NCM and preprocessing."""
    model = blank_model(recipe.model)
    load_weights(run_folder / "best.safetensors", model)
    model = rounded(model)
    names = class_names(recipe.dataset) if recipe.task == "label" else ()
    return ImageScorer(
        model, recipe.transforms, recipe.base_ncm, Preprocessing(recipe.size, recipe.grey), device, names
    )


def finish(
    recipe: Recipe,
    run_folder: Path | str,
    out_folder: Path | str,
    *,
    data_root: Path | str | None = None,
    images: ImageSet | None = None,
    device: torch.device | str | None = None,
    n_max: int = N_MAX,
    calibration_points: int = CALIBRATION_POINTS,
    progress: Callable[[int, int], None] | None = None,
) -> Detector:
    """Calibrate the trained model on the run's held-out points and save it as a detector folder.

    `progress` is called with (points scored, points).
    """
    run_folder, out_folder = Path(run_folder), Path(out_folder)
    log = read_log(run_folder / "log.jsonl")
    split = read_split(run_folder)
    images = images if images is not None else training_images(recipe, data_root)
    if len(images) != sum(map(len, (split.proper, split.validation, split.calibration))):
        raise DataError(
            f"{run_folder} was trained on another version of {recipe.dataset}: expected "
            f"{sum(map(len, (split.proper, split.validation, split.calibration)))} images, got {len(images)}. "
            "Use the data that it was trained on."
        )
    scorer = build_trained_scorer(recipe, run_folder, choose_device(device))
    held_out = images.take(calibration_indices(split, calibration_points))
    detector = Detector.calibrate(
        recipe.name,
        scorer,
        held_out.x,
        n_max=n_max,
        summary=SUMMARIES.get(recipe.dataset, recipe.dataset),
        progress=None if progress is None else lambda done: progress(done, len(held_out)),
    )
    best = min(log, key=lambda entry: entry.validation_loss)
    record = TrainingRecord(
        recipe=recipe.name,
        dataset=recipe.dataset,
        task=recipe.task,
        epochs=len(log),
        best_epoch=best.epoch + 1,
        hours=round(sum(entry.seconds for entry in log) / 3600, 3),
        validation_loss=round(best.validation_loss, 5),
        validation_accuracy=None if best.validation_accuracy is None else round(best.validation_accuracy, 4),
        test_accuracy=label_accuracy(recipe, scorer, data_root),
        proper_training_points=len(split.proper),
        validation_points=len(split.validation),
        calibration_points=len(held_out),
        seed=recipe.seed,
        settings={**_plain(recipe), "transforms": transform_settings(recipe.transforms)},
    )
    write_json(out_folder / "training.json", asdict(record))
    write_npz(
        out_folder / "split.npz", {name: indices.astype(np.int32) for name, indices in vars(split).items()}
    )
    write_text(out_folder / "log.jsonl", (run_folder / "log.jsonl").read_text(encoding="utf-8"))
    write_text(
        out_folder / "learning-curve.svg", learning_curve_svg([asdict(entry) for entry in log], recipe.name)
    )
    save_detector(detector, out_folder)
    return detector


def _plain(recipe: Recipe) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    return fields


def read_training(folder: Path | str) -> TrainingRecord | None:
    """training.json of a detector folder; None where there is none (merged detectors, detectors of your own)."""
    path = Path(folder) / "training.json"
    if not path.exists():
        return None
    try:
        return TrainingRecord(**json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read as a training record: {error}. Train again.") from error


def label_accuracy(recipe: Recipe, scorer: ImageScorer, data_root: Path | str | None) -> float | None:
    """Share of the test set that a classifier names right; None for other tasks or without the test set."""
    if recipe.task != "label":
        return None
    try:
        test = load_images(f"{recipe.dataset}-test", data_root)
    except DataError:
        return None
    right = 0
    with torch.inference_mode():
        for start in range(0, len(test), EVALUATION_BATCH):
            x = scorer.tensor(list(test.x[start : start + EVALUATION_BATCH]))
            answers = (
                scorer.model.decode(None, scorer.model.encode(x)[:, None])[:, 0].argmax(dim=-1).cpu().numpy()
            )
            right += int(np.count_nonzero(answers == test.y[start : start + EVALUATION_BATCH]))
    return round(right / len(test), 4)
