"""The one extension point: a scorer turns samples into score vectors V (Eq. 4) and knows how to be saved.

iDECODe for pictures and for sounds, a merged detector, a rival, a user's network: all are scorers, and whatever scores
can be calibrated. A new kind is one file with a class that has these methods, and one line in SCORERS.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.data import beside_checkout
from idecode_core.draws import Prepared
from idecode_core.errors import CheckpointError, InputError, SettingError
from idecode_core.files.names import NOUNS
from idecode_core.files.shown import Shown
from idecode_core.transforms import transform_settings
from idecode_core.verdict import sentence

if TYPE_CHECKING:
    from idecode_core.conformal.judge import Verdict
    from idecode_core.conformal.settings import Settings as JudgeSettings
    from idecode_core.detector import Detector

REPR_VARIANTS = 5
"""Draws that a terminal shows."""
VARIANTS_PER_BATCH = 512  # transformed inputs that go through a network at once
Progress = Callable[[int], None]
"""Called with the number of points scored so far."""
Samples = Any
"""What a scorer takes: decoded inputs, files, `Prepared` samples, or an iterable of any of them."""
Settings = dict[str, Any]
"""A scorer without its tensors, ready for JSON."""
Vectors = NDArray[np.float64]
T = TypeVar("T")

SCORERS = {
    "image": "idecode_core.image.scorer:ImageScorer",
    "audio": "idecode_core.audio.scorer:AudioScorer",
    "merged": "idecode_core.scorers.merged:MergedScorer",
    "own": "idecode_core.scorers.user_network:UserScorer",
    "mahalanobis": "idecode_core.scorers.distances:Mahalanobis",
    "neighbours": "idecode_core.scorers.distances:Neighbours",
    "patches": "idecode_core.scorers.patches:Patches",
    "places": "idecode_core.scorers.patches:Places",
    "sound_statistics": "idecode_core.scorers.sound_statistics:SoundStatistics",
    "sound_distance": "idecode_core.scorers.sound_distance:SoundDistance",
    "sbp": "idecode_core.scorers.logits:SBP",
    "odin": "idecode_core.scorers.logits:ODIN",
    "energy": "idecode_core.scorers.logits:Energy",
    "vim": "idecode_core.scorers.distances:ViM",
    "mahalanobis_once": "idecode_core.scorers.distances:MahalanobisOnce",
    "unit_mahalanobis_once": "idecode_core.scorers.distances:UnitMahalanobisOnce",
    "turned_mahalanobis_once": "idecode_core.scorers.distances:TurnedMahalanobisOnce",
    "neighbours_once": "idecode_core.scorers.distances:NeighboursOnce",
    "kernel_density": "paper.rivals.densities:KernelDensity",
    "lid": "paper.rivals.densities:LocalDimension",
    "mahalanobis_layers": "paper.rivals.densities:MahalanobisLayers",
    "odds": "paper.rivals.odds:Odds",
    "reconstruction": "paper.rivals.reconstruction:Reconstruction",
    "oc_svm": "paper.rivals.svdd:OCSVM",
    "deep_svdd": "paper.rivals.svdd:DeepSVDD",
    "geometric": "paper.rivals.turns:Geometric",
    "rotnet": "paper.rivals.turns:RotNet",
    "auxiliary": "paper.rivals.turns:Auxiliary",
    "auxiliary_shifts": "paper.rivals.turns:AuxiliaryShifts",
    "goad": "paper.rivals.goad:GOAD",
    "goad_affine": "paper.rivals.goad:AffineGOAD",
    "csi": "paper.rivals.csi:CSI",
}
"""Kind in config.json -> the class that it is rebuilt by. Loaded on first use."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Score vectors of a batch and the transforms that were drawn for them."""

    score_vectors: Vectors  # (batch, n)
    parameters: tuple[Tensor, ...]  # per point: the parameters of its draws


@dataclass(frozen=True)
class Term:
    """One summand of a draw's score, in words a newcomer understands."""

    name: str
    value: float


