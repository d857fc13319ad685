"""A small untrained scorer and small images, for tests that need a model but no trained one; and a watch over devices."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from idecode_core.draws import content_key
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.transforms import Rotations, TransformSet

SIZE = 16


def small_model(outputs: int = 4, *, pair: bool = False, seed: int = 0) -> Equivariant:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Equivariant(ModelConfig("compact", outputs=outputs, pair=pair, widths=(8, 8, 8))).eval()


def small_scorer(
    transforms: TransformSet | None = None,
    base_ncm: str = "cross_entropy",
    *,
    outputs: int = 4,
    pair: bool = False,
    seed: int = 0,
) -> ImageScorer:
    model = small_model(outputs, pair=pair, seed=seed)
    return ImageScorer(model, transforms or Rotations(), base_ncm, Preprocessing(SIZE))


def random_images(count: int, size: int = SIZE, seed: int = 0) -> np.ndarray:
    """Different images with structure of all frequencies: uint8 (count, size, size, 3)."""
    generator = np.random.default_rng(seed)
    coarse = generator.integers(0, 256, (count, 4, 4, 3)).repeat(-(-size // 4), 1).repeat(-(-size // 4), 2)
    fine = generator.integers(-40, 41, (count, size, size, 3))
    return np.clip(coarse[:, :size, :size] + fine, 0, 255).astype(np.uint8)


class OnTheCpuFirst(TorchFunctionMode):
    """Apple's mps has no float64: a tensor must come to the CPU before it becomes double."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: list[torch.Tensor] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.double:
            assert any(args[0] is tensor for tensor in self.arrived), "double() before cpu()"
        found = function(*args, **(kwargs or {}))
        if function is torch.Tensor.cpu:
            self.arrived.append(found)
        return found


def content_keys(xs, seed: int) -> np.ndarray:
    """The keys of a batch: (batch, 2)."""
    return np.array([content_key(x, seed) for x in xs], np.uint64).reshape(-1, 2)


def in_a_loop_of_its_own(call: Coroutine[Any, Any, Any]) -> Any:
    """In a thread: the browser tests that may have run before in this process leave a loop running in the main one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, call).result()
