"""A device that is too small, or gone: smaller batches and a word about it, or one sentence."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from small import SIZE, random_images, small_model, small_scorer
from test_loop import ROTATIONS, tiny_images
from torch import nn

from idecode_core.errors import DeviceError, SmallerBatchesWarning
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.models import ModelConfig
from idecode_core.models.pieces import in_pieces
from idecode_core.scorers.call_network import UserModel
from idecode_core.scorers.distances import Neighbours
from idecode_core.scorers.features import Frozen
from idecode_core.scorers.logits import Energy
from idecode_core.scorers.user_network import UserScorer
from idecode_core.training.loop import train
from idecode_core.training.parts import image_parts
from idecode_core.training.tasks import make_task
from idecode_core.transforms import SmallAffine


def fits(most: int, error: type[Exception] = torch.OutOfMemoryError, words: str = "CUDA out of memory."):
    """A network on a device that has room for `most` rows."""
    sizes: list[int] = []

    def network(x: torch.Tensor) -> torch.Tensor:
        sizes.append(len(x))
        if len(x) > most:
            raise error(words)
        return 2 * x

    return network, sizes


@pytest.mark.parametrize("most", [1, 3, 64, 100, 1000])
def test_rows_come_back_complete_and_in_order_whatever_fits(most):
    network, sizes = fits(most)
    x = torch.arange(250.0)[:, None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert torch.equal(in_pieces(network, x, 128), 2 * x)
    told = [str(entry.message) for entry in caught if entry.category is SmallerBatchesWarning]
    assert len(told) == sum(size > most for size in sizes)
    assert all("did not suffice" in sentence for sentence in told)


def test_the_processors_memory_counts_too():
    network, _ = fits(
        10, RuntimeError, "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried ..."
    )
    with pytest.warns(SmallerBatchesWarning, match="going on with"):
        assert len(in_pieces(network, torch.zeros(50, 1), 50)) == 50


def test_a_device_without_room_for_one_row_is_one_sentence():
    with (
        pytest.warns(SmallerBatchesWarning),
        pytest.raises(DeviceError, match="does not suffice for one input"),
    ):
        in_pieces(fits(0)[0], torch.zeros(4, 1), 4)


def test_a_lost_device_is_one_sentence():
    network, _ = fits(
        0, RuntimeError, "CUDA error: unspecified launch failure\nCompile with TORCH_USE_CUDA_DSA"
    )
    with pytest.raises(DeviceError, match="stopped answering") as caught:
        in_pieces(network, torch.zeros(4, 1), 4)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "told"), [("CUDA out of memory.", "smaller batch"), ("CUDA error: gone", "stopped answering")]
)
def test_training_on_a_device_that_is_too_small_or_gone_is_one_sentence(tmp_path, monkeypatch, words, told):
    task = make_task(ROTATIONS, image_parts(ROTATIONS, tiny_images()))

    def fails(*_):
        raise RuntimeError(words)

    monkeypatch.setattr(task, "loss", fails)
    with pytest.raises(DeviceError, match=told):
        train(task, tmp_path)


def test_an_error_of_the_program_is_not_hidden():
    network, _ = fits(0, RuntimeError, "mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        in_pieces(network, torch.zeros(4, 1), 4)


def test_a_detector_on_a_small_device_gives_the_same_scores(monkeypatch):
    scorer, images = small_scorer(), random_images(6)
    before = scorer.score(images, n=5, seed=0).score_vectors
    encode = scorer.model.encode

    def small_device(x: torch.Tensor) -> torch.Tensor:
        if len(x) > 7:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return encode(x)

    monkeypatch.setattr(scorer.model, "encode", small_device)
    with pytest.warns(SmallerBatchesWarning, match="with 7 inputs at once"):
        after = scorer.score(images, n=5, seed=0).score_vectors
    np.testing.assert_allclose(after, before, atol=1e-5)


@contextmanager
def small_device(network: nn.Module, most: int = 3) -> Iterator[None]:
    """The network on a device that has room for `most` rows."""

    def look(_network: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        if len(inputs[0]) > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    hook = network.register_forward_pre_hook(look)
    yield
    hook.remove()


def scorers():
    """A network that sees x too, a rival, a distance on frozen features, and a user's own network; each with the part that
    takes the memory."""
    parts = {"preprocessing": Preprocessing(SIZE)}
    classifier = small_model(5)
    yield ImageScorer(classifier, SmallAffine(), "label_logit", Preprocessing(SIZE)), classifier.backbone
    yield Energy(model=classifier, **parts), classifier.backbone
    frozen = Frozen(ModelConfig("compact", outputs=4, widths=(8, 8, 8)))
    z = nn.functional.normalize(torch.randn(30, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    yield Neighbours.fit(z, torch.arange(30) % 2, model=frozen, transforms=SmallAffine(), **parts), frozen
    own = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 6))
    model = UserModel(own, (0.5,) * 3, (0.5,) * 3, torch.device("cpu"))
    yield UserScorer(model, SmallAffine(), "label_logit", Preprocessing(SIZE)), own


def test_every_kind_of_scorer_goes_on_with_smaller_batches():
    images = random_images(5)
    for scorer, network in scorers():
        before = scorer.score(images, n=2, seed=0).score_vectors
        with small_device(network), pytest.warns(SmallerBatchesWarning, match="inputs at once"):
            after = scorer.score(images, n=2, seed=0).score_vectors
        np.testing.assert_allclose(after, before, atol=1e-4)
