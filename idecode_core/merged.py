"""Several detectors merged into one: the paper's future work, with the bound kept.

Each member scores with transforms of its own, the ones that it would draw alone; a member's score becomes -log of
its rank among reference points, and a draw's merged score is the (weighted) sum over members. That is one more base
NCM: it is calibrated on points that were not used for ranking, so Theorem 1 holds for it as for any other. Members'
draws for one point may depend on each other; what counts is that each point has its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.conformal import p_values
from idecode_core.errors import InputError, SettingError
from idecode_core.scoring import ImageScorer, Progress, Samples, Scored, Variant, chunks, decode_samples

POINTS_PER_CHUNK = 128


def merge_vectors(
    member_vectors: Sequence[NDArray[np.float64]],
    references: Sequence[NDArray[np.float64]],
    weights: Sequence[float],
) -> NDArray[np.float64]:
    """Members' score vectors, each (batch, n) -> sum over members of weight * -log(rank among the reference): (batch, n)."""
    total = np.zeros_like(member_vectors[0])
    for vectors, reference, weight in zip(member_vectors, references, weights, strict=True):
        ranks = p_values(reference.ravel(), vectors.ravel()).reshape(vectors.shape)
        total += weight * -np.log(ranks)
    return total


@dataclass(frozen=True, eq=False)
class MergedScorer:
    """Members with, for each, reference base scores (r, n_ref) of points that are not in the calibration set."""

    members: tuple[ImageScorer, ...]
    names: tuple[str, ...]
    references: tuple[NDArray[np.float64], ...]
    weights: tuple[float, ...]
    modality: str = "image"

    def __post_init__(self) -> None:
        counts = {len(self.members), len(self.names), len(self.references), len(self.weights)}
        if len(counts) != 1 or not self.members:
            raise SettingError(
                "A merged detector needs as many names, references and weights as members, and at least one member; "
                f"got {len(self.members)} members, {len(self.names)} names, {len(self.references)} references and "
                f"{len(self.weights)} weights."
            )

    def merge(self, member_vectors: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Members' score vectors, each (batch, n) -> merged score vectors (batch, n)."""
        return merge_vectors(member_vectors, self.references, self.weights)

    def score(self, samples: Samples, *, n: int, seed: int, progress: Progress | None = None) -> Scored:
        vectors: list[NDArray[np.float64]] = []
        parameters: list[Tensor] = []
        done = 0
        for images in chunks(decode_samples(samples), POINTS_PER_CHUNK):
            scored = [member.score(images, n=n, seed=seed) for member in self.members]
            vectors.append(self.merge([s.score_vectors for s in scored]))
            parameters.extend(scored[0].parameters)
            done += len(images)
            if progress is not None:
                progress(done)
        if not vectors:
            raise InputError("Expected at least one image, got none; add files or check the folder.")
        return Scored(np.concatenate(vectors), tuple(parameters))

    def describe(self, parameters: Tensor) -> list[str]:
        return self.members[0].describe(parameters)

    def variants(self, sample: Any, *, n: int, seed: int) -> list[Variant]:
        """The variants of every member, each labelled with the member's name (its base NCM is left out)."""
        found: list[Variant] = []
        for member, name in zip(self.members, self.names, strict=True):
            for variant in member.variants(sample, n=n, seed=seed):
                found.append(
                    Variant(
                        variant.image,
                        f"{name.partition('@')[0]}: {variant.applied}",
                        variant.predicted,
                        variant.score,
                        variant.draw,
                    )
                )
        return sorted(found, key=lambda variant: variant.draw)
