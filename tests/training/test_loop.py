"""The training loop: resumable, seeded, safe against a bad loss and a full disk, and the same under torchrun."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from idecode_core.errors import DataError, IdecodeError, TrainingError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import (
    EpochLog,
    kept_epoch,
    read_log,
    split_indices,
)
from idecode_core.image.features import Preprocessing
from idecode_core.image.sets import ImageSet, load_images
from idecode_core.models import ModelConfig
from idecode_core.training.finish import finish
from idecode_core.training.loop import train
from idecode_core.training.parts import image_parts
from idecode_core.training.recipe import Pictures, Recipe
from idecode_core.training.tasks import Task, image, make_task
from idecode_core.transforms import Projective, Rotations, SmallAffine

TINY = ModelConfig("compact", outputs=4, widths=(4, 4, 4))
ROTATIONS = Recipe(
    "tiny",
    "tiny",
    Pictures(TINY, "transform_class", size=16),
    Rotations(),
    "cross_entropy",
    epochs=3,
    batch=16,
    ema=0.9,
)
CLASSIFIER = replace(
    ROTATIONS,
    shows=Pictures(replace(TINY, outputs=2), "label", size=16, crop=2),
    transforms=SmallAffine(),
    base_ncm="invariance",
    optimizer="adam",
    learning_rate=1e-3,
)
PROJECTIVE = replace(
    ROTATIONS,
    shows=Pictures(replace(TINY, outputs=8, pair=True, variance=True), "transform_parameters", size=16),
    transforms=Projective(),
    base_ncm="parameter_error",
    learning_rate=1e-3,
    head_learning_rate=1e-2,
)


def tiny_images(count: int = 64, size: int = 16) -> ImageSet:
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, size=(count, size, size, 3), dtype=np.uint8)
    return ImageSet("tiny-train", x, np.arange(count) % 2)


def tiny_task(recipe: Recipe[Pictures], images: ImageSet | None = None) -> Task:
    return make_task(recipe, image_parts(recipe, tiny_images() if images is None else images))


class Killed(Exception):
    """Stands for the signal that ends a process in the middle of an epoch."""


@pytest.mark.parametrize(
    "recipe", [ROTATIONS, CLASSIFIER, PROJECTIVE], ids=["rotations", "adam labels", "projective"]
)
def test_a_killed_run_resumes_to_the_weights_of_an_unbroken_one(recipe: Recipe, tmp_path: Path) -> None:
    train(tiny_task(recipe), tmp_path / "unbroken")

    def kill(epoch: int, step: int, steps: int, loss: float) -> None:
        if (epoch, step) == (1, 1):
            raise Killed

    with pytest.raises(Killed):
        train(tiny_task(recipe), tmp_path / "killed", progress=kill)
    assert len(read_log(tmp_path / "killed")) == 1
    train(tiny_task(recipe), tmp_path / "killed")
    for file in ("best.safetensors", "state.safetensors"):
        unbroken, resumed = (load_file(tmp_path / name / file) for name in ("unbroken", "killed"))
        assert unbroken.keys() == resumed.keys()
        for name, value in unbroken.items():
            assert torch.equal(value, resumed[name]), name
    logs = [read_log(tmp_path / name) for name in ("unbroken", "killed")]
    assert [e.validation_loss for e in logs[0]] == [e.validation_loss for e in logs[1]]


def test_the_best_epoch_is_the_one_with_the_lowest_validation_loss(tmp_path: Path) -> None:
    losses: list[float] = []
    weights: list[dict[str, torch.Tensor]] = []

    def watch(epoch: int, step: int, steps: int, loss: float) -> None:
        if epoch > 0 and step == 0:  # the state file holds the average after the epoch before
            weights.append(load_file(tmp_path / "state.safetensors"))

    recipe = replace(ROTATIONS, epochs=4)
    best = train(tiny_task(recipe), tmp_path, progress=watch)
    weights.append(load_file(tmp_path / "state.safetensors"))
    losses = [entry.validation_loss for entry in read_log(tmp_path)]
    kept = weights[int(np.argmin(losses))]
    for name, value in best.state_dict().items():
        assert torch.equal(value, kept[f"average.{name}"]), name


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_checkpoint(tmp_path: Path, monkeypatch) -> None:
    right = image.cross_entropy

    def later_wrong(*arguments, **settings):  # type: ignore[no-untyped-def]
        loss = right(*arguments, **settings)
        second = (tmp_path / "log.jsonl").exists() and len(read_log(tmp_path)) == 1
        return loss * float("nan") if second else loss

    monkeypatch.setattr(image, "cross_entropy", later_wrong)
    with pytest.raises(TrainingError, match=r"nan in epoch 2, step 1 .* checkpoint of epoch 1 is intact"):
        train(tiny_task(ROTATIONS), tmp_path)
    tensors = load_file(tmp_path / "state.safetensors")
    assert all(torch.isfinite(value).all() for value in tensors.values() if value.dtype.is_floating_point)
    monkeypatch.undo()
    train(tiny_task(ROTATIONS), tmp_path)  # goes on from the intact checkpoint
    assert len(read_log(tmp_path)) == 3


def test_a_full_disk_is_told_in_words_and_the_old_file_stays(tmp_path: Path) -> None:
    """The limit on file sizes makes a real write fail halfway, as a full disk does."""
    script = """
        import resource, signal, sys
        from pathlib import Path
        from torch import nn
        from idecode_core.errors import IdecodeError
        from idecode_core.training.run_state import save_weights
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
        import test_loop as t
        from idecode_core.training.loop import train
        from idecode_core.training.run_state import World
        folder = Path(sys.argv[1])
        model = train(t.tiny_task(t.ROTATIONS), folder, epochs=2)
        world = World.join()
        assert world.size == 2
        total = torch.stack([value.double().sum() for value in model.state_dict().values()]).sum()
        both = [torch.zeros_like(total) for _ in range(2)]
        torch.distributed.all_gather(both, total)
        assert torch.equal(both[0], both[1])
        if world.rank == 0:
            print("agreed")
        world.leave()
        t.end(0)
        """)
    )
    folder = tmp_path / "run"
    done = torchrun(script, str(folder), str(Path(__file__).parent))
    assert "agreed" in done.stdout
    assert len(read_log(folder)) == 2
    train(tiny_task(ROTATIONS), folder, epochs=2)  # a run of several processes is a run like any other


def end(status: int) -> None:
    """The end of a process whose work is done. Without torch's own clearing up: threads of gloo that still run while the
    interpreter is taken down abort it now and then ("terminate called without an active exception"), on a busy machine."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def torchrun(*command: Path | str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Two processes that run the same script, and meet on this machine whatever its name resolves to."""
    here = ["--standalone", "--local-addr=127.0.0.1", "--nproc_per_node=2"]
    start = [sys.executable, "-m", "torch.distributed.run", *here]
    loopback = {"GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo"}
    done = subprocess.run(
        [*start, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **loopback},
        **settings,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def test_only_the_first_of_several_processes_speaks_and_one_detector_is_made(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        sys.path.insert(0, sys.argv.pop(1))
        import test_loop as t
        from idecode_core.cli.app import main
        from idecode_core.training.recipes import RECIPES
        RECIPES["tiny"] = t.ROTATIONS
        t.end(main())
        """)
    )
    images = tiny_images()
    np.savez(tmp_path / "tiny-train.npz", x=images.x, y=images.y)
    arguments = (
        "train",
        "tiny",
        "--device",
        "cpu",
        "--epochs",
        "2",
        "--data-root",
        tmp_path,
        "--out",
        tmp_path / "made",
    )
    done = torchrun(script, Path(__file__).parent, *arguments, cwd=tmp_path)
    for epoch in ("1/2", "2/2"):
        assert done.stderr.count(f"epoch {epoch}: loss") == 1
    assert done.stdout.count("trained and calibrated on 6 held-out images") == 1
    assert load_detector(tmp_path / "made", "cpu").calibration.k == 6


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


def test_the_kept_epoch_has_the_lowest_validation_loss_or_is_the_last_one() -> None:
    validated = [EpochLog(i, 1.0, 1.0, validation_loss=loss) for i, loss in enumerate((0.5, 0.2, 0.3))]
    assert kept_epoch(validated).epoch == 1
    assert kept_epoch([EpochLog(i, 1.0 / (5 - i), 1.0) for i in range(4)]).epoch == 3


def test_training_leaves_the_global_generators_alone(tmp_path: Path) -> None:
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    train(tiny_task(ROTATIONS), tmp_path, epochs=1)
    assert torch.equal(torch.get_rng_state(), torch_before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def test_a_missing_dataset_says_which_file_and_which_command(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar10-train\.npz.*data fetch cifar10"):
        load_images("cifar10-train", tmp_path)


def test_training_and_scoring_see_the_same_resized_pixels() -> None:
    images = tiny_images(3, 24)
    preprocessing = Preprocessing(16)
    np.testing.assert_array_equal(preprocessing.resize(images.x)[1], preprocessing(images.x[1]))


def test_every_error_of_training_is_one_that_a_user_is_told_in_words() -> None:
    assert issubclass(TrainingError, IdecodeError)


def starting_from(folder: Path, **changes: Any) -> Recipe[Pictures]:
    return replace(ROTATIONS, shows=replace(ROTATIONS.shows, start_from=str(folder)), **changes)


def test_training_can_start_from_a_detectors_backbone_on_the_same_training_points_only(
    tmp_path: Path,
) -> None:
    first = tiny_task(ROTATIONS)
    train(first, tmp_path / "first", epochs=1)
    finish(first, tmp_path / "first", tmp_path / "detector", n_max=2)
    learned = load_detector(tmp_path / "detector").scorer.model.backbone.state_dict()
    second = starting_from(tmp_path / "detector", learning_rate=0.0, ema=0.0)
    begun = train(tiny_task(second), tmp_path / "second", epochs=1).backbone.state_dict()
    weights = [name for name in learned if "running" not in name and "tracked" not in name]
    assert all(torch.equal(begun[name], learned[name]) for name in weights)
    fewer = tiny_images(48)  # whose split is another one
    with pytest.raises(TrainingError, match="another split"):
        train(tiny_task(second, fewer), tmp_path / "third", epochs=1)


def test_a_detector_to_start_from_that_is_not_there_is_named_with_the_command_that_makes_it(
    tmp_path: Path,
) -> None:
    recipe = starting_from(tmp_path / "fashion-quick")
    with pytest.raises(TrainingError, match=r"fashion-quick.*not there.*train fashion-quick --out"):
        train(tiny_task(recipe), tmp_path / "run", epochs=1)


def test_a_detector_knows_its_dataset_and_what_is_in_distribution(tmp_path: Path) -> None:
    task = tiny_task(replace(ROTATIONS, dataset="fashionmini", summary="Grey pictures"))
    train(task, tmp_path / "run", epochs=1)
    finish(task, tmp_path / "run", tmp_path / "made", n_max=2)
    made = load_detector(tmp_path / "made", "cpu")
    assert (made.dataset, made.summary) == ("fashion", "Grey pictures")
