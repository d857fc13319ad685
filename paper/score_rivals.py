"""Fit every rival on the network of a trained detector, score the sets of the tables once, and store what tables need.

Features of the training set are taken once per network. What is stored is left alone, so a stopped run goes on.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.errors import CheckpointError, SettingError
from idecode_core.files import write_json
from idecode_core.folder import stored
from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import read_split, read_training, same_split
from idecode_core.folder.settings import FolderSettings, read_settings
from idecode_core.folder.shelf import CALIBRATION, About, Cost, ScoreSet, write_scores
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import class_names, load_images
from idecode_core.models.equivariant import Equivariant, blank_model
from idecode_core.quality.cost import COSTS, NS, read_costs
from idecode_core.quality.score_sets import ID_POINTS, image_sets, label, pick
from idecode_core.scorer import Scorer
from idecode_core.scorers.distances import MahalanobisOnce, NeighboursOnce, UnitMahalanobisOnce, ViM
from idecode_core.scorers.logits import ODIN, SBP, Energy
from idecode_core.scorers.merged import MergedScorer, merge_vectors
from idecode_core.scorers.once import OnNetwork
from idecode_core.training.loop import training_pflop
from idecode_core.training.merge import REFERENCE_SHARE
from idecode_core.training.parts import Parts, load_parts
from idecode_core.training.recipes import get_recipe
from idecode_core.training.tasks import make_task
from paper.rivals.frozen_head import with_linear_head

UNIT = "cifar10-invariance"
"""Whose network's forward pass is the unit of costs."""
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
    member: str = ""
    """Of a merged detector's networks: the recipe of the one that is meant."""


def on_network(network: str, ending: str, member: str = "") -> dict[str, Rival]:
    """The rivals that a classifier needs no more than itself and its training set for, on one more network."""
    methods: dict[str, type[OnNetwork]] = {
        "sbp": SBP,
        "odin": ODIN,
        "energy": Energy,
        "neighbours": NeighboursOnce,
    }
    return {
        f"{name}-{ending}": Rival(
            f"{RIVALS[name].title}{', ' * bool(member)}{member.removeprefix('cifar10-')}",
            method,
            network,
            member=member,
        )
        for name, method in methods.items()
    }


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
RIVALS |= on_network("cifar10-joint", "joint")
RIVALS |= on_network("cifar10-merged", "wide", "cifar10-joint-wide")
RIVALS |= on_network("cifar10-pretrained", "pretrained", "cifar10-imagenet")
RIVALS["vim-pretrained"] = Rival("ViM, imagenet", ViM, "cifar10-pretrained", member="cifar10-imagenet")
"""Name on the shelf of `rivals` -> what it is. Settings are the published ones; nothing was chosen here."""
SPLIT_OF_MEMBER = "cifar10-joint"
"""The detector with the split that the members of merged ones were trained on."""
TOGETHER = {"energy-merged": {"energy-wide": SPLIT_OF_MEMBER, "energy-joint": SPLIT_OF_MEMBER}}
"""Rivals on the networks of the merged detector, merged as its members are: each with the detector that has its split."""


@dataclass(frozen=True, eq=False)
class Network:
    """A trained detector's network with the parts of its data, and the features of its proper training set."""

    settings: FolderSettings
    encoder: OnNetwork
    classes: tuple[str, ...]
    parts: Parts[Any]
    z: Tensor  # (N, d)
    y: Tensor  # (N,)


