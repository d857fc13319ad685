"""What should be asked of networks that name the class, and how often? `python -m research.evidence_choice FOLDER...`

Each network answers for x, for x and its mirror image and for draws. One that names turns is asked about turned copies, and how far the
quarter turns of both lie from what was learned (distance); one that names classes alone about `Views`, `Windows` and the draws that it
was trained with, and by ViM.
Candidates read these answers, of one network or of several, whose ranks among half of the validation part are added up draw by draw as
a merged detector does. Passes are those of all networks together. No OOD set of the tables, no calibration point, no test point.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import combinations, product
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import read_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import ImageSet, load_images
from idecode_core.ncm import BASE_NCMS, RANGES, evidence
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from idecode_core.scorer import Scored, Vectors
from idecode_core.scorers.distances import TURNS as QUARTERS
from idecode_core.scorers.distances import TurnedMahalanobisOnce, ViM
from idecode_core.scorers.logits import Energy
from idecode_core.scorers.merged import MergedScorer, merge_vectors
from idecode_core.scorers.once import OnceScorer
from idecode_core.transforms import Views, Windows
from research.development import development_sets, validation_images

NS = (1, 2, 5)
X, MIRRORED, DISTANCE, VIM = "x", "x mirrored", "distance", "vim"
ALONE = {X: 1, MIRRORED: 2, DISTANCE: 2 * QUARTERS, VIM: 1}
"""What is asked without draws, and its passes."""
UNDER = " under "
VIEWS = {"views": Views(), "windows": Windows(shift=1 / 16)}
TURNS = ("turn_and_label", "turn_and_mirrored_label")
LARGE = 400
"""Sets of more pictures are thinned out by --quick."""
Answers = dict[str, Vectors]
"""By what is asked: x itself (N, 1), or a base NCM under the draws (N, max NS)."""
Row = tuple[str, int, list[float]]
"""Name, passes, AUROC on each development set."""


def names_turns(scorer: ImageScorer) -> bool:
    return scorer.model.config.outputs == RANGES + len(scorer.classes)


def learned(scorer: ImageScorer, training: ImageSet) -> tuple[str, OnceScorer]:
    """What the proper training set tells of a network: its name among the questions, and a scorer of x alone."""
    y = torch.from_numpy(training.y)
    if names_turns(scorer):
        return DISTANCE, TurnedMahalanobisOnce.fit(scorer, training.x, y)
    energy = Energy(model=scorer.model, preprocessing=scorer.preprocessing)
    return VIM, ViM.fit(energy.encode(training.x), y, model=scorer.model, preprocessing=scorer.preprocessing)


def answers(scorer: ImageScorer, others: tuple[str, OnceScorer], images: ImageSet) -> Answers:
    names = TURNS if names_turns(scorer) else (scorer.base_ncm,)
    drawn: dict[str, Scored] = {}
    if scorer.transforms not in VIEWS.values():
        drawn = scorer.score_under(names, images.x, n=max(NS), seed=0)
    if not names_turns(scorer):
        for name, views in VIEWS.items():
            under = replace(scorer, transforms=views, base_ncm="evidence")
            drawn[f"evidence{UNDER}{name}"] = under.score(images.x, n=max(NS), seed=0)
    x = scorer.logits(images.x)
    pixels = scorer.preprocessing.resize(images.x)
    both = (x + scorer.logits(np.ascontiguousarray(pixels[:, :, ::-1]))) / 2
    return {
        **{name: -evidence(said).double().numpy()[:, None] for name, said in ((X, x), (MIRRORED, both))},
        others[0]: others[1].score(images.x).score_vectors,
        **{name: scored.score_vectors for name, scored in drawn.items()},
    }


def passes(asked: str, n: int) -> int:
    if asked in ALONE:
        return ALONE[asked]
    ncm = BASE_NCMS[asked.partition(UNDER)[0]]
    return n + ncm.asks_x + ncm.mirrored


def questions(asked: Answers) -> list[tuple[str, ...]]:
    """What one network may be asked: one thing, or what its training set tells too."""
    (other,) = asked.keys() & {DISTANCE, VIM}
    return [(one,) for one in asked] + [(one, other) for one in asked if one != other]


def draws(vectors: Vectors, n: int) -> Vectors:
    """(N, n): the first n draws, or one answer n times."""
    return vectors[:, :n] if vectors.shape[1] > 1 else vectors.repeat(n, axis=1)


def merged(inside: list[Vectors], outside: list[Vectors]) -> float:
    """AUROC of the members' ranks added up; the first half of the iD points rank, the second half is judged."""
    half, ones = len(inside[0]) // 2, [1.0] * len(inside)
    references = [vectors[:half] for vectors in inside]
    known = merge_vectors([vectors[half:] for vectors in inside], references, ones)
    return auroc(known.sum(axis=1), merge_vectors(outside, references, ones).sum(axis=1))


