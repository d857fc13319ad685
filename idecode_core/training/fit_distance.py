"""The frozen network for photographs: EfficientNet-Lite0 with ImageNet weights, in half precision.

A detector around the frozen network: features of the proper training set, a distance, a calibration.

What takes time is kept in the run's folder piece by piece, so a stopped run goes on where it was.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import IdecodeError
from idecode_core.files import write_json, write_npz
from idecode_core.files.read import read_arrays
from idecode_core.folder.detector import Writer, save_detector
from idecode_core.folder.record import LOG, TrainingRecord, kept_epoch, read_log
from idecode_core.image.features import Preprocessing
from idecode_core.models.pretrained import NAME
from idecode_core.quality.metrics import auroc, auroc_interval
from idecode_core.quality.user_data import N
from idecode_core.scorer import Scorer
from idecode_core.scorers.distances import Mahalanobis, Neighbours
from idecode_core.scorers.features import Features, FeatureScorer
from idecode_core.scorers.patches import Patches, thinned
from idecode_core.training.finish import machine, short
from idecode_core.training.parts import Parts
from idecode_core.training.plan import N_MAX, Plan, pretrained
from idecode_core.training.strangers import strange_pictures
from idecode_core.training.user_files import ListedFiles, Report
from idecode_core.transforms import SmallAffine, Windows

FIT_SEED = 1  # of the draws for fitting
PIECE = 32  # files whose results are stored together
DISTANCES: dict[str, type[FeatureScorer]] = {
    "mahalanobis": Mahalanobis,
    "neighbours": Neighbours,
    "patches": Patches,
}
MOST_JUDGED, MOST_FITTED = 24, 100
"""Pictures that judge between two distances, and pictures that these are fitted to for it."""
CLEARLY, GOOD = 0.05, 0.7
"""How much better at local changes than the usual distance another must be, and how good at least (AUROC)."""
KNOWN = "known outliers"
"""The kind of stranger that is not made: outliers that the user knows."""
FEWEST_TO_MEASURE = 10
"""Known outliers that say what was gained; fewer say too little."""
MOST_LEFT_OUT, FEWEST_TO_JUDGE = 8, 3
"""How many classes are left out in turn, and how many calibration files such a class must have."""


def in_pieces(
    files: ListedFiles,
    folder: Path,
    what: str,
    work: Callable[[ListedFiles], NDArray[Any]],
    report: Report | None,
) -> NDArray[Any]:
    """`work` on all files, in pieces that are stored with the hashes of their files, and not done again."""
    done: list[NDArray[Any]] = []
    for start in range(0, len(files), PIECE):
        piece = files[start : start + PIECE]
        stored = folder / f"{start:07d}.npz"
        found = read_piece(stored, piece)
        if found is None:
            found = work(piece)
            write_npz(stored, {"found": found, "contents": np.array(piece.contents)})
        done.append(found)
        if report is not None:
            report(what, start + len(piece), len(files))
    return np.concatenate(done)


def read_piece(path: Path, piece: ListedFiles) -> NDArray[Any] | None:
    """What is stored for these files; None where nothing is, or it was cut off, or belongs to other contents."""
    try:
        arrays = read_arrays(
            path, ("found", "contents"), what="a piece of a run", error=IdecodeError, hint=""
        )
    except IdecodeError:
        return None
    fits = arrays["contents"].tolist() == piece.contents and len(arrays["found"]) == len(piece)
    return arrays["found"] if fits else None


@dataclass(frozen=True, eq=False)
class Known:
    """Known outliers as a scorer takes them: some choose the model, the others measure what that gained."""

    choose: Sequence[Any]
    measure: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted scorer with what was found while fitting."""

    scorer: Scorer
    accuracy: float | None
    """Share of the calibration files whose class is named right."""
    left_out: dict[str, float]
    """Class -> AUROC of its calibration files against the others', by a scorer that does not know the class."""
    taken: str
    """Which model it is."""
    tried: dict[str, dict[str, float]] = field(default_factory=dict)
    """Where there was a choice: model -> kind of stranger, made for it or known -> AUROC."""
    gained: str = ""
    """What known outliers gained by choosing, in words."""

    def words(self) -> str:
        """What was taken, and why; "" where there was no choice."""
        return f"{choice_in_words(self.taken, self.tried)} {self.gained}".strip()


