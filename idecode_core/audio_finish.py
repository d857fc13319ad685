"""From a recipe to an audio detector's folder: train, calibrate on held-out clips, save, write the card."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.audio_parts import Parts
from idecode_core.audio_recipes import AudioRecipe
from idecode_core.audio_training import read_audio_log, train_audio
from idecode_core.checkpoint import save_detector
from idecode_core.detector import Detector
from idecode_core.files import write_json, write_text
from idecode_core.training import ProgressHook

N_MAX = 20
SUMMARIES = {
    "animals": "ESC-50: animal sounds",
    "nature": "ESC-50: natural soundscapes and water",
    "human": "ESC-50: human sounds that are not speech",
    "domestic": "ESC-50: sounds inside of a home",
    "urban": "ESC-50: sounds outdoors in a city",
    "": "Spoken English digits, made with espeak-ng",
}


def make_audio_detector(
    recipe: AudioRecipe,
    parts: Parts,
    run_folder: Path,
    out_folder: Path,
    *,
    device: torch.device | str = "cpu",
    epochs: int | None = None,
    resume: bool = True,
    progress: ProgressHook | None = None,
    scored: Callable[[int], None] | None = None,
) -> Detector:
    """Train, calibrate and save; `scored` is called with the number of calibration clips done."""
    scorer = train_audio(
        recipe, run_folder, parts.training, device=device, epochs=epochs, resume=resume, progress=progress
    )
    detector = Detector.calibrate(
        recipe.name,
        scorer,
        parts.calibration.clips,
        n_max=N_MAX,
        summary=SUMMARIES.get(recipe.part, f"FSDnoisy18k: set {recipe.part}"),
        progress=scored,
    )
    log = read_audio_log(run_folder / "log.jsonl")
    record = {
        "recipe": asdict(recipe),
        "training_points": len(parts.training),
        "calibration_points": len(parts.calibration),
        "epochs": len(log),
        "hours": round(sum(entry.seconds for entry in log) / 3600, 3),
        "training_accuracy": round(log[-1].accuracy, 4),
        "test_points": len(parts.test),
        "test_accuracy": accuracy(scorer.shares(parts.test.clips), parts.test.y),
        "calibration_accuracy": accuracy(scorer.shares(parts.calibration.clips), parts.calibration.y),
    }
    write_json(out_folder / "recipe.json", json.loads(json.dumps(record)))
    write_text(out_folder / "log.jsonl", (run_folder / "log.jsonl").read_text(encoding="utf-8"))
    save_detector(detector, out_folder)
    return detector


def accuracy(shares: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Share of clips whose largest softmax output is their class."""
    return round(float((shares.argmax(axis=1) == y).mean()), 4)
