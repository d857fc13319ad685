"""A small untrained scorer and small images, for tests that need a model but no trained one; a watch over devices; what several tests ask."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from idecode_core.draws import content_key
from idecode_core.folder.shelf import ScoreSet, open_scores
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


def contrast(colour: str, other: str) -> float:
    """The contrast ratio of two colours, from 1 to 21 (WCAG 2.2).

    >>> round(contrast("#FFFFFF", "#000000"), 1)
    21.0
    """
    brighter, darker = sorted((_luminance(colour), _luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def read_scores(place: Path | str, scorer_sha256: str | None = None, scorer: str = "") -> list[ScoreSet]:
    """The stored sets of a scorer, the iD test set first."""
    return list(open_scores(place, scorer, scorer_sha256).sets.values())
