"""Every experiment by its name, and RESULTS.md written from them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from idecode_core.errors import SettingError
from paper.adversarial import adversarial
from paper.audio import audio
from paper.curves import false_detections, smoothed, versus_n
from paper.merged import merged
from paper.one_class import one_class
from paper.results import Section, write_section
from paper.rivals_table import leaderboard, rivals
from paper.tables import familiarity, fashion, sbp, svhn, table1, transform_sets

EXPERIMENTS: dict[str, Callable[[Path], Section]] = {
    "table1": table1,
    "auroc-vs-n": partial(versus_n, which="auroc"),
    "tnr-vs-n": partial(versus_n, which="tnr"),
    "false-detections": false_detections,
    "smoothed": smoothed,
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
RENAMED = {"fdr": "false-detections"}
"""Of earlier versions: FDR is the false discovery rate for most readers, which is another thing."""
NEEDS = {
    "transform-sets": ("cifar10-projective/scores", "cifar10-rotations/scores"),
    "familiarity": ("cifar10-rotations/scores/cross_entropy",),
    "sbp": ("cifar10-invariance/scores/sbp",),
    "rivals": ("cifar10-*/scores", "rivals/scores/*"),
    "one-class": ("one-class/*/scores",),
    "svhn": (),
    "fashion": ("fashion-rotations/scores",),
    "audio": ("esc50-*/scores",),
    "adversarial": ("adversarial/*/scores/*",),
}
"""Stored scores without which an experiment has nothing to show; for the others, those of any detector of CIFAR-10."""


def possible(name: str, root: Path) -> bool:
    """Whether the stored scores that an experiment reads are there."""
    return all(any(root.glob(f"{needed}/*.npz")) for needed in NEEDS.get(name, ("cifar10-*/scores",)))


def write_results(names: list[str], root: Path, results: Path) -> list[Section]:
    """Recompute the named experiments and write their sections; "all" is every one whose detectors are there."""
    chosen = [name for name in EXPERIMENTS if possible(name, root)] if names == ["all"] else names
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown and unknown[0] in RENAMED:
        raise SettingError(
            f"The experiment {unknown[0]} is called {RENAMED[unknown[0]]} now: ask for `reproduce {RENAMED[unknown[0]]}`."
        )
    if unknown:
        raise SettingError(
            f"No experiment is called {unknown[0]!r}; expected one of {', '.join(EXPERIMENTS)}, or all."
        )
    sections = []
    for name in chosen:
        sections.append(EXPERIMENTS[name](root))
        write_section(results, sections[-1], tuple(EXPERIMENTS))
    return sections
