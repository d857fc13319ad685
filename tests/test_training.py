"""The training loop: resumable, seeded, safe against a bad loss and a full disk, and the same under torchrun."""

import json
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from idecode_core import tasks
from idecode_core.checkpoint import load_detector
from idecode_core.data import ImageSet, load_images, split_indices
from idecode_core.errors import DataError, IdecodeError, SettingError, TrainingError
from idecode_core.images import Preprocessing
from idecode_core.models import ModelConfig
from idecode_core.recipes import RECIPES, Recipe, get_recipe, superclass
from idecode_core.training import read_log, train
from idecode_core.training_finish import calibration_indices, finish, read_split, read_training
from idecode_core.transforms import Projective, Rotations, SmallAffine

TINY = ModelConfig("compact", outputs=4, widths=(4, 4, 4))
ROTATIONS = Recipe(
    "tiny", "tiny", TINY, Rotations(), "cross_entropy", "transform_class", 3, size=16, batch=16, ema=0.9
)
CLASSIFIER = replace(
    ROTATIONS,
    model=replace(TINY, outputs=2),
    transforms=SmallAffine(),
    base_ncm="invariance",
    task="label",
    optimizer="adam",
    learning_rate=1e-3,
    crop=2,
)
PROJECTIVE = replace(
    ROTATIONS,
    model=replace(TINY, outputs=8, pair=True, variance=True),
    transforms=Projective(),
    base_ncm="parameter_error",
    task="transform_parameters",
    learning_rate=1e-3,
    head_learning_rate=1e-2,
)


def tiny_images(count: int = 64, size: int = 16) -> ImageSet:
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, size=(count, size, size, 3), dtype=np.uint8)
    return ImageSet("tiny-train", x, np.arange(count) % 2)


class Killed(Exception):
    """Stands for the signal that ends a process in the middle of an epoch."""


@pytest.mark.parametrize(
    "recipe", [ROTATIONS, CLASSIFIER, PROJECTIVE], ids=["rotations", "adam labels", "projective"]
)
def test_a_killed_run_resumes_to_the_weights_of_an_unbroken_one(recipe: Recipe, tmp_path: Path) -> None:
    images = tiny_images()
    train(recipe, tmp_path / "unbroken", images=images)

    def kill(epoch: int, step: int, steps: int, loss: float) -> None:
        if (epoch, step) == (1, 1):
            raise Killed

    with pytest.raises(Killed):
        train(recipe, tmp_path / "killed", images=images, progress=kill)
    assert len(read_log(tmp_path / "killed" / "log.jsonl")) == 1
    train(recipe, tmp_path / "killed", images=images)
    for file in ("best.safetensors", "state.safetensors"):
        unbroken, resumed = (load_file(tmp_path / name / file) for name in ("unbroken", "killed"))
        assert unbroken.keys() == resumed.keys()
        for name, value in unbroken.items():
            assert torch.equal(value, resumed[name]), name
    logs = [read_log(tmp_path / name / "log.jsonl") for name in ("unbroken", "killed")]
    assert [e.validation_loss for e in logs[0]] == [e.validation_loss for e in logs[1]]


def test_the_best_epoch_is_the_one_with_the_lowest_validation_loss(tmp_path: Path) -> None:
    losses: list[float] = []
    weights: list[dict[str, torch.Tensor]] = []

    def watch(epoch: int, step: int, steps: int, loss: float) -> None:
        if epoch > 0 and step == 0:  # the state file holds the average after the epoch before
            weights.append(load_file(tmp_path / "state.safetensors"))

    recipe = replace(ROTATIONS, epochs=4)
    best = train(recipe, tmp_path, images=tiny_images(), progress=watch)
    weights.append(load_file(tmp_path / "state.safetensors"))
    losses = [entry.validation_loss for entry in read_log(tmp_path / "log.jsonl")]
    kept = weights[int(np.argmin(losses))]
    for name, value in best.state_dict().items():
        assert torch.equal(value, kept[f"average.{name}"]), name


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_checkpoint(tmp_path: Path, monkeypatch) -> None:
    right = tasks.torch_cross_entropy

    def later_wrong(*arguments, **settings):  # type: ignore[no-untyped-def]
        path = tmp_path / "log.jsonl"
        loss = right(*arguments, **settings)
        return loss * float("nan") if path.exists() and len(read_log(path)) == 1 else loss

    monkeypatch.setattr(tasks, "torch_cross_entropy", later_wrong)
    saved: list[bytes] = []

    with pytest.raises(TrainingError, match=r"nan in epoch 2, step 1 .* checkpoint of epoch 1 is intact"):
        train(
            ROTATIONS,
            tmp_path,
            images=tiny_images(),
            progress=lambda *_: saved.append(b""),
        )
    tensors = load_file(tmp_path / "state.safetensors")
    assert all(torch.isfinite(value).all() for value in tensors.values() if value.dtype.is_floating_point)
    monkeypatch.undo()
    train(ROTATIONS, tmp_path, images=tiny_images())  # goes on from the intact checkpoint
    assert len(read_log(tmp_path / "log.jsonl")) == 3


