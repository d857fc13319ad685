"""A device that is too small, or gone: smaller batches and a word about it, or one sentence."""

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
from idecode_core.scorers.call_network import UserModel
from idecode_core.scorers.distances import Neighbours
from idecode_core.scorers.features import Frozen
from idecode_core.scorers.logits import Energy
from idecode_core.scorers.user_network import UserScorer
from idecode_core.training.loop import train
from idecode_core.training.parts import image_parts
from idecode_core.training.tasks import make_task
from idecode_core.transforms import SmallAffine


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
