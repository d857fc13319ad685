"""`score-sets attacks`: the attacked pictures of `runs/attacked/` through every detector of CIFAR-10 and every rival.

Slow, and it goes on where it was: each set is written as soon as it is scored. Rivals are fitted on the training side of the
victim alone: banks and means on its proper training set, regressions on its validation part as it is, with noise and attacked by
FGSM; they are calibrated on points that were held out, and the test pictures are new to all of them.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.attacks import Victim, attack
from idecode_core.attacks.kinds import to_tensor
from idecode_core.detector import Detector
from idecode_core.draws import content_hash
from idecode_core.errors import CheckpointError, DataError
from idecode_core.files.shown import Report
from idecode_core.folder.detector import load_detector, scorer_hash
from idecode_core.folder.record import read_split, read_training
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import (
    CALIBRATION,
    About,
    ScoreSet,
    read_score_file,
    score_path,
    score_paths,
    write_scores,
)
from idecode_core.folder.stored import CIFAR10_DETECTORS, CLEAN
from idecode_core.image.features import Preprocessing
from idecode_core.image.read import Unrounded
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.models import Equivariant
from idecode_core.ncm import BASE_NCMS
from idecode_core.scorer import SCORERS, Scorer, Vectors
from idecode_core.scorers.merged import MergedScorer
from idecode_core.scorers.once import OnceScorer
from paper.adversarial import RIVALS
from paper.attack_sets import (
    AttackedSet,
    Outcome,
    VictimRecord,
    place,
    read_attacked_set,
    write_record,
)
from paper.rivals.layers import SupervisedScorer

POINTS = 1000
"""Attacked pictures per victim that are scored; about two seconds of one core each, for all attacks and detectors."""
DRAWS = 25
"""Of each picture: five runs of one draw and of five, one run of twenty. How far an AUROC is off depends on pictures much more than on draws."""
TRAINING, SHOWN, HELD_OUT = 3000, 300, 500
"""Of a victim's training side: pictures for banks and means, pictures that are attacked for the regressions, calibration points."""

PIECE = 25
"""Pictures that are scored between two writes."""
Sets = dict[str, Tensor]
"""What is scored of one victim, by name: clean pictures, and per attack those of them that fooled it; each (N, 3, h, w)."""


def score_attacks(
    root: Path,
    attacked: Path,
    data_root: Path | None = None,
    *,
    points: int = POINTS,
    report: Report | None = None,
) -> list[str]:
    """Score what is not stored yet, victim by victim; gives the victims' names."""
    names = sorted(path.name for path in attacked.iterdir() if path.is_dir()) if attacked.is_dir() else []
    if not names:
        raise DataError(
            f"No attacked pictures are in {attacked}: expected one folder per victim. Make them with "
            "`python -m idecode_core paper attack-sets`."
        )
    test = load_images("cifar10-test", data_root)
    for name in names:
        folder = root / name
        detector = load_detector(folder)
        victim = Victim.from_detector(detector)
        attacked_sets = {
            path.stem: read_attacked_set(name, path.stem, victim.classes, test, attacked)
            for path in sorted((attacked / name).glob("*.npz"))
        }
        sets = sets_to_score(attacked_sets, points)
        record = record_of(folder, victim, attacked_sets, points)
        score_rivals_on(root, folder, victim, sets, data_root, report)
        score_detectors(root, name, sets, report)
        write_record(root, record)  # last: a victim with a record is complete, and is in the table
    return names


def sets_to_score(attacked_sets: Mapping[str, AttackedSet], points: int) -> Sets:
    """Of each set the first `points` pictures; of those that were attacked, the ones that count."""
    first = max(attacked_sets.values(), key=lambda attacked_set: len(attacked_set.indices)).result
    pictures = {CLEAN: first.clean[:points]}
    for name, attacked_set in attacked_sets.items():
        hit = torch.from_numpy(attacked_set.result.success[:points])
        if hit.any():
            pictures[name] = attacked_set.result.attacked[:points][hit]
    return pictures


def record_of(
    folder: Path, victim: Victim, attacked_sets: Mapping[str, AttackedSet], points: int
) -> VictimRecord:
    training = read_training(folder)
    if training is None or training.test_accuracy is None or not isinstance(victim.model, Equivariant):
        raise CheckpointError(
            f"{folder} has no record of its training with a test accuracy: expected a classifier that `train` made."
        )
    outcomes = {
        name: Outcome(
            attacked_set.result.success,
            attacked_set.result.l2.astype(np.float32),
            attacked_set.result.linf.astype(np.float32),
        )
        for name, attacked_set in attacked_sets.items()
    }
    indices = max((attacked_set.indices for attacked_set in attacked_sets.values()), key=len)
    network = victim.model.config.backbone
    return VictimRecord(
        victim.name, network, training.test_accuracy, indices, min(points, len(indices)), outcomes
    )


