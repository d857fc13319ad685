"""The shelf: what a scorer says of a set, V (N, n), stored once, with one reader and one writer. No torch.

`<place>/scores/<set>.npz` is of the place's own scorer, `<place>/scores/<scorer>/<set>.npz` of any other: SBP on the same
network, another base NCM on the same predictions, a rival. A place is a detector folder, or lies beside them: `rivals`,
`one-class/<what it knows>`, `adversarial/<victim>`. Each file carries the hash of the scorer that made it, or of the network
that it sits on, and says in words what it is. n is 100 for a detector, five independent runs of 20 draws, and 1 for a scorer
that draws nothing. The calibration set is a set called `calibration`; a detector has it in calibration.npz.

Every table and figure follows from these files in seconds, without the model.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import CheckpointError, DataError
from idecode_core.files import write_npz
from idecode_core.files.names import printable
from idecode_core.files.read import read_arrays
from idecode_core.folder.manifest import add_files, check_made_with

DRAWS_PER_RUN = 20
RUNS = 5
CALIBRATION = "calibration"
SBP = "sbp"
"""The softmax baseline's name among the scorers of a detector folder."""
LONGEST_LABEL = 500
SCORE_AGAIN = "Write it again with `python -m idecode_core paper score-sets`."
POINTWISE = {"groups": "U", "inputs": "S"}
"""What a file may hold besides, one for each point, and its kind of text."""


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """The score vectors of one set; `name` is the file's, `label` is what people call it."""

    name: str
    label: str
    is_ood: bool
    score_vectors: NDArray[np.floating]  # (N, runs * 20) or (N, 1); float32 where it is stored
    groups: NDArray[np.str_] | None = None  # (N,): the class of each point, of a set that has several
    inputs: NDArray[np.bytes_] | None = None  # (N,): content hashes of the points, of a set that may grow

    def __len__(self) -> int:
        return len(self.score_vectors)

    def by_group(self) -> "list[ScoreSet]":
        """Each class as a set of its own; the set itself where it has no classes."""
        if self.groups is None:
            return [self]
        return [
            ScoreSet(
                f"{self.name}-{group}",
                f"{self.label} {group}",
                self.is_ood,
                self.score_vectors[self.groups == group],
            )
            for group in np.unique(self.groups)
        ]


@dataclass(frozen=True)
class Cost:
    """What a score of one picture takes."""

    forward: float
    """Pictures that go through a network."""
    backward: float
    """Gradients that come back through it."""
    seconds: float
    """In units of one forward pass through the network of `cifar10-invariance`, measured side by side."""

    def passes(self) -> str:
        """
        >>> Cost(2, 1, 4.2).passes()
        '2 + 1 back'
        """
        return f"{self.forward:g}" + (f" + {self.backward:g} back" if self.backward else "")


@dataclass(frozen=True)
class About:
    """What a scorer is."""

    title: str = ""
    network: str = ""
    """The detector whose network it uses, and whose hash its scores carry; "" where it brings its own."""
    knows: str = ""
    """What it was trained on, where that is not what its network was trained on."""
    base_ncm: str = ""
    labels: bool = False
    """Whether it, or its network, learned from labels."""
    cost: Cost | None = None
    accuracy: float | None = None
    """Of its classifier, on the iD test points; where it is not that of the network's own folder."""
    seed: int = 0
    """Of its training, where a method is trained several times on the same points."""
    budget: int = 1
    """How many times the usual steps its training had."""

    @property
    def called(self) -> str:
        """
        >>> About("GOAD", seed=2, budget=10).called
        'GOAD, 10 times the steps, seed 2'
        """
        longer = f", {self.budget} times the steps" if self.budget > 1 else ""
        return f"{self.title}{longer}" + (f", seed {self.seed}" if self.seed else "")