@dataclass(frozen=True, eq=False)
class Variant:
    """One transformed input, for display."""

    image: NDArray[np.uint8]  # (h, w, 3); for sound a picture of the spectrogram
    applied: str
    predicted: str
    score: float
    draw: int  # which of the n draws it belongs to
    member: str = ""
    """Of a merged detector: which member saw it."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Who looked at a sample, how, and the verdict."""

    detector: "Detector"
    settings: "JudgeSettings"
    verdict: "Verdict"


@dataclass(frozen=True, eq=False, repr=False)
class Inspected(Shown):
    """One sample in full, from the one pass that scores it."""

    score_vector: Vectors  # (n,): what `score` gives for this sample
    variants: tuple[Variant, ...]
    terms: tuple[tuple[Term, ...], ...]
    """Per draw: the summands of its score."""
    seen: Seen | None = field(default=None, kw_only=True)
    """Where a detector looked: what the verdict is made of."""

    def __repr__(self) -> str:
        lines = [sentence(self.seen.verdict)] if self.seen else []
        draws = self.variants[:REPR_VARIANTS]
        lines += [
            f"  draw {variant.draw + 1}: {variant.applied}, score {variant.score:.3g}" for variant in draws
        ]
        rest = len(self.variants) - len(draws)
        return "\n".join([*lines, *([f"  ... and {rest} more"] if rest else [])])

    def explore(self) -> Any:
        """Sliders for n and epsilon in a notebook; they only slice V, so the model is not asked again."""
        return import_module("idecode_core.report.explore").explore_inspected(self)  # a layer above


def terms_by_draw(parts: Mapping[str, Vectors]) -> tuple[tuple[Term, ...], ...]:
    """Summands by name, each (n,) -> the terms of each draw."""
    return tuple(
        tuple(Term(name, float(value)) for name, value in zip(parts, values, strict=True))
        for values in zip(*parts.values(), strict=True)
    )