def rows_of(answers_of: dict[str, list[Answers]]) -> Iterator[Row]:
    """Every way to ask one network, and several together; of each network, the answers of the iD set come first."""
    for names in (
        names for size in range(1, len(answers_of) + 1) for names in combinations(answers_of, size)
    ):
        for asked in product(*(questions(answers_of[name][0]) for name in names)):
            pairs = [(name, what) for name, both in zip(names, asked, strict=True) for what in both]
            drawing = not {what for _, what in pairs} <= ALONE.keys()
            for n in NS if drawing else NS[:1]:
                members = [[draws(answer[what], n) for answer in answers_of[name]] for name, what in pairs]
                inside, *outside = (list(parts) for parts in zip(*members, strict=True))
                title = " + ".join(
                    f"{name}: {' and '.join(both)}" for name, both in zip(names, asked, strict=True)
                )
                yield (
                    title + (f", n={n}" if drawing else ""),
                    sum(passes(what, n) for _, what in pairs),
                    [merged(inside, strange) for strange in outside],
                )


def show(rows: Iterator[Row], names: list[str]) -> None:
    """The best first."""
    written = [
        [title, str(count), *(f"{100 * value:.1f}" for value in values), f"{100 * np.mean(values):.2f}"]
        for title, count, values in sorted(rows, key=lambda row: -float(np.mean(row[2])))
    ]
    typer.echo("\n" + table(["score", "passes", *names, "mean"], written))


def networks(folder: Path) -> dict[str, ImageScorer]:
    """The scorer of a detector by its name, or those of the members of a merged one."""
    scorer = load_detector(folder).scorer
    pairs = (
        zip(scorer.names, scorer.members, strict=True)
        if isinstance(scorer, MergedScorer)
        else [(folder.name, scorer)]
    )
    return {
        name.partition("@")[0].removeprefix("cifar10-"): member
        for name, member in pairs
        if isinstance(member, ImageScorer)
    }


def main(
    folders: Annotated[list[Path], typer.Argument(help="Detectors that hold out the same points.")],
    quick: Annotated[
        bool,
        typer.Option("--quick", help="One in two of the validation part, one in three of the larger sets."),
    ] = False,
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
) -> None:
    """AUROC in percent of every candidate, and of networks merged, on every development set, and the mean."""
    splits = [read_split(folder) for folder in folders if (folder / "split.npz").is_file()]
    common = reduce(np.intersect1d, [split.validation for split in splits])
    split = type(splits[0])(splits[0].proper, common, splits[0].calibration)
    sets = {"": validation_images(split, data_root), **development_sets(data_root)}
    if quick:
        steps = {name: (2 if name == "" else 3 if len(part) > LARGE else 1) for name, part in sets.items()}
        sets = {name: part.take(np.arange(0, len(part), steps[name])) for name, part in sets.items()}
    answers_of: dict[str, list[Answers]] = {}
    training = load_images("cifar10-train", data_root).take(split.proper)
    for folder in folders:
        for name, scorer in networks(folder).items():
            others = learned(scorer, training)
            answers_of[name] = [answers(scorer, others, images) for images in sets.values()]
    show(rows_of(answers_of), list(sets)[1:])


if __name__ == "__main__":
    typer.run(main)
