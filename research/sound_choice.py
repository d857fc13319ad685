"""Choices behind detectors of a user's own recordings, on classes of ESC-50 (folds 1 to 4) that the kept-back numbers do not use.

    python -m research.sound_choice              # which statistics and which distance; a CPU-minute
    python -m research.sound_choice FOLDER       # WAV folders for `train --audio`: four groups to develop on with `devood`, and
                                                 # `machines` with music, voices, dogs and sirens, kept back for the end

docs/audio-findings.md reads both.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import soundfile
import torch
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf

from idecode_core.audio.features import LogMel
from idecode_core.audio.sets import SoundSet, load_sounds
from idecode_core.quality.metrics import auroc

GROUPS = {
    "nature": (10, 11, 16, 13),
    "clicks": (30, 31, 32, 34),
    "body": (22, 25, 27, 23),
    "farm": (2, 3, 8, 6),
    "water": (17, 18, 12, 15),
    "birds": (1, 9, 14, 5),
}
FURTHER = (4, 7, 19, 21, 24, 28, 29, 33, 38, 39, 48)
KEPT_BACK = {
    "machines": (35, 36, 41, 44),
    "music": (46,),
    "voices": (20, 26),
    "dogs": (0,),
    "sirens": (42,),
}
TO_FIT, OUTSIDE = 0.55, 200
Floats = NDArray[np.float64]


def described(decibels: Floats, which: str) -> Floats:
    """Log-mel spectrograms (N, bands, frames) -> statistics over time (N, d): mean, spread, differences, quantiles."""
    parts = {
        "m": lambda: [decibels.mean(axis=2)],
        "s": lambda: [decibels.std(axis=2)],
        "d": lambda: [np.diff(decibels, axis=2).std(axis=2)],
        "q": lambda: list(np.quantile(decibels, (0.1, 0.5, 0.9), axis=2)),
    }
    return np.concatenate([part for letter in which for part in parts[letter]()], axis=1)


def neighbour(known: Floats, new: Floats, k: int) -> Floats:
    return np.sort(np.sqrt(((new[:, None] - known) ** 2).sum(axis=2)), axis=1)[:, k - 1]


def mahalanobis(known: Floats, y: NDArray[np.int64], new: Floats) -> Floats:
    """From the closest class, one shrunk covariance for all."""
    means = {c: known[y == c].mean(axis=0) for c in np.unique(y)}
    covariance, _ = ledoit_wolf(known - np.stack([means[c] for c in y]), assume_centered=True)
    inverse = np.linalg.inv(covariance)
    return np.min([np.einsum("ij,jk,ik->i", new - m, inverse, new - m) for m in means.values()], axis=0)


def statistics_and_distances(sounds: SoundSet) -> None:
    features = LogMel(sample_rate=16_000)
    decibels = np.stack([features.decibels(clip.at(16_000).samples).numpy() for clip in sounds.clips])
    generator, y = np.random.default_rng(0), sounds.y
    development = [*sum(GROUPS.values(), ()), *FURTHER]
    by_score: dict[tuple[str, str], list[float]] = {}
    for classes in GROUPS.values():
        inside = np.flatnonzero(np.isin(y, classes))
        outside = np.flatnonzero(np.isin(y, [c for c in development if c not in classes]))
        outside = generator.choice(outside, OUTSIDE, replace=False)
        order = np.random.default_rng(0).permutation(inside)
        fitted, test = np.split(order, [round(TO_FIT * len(order))])
        for which in ("ms", "msd", "msdq"):
            x = described(decibels[np.concatenate([fitted, test, outside])].astype(float), which)
            known = x[: len(fitted)]
            z = (x - known.mean(axis=0)) / (known.std(axis=0) + 1e-6)
            known, new = z[: len(fitted)], z[len(fitted) :]
            scores = {f"neighbour {k}": neighbour(known, new, k) for k in (1, 2, 5)}
            scores["Mahalanobis"] = mahalanobis(known, np.zeros(len(fitted), int), new)
            scores["Mahalanobis, with classes"] = mahalanobis(known, y[fitted], new)
            for name, each in scores.items():
                by_score.setdefault((which, name), []).append(auroc(each[: len(test)], each[len(test) :]))
    for (which, name), values in by_score.items():
        print(
            f"{which:5s} {name:26s} {100 * np.mean(values):.1f}  "
            + " ".join(f"{100 * v:.1f}" for v in values)
        )


def write_folders(sounds: SoundSet, root: Path) -> None:
    """Classes of a group in subfolders."""
    groups = {name: GROUPS[name] for name in ("nature", "clicks", "body", "farm")} | KEPT_BACK

    def write(clips: Iterable[int], folder: Path, *, by_class: bool) -> None:
        for i in clips:
            place = folder / sounds.classes[sounds.y[i]] if by_class else folder
            place.mkdir(parents=True, exist_ok=True)
            soundfile.write(place / f"{i}.wav", sounds.clips[i].samples, sounds.clips[i].sample_rate)

    for name, classes in groups.items():
        write(np.flatnonzero(np.isin(sounds.y, classes)), root / name, by_class=len(classes) == 4)
    others = [*GROUPS["birds"], *GROUPS["water"], *FURTHER]
    outside = np.flatnonzero(np.isin(sounds.y, others))
    write(np.random.default_rng(0).choice(outside, 100, replace=False), root / "devood", by_class=False)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        write_folders(load_sounds("esc50-train"), Path(sys.argv[1]))
    else:
        statistics_and_distances(load_sounds("esc50-train"))
