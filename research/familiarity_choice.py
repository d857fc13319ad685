"""What else could M's answers tell? Tried on development data: `python -m research.familiarity_choice`.

Candidates read the logits and features of the four exact rotations of each image or, for a classifier, of the image
itself. The base NCMs with familiarity were chosen on this table (docs/familiarity.md).
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

from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.ncm import cross_entropy, familiarity
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.scorer import chunks, prepared
from idecode_core.transforms.rotations import RANGES
from research.development import development_sets, validation_images

BATCH = 256


@dataclass(frozen=True, eq=False)
class Answers:
    """What M said of m versions of each image, and what the loss holds it against."""

    logits: Tensor  # (N, m, outputs)
    features: Tensor  # (N, m, d)
    target: Tensor  # (N, m): the rotation, or the class that M names itself

    @property
    def error(self) -> Tensor:
        return cross_entropy(self.logits, self.target)


Candidate = Callable[[Answers], Tensor]
"""Scores (N, m); larger means stranger."""


def logit(answers: Answers) -> Tensor:
    return -answers.logits.gather(2, answers.target[..., None])[..., 0]


CANDIDATES: dict[str, Candidate] = {
    "cross-entropy": lambda found: found.error,
    "cross-entropy at temperature 4": lambda found: cross_entropy(found.logits / 4, found.target),
    "-logit": logit,
    "energy": lambda found: -found.logits.logsumexp(dim=-1),
    "-norm of the features": lambda found: -found.features.norm(dim=-1),
    "-familiarity": lambda found: -familiarity(found.features),
    "cross-entropy - familiarity": lambda found: found.error - familiarity(found.features),
    "cross-entropy - 4 familiarity": lambda found: found.error - 4 * familiarity(found.features),
    "-logit - familiarity": lambda found: logit(found) - familiarity(found.features),
    "-logit - 4 familiarity": lambda found: logit(found) - 4 * familiarity(found.features),
}


@torch.inference_mode()
def answers(scorer: ImageScorer, images: NDArray[np.uint8]) -> Answers:
    """M on every image turned by 0, 90, 180 and 270 degrees; a classifier on the image as it is."""
    turns = 1 if scorer.classes else RANGES
    features = []
    for batch in chunks(prepared(scorer, images, seed=0), BATCH):
        x = scorer.tensor(batch)
        features.append(
            torch.stack([scorer.model.encode(torch.rot90(x, k, (2, 3))) for k in range(turns)], 1)
        )
    z = torch.cat(features)
    logits = scorer.model.decode(None, z)
    target = logits.argmax(dim=-1) if scorer.classes else torch.arange(RANGES).expand(len(z), -1)
    return Answers(logits, z, target)


def main(
    folder: Annotated[Path, typer.Argument(help="A detector of rotations, or one with a classifier.")] = Path(
        "checkpoints/cifar10-rotations"
    ),
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
) -> None:
    """AUROC in percent of every candidate on every development set, and the mean."""
    scorer = load_detector(folder).scorer
    assert isinstance(scorer, ImageScorer)
    inside = answers(scorer, validation_images(read_split(folder), data_root).x)
    outside = {name: answers(scorer, images.x) for name, images in development_sets(data_root).items()}
    rows = []
    for name, candidate in CANDIDATES.items():
        known = candidate(inside).sum(dim=1).double().numpy()
        aurocs = [auroc(known, candidate(other).sum(dim=1).double().numpy()) for other in outside.values()]
        rows.append([name, *(f"{100 * value:.1f}" for value in aurocs), f"{100 * np.mean(aurocs):.1f}"])
    typer.echo(table(["score", *outside, "mean"], rows))


if __name__ == "__main__":
    typer.run(main)