def choice_in_words(taken: str, tried: Mapping[str, Mapping[str, float]]) -> str:
    """One sentence.

    >>> choice_in_words("a", {"a": {"cuts": 0.9, "scratches": 0.8}, "b": {"cuts": 0.5, "scratches": 0.6}})
    'Taken: a, with AUROC 85.0 % on files kept from fitting against changed ones (cuts, scratches); b 55.0 %.'
    """
    if not tried:
        return ""
    against = f"changed ones ({', '.join(tried[taken])})"
    if KNOWN in tried[taken]:
        against, tried = KNOWN, {name: {KNOWN: found[KNOWN]} for name, found in tried.items()}
    means = {name: 100 * float(np.mean(list(found.values()))) for name, found in tried.items()}
    others = ", ".join(f"{name} {mean:.1f} %" for name, mean in means.items() if name != taken)
    return (
        f"Taken: {taken}, with AUROC {means[taken]:.1f} % on files kept from fitting against {against}; "
        f"{others}."
    )


def features_of(plan: Plan, device: torch.device, model: str = "") -> Features:
    """What the frozen network sees of g(x); for patches with windows, whose texture is x's own."""
    network, transforms = pretrained(), SmallAffine()
    if (model or plan.model) == "patches":
        middle = Patches.blank(network.config)
        middle.load_state_dict(network.state_dict())
        network, transforms = middle, Windows()
    return Features(
        model=network, transforms=transforms, preprocessing=Preprocessing(plan.size), device=device
    )


def seconds_per_variant(seen: Features) -> float:
    """How long one g(x) takes here, from one small batch after another that warms up."""
    size = seen.preprocessing.size
    x = torch.rand(8, 3, size, size, device=seen.device)
    times = []
    with torch.inference_mode():
        for _ in range(2):
            began = time.monotonic()
            seen.model(x)
            times.append((time.monotonic() - began) / len(x))
    return times[-1]


def fit(
    plan: Plan,
    seen: Features,
    parts: Parts[Any],
    classes: tuple[str, ...],
    run: Path,
    report: Report | None,
    known: Known | None = None,
) -> Fitted:
    """Features of the training files, a distance from them, and how well it tells the classes of the calibration files; these
    only measure, and choose nothing."""
    tried = judged(plan, seen, parts, report, known) if plan.candidates else {}
    usual = best({name: made_ones(tried[name]) for name in plan.tries}) if plan.tries else plan.model
    taken = usual if known is None else learned(tried, usual)
    found = _fitted(plan, seen, parts, classes, run, report, taken)
    if known is None or parts.test is None:
        return replace(found, tried=tried)

    def other() -> Scorer:
        told = None if report is None else lambda _, done, total: report("measuring", done, total)
        return _fitted(plan, seen, parts, (), run / "measuring", told, usual).scorer

    return replace(found, tried=tried, gained=gained(found, usual, other, parts.test.samples, known))