@dataclass(frozen=True, eq=False)
class Scores:
    """All that is stored of one scorer."""

    name: str
    about: About
    made_with: str
    """The hash of the scorer, or of the network that it sits on; "" where none is known."""
    sets: dict[str, ScoreSet] = field(default_factory=dict)

    @property
    def title(self) -> str:
        of = (self.about.network or self.about.knows).removeprefix("cifar10-")
        return f"{self.about.called} ({of})" if of else self.about.called

    @cached_property
    def calibration(self) -> Calibration:
        """In the precision of the stored scores."""
        return Calibration(self.sets[CALIBRATION].score_vectors.astype(np.float64)).rounded(np.float32)

    @cached_property
    def id_set(self) -> ScoreSet:
        return id_and_ood(list(self.sets.values()), self.name)[0]

    @cached_property
    def ood_sets(self) -> list[ScoreSet]:
        """Each class as a set of its own, where a set has several."""
        return [
            part
            for score_set in id_and_ood(list(self.sets.values()), self.name)[1]
            for part in score_set.by_group()
        ]

    def once(self, name: str) -> NDArray[np.float64]:
        """The scores (N,) of a set, by a scorer that draws nothing."""
        return self.sets[name].score_vectors[:, 0].astype(np.float64)


def score_path(place: Path | str, name: str, scorer: str = "") -> Path:
    """Where the scores of a set are; `scorer` is "" for the place's own."""
    return Path(place) / "scores" / scorer / f"{name}.npz"


def score_paths(place: Path | str, scorer: str = "") -> list[Path]:
    """The files of stored sets; hidden ones are what earlier versions left when they were killed."""
    paths = sorted((Path(place) / "scores" / scorer).glob("*.npz"))
    return [path for path in paths if not path.name.startswith(".")]


def scorer_names(place: Path | str) -> list[str]:
    """The scorers, besides a place's own, that are complete there: their calibration set, which comes last, is stored."""
    return sorted(path.parent.name for path in Path(place).glob(f"scores/*/{CALIBRATION}.npz"))


def write_scores(
    place: Path | str,
    score_set: ScoreSet,
    scorer_sha256: str,
    scorer: str = "",
    about: About | None = None,
) -> Path:
    """Write one set, tied to the scorer that made it; a detector folder's list takes it up."""
    path = score_path(place, score_set.name, scorer)
    arrays = {
        "score_vectors": score_set.score_vectors.astype(np.float32),
        "is_ood": np.array(score_set.is_ood),
        "label": np.array(score_set.label),
        "scorer": np.array(scorer_sha256),
    }
    if about is not None:
        arrays["about"] = np.array(json.dumps(asdict(about)))
    arrays |= {name: values for name in POINTWISE if (values := getattr(score_set, name)) is not None}
    write_npz(path, arrays)
    if (Path(place) / "config.json").is_file():
        add_files(Path(place), [path.relative_to(place).as_posix()])
    return path


def read_tied(path: Path, names: Sequence[str], scorer_sha256: str | None) -> dict[str, NDArray[Any]]:
    """The arrays of a file that carries the hash of the scorer that made it; with a hash given, only if it is that one."""
    arrays = read_arrays(
        path, (*names, "scorer"), what="stored scores", error=CheckpointError, hint=SCORE_AGAIN
    )
    if scorer_sha256 is not None:
        check_made_with(path, str(arrays["scorer"]), scorer_sha256, SCORE_AGAIN)
    return arrays


def read_score_file(path: Path | str, scorer_sha256: str | None = None) -> ScoreSet:
    """One stored set; with a hash given, only if it was made with the scorer of that hash."""
    return _read(Path(path), scorer_sha256)[0]


