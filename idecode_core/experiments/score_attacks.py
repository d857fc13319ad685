"""`score-attacks`: the attacked pictures of `runs/attacked/` through every detector of CIFAR-10 and every rival.

Slow, and it goes on where it was: each set is written as soon as it is scored. Rivals are fitted on the training side of the
victim alone: banks and means on its proper training set, regressions on its validation part as it is, with noise and attacked by
FGSM; they are calibrated on points that were held out, and the test pictures are new to all of them.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idecode_core.attacks import Victim, attack
from idecode_core.attacks.sets import AttackedSet, read_attacked_set, to_tensor
from idecode_core.baselines.layers import LayerScorer
from idecode_core.baselines.supervised import SupervisedScorer
from idecode_core.detector import Detector
from idecode_core.draws import content_hash
from idecode_core.errors import CheckpointError, DataError
from idecode_core.experiments.adversarial import RIVALS
from idecode_core.experiments.attack_scores import (
    CALIBRATION,
    CLEAN,
    AttackScores,
    Hashes,
    Outcome,
    VictimRecord,
    read_attack_scores,
    scores_path,
    write_attack_scores,
    write_record,
)
from idecode_core.folder.detector import load_detector, scorer_hash
from idecode_core.folder.settings import read_settings
from idecode_core.folder.stored import CIFAR10_DETECTORS
from idecode_core.folder.training_record import read_split, read_training
from idecode_core.image.features import Preprocessing
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import load_images
from idecode_core.image.unrounded import Unrounded
from idecode_core.merged import MergedScorer
from idecode_core.models import Equivariant
from idecode_core.ncm import BASE_NCMS
from idecode_core.scorer import SCORERS, Scorer, Vectors

POINTS = 1000
"""Attacked pictures per victim that are scored; about two seconds of one core each, for all attacks and detectors."""
DRAWS = 25
"""Of each picture: five runs of one draw and of five, one run of twenty. How far an AUROC is off depends on pictures much more than on draws."""
TRAINING, SHOWN, HELD_OUT = 3000, 300, 500
"""Of a victim's training side: pictures for banks and means, pictures that are attacked for the regressions, calibration points."""
Report = Callable[[str, int, int], None]
"""Called with (part, points done, points)."""


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
            "`python -m idecode_core attack-sets`."
        )
    test = load_images("cifar10-test", data_root)
    for name in names:
        folder = root / name
        detector = load_detector(folder)
        victim = Victim.from_detector(detector)
        found = {
            path.stem: read_attacked_set(name, path.stem, victim.classes, test, attacked)
            for path in sorted((attacked / name).glob("*.npz"))
        }
        sets = sets_to_score(found, points)
        record = record_of(folder, victim, found, points)
        score_rivals(root, folder, victim, sets, data_root, report)
        score_detectors(root, name, sets, report)
        write_record(root, record)  # last: a victim with a record is complete, and is in the table
    return names


def sets_to_score(found: Mapping[str, AttackedSet], points: int) -> Sets:
    """Of each set the first `points` pictures; of those that were attacked, the ones that count."""
    first = max(found.values(), key=lambda one: len(one.indices)).result
    pictures = {CLEAN: first.clean[:points]}
    for name, one in found.items():
        hit = torch.from_numpy(one.result.success[:points])
        if hit.any():
            pictures[name] = one.result.attacked[:points][hit]
    return pictures


def record_of(folder: Path, victim: Victim, found: Mapping[str, AttackedSet], points: int) -> VictimRecord:
    training = read_training(folder)
    if training is None or training.test_accuracy is None or not isinstance(victim.model, Equivariant):
        raise CheckpointError(
            f"{folder} has no record of its training with a test accuracy: expected a classifier that `train` made."
        )
    outcomes = {
        name: Outcome(
            one.result.success, one.result.l2.astype(np.float32), one.result.linf.astype(np.float32)
        )
        for name, one in found.items()
    }
    indices = max((one.indices for one in found.values()), key=len)
    network = victim.model.config.backbone
    return VictimRecord(
        victim.name, network, training.test_accuracy, indices, min(points, len(indices)), outcomes
    )


def hashes(pictures: Tensor) -> Hashes:
    return np.array([content_hash(picture.numpy()) for picture in pictures], dtype=np.bytes_)


class Shelf:
    """The stored scores of one detector on one victim, filled piece by piece."""

    def __init__(self, path: Path, scorer: str, draws: int) -> None:
        self.path = path
        self.scores = AttackScores(scorer)
        with suppress(CheckpointError):  # not there, or of an earlier scorer
            stored = read_attack_scores(path, scorer)
            if all(vectors.shape[1] == draws for vectors in stored.sets.values()):
                self.scores = stored

    def takes(self, name: str) -> bool:
        """A set that was made against one detector is for that detector alone."""
        return name.partition("@")[2] in ("", self.path.stem)

    def missing(self, name: str, pictures: Tensor) -> Tensor:
        """The pictures of a set that are not scored yet."""
        known = set(self.scores.inputs.get(name, np.empty(0, np.bytes_)).tolist())
        new = [i for i, one in enumerate(hashes(pictures).tolist()) if one not in known]
        return pictures[new]

    def add(self, name: str, pictures: Tensor, vectors: Vectors) -> None:
        """Write the scores of some more pictures."""
        sets, inputs = self.scores.sets, self.scores.inputs
        more = vectors.astype(np.float32)
        sets[name] = np.concatenate([sets[name], more]) if name in sets else more
        inputs[name] = (
            np.concatenate([inputs[name], hashes(pictures)]) if name in inputs else hashes(pictures)
        )
        write_attack_scores(self.path, self.scores)

    def keep(self, sets: Sets) -> None:
        """Forget what is not in these sets any more, calibration points aside, and bring each set into their order."""
        for name in self.scores.sets.keys() - {CALIBRATION}:
            place = {one: i for i, one in enumerate(self.scores.inputs[name].tolist())}
            order = (
                [place[one] for one in hashes(sets[name]).tolist() if one in place] if name in sets else []
            )
            self.scores.sets[name] = self.scores.sets[name][order]
            self.scores.inputs[name] = self.scores.inputs[name][order]
            if not order:
                del self.scores.sets[name], self.scores.inputs[name]
        write_attack_scores(self.path, self.scores)


