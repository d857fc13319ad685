"""Score vectors for many draws, and for several base NCMs, from one pass through the network.

Two savings, neither of which changes a score. Base NCMs that read the same predictions share them. And where G is
finite (84 integer angles, App. C.1.4), 100 draws of four rotations hold each angle many times over: each is scored
once and looked up.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.draws import content_keys
from idecode_core.errors import InputError
from idecode_core.ncm import BASE_NCMS
from idecode_core.scoring import (
    VARIANTS_PER_BATCH,
    ImageScorer,
    Progress,
    Samples,
    check_n,
    chunks,
    decode_samples,
)
from idecode_core.transforms import Rotations
from idecode_core.transforms.rotations import QUARTER_TURN, RANGES


def all_angles(transforms: Rotations) -> Tensor:
    """Every angle that `transforms` can draw, rising: (4 * (2 * jitter + 1),)."""
    jitter = torch.arange(-transforms.jitter, transforms.jitter + 1)
    return (QUARTER_TURN * torch.arange(RANGES)[:, None] + jitter).flatten()


def angle_places(angles: Tensor, transforms: Rotations) -> Tensor:
    """Where each drawn angle stands in `all_angles`; same shape as `angles`."""
    span = 2 * transforms.jitter + 1
    turns = torch.div(angles + QUARTER_TURN // 2, QUARTER_TURN, rounding_mode="floor")
    return turns * span + (angles - QUARTER_TURN * turns + transforms.jitter)


def score_in_one_pass(
    scorer: ImageScorer,
    samples: Samples,
    base_ncms: Sequence[str],
    *,
    n: int,
    seed: int,
    progress: Progress | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Score vectors (N, n) by base NCM: what `scorer` with that base NCM would give with the same seed."""
    check_n(n)
    transforms = scorer.transforms
    table = all_angles(transforms) if isinstance(transforms, Rotations) else None
    if table is not None and len(table) >= n * transforms.variants:
        table = None  # fewer draws than angles: nothing to look up
    per_point = len(table) if table is not None else n * transforms.variants
    found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in base_ncms}
    done = 0
    for chunk in chunks(decode_samples(samples), max(1, VARIANTS_PER_BATCH // per_point)):
        drawn = transforms.sample(content_keys(chunk, seed), n)  # (batch, n * variants, ...)
        shown = table.expand(len(chunk), -1) if table is not None else drawn  # (batch, m, ...)
        for name, scores in base_scores(scorer, scorer.tensor(chunk), shown, base_ncms).items():
            if table is not None:
                assert isinstance(transforms, Rotations)
                scores = np.take_along_axis(scores, angle_places(drawn, transforms).numpy(), axis=1)
            found[name].append(scores.reshape(len(chunk), n, -1).mean(axis=2))
        done += len(chunk)
        if progress is not None:
            progress(done)
    if not done:
        raise InputError("Expected at least one image, got none; add files or check the folder.")
    return {name: np.concatenate(vectors) for name, vectors in found.items()}


def base_scores(
    scorer: ImageScorer, x: Tensor, parameters: Tensor, base_ncms: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """A(X_tr, x; g) (Eq. 2) under several base NCMs: x (batch, 3, h, w), parameters (batch, m, ...) -> (batch, m)."""
    with torch.inference_mode():
        prediction, reference, features = scorer.predict(x, scorer.transforms.apply(x, parameters))
        if reference is None and any(BASE_NCMS[name].against == "x" for name in base_ncms):
            reference = scorer.model.decode(None, scorer.model.encode(x)[:, None])[:, 0]
        target = scorer.transforms.target(parameters)
        return {
            name: BASE_NCMS[name](prediction, reference, target, features).double().cpu().numpy()
            for name in base_ncms
        }
