"""Every experiment by its name, and RESULTS.md written from them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from idecode_core.errors import SettingError
from idecode_core.experiments.adversarial import adversarial
from idecode_core.experiments.audio import audio
from idecode_core.experiments.curves import versus_n
from idecode_core.experiments.false_detections import false_detections
from idecode_core.experiments.familiarity import familiarity
from idecode_core.experiments.leaderboard import leaderboard
from idecode_core.experiments.merged import merged
from idecode_core.experiments.one_class import one_class
from idecode_core.experiments.results import Section, write_section
from idecode_core.experiments.rivals import rivals
from idecode_core.experiments.softmax import sbp
from idecode_core.experiments.tables import fashion, svhn, table1, transform_sets

EXPERIMENTS: dict[str, Callable[[Path], Section]] = {
    "table1": table1,
    "auroc-vs-n": partial(versus_n, which="auroc"),
    "tnr-vs-n": partial(versus_n, which="tnr"),
    "fdr": false_detections,
    "transform-sets": transform_sets,
    "familiarity": familiarity,
    "merged": merged,
    "sbp": sbp,
    "rivals": rivals,
    "leaderboard": leaderboard,
    "one-class": one_class,
    "svhn": svhn,
    "fashion": fashion,
    "audio": audio,
    "adversarial": adversarial,
}
NEEDS = {
    "transform-sets": ("cifar10-projective", "cifar10-rotations"),
    "familiarity": ("cifar10-rotations/plain",),
    "sbp": ("cifar10-invariance",),
    "rivals": ("cifar10-*", "rivals"),
    "one-class": ("one-class",),
    "svhn": (),
    "fashion": ("fashion-rotations",),
    "audio": ("esc50-*",),
    "adversarial": ("adversarial",),
}
"""Detectors without which an experiment has nothing to show; for the others, any of CIFAR-10's."""


def possible(name: str, root: Path) -> bool:
    """Whether the stored scores that an experiment reads are there."""
    return all(any(root.glob(f"{needed}/scores/*.npz")) for needed in NEEDS.get(name, ("cifar10-*",)))


def write_results(names: list[str], root: Path, results: Path) -> list[Section]:
    """Recompute the named experiments and write their sections; "all" is every one whose detectors are there."""
    chosen = [name for name in EXPERIMENTS if possible(name, root)] if names == ["all"] else names
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown:
        raise SettingError(
            f"No experiment is called {unknown[0]!r}; expected one of {', '.join(EXPERIMENTS)}, or all."
        )
    sections = []
    for name in chosen:
        section = EXPERIMENTS[name](root)
        write_section(results, section, tuple(EXPERIMENTS))
        sections.append(section)
    return sections