def test_a_full_disk_is_told_in_words_and_the_old_file_stays(tmp_path: Path) -> None:
    """The limit on file sizes makes a real write fail halfway, as a full disk does."""
    script = """
        import resource, signal, sys
        from pathlib import Path
        from torch import nn
        from idecode_core.errors import IdecodeError
        from idecode_core.run_state import save_weights
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        path = Path(sys.argv[1])
        save_weights(path, nn.Linear(10, 10))
        before = path.read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        try:
            save_weights(path, nn.Linear(1000, 100))
        except IdecodeError as error:
            print(error)
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "weights.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Could not write" in done.stdout
    assert "Nothing was changed; free some space" in done.stdout


def test_two_processes_under_torchrun_train_and_agree(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        from pathlib import Path
        import torch
        sys.path.insert(0, sys.argv[2])
        import test_training as t
        from idecode_core.training import Distributed, train
        folder = Path(sys.argv[1])
        model = train(t.ROTATIONS, folder, images=t.tiny_images(), epochs=2)
        world = Distributed.start()
        assert world.size == 2
        total = torch.stack([value.double().sum() for value in model.state_dict().values()]).sum()
        both = [torch.zeros_like(total) for _ in range(2)]
        torch.distributed.all_gather(both, total)
        assert torch.equal(both[0], both[1])
        if world.rank == 0:
            print("agreed")
        torch.distributed.destroy_process_group()
        """)
    )
    folder = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=2",
        str(script),
    ]
    done = subprocess.run(
        [*command, str(folder), str(Path(__file__).parent)], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "agreed" in done.stdout
    assert len(read_log(folder / "log.jsonl")) == 2
    train(
        ROTATIONS, folder, images=tiny_images(), epochs=2
    )  # a run of several processes is a run like any other


@pytest.mark.parametrize(
    "name",
    [
        "paper-cifar10-projective",
        "paper-svhn-projective",
        "paper-cifar10-one-class-3",
        "paper-cifar100-superclass-9",
    ],
)
def test_every_paper_size_recipe_takes_a_few_steps(name: str, tmp_path: Path) -> None:
    recipe = replace(get_recipe(name), batch=4)
    images = tiny_images(12, 32)
    if recipe.classes:
        images = ImageSet("tiny-train", images.x, np.full(12, recipe.classes[0]))
    train(recipe, tmp_path, images=images, epochs=1)
    (entry,) = read_log(tmp_path / "log.jsonl")
    assert np.isfinite([entry.loss, entry.validation_loss]).all()


def test_every_paper_size_recipe_is_of_one_of_the_kinds_that_were_stepped() -> None:
    names = {name for name in RECIPES if name.startswith("paper-")}
    one_class = {f"paper-cifar10-one-class-{c}" for c in range(10)}
    superclasses = {f"paper-cifar100-superclass-{c}" for c in range(20)}
    assert names == {"paper-cifar10-projective", "paper-svhn-projective"} | one_class | superclasses
    for group in (one_class, superclasses):
        assert len({repr(replace(RECIPES[name], name="", classes=())) for name in group}) == 1
    assert sorted(fine for c in range(20) for fine in superclass(c)) == list(range(100))


@given(st.integers(40, 3000), st.integers(0, 2**32))
def test_the_split_is_disjoint_and_complete_with_a_tenth_for_calibration(size: int, seed: int) -> None:
    split = split_indices(size, seed=seed)
    joined = np.concatenate([split.proper, split.validation, split.calibration])
    assert sorted(joined.tolist()) == list(range(size))  # disjoint: validation never overlaps calibration
    assert len(split.calibration) == round(size / 10)
    again = split_indices(size, seed=seed)
    np.testing.assert_array_equal(split.calibration, again.calibration)


def test_the_split_is_random_not_the_first_and_last_points() -> None:
    split = split_indices(1000, seed=0)
    assert abs(split.calibration.mean() - 499.5) < 5 * 288 / np.sqrt(100)
    assert not np.array_equal(split.calibration, np.arange(900, 1000))


def test_indices_are_stored_and_finishing_calibrates_on_exactly_those(tmp_path: Path) -> None:
    images = tiny_images()
    train(CLASSIFIER, tmp_path / "run", images=images, epochs=1)
    split = read_split(tmp_path / "run")
    expected = split_indices(64, seed=0)
    np.testing.assert_array_equal(split.calibration, expected.calibration)
    seen: list[tuple[int, int]] = []
    finish(
        CLASSIFIER,
        tmp_path / "run",
        tmp_path / "detector",
        data_root=tmp_path,
        images=images,
        n_max=3,
        progress=lambda done, total: seen.append((done, total)),
    )
    detector = load_detector(tmp_path / "detector")
    assert detector.calibration.score_vectors.shape == (6, 3)
    again = detector.score_vectors(images.x[split.calibration], n=3)
    np.testing.assert_allclose(detector.calibration.score_vectors, again, rtol=1e-4, atol=1e-7)
    assert seen[-1] == (6, 6)
    record = read_training(tmp_path / "detector")
    assert record is not None
    assert (record.epochs, record.calibration_points) == (1, 6)
    log = (tmp_path / "detector" / "log.jsonl").read_text()
    assert json.loads(log)["epoch"] == 0
    assert "<svg" in (tmp_path / "detector" / "learning-curve.svg").read_text()


def test_finishing_with_other_data_than_that_of_the_run_is_refused(tmp_path: Path) -> None:
    train(CLASSIFIER, tmp_path, images=tiny_images(), epochs=1)
    with pytest.raises(DataError, match="expected 64 images, got 60"):
        finish(CLASSIFIER, tmp_path, tmp_path / "out", images=tiny_images(60))


def test_calibration_points_are_a_random_part_when_there_are_too_many() -> None:
    split = split_indices(60_000, seed=0)
    chosen = calibration_indices(split)
    assert len(chosen) == 5000
    assert set(chosen) <= set(split.calibration)
    assert not np.array_equal(chosen, split.calibration[:5000])


def test_a_run_of_another_recipe_or_length_is_not_resumed(tmp_path: Path) -> None:
    train(ROTATIONS, tmp_path, images=tiny_images(), epochs=1)
    with pytest.raises(TrainingError, match="another recipe or of another number of epochs"):
        train(ROTATIONS, tmp_path, images=tiny_images(), epochs=2)
    with pytest.raises(TrainingError, match="--no-resume"):
        train(replace(ROTATIONS, crop=1), tmp_path, images=tiny_images(), epochs=1)
    train(ROTATIONS, tmp_path, images=tiny_images(), epochs=2, resume=False)
    assert len(read_log(tmp_path / "log.jsonl")) == 2


def test_training_leaves_the_global_generators_alone(tmp_path: Path) -> None:
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    train(ROTATIONS, tmp_path, images=tiny_images(), epochs=1)
    assert torch.equal(torch.get_rng_state(), torch_before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def test_a_wrong_recipe_name_lists_the_right_ones() -> None:
    with pytest.raises(SettingError, match=r"cifar10-rotations.*paper-cifar100-superclass.*esc50-animals"):
        get_recipe("cifar10")


def test_a_missing_dataset_says_which_file_and_which_command(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar10-train\.npz.*data fetch cifar10"):
        load_images("cifar10-train", tmp_path)


def test_training_and_scoring_see_the_same_resized_pixels() -> None:
    images = tiny_images(3, 24)
    preprocessing = Preprocessing(16)
    np.testing.assert_array_equal(preprocessing.resize(images.x)[1], preprocessing(images.x[1]))


def test_every_error_of_training_is_one_that_a_user_is_told_in_words() -> None:
    assert issubclass(TrainingError, IdecodeError)


def test_training_can_start_from_a_detectors_backbone_on_the_same_split_only(tmp_path: Path) -> None:
    images = tiny_images()
    train(ROTATIONS, tmp_path / "first", images=images, epochs=1)
    finish(ROTATIONS, tmp_path / "first", tmp_path / "detector", images=images, n_max=2)
    learned = load_detector(tmp_path / "detector").scorer.model.backbone.state_dict()
    second = replace(ROTATIONS, start_from=str(tmp_path / "detector"), learning_rate=0.0, ema=0.0)
    begun = train(second, tmp_path / "second", images=images, epochs=1).backbone.state_dict()
    weights = [name for name in learned if "running" not in name and "tracked" not in name]
    assert all(torch.equal(begun[name], learned[name]) for name in weights)
    with pytest.raises(TrainingError, match="another split"):
        train(replace(second, seed=5), tmp_path / "third", images=images, epochs=1)


def test_a_detector_to_start_from_that_is_not_there_is_named_with_the_command_that_makes_it(
    tmp_path: Path,
) -> None:
    recipe = replace(ROTATIONS, start_from=str(tmp_path / "fashion-quick"))
    with pytest.raises(TrainingError, match=r"fashion-quick.*not there.*train fashion-quick --out"):
        train(recipe, tmp_path / "run", images=tiny_images(), epochs=1)


def test_a_recipe_that_starts_from_a_detector_names_one_that_another_recipe_makes_with_the_same_backbone() -> (
    None
):
    starting = [recipe for recipe in RECIPES.values() if recipe.start_from]
    assert starting
    for recipe in starting:
        first = get_recipe(Path(recipe.start_from).name)
        assert (first.dataset, first.seed, first.size) == (recipe.dataset, recipe.seed, recipe.size)
        assert (first.model.backbone, first.model.widths) == (recipe.model.backbone, recipe.model.widths)
