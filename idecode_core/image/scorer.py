"""From pictures to score vectors V (Eq. 4): the Scorer for images.

x is encoded once where it is needed at all; the n transformed versions of many points go through the network together,
in inference mode. Where G is finite (84 integer angles, App. C.1.4) and more variants are drawn than there are, each is
scored once and looked up.

What all scorers of pictures share: pictures are decoded, keyed by their content and brought to the model's size in one way.

The transformed versions of a picture, for display: what was applied, what M said, how strange it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.device import CPU
from idecode_core.draws import Prepared, content_key
from idecode_core.errors import SettingError
from idecode_core.image.features import Preprocessing, eight_bits, unit_range
from idecode_core.image.read import Pixels, decode
from idecode_core.models import Equivariant, ModelConfig, blank_model
from idecode_core.models.pieces import in_pieces, with_weights
from idecode_core.ncm import BASE_NCMS, BaseNCM
from idecode_core.scorer import (
    VARIANTS_PER_BATCH,
    Inspected,
    NetworkScorer,
    Samples,
    Variant,
    Vectors,
    chunks,
    prepared,
    terms_by_draw,
)
from idecode_core.transforms import Rotations, TransformSet, build_transforms
from idecode_core.transforms.base import most_likely


class TakesPictures:
    """For a scorer with these fields: the methods of `Scorer` that are about its input."""

    modality: ClassVar[str] = "image"
    preprocessing: Preprocessing
    device: torch.device

    def decode(self, samples: Any) -> Iterator[Any]:
        return decode(samples)

    def prepare(self, decoded: Pixels, seed: int) -> Prepared:
        return Prepared(content_key(decoded, seed), seed, self.preprocessing(decoded))

    def tensor(self, points: Sequence[Prepared]) -> Tensor:
        """Prepared samples -> floats in [0, 1] on the device: (batch, 3, size, size)."""
        return unit_range([point.x for point in points], self.device)


def image_variants(
    transforms: TransformSet,
    classes: Sequence[str],
    gx: Tensor,
    parameters: Tensor,
    prediction: Tensor,
    scores: NDArray[np.float64],
) -> tuple[Variant, ...]:
    """One point's variants: gx (m, 3, h, w), parameters (m, ...), prediction (m, outputs), scores (m,)."""
    said = prediction.cpu()
    about_g, about_x = said[:, : said.shape[1] - len(classes)], said[:, said.shape[1] - len(classes) :]
    turned = transforms.answers(about_g) if about_g.shape[1] else []
    named = most_likely(about_x, classes) if classes else []
    answers = (
        [", ".join(both) for both in zip(turned, named, strict=True)] if turned and named else turned or named
    )
    return tuple(
        Variant(image, applied, predicted, float(score), index // transforms.variants)
        for index, (image, applied, predicted, score) in enumerate(
            zip(eight_bits(gx), transforms.describe(parameters), answers, scores, strict=True)
        )
    )


@dataclass(frozen=True, eq=False)
class Predicted:
    """What M says of m variants of each point of a batch."""

    prediction: Tensor  # (batch, m, outputs): M(g(x))
    reference: Tensor | None  # (batch, outputs): M(x), where the base NCM asks for it
    target: Tensor  # (batch, m, ...): what a model that predicts g should answer
    features: Tensor | None  # (batch, m, d): M's features of g(x), where they are to be had
    mirrored: Tensor | None = None
    """(batch, outputs): the mean of M(x) and M(mirror image), where it is asked for."""
    user_ncm: BaseNCM | None = None
    """A user's base NCM, in place of the named one."""

    def scores(self, base_ncm: str) -> Tensor:
        """A(X_tr, x; g) (Eq. 2): (batch, m)."""
        first, *others = self.terms(base_ncm).values()
        return sum(others, start=first)

    def terms(self, base_ncm: str) -> dict[str, Tensor]:
        """Its summands, each (batch, m)."""
        ncm = self.user_ncm or BASE_NCMS[base_ncm]
        of_x = self.mirrored if ncm.mirrored and self.mirrored is not None else self.reference
        return ncm.terms(self.prediction, of_x, self.target, self.features)


@dataclass(frozen=True, eq=False)
class ImageScorer(TakesPictures, NetworkScorer):
    """M, G and the base NCM for images, with the preprocessing that belongs to them."""

    kind: ClassVar[str] = "image"
    title: ClassVar[str] = "iDECODe on pictures"
    summary: ClassVar[str] = "how badly the model answers for transformed pictures, by a base NCM"
    input_field: ClassVar[str] = "preprocessing"

    model: Equivariant
    transforms: TransformSet
    base_ncm: str
    preprocessing: Preprocessing
    device: torch.device = CPU
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.base_ncm not in BASE_NCMS:
            raise SettingError(
                f"No base NCM is called {self.base_ncm!r}; expected one of {', '.join(BASE_NCMS)}."
            )
        self.model.to(self.device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

    @property
    def together(self) -> int:
        """Pictures that go through the network at once: fewer where it enlarges them, and on a processor so few that its caches
        hold what the layers say."""
        return VARIANTS_PER_BATCH // self.model.config.enlarge ** (3 if self.device.type == "cpu" else 2)

    def batches(
        self, base_ncms: Sequence[str], samples: Samples, n: int, seed: int
    ) -> Iterator[tuple[dict[str, Vectors], Tensor]]:
        drawn_per_point = n * self.transforms.variants
        table = self.transforms.all_angles() if isinstance(self.transforms, Rotations) else None
        if table is not None and len(table) >= drawn_per_point:
            table = None  # fewer draws than angles: nothing to look up
        shown_per_point = drawn_per_point if table is None else len(table)
        for chunk in chunks(prepared(self, samples, seed), max(1, VARIANTS_PER_BATCH // shown_per_point)):
            keys = np.stack([point.key for point in chunk])
            drawn = self.transforms.sample(keys, n)  # (batch, n * variants, ...)
            shown = drawn if table is None else table.expand(len(chunk), -1)  # (batch, m, ...)
            with torch.inference_mode():
                predicted = self.predict(self.tensor(chunk), shown, base_ncms)
                scores = {name: predicted.scores(name).cpu().double().numpy() for name in base_ncms}
            if table is not None:
                assert isinstance(self.transforms, Rotations)
                places = self.transforms.places(drawn).numpy()
                scores = {name: np.take_along_axis(values, places, axis=1) for name, values in scores.items()}
            yield (
                {name: values.reshape(len(chunk), n, -1).mean(axis=2) for name, values in scores.items()},
                drawn,
            )

    def predict(self, x: Tensor, parameters: Tensor, base_ncms: Sequence[str] | None = None) -> Predicted:
        """M on the variants of x (batch, 3, h, w) that the drawn parameters (batch, m, ...) make."""
        return self.predict_variants(x, self.transforms.apply(x, parameters), parameters, base_ncms)

    def predict_variants(
        self, x: Tensor, gx: Tensor, parameters: Tensor, base_ncms: Sequence[str] | None = None
    ) -> Predicted:
        """M on g(x) (batch, m, 3, h, w), and once on x where the model or a base NCM asks for it."""
        z = reference = mirrored = None
        ncms = [BASE_NCMS[name] for name in base_ncms or [self.base_ncm]]
        if self.model.config.pair or any(ncm.asks_x for ncm in ncms):
            z = in_pieces(self.model.encode, x, self.together)  # once, for all m variants
            reference = self.model.decode(z, z[:, None])[:, 0]
            if any(ncm.mirrored for ncm in ncms):
                other = in_pieces(self.model.encode, x.flip(-1), self.together)
                mirrored = (reference + self.model.decode(other, other[:, None])[:, 0]) / 2
        encoded = in_pieces(self.model.encode, gx.flatten(0, 1), self.together)
        z_g = encoded.unflatten(0, gx.shape[:2])  # (batch, m, d)
        return Predicted(
            self.model.decode(z, z_g), reference, self.transforms.target(parameters), z_g, mirrored
        )

    def logits(self, samples: Samples) -> Tensor:
        """M(x) of each image, without transforms: (N, classes). What a classifier says; its answer about g is left out."""
        points = prepared(self, samples, seed=0)
        with torch.inference_mode():
            rows = [
                self.model.decode(None, self.model.encode(self.tensor(chunk))[:, None])[:, 0].cpu()
                for chunk in chunks(points, max(1, self.together // 2))
            ]
        return torch.cat(rows)[:, -len(self.classes) :]

    def inspect_prepared(self, point: Prepared, n: int) -> Inspected:
        drawn = self.transforms.sample(point.key[None], n)  # (1, m, ...)
        x = self.tensor([point])
        with torch.inference_mode():
            gx = self.transforms.apply(x, drawn)
            predicted = self.predict_variants(x, gx, drawn)
            scores = predicted.scores(self.base_ncm).cpu().double().numpy()  # (1, m)
            terms = {
                name: part.cpu().double().numpy().reshape(n, -1).mean(axis=1)  # (n,)
                for name, part in predicted.terms(self.base_ncm).items()
            }
        return Inspected(
            scores.reshape(1, n, -1).mean(axis=2)[0],
            image_variants(
                self.transforms, self.classes, gx[0], drawn[0], predicted.prediction[0], scores[0]
            ),
            terms_by_draw(terms),
        )

    @classmethod
    def build(
        cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> "ImageScorer":
        """The inverse of `settings` and `tensors`."""
        config = ModelConfig.read(settings["model"])
        return cls.around(with_weights(lambda: blank_model(config), tensors), settings, device)

    @classmethod
    def around(cls, model: Any, settings: Mapping[str, Any], device: torch.device) -> Self:
        """A scorer with this model; the rest is as the settings say."""
        return cls(
            model,
            build_transforms(settings["transforms"]),
            settings["base_ncm"],
            Preprocessing(**settings["preprocessing"]),
            device,
            tuple(settings["classes"]),
        )
