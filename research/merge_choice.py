"""Which members, with which weights? Tried on development data only: `python -m research.merge_choice`.

For a fixed n the merged score is F(V) = sum over members of weight * S_m, where S_m is the sum over draws of -log of
the member's rank. So S_m is computed once per member and set, and a whole grid of weights takes seconds.
"""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from idecode_core.errors import CheckpointError
from idecode_core.files import write_npz
from idecode_core.folder.detector import scorer_hash
from idecode_core.folder.shelf import read_tied
from idecode_core.image.sets import ImageSet
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.scorers.merged import merge_vectors
from idecode_core.training.merge import Member, member_parts
from research.development import development_sets

DRAWS = 10  # two runs of n = 5
N = 5
WEIGHTS = (0.0, 0.5, 1.0, 2.0)
CACHE = Path("runs/merging")
Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """One choice of weights and its AUROC on each development set."""

    weights: tuple[float, ...]
    aurocs: dict[str, float]

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.aurocs.values())))


def cached_vectors(member: Member, images: ImageSet, name: str, cache: Path = CACHE) -> Vectors:
    """The member's score vectors (N, DRAWS) of a development set, scored once and kept."""
    scorer = member.scorer()
    identity = scorer_hash(scorer)
    path = cache / member.name / f"{name.replace(' ', '-')}.npz"
    with suppress(CheckpointError):  # not there, or of another scorer
        vectors: Vectors = read_tied(path, ("score_vectors",), identity)["score_vectors"]
        if vectors.shape == (len(images), DRAWS):
            return vectors
    vectors = scorer.score(images.x, n=DRAWS, seed=0).score_vectors
    write_npz(path, {"score_vectors": vectors, "scorer": np.array(identity)})
    return vectors


def try_weights(
    members: Sequence[Mapping[str, Vectors]], grid: Sequence[tuple[float, ...]], known: str = "validation"
) -> list[Trial]:
    """AUROC of each choice of weights on each set, best mean first.

    `members` hold the score vectors of each set; the first half of the iD set's points rank, the second half is judged.
    """
    half = len(members[0][known]) // 2
    sums: list[dict[str, Vectors]] = []  # member -> set -> (runs, points)
    for vectors in members:
        reference = vectors[known][:half]
        ranked = {name: merge_vectors([scores], [reference], [1.0]) for name, scores in vectors.items()}
        sums.append(
            {
                name: np.stack([v[:, i : i + N].sum(1) for i in range(0, DRAWS, N)])
                for name, v in ranked.items()
            }
        )
    trials = []
    for weights in grid:
        merged = {
            name: sum(weight * by_set[name] for weight, by_set in zip(weights, sums, strict=True))
            for name in sums[0]
        }
        inside = np.asarray(merged.pop(known))[:, half:]
        aurocs = {
            name: float(np.mean([auroc(a, b) for a, b in zip(inside, np.asarray(outside), strict=True)]))
            for name, outside in merged.items()
        }
        trials.append(Trial(weights, aurocs))
    return sorted(trials, key=lambda trial: -trial.mean)


def weight_grid(count: int) -> list[tuple[float, ...]]:
    """Every choice of weights up to a common factor: the largest is the largest of WEIGHTS, or a member is alone."""
    grid = [weights for weights in itertools.product(WEIGHTS, repeat=count) if any(weights)]
    scaled = {tuple(round(w / max(weights), 3) for w in weights): weights for weights in grid}
    return list(scaled.values())


def main(
    members: Annotated[
        list[str], typer.Argument(help="Detector folders, each with @base_ncm where another is meant.")
    ],
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
    shown: Annotated[int, typer.Option(help="How many choices to show.")] = 15,
) -> None:
    """Score the development sets with each member (once), try all weights, show the best and the members alone."""
    candidates = [Member.parse(text) for text in members]
    validation, *_ = member_parts([candidate.folder for candidate in candidates], data_root)
    sets = {"validation": validation, **development_sets(data_root)}
    vectors = [
        {name: cached_vectors(candidate, images, name) for name, images in sets.items()}
        for candidate in candidates
    ]
    trials = try_weights(vectors, weight_grid(len(candidates)))
    alone = [trial for trial in trials if sum(map(bool, trial.weights)) == 1]
    titles = [*(candidate.name for candidate in candidates), *trials[0].aurocs, "mean"]
    rows = [
        [
            *(f"{w:g}" for w in t.weights),
            *(f"{100 * a:.1f}" for a in t.aurocs.values()),
            f"{100 * t.mean:.2f}",
        ]
        for t in [*trials[:shown], *alone]
    ]
    typer.echo(table(titles, rows))


if __name__ == "__main__":
    typer.run(main)
