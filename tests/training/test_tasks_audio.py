"""Training for sounds: learns, resumes to the same weights, and takes the sets that the recipes name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test_loop import ROTATIONS, tiny_task

from idecode_core.audio.features import LogMel
from idecode_core.audio.read import Sound
from idecode_core.audio.sets import SoundSet
from idecode_core.cli.train import EpochProgress
from idecode_core.errors import TrainingError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import read_log, read_split, read_training
from idecode_core.report.card import card
from idecode_core.training import loop
from idecode_core.training.finish import finish
from idecode_core.training.loop import rate_factor, train
from idecode_core.training.parts import divide, without_validation
from idecode_core.training.recipe import Recipe, Sounds
from idecode_core.training.recipes import get_recipe
from idecode_core.training.run_state import World
from idecode_core.training.tasks import AudioTask, make_task
from idecode_core.training.tasks.audio import mixed
from tools.synthetic_sounds import MAKERS, in_a_room

RATE = 16_000
DIGITS = get_recipe("spoken-digits")
RECIPE: Recipe[Sounds] = replace(
    DIGITS,
    name="small",
    epochs=4,
    batch=8,
    shows=replace(DIGITS.shows, widths=(8, 16), masks_from=2, features=LogMel(RATE)),
)


def kinds(count: int, seed: int = 0) -> SoundSet:
    """`count` clips each of tones and of noise: two classes that are easy to tell apart."""
    generator = np.random.default_rng(seed)
    clips, y = [], []
    for kind, name in enumerate(("tone", "noise")):
        for _ in range(count):
            clips.append(
                Sound(in_a_room(MAKERS[name](1.5, RATE, generator=generator), generator=generator), RATE)
            )
            y.append(kind)
    return SoundSet("kinds", tuple(clips), np.array(y), ("tone", "noise"), np.zeros(len(y), np.int64))


def small_task(count: int = 8, recipe: Recipe[Sounds] = RECIPE, sounds: SoundSet | None = None) -> AudioTask:
    """All but the last two clips train, those calibrate; others test."""
    sounds = kinds(count) if sounds is None else sounds
    split = without_validation(np.arange(len(sounds) - 2), np.arange(len(sounds) - 2, len(sounds)))
    task = make_task(recipe, divide(sounds, split, kinds(4, seed=1)))
    assert isinstance(task, AudioTask)
    return task


def test_the_model_learns_to_tell_tones_from_noise(tmp_path: Path) -> None:
    task = small_task(16, replace(RECIPE, epochs=8))
    scorer = task.scorer(train(task, tmp_path))
    test = kinds(8, seed=1)
    right = scorer.logits(test.clips).argmax(dim=1).numpy() == test.y
    assert right.mean() > 0.9
    log = read_log(tmp_path)
    assert [entry.epoch for entry in log] == list(range(8))
    assert log[-1].loss < log[0].loss
    assert log[-1].accuracy is not None
    assert log[-1].accuracy > 0.8  # under masks
    assert all(entry.validation_loss is None for entry in log)


def test_a_killed_run_ends_with_the_weights_of_an_unbroken_one(tmp_path: Path) -> None:
    unbroken = train(small_task(), tmp_path / "a")

    class Killed(Exception):
        pass

    def kill(epoch: int, step: int, steps: int, loss: float) -> None:
        if epoch == 2 and step == 0:
            raise Killed

    with pytest.raises(Killed):
        train(small_task(), tmp_path / "b", progress=kill)
    assert len(read_log(tmp_path / "b")) == 2
    resumed = train(small_task(), tmp_path / "b")
    for name, value in unbroken.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    with pytest.raises(TrainingError, match="another recipe"):
        train(small_task(recipe=replace(RECIPE, seed=5)), tmp_path / "b")


def test_pictures_and_sounds_go_through_the_same_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step of either is one call of the one place that asks for gradients."""
    steps: list[str] = []
    forward = loop.Gradients.forward

    def counted(self: loop.Gradients, *batch: object) -> object:
        steps.append(self.task.recipe.modality)
        return forward(self, *batch)

    monkeypatch.setattr(loop.Gradients, "forward", counted)
    pictures = tiny_task(ROTATIONS)
    for task in (small_task(9), pictures):
        train(task, tmp_path / task.recipe.modality, epochs=2)
        finish(task, tmp_path / task.recipe.modality, tmp_path / f"made-{task.recipe.modality}", n_max=2)
    expected = {"audio": 2 * (16 // RECIPE.batch), "image": 2 * (pictures.examples // ROTATIONS.batch)}
    assert {modality: steps.count(modality) for modality in expected} == expected
    files = [{path.name for path in (tmp_path / f"made-{modality}").iterdir()} for modality in expected]
    assert files[0] == files[1]  # one finish too


def test_a_sound_detector_has_the_record_the_split_and_the_card_of_its_training(tmp_path: Path) -> None:
    task = small_task()
    train(task, tmp_path / "run")
    finish(task, tmp_path / "run", tmp_path / "made", n_max=3)
    made = load_detector(tmp_path / "made", "cpu")
    assert (made.dataset, made.calibration.score_vectors.shape) == ("spokendigits", (2, 3))
    record = read_training(tmp_path / "made")
    assert record is not None
    assert (record.best_epoch, record.proper_training_points, record.validation_points) == (4, 14, 0)
    assert (record.test_points, record.validation_loss) == (8, None)
    test = kinds(4, seed=1)
    right = [
        int(made.scorer.logits([clip]).argmax()) == y for clip, y in zip(test.clips, test.y, strict=True)
    ]
    assert record.test_accuracy == round(sum(right) / 8, 4)
    assert read_split(tmp_path / "made").calibration.tolist() == [14, 15]
    text = card(tmp_path / "made")
    assert "4 epochs on 14 clips" in text
    assert f"{100 * record.test_accuracy:.1f} % on the 8 test clips" in text
    assert (
        f"score-sets {tmp_path / 'made'}" in text
    )  # there are no scores yet; the advice works as it is written


def test_the_line_of_an_epoch_says_what_there_is(tmp_path: Path) -> None:
    train(small_task(), tmp_path, epochs=1)
    (entry,) = read_log(tmp_path)
    line = EpochProgress(1, tmp_path).line(entry)
    assert line.startswith(
        f"epoch 1/1: loss {entry.loss:.4f}, accuracy {100 * (entry.accuracy or 0):.1f} %, "
    )


def test_several_processes_share_each_batch_of_sounds() -> None:
    task = small_task(9, replace(RECIPE, shows=replace(RECIPE.shows, masks_from=99)))
    whole = [batch[1] for batch in task.batches(0, World())]
    shares = [[batch[1] for batch in task.batches(0, World(rank, 2))] for rank in range(2)]
    assert len(whole) == 2
    for step, y in enumerate(whole):
        torch.testing.assert_close(shares[0][step], y[::2])
        torch.testing.assert_close(shares[1][step], y[1::2])


def test_statistics_are_those_of_the_proper_training_set() -> None:
    sounds = kinds(3)
    task = small_task(sounds=sounds)
    features = LogMel(RATE)
    values = np.concatenate(
        [features.padded(features.decibels(c.samples)).numpy().ravel() for c in sounds.clips[:-2]]
    )
    assert task.features.mean == pytest.approx(values.mean(), abs=1e-3)
    assert task.features.std == pytest.approx(values.std(), rel=1e-4)


def test_without_shift_every_block_of_every_clip_is_an_example() -> None:
    long = Sound(
        np.random.default_rng(0).standard_normal(9 * RATE).astype(np.float32) / 10, RATE
    )  # 282 frames
    sounds = SoundSet("long", (long,) * 4, np.array([0, 1, 0, 0]), ("a", "b"), np.zeros(4, np.int64))
    task = small_task(recipe=replace(RECIPE, shows=replace(RECIPE.shows, shift=False)), sounds=sounds)
    assert task.blocks(np.random.default_rng(0)).shape == (4, 64, 128)
    assert task.y.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_mixup_names_the_classes_of_both_parts_and_the_larger_share(seed: int) -> None:
    x, y = torch.eye(6), torch.arange(6)  # example i is the unit vector i, so a mixture shows what is in it
    shown, others, share = mixed(x, y, 0.3, np.random.default_rng(seed))
    assert 0.5 <= share <= 1
    for i in range(6):
        expected = np.zeros(6)
        expected[i] += share
        expected[int(others[i])] += 1 - share
        np.testing.assert_allclose(shown[i], expected, atol=1e-6)
    alone, _, whole = mixed(x, y, 0.0, np.random.default_rng(seed))
    assert whole == 1
    assert alone is x


def test_the_papers_learning_rate_falls_by_a_tenth_every_two_epochs() -> None:
    paper = get_recipe("paper-fsdnoisy18k-set0")
    factors = [rate_factor(paper.schedule, epoch, 0.0) for epoch in range(5)]
    assert factors == pytest.approx([1, 1, 0.9, 0.9, 0.81])
    assert (paper.learning_rate, paper.batch, paper.epochs, paper.shows.masks_from) == (5e-4, 128, 30, 10)
    assert paper.shows.features == LogMel(32_000)


def test_one_cycle_rises_to_a_fifth_and_falls_to_almost_nothing() -> None:
    factors = [rate_factor("one_cycle", 0, progress) for progress in (0.0, 0.1, 0.2, 0.6, 1.0)]
    assert factors == pytest.approx([0.1, 0.55, 1.0, 0.5, 0.002])
    assert rate_factor("constant", 3, 0.7) == 1


def test_a_loss_that_is_not_finite_stops_with_the_last_state_intact(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="loss became"):
        train(small_task(recipe=replace(RECIPE, learning_rate=1e30)), tmp_path)