def hashes(pictures: Tensor) -> NDArray[np.bytes_]:
    return np.array([content_hash(picture.numpy()) for picture in pictures], dtype=np.bytes_)


@dataclass(frozen=True)
class GrowingScores:
    """What one scorer says of the sets of one victim, stored piece by piece; each picture is known by its content hash."""

    victim: Path
    """Its place on the shelf."""
    name: str
    scorer: str
    """The hash of the detector's scorer; of a rival, that of the victim whose layers it looks into."""
    about: About
    draws: int

    def takes(self, name: str) -> bool:
        """A set that was made against one detector is for that detector alone."""
        return name.partition("@")[2] in ("", self.name)

    def read(self, name: str) -> ScoreSet:
        """What is stored of a set; nothing of an earlier scorer."""
        with suppress(CheckpointError):  # not there, or of an earlier scorer
            stored = read_score_file(score_path(self.victim, name, self.name), self.scorer)
            if stored.score_vectors.shape[1] == self.draws and stored.inputs is not None:
                return stored
        empty = np.empty((0, self.draws), np.float32)
        return ScoreSet(name, name, name not in (CLEAN, CALIBRATION), empty, inputs=np.empty(0, "S32"))

    def new(self, name: str, pictures: Tensor) -> NDArray[np.bool_]:
        """Which pictures of a set are not scored yet (N,)."""
        inputs = self.read(name).inputs
        assert inputs is not None
        return ~np.isin(hashes(pictures), inputs)

    def add(self, name: str, pictures: Tensor, vectors: Vectors) -> None:
        """Write the scores of some more pictures."""
        stored = self.read(name)
        self.write(
            stored,
            np.concatenate([stored.score_vectors, vectors.astype(np.float32)]),
            np.concatenate([stored.inputs, hashes(pictures)]),
        )

    def write(self, stored: ScoreSet, vectors: NDArray[np.floating], inputs: NDArray[np.bytes_]) -> None:
        changed = replace(stored, score_vectors=vectors, inputs=inputs)
        write_scores(self.victim, changed, self.scorer, self.name, self.about)

    def keep(self, sets: Sets) -> None:
        """Forget what is not in these sets any more, calibration points aside, and bring each set into their order."""
        for path in score_paths(self.victim, self.name):
            if path.stem == CALIBRATION:
                continue
            stored = self.read(path.stem)
            place = {digest: i for i, digest in enumerate(stored.inputs.tolist())}  # type: ignore[union-attr]
            wanted = hashes(sets[path.stem]).tolist() if path.stem in sets else []
            if order := [place[digest] for digest in wanted if digest in place]:
                self.write(stored, stored.score_vectors[order], stored.inputs[order])  # type: ignore[index]
            else:
                path.unlink()


def score_detectors(root: Path, victim: str, sets: Sets, report: Report | None) -> None:
    """DRAWS of every picture by every detector; networks that detectors share see a picture once."""
    detectors = {name: load_detector(root / name) for name in CIFAR10_DETECTORS if (root / name).is_dir()}
    shelves = {
        name: GrowingScores(place(root, victim), name, scorer_hash(detector.scorer), About(name, name), DRAWS)
        for name, detector in detectors.items()
    }
    for set_name, pictures in sets.items():
        done = 0
        for piece in pictures.split(PIECE):
            new = {n: shelf.new(set_name, piece) for n, shelf in shelves.items() if shelf.takes(set_name)}
            wanted = {name: detectors[name] for name, rows in new.items() if rows.any()}
            for name, vectors in all_vectors(wanted, piece).items():
                rows = new[name]
                shelves[name].add(set_name, piece[torch.from_numpy(rows)], vectors[rows])
            done += len(piece)
            if report is not None:
                report(f"{victim}: {set_name}", done, len(pictures))
    for shelf in shelves.values():
        shelf.keep({name: pictures for name, pictures in sets.items() if shelf.takes(name)})


