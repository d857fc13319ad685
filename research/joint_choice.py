"""What should one draw of the joint network count? Tried on development data: `python -m research.joint_choice FOLDER`.

The network names the class and the turn of g(x). Candidates read its outputs and features of the same draws; none of the
tables' OOD sets is looked at. docs/joint.md holds the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from idecode_core.evaluation.metrics import auroc
from idecode_core.folder.detector import load_detector
from idecode_core.folder.training_record import read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.ncm import RANGES, cross_entropy, evidence, familiarity
from idecode_core.report.tables import table
from idecode_core.scorer import chunks, prepared
from research.development import development_sets, validation_images

DRAWS, BATCH, BANK, K = 5, 100, 5000, 50


@dataclass(frozen=True, eq=False)
class Answers:
    """What M said of the draws of each image."""

    logits: Tensor  # (N, m, RANGES + classes)
    features: Tensor  # (N, m, d)
    turn: Tensor  # (N, m): the turn that was applied
    bank: Tensor  # (BANK, d): features of training points, of length 1

    @property
    def error(self) -> Tensor:
        return cross_entropy(self.logits[..., :RANGES], self.turn)

    @property
    def classes(self) -> Tensor:
        return self.logits[..., RANGES:]

    @property
    def from_uniform(self) -> Tensor:
        """KL(uniform || M(g(x))), up to a constant: large where M is sure of a class."""
        return -log_softmax(self.classes, dim=-1).mean(dim=-1)

    @property
    def neighbour(self) -> Tensor:
        """Distance of the features, at length 1, from the K-th nearest ones of the training set."""
        z = normalize(self.features, dim=-1)
        return torch.stack([torch.cdist(one, self.bank).kthvalue(K, dim=1).values for one in z])


CANDIDATES: dict[str, Callable[[Answers], Tensor]] = {
    "turn": lambda found: found.error,
    "turn - familiarity": lambda found: found.error - familiarity(found.features),
    "-log max softmax": lambda found: -log_softmax(found.classes, dim=-1).amax(dim=-1),
    "-largest logit": lambda found: -found.classes.amax(dim=-1),
    "-evidence": lambda found: -evidence(found.classes),
    "-KL from uniform": lambda found: -found.from_uniform,
    "turn - KL from uniform": lambda found: found.error - found.from_uniform,
    "turn - evidence": lambda found: found.error - evidence(found.classes),
    "turn - evidence - familiarity": lambda found: (
        found.error - evidence(found.classes) - familiarity(found.features)
    ),
    "turn - 2 evidence": lambda found: found.error - 2 * evidence(found.classes),
    "nearest neighbours": lambda found: found.neighbour,
    "turn - evidence + 10 neighbours": lambda found: (
        found.error - evidence(found.classes) + 10 * found.neighbour
    ),
}


@torch.inference_mode()
def answers(scorer: ImageScorer, images: NDArray[np.uint8], bank: Tensor) -> Answers:
    parts = []
    for batch in chunks(prepared(scorer, images, seed=0), BATCH):
        drawn = scorer.transforms.sample(np.stack([point.key for point in batch]), DRAWS)
        found = scorer.predict(scorer.tensor(batch), drawn)
        parts.append((found.prediction, found.features, found.target))
    logits, features, turn = (torch.cat(part) for part in zip(*parts, strict=True))
    return Answers(logits, features, turn, bank)


@torch.inference_mode()
def training_features(scorer: ImageScorer, images: NDArray[np.uint8]) -> Tensor:
    batches = chunks(prepared(scorer, images, seed=0), DRAWS * BATCH)
    return normalize(torch.cat([scorer.model.encode(scorer.tensor(batch)) for batch in batches]), dim=-1)


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
    proper = load_images("cifar10-train", data_root).take(split.proper[:BANK])
    bank = training_features(scorer, proper.x)
    inside = answers(scorer, validation_images(split, data_root).x, bank)
    outside = {name: answers(scorer, images.x, bank) for name, images in development_sets(data_root).items()}
    rows = []
    for name, candidate in CANDIDATES.items():
        known = candidate(inside).sum(dim=1).double().numpy()
        found = [auroc(known, candidate(other).sum(dim=1).double().numpy()) for other in outside.values()]
        rows.append([name, *(f"{100 * value:.1f}" for value in found), f"{100 * np.mean(found):.1f}"])
    typer.echo(table(["score", *outside, "mean"], rows))


if __name__ == "__main__":
    typer.run(main)
