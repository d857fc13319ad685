"""A detector around the frozen network: features of the proper training set, a distance, a calibration.

What takes time is kept in the run's folder piece by piece, so a stopped run goes on where it was.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.errors import IdecodeError
from idecode_core.files import write_npz
from idecode_core.files.read import read_arrays
from idecode_core.files.shown import Report
from idecode_core.image.features import Preprocessing
from idecode_core.quality.metrics import auroc
from idecode_core.scorer import Scorer
from idecode_core.scorers.distances import Mahalanobis, Neighbours
from idecode_core.scorers.features import Features, FeatureScorer
from idecode_core.scorers.patches import Patches, Places, thinned
from idecode_core.training.choice import KNOWN, Fitted, Known, best, gained, learned
from idecode_core.training.parts import Parts
from idecode_core.training.plan import Plan, pretrained
from idecode_core.training.strangers import strange_pictures
from idecode_core.training.user_files import ListedFiles
from idecode_core.transforms import Nudges, SmallAffine, Windows

FIT_SEED = 1  # of the draws for fitting
PIECE = 32  # files whose results are stored together
DISTANCES: dict[str, type[FeatureScorer]] = {
    "mahalanobis": Mahalanobis,
    "neighbours": Neighbours,
    "patches": Patches,
    "places": Places,
}
MOST_JUDGED, MOST_FITTED, MOST_PLACED = 24, 100, 400
"""Pictures that judge between distances, pictures that these are fitted to for it, and that `places` is fitted to at all."""
GOOD = 0.7
"""What another distance than the usual one must have at least (AUROC): where pictures differ so much that none sees a small local
change, kinds of things are all that can be told."""
MOST_LEFT_OUT, FEWEST_TO_JUDGE = 8, 3
"""How many classes are left out in turn, and how many calibration files such a class must have."""


def piece_by_piece(
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
        answer = read_piece(stored, piece)
        if answer is None:
            answer = work(piece)
            write_npz(stored, {"found": answer, "contents": np.array(piece.contents)})
        done.append(answer)
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


def features_of(plan: Plan, device: torch.device, model: str = "") -> Features:
    """What the frozen network sees of g(x); for patches and places with windows, whose texture is x's own."""
    network, transforms = pretrained(), SmallAffine()
    if (local := model or plan.model) in ("patches", "places"):
        middle = Patches.blank(network.config)
        middle.load_state_dict(network.state_dict())
        network, transforms = middle, Windows() if local == "patches" else Nudges()
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


def distance(
    model: str, seen: Features, z: Tensor, y: Tensor, classes: tuple[str, ...] = ()
) -> FeatureScorer:
    """Fitted to features (N, draws, ..., d) of pictures of classes y (N,)."""
    if model == "patches" and z.ndim == 5:
        z = thinned(z, len(z) * z.shape[1], np.random.default_rng(FIT_SEED)).float()
    rows = z.flatten(0, 1) if model == "places" else z.flatten(0, -2)
    labels = y.repeat_interleave(len(rows) // len(y))
    return DISTANCES[model].fit(rows, labels, **vars(seen), classes=classes)


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
    usual = best({name: tried[name] for name in plan.tries}, good=GOOD) if plan.tries else plan.model
    taken = usual if known is None else learned(tried, usual)
    fitted = _fitted(plan, seen, parts, classes, run, report, taken)
    if known is None or parts.test is None:
        return replace(fitted, tried=tried)

    def other() -> Scorer:
        told = None if report is None else lambda _, done, total: report("measuring", done, total)
        return _fitted(plan, seen, parts, (), run / "measuring", told, usual).scorer

    return replace(fitted, tried=tried, gained=gained(fitted, usual, other, parts.test.samples, known))


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

    def encoded(files: ListedFiles, name: str, n: int) -> Tensor:
        def work(piece: ListedFiles) -> NDArray[Any]:
            z = seen.encode(piece, n=n, seed=FIT_SEED)
            if taken == "patches":
                z = thinned(z, views, np.random.default_rng(FIT_SEED))
            return (z.half() if taken == "places" else z).numpy()

        return torch.from_numpy(piece_by_piece(files, run / name, name, work, report)).float()

    files, y = parts.training.samples, torch.from_numpy(parts.training.y)
    if taken == "places":  # all places of a picture take room: some of the pictures, evenly, one draw of each
        some = np.linspace(0, len(files) - 1, min(len(files), MOST_PLACED)).round().astype(int)
        files, y = files.at(some), y[torch.from_numpy(some)]
    z = encoded(files, "fitting", 1 if taken == "places" else plan.fit_draws)
    scorer = distance(taken, seen, z, y, classes)
    if not classes or taken in ("patches", "places"):
        return Fitted(scorer, None, {}, taken)
    held_out, held_y = encoded(parts.calibration.samples, "naming classes", 1)[:, 0], parts.calibration.y
    named = scorer.nearest(held_out.to(seen.device)).cpu().numpy()
    left_out = {}
    counts = np.bincount(held_y, minlength=len(classes))
    for c in [int(c) for c in np.argsort(-counts) if counts[c] >= FEWEST_TO_JUDGE][:MOST_LEFT_OUT]:
        if len(classes) > 2 and counts[c] < len(held_y):
            without = distance(taken, seen, z[y != c], y[y != c], classes)
            scores = without.distances(held_out.to(seen.device)).cpu().numpy()
            left_out[classes[c]] = auroc(scores[held_y != c], scores[held_y == c])
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
    by_model: dict[str, dict[str, float]] = {}
    for done, model in enumerate(plan.candidates, start=1):
        features = seen if model == plan.model else features_of(plan, seen.device, model)
        z, y = features.encode(files.at(kept), n=1, seed=FIT_SEED), torch.from_numpy(classes[kept])
        scorer = distance(model, features, z, y)
        inside = scorer.score(pictures, n=1, seed=0).score_vectors[:, 0]
        by_model[model] = {
            kind: auroc(inside, scorer.score(strange, n=1, seed=0).score_vectors[:, 0])
            for kind, strange in changed.items()
        }
        if report is not None:
            report("trying", done, len(plan.candidates))
    return by_model
