"""From samples to score vectors V (Eq. 4): one base NCM score for each of n transforms drawn for each point.

x is encoded once, all variants go through the network in large batches under inference mode, and memory is
bounded by the batch, not by the dataset. Whatever the batch, a point's draws are its own (design invariant 1).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from idecode_core.draws import content_keys
from idecode_core.errors import InputError, SettingError
from idecode_core.images import Pixels, Preprocessing, read_image
from idecode_core.models import Equivariant
from idecode_core.ncm import BASE_NCMS
from idecode_core.transforms import Projective, TransformSet

VARIANTS_PER_BATCH = 512  # images that go through the network at once
Progress = Callable[[int], None]
"""Called with the number of points scored so far."""
Samples = Any
"""What a detector takes; for images: uint8 (N, H, W, 3), a list of paths, PIL images or arrays, an iterable of batches."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Score vectors of a batch and the transforms that were drawn for them."""

    score_vectors: NDArray[np.float64]  # (batch, n)
    parameters: tuple[Tensor, ...]  # per point: the parameters of its draws


@dataclass(frozen=True, eq=False)
class Variant:
    """One transformed input, for display."""

    image: NDArray[np.uint8]  # (h, w, 3); for sound a picture of the spectrogram
    applied: str
    predicted: str
    score: float
    draw: int  # which of the n draws it belongs to


class Scorer(Protocol):
    """What a Detector needs of the part that turns samples into score vectors."""

    @property
    def modality(self) -> str:
        """ "image" or "audio"."""
        ...

    def score(self, samples: Samples, *, n: int, seed: int, progress: Progress | None = None) -> Scored:
        """Draw n transforms for each point and score them."""
        ...

    def describe(self, parameters: Tensor) -> list[str]:
        """One point's draws in words."""
        ...

    def variants(self, sample: Any, *, n: int, seed: int) -> list[Variant]:
        """The transformed versions of one sample, with what was applied, predicted and scored."""
        ...


def choose_device(device: str | torch.device | None = None) -> torch.device:
    """The given device, else the best that is there: cuda, mps, cpu."""
    if device is not None:
        try:
            chosen = torch.device(device)
        except RuntimeError:
            raise SettingError(
                f"No device is called {device!r}: expected cpu, cuda, cuda:1, ... or mps."
            ) from None
        missing = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
        if missing.get(chosen.type, False):
            raise SettingError(
                f"The device {device!r} is not to be had on this machine; use cpu, or leave it out."
            )
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def decode_samples(samples: Samples) -> Iterator[Pixels]:
    """Every accepted form of samples, one decoded image after the other."""
    if isinstance(samples, str | Path | bytes | Image.Image) or (
        isinstance(samples, np.ndarray) and samples.ndim < 4
    ):
        samples = [samples]
    if not isinstance(samples, Iterable):
        raise InputError(
            f"Expected images: an array (N, H, W, 3), a list of paths, PIL images or arrays, or an iterable of "
            f"batches; got {type(samples).__name__}."
        )
    for sample in samples:
        if isinstance(sample, np.ndarray) and sample.ndim == 4:
            yield from (read_image(image) for image in sample)
        elif isinstance(sample, list | tuple):
            yield from decode_samples(sample)
        else:
            yield read_image(sample)