class Scorer(Protocol):
    """What a Detector needs of the part that turns samples into score vectors."""

    kind: ClassVar[str]
    """The scorer's name in SCORERS."""

    @property
    def modality(self) -> str:
        """ "image" or "audio"."""
        ...

    def decode(self, samples: Samples) -> Iterator[Any]:
        """Every accepted form of samples, one decoded input after the other; prepared ones pass through."""
        ...

    def prepare(self, decoded: Any, seed: int) -> Prepared:
        """The key and the model's input of one decoded sample."""
        ...

    def score(self, samples: Samples, *, n: int, seed: int, progress: Progress | None = None) -> Scored:
        """Draw n transforms for each point and score them."""
        ...

    def inspect(self, sample: Any, *, n: int, seed: int) -> Inspected:
        """One sample's score vector, its variants and the terms of each draw, all from one pass."""
        ...

    def describe(self, parameters: Tensor) -> list[str]:
        """One point's draws in words."""
        ...

    def settings(self) -> Settings:
        """Everything but the tensors, ready for JSON; "kind" among them."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Weights and whatever else must be stored to score alike."""
        ...

    @classmethod
    def build(
        cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> "Scorer":
        """The inverse of `settings` and `tensors`."""
        ...


def build_scorer(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device, **given: Any
) -> Scorer:
    """A scorer from what it wrote of itself, and what it cannot write (`given`): a user's network."""
    scorer: Scorer = scorer_class(settings["kind"]).build(settings, tensors, device, **given)
    return scorer


def scorer_class(kind: str) -> Any:
    """The class in SCORERS, with its `title` and `summary`; loaded on first use."""
    if kind not in SCORERS:
        raise CheckpointError(
            f"Unknown kind of scorer {kind!r} in config.json: expected one of {', '.join(SCORERS)}. Update this program."
        )
    module, name = SCORERS[kind].split(":")
    try:
        return getattr(beside_checkout(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "paper":
            raise
        raise CheckpointError(
            f"A scorer of the kind {kind!r} is one of the paper's rivals, which lie beside the package in a checkout and are "
            "not installed: use a checkout."
        ) from error


def prepared(scorer: Scorer, samples: Samples, seed: int) -> Iterator[Prepared]:
    """Each sample decoded once and prepared at once, so that no two decoded inputs are held together."""
    for item in scorer.decode(samples):
        if not isinstance(item, Prepared):
            item = scorer.prepare(item, seed)
        elif item.seed != seed:
            raise SettingError(
                f"A sample was prepared for seed {item.seed} and is to be scored with seed {seed}; prepare it again."
            )
        yield item


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def check_n(n: int) -> None:
    if n < 1:
        raise SettingError(f"n must be at least 1, the number of transforms drawn for each point, got {n}.")


def in_one_pass(
    batches: Iterable[tuple[Mapping[str, Vectors], Iterable[Tensor]]], progress: Progress | None, noun: str
) -> dict[str, Scored]:
    """Batches of (score vectors by base NCM, drawn parameters) -> all points together, by base NCM."""
    by_ncm: dict[str, list[Vectors]] = {}
    parameters: list[Tensor] = []
    for vectors, drawn in batches:
        for name, part in vectors.items():
            by_ncm.setdefault(name, []).append(part)
        parameters.extend(drawn)
        if progress is not None:
            progress(len(parameters))
    if not parameters:
        raise InputError(f"Expected at least one {noun}, got none; add files or check the folder.")
    return {name: Scored(np.concatenate(parts), tuple(parameters)) for name, parts in by_ncm.items()}


class NetworkScorer(ABC):
    """What scorers of one network share: several base NCMs from one pass, and how they are written down.

    Subclasses are frozen dataclasses with these fields, and add how an input is read, prepared and predicted.
    """

    kind: ClassVar[str]
    modality: ClassVar[str]
    model: Any
    transforms: Any
    base_ncm: str
    classes: tuple[str, ...]
    input_field: ClassVar[str]
    """The field that is about the input: preprocessing or features."""

    @abstractmethod
    def batches(
        self, base_ncms: Sequence[str], samples: Samples, n: int, seed: int
    ) -> Iterator[tuple[dict[str, Vectors], Iterable[Tensor]]]:
        """Batch after batch: score vectors (batch, n) by base NCM, and the parameters drawn for each point."""

    @abstractmethod
    def logits(self, samples: Samples) -> Tensor:
        """M(x) of each sample, without transforms: (N, outputs). What a classifier says."""

    @abstractmethod
    def inspect_prepared(self, point: Prepared, n: int) -> Inspected:
        """`inspect` for a prepared sample."""

    def score_under(
        self,
        base_ncms: Sequence[str],
        samples: Samples,
        *,
        n: int,
        seed: int,
        progress: Progress | None = None,
    ) -> dict[str, Scored]:
        """Scores under several base NCMs that read the same predictions, from one pass."""
        check_n(n)
        return in_one_pass(self.batches(base_ncms, samples, n, seed), progress, NOUNS[self.modality])

    def score(self, samples: Samples, *, n: int, seed: int, progress: Progress | None = None) -> Scored:
        return self.score_under([self.base_ncm], samples, n=n, seed=seed, progress=progress)[self.base_ncm]

    def inspect(self, sample: Any, *, n: int, seed: int) -> Inspected:
        check_n(n)
        (point,) = prepared(self, sample, seed)  # type: ignore[arg-type]  # subclasses decode and prepare
        return self.inspect_prepared(point, n)

    def describe(self, parameters: Tensor) -> list[str]:
        words: list[str] = self.transforms.describe(parameters)
        return words

    def settings(self) -> Settings:
        return {
            "kind": self.kind,
            "model": self.model.config.settings(),
            "transforms": transform_settings(self.transforms),
            "base_ncm": self.base_ncm,
            self.input_field: asdict(getattr(self, self.input_field)),
            "classes": list(self.classes),
        }

    def tensors(self) -> dict[str, Tensor]:
        weights: dict[str, Tensor] = self.model.state_dict()
        return weights
