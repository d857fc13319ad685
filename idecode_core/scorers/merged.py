"""Several detectors merged into one: the paper's future work, with the bound kept.

Each member scores with transforms of its own, the ones that it would draw alone; a member's score becomes -log of
its rank among reference points, and a draw's merged score is the (weighted) sum over members. That is one more base
NCM: it is calibrated on points that were not used for ranking, so Theorem 1 holds for it as for any other. Members'
draws for one point may depend on each other; what counts is that each point has its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from idecode_core.conformal import p_values
from idecode_core.draws import Prepared
from idecode_core.errors import SettingError
from idecode_core.files.names import NOUNS
from idecode_core.scorer import (
    Inspected,
    Progress,
    Samples,
    Scored,
    Scorer,
    Settings,
    Term,
    Variant,
    Vectors,
    build_scorer,
    chunks,
    in_one_pass,
    prepared,
)

POINTS_PER_CHUNK = 128


def merge_terms(
    member_vectors: Sequence[Vectors], references: Sequence[Vectors], weights: Sequence[float]
) -> list[Vectors]:
    """Members' score vectors, each (batch, n) -> weight * -log(rank among the reference), each (batch, n)."""
    return [
        weight * -np.log(p_values(reference.ravel(), vectors.ravel()).reshape(vectors.shape))
        for vectors, reference, weight in zip(member_vectors, references, weights, strict=True)
    ]


def merge_vectors(
    member_vectors: Sequence[Vectors], references: Sequence[Vectors], weights: Sequence[float]
) -> Vectors:
    """The sum of `merge_terms` over the members: (batch, n)."""
    return sum(merge_terms(member_vectors, references, weights), start=np.zeros_like(member_vectors[0]))


@dataclass(frozen=True, eq=False)
class MergedScorer:
    """Members with, for each, reference base scores (r, n_ref) of points that are not in the calibration set."""

    kind: ClassVar[str] = "merged"
    title: ClassVar[str] = "several detectors merged"
    summary: ClassVar[str] = "the weighted sum over members of -log of their rank among reference points"

    members: tuple[Scorer, ...]
    names: tuple[str, ...]
    references: tuple[Vectors, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        counts = {len(self.members), len(self.names), len(self.references), len(self.weights)}
        if len(counts) != 1 or not self.members:
            raise SettingError(
                "A merged detector needs as many names, references and weights as members, and at least one member; "
                f"got {len(self.members)} members, {len(self.names)} names, {len(self.references)} references and "
                f"{len(self.weights)} weights."
            )
        if len({member.modality for member in self.members}) > 1:
            raise SettingError("A merged detector's members must all take pictures, or all take sounds.")

    @property
    def modality(self) -> str:
        return self.members[0].modality

    def merge(self, member_vectors: Sequence[Vectors]) -> Vectors:
        """Members' score vectors, each (batch, n) -> merged score vectors (batch, n)."""
        return merge_vectors(member_vectors, self.references, self.weights)

    def decode(self, samples: Samples) -> Iterator[Any]:
        return self.members[0].decode(samples)

    def prepare(self, decoded: Any, seed: int) -> Prepared:
        points = tuple(member.prepare(decoded, seed) for member in self.members)
        return Prepared(points[0].key, seed, points)

    def score(self, samples: Samples, *, n: int, seed: int, progress: Progress | None = None) -> Scored:
        def batches() -> Iterator[tuple[dict[str, Vectors], tuple[Tensor, ...]]]:
            for points in chunks(prepared(self, samples, seed), POINTS_PER_CHUNK):
                scored = [
                    member.score([point.x[i] for point in points], n=n, seed=seed)
                    for i, member in enumerate(self.members)
                ]
                yield {"": self.merge([part.score_vectors for part in scored])}, scored[0].parameters

        return in_one_pass(batches(), progress, NOUNS[self.modality])[""]

    def inspect(self, sample: Any, *, n: int, seed: int) -> Inspected:
        """Every member's variants; a draw's terms are what the members add to it."""
        (point,) = prepared(self, sample, seed)
        inspected = [
            member.inspect(x, n=n, seed=seed) for member, x in zip(self.members, point.x, strict=True)
        ]
        vectors = [part.score_vector[None] for part in inspected]
        names = [name.partition("@")[0] for name in self.names]  # a member's base NCM is left out
        adds = [  # but for members that ask one network
            name if names.count(name) == 1 else full.replace("@", ", ")
            for name, full in zip(names, self.names, strict=True)
        ]
        terms = merge_terms(vectors, self.references, self.weights)  # each (1, n)
        variants: list[Variant] = []
        for part, name in zip(inspected, names, strict=True):
            variants += [replace(variant, member=name) for variant in part.variants]
        return Inspected(
            self.merge(vectors)[0],
            tuple(sorted(variants, key=lambda variant: variant.draw)),
            tuple(
                tuple(Term(name, float(term[0, i])) for name, term in zip(adds, terms, strict=True))
                for i in range(n)
            ),
        )

    def describe(self, parameters: Tensor) -> list[str]:
        return self.members[0].describe(parameters)

    def settings(self) -> Settings:
        return {
            "kind": self.kind,
            "names": list(self.names),
            "weights": list(self.weights),
            "members": [member.settings() for member in self.members],
        }

    def tensors(self) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for i, (member, reference) in enumerate(zip(self.members, self.references, strict=True)):
            tensors |= {f"member{i}.{name}": value for name, value in member.tensors().items()}
            tensors[f"reference{i}"] = torch.from_numpy(np.ascontiguousarray(reference))
        return tensors

    @classmethod
    def build(
        cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> "MergedScorer":
        members, references = [], []
        for i, member in enumerate(settings["members"]):
            prefix = f"member{i}."
            of_member = {
                name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)
            }
            members.append(build_scorer(member, of_member, device))
            references.append(tensors[f"reference{i}"].double().numpy())
        weights = tuple(float(weight) for weight in settings["weights"])
        return cls(tuple(members), tuple(settings["names"]), tuple(references), weights)