def open_network(folder: Path, data_root: Path | str | None = None, member: str = "") -> Network:
    """The network of a detector folder, or that of a merged one's member, with features of the points that it was trained on."""
    scorer = load_detector(folder).scorer
    if member and isinstance(scorer, MergedScorer):
        place = [name.partition("@")[0] for name in scorer.names].index(member)
        scorer, recipe, split = scorer.members[place], get_recipe(member), None
    elif record := read_training(folder):
        recipe, split = get_recipe(record.recipe), read_split(folder)
    if not isinstance(scorer, ImageScorer | OnNetwork):
        raise CheckpointError(
            f"{folder} has no network of its own with a training record: expected a detector of pictures that `train` has "
            "written. Choose another."
        )
    parts = load_parts(recipe, data_root)
    if split and not same_split(parts.split, split):  # a member brings none: its recipe says which it was
        raise CheckpointError(
            f"{folder} was trained on another version of {recipe.dataset}: use the data that it was trained on."
        )
    classes = class_names(recipe.dataset)
    model = class_network(scorer.model, len(classes)) if scorer.classes else scorer.model
    encoder = Energy(model=model, preprocessing=scorer.preprocessing)  # takes pictures in as rivals do
    return Network(
        read_settings(folder),
        encoder,
        classes,
        parts,
        encoder.encode(parts.training.samples),
        torch.from_numpy(parts.training.y),
    )


def class_network(model: Equivariant, classes: int) -> Equivariant:
    """The network with its outputs for classes alone, where it learned the turn too: the last ones (`ncm.RANGES` come first)."""
    if model.config.outputs == classes:
        return model
    alone = blank_model(replace(model.config, outputs=classes))
    weights = model.state_dict()
    weights |= {name: weights[name][-classes:] for name in ("head.weight", "head.bias")}
    alone.load_state_dict(weights)
    return alone.eval()


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
        parts = [scorer.of_features(part, scorer.logits(part)) for part in z.split(512)]
    return torch.cat(parts).cpu().double().numpy()


def score_rivals(
    root: Path,
    names: Sequence[str] = (),
    *,
    data_root: Path | str | None = None,
    say: Say = lambda words: None,
) -> list[str]:
    """Score and store those of the named rivals, or of all whose network is there, that are not stored yet."""
    unknown = sorted(set(names) - RIVALS.keys())
    if unknown:
        raise SettingError(f"No rival is called {unknown[0]!r}; expected some of {', '.join(RIVALS)}.")
    possible = [name for name, rival in RIVALS.items() if (root / rival.network / "config.json").is_file()]
    missing = [name for name in names or possible if not is_stored(root, name)]
    unit = load_detector(root / UNIT).scorer
    for folder, member in dict.fromkeys((RIVALS[name].network, RIVALS[name].member) for name in missing):
        say(f"{member or folder}: features of the training set")
        network = open_network(root / folder, data_root, member)
        sets = {part.name: part.points for part in image_sets(network.settings.dataset, data_root)}
        sets[CALIBRATION] = network.parts.calibration.samples
        say(f"{member or folder}: features of {', '.join(sets)}")
        features = {name: network.encoder.encode(points) for name, points in sets.items()}
        for name in missing:
            rival = RIVALS[name]
            if (rival.network, rival.member) != (folder, member):
                continue
            say(name)
            scorer = fit(rival, network)
            known = f"{network.settings.dataset}-test"
            accuracy = None
            if rival.new_head:
                y = pick(load_images(known, data_root), ID_POINTS).y
                said = scorer.logits(features[known]).argmax(dim=1).numpy()
                accuracy = float((said == y).mean())
            cost = cost_of(scorer, 1, unit, sets[known][:TIMED_PICTURES])
            about = About(rival.title, folder, labels=rival.labels, cost=cost, accuracy=accuracy)
            for part, points in sets.items():  # the calibration set comes last: it says that all is there
                scores = scores_of(scorer, points, features[part])
                scored = ScoreSet(part, label(part), part not in (known, CALIBRATION), scores[:, None])
                write_scores(root / stored.RIVALS, scored, network.settings.scorer_sha256, name, about)
    for name, members in TOGETHER.items():
        if not is_stored(root, name) and all(is_stored(root, member) for member in members):
            held_out = [read_split(root / folder).calibration for folder in members.values()]
            merge_rivals(root, name, list(members), held_out)
            missing.append(name)
    return missing


