"""From a recipe to a detector folder: the M that was kept, calibrated on the held-out points.

The folder also gets the run's split, its log and `training.json`, from which a card is written.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from idecode_core.detector import Detector
from idecode_core.device import choose_device
from idecode_core.errors import DataError
from idecode_core.files import write_json, write_npz, write_text
from idecode_core.files.shown import Report, progress_of
from idecode_core.folder.detector import Writer, save_detector
from idecode_core.folder.place import new_place
from idecode_core.folder.record import (
    LOG,
    EpochLog,
    TrainingRecord,
    kept_epoch,
    read_log,
    read_split,
    same_split,
)
from idecode_core.report.card import learning_curve, write_card
from idecode_core.scorer import Progress
from idecode_core.training.loop import ProgressHook, train, training_pflop
from idecode_core.training.parts import Parts, load_parts
from idecode_core.training.recipes import get_recipe
from idecode_core.training.run_state import BEST, World, held, load_weights, recipe_work, run_folder
from idecode_core.training.tasks import Task, make_task

N_MAX = 20
RUNS = Path("runs")


def train_recipe(
    name: str,
    out: Path | str | None = None,
    *,
    data_root: Path | str | None = None,
    epochs: int | None = None,
    resume: bool = True,
    replace: bool = False,
    device: str | None = None,
    step: Callable[[Path, int], ProgressHook] | None = None,
    report: Report | None = None,
) -> tuple[Path, Detector | None]:
    """All that `idecode train RECIPE` does: the detector and its folder. Of several processes under torchrun only the first one
    gets a detector. `step`, with the run's folder and the number of epochs, gives what is called after each step."""
    place, recipe, world = new_place(out or name, replace), get_recipe(name), World.join()
    task = make_task(recipe, load_parts(recipe, data_root), device_of_process(device))
    epochs = epochs or recipe.epochs
    run = run_folder(RUNS, place.name, recipe_work(task, epochs))
    with held(run, world):
        hook = step(run, epochs) if step and world.is_first else None
        detector = train_and_finish(
            task,
            run,
            place,
            epochs=epochs,
            resume=resume,
            world=world,
            step=hook,
            report=report,
            replace=replace,
        )
    if detector is not None:
        write_card(place)
    return place, detector


def device_of_process(device: str | None) -> torch.device:
    """As asked for; else one GPU per process under torchrun, else the best there is."""
    if device is None and "LOCAL_RANK" in os.environ and choose_device().type == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
    return choose_device(device)


def train_and_finish(
    task: Task,
    run: Path,
    out: Path,
    *,
    epochs: int | None = None,
    resume: bool,
    world: World,
    step: ProgressHook | None = None,
    report: Report | None = None,
    beside: Mapping[str, Writer] | None = None,
    **options: Any,
) -> Detector | None:
    """Train, calibrate and save; of several processes only the first one saves."""
    train(task, run, epochs=epochs, resume=resume, progress=step)
    world.leave()  # the rest is for the first one alone, and may take long
    if not world.is_first:
        return None
    progress = progress_of(report, "calibrating", len(task.parts.calibration))
    files = {**learning_curve(run, task.recipe.name), **(beside or {})}
    return finish(task, run, out, beside=files, progress=progress, **options)


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
    replace: bool = True,
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

    def named_right(part: Any) -> float | None:
        """Share of a part that a classifier names right."""
        if not recipe.learns_labels or part is None:
            return None
        return float(np.mean(scorer.logits(part.samples).argmax(dim=1).numpy() == part.y))

    files = record_files(
        log,
        parts,
        task.device,
        recipe=recipe.name,
        dataset=recipe.dataset,
        task=recipe.shows.task,
        calibration_accuracy=short(named_right(parts.calibration), 4),
        test_accuracy=short(named_right(parts.test), 4),
        seed=recipe.seed,
        settings={**recipe.settings(), "training_pflop": training_pflop(task, len(log)), **(settings or {})},
    )
    files[LOG] = lambda path: write_text(path, (run_folder / LOG).read_text(encoding="utf-8"))
    save_detector(
        detector,
        out_folder,
        beside={**files, **(beside or {})},
        selection_leak=SELECTION_LEAKS.get(recipe.name, ""),
        replace=replace,
    )
    return detector


def record_files(
    log: Sequence[EpochLog], parts: Parts[Any], device: torch.device, *, seconds: float = 0.0, **fields: Any
) -> dict[str, Writer]:
    """training.json and split.npz of a detector folder. `log` is empty where no network was trained, `seconds` is what the work took
    besides, `fields` are what `TrainingRecord` has besides."""
    kept = kept_epoch(log) if log else EpochLog(-1, 0.0, 0.0)
    record = TrainingRecord(
        epochs=len(log),
        best_epoch=kept.epoch + 1,
        hours=round((seconds + sum(entry.seconds for entry in log)) / 3600, 3),
        machine=machine(device),
        training_accuracy=short(kept.accuracy, 4),
        validation_loss=short(kept.validation_loss, 5),
        validation_accuracy=short(kept.validation_accuracy, 4),
        proper_training_points=len(parts.training),
        validation_points=len(parts.validation),
        calibration_points=len(parts.calibration),
        test_points=0 if parts.test is None else len(parts.test),
        **fields,
    )
    indices = {name: chosen.astype(np.int32) for name, chosen in vars(parts.split).items()}
    return {
        "training.json": lambda path: write_json(path, asdict(record)),
        "split.npz": lambda path: write_npz(path, indices),
    }


def short(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def machine(device: torch.device) -> str:
    """What the training ran on, in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{threads} CPU thread{'s' * (threads > 1)}" if device.type == "cpu" else device.type


_ESC50 = (
    "Calibration clips were looked at while choosing: the classifier's training and base NCM were chosen among a handful by AUROC "
    "on fold 3, from which the calibration clips are drawn; the distance that it is merged with and their weights inside of folds 1 "
    "and 2. Fold 4, the test, was scored once before the distance was there, and once with it (docs/audio-findings.md)."
)
SELECTION_LEAKS = {
    "cifar10-rotations": (
        "Test scores were looked at while choosing: a first base NCM (familiarity with weight 4) was given up because it lost "
        "on three of the OOD test sets, and the present one was chosen on other points of the same sets. Read the AUROC as a "
        "little too good. Calibration points had no part in it, so the bound is untouched (docs/familiarity.md)."
    ),
    **{f"esc50-{name}": _ESC50 for name in ("animals", "nature", "human", "domestic", "urban")},
}
"""By recipe: what had a part in choosing its settings and should have had none, test scores or calibration points. `finish` stores
the sentence in config.json, from where the card takes it. A recipe that is not here was fixed without a look at either."""