def score_detectors(root: Path, victim: str, sets: Sets, report: Report | None) -> None:
    """DRAWS of every picture by every detector; networks that detectors share see a picture once."""
    found = {name: load_detector(root / name) for name in CIFAR10_DETECTORS if (root / name).is_dir()}
    shelves = {
        name: Shelf(scores_path(root, victim, name), scorer_hash(one.scorer), DRAWS)
        for name, one in found.items()
    }
    for set_name, pictures in sets.items():
        done = 0
        for piece in pictures.split(PIECE):
            takers = [
                name
                for name, shelf in shelves.items()
                if shelf.takes(set_name) and len(shelf.missing(set_name, piece))
            ]
            wanted = {name: found[name] for name in takers}
            for name, vectors in all_vectors(wanted, piece).items():
                new = np.isin(hashes(piece), hashes(shelves[name].missing(set_name, piece)))
                shelves[name].add(set_name, piece[torch.from_numpy(new)], vectors[new])
            done += len(piece)
            if report is not None:
                report(f"{victim}: {set_name}", done, len(pictures))
    for shelf in shelves.values():
        shelf.keep({name: pictures for name, pictures in sets.items() if shelf.takes(name)})


def all_vectors(detectors: Mapping[str, Detector], pictures: Tensor) -> dict[str, Vectors]:
    """Score vectors (N, DRAWS) of each detector. Scorers that differ in their base NCM alone come from one pass."""
    asked: dict[str, list[str]] = {}
    for detector in detectors.values():
        for one in members(detector.scorer):
            asked.setdefault(network_of(one), []).append(one.base_ncm)
    cache: dict[tuple[str, str], Vectors] = {}

    def vectors(scorer: Scorer, seed: int) -> Vectors:
        if isinstance(scorer, MergedScorer):
            return scorer.merge([vectors(member, seed) for member in scorer.members])
        assert isinstance(scorer, ImageScorer)
        network = network_of(scorer)
        if (network, scorer.base_ncm) not in cache:
            scored = scorer.score_under(
                list(dict.fromkeys(asked[network])), Unrounded(pictures), n=DRAWS, seed=seed
            )
            cache.update({(network, ncm): part.score_vectors for ncm, part in scored.items()})
        return cache[network, scorer.base_ncm]

    return {name: vectors(one.scorer, one.calibration.seed) for name, one in detectors.items()}


def members(scorer: Scorer) -> list[ImageScorer]:
    """The networks with a base NCM that a scorer is made of."""
    if isinstance(scorer, MergedScorer):
        return [one for member in scorer.members for one in members(member)]
    if not isinstance(scorer, ImageScorer):
        raise CheckpointError(
            f"A detector of the kind {scorer.kind} cannot be scored here: expected networks for pictures."
        )
    return [scorer]


def network_of(scorer: ImageScorer) -> str:
    """A hash of everything but the base NCM and the names of classes."""
    return scorer_hash(replace(scorer, base_ncm=next(iter(BASE_NCMS)), classes=()))


def score_rivals(
    root: Path, folder: Path, victim: Victim, sets: Sets, data_root: Path | None, report: Report | None
) -> None:
    """Fit, calibrate and score each rival for which something is missing."""
    identity, side = read_settings(folder).scorer_sha256, None
    for kind in RIVALS:
        shelf = Shelf(scores_path(root, victim.name, kind), identity, draws=1)
        own = {name: pictures for name, pictures in sets.items() if shelf.takes(name)}
        if all(not len(shelf.missing(name, pictures)) for name, pictures in own.items()):
            shelf.keep(own)
            continue
        side = side or training_side(folder, victim, data_root)
        own = {CALIBRATION: side.held_out, **own}
        scorer = fit_rival(kind, victim, side)
        for i, (name, pictures) in enumerate(own.items()):
            new = shelf.missing(name, pictures)
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


def fit_rival(kind: str, victim: Victim, side: TrainingSide) -> LayerScorer:
    module, name = SCORERS[kind].split(":")
    rival: type[Any] = getattr(import_module(module), name)
    shown = {"clean": side.clean, "attacked": side.attacked} if issubclass(rival, SupervisedScorer) else {}
    parts = {"preprocessing": Preprocessing(victim.size), "device": victim.device, "classes": victim.classes}
    scorer: LayerScorer = rival.fit(victim.model, side.x, side.y, **shown, **parts)
    return scorer