def all_vectors(detectors: Mapping[str, Detector], pictures: Tensor) -> dict[str, Vectors]:
    """Score vectors (N, DRAWS) of each detector. Scorers that differ in their base NCM alone come from one pass."""
    asked: dict[str, list[str]] = {}
    for detector in detectors.values():
        for scorer in members(detector.scorer):
            asked.setdefault(network_of(scorer), []).append(scorer.base_ncm)
    cache: dict[tuple[str, str], Vectors] = {}

    def vectors(scorer: Scorer, seed: int) -> Vectors:
        if isinstance(scorer, MergedScorer):
            return scorer.merge([vectors(member, seed) for member in scorer.members])
        if not isinstance(scorer, ImageScorer):  # asks x alone
            return scorer.score(Unrounded(pictures), n=DRAWS, seed=seed).score_vectors
        network = network_of(scorer)
        if (network, scorer.base_ncm) not in cache:
            scored = scorer.score_under(
                list(dict.fromkeys(asked[network])), Unrounded(pictures), n=DRAWS, seed=seed
            )
            cache.update({(network, ncm): part.score_vectors for ncm, part in scored.items()})
        return cache[network, scorer.base_ncm]

    return {name: vectors(each.scorer, each.calibration.seed) for name, each in detectors.items()}


def members(scorer: Scorer) -> list[ImageScorer]:
    """The networks with a base NCM that a scorer is made of."""
    if isinstance(scorer, MergedScorer):
        return [network for member in scorer.members for network in members(member)]
    return [scorer] if isinstance(scorer, ImageScorer) else []


def network_of(scorer: ImageScorer) -> str:
    """A hash of everything but the base NCM and the names of classes."""
    return scorer_hash(replace(scorer, base_ncm=next(iter(BASE_NCMS)), classes=()))


def score_rivals_on(
    root: Path, folder: Path, victim: Victim, sets: Sets, data_root: Path | None, report: Report | None
) -> None:
    """Fit, calibrate and score each rival for which something is missing."""
    identity, side = read_settings(folder).scorer_sha256, None
    for kind in RIVALS:
        about = About(RIVALS[kind], victim.name, labels=True)
        shelf = GrowingScores(place(root, victim.name), kind, identity, about, draws=1)
        own = {name: pictures for name, pictures in sets.items() if shelf.takes(name)}
        if not any(shelf.new(name, pictures).any() for name, pictures in own.items()):
            shelf.keep(own)
            continue
        side = side or training_side(folder, victim, data_root)
        own = {CALIBRATION: side.held_out, **own}
        scorer = fit_rival(kind, victim, side)
        for i, (name, pictures) in enumerate(own.items()):
            new = pictures[torch.from_numpy(shelf.new(name, pictures))]
            if len(new):
                shelf.add(name, new, scorer.score(Unrounded(new)).score_vectors)
            if report is not None:
                report(f"{victim.name}: {kind}", i + 1, len(own))
        shelf.keep(own)


@dataclass(frozen=True, eq=False)
class TrainingSide:
    """Pictures of a victim's training set, none of which is a test picture."""

    x: Tensor  # (N, 3, h, w): of the proper training set
    y: Tensor  # (N,)
    clean: Tensor  # (M, 3, h, w): of the validation part, named right
    attacked: Tensor  # (M, 3, h, w): the same, attacked by FGSM and named wrong
    held_out: Tensor  # (k, 3, h, w): for calibration


def training_side(folder: Path, victim: Victim, data_root: Path | None) -> TrainingSide:
    """A random choice of each part of the split that the victim was trained with."""
    images, split = load_images("cifar10-train", data_root), read_split(folder)
    generator = np.random.default_rng(0)
    parts = ((split.proper, TRAINING), (split.validation, SHOWN), (split.calibration, HELD_OUT))
    proper, shown, held_out = (images.take(generator.permutation(part)[:most]) for part, most in parts)
    result = attack(victim, to_tensor(shown.x), torch.from_numpy(shown.y), "fgsm")
    hit = torch.from_numpy(result.success)
    return TrainingSide(
        to_tensor(proper.x),
        torch.from_numpy(proper.y),
        result.clean[hit],
        result.attacked[hit],
        to_tensor(held_out.x),
    )


def fit_rival(kind: str, victim: Victim, side: TrainingSide) -> OnceScorer:
    module, name = SCORERS[kind].split(":")
    rival: type[Any] = getattr(import_module(module), name)
    shown = {"clean": side.clean, "attacked": side.attacked} if issubclass(rival, SupervisedScorer) else {}
    parts = {"preprocessing": Preprocessing(victim.size), "device": victim.device, "classes": victim.classes}
    scorer: OnceScorer = rival.fit(victim.model, side.x, side.y, **shown, **parts)
    return scorer
