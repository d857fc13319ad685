"""`train FOLDER`: a detector from a user's own files, from looking at them to a report."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from idecode_core.cli.inputs import progress_bars
from idecode_core.cli.own_files import look, sets_outside
from idecode_core.files.names import NOUNS, printable

if TYPE_CHECKING:
    import torch

    from idecode_core.evaluation.own_data import OwnResult
    from idecode_core.evaluation.sets import SetToScore
    from idecode_core.folder.detector import Writer
    from idecode_core.training.own.files import Scan
    from idecode_core.training.own.parts import OwnSplit
    from idecode_core.training.own.plan import Plan
    from idecode_core.training.world import World

MOST_TESTED = 300
"""Test files that are scored; more say hardly more."""
PIECES = ("fitting", "validating", "calibrating", "made")
"""What a run keeps of the work that is done."""
PARTS = {"proper": "to fit", "validation": "to validate", "calibration": "to calibrate", "test": "to test"}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What the command line says of a user's own data."""

    source: Path
    out: Path
    audio: bool = False
    labels: str | None = None
    model: str | None = None
    outside: tuple[str, ...] = ()
    summary: str = ""
    seed: int = 0
    epochs: int | None = None
    resume: bool = True

    @property
    def modality(self) -> str:
        return "audio" if self.audio else "image"


@dataclass(frozen=True)
class Job:
    """Everything that is settled before the work begins."""

    wanted: Wanted
    found: "Scan"
    own: "OwnSplit"
    plan: "Plan"
    device: "torch.device"
    run: Path

    @property
    def made(self) -> Path:
        """The detector folder while it grows; its place in `wanted.out` it takes when it is complete."""
        return self.run / "made" / self.wanted.out.name

    @property
    def summary(self) -> str:
        noun = NOUNS[self.wanted.modality].capitalize()
        return self.wanted.summary or printable(f"{noun}s like those of {self.wanted.source.stem}")

    @property
    def state(self) -> dict[str, Any]:
        """What tells one run from another."""
        from idecode_core.training.own.parts import own_dataset

        return {"dataset": own_dataset(self.found), "plan": asdict(self.plan), "seed": self.wanted.seed}

    @property
    def settings(self) -> dict[str, Any]:
        """What a training record says beyond the recipe."""
        from idecode_core.training.own.parts import SOURCE

        return {
            SOURCE: str(self.wanted.source),
            "modality": self.found.modality,
            "labels": "folders" if self.found.classes else "none",
            "class_names": list(self.found.classes),
            "files": len(self.found.files),
            "broken": len(self.found.broken),
            "copies": len(self.found.copies),
            "plan": self.plan.words(),
        }

    @property
    def beside(self) -> "dict[str, Writer]":
        from idecode_core.files import write_text
        from idecode_core.training.own.parts import files_table

        files: dict[str, Writer] = {
            "files.csv": lambda path: write_text(path, files_table(self.found, self.own))
        }
        if self.found.left_out:
            files["left-out.txt"] = lambda path: write_text(path, self.found.left_out)
        return files


def train_own(wanted: Wanted, device: "torch.device", runs: Path) -> None:
    """Look, plan and say so, fit or train, calibrate, evaluate, write card and report; the folder appears when all is done."""
    import torch

    from idecode_core.files import write_folder, write_json
    from idecode_core.report.card import write_card
    from idecode_core.report.own_data import write_own_report
    from idecode_core.training.own.parts import split_own
    from idecode_core.training.own.plan import choose
    from idecode_core.training.world import World

    world = World.join()
    say: Say = (
        typer.echo if world.is_first else lambda text: None
    )  # of several processes only the first one speaks
    found = look(wanted.source, wanted.modality, wanted.labels, shown=world.is_first)
    for sentence in found.sentences():
        say(sentence)
    own = split_own(found, wanted.seed)
    job = Job(
        wanted,
        found,
        own,
        choose(found, own, device, wanted.model, wanted.epochs),
        device,
        runs / wanted.out.name,
    )
    if job.plan.is_frozen and not world.is_first:
        return  # nothing is trained that several processes could share
    outside = sets_outside(wanted.outside, found) if world.is_first else []
    say(job.plan.words())
    say("Parts: " + ", ".join(f"{len(indices):,} {PARTS[name]}" for name, indices in own.parts()) + ".")
    if world.is_first:
        prepare_run(job, say)
    if world.size > 1 and not job.plan.is_frozen:
        torch.distributed.barrier()  # the others must not read what the first one removes
    if not (job.made / "config.json").is_file():
        if job.plan.is_frozen:
            make_frozen_detector(job, outside, say)
        else:
            make_trained_detector(job, world, say)
    if not world.is_first:
        return
    score_own(job, outside)
    write_card(job.made)
    result = write_own_report(job.made)
    write_folder(wanted.out, lambda new: shutil.copytree(job.made, new, dirs_exist_ok=True))
    write_json(job.run / "run.json", {**job.state, "finished": True})
    for name in PIECES:
        shutil.rmtree(job.run / name, ignore_errors=True)
    say_result(result, wanted.out, say)


