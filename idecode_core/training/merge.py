"""Build a merged detector from trained ones, so that Theorem 1 holds for it.

The merged scores are calibrated on points that every member holds out for calibration, so members must be trained on the
same points of the same data. References (the points that members' scores are ranked among) are the other points that were
held out: the validation part, where all have one split. Where a user's own files have none, a random part of those that would
calibrate takes its place; the sounds of a recipe have their proper training set in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.files.shown import Report, progress_of
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.place import new_place
from idecode_core.folder.record import Split, TrainingRecord, read_split, read_training, same_split
from idecode_core.folder.settings import find_detector, read_settings
from idecode_core.image.scorer import ImageScorer
from idecode_core.ncm import BASE_NCMS
from idecode_core.report.card import write_card
from idecode_core.scorer import Progress, Scorer
from idecode_core.scorers.distances import TurnedMahalanobisOnce, ViM
from idecode_core.scorers.logits import Energy
from idecode_core.scorers.merged import MergedScorer
from idecode_core.training.finish import N_MAX
from idecode_core.training.parts import load_parts
from idecode_core.training.recipes import get_recipe
from idecode_core.training.user_parts import SOURCE, parts_again

DISTANCE = "distance"
REFERENCE_DRAWS = 10
REFERENCE_SHARE = 0.25
"""Of a user's own calibration files, where no others are held out."""
Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Member:
    """A trained detector's folder, the base NCM to read its model with ("" for its own), and its weight in the sum. Three ask its
    network about x alone, however many draws there are: `energy` for its class, `vim` for its class and what its features have
    that those of the training set have not, `distance` how far the features of its quarter turns lie from those of the training
    set."""

    folder: Path
    base_ncm: str
    weight: float

    @staticmethod
    def parse(text: str, weight: float = 1.0) -> "Member":
        """ "cifar10-invariance@label_cross_entropy", by name or folder; without "@" the detector's own base NCM."""
        folder, _, base_ncm = text.partition("@")
        known = (*BASE_NCMS, Energy.kind, ViM.kind, DISTANCE)
        if base_ncm and base_ncm not in known:
            names = ", ".join(known)
            raise SettingError(f"No base NCM is called {base_ncm!r}; expected one of {names}.")
        return Member(find_detector(folder), base_ncm, weight)

    @property
    def name(self) -> str:
        return f"{self.folder.name}@{self.base_ncm}" if self.base_ncm else self.folder.name

    def scorer(self, detector: Detector | None = None, training: Any = None) -> Scorer:
        """The detector's scorer, under the member's base NCM; `vim` and `distance` learn from `training`, the proper training set."""
        scorer: Any = (detector or load_detector(self.folder)).scorer
        if not self.base_ncm:
            return scorer  # type: ignore[no-any-return]
        if not hasattr(scorer, "base_ncm"):
            raise SettingError(
                f"{self.folder} scores without a base NCM, so {self.base_ncm!r} cannot be chosen for it: leave out "
                f"@{self.base_ncm}."
            )
        if self.base_ncm == DISTANCE:
            if not isinstance(scorer, ImageScorer):
                raise SettingError(
                    f"{self.folder} has no network that looks at pictures, whose features @{DISTANCE} compares: leave out @{DISTANCE}."
                )
            y = torch.from_numpy(training.y if scorer.classes else np.zeros_like(training.y))
            return TurnedMahalanobisOnce.fit(scorer, training.samples, y)
        if self.base_ncm not in (Energy.kind, ViM.kind):
            return changed(scorer, base_ncm=self.base_ncm)  # type: ignore[no-any-return]
        if not isinstance(scorer, ImageScorer) or BASE_NCMS[scorer.base_ncm].against == "g":
            raise SettingError(
                f"{self.folder} has no network that names classes and nothing else, which @{self.base_ncm} asks: leave out "
                f"@{self.base_ncm}."
            )
        parts = {name: getattr(scorer, name) for name in ("model", "preprocessing", "device", "classes")}
        energy = Energy(**parts)
        if self.base_ncm == Energy.kind:
            return energy
        vim = ViM.fit(energy.encode(training.samples), torch.from_numpy(training.y), **parts)
        return changed(vim, residual=vim.residual.half().float())  # stored in half the room


def training_of(folder: Path) -> TrainingRecord:
    """How a member was trained; without that nobody knows which points are new to its model."""
    record = read_training(folder)
    if record is None or not (folder / "split.npz").is_file():
        raise CheckpointError(
            f"{folder} cannot be merged: expected training.json and split.npz, which say which points its model has not "
            f"seen. Only detectors that `train` has written have them; train the members with one dataset and seed."
        )
    return record