def _fitted(
    plan: Plan,
    seen: Features,
    parts: Parts[Any],
    classes: tuple[str, ...],
    run: Path,
    report: Report | None,
    taken: str,
) -> Fitted:
    if taken != plan.model:
        seen = features_of(plan, seen.device, taken)
    views = len(parts.training) * plan.fit_draws

    def encoded(part: Any, name: str, n: int) -> Tensor:
        def work(piece: ListedFiles) -> NDArray[Any]:
            z = seen.encode(piece, n=n, seed=FIT_SEED)
            return (thinned(z, views, np.random.default_rng(FIT_SEED)) if taken == "patches" else z).numpy()

        found = in_pieces(part.samples, run / name, name, work, report)
        return torch.from_numpy(found).float()

    z, y = encoded(parts.training, "fitting", plan.fit_draws), torch.from_numpy(parts.training.y)
    if taken == "patches":
        rows = z.flatten(0, 2)  # (patches, d)
        scorer: FeatureScorer = Patches.fit(
            rows, y.repeat_interleave(len(rows) // len(y)), **vars(seen), classes=classes
        )
        return Fitted(scorer, None, {}, taken)

    def fitted(chosen: Tensor) -> FeatureScorer:
        rows, labels = z[chosen].flatten(0, 1), y[chosen].repeat_interleave(z.shape[1])
        return DISTANCES[taken].fit(rows, labels, **vars(seen), classes=classes)

    scorer = fitted(torch.ones(len(y), dtype=torch.bool))
    if not classes:
        return Fitted(scorer, None, {}, taken)
    held_out, held_y = encoded(parts.calibration, "naming classes", 1)[:, 0], parts.calibration.y
    named = scorer.nearest(held_out.to(seen.device)).cpu().numpy()
    left_out = {}
    counts = np.bincount(held_y, minlength=len(classes))
    for c in [int(c) for c in np.argsort(-counts) if counts[c] >= FEWEST_TO_JUDGE][:MOST_LEFT_OUT]:
        if len(classes) > 2 and counts[c] < len(held_y):
            scores = fitted(y != c).distances(held_out.to(seen.device)).cpu().numpy()
            left_out[classes[c]] = share_above(scores[held_y == c], scores[held_y != c])
    return Fitted(scorer, float(np.mean(named == held_y)), left_out, taken)


def judged(
    plan: Plan, seen: Features, parts: Parts[Any], report: Report | None, known: Known | None = None
) -> dict[str, dict[str, float]]:
    """How well each distance tells pictures from the same ones with a small local change, and from outliers that may choose:
    fitted to one part of the proper training set, judged on another, so that no file is spent on it."""
    files, classes = parts.training.samples, parts.training.y
    order = np.random.default_rng([FIT_SEED, len(files)]).permutation(len(files))
    held, kept = np.split(order, [min(MOST_JUDGED, len(files) // 3)])
    kept = kept[:MOST_FITTED]
    pictures = [seen.preprocessing(picture) for picture in files.at(held)]
    changed = strange_pictures(pictures, generator=np.random.default_rng(FIT_SEED))
    if known is not None:
        changed |= {KNOWN: [seen.preprocessing(picture) for picture in known.choose]}
    found: dict[str, dict[str, float]] = {}
    for done, model in enumerate(plan.candidates, start=1):
        own = seen if model == plan.model else features_of(plan, seen.device, model)
        z, y = own.encode(files.at(kept), n=1, seed=FIT_SEED), torch.from_numpy(classes[kept])
        if model == "patches":
            z = thinned(z, len(kept), np.random.default_rng(FIT_SEED)).float().flatten(0, 1)  # (N, places, d)
        rows = z.flatten(0, 1)
        scorer = DISTANCES[model].fit(rows, y.repeat_interleave(len(rows) // len(y)), **vars(own))
        inside = scorer.score(pictures, n=1, seed=0).score_vectors[:, 0]
        found[model] = {
            kind: share_above(scorer.score(strange, n=1, seed=0).score_vectors[:, 0], inside)
            for kind, strange in changed.items()
        }
        if report is not None:
            report("trying", done, len(plan.candidates))
    return found


def best(tried: Mapping[str, Mapping[str, float]]) -> str:
    """The first one, which knows kinds of things, unless another is clearly better at local changes and good at them: where
    pictures differ so much that no distance sees a small change, kinds are all that can be told.

    >>> best({"mahalanobis": {"scratched": 0.6}, "patches": {"scratched": 0.65}})
    'mahalanobis'
    >>> best({"mahalanobis": {"scratched": 0.6}, "patches": {"scratched": 0.9}})
    'patches'
    """
    means = {name: float(np.mean(list(found.values()))) for name, found in tried.items()}
    first, *others = means
    other = max(others, key=means.__getitem__)
    return other if means[other] > max(means[first] + CLEARLY, GOOD) else first


def made_ones(found: Mapping[str, float]) -> dict[str, float]:
    """Without the known outliers."""
    return {kind: value for kind, value in found.items() if kind != KNOWN}


def learned(tried: Mapping[str, Mapping[str, float]], usual: str) -> str:
    """The model that tells known outliers best, if it does so clearly better than the one that is taken without them.

    >>> learned({"mahalanobis": {KNOWN: 0.6}, "neighbours": {KNOWN: 0.7}, "patches": {KNOWN: 0.65}}, "mahalanobis")
    'neighbours'
    """
    other = max(tried, key=lambda name: tried[name][KNOWN])
    return other if tried[other][KNOWN] > tried[usual][KNOWN] + CLEARLY else usual


def gained(taken: Fitted, usual: str, usual_scorer: Callable[[], Scorer], test: Any, known: Known) -> str:
    """What the choice by known outliers gained, on the test files and the outliers that did not choose: neither had a part in it."""
    if taken.taken == usual:
        return f"Nothing gained by the {len(known.choose)} known outliers that may choose: it is what is taken without them."
    count = len(known.measure)
    if count < FEWEST_TO_MEASURE:
        return (
            f"Without known outliers it would be {usual}; the {count} that did not choose are too few to measure what that "
            f"gained ({FEWEST_TO_MEASURE} at least)."
        )

    def measured(scorer: Scorer) -> str:
        inside, outside = (
            scorer.score(points, n=N, seed=0).score_vectors.sum(axis=1) for points in (test, known.measure)
        )
        low, high = auroc_interval([inside], [outside])
        return f"{100 * auroc(inside, outside):.1f} % ({100 * low:.1f} to {100 * high:.1f})"

    return (
        f"Gained by {len(known.choose)} known outliers: on your test files and {count} others, which had no part in the choice, AUROC "
        f"{measured(taken.scorer)}, where {usual}, taken without them, has {measured(usual_scorer())}; 95 % intervals."
    )


def share_above(strange: NDArray[np.floating[Any]], known: NDArray[np.floating[Any]]) -> float:
    """AUROC: P(a strange one scores above a known one), ties counted half."""
    above = strange[:, None] - known
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def make_own(
    plan: Plan,
    fitted: Callable[[], Fitted],
    parts: Parts[Any],
    run: Path,
    folder: Path,
    *,
    name: str,
    dataset: str,
    summary: str,
    device: torch.device,
    seed: int,
    settings: Mapping[str, Any],
    beside: Mapping[str, Writer],
    report: Report | None = None,
) -> Detector:
    """Fit, calibrate on the held-out files, save as a detector folder. A network that was trained before has left its log in
    the run."""
    began = time.monotonic()
    found = fitted()
    vectors = in_pieces(
        parts.calibration.samples,
        run / "calibrating",
        "calibrating",
        lambda piece: found.scorer.score(piece, n=N_MAX, seed=seed).score_vectors,
        report,
    )
    detector = Detector(name, found.scorer, Calibration(vectors, seed), summary)
    log = read_log(run) if (run / LOG).is_file() else []
    kept = kept_epoch(log) if log else None
    network = {"network": NAME} if plan.is_frozen else {}
    record = TrainingRecord(
        recipe=found.taken,
        dataset=dataset,
        task="features" if plan.is_frozen else "block_label" if log else "statistics",
        epochs=len(log),
        best_epoch=0 if kept is None else kept.epoch + 1,
        hours=round((time.monotonic() - began + sum(entry.seconds for entry in log)) / 3600, 3),
        machine=machine(device),
        training_accuracy=None if kept is None else short(kept.accuracy, 4),
        validation_loss=None,
        validation_accuracy=None,
        calibration_accuracy=short(found.accuracy, 4),
        test_accuracy=None,
        proper_training_points=len(parts.training),
        validation_points=len(parts.validation),
        calibration_points=len(parts.calibration),
        test_points=0 if parts.test is None else len(parts.test),
        seed=seed,
        settings={
            **settings, **asdict(plan), **network, "left_out": found.left_out, "tried": found.tried, "choice": found.words()
        },
    )  # fmt: skip
    split = {key: indices.astype(np.int32) for key, indices in vars(parts.split).items()}
    save_detector(
        detector,
        folder,
        beside={
            "training.json": lambda path: write_json(path, asdict(record)),
            "split.npz": lambda path: write_npz(path, split),
            **beside,
        },
    )
    return detector