def chunks(items: Iterable[Pixels], size: int) -> Iterator[list[Pixels]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def check_n(n: int) -> None:
    if n < 1:
        raise SettingError(f"n must be at least 1, the number of transforms drawn for each point, got {n}.")


@dataclass(frozen=True, eq=False)
class ImageScorer:
    """M, G and the base NCM for images, with the preprocessing that belongs to them."""

    model: Equivariant
    transforms: TransformSet
    base_ncm: str
    preprocessing: Preprocessing
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    classes: tuple[str, ...] = ()
    modality: str = "image"

    def __post_init__(self) -> None:
        if self.base_ncm not in BASE_NCMS:
            raise SettingError(
                f"No base NCM is called {self.base_ncm!r}; expected one of {', '.join(BASE_NCMS)}."
            )
        self.model.to(self.device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

    def score(self, samples: Samples, *, n: int, seed: int, progress: Progress | None = None) -> Scored:
        check_n(n)
        vectors: list[NDArray[np.float64]] = []
        parameters: list[Tensor] = []
        points = max(1, VARIANTS_PER_BATCH // (n * self.transforms.variants))
        done = 0
        for chunk in chunks(decode_samples(samples), points):
            drawn = self.transforms.sample(content_keys(chunk, seed), n)  # (batch, m, ...), m = n * variants
            vectors.append(
                self.base_scores(self.tensor(chunk), drawn).reshape(len(chunk), n, -1).mean(axis=2)
            )
            parameters.extend(drawn)
            done += len(chunk)
            if progress is not None:
                progress(done)
        if not vectors:
            raise InputError("Expected at least one image, got none; add files or check the folder.")
        return Scored(np.concatenate(vectors), tuple(parameters))

    def tensor(self, images: Sequence[Pixels]) -> Tensor:
        """Decoded images -> floats in [0, 1] at the model's size, on the device: (batch, 3, size, size)."""
        stack = np.stack([self.preprocessing(image) for image in images])
        return torch.from_numpy(stack).to(self.device).permute(0, 3, 1, 2).float() / 255

    def base_scores(self, x: Tensor, parameters: Tensor) -> NDArray[np.float64]:
        """A(X_tr, x; g) for each drawn g (Eq. 2): x (batch, 3, h, w), parameters (batch, m, ...) -> (batch, m)."""
        with torch.inference_mode():
            prediction, reference, features = self.predict(x, self.transforms.apply(x, parameters))
            scores = BASE_NCMS[self.base_ncm](
                prediction, reference, self.transforms.target(parameters), features
            )
        return scores.double().cpu().numpy()

    def predict(self, x: Tensor, gx: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """M(g(x)) (batch, m, outputs), M(x) (batch, outputs) where the model or the NCM asks for it, and M's features
        of g(x) (batch, m, d)."""
        z = reference = None
        if self.model.config.pair or BASE_NCMS[self.base_ncm].against == "x":
            z = self.model.encode(x)  # once, for all m variants
            reference = self.model.decode(z, z[:, None])[:, 0]
        pieces = [self.model.encode(piece) for piece in gx.flatten(0, 1).split(VARIANTS_PER_BATCH)]
        z_g = torch.cat(pieces).unflatten(0, gx.shape[:2])  # (batch, m, d)
        return self.model.decode(z, z_g), reference, z_g

    def describe(self, parameters: Tensor) -> list[str]:
        return self.transforms.describe(parameters)

    def variants(self, sample: Any, *, n: int, seed: int) -> list[Variant]:
        check_n(n)
        pixels = read_image(sample)
        drawn = self.transforms.sample(content_keys([pixels], seed), n)
        x = self.tensor([pixels])
        with torch.inference_mode():
            gx = self.transforms.apply(x, drawn)
            prediction, _, _ = self.predict(x, gx)
        scores = self.base_scores(x, drawn)[0]
        images = (gx[0].clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        answers = self.answers(prediction[0].cpu())
        return [
            Variant(image, applied, predicted, float(score), index // self.transforms.variants)
            for index, (image, applied, predicted, score) in enumerate(
                zip(images, self.describe(drawn[0]), answers, scores, strict=True)
            )
        ]

    def answers(self, prediction: Tensor) -> list[str]:
        """What M said of each variant, in words. prediction (m, outputs)."""
        if isinstance(self.transforms, Projective):
            return self.describe(self.transforms.parameters(prediction))
        shares = prediction.softmax(dim=-1)
        names = self.classes or tuple(
            f"turned by about {90 * i} degrees" for i in range(prediction.shape[-1])
        )
        return [f"{names[int(row.argmax())]} ({float(row.max()):.0%} sure)" for row in shares]
