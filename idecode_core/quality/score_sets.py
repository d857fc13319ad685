"""Which sets a detector is tested on and which of their points; scored once, and stored beside it for every table.

All scores of a set come from one pass through the model, SBP's from one more without transforms. What is stored is left
alone, so a stopped run goes on where it was.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.audio.sets import SoundSet
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, DataError
from idecode_core.files.shown import Report, progress_of
from idecode_core.folder.detector import load_detector, scorer_hash
from idecode_core.folder.manifest import add_files
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import (
    CALIBRATION,
    DRAWS_PER_RUN,
    RUNS,
    SBP,
    About,
    ScoreSet,
    stored_vectors,
    write_scores,
)
from idecode_core.image.sets import TEST_SETS, ImageSet, class_names, dataset_and_class, load_images
from idecode_core.ncm import BASE_NCMS, softmax_baseline
from idecode_core.scorer import NetworkScorer, Progress, Scorer, Vectors
from idecode_core.scorers.merged import MergedScorer

DRAWS = RUNS * DRAWS_PER_RUN
NO_NCM = "own"  # the base NCM of a scorer that has several models, or none
ID_POINTS, OOD_POINTS = 2000, 1000
POINTS_PER_CLASS = 100
"""Of each other class, where one class is known."""
DEVELOPMENT = slice(400, 700)
"""Which places of a set's random order are for choosing, and so are never in a table (research/development.py)."""
SAMPLES = ("digits-sample", "photos-sample", "textures-sample")
"""Small bundled sets. Only Fashion-MNIST's table has them, for which nothing was chosen on development data: all of their
points are in it."""
LABELS = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "svhn": "SVHN",
    "tinyimagenet": "Tiny-ImageNet",
    "isun": "iSUN",
    "places": "Places",
    "lsunproxy": "LSUN proxy",
    "lsun": "LSUN",
    "places365": "Places365",
    "fashion": "Fashion-MNIST",
    "digits": "Handwritten digits",
    "photos": "Photographs",
    "textures": "Textures",
    "spokendigits": "Spoken digits",
    "esc50": "ESC-50",
    "fsdnoisy18k": "FSDnoisy18k",
}


def label(name: str) -> str:
    """A set's name for readers.

    >>> label("svhn-test"), label("esc50-urban"), label("plucked-string")
    ('SVHN', 'ESC-50 urban', 'plucked string')
    """
    dataset, *rest = name.split("-")
    words = [LABELS.get(dataset, dataset), *(word for word in rest if word not in ("test", "sample"))]
    return " ".join(words)


@dataclass(frozen=True, eq=False)
class SetToScore:
    """A set of test points by its name, and whether it is OOD for the detector. The calibration set may be among them."""

    name: str
    is_ood: bool
    points: Any
    """Pictures (N, h, w, 3) or clips, as the scorer takes them."""

    def __len__(self) -> int:
        return len(self.points)

    @property
    def is_calibration(self) -> bool:
        return self.name == CALIBRATION


def image_set_names(dataset: str) -> list[str]:
    """The iD test set of a detector for `dataset`, then the OOD sets of its tables."""
    if dataset.startswith("fashion"):
        return ["fashion-test", *SAMPLES, "cifar10-test", "svhn-test"]
    others = TEST_SETS if dataset == "cifar10" else ("cifar10", *TEST_SETS)
    return [f"{dataset}-test", *(f"{name}-test" for name in others if name != dataset)]


def image_sets(
    dataset: str,
    data_root: Path | str | None = None,
    id_points: int = ID_POINTS,
    ood_points: int = OOD_POINTS,
) -> Iterator[SetToScore]:
    """The sets of pictures, one after the other. One that is not in the data root is left out, but not the iD test set."""
    whole, only = dataset_and_class(dataset)
    if only is not None:
        yield from one_class_sets(load_images(f"{whole}-test", data_root), only, id_points)
        return
    known, *_ = names = image_set_names(dataset)
    for name in names:
        try:
            images = load_images(name, data_root)
        except DataError:
            if name == known:
                raise
            continue
        yield SetToScore(
            name, name != known, pick(images, id_points if name == known else ood_points).samples
        )


