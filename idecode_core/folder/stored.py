"""A detector as its tables and pages see it: settings, calibration, stored scores, training record; and the rivals whose
scores can stand beside it. No torch.

Stored scores are float32. The calibration that is read with them is rounded alike, here and nowhere else, so that what
was tied stays tied.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import CheckpointError
from idecode_core.folder.manifest import (
    check_file,
    check_made_with,
    check_parts,
    is_listed,
    read_calibration,
)
from idecode_core.folder.record import TrainingRecord, read_training
from idecode_core.folder.settings import FolderSettings, checkpoint_root, find_detector, read_settings
from idecode_core.folder.shelf import (
    SCORE_AGAIN,
    Scores,
    ScoreSet,
    id_and_ood,
    in_order,
    open_scores,
    read_score_file,
    score_paths,
    scorer_names,
)

RIVALS, ONE_CLASS, ADVERSARIAL = "rivals", "one-class", "adversarial"
"""Places beside the detectors: of rivals on their networks, of those that know one class, and of attacked sets by victim."""
CLEAN = "clean"
"""The set of the pictures of a victim's attacked sets before they were attacked."""
PRETRAINED = "efficientnet-lite0"
"""The backbone whose weights were made on ImageNet (models/pretrained.py)."""
CIFAR10_DETECTORS = (
    "cifar10-projective",
    "cifar10-rotations",
    "cifar10-turn-distance",
    "cifar10-invariance",
    "cifar10-merged",
    "cifar10-joint",
    "cifar10-pretrained",
)


def saw_imagenet(scorer: Mapping[str, Any]) -> bool:
    """Whether a network of a scorer, or of a member, was trained on ImageNet before, so that no row from scratch compares with it."""
    model = scorer.get("model") or scorer.get("own", {}).get("model") or {}
    return model.get("backbone") == PRETRAINED or any(map(saw_imagenet, scorer.get("members", ())))


@dataclass(frozen=True, eq=False)
class Stored:
    """Everything in a detector folder but the weights."""

    settings: FolderSettings
    calibration: Calibration  # in the precision of the stored scores
    id_set: ScoreSet
    ood_sets: list[ScoreSet]
    training: TrainingRecord | None

    @property
    def name(self) -> str:
        return self.settings.folder.name

    @property
    def title(self) -> str:
        """What it is called in figures and tables, as a rival's scores have it too."""
        return self.settings.name

    @property
    def folder(self) -> Path:
        return self.settings.folder

    @cached_property
    def transforms(self) -> str:
        """The paper's name of G where M learned nothing but G, as the paper's did; "" for a merged detector, which has several,
        for a network that learned classes, and for sounds.

        Rotations are the same set however pictures are sampled.
        """
        scorer = self.settings.scorer
        if scorer.get("kind") != "image" or scorer.get("classes"):
            return ""
        return str(scorer.get("transforms", {}).get("name", "")).removeprefix("sharp_")

    @property
    def saw_imagenet(self) -> bool:
        return saw_imagenet(self.settings.scorer)

    def scores_of(self, scorer: str) -> Scores:
        """What another scorer on the same network says of the same sets: SBP, or another base NCM."""
        for path in score_paths(self.folder, scorer):
            name = path.relative_to(self.folder).as_posix()
            if name in self.settings.files:  # it may have been written after the list was
                check_file(self.settings, name)
        return open_scores(self.folder, scorer, self.settings.scorer_sha256)


def open_stored(folder: Path | str) -> Stored:
    """The stored numbers of one detector; refuses scores that were made with another scorer."""
    settings = read_settings(folder)
    check_parts(settings)
    finished = [path for path in score_paths(folder) if is_listed(settings, f"scores/{path.name}")]
    for path in finished:
        check_file(settings, f"scores/{path.name}")
    score_sets = in_order(read_score_file(path, settings.scorer_sha256) for path in finished)
    known, outside = id_and_ood(score_sets, str(folder))
    calibration = read_calibration(settings).rounded(known.score_vectors.dtype)
    return Stored(settings, calibration, known, outside, read_training(folder))


def has_scores(folder: Path | str) -> bool:
    return bool(score_paths(folder))


def open_all(root: Path | str, names: tuple[str, ...] = CIFAR10_DETECTORS) -> list[Stored]:
    """Those of `names` that are there with scores; at least one."""
    folders = [Path(root) / name for name in names]
    detectors = [
        open_stored(folder) for folder in folders if (folder / "config.json").exists() and has_scores(folder)
    ]
    if not detectors:
        raise CheckpointError(
            f"No detector with stored scores is in {root}: expected one of {', '.join(names)}. Train one with "
            "`python -m idecode_core train`, then `python -m idecode_core paper score-sets`."
        )
    return detectors


def rival_places(root: Path | str, detector: str = "*") -> dict[str, tuple[Path, str]]:
    """Rivals by the name that they are asked for by: the place and the scorer whose scores they are. Those of a detector that
    knows one class are called `<detector>--<scorer>`."""
    places = {"": Path(root) / RIVALS} if detector == "*" else {}
    places |= {f"{place.name}--": place for place in sorted((Path(root) / ONE_CLASS).glob(detector))}
    return {
        f"{first}{name}": (place, name) for first, place in places.items() for name in scorer_names(place)
    }


def rivals_beside(detector: str) -> list[str]:
    """The rivals that can stand beside a detector that comes with the project: those of one class where it knows one."""
    root = checkpoint_root()
    return list(rival_places(root, detector)) or scorer_names(root / RIVALS)


def open_rival(root: Path | str, name: str) -> Scores:
    """A rival's stored scores; refuses those that were made with another network than the one that is there."""
    places = rival_places(root)
    if name not in places:
        raise CheckpointError(
            f"No rival with stored scores is called {name!r}; expected one of {', '.join(places)}."
        )
    place, scorer = places[name]
    rival = open_scores(place, scorer)
    if rival.about.network:
        network = read_settings(Path(root) / rival.about.network)
        check_made_with(place / "scores" / scorer, rival.made_with, network.scorer_sha256, SCORE_AGAIN)
    return rival


def open_by_name(name: str) -> Stored | Scores:
    """What is stored of a rival, or of a detector, by its name among those that come with the project."""
    root = checkpoint_root()
    return open_rival(root, name) if name in rival_places(root) else open_stored(find_detector(name))
