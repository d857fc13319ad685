"""A detector from a user's own files: look at them, plan and say so, fit or train, calibrate, test, write card and report.

What takes time is kept in a run's folder, so a stopped run goes on where it was; the detector's folder appears when all is done.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import torch

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.files import write_json
from idecode_core.files.names import NOUNS, printable
from idecode_core.files.shown import Report
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.place import new_place, write_detector_folder
from idecode_core.folder.record import LOG, read_log
from idecode_core.folder.shelf import CALIBRATION, DRAWS_PER_RUN
from idecode_core.folder.stored import open_stored
from idecode_core.models.pretrained import NAME
from idecode_core.quality.score_sets import SetToScore, score_test_sets
from idecode_core.quality.user_data import user_result
from idecode_core.report.card import learning_curve, write_card
from idecode_core.report.user_data import write_user_report
from idecode_core.training import fit_distance, plan
from idecode_core.training.choice import Fitted, Known
from idecode_core.training.finish import RUNS, device_of_process, record_files, short, train_and_finish
from idecode_core.training.fit_sounds import fit_sounds
from idecode_core.training.folder_work import FolderWork, TrainedFolder
from idecode_core.training.loop import ProgressHook, train, training_pflop
from idecode_core.training.plan import N_MAX
from idecode_core.training.run_state import BEST, STATE, World, held
from idecode_core.training.tasks import AudioTask
from idecode_core.training.user_files import scan, sets_outside, split_known
from idecode_core.training.user_parts import file_parts, split_user_files, user_dataset

PIECES = ("fitting", "naming classes", "measuring", "calibrating", "made")
"""What a run keeps of the work that is done."""


@dataclass(frozen=True, eq=False, repr=False)
class FolderPlan(FolderWork):
    """A plan that can be done: `train`."""

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
                    file_parts(self.scanned, self.parts),
                    self.scanned.classes,
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

        if self.scanned.modality == "audio":
            return self._sounds(world, step, report)
        return train_and_finish(
            self.task,
            self.run,
            self.made,
            resume=self.resume,
            world=world,
            step=step,
            report=report,
            beside=self.files_beside,
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
            [point for ood_set in sets for point in ood_set.points] for sets in (self.known, self.outside)
        )
        return Known(choose, measure)

    def _made(
        self, fit: Callable[[], Fitted], settings: Mapping[str, Any], report: Report | None
    ) -> Detector:
        """Fitted, calibrated on the held-out files and saved. A network that was trained before has left its log in the run."""
        began, parts, plan = time.monotonic(), file_parts(self.scanned, self.parts), self.plan
        fitted = fit()
        vectors = fit_distance.piece_by_piece(
            parts.calibration.samples,
            self.run / "calibrating",
            "calibrating",
            lambda piece: fitted.scorer.score(piece, n=N_MAX, seed=self.seed).score_vectors,
            report,
        )
        detector = Detector(self.out.name, fitted.scorer, Calibration(vectors, self.seed), self.summary)
        logged = (self.run / LOG).is_file()
        log = read_log(self.run) if logged else []
        network = {"network": NAME} if plan.is_frozen else {}
        choice = {"left_out": fitted.left_out, "tried": fitted.tried, "choice": fitted.words()}
        files = record_files(
            log,
            parts,
            self.device,
            seconds=time.monotonic() - began,
            recipe=fitted.taken,
            dataset=user_dataset(self.scanned),
            task="features" if plan.is_frozen else "block_label" if log else "statistics",
            calibration_accuracy=short(fitted.accuracy, 4),
            test_accuracy=None,
            seed=self.seed,
            settings={**settings, **asdict(plan), **network, **choice},
        )
        files |= {**(learning_curve(self.run, self.out.name) if logged else {}), **self.files_beside}
        save_detector(detector, self.made, beside=files)
        return detector

    def _finished(self, detector: Detector, report: Report | None) -> TrainedFolder:
        """Tested, described, and in its place."""
        score_tests(self, detector, report)
        stored = open_stored(self.made)
        result = user_result(stored)
        write_card(self.made, result)
        write_user_report(stored, result)
        write_detector_folder(
            self.out,
            lambda new: shutil.copytree(self.made, new, dirs_exist_ok=True),
            replace=self.replace,
            inputs=self.inputs,
        )
        write_json(self.run / "run.json", {**self.work, "finished": True})
        for name in PIECES:
            shutil.rmtree(self.run / name, ignore_errors=True)
        assert stored.training is not None
        choice = str(stored.training.settings.get("choice", ""))
        taken = stored.training.recipe if choice else self.plan.model
        return TrainedFolder(detector, self.out, self.plan, self.sizes, result, taken, choice)


def score_tests(job: FolderWork, detector: Detector, report: Report | None) -> None:
    """Store the scores of the test files and of what does not belong."""
    sets = [SetToScore("yours-test", False, job.scanned.listed(job.parts.test)), *job.outside]
    if job.scanned.modality == "audio":  # the softmax baseline of sounds is ranked among it
        sets.append(SetToScore(CALIBRATION, False, job.scanned.listed(job.parts.split.calibration)))
    score_test_sets(job.made, sets, draws=DRAWS_PER_RUN, report=report, detector=detector)


Asked = ParamSpec("Asked")


def then_train(plan: Callable[Asked, FolderPlan]) -> Callable[Asked, TrainedFolder]:
    """The same arguments, planned and done at once."""

    @wraps(plan, assigned=("__doc__", "__module__"))
    def train_folder(*source_and_out: Asked.args, **options: Asked.kwargs) -> TrainedFolder:
        job = plan(*source_and_out, **options)
        trained = job.train(job.report)
        assert trained is not None  # but in the further processes of torchrun, which the command starts
        return trained

    return train_folder


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
    """Look at the files in a folder, or at those that a CSV names, and plan: what was found and is left out, which model, which
    parts, how long. `FolderPlan.train` does it; `train_folder` is both in one call.

    `out` is the new detector: a bare name puts it among the app's, a path there; one that is there stays, unless `replace`.
    `labels` are "folders" or "none", found out if left out; `model` is mahalanobis, neighbours, patches, places or rotations (pictures)
    or classifier, statistics or both (sounds), chosen if left out. `ood` are folders, CSVs or datasets of what does not belong, to test
    with; else sets that come with the project. `seed` splits the files.

    With `learn_from_ood` a random half of each `ood` set chooses between the models that there are (the distances of the frozen
    network; for sounds classifier, statistics or both), and the other half tests. Promised: the bound, whatever the outliers are,
    because only they and files to fit or validate choose, and no file that calibrates or tests. `choice` says what it gained, on
    outliers and test files that had no part in the choice. Not promised: that anything is gained, least of all against kinds that are
    unlike the known ones; nor that calibration gets finer, for known outliers do not calibrate.

    `report` is called with (what is being done, how much of it is done, how much there is): reading, fitting or training,
    calibrating, then the name of each test set. Whatever it raises stops the work, which goes on later where it was: the run is
    kept in `runs`, unless `resume` is False.
    """
    source, others = Path(source), list(map(str, ood))
    if learn_from_ood and not others:
        raise SettingError(
            "--learn-from-ood learns from files that do not belong: name them with --ood, or leave it out."
        )
    place = new_place(out, replace, (source, *others))
    on = device_of_process(device)
    scanned = scan(source, "audio" if audio else "image", labels, report)  # type: ignore[arg-type]
    parts = split_user_files(scanned, seed)
    chosen = plan.choose(scanned, parts, on, model, epochs, learn_from_ood)
    if not chosen.validates:
        parts = split_user_files(scanned, seed, validates=False)
    outside = sets_outside(others, scanned, report)
    known, outside = split_known(outside, seed) if learn_from_ood else ([], outside)
    belongs = summary or printable(f"{NOUNS[scanned.modality].capitalize()}s like those of {source.stem}")
    return FolderPlan(
        source,
        place,
        scanned,
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
        report,
    )


train_folder = then_train(plan_folder)
"""A detector of the files in a folder: `plan_folder`, and its plan done at once. All that `idecode train FOLDER` does."""