def one_class_sets(test: ImageSet, only: int, id_points: int = ID_POINTS) -> Iterator[SetToScore]:
    """One class of a test set, and each other class as a set that is OOD for it."""
    dataset = test.name.rsplit("-", 1)[0]
    for number, name in enumerate(class_names(dataset)):
        is_known = number == only
        points = pick(test.only([number]), id_points if is_known else POINTS_PER_CLASS)
        yield SetToScore(f"{dataset}-{name}", not is_known, points.samples)


def sound_sets(
    name: str, test: SoundSet, outside: Mapping[str, SoundSet], calibration: SoundSet
) -> Iterator[SetToScore]:
    """The iD test set, the OOD sets by their names, and the calibration set, which SBP and other base NCMs need too."""
    yield SetToScore(name, False, test.samples)
    for other, sounds in outside.items():
        yield SetToScore(other, True, sounds.samples)
    yield SetToScore(CALIBRATION, False, calibration.samples)


def pick(images: ImageSet, count: int) -> ImageSet:
    """`count` points for a table, chosen at random, in the set's order; all there are for tables when these are fewer. Points in
    the places of DEVELOPMENT are for choosing only."""
    order = random_order(images)
    if images.name not in SAMPLES:
        order = np.concatenate([order[: DEVELOPMENT.start], order[DEVELOPMENT.stop :]])
    return images.take(np.sort(order[:count]))


def random_order(images: ImageSet) -> NDArray[np.int64]:
    return np.random.default_rng([0, len(images)]).permutation(len(images))


def score_test_sets(
    folder: Path | str,
    sets: Iterable[SetToScore],
    *,
    draws: int = DRAWS,
    ablations: Sequence[str] = (),
    without_familiarity: bool = False,
    members: Sequence[Path | str] = (),
    report: Report | None = None,
    detector: Detector | None = None,
) -> list[str]:
    """Score each set that is not stored yet, with the calibration's seed; gives the names of the test sets.

    `ablations` are other base NCMs that are stored too; of a merged detector, they and SBP are read on its member that is a
    network. `members` are folders whose stored scores a merged detector may use again. `detector` is the folder's own, where
    it has been loaded or made before.
    """
    folder = Path(folder)
    detector, identity = detector or load_detector(folder), read_settings(folder).scorer_sha256
    scorer, seed = detector.scorer, detector.calibration.seed
    draws = draws if detector.calibration.n_max > 1 else 1  # no random draws: others would be the same
    network = network_of(scorer) if ablations or isinstance(scorer, NetworkScorer) else None
    base_ncm = scorer.base_ncm if isinstance(scorer, NetworkScorer) else NO_NCM
    shelf = {base_ncm: ("", draws)}  # base NCM -> name of the scorer, and draws
    if without_familiarity:
        shelf[plain_ncm(base_ncm, folder)] = (plain_ncm(base_ncm, folder), draws)
    shelf |= {name: (name, DRAWS_PER_RUN) for name in ablations if name not in shelf}
    if network and network.classes:
        shelf[SBP] = (SBP, 1)
    done = []
    for test_set in sets:
        missing = {
            ncm: (name, n)
            for ncm, (name, n) in shelf.items()
            # the own scores of the calibration set have a file of their own
            if (name or not test_set.is_calibration)
            and stored_vectors(folder, test_set.name, (len(test_set), n), identity, name) is None
        }
        by_ncm: dict[str, NDArray[np.floating]] = {}
        if network and network is not scorer:
            identity_of_network = scorer_hash(network)
            for ncm, (name, n) in missing.items():
                is_networks = ncm == network.base_ncm  # on its own shelf it has all draws, and no name
                shape, place = (len(test_set), draws if is_networks else n), "" if is_networks else name
                kept = on_shelves(members, test_set.name, shape, identity_of_network, place) if name else None
                by_ncm |= {} if kept is None else {ncm: kept}
            others = [ncm for ncm in missing if ncm not in (NO_NCM, SBP, *by_ncm)]
            if others:
                by_ncm |= score_under(network, others, test_set, n=DRAWS_PER_RUN, seed=seed)
        if network and SBP in missing and SBP not in by_ncm:
            by_ncm[SBP] = softmax_baseline(network.logits(test_set.points).double()).float().numpy()[:, None]
        if ncms := [ncm for ncm in missing if ncm != SBP and ncm not in by_ncm]:
            n = max(missing[ncm][1] for ncm in ncms)
            progress = progress_of(report, test_set.name, len(test_set))
            by_ncm |= score_under(scorer, ncms, test_set, n=n, seed=seed, members=members, progress=progress)
        for ncm, (name, n) in missing.items():
            scored = ScoreSet(test_set.name, label(test_set.name), test_set.is_ood, by_ncm[ncm][:, :n])
            write_scores(folder, scored, identity, name, about(ncm, network or scorer) if name else None)
        # also what a killed run wrote and did not list
        written = [folder / "scores" / name / f"{test_set.name}.npz" for name, _ in shelf.values()]
        add_files(folder, [path.relative_to(folder).as_posix() for path in written if path.is_file()])
        if not test_set.is_calibration:
            done.append(test_set.name)
    return done