def shared_split(folders: Sequence[Path]) -> Split:
    """The split of all members together: a point that one of them was fitted to, or its epoch chosen by, must not calibrate
    the merged detector."""
    records, splits = [training_of(folder) for folder in folders], [read_split(folder) for folder in folders]
    data = [
        (record.dataset, record.settings.get("part"), record.settings.get("classes") or [])
        for record in records
    ]
    first, calibration = splits[0], splits[0].calibration
    held_out = np.union1d(first.validation, first.calibration)
    for folder, trained_on, split in zip(folders, data, splits, strict=True):
        same = np.array_equal(split.proper, first.proper) and split.points == first.points
        calibration = np.intersect1d(calibration, split.calibration)
        if trained_on != data[0] or not same or not len(calibration):
            raise CheckpointError(
                f"{folders[0]} and {folder} were trained on different splits, so no points are held out from both: "
                "train both with the same dataset and seed."
            )
    validation = np.setdiff1d(held_out, calibration)
    if not len(validation) and all(SOURCE in record.settings for record in records):
        order = np.random.default_rng([records[0].seed, len(calibration)]).permutation(calibration)
        validation, calibration = np.split(order, [max(1, round(REFERENCE_SHARE * len(order)))])
    return Split(first.proper, np.sort(validation), np.sort(calibration))


def member_parts(folders: Sequence[Path], data_root: Path | str | None = None) -> tuple[Any, Any, Any]:
    """Reference points, calibration points and the proper training set of members that were trained on the same points."""
    split, before = shared_split(folders), read_split(folders[0])
    record = training_of(folders[0])
    if SOURCE in record.settings:
        parts = parts_again(record, split)
    else:
        recipe = get_recipe(record.recipe)
        parts = load_parts(recipe, data_root)
        if not same_split(parts.split, before):
            raise CheckpointError(
                f"{folders[0]} was trained on another version of {record.dataset}: expected {before.points} points in its "
                f"split, got {parts.split.points}. Use the data that it was trained on."
            )
        if not same_split(split, before):  # members drew their calibration points for themselves
            parts = load_parts(recipe, data_root, split)
    return parts.validation if len(parts.validation) else parts.training, parts.calibration, parts.training


def score_members(
    scorers: Sequence[Any], samples: Any, *, n: int, seed: int, progress: Progress | None
) -> list[Vectors]:
    """Score vectors (N, n) of scorers that differ in their base NCM only, from one pass where they can."""
    if all(hasattr(scorer, "score_under") for scorer in scorers):
        ncms = [scorer.base_ncm for scorer in scorers]
        by_ncm = scorers[0].score_under(list(dict.fromkeys(ncms)), samples, n=n, seed=seed, progress=progress)
        return [by_ncm[ncm].score_vectors for ncm in ncms]
    return [s.score(samples, n=n, seed=seed, progress=progress).score_vectors for s in scorers]


def build_merged(
    members: Sequence[Member],
    *,
    data_root: Path | str | None = None,
    name: str = "merged",
    seed: int = 0,
    n_max: int = N_MAX,
    progress: Report | None = None,
) -> Detector:
    """Score references and calibration points with every member, merge, calibrate.

    Members that share a folder share one pass through its model. `progress` gets (member, points done, points).
    """
    if not members:
        raise SettingError("A merged detector needs at least one member, got none.")
    folders = list(dict.fromkeys(member.folder for member in members))
    detectors = {folder: load_detector(folder) for folder in folders}
    references, calibration, training = member_parts(folders, data_root)
    scorers = [member.scorer(detectors[member.folder], training) for member in members]

    def scored(part: Any, n: int) -> list[Vectors]:
        """Score vectors of a part by member."""
        by_place: dict[int, Vectors] = {}
        for folder in folders:
            places = [i for i, member in enumerate(members) if member.folder == folder]
            report = progress_of(progress, folder.name, len(part))
            readings = [scorers[i] for i in places]
            vectors = score_members(readings, part.samples, n=n, seed=seed, progress=report)
            by_place |= dict(zip(places, vectors, strict=True))
        return [by_place[i] for i in range(len(members))]

    merged = MergedScorer(
        tuple(scorers),
        tuple(member.name for member in members),
        tuple(scored(references, REFERENCE_DRAWS)),
        tuple(member.weight for member in members),
    )
    merged_vectors = merged.merge(scored(calibration, n_max))
    first, *others = detectors.values()
    dataset = first.dataset if all(other.dataset == first.dataset for other in others) else ""
    return Detector(name, merged, Calibration(merged_vectors, seed), first.summary, dataset)


def merge(
    members: Sequence[str],
    out: Path | str,
    *,
    weights: Sequence[float] | None = None,
    data_root: Path | str | None = None,
    replace: bool = False,
    report: Report | None = None,
) -> tuple[Path, Detector]:
    """All that `idecode merge` does: detectors that were trained on the same points, by name or folder ("FOLDER@BASE_NCM" for
    another base NCM), become one in the folder `out`; that folder and the detector. `report` gets (member, points done, points)."""
    weights = weights or [1.0] * len(members)
    if len(weights) != len(members):
        raise SettingError(
            f"Expected --weight once for each of the {len(members)} members, got {len(weights)}; add or leave out some."
        )
    chosen = [Member.parse(text, value) for text, value in zip(members, weights, strict=True)]
    place = new_place(out, replace, [member.folder for member in chosen])
    merged = build_merged(chosen, data_root=data_root, name=place.name, progress=report)
    save_detector(merged, place, selection_leak=selection_leak_of(chosen), replace=replace)
    write_card(place)
    return place, merged


def selection_leak_of(members: Sequence[Member]) -> str:
    """What was looked at while choosing the members was looked at for the merged detector too."""
    return " ".join(
        dict.fromkeys(filter(None, (read_settings(member.folder).selection_leak for member in members)))
    )
