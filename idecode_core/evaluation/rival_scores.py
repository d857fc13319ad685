"""Fit every rival on the network of a trained detector, score the sets of the tables once, and store what tables need.

Features of the training set are taken once per network. What is stored is left alone, so a stopped run goes on.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.baselines.energy import Energy
from idecode_core.baselines.frozen_head import with_linear_head
from idecode_core.baselines.mahalanobis import MahalanobisOnce, UnitMahalanobisOnce
from idecode_core.baselines.neighbours import NeighboursOnce
from idecode_core.baselines.odin import ODIN
from idecode_core.baselines.on_network import OnNetwork
from idecode_core.baselines.softmax import SBP
from idecode_core.baselines.vim import ViM
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.evaluation.ablations import CALIBRATION
from idecode_core.evaluation.rivals import UNIT, About, Cost, open_rival, read_costs, write_cost, write_rival
from idecode_core.evaluation.sets import ID_POINTS, SetToScore, image_sets, pick
from idecode_core.folder.detector import load_detector
from idecode_core.folder.settings import FolderSettings, read_settings
from idecode_core.folder.training_record import read_split, read_training, same_split
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import class_names, load_images
from idecode_core.merged import MergedScorer
from idecode_core.models.equivariant import Equivariant
from idecode_core.scorer import Scorer
from idecode_core.training.parts import Parts, load_parts
from idecode_core.training.recipes import get_recipe

TIMED_PICTURES, TIMED_RUNS = 32, 2
Say = Callable[[str], None]


@dataclass(frozen=True)
class Rival:
    """One method on one network."""

    title: str
    method: type[OnNetwork]
    network: str = UNIT
    labels: bool = True
    new_head: bool = False
    """A head for classes is trained on the frozen encoder (App. C.1.5)."""


RIVALS = {
    "sbp": Rival("SBP", SBP),
    "odin": Rival("ODIN", ODIN),
    "energy": Rival("Energy", Energy),
    "mahalanobis": Rival("Mahalanobis", MahalanobisOnce),
    "mahalanobis-unit": Rival("Mahalanobis, length 1", UnitMahalanobisOnce),
    "neighbours": Rival("kNN, k=50", NeighboursOnce),
    "vim": Rival("ViM", ViM),
    "sbp-frozen": Rival("SBP, frozen encoder", SBP, "cifar10-projective", new_head=True),
    "mahalanobis-rotations": Rival(
        "Mahalanobis, length 1", UnitMahalanobisOnce, "cifar10-rotations", labels=False
    ),
    "neighbours-rotations": Rival("kNN, k=50", NeighboursOnce, "cifar10-rotations", labels=False),
}
"""Name of the stored file -> what it is. Settings are the published ones; nothing was chosen here."""


@dataclass(frozen=True, eq=False)
class Network:
    """A trained detector's network with the parts of its data, and the features of its proper training set."""

    settings: FolderSettings
    encoder: OnNetwork
    classes: tuple[str, ...]
    parts: Parts[Any]
    z: Tensor  # (N, d)
    y: Tensor  # (N,)


def open_network(folder: Path, data_root: Path | str | None = None) -> Network:
    """The network of a detector folder, with features of the points that it was trained on."""
    record, scorer = read_training(folder), load_detector(folder).scorer
    if record is None or not isinstance(scorer, ImageScorer):
        raise CheckpointError(
            f"{folder} has no network of its own with a training record: expected a detector of pictures that `train` has "
            "written. Choose another."
        )
    parts = load_parts(get_recipe(record.recipe), data_root)
    if not same_split(parts.split, read_split(folder)):
        raise CheckpointError(
            f"{folder} was trained on another version of {record.dataset}: use the data that it was trained on."
        )
    encoder = Energy(model=scorer.model, preprocessing=scorer.preprocessing)  # takes pictures in as rivals do
    return Network(
        read_settings(folder),
        encoder,
        class_names(record.dataset),
        parts,
        encoder.encode(parts.training.samples),
        torch.from_numpy(parts.training.y),
    )


def fit(rival: Rival, network: Network) -> OnNetwork:
    """The rival, fitted on the proper training set; without labels, all points are of one class."""
    model = network.encoder.model
    if rival.new_head:
        model = with_linear_head(model, network.z, network.y)
    y = network.y if rival.labels else torch.zeros_like(network.y)
    return rival.method.fit(
        network.z,
        y,
        model=model,
        preprocessing=network.encoder.preprocessing,
        classes=network.classes if rival.labels else (),
    )


