"""What should be asked of networks that name the class, and how often? `python -m research.evidence_choice FOLDER...`

Each network answers for x, for draws of `Views` (mirrored, shifted, scaled a little) and, where it names turns too, for turned
copies. Candidates read these answers, of one network or of several, whose ranks among half of the validation part are added up as
a merged detector does. Passes are those of all networks together. No OOD set of the tables, no calibration point, no test point.
"""

from dataclasses import dataclass
from itertools import combinations, product
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
from idecode_core.image.sets import ImageSet
from idecode_core.ncm import RANGES, TURN, cross_entropy, evidence
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.scorer import chunks, prepared
from idecode_core.scorers.merged import MergedScorer, merge_vectors
from idecode_core.transforms import SharpRotations, Views
from research.development import development_sets, validation_images

BATCH = 100
NS = (1, 2, 5)
Scores = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Answers:
    """What one network says of a set."""

    of_x: Tensor  # (N, classes)
    of_views: Tensor  # (N, max NS, classes)
    turn: Tensor | None  # (N, max NS): how far its answer about the turn is off

    def candidates(self) -> dict[str, tuple[Scores, int]]:
        """Score (N,) and passes, by name."""
        found = {"evidence of x": (-evidence(self.of_x), 1)}
        found |= {f"evidence, {n} views": (-evidence(self.of_views[:, :n]).mean(1), n) for n in NS}
        if self.turn is not None:
            found |= {
                f"turn and evidence of x, n={n}": (
                    TURN * self.turn[:, :n].mean(1) - evidence(self.of_x),
                    1 + n,
                )
                for n in NS
            }
        return {name: (score.double().numpy(), passes) for name, (score, passes) in found.items()}


@torch.inference_mode()
def answers(scorer: ImageScorer, images: ImageSet) -> Answers:
    kinds = scorer.model.config.outputs - len(scorer.classes)
    assert kinds in (0, RANGES)
    of_x, of_views, turns = [], [], []
    for batch in chunks(prepared(scorer, images.x, seed=0), BATCH):
        keys, x = np.stack([point.key for point in batch]), scorer.tensor(batch)
        views, sharp = Views(), SharpRotations(per_draw="one")

        def said(pictures: Tensor) -> Tensor:
            z = scorer.model.encode(pictures.flatten(0, 1)).unflatten(0, pictures.shape[:2])
            return scorer.model.decode(None, z)

        of_x.append(said(x[:, None])[:, 0, kinds:])
        of_views.append(said(views.apply(x, views.sample(keys, max(NS))))[..., kinds:])
        if kinds:
            drawn = sharp.sample(keys, max(NS))
            turns.append(cross_entropy(said(sharp.apply(x, drawn))[..., :kinds], sharp.target(drawn)))
    return Answers(torch.cat(of_x), torch.cat(of_views), torch.cat(turns) if turns else None)


def merged(inside: list[Scores], outside: list[Scores]) -> float:
    """AUROC of the members' ranks added up; the first half of the iD points rank, the second half is judged."""
    half = len(inside[0]) // 2
    references = [score[:half, None] for score in inside]
    ones = [1.0] * len(inside)
    known = merge_vectors([score[half:, None] for score in inside], references, ones)
    return auroc(known[:, 0], merge_vectors([score[:, None] for score in outside], references, ones)[:, 0])


def network(folder: Path) -> list[tuple[str, ImageScorer]]:
    """The scorers of a detector, by name: those of the members of a merged one."""
    scorer = load_detector(folder).scorer
    if isinstance(scorer, MergedScorer):
        pairs = zip(scorer.names, scorer.members, strict=True)
        return [
            (f"{folder.name}: {name}", member) for name, member in pairs if isinstance(member, ImageScorer)
        ]
    assert isinstance(scorer, ImageScorer)
    return [(folder.name, scorer)]


def main(
    folders: Annotated[list[Path], typer.Argument(help="Detectors that hold out the same points.")],
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
) -> None:
    """AUROC in percent of every candidate, and of networks merged, on every development set, and the mean."""
    known = [read_split(folder).validation for folder in folders if (folder / "split.npz").is_file()]
    common = known[0]
    for other in known[1:]:
        common = np.intersect1d(common, other)
    split = read_split(folders[0])
    validation = validation_images(type(split)(split.proper, common, split.calibration), data_root)
    outside = development_sets(data_root)
    found: dict[
        str, dict[str, tuple[list[Scores], int]]
    ] = {}  # network -> candidate -> scores of each set, passes
    for folder in folders:
        for name, scorer in network(folder):
            said = [answers(scorer, images) for images in (validation, *outside.values())]
            right = [
                float((logits.argmax(-1).numpy() == validation.y).mean())
                for logits in (said[0].of_x, said[0].of_views.softmax(-1).mean(1))
            ]
            typer.echo(
                f"{name}: {100 * right[0]:.2f} % of {len(validation):,} named right, {100 * right[1]:.2f} % by {max(NS)} views"
            )
            each = [one.candidates() for one in said]
            found[name] = {key: ([one[key][0] for one in each], each[0][key][1]) for key in each[0]}
    rows = []
    for name, candidates in found.items():
        for key, (scores, passes) in candidates.items():
            values = [auroc(scores[0], strange) for strange in scores[1:]]
            rows.append((f"{name}: {key}", passes, values))
    for names in (names for size in range(2, len(found) + 1) for names in combinations(found, size)):
        for keys in product(*(found[name] for name in names)):
            if len(names) > 2 and any("views" in key for key in keys):
                continue  # pairs have told what views are worth
            members = [found[name][key] for name, key in zip(names, keys, strict=True)]
            inside, *others = zip(*(scores for scores, _ in members), strict=True)
            values = [merged(list(inside), list(other)) for other in others]
            label = " + ".join(f"{name}: {key}" for name, key in zip(names, keys, strict=True))
            rows.append((label, sum(passes for _, passes in members), values))
    rows.sort(key=lambda row: -float(np.mean(row[2])))
    written = [
        [name, str(passes), *(f"{100 * value:.1f}" for value in values), f"{100 * np.mean(values):.2f}"]
        for name, passes, values in rows
    ]
    typer.echo("\n" + table(["score", "passes", *outside, "mean"], written))


if __name__ == "__main__":
    typer.run(main)
