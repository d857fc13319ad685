"""What should one draw of the joint network count? Tried on development data: `python -m research.joint_choice FOLDER`.

The network names the class and the turn of g(x), and the class of x, which is encoded once. Candidates read its outputs and
features of the same draws; none of the tables' OOD sets is looked at. docs/joint.md holds the table.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet, load_images
from idecode_core.ncm import RANGES, cross_entropy, evidence, familiarity, label_logit
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.scorer import chunks, prepared
from idecode_core.scorers.distances import shared_gaussian, squared_distances
from idecode_core.transforms import SharpRotations
from research.development import development_sets, validation_images

BATCH, BANK, K = 100, 5000, 50
DRAWS = {"one": 5, "all": 2}


@dataclass(frozen=True, eq=False)
class Known:
    """Features of training points, at length 1, and what was fitted to them."""

    bank: Tensor  # (BANK, d)
    gaussian: tuple[Tensor, Tensor, Tensor]

    def neighbour(self, z: Tensor) -> Tensor:
        """Distance of features (..., d), at length 1, from the K-th nearest ones: (...)."""
        flat = normalize(z, dim=-1).flatten(0, -2)
        parts = [torch.cdist(part, self.bank).kthvalue(K, dim=1).values for part in flat.split(1000)]
        return torch.cat(parts).view(z.shape[:-1])

    def distance(self, z: Tensor) -> Tensor:
        """Mahalanobis distance, squared, from the closest class, of features (..., d) at length 1: (...)."""
        nearest = squared_distances(normalize(z, dim=-1).flatten(0, -2), *self.gaussian).amin(dim=1)
        return nearest.view(z.shape[:-1])


@dataclass(frozen=True, eq=False)
class Answers:
    """What M said of the draws of each image, and of the image itself."""

    logits: Tensor  # (N, m, RANGES + classes)
    features: Tensor  # (N, m, d)
    turn: Tensor  # (N, m): the turn that was applied
    of_x: Tensor  # (N, classes)
    features_of_x: Tensor  # (N, d)
    mirrored: Tensor  # (N, classes): what M says of x and of its mirror image, in the mean
    known: Known

    @property
    def error(self) -> Tensor:
        return cross_entropy(self.logits[..., :RANGES], self.turn)

    @property
    def classes(self) -> Tensor:
        return self.logits[..., RANGES:]

    @property
    def evidence_of_x(self) -> Tensor:
        return evidence(self.of_x)[:, None]

    @property
    def from_uniform(self) -> Tensor:
        """KL(uniform || M(g(x))), up to a constant: large where M is sure of a class."""
        return -log_softmax(self.classes, dim=-1).mean(dim=-1)


CANDIDATES: dict[str, Callable[[Answers], Tensor]] = {
    "turn": lambda answers: answers.error,
    "turn - familiarity": lambda answers: answers.error - familiarity(answers.features),
    "-log max softmax": lambda answers: -log_softmax(answers.classes, dim=-1).amax(dim=-1),
    "-KL from uniform": lambda answers: -answers.from_uniform,
    "-evidence": lambda answers: -evidence(answers.classes),
    "-evidence of x": lambda answers: -answers.evidence_of_x.expand(answers.error.shape),
    "-logit of x's label": lambda answers: label_logit(answers.classes, answers.of_x),
    "turn - KL from uniform": lambda answers: answers.error - answers.from_uniform,
    "turn - evidence": lambda answers: answers.error - evidence(answers.classes),
    "turn - evidence - familiarity": lambda answers: (
        answers.error - evidence(answers.classes) - familiarity(answers.features)
    ),
    "turn - evidence of x": lambda answers: answers.error - answers.evidence_of_x,
    "0.5 turn - evidence of x": lambda answers: 0.5 * answers.error - answers.evidence_of_x,
    "0.2 turn - evidence of x": lambda answers: 0.2 * answers.error - answers.evidence_of_x,
    "0.1 turn - evidence of x": lambda answers: 0.1 * answers.error - answers.evidence_of_x,
    "-evidence of x and its mirror image": lambda answers: (
        -evidence(answers.mirrored)[:, None].expand(answers.error.shape)
    ),
    "0.2 turn - evidence of x and its mirror image": lambda answers: (
        0.2 * answers.error - evidence(answers.mirrored)[:, None]
    ),
    "-max log softmax of x and its mirror image": lambda answers: (
        -log_softmax(answers.mirrored, dim=-1).amax(dim=-1)[:, None].expand(answers.error.shape)
    ),
    "turn - evidence - evidence of x": lambda answers: (
        answers.error - evidence(answers.classes) - answers.evidence_of_x
    ),
    "turn - logit of x's label": lambda answers: answers.error + label_logit(answers.classes, answers.of_x),
    "turn - logit of x's label - evidence of x": lambda answers: (
        answers.error + label_logit(answers.classes, answers.of_x) - answers.evidence_of_x
    ),
    "nearest neighbours": lambda answers: answers.known.neighbour(answers.features),
    "nearest neighbours of x": lambda answers: answers.known.neighbour(answers.features_of_x)[:, None].expand(
        answers.error.shape
    ),
    "Mahalanobis at length 1": lambda answers: answers.known.distance(answers.features),
    "Mahalanobis at length 1 of x": lambda answers: answers.known.distance(answers.features_of_x)[
        :, None
    ].expand(answers.error.shape),
}


@torch.inference_mode()
def answers(scorer: ImageScorer, images: NDArray[np.uint8], known: Known, draws: int) -> Answers:
    parts = []
    for batch in chunks(prepared(scorer, images, seed=0), BATCH):
        drawn = scorer.transforms.sample(np.stack([point.key for point in batch]), draws)
        x = scorer.tensor(batch)
        predicted, z = scorer.predict(x, drawn), scorer.model.encode(x)
        of_x, of_mirror = (
            scorer.model.decode(None, seen[:, None])[:, 0, RANGES:]
            for seen in (z, scorer.model.encode(x.flip(-1)))
        )
        parts.append(
            (predicted.prediction, predicted.features, predicted.target, of_x, z, (of_x + of_mirror) / 2)
        )
    return Answers(*(torch.cat(part) for part in zip(*parts, strict=True)), known)


@torch.inference_mode()
def known_features(scorer: ImageScorer, images: ImageSet) -> Known:
    batches = chunks(prepared(scorer, images.x, seed=0), 5 * BATCH)
    z = normalize(torch.cat([scorer.model.encode(scorer.tensor(batch)) for batch in batches]), dim=-1)
    return Known(z, shared_gaussian(z, torch.from_numpy(images.y)))


def main(
    folder: Annotated[Path, typer.Argument(help="A detector that names classes and turns.")] = Path(
        "checkpoints/cifar10-joint"
    ),
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
) -> None:
    """AUROC in percent of every candidate on every development set, and the mean; the sum over the draws."""
    scorer = load_detector(folder).scorer
    assert isinstance(scorer, ImageScorer)
    split = read_split(folder)
    train = load_images("cifar10-train", data_root)
    known = known_features(scorer, train.take(np.random.default_rng(0).permutation(split.proper)[:BANK]))
    validation, outside = validation_images(split, data_root), development_sets(data_root)
    for per_draw, draws in DRAWS.items():
        drawing = replace(scorer, transforms=SharpRotations(per_draw=per_draw))  # type: ignore[arg-type]
        inside = answers(drawing, validation.x, known, draws)
        others = {name: answers(drawing, images.x, known, draws) for name, images in outside.items()}
        rows = []
        for name, candidate in CANDIDATES.items():
            iid = candidate(inside).sum(dim=1).double().numpy()
            aurocs = [auroc(iid, candidate(other).sum(dim=1).double().numpy()) for other in others.values()]
            rows.append([name, *(f"{100 * value:.1f}" for value in aurocs), f"{100 * np.mean(aurocs):.2f}"])
        right = float((inside.of_x.argmax(dim=1).numpy() == validation.y).mean())
        typer.echo(
            f"per_draw = {per_draw}, n = {draws}; {100 * right:.1f} % of the validation part named right\n"
        )
        typer.echo(table(["score", *outside, "mean"], rows) + "\n")


if __name__ == "__main__":
    typer.run(main)
