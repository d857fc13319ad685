"""A detector from a user's own files, before the work begins: what was found, what will be done, how long it takes, and what
determines the run; and after it: what was made, and how good it is, for people and for programs."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from idecode_core.conformal import flagging_rank, k_needed
from idecode_core.detector import Detector
from idecode_core.files import write_text
from idecode_core.files.shown import Report
from idecode_core.folder.detector import Writer
from idecode_core.folder.record import FILES
from idecode_core.folder.settings import checkpoint_root
from idecode_core.image.features import Preprocessing
from idecode_core.quality.score_sets import SetToScore
from idecode_core.quality.user_data import EPSILON, UserResult
from idecode_core.scorers.features import Features
from idecode_core.training import fit_distance, plan
from idecode_core.training.plan import Plan, in_words
from idecode_core.training.run_state import fingerprint, run_folder
from idecode_core.training.tasks import Task, make_task
from idecode_core.training.user_files import Scan
from idecode_core.training.user_parts import (
    SHARES,
    SOURCE,
    UserSplit,
    files_table,
    small_image_parts,
    sound_parts,
)

FEW = 300
"""Files below which keeping some for calibration costs much."""
PURPOSES = {"proper": "to fit", "validation": "to validate", "calibration": "to calibrate", "test": "to test"}


@dataclass(frozen=True, eq=False, repr=False)
class FolderWork:
    """Everything that is settled before the work begins, in words and in numbers."""

    source: Path
    out: Path
    scanned: Scan
    parts: UserSplit
    plan: Plan
    device: torch.device
    outside: list[SetToScore]
    """What does not belong, to test with."""
    known: list[SetToScore]
    """What does not belong and chooses the model; none of it tests."""
    inputs: tuple[Path | str, ...]
    """What is read, and so is never replaced."""
    summary: str
    seed: int
    resume: bool
    replace: bool
    runs: Path
    report: Report | None = None

    def sentences(self, *, in_app: bool = False) -> list[str]:
        """What was found, what will be done, and how long it takes; for people, who have no commands in the app."""
        sizes = ", ".join(f"{count:,} {PURPOSES[name]}" for name, count in self.sizes.items() if count)
        return [
            *self.scanned.sentences(),
            self.plan.words(),
            f"Parts: {sizes}.",
            *([self.learning] if self.known else []),
            *filter(None, (self.too_few, self.few(in_app=in_app))),
            *([f"Goes on with the unfinished run in {self.run}."] if self.goes_on else []),
            f"Expected time: {in_words(self.seconds)} on {self.device}.",
        ]

    def __repr__(self) -> str:
        return f"FolderPlan({self.out.name!r}, {self.plan.model}, {len(self.scanned.files):,} files, {in_words(self.seconds)})"

    @property
    def learning(self) -> str:
        """What known outliers do, for people."""
        choose, others = (sum(map(len, sets)) for sets in (self.known, self.outside))
        return (
            f"Known outliers: {choose:,} may choose another model, {others:,} others test it and measure what that gains. None of them "
            "calibrates, and no file that calibrates or tests chooses: the bound is what it is without them."
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Files in each part."""
        return {name: len(indices) for name, indices in self.parts.parts()}

    @property
    def too_few(self) -> str:
        """What is known before any work: with so few files nothing can be flagged at the usual epsilon. "" else."""
        k = self.sizes["calibration"]
        if flagging_rank(k, EPSILON) > 0:
            return ""
        share = SHARES["calibration"][0] + (0 if self.plan.validates else SHARES["validation"][0])
        return (
            f"Too few files: with {k} to calibrate, no p-value is below {1 / (k + 1):.2g}, so epsilon = {EPSILON:g} never flags "
            f"anything. Bring at least {int(np.ceil(k_needed(EPSILON) / share))} files, or use an epsilon above {1 / (k + 1):.2g}."
        )

    def few(self, *, in_app: bool) -> str:
        """What else can be done with few files; "" for many."""
        count, judges = len(self.scanned.files), self.scanned.modality == "audio" or plan.is_available()
        if count >= FEW or not (in_app or judges):
            return ""
        way = (
            f"bring more, or choose Calibrate in place of Train: all {count} then calibrate the chosen detector"
            if in_app
            else f"`train --judge NEW` judges new files at once without a detector; all {count} then fit and calibrate"
        )
        return f"Fewer than {FEW} files: {way}, and the smallest p-value is {1 / (count + 1):.2g}, not {1 / (self.sizes['calibration'] + 1):.2g}."

    @cached_property
    def seconds(self) -> float:
        """About how long the work takes, measured on a few steps."""
        scored = self.sizes["calibration"] + self.sizes["test"] + sum(map(len, self.outside))
        if self.scanned.modality == "audio" and not self.plan.trains:
            return 0.1 * scored
        if not self.plan.is_frozen:
            return 1.2 * plan.seconds_to_train(self.task)
        named = self.sizes["calibration"] if self.scanned.classes else 0
        fitted = self.plan.fit_draws * self.sizes["proper"] * (2 if self.known else 1)
        views = fitted + named + plan.N_MAX * scored
        return 1.5 * views * fit_distance.seconds_per_variant(self.features)

    @property
    def stages(self) -> Mapping[str, float]:
        """What `report` will be called with, in its order, and about how much of the work each is."""
        tested = {"yours-test": self.sizes["test"], **{ood.name: len(ood) for ood in self.outside}}
        scored = {"calibrating": self.sizes["calibration"], **tested}
        if self.scanned.modality == "audio" and not self.plan.trains:
            return {name: float(count) for name, count in scored.items()}
        if not self.plan.is_frozen:  # as `seconds` has it, all but a sixth
            return {"training": 5.0 * sum(scored.values()), **scored}
        named = {"naming classes": self.sizes["calibration"]} if self.scanned.classes else {}
        tried = {"trying": 5.0 * fit_distance.MOST_FITTED} if self.plan.candidates else {}
        fitted = tried | {"fitting": self.plan.fit_draws * self.sizes["proper"], **named}
        fitted |= {"measuring": fitted["fitting"]} if self.known else {}
        return fitted | {name: plan.N_MAX * count for name, count in scored.items()}

    @cached_property
    def features(self) -> Features:
        """Of a plan with a frozen network."""
        return fit_distance.features_of(self.plan, self.device)

    @cached_property
    def task(self) -> Task:
        """Of a plan that trains a network of its own."""
        recipe = plan.user_recipe(self.plan, self.scanned, self.out.name, self.summary, self.seed)
        shows = recipe.shows
        parts: Any
        if self.scanned.modality == "audio":
            parts = sound_parts(self.scanned, self.parts, shows.features)
        else:
            parts = small_image_parts(self.scanned, self.parts, Preprocessing(shows.size, shows.grey))
        return make_task(recipe, parts, self.device)

    @cached_property
    def work(self) -> dict[str, Any]:
        """All that determines what the run makes, ready for JSON."""
        listed = files_table(self.scanned, self.parts) + self.scanned.left_out
        work = {
            "files": hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest(),
            "outside": {ood_set.name: fingerprint(ood_set.points) for ood_set in self.outside},
            "known": {ood_set.name: fingerprint(ood_set.points) for ood_set in self.known},
            "plan": asdict(self.plan),
            "settings": self.settings,
            "summary": self.summary,
            "seed": self.seed,
        }
        plain: dict[str, Any] = json.loads(json.dumps(work))
        return plain

    @cached_property
    def run(self) -> Path:
        """Where the run keeps what is done."""
        return run_folder(self.runs, self.out.name, self.work)

    @property
    def made(self) -> Path:
        """The detector folder while it grows."""
        return self.run / "made" / self.out.name

    @property
    def goes_on(self) -> bool:
        """Whether a run of the same work was begun and not finished."""
        try:
            stored = json.loads((self.run / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return self.resume and bool(stored == self.work)

    @property
    def settings(self) -> dict[str, Any]:
        """What a training record says beyond the recipe."""
        return {
            SOURCE: str(self.source),
            "modality": self.scanned.modality,
            "labels": "folders" if self.scanned.classes else "none",
            "class_names": list(self.scanned.classes),
            "files": len(self.scanned.files),
            "broken": len(self.scanned.broken),
            "copies": len(self.scanned.copies),
            "plan": self.plan.words(),
        }

    @property
    def files_beside(self) -> dict[str, Writer]:
        listed = files_table(self.scanned, self.parts, self.known)
        files: dict[str, Writer] = {FILES: lambda path: write_text(path, listed)}
        if self.scanned.left_out:
            files["left-out.txt"] = lambda path: write_text(path, self.scanned.left_out)
        return files


@dataclass(frozen=True, eq=False, repr=False)
class TrainedFolder:
    """A finished detector of a user's own files."""

    detector: Detector
    folder: Path
    plan: Plan
    parts: Mapping[str, int]
    """Files in each: proper, validation, calibration, test."""
    result: UserResult
    """What was measured on the test files and on what does not belong."""
    taken: str
    """Which model it is."""
    choice: str = ""
    """Which model was taken, and why; "" where there was no choice."""

    @property
    def weak(self) -> tuple[str, ...]:
        """A sentence for each weakness, with what to try."""
        return self.result.weak

    def sentences(self) -> list[str]:
        """The result for people."""
        rate = self.result.false_detections
        listed = self.folder.resolve().parent == checkpoint_root().resolve()
        use = f"{self.folder.name}; the app lists it" if listed else str(self.folder)
        return [
            *([self.choice] if self.choice else []),
            f"At epsilon = {rate.epsilon:g}: {rate.rate:.1%} of your test files are flagged.",
            *(f"  {ood}" for ood in self.result.against),
            *self.result.failure,
            *(f"Weak: {sentence}" for sentence in self.weak),
            f"{self.folder}: ready. Use it with --detector {use}. The report: {self.folder / 'report.html'}",
        ]

    def record(self) -> dict[str, Any]:
        """The result for programs, ready for JSON."""
        return {
            "detector": str(self.folder),
            "model": self.taken,
            "choice": self.choice,
            "parts": dict(self.parts),
            "false_detections": asdict(self.result.false_detections),
            "against": [asdict(ood) for ood in self.result.against],
            "failed": self.result.failed,
            "weak": list(self.weak),
        }

    def __repr__(self) -> str:
        best = ", ".join(f"{ood.label} {100 * ood.auroc:.1f} %" for ood in self.result.against[:3])
        return f"TrainedFolder({self.folder.name!r}, {self.taken}, k = {self.parts['calibration']}, AUROC: {best})"
