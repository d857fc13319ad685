"""A detector from a user's own files: look at them, plan and say so, fit or train, calibrate, test, write card and report.

What takes time is kept in a run's folder, so a stopped run goes on where it was; the detector's folder appears when all is done.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from idecode_core.conformal import flagging_rank, k_needed
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.files import write_json, write_text
from idecode_core.files.names import NOUNS, printable
from idecode_core.folder.detector import Writer, load_detector
from idecode_core.folder.place import new_place, write_detector_folder
from idecode_core.folder.record import FILES, LOG
from idecode_core.folder.settings import checkpoint_root
from idecode_core.folder.shelf import CALIBRATION, DRAWS_PER_RUN
from idecode_core.folder.stored import open_stored
from idecode_core.image.features import Preprocessing
from idecode_core.quality.score_sets import score_test_sets
from idecode_core.quality.sets import SetToScore
from idecode_core.quality.user_data import EPSILON, UserResult, user_result
from idecode_core.report.card import learning_curve, write_card
from idecode_core.report.user_data import write_own_report
from idecode_core.scorers.features import Features
from idecode_core.training import fit_distance, plan
from idecode_core.training.finish import RUNS, device_of_process, train_and_finish
from idecode_core.training.fit_distance import Fitted, Known
from idecode_core.training.fit_sounds import fit_sounds
from idecode_core.training.loop import ProgressHook, train, training_pflop
from idecode_core.training.plan import Plan, in_words
from idecode_core.training.run_folder import fingerprint, held, run_folder
from idecode_core.training.run_state import BEST, STATE, World
from idecode_core.training.tasks import AudioTask, Task, make_task
from idecode_core.training.user_files import Report, Scan, scan, sets_outside, split_known
from idecode_core.training.user_parts import (
    SHARES,
    SOURCE,
    UserSplit,
    file_parts,
    files_table,
    small_image_parts,
    sound_parts,
    split_own,
    user_dataset,
)

PIECES = ("fitting", "naming classes", "measuring", "calibrating", "made")
"""What a run keeps of the work that is done."""
FAILED = "Failed: it tells your files from nothing that it was tried on. Do not rely on it."
AT_CHANCE = (
    "Failed: its network answers no better than chance even on the files that it learned from. Do not rely on it: bring more "
    "files, or name another --model."
)
PURPOSES = {"proper": "to fit", "validation": "to validate", "calibration": "to calibrate", "test": "to test"}


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
            *(f"  {one}" for one in self.result.against),
            *([AT_CHANCE if self.result.at_chance else FAILED] if self.result.failed else []),
            *(f"Weak: {sentence}" for sentence in self.weak),
            f"{self.folder}: ready. Use it with --detector {use}. The report: {self.folder / 'report.html'}",
        ]

    def record(self) -> dict[str, Any]:
        """The result for programs, ready for JSON."""
        return {
            "detector": str(self.folder),
            "model": self.plan.model,
            "choice": self.choice,
            "parts": dict(self.parts),
            "false_detections": asdict(self.result.false_detections),
            "against": [asdict(one) for one in self.result.against],
            "failed": self.result.failed,
            "weak": list(self.weak),
        }

    def __repr__(self) -> str:
        best = ", ".join(f"{one.label} {100 * one.auroc:.1f} %" for one in self.result.against[:3])
        return f"TrainedFolder({self.folder.name!r}, {self.plan.model}, k = {self.parts['calibration']}, AUROC: {best})"


@dataclass(frozen=True, eq=False, repr=False)
class FolderPlan:
    """Everything that is settled before the work begins; `train` does it."""

    source: Path
    out: Path
    found: Scan
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

    def sentences(self) -> list[str]:
        """What was found, what will be done, and how long it takes; for people."""
        sizes = ", ".join(f"{count:,} {PURPOSES[name]}" for name, count in self.sizes.items() if count)
        return [
            *self.found.sentences(),
            self.plan.words(),
            f"Parts: {sizes}.",
            *([self.learning] if self.known else []),
            *([self.too_few] if self.too_few else []),
            *([f"Goes on with the unfinished run in {self.run}."] if self.goes_on else []),
            f"Expected time: {in_words(self.seconds)} on {self.device}.",
        ]

    def __repr__(self) -> str:
        return f"FolderPlan({self.out.name!r}, {self.plan.model}, {len(self.found.files):,} files, {in_words(self.seconds)})"

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
            f"anything. Bring at least {int(np.ceil(k_needed(EPSILON) / share))} files, or use an epsilon above {1 / (k + 1):.2g}. A model of "
            "your own that is cheap to fit can use each file for both, with a looser bound: `certify --folds`."
        )

    @cached_property
    def seconds(self) -> float:
        """About how long the work takes, measured on a few steps."""
        scored = self.sizes["calibration"] + self.sizes["test"] + sum(map(len, self.outside))
        if self.found.modality == "audio" and not self.plan.trains:
            return 0.1 * scored
        if not self.plan.is_frozen:
            return 1.2 * plan.seconds_to_train(self.task)
        named = self.sizes["calibration"] if self.found.classes else 0
        fitted = self.plan.fit_draws * self.sizes["proper"] * (2 if self.known else 1)
        views = fitted + named + plan.N_MAX * scored
        return 1.5 * views * fit_distance.seconds_per_variant(self.features)

    @property
    def stages(self) -> Mapping[str, float]:
        """What `report` will be called with, in its order, and about how much of the work each is."""
        tested = {"yours-test": self.sizes["test"], **{one.name: len(one) for one in self.outside}}
        scored = {"calibrating": self.sizes["calibration"], **tested}
        if self.found.modality == "audio" and not self.plan.trains:
            return {name: float(count) for name, count in scored.items()}
        if not self.plan.is_frozen:  # as `seconds` has it, all but a sixth
            return {"training": 5.0 * sum(scored.values()), **scored}
        named = {"naming classes": self.sizes["calibration"]} if self.found.classes else {}
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
        recipe = plan.user_recipe(self.plan, self.found, self.out.name, self.summary, self.seed)
        shows = recipe.shows
        parts: Any
        if self.found.modality == "audio":
            parts = sound_parts(self.found, self.parts, shows.features)
        else:
            parts = small_image_parts(self.found, self.parts, Preprocessing(shows.size, shows.grey))
        return make_task(recipe, parts, self.device)

    @cached_property
    def work(self) -> dict[str, Any]:
        """All that determines what the run makes, ready for JSON."""
        listed = files_table(self.found, self.parts) + self.found.left_out
        work = {
            "files": hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest(),
            "outside": {one.name: fingerprint(one.points) for one in self.outside},
            "known": {one.name: fingerprint(one.points) for one in self.known},
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
            "modality": self.found.modality,
            "labels": "folders" if self.found.classes else "none",
            "class_names": list(self.found.classes),
            "files": len(self.found.files),
            "broken": len(self.found.broken),
            "copies": len(self.found.copies),
            "plan": self.plan.words(),
        }

    @property
    def beside(self) -> dict[str, Writer]:
        listed = files_table(self.found, self.parts, self.known)
        files: dict[str, Writer] = {FILES: lambda path: write_text(path, listed)}
        if self.found.left_out:
            files["left-out.txt"] = lambda path: write_text(path, self.found.left_out)
        return files

    def train(self, report: Report | None = None) -> TrainedFolder | None:
        """Do it; see `train_folder`. Of several processes under torchrun only the first one gets a result."""
        world = World.join()
        if self.plan.is_frozen:
            if not world.is_first:
                return None  # nothing is trained that several processes could share
            world = World()
        with held(self.run, world):
            if world.is_first:
                self._prepare()
            if world.size > 1:
                torch.distributed.barrier()  # the others must not read what the first one removes
            detector = self._detector(world, report)
            return None if detector is None else self._finished(detector, report)

    def _prepare(self) -> None:
        """Unless an unfinished run goes on: begin anew with nothing left of it."""
        if self.goes_on:
            return
        for name in PIECES:
            shutil.rmtree(self.run / name, ignore_errors=True)
        for name in (STATE, BEST, LOG, "split.npz"):
            (self.run / name).unlink(missing_ok=True)
        write_json(self.run / "run.json", self.work)

    def _detector(self, world: World, report: Report | None) -> Detector | None:
        """The detector, in its growing folder; of several processes for the first one."""
        if (self.made / "config.json").is_file():
            return load_detector(self.made, self.device) if world.is_first else None
        if self.plan.is_frozen:
            return self._made(
                lambda: fit_distance.fit(
                    self.plan,
                    self.features,
                    file_parts(self.found, self.parts),
                    self.found.classes,
                    self.run,
                    report,
                    self._known(),
                ),
                self.settings,
                report,
            )
        epochs, settings = self.task.recipe.epochs, self.settings

        def step(epoch: int, step: int, steps: int, loss: float) -> None:
            if report is not None and world.is_first:
                report("training", epoch * steps + step + 1, epochs * steps)

        if self.found.modality == "audio":
            return self._sounds(world, step, report)
        return train_and_finish(
            self.task,
            self.run,
            self.made,
            resume=self.resume,
            world=world,
            step=step,
            report=report,
            beside=self.beside,
            dataset="",
            settings=settings,
        )

    def _sounds(self, world: World, step: ProgressHook, report: Report | None) -> Detector | None:
        task = self.task
        assert isinstance(task, AudioTask)
        model = train(task, self.run, resume=self.resume, progress=step) if self.plan.trains else None
        world.leave()  # the rest is for the first one alone
        if not world.is_first:
            return None
        settings = self.settings | {"class_names": list(task.parts.training.classes)}
        if model is not None:
            settings = (
                task.recipe.settings()
                | {"training_pflop": training_pflop(task, task.recipe.epochs)}
                | settings
            )
        return self._made(
            lambda: fit_sounds(self.plan, task, model, self.seed, self._known()), settings, report
        )

    def _known(self) -> Known | None:
        """Decoded, those that choose and the others."""
        if not self.known:
            return None
        choose, measure = (
            [point for one in sets for point in one.points] for sets in (self.known, self.outside)
        )
        return Known(choose, measure)

    def _made(
        self, fitted: Callable[[], Fitted], settings: Mapping[str, Any], report: Report | None
    ) -> Detector:
        """Fitted, calibrated and saved."""
        curve = learning_curve(self.run, self.out.name) if (self.run / LOG).is_file() else {}
        return fit_distance.make_own(
            self.plan,
            fitted,
            file_parts(self.found, self.parts),
            self.run,
            self.made,
            name=self.out.name,
            dataset=user_dataset(self.found),
            summary=self.summary,
            device=self.device,
            seed=self.seed,
            settings=settings,
            beside={**curve, **self.beside},
            report=report,
        )

    def _finished(self, detector: Detector, report: Report | None) -> TrainedFolder:
        """Tested, described, and in its place."""
        score_tests(self, detector, report)
        stored = open_stored(self.made)
        result = user_result(stored)
        write_card(self.made, result)
        write_own_report(stored, result)
        write_detector_folder(
            self.out,
            lambda new: shutil.copytree(self.made, new, dirs_exist_ok=True),
            replace=self.replace,
            inputs=self.inputs,
        )
        write_json(self.run / "run.json", {**self.work, "finished": True})
        for name in PIECES:
            shutil.rmtree(self.run / name, ignore_errors=True)
        choice = "" if stored.training is None else str(stored.training.settings.get("choice", ""))
        return TrainedFolder(detector, self.out, self.plan, self.sizes, result, choice)


def score_tests(job: FolderPlan, detector: Detector, report: Report | None) -> None:
    """Store the scores of the test files and of what does not belong."""
    sets = [SetToScore("yours-test", False, job.found.listed(job.parts.test)), *job.outside]
    if job.found.modality == "audio":  # the softmax baseline of sounds is ranked among it
        sets.append(SetToScore(CALIBRATION, False, job.found.listed(job.parts.split.calibration)))
    score_test_sets(job.made, sets, draws=DRAWS_PER_RUN, report=report, detector=detector)


def plan_folder(
    source: Path | str,
    out: Path | str,
    *,
    audio: bool = False,
    labels: str | None = None,
    model: str | None = None,
    ood: Sequence[str | Path] = (),
    learn_from_ood: bool = False,
    summary: str = "",
    seed: int = 0,
    epochs: int | None = None,
    resume: bool = True,
    replace: bool = False,
    device: str | None = None,
    report: Report | None = None,
    runs: Path | str = RUNS,
) -> FolderPlan:
    """Look at a user's files and plan: what was found and is left out, which model, which parts, how long. `FolderPlan.train` does
    it; `train_folder` says what the arguments mean."""
    source, others = Path(source), [str(one) for one in ood]
    if learn_from_ood and not others:
        raise SettingError(
            "--learn-from-ood learns from files that do not belong: name them with --ood, or leave it out."
        )
    place = new_place(Path(out), replace, (source, *others))
    on = device_of_process(device)
    found = scan(source, "audio" if audio else "image", labels, report)  # type: ignore[arg-type]
    parts = split_own(found, seed)
    chosen = plan.choose(found, parts, on, model, epochs, learn_from_ood)
    if not chosen.validates:
        parts = split_own(found, seed, validates=False)
    outside = sets_outside(others, found, report)
    known, outside = split_known(outside, seed) if learn_from_ood else ([], outside)
    belongs = summary or printable(f"{NOUNS[found.modality].capitalize()}s like those of {source.stem}")
    return FolderPlan(
        source,
        place,
        found,
        parts,
        chosen,
        on,
        outside,
        known,
        (source, *others),
        belongs,
        seed,
        resume,
        replace,
        Path(runs),
    )


def train_folder(
    source: Path | str,
    out: Path | str,
    *,
    audio: bool = False,
    labels: str | None = None,
    model: str | None = None,
    ood: Sequence[str | Path] = (),
    learn_from_ood: bool = False,
    summary: str = "",
    seed: int = 0,
    epochs: int | None = None,
    resume: bool = True,
    replace: bool = False,
    device: str | None = None,
    report: Report | None = None,
    runs: Path | str = RUNS,
) -> TrainedFolder:
    """A detector of the files in a folder, or of those that a CSV names: all that `idecode train FOLDER` does.

    `out` is the new detector: a bare name puts it among the app's, a path there; one that is there stays, unless `replace`.
    `labels` are "folders" or "none", found out if left out; `model` is mahalanobis, neighbours, patches or rotations (pictures) or
    classifier, statistics or both (sounds), chosen if left out. `ood` are folders, CSVs or datasets of what does not belong, to test with; else sets
    that come with the project. `seed` splits the files.

    With `learn_from_ood` a random half of each `ood` set chooses between the models that there are (the distances of the frozen
    network; for sounds classifier, statistics or both), and the other half tests. Promised: the bound, whatever the outliers are,
    because only they and files to fit or validate choose, and no file that calibrates or tests. `choice` says what it gained, on
    outliers and test files that had no part in the choice. Not promised: that anything is gained, least of all against kinds that are
    unlike the known ones; nor that calibration gets finer, for known outliers do not calibrate.

    `report` is called with (what is being done, how much of it is done, how much there is): reading, fitting or training,
    calibrating, then the name of each test set. Whatever it raises stops the work, which goes on later where it was: the run is
    kept in `runs`, unless `resume` is False.
    """
    job = plan_folder(
        source,
        out,
        audio=audio,
        labels=labels,
        model=model,
        ood=ood,
        learn_from_ood=learn_from_ood,
        summary=summary,
        seed=seed,
        epochs=epochs,
        resume=resume,
        replace=replace,
        device=device,
        report=report,
        runs=runs,
    )
    trained = job.train(report)
    assert trained is not None  # but in the further processes of torchrun, which the command starts
    return trained
