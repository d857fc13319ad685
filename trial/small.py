"""Small untrained parts for the trial: a detector, pictures, a training run that takes a second."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from idecode_core.detector import Detector
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.training.parts import image_parts
from idecode_core.training.recipe import Pictures, Recipe
from idecode_core.training.tasks import Task, make_task
from idecode_core.transforms import Rotations

SIZE = 16
MODEL = ModelConfig("compact", outputs=4, widths=(8, 8, 8))
RECIPE = Recipe(
    "tiny",
    "tiny",
    Pictures(MODEL, "transform_class", size=SIZE),
    Rotations(),
    "cross_entropy",
    epochs=3,
    batch=16,
    ema=0.9,
)


def pictures(count: int, seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, SIZE, SIZE, 3), dtype=np.uint8)


def scorer(seed: int = 0) -> ImageScorer:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Equivariant(MODEL).eval()
    return ImageScorer(model, Rotations(), "cross_entropy", Preprocessing(SIZE))


def detector(name: str, seed: int = 0) -> Detector:
    return Detector.calibrate(name, scorer(seed), pictures(30, seed), n_max=20)


def task() -> Task:
    images = pictures(80, 5)
    return make_task(RECIPE, image_parts(RECIPE, ImageSet("tiny-train", images, np.arange(80) % 2)))


def same_weights(a: Path, b: Path) -> bool:
    """Two files of tensors, bit for bit; their order in the file and what is written beside them does not count."""
    one, two = load_file(a), load_file(b)
    return one.keys() == two.keys() and all(torch.equal(value, two[name]) for name, value in one.items())