def merge_rivals(
    root: Path, name: str, members: Sequence[str], held_out: Sequence[NDArray[np.int64]]
) -> None:
    """Rivals on several networks as one, as a merged detector's members are: points that all of the networks held out calibrate,
    the others rank; where there are no others, a random quarter of them."""
    opened = [stored.open_rival(root, member) for member in members]
    common = reduce(np.intersect1d, held_out)
    if all(len(points) == len(common) for points in held_out):
        order = np.random.default_rng([0, len(common)]).permutation(common)
        common = order[round(REFERENCE_SHARE * len(order)) :]
    rows = [np.isin(points, common) for points in held_out]  # in one order, for a split is sorted
    vectors = {
        part: [rival.sets[part].score_vectors.astype(np.float64) for rival in opened]
        for part in opened[0].sets
    }
    references = [scores[~calibrates] for scores, calibrates in zip(vectors[CALIBRATION], rows, strict=True)]
    vectors[CALIBRATION] = [
        scores[calibrates] for scores, calibrates in zip(vectors[CALIBRATION], rows, strict=True)
    ]
    costs = [astuple(rival.about.cost) for rival in opened if rival.about.cost]
    about = replace(
        opened[0].about,
        title="Energy, both networks",
        cost=Cost(*(round(sum(parts), 2) for parts in zip(*costs, strict=True))) if costs else None,
    )
    for part in sorted(vectors, key=lambda part: part == CALIBRATION):  # it says that all is there
        merged = merge_vectors(vectors[part], references, [1.0] * len(members))
        scored = replace(opened[0].sets[part], score_vectors=merged)
        write_scores(root / stored.RIVALS, scored, opened[0].made_with, name, about)


def is_stored(root: Path, name: str) -> bool:
    try:
        stored.open_rival(root, name)
    except CheckpointError:  # not there, or of another network
        return False
    return True


def score_costs(
    root: Path, names: Sequence[str], *, data_root: Path | str | None = None, say: Say = lambda words: None
) -> None:
    """Measure and store what detectors cost at n = 1, 5 and 20, and what the trainings that each rests on took, unless it is
    stored."""
    unit, known = load_detector(root / UNIT).scorer, read_costs(root)
    for name in names:
        if set(NS) <= known.get(name, {}).keys():
            continue
        say(f"{name}: seconds per picture")
        settings = read_settings(root / name)
        scorer = load_detector(root / name).scorer
        pictures = next(image_sets(settings.dataset, data_root)).points[:TIMED_PICTURES]
        costs = {str(n): asdict(cost_of(scorer, n, unit, pictures)) for n in NS}
        training = {recipe: trained_by(recipe, data_root) for recipe in recipes_behind(settings)}
        path = root / stored.RIVALS / COSTS
        before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        entry = {"scorer": settings.scorer_sha256, "n": costs, "training_pflop": training}
        write_json(path, dict(sorted({**before, name: entry}.items())))


def recipes_behind(settings: FolderSettings) -> list[str]:
    """The recipes that a detector's networks were trained by, those that they started from too."""
    record = read_training(settings.folder)
    members = [record.recipe] if record else settings.scorer.get("names", ())
    plain = [str(name).partition("@")[0] for name in members]
    names = list(dict.fromkeys(RIVALS[name].network if name in RIVALS else name for name in plain))
    for name in names:  # grows as it goes
        before = Path(get_recipe(name).shows.start_from).name
        if before and before not in names:
            names.append(before)
    return names


def trained_by(recipe: str, data_root: Path | str | None) -> float:
    """10^15 operations of a recipe's training."""
    task = make_task(get_recipe(recipe), load_parts(get_recipe(recipe), data_root))
    return training_pflop(task, task.recipe.epochs)


def networks_of(scorer: Any) -> list[Equivariant]:
    """Every network that a scorer asks, once."""
    networks = (
        [n for m in scorer.members for n in networks_of(m)]
        if isinstance(scorer, MergedScorer)
        else [scorer.model]
    )
    return list({id(network): network for network in networks}.values())


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