def scores_of(scorer: OnNetwork, points: Any, z: Tensor) -> NDArray[np.float64]:
    """Scores (N,) of points, from their features where the method needs no more than these."""
    if isinstance(scorer, ODIN):  # moves x
        return scorer.score(points).score_vectors[:, 0]
    with torch.no_grad():
        found = [scorer.of_features(part, scorer.logits(part)) for part in z.split(512)]
    return torch.cat(found).cpu().double().numpy()


def score_rivals(
    root: Path,
    names: Sequence[str] = (),
    *,
    data_root: Path | str | None = None,
    say: Say = lambda words: None,
) -> list[str]:
    """Score and store those of the named rivals, or of all, that are not stored yet; then what detectors cost."""
    unknown = sorted(set(names) - RIVALS.keys())
    if unknown:
        raise SettingError(f"No rival is called {unknown[0]!r}; expected some of {', '.join(RIVALS)}.")
    missing = [name for name in names or RIVALS if not is_stored(root, name)]
    unit = load_detector(root / UNIT).scorer
    for folder in dict.fromkeys(RIVALS[name].network for name in missing):
        say(f"{folder}: features of the training set")
        network = open_network(root / folder, data_root)
        sets = {one.name: one.points for one in image_sets(network.settings.dataset, data_root)}
        sets[CALIBRATION] = network.parts.calibration.samples
        say(f"{folder}: features of {', '.join(sets)}")
        features = {name: network.encoder.encode(points) for name, points in sets.items()}
        for name in missing:
            rival = RIVALS[name]
            if rival.network != folder:
                continue
            say(name)
            scorer = fit(rival, network)
            found = {one: scores_of(scorer, points, features[one]) for one, points in sets.items()}
            known = f"{network.settings.dataset}-test"
            accuracy = None
            if rival.new_head:
                y = pick(load_images(known, data_root), ID_POINTS).y
                said = scorer.logits(features[known]).argmax(dim=1).numpy()
                accuracy = float((said == y).mean())
            cost = cost_of(scorer, 1, unit, sets[known][:TIMED_PICTURES])
            about = About(rival.title, folder, rival.labels, cost, accuracy)
            write_rival(root, name, about, found, network.settings.scorer_sha256)
    return missing


def is_stored(root: Path, name: str) -> bool:
    try:
        open_rival(root, name)
    except CheckpointError:  # not there, or of another network
        return False
    return True


def score_costs(
    root: Path, names: Sequence[str], *, data_root: Path | str | None = None, say: Say = lambda words: None
) -> None:
    """Measure and store what detectors cost at n = 5 and 20, unless it is stored."""
    unit, known = load_detector(root / UNIT).scorer, read_costs(root)
    for name in names:
        if name in known:
            continue
        say(f"{name}: seconds per picture")
        settings = read_settings(root / name)
        scorer = load_detector(root / name).scorer
        one: SetToScore = next(image_sets(settings.dataset, data_root))
        costs = {n: cost_of(scorer, n, unit, one.points[:TIMED_PICTURES]) for n in (5, 20)}
        write_cost(root, name, costs, settings.scorer_sha256)


def networks_of(scorer: Any) -> list[Equivariant]:
    """Every network that a scorer asks, once."""
    found = (
        [n for m in scorer.members for n in networks_of(m)]
        if isinstance(scorer, MergedScorer)
        else [scorer.model]
    )
    return list({id(network): network for network in found}.values())


@contextmanager
def counted(networks: Sequence[Equivariant]) -> Iterator[Mapping[str, int]]:
    """Counts pictures that go through backbones, and gradients that come back, while it is open."""
    counts = {"forward": 0, "backward": 0}

    def forward(module: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        counts["forward"] += len(output)
        if output.requires_grad:
            output.register_hook(
                lambda gradient: counts.__setitem__("backward", counts["backward"] + len(gradient))
            )

    hooks = [network.backbone.register_forward_hook(forward) for network in networks]
    try:
        yield counts
    finally:
        for hook in hooks:
            hook.remove()


def cost_of(scorer: Scorer, n: int, unit: Scorer, pictures: NDArray[np.uint8]) -> Cost:
    """Passes are counted; seconds are the least of a few runs, each beside a run of the unit."""
    assert isinstance(unit, ImageScorer)
    with counted(networks_of(scorer)) as counts:
        scorer.score(pictures, n=n, seed=0)  # also warms up
    unit.logits(pictures)
    ours, units = [], []
    for _ in range(TIMED_RUNS):
        units.append(seconds(lambda: unit.logits(pictures)))
        ours.append(seconds(lambda: scorer.score(pictures, n=n, seed=0)))
    return Cost(
        round(counts["forward"] / len(pictures), 2),
        round(counts["backward"] / len(pictures), 2),
        round(min(ours) / min(units), 2),
    )


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