def _read(path: Path, scorer_sha256: str | None) -> tuple[ScoreSet, dict[str, NDArray[Any]]]:
    arrays = read_tied(path, ("score_vectors", "is_ood", "label"), scorer_sha256)
    vectors = arrays["score_vectors"]
    sound = (
        vectors.ndim == 2
        and len(vectors)
        and (vectors.shape[1] >= DRAWS_PER_RUN or vectors.shape[1] == 1)
        and vectors.dtype.kind == "f"
    )
    if not sound or not np.isfinite(vectors).all():
        raise CheckpointError(
            f"{path}: expected finite score vectors (N, at least {DRAWS_PER_RUN}) or (N, 1), got shape {vectors.shape}. {SCORE_AGAIN}"
        )
    label, is_ood = arrays["label"], arrays["is_ood"]
    words = str(label)
    is_line = not label.shape and words.strip() and printable(words) == words and len(words) <= LONGEST_LABEL
    if not is_line or is_ood.shape or is_ood.dtype.kind != "b":
        raise CheckpointError(
            f"{path}: expected a label, one line of text, and whether the set is OOD, got {printable(words[:40])!r} and "
            f"{printable(str(is_ood)[:40])!r}. {SCORE_AGAIN}"
        )
    pointwise = {name: arrays[name] for name in POINTWISE if name in arrays}
    if any(a.shape != (len(vectors),) or a.dtype.kind != POINTWISE[name] for name, a in pointwise.items()):
        raise CheckpointError(
            f"{path}: expected one text of {' and of '.join(pointwise)} per point. {SCORE_AGAIN}"
        )
    return ScoreSet(path.stem, words, bool(is_ood), vectors.astype(np.float32), **pointwise), arrays


def open_scores(place: Path | str, scorer: str = "", scorer_sha256: str | None = None) -> Scores:
    """All that is stored of a scorer in a place, with the words about it."""
    paths = score_paths(place, scorer)
    if not paths:
        raise CheckpointError(
            f"{Path(place) / 'scores' / scorer} has no stored scores: expected one npz file per set. {SCORE_AGAIN}"
        )
    files = [_read(path, scorer_sha256) for path in paths]
    arrays = files[0][1]
    if any(other["scorer"] != arrays["scorer"] for _, other in files):
        raise CheckpointError(f"{paths[0].parent} holds scores of several scorers. {SCORE_AGAIN}")
    try:
        words = json.loads(str(arrays.get("about", "{}")))
        about = About(**{**words, "cost": Cost(**words["cost"]) if words.get("cost") else None})
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{paths[0]} does not say what it is: expected words on a scorer. {SCORE_AGAIN}"
        ) from error
    sets = {score_set.name: score_set for score_set in in_order(score_set for score_set, _ in files)}
    return Scores(scorer or Path(place).name, about, str(arrays["scorer"]), sets)


def stored_vectors(
    place: Path | str, name: str, shape: tuple[int, int], scorer_sha256: str, scorer: str = ""
) -> NDArray[np.floating] | None:
    """A set as stored, if it was made with this scorer and has these sizes; None where it is to be made, or made again."""
    try:
        vectors = read_score_file(score_path(place, name, scorer), scorer_sha256).score_vectors
    except CheckpointError:
        return None
    return vectors if vectors.shape == shape else None


def in_order(score_sets: Iterable[ScoreSet]) -> list[ScoreSet]:
    """The iD test set first, the OOD sets as in the paper's tables."""
    return sorted(score_sets, key=lambda score_set: (score_set.is_ood, _place(score_set.name)))


def _place(name: str) -> tuple[int, str]:
    """Sets in the order of the paper's tables, others after them."""
    order = ("svhn", "lsun", "lsunproxy", "cifar100", "places", "tinyimagenet", "isun")
    dataset = name.rsplit("-", 1)[0]
    return (order.index(dataset) if dataset in order else len(order), name)


def id_and_ood(score_sets: Sequence[ScoreSet], where: str = "the folder") -> tuple[ScoreSet, list[ScoreSet]]:
    """The one iD test set and the OOD sets; a calibration set is neither."""
    known = [score_set for score_set in score_sets if not score_set.is_ood and score_set.name != CALIBRATION]
    if len(known) != 1:
        raise DataError(
            f"{where}: expected the stored scores of exactly one iD test set, got {len(known)}. Write them with "
            "`python -m idecode_core paper score-sets`."
        )
    return known[0], [score_set for score_set in score_sets if score_set.is_ood]
