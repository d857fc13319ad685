"""From a finished training run to a detector folder: the M that was kept, calibrated on the held-out points.

The folder also gets the run's split, its log and `training.json`, from which a card is written.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from idecode_core.detector import Detector
from idecode_core.errors import DataError
from idecode_core.files import write_json, write_npz, write_text
from idecode_core.folder.detector import Writer, save_detector
from idecode_core.folder.training_record import TrainingRecord, read_split, same_split
from idecode_core.scorer import Progress
from idecode_core.training.choices import CHOICES
from idecode_core.training.run_state import BEST, LOG, kept_epoch, load_weights, read_log
from idecode_core.training.tasks import Task

N_MAX = 20


def finish(
    task: Task,
    run_folder: Path | str,
    out_folder: Path | str,
    *,
    n_max: int = N_MAX,
    progress: Progress | None = None,
    dataset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    beside: Mapping[str, Writer] | None = None,
) -> Detector:
    """Calibrate the trained model on the calibration set and save it as a detector folder.

    A user's own data give no public `dataset` ("") and more `settings` for the record. `beside` are files that lie with it, such as
    the learning curve.
    """
    run_folder, out_folder = Path(run_folder), Path(out_folder)
    recipe, parts = task.recipe, task.parts
    if not same_split(split := read_split(run_folder), parts.split):
        raise DataError(
            f"{run_folder} was trained on another version of {recipe.dataset}: expected {split.points} points in its "
            f"split, got {parts.split.points}. Use the data that it was trained on."
        )
    scorer = task.scorer(load_weights(run_folder / BEST, task.blank()))
    detector = Detector.calibrate(
        recipe.name,
        scorer,
        parts.calibration.samples,
        n_max=n_max,
        summary=recipe.summary or recipe.dataset,
        dataset=recipe.in_distribution if dataset is None else dataset,
        progress=progress,
    )
    log = read_log(run_folder)
    kept = kept_epoch(log)

    def named_right(part: Any) -> float | None:
        """Share of a part that a classifier names right."""
        if not recipe.learns_labels or part is None:
            return None
        return float(np.mean(scorer.logits(part.samples).argmax(dim=1).numpy() == part.y))

    record = TrainingRecord(
        recipe=recipe.name,
        dataset=recipe.dataset,
        task=recipe.shows.task,
        epochs=len(log),
        best_epoch=kept.epoch + 1,
        hours=round(sum(entry.seconds for entry in log) / 3600, 3),
        machine=machine(task.device),
        training_accuracy=short(kept.accuracy, 4),
        validation_loss=short(kept.validation_loss, 5),
        validation_accuracy=short(kept.validation_accuracy, 4),
        calibration_accuracy=short(named_right(parts.calibration), 4),
        test_accuracy=short(named_right(parts.test), 4),
        proper_training_points=len(parts.training),
        validation_points=len(parts.validation),
        calibration_points=len(parts.calibration),
        test_points=0 if parts.test is None else len(parts.test),
        seed=recipe.seed,
        settings={**recipe.settings(), **(settings or {})},
    )
    indices = {name: chosen.astype(np.int32) for name, chosen in vars(split).items()}
    files: dict[str, Writer] = {
        "training.json": lambda path: write_json(path, asdict(record)),
        "split.npz": lambda path: write_npz(path, indices),
        LOG: lambda path: write_text(path, (run_folder / LOG).read_text(encoding="utf-8")),
        **(beside or {}),
    }
    save_detector(detector, out_folder, beside=files, choice=CHOICES.get(recipe.name, ""))
    return detector


def short(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def machine(device: torch.device) -> str:
    """What the training ran on, in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{threads} CPU thread{'s' * (threads > 1)}" if device.type == "cpu" else device.type