def score_under(
    scorer: Scorer,
    base_ncms: Sequence[str],
    test_set: SetToScore,
    *,
    n: int,
    seed: int = 0,
    members: Sequence[Path | str] = (),
    progress: Progress | None = None,
) -> dict[str, Vectors]:
    """Score vectors (N, n) by base NCM; a merged scorer takes its members' from their folders where they are stored."""
    if isinstance(scorer, NetworkScorer):
        scored = scorer.score_under(base_ncms, test_set.points, n=n, seed=seed, progress=progress)
        return {name: under.score_vectors for name, under in scored.items()}
    if not isinstance(scorer, MergedScorer):
        return {NO_NCM: scorer.score(test_set.points, n=n, seed=seed, progress=progress).score_vectors}
    parts = []
    for member in scorer.members:
        identity = scorer_hash(member)
        stored = on_shelves(members, test_set.name, (len(test_set), n), identity)
        if stored is None:
            parts.append(member.score(test_set.points, n=n, seed=seed, progress=progress).score_vectors)
        else:
            parts.append(stored.astype(np.float64))
    return {NO_NCM: scorer.merge(parts)}


def network_of(scorer: Scorer) -> Any:
    """The one network that draws and names classes: the scorer's own, or that of the only such member of a merged one."""
    members = scorer.members if isinstance(scorer, MergedScorer) else (scorer,)
    networks = [member for member in members if isinstance(member, NetworkScorer)]
    return networks[0] if len(networks) == 1 else None


def on_shelves(
    folders: Sequence[Path | str], name: str, shape: tuple[int, int], identity: str, scorer: str = ""
) -> NDArray[np.floating] | None:
    """A set's score vectors from the first of these folders that has them."""
    shelves = (stored_vectors(folder, name, shape, identity, scorer) for folder in folders)
    return next((vectors for vectors in shelves if vectors is not None), None)


def about(base_ncm: str, scorer: Scorer) -> About:
    """What is said of a scorer that lies beside a detector's own, on its network."""
    labels = isinstance(scorer, NetworkScorer) and bool(scorer.classes)
    return (
        About("SBP", labels=labels) if base_ncm == SBP else About(base_ncm, base_ncm=base_ncm, labels=labels)
    )


def plain_ncm(base_ncm: str, folder: Path) -> str:
    """The base NCM less familiarity."""
    plain = base_ncm.removesuffix("_and_familiarity")
    if plain == base_ncm or plain not in BASE_NCMS:
        raise CheckpointError(f"{folder} does not use familiarity: there is nothing to leave out.")
    return plain