def prepare_run(job: Job, say: Say) -> None:
    """Go on with a run of the same files and plan; remove the pieces of any other."""
    from idecode_core.files import write_json

    path = job.run / "run.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        stored = None
    if job.wanted.resume and stored == json.loads(json.dumps(job.state)):
        say(f"Goes on with the unfinished run in {job.run}.")
        return
    for name in PIECES:
        shutil.rmtree(job.run / name, ignore_errors=True)
    for name in ("state.safetensors", "best.safetensors", "log.jsonl", "split.npz"):
        (job.run / name).unlink(missing_ok=True)
    write_json(path, job.state)


def make_frozen_detector(job: Job, outside: "list[SetToScore]", say: Say) -> None:
    """Fit a distance on the features of the frozen network."""
    from idecode_core.training.own.fit import features_of, make_frozen, seconds_per_variant
    from idecode_core.training.own.parts import file_parts, own_dataset
    from idecode_core.training.own.plan import N_MAX, in_words

    seen, parts = features_of(job.plan, job.device), file_parts(job.found, job.own)
    scored = len(parts.calibration) + min(len(job.own.test), MOST_TESTED) + sum(len(one) for one in outside)
    views = job.plan.fit_draws * len(parts.training) + len(parts.validation) + N_MAX * scored
    say(
        f"Expected time: {in_words(1.5 * views * seconds_per_variant(seen))} on {job.device}, for {views:,} views."
    )
    with progress_bars() as report:
        make_frozen(
            job.plan,
            seen,
            parts,
            job.run,
            job.made,
            name=job.wanted.out.name,
            dataset=own_dataset(job.found),
            summary=job.summary,
            classes=job.found.classes,
            seed=job.wanted.seed,
            settings=job.settings,
            beside=job.beside,
            report=report,
        )


def make_trained_detector(job: Job, world: "World", say: Say) -> None:
    """Train a network of its own by the usual loop; the first process writes the detector."""
    from idecode_core.cli.train import train_and_finish
    from idecode_core.image.features import Preprocessing
    from idecode_core.training.own.parts import small_image_parts, sound_parts
    from idecode_core.training.own.plan import in_words, own_recipe, seconds_to_train
    from idecode_core.training.tasks import make_task

    recipe = own_recipe(job.plan, job.found, job.wanted.out.name, job.summary, job.wanted.seed)
    parts: Any
    settings = job.settings
    if job.wanted.audio:
        parts = sound_parts(job.found, job.own, recipe.shows.features)
        settings |= {"class_names": list(parts.training.classes)}
    else:
        parts = small_image_parts(job.found, job.own, Preprocessing(recipe.shows.size, recipe.shows.grey))
    task = make_task(recipe, parts, job.device)
    seconds = 1.2 * seconds_to_train(task)
    say(f"Expected time: {in_words(seconds)} on {job.device}, and some more for calibration and tests.")
    train_and_finish(
        task,
        job.run,
        job.made,
        resume=job.wanted.resume,
        world=world,
        beside=job.beside,
        dataset="",
        settings=settings,
    )


def score_own(job: Job, outside: "list[SetToScore]") -> None:
    """Store the scores of the test files and of what does not belong."""
    from idecode_core.evaluation.ablations import CALIBRATION
    from idecode_core.evaluation.score_sets import score_test_sets
    from idecode_core.evaluation.sets import SetToScore
    from idecode_core.folder.scores import DRAWS_PER_RUN

    tested = [job.found.files[i].path for i in job.own.test[:MOST_TESTED]]
    sets = [SetToScore("yours-test", False, tested), *outside]
    if job.wanted.audio:  # the softmax baseline of sounds is ranked among it
        held_out = [job.found.files[i].path for i in job.own.split.calibration]
        sets.append(SetToScore(CALIBRATION, False, held_out))
    with progress_bars() as report:
        score_test_sets(job.made, sets, draws=DRAWS_PER_RUN, report=report)


def say_result(result: "OwnResult", out: Path, say: Say) -> None:
    from idecode_core.folder.settings import checkpoint_root

    rate = result.false_detections
    say(f"\nAt epsilon = {rate.epsilon:g}: {rate.rate:.1%} of your test files are flagged.")
    for one in result.against:
        say(
            f"  {one.label}: AUROC {100 * one.auroc:.1f} %, {one.detected:.0%} flagged ({one.points:,} points)"
        )
    for sentence in result.weak:
        say(f"Weak: {sentence}")
    listed = out.resolve().parent == checkpoint_root().resolve()
    use = f"--detector {out.name}; the app lists it" if listed else f"--detector {out}"
    say(f"{out}: ready. Use it with {use}. The report: {out / 'report.html'}")
