"""Every experiment by its name, RESULTS.md written from them, and docs/results.md: the results on one page that a reader finishes.

`python -m idecode_core reproduce` writes both from the stored scores; the words follow the numbers, and say where ours are worse.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from idecode_core.errors import SettingError
from idecode_core.folder.stored import Stored, open_all
from idecode_core.quality.methods import beside_softmax, evaluate, evaluate_sets
from idecode_core.quality.strength import WEAK_AUROC, rates_in_bands
from idecode_core.report.tables import table
from idecode_core.training.recipes import CIFAR10_KINDS
from paper.adversarial import adversarial
from paper.audio import DETECTORS as SOUNDS
from paper.audio import audio, mean_row, paper_means
from paper.curves import false_detections, smoothed, versus_n
from paper.merged import best_reported, merged
from paper.one_class import mixing_table, one_class, paper_mean
from paper.one_class_stored import find, over_runs
from paper.results import Section, write_section
from paper.rivals_table import contenders, leaderboard, learned_from_labels, mean_auroc, rivals, shared
from paper.tables import N, familiarity, fashion, sbp, shared_sets, svhn, table1, transform_sets

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


EPSILON = 0.05


def summary(root: Path | str = "checkpoints") -> str:
    """The page as Markdown."""
    root = Path(root)
    detectors = open_all(root)
    return (
        "\n\n".join(
            [
                "# Results on one page",
                "Every number here is computed from score vectors that lie in the repository, by `python -m idecode_core reproduce all`, in a minute and "
                "without a GPU; [all tables](../RESULTS.md) have intervals, more measures and the command of each. AUROC is in percent: 50 is guessing.",
                "## Does it keep its promise?",
                kept(detectors),
                "## How much does it find?",
                cifar10(detectors),
                "## What are more draws worth?",
                draws(detectors),
                "## One class",
                of_one_class(root),
                "## Sounds",
                sounds(root),
                "## What it does not do",
                "- **Somebody who knows the detector fools it.** PGD on victim and detector together brings AUROC far below 50 for every detector of ours, and on most "
                "attacks of the paper's Table 5 a rival made for attacks is better ([adversarial](adversarial.md)).\n"
                f"- **Simpler methods are close, or better.** {on_the_same_network(root)} ([rivals](rivals.md), and the table of passes in "
                "[all tables](../RESULTS.md)); what calibration adds to any of them is the bound.\n"
                "- **Recalibrating is not retraining.** A detector that is calibrated on another kind of files keeps its bound and finds next to nothing "
                "([your own data](your-own-data.md)).",
            ]
        )
        + "\n"
    )


def kept(detectors: list[Stored]) -> str:
    rows, outside = [], 0
    for stored in detectors:
        (rate,) = rates_in_bands(stored, N, (EPSILON,))
        outside += not rate.inside
        rows.append([f"`{stored.name}`", f"{stored.calibration.k:,}", str(rate)])
    verdict = "All lie inside." if not outside else f"**{outside} of {len(rows)} lie outside.**"
    return (
        f"Of test inputs that belong, at most {100 * EPSILON:.0f} % should be flagged at epsilon = {EPSILON:g}, on average over calibration sets. Flagged in "
        f"percent, and in brackets where the rate of one calibration set lies in 99 % of cases. {verdict}\n\n"
        + table(["detector", "k", f"flagged, n={N}"], rows)
    )


def cifar10(detectors: list[Stored]) -> str:
    rows, behind = [], dict[str, list[str]]()
    for label, sets in shared_sets(detectors):
        ours = [
            100 * evaluate(s.calibration, s.id_set, ood_set, N).auroc.mean
            for s, ood_set in zip(detectors, sets, strict=True)
        ]
        theirs = best_reported(sets[0].name)
        for stored, value in zip(detectors, ours, strict=True):
            if theirs is not None and round(value, 1) < round(theirs, 1):
                behind.setdefault(stored.name, []).append(label)
        rows.append([label, *(f"{value:.1f}" for value in ours), "–" if theirs is None else f"{theirs:.1f}"])
    worse = "; ".join(f"`{name}` on {', '.join(sets)}" for name, sets in behind.items())
    names = [f"`{stored.name.removeprefix('cifar10-')}`" for stored in detectors]
    without = [
        name
        for name, stored in zip(names, detectors, strict=True)
        if not learned_from_labels(stored.settings.scorer)
    ]
    after = [name for name, stored in zip(names, detectors, strict=True) if stored.saw_imagenet]
    imagenet = (
        f" **{', '.join(after)} began with weights made on ImageNet**, Tiny-ImageNet's pictures among them, and the others on this page did not: compare "
        "them to choose a detector, not to choose a method ([pretrained](pretrained.md))."
        if after
        else ""
    )
    return (
        f"CIFAR-10 belongs, AUROC at n = {N}. The paper's column is its best at n = {N}, with ImageNet and Places365 where we have Tiny-ImageNet and Places:\n\n"
        + table(["OOD set", *names, "paper"], rows)
        + f"\n\n**Below the paper's best**: {worse or 'none'}. {', '.join(without)} use no labels, like the paper's; the others do. All but "
        f"`projective` and `rotations` score in ways of ours. The paper's networks are larger and were trained for far longer than our hours on two CPU cores.{imagenet} `projective`'s base NCM is the logarithm of the "
        "paper's, tried by hand on SVHN: [all tables](../RESULTS.md) show both. [What differs](differences.md)."
    )


def draws(detectors: list[Stored]) -> str:
    rows = []
    for stored in detectors:
        means = []
        for n in (1, 5, 20):
            evaluations = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, n)
            means.append(100 * float(np.mean([evaluation.auroc.mean for evaluation in evaluations])))
        rows.append([f"`{stored.name}`", *(f"{mean:.1f}" for mean in means), f"{means[2] - means[0]:+.1f}"])
    return (
        "Mean AUROC over the OOD sets; each draw costs a pass through the network. Draws help most where one draw is a noisy question, and little where a "
        "network names class and turn at once:\n\n"
        + table(["detector", "n=1", "n=5", "n=20", "20 against 1"], rows)
    )


def on_the_same_network(root: Path) -> str:
    """On how many networks the best rival, by its mean, is above iDECODe at n=5."""
    methods = contenders(root)
    sets = shared(methods)
    ours = {c.network: mean_auroc(c, sets) for c in methods if not c.is_rival and c.n == N}
    best = dict[str, float]()
    for rival in methods:
        if rival.is_rival and rival.network in ours:
            best[rival.network] = max(best.get(rival.network, 0.0), mean_auroc(rival, sets))
    above = [f"`{name.removeprefix('cifar10-')}`" for name in best if best[name] > ours[name]]
    named = f": {', '.join(above)}" if above else ""
    return (
        f"On one and the same network the best rival, which needs no draws, has a higher mean AUROC than iDECODe at n = {N} for {len(above)} of {len(best)} "
        f"detectors{named}"
    )


def of_one_class(root: Path) -> str:
    classes = find(root, "cifar10", dict(enumerate(CIFAR10_KINDS)))
    mean = 100 * float(np.mean([over_runs(known.single, N).mean for known in classes]))
    _, gain = mixing_table(classes)
    return (
        f"One class of CIFAR-10 is known, the others are strange: {mean:.1f} in the mean of {len(classes)} classes at n = {N}, where the paper prints {paper_mean(classes):.1f}. **The two "
        f"cannot be compared**: the released code averages scores of four different pictures, and doing the same with our scores adds {gain:.1f} points "
        "without anything being detected better ([one-class](one-class.md#mixing-pictures))."
    )


def sounds(root: Path) -> str:
    mean = mean_row([beside_softmax(stored) for stored in open_all(root, SOUNDS)])
    paper = paper_means()
    weak = (
        " **That is weak**: useful for sorting, not for trusting one verdict."
        if mean.twenty.mean < WEAK_AUROC
        else ""
    )
    return (
        f"Each category of ESC-50 in turn: {100 * mean.icad.mean:.1f} with one draw, {100 * mean.twenty.mean:.1f} with twenty, and {100 * mean.sbp.mean:.1f} for the "
        f"softmax baseline. The paper has {paper[2]:.1f}, {paper[4]:.1f} and {paper[0]:.1f} on sets of its own; ours also use features that a network learned from music, the paper's do not.{weak} The fold "
        "that calibrates was also looked at when settings were chosen ([what helped](audio-findings.md))."
    )
