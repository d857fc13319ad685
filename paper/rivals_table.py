"""iDECODe and its rivals on the same test points: what a table of both needs of each. No torch.

`reproduce rivals`: other methods on our networks beside iDECODe, on the same points, each with a p-value (Table 3 and more).

`reproduce leaderboard`: our detectors in the layout of OpenOOD's table for CIFAR-10, with its published rows beside.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from idecode_core.folder.shelf import Cost, Scores, scorer_names
from idecode_core.folder.stored import RIVALS, Stored, open_all, open_rival
from idecode_core.plots.style import ID, OOD, THRESHOLD
from idecode_core.plots.svg import Line, chart
from idecode_core.quality import cost
from idecode_core.quality.cost import NS, front, read_costs, read_training_pflop
from idecode_core.quality.methods import Evaluation, evaluate_sets
from idecode_core.quality.strength import RateInBand, rate_in_band
from idecode_core.report.tables import beside_the_paper, interval, table
from paper.numbers import COMPARABLE, OPENOOD, SBP
from paper.results import Section

FEW, MANY = NS[1:]


@dataclass(frozen=True, eq=False)
class Contender:
    """One method with its number of draws."""

    title: str
    method: str
    """What it is called beside its network."""
    network: str
    """The detector whose network, or networks, it asks."""
    is_rival: bool
    stored: Stored | Scores
    n: int
    labels: bool
    """Whether it learned from labels."""
    imagenet: bool
    """Whether its network was trained on ImageNet before."""
    cost: Cost | None

    @property
    def learned_from(self) -> str:
        """Whether it learned from labels, for a column of that title."""
        return f"{'yes' if self.labels else 'no'}{', after ImageNet' if self.imagenet else ''}"

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """By OOD set."""
        stored = self.stored
        results = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, self.n)
        return dict(zip((ood_set.name for ood_set in stored.ood_sets), results, strict=True))

    def false_detections(self, epsilon: float) -> RateInBand:
        return rate_in_band(self.stored.calibration, self.stored.id_set.score_vectors, self.n, epsilon)


def learned_from_labels(scorer: Mapping[str, Any]) -> bool:
    """From a scorer's settings: a network that names classes has learned labels; of a merged one, any member."""
    return bool(scorer.get("classes")) or any(map(learned_from_labels, scorer.get("members", ())))


def contenders(root: Path | str) -> list[Contender]:
    """Every detector of CIFAR-10 with n = 1, 5 and 20, then every rival; those without labels first."""
    costs = read_costs(root)
    methods, detectors = [], open_all(root)
    after_imagenet = {stored.name for stored in detectors if stored.saw_imagenet}
    for stored in detectors:
        labels, imagenet = learned_from_labels(stored.settings.scorer), stored.saw_imagenet
        for n in NS:
            title, cost = (
                f"iDECODe {stored.name.removeprefix('cifar10-')}, n={n}",
                costs.get(stored.name, {}).get(n),
            )
            methods.append(Contender(title, title, stored.name, False, stored, n, labels, imagenet, cost))
    for rival in (open_rival(root, name) for name in scorer_names(Path(root) / RIVALS)):
        about = rival.about
        imagenet = about.network in after_imagenet
        methods.append(
            Contender(
                rival.title, about.title, about.network, True, rival, 1, about.labels, imagenet, about.cost
            )
        )
    return sorted(methods, key=lambda method: method.labels)  # stable


EPSILON = 0.05


def shared(methods: Sequence[Contender]) -> dict[str, str]:
    """Names and labels of the OOD sets that all have scores of, in the order of the tables."""
    names = set.intersection(*({ood_set.name for ood_set in c.stored.ood_sets} for c in methods))
    return {ood_set.name: ood_set.label for ood_set in methods[0].stored.ood_sets if ood_set.name in names}


Value = Callable[[Contender, str], float]


def in_percent(metric: str) -> Value:
    """A metric of a method on the OOD set of a name."""
    return lambda contender, name: 100 * float(getattr(contender.evaluations[name], metric).mean)


auroc, tnr, fpr = (in_percent(metric) for metric in ("auroc", "tnr", "fpr"))


def with_interval(contender: Contender, name: str) -> str:
    return f"{auroc(contender, name):.1f} {interval(contender.evaluations[name])}"


def grid(
    title: str,
    methods: Sequence[Contender],
    sets: dict[str, str],
    cell: Callable[[Contender, str], str],
    value: Value,
) -> str:
    """One line per method, one column per OOD set, and the mean over the sets."""
    rows = [
        [
            method.title,
            method.learned_from,
            *(cell(method, name) for name in sets),
            f"{np.mean([value(method, name) for name in sets]):.1f}",
        ]
        for method in methods
    ]
    return table([title, "labels", *sets.values(), "mean"], rows)


def mean_auroc(contender: Contender, sets: Iterable[str]) -> float:
    return float(np.mean([auroc(contender, name) for name in sets]))


def above(one: Contender, other: Contender, sets: Iterable[str]) -> str:
    """On how many of the sets the AUROC of the one is above the other's: "2 of 6"."""
    gains = [auroc(one, name) > auroc(other, name) for name in sets]
    return f"{sum(gains)} of {len(gains)}"


def like_with_like(methods: Sequence[Contender], sets: dict[str, str]) -> str:
    """A line for each detector that has rivals on its own network: it at n=1, 5 and 20, and the best of those rivals by its mean,
    each with its passes; and on how many sets that rival is above each."""
    rows = []
    for name in dict.fromkeys(c.network for c in methods if not c.is_rival):
        ours, rivals = (
            [c for c in methods if c.is_rival == rival and c.network == name] for rival in (False, True)
        )
        if rivals:
            best = max(rivals, key=lambda c: mean_auroc(c, sets))
            *means, highest = (f"{mean_auroc(c, sets):.1f} ({passes(c)})" for c in (*ours, best))
            rows.append([name, *means, f"{best.method}: {highest}", *(above(best, c, sets) for c in ours)])
    titles = [f"iDECODe, n={n}" for n in NS]
    return table(
        ["on the network of", *titles, "best rival on it", *(f"sets on which it is above n={n}" for n in NS)],
        rows,
    )


def passes(contender: Contender) -> str:
    if contender.cost is None:
        return "passes not measured"
    count = contender.cost.passes()
    return f"{count} pass{'' if count == '1' else 'es'}"


def frontier(methods: Sequence[Contender], sets: dict[str, str]) -> list[Contender]:
    """Those that no other beats in the mean AUROC at the same number of passes or fewer; the cheapest first."""
    return front([c for c in methods if c.cost], work, lambda c: mean_auroc(c, sets))


def work(contender: Contender) -> float:
    """Passes per picture, a backward pass counted as two forward ones."""
    assert contender.cost is not None
    return cost.work(contender.cost)


def passes_figure(measured: Sequence[Contender], sets: dict[str, str]) -> str:
    """Mean AUROC against passes per picture: methods of known cost as marks, and the front that none is above."""
    groups = {"iDECODe": (False, ID), "rivals": (True, OOD)}
    lines = [
        Line(
            name,
            [work(c) for c in measured if c.is_rival == rival],
            [mean_auroc(c, sets) for c in measured if c.is_rival == rival],
            colour,
            points=True,
        )
        for name, (rival, colour) in groups.items()
    ]
    steps: list[tuple[float, float]] = []
    for method in frontier(measured, sets):
        steps += [(work(method), y) for _, y in steps[-1:]] + [(work(method), mean_auroc(method, sets))]
    steps += [(max(map(work, measured)), y) for _, y in steps[-1:]]
    lines.append(
        Line("no method is above", [x for x, _ in steps], [y for _, y in steps], THRESHOLD, dash="4 3")
    )
    return chart(
        lines,
        title="AUROC against passes",
        x_title="passes per picture (a backward pass counts as two)",
        y_title=f"mean AUROC of {len(sets)} sets, percent",
        width=720,
    )


def verdict(methods: Sequence[Contender], sets: dict[str, str]) -> str:
    """What draws are worth on one and the same network, and who is on the front."""
    ours = {c.network: mean_auroc(c, sets) for c in methods if not c.is_rival and c.n == MANY}
    rivals = [(c, mean_auroc(c, sets)) for c in methods if c.is_rival and c.network in ours]
    ahead = [(c, mean) for c, mean in rivals if mean > ours[c.network]]
    names = "; ".join(f"{c.title} {mean:.1f} against {ours[c.network]:.1f}" for c, mean in ahead)
    best = ", ".join(f"{c.title} ({passes(c)}, {mean_auroc(c, sets):.1f})" for c in frontier(methods, sets))
    return (
        f"**On the same network**, {len(ahead)} of {len(rivals)} rivals have a higher mean AUROC than iDECODe at n={MANY}"
        f"{f': {names}' if names else ''}. **Per pass**, no method is above these: {best}."
    )


def one_by_one(methods: Sequence[Contender], sets: dict[str, str]) -> str:
    """Each detector of ours at n=20 against rivals on the classifier: on how many sets it is above each."""
    ours = [method for method in methods if not method.is_rival and method.n == MANY]
    rivals = [method for method in methods if method.is_rival]
    rows = [[rival.title, *(above(rival, method, sets) for method in ours)] for rival in rivals]
    return table(["sets on which the rival's AUROC is above", *(method.title for method in ours)], rows)


def cost_rows(methods: Sequence[Contender]) -> list[list[str]]:
    return [
        [
            method.title,
            method.learned_from,
            method.cost.passes() if method.cost else "–",
            f"{method.cost.seconds:.1f}" if method.cost else "–",
            str(method.false_detections(EPSILON)),
        ]
        for method in methods
    ]


def training_table(root: Path | str, methods: Sequence[Contender], sets: dict[str, str]) -> str:
    """What the training of each detector took, beside its AUROC; a recipe that several rest on counts once in the total."""
    took = read_training_pflop(root)
    rows = []
    for c in methods:
        if not c.is_rival and c.n == FEW and (recipes := took.get(c.network)):
            pflop = f"{sum(recipes.values()):.2f}"
            rows.append([c.network, " + ".join(recipes), pflop, f"{mean_auroc(c, sets):.1f}"])
    once = {recipe: pflop for recipes in took.values() for recipe, pflop in recipes.items()}
    if not rows:
        return ""
    return (
        "What training took, in 10^15 floating-point operations by torch's counter (a multiplication and an addition are two), that "
        "of networks that it started from included:\n\n"
        f"{table(['detector', 'trained by', 'PFLOP', f'mean AUROC, n={FEW}'], rows)}\n\n"
        f"All of these trainings together: {sum(once.values()):.2f} PFLOP.\n\n"
    )


def beside_table_3(methods: Sequence[Contender], sets: dict[str, str]) -> str:
    """SBP as the paper has it: on the frozen encoder."""
    frozen = next((method for method in methods if method.stored.name == "sbp-frozen"), None)
    if frozen is None:
        return ""
    pairs = []
    for name, label in sets.items():
        theirs = SBP.get(COMPARABLE.get(name.removesuffix("-test"), ""))
        if theirs:
            pairs.append((label, auroc(frozen, name), theirs[1]))
    accuracy = frozen.stored.about.accuracy  # type: ignore[union-attr]  # it is a rival
    return (
        f"**{frozen.title}** is SBP as in App. C.1.5: the encoder of `cifar10-projective` stays as it is, and a head of its "
        f"decoder's architecture (one linear layer) learns the labels. It is right on {100 * (accuracy or 0):.1f} % of the test "
        "points (the paper's: 91.5 %, from a ResNet-34 that was trained for 2,600 epochs): features that know which warp was "
        f"applied know little of classes. {beside_the_paper(pairs, 'SBP on the frozen encoder, AUROC')}"
    )


def imagenet_note(methods: Sequence[Contender]) -> str:
    """What a row that saw ImageNet must not be compared with."""
    seen = sorted({method.network for method in methods if method.imagenet})
    if not seen:
        return ""
    return (
        f"**Rows after ImageNet** ({', '.join(f'`{name}`' for name in seen)}, and rivals on its network) start from weights that were trained "
        "on 1.28 million labelled photographs; Tiny-ImageNet's pictures are among them, and much of what CIFAR-100 shows. All other rows, "
        "the published ones too, learned from CIFAR-10 alone: compare the two kinds to choose a detector, not to choose a method.\n\n"
    )


def rivals(root: Path | str = "checkpoints") -> Section:
    """Every rival on our networks and every detector of CIFAR-10, on all OOD sets that all have."""
    methods = contenders(root)
    sets = shared(methods)
    stored = methods[0].stored
    body = (
        f"{verdict(methods, sets)}\n\n{like_with_like(methods, sets)}\n\n"
        "Rivals use networks of ours, named in brackets, without transforms, at their published settings; nothing was chosen "
        f"here. All score the same {len(stored.id_set):,} iD test points and up to {max(map(len, stored.ood_sets)):,} per OOD set, and "
        "all are calibrated on points that their network's training held out (merged ones on a part of them), which gives the rivals the bound that they "
        "lack. In square brackets: 95 % interval of the AUROC (DeLong). docs/rivals.md has the formulas.\n\n"
        f"{grid('AUROC', methods, sets, with_interval, auroc)}\n\n"
        f"{one_by_one(methods, sets)}\n\n"
        f"{grid('FPR at 95 % TPR', methods, sets, *both(fpr))}\n\n"
        f"{grid('TNR at 90 % TPR', methods, sets, *both(tnr))}\n\n"
        "What a score costs, per picture: pictures that go through a network, and seconds in units of one forward pass of the "
        "classifier of `cifar10-invariance`, measured side by side on one machine. Beside it the false detection rate at "
        f"ε = {EPSILON:g} after calibration, with the band that holds it in 99 % of cases:\n\n"
        f"{table(['method', 'labels', 'passes', 'seconds', f'false detections, ε = {EPSILON:g}'], cost_rows(methods))}\n\n"
        f"{imagenet_note(methods)}{training_table(root, methods, sets)}{beside_table_3(methods, sets)}"
    )
    measured = [method for method in methods if method.cost]
    figures = {"auroc-vs-passes.svg": passes_figure(measured, sets)} if measured else {}
    return Section("rivals", "iDECODe beside its rivals (Table 3 and more)", body, figures)


def both(value: Value) -> tuple[Callable[[Contender, str], str], Value]:
    """A number and how it is written."""
    return lambda method, name: f"{value(method, name):.1f}", value


NEAR, FAR = ("cifar100-test", "tinyimagenet-test"), ("svhn-test", "places-test")
TITLES = ("method", "from", "near mean", "far mean", "CIFAR-100", "Tiny-ImageNet", "SVHN", "Places")


def line(title: str, origin: str, numbers: dict[str, float], near: float | None = None) -> list[str]:
    """One row: means over the near and the far sets, then each set; what is not known is a dash."""

    def mean(names: tuple[str, ...]) -> float | None:
        known = [numbers[name] for name in names if name in numbers]
        return float(np.mean(known)) if len(known) == len(names) else None

    values = [near if near is not None else mean(NEAR), mean(FAR)]
    values += [numbers.get(name) for name in (*NEAR, *FAR)]
    return [title, origin, *("–" if value is None else f"{value:.1f}" for value in values)]


def by_near_mean(rows: list[list[str]], *, largest_first: bool = True) -> list[list[str]]:
    place = TITLES.index("near mean")
    return sorted(
        rows, key=lambda row: -1.0 if row[place] == "–" else float(row[place]), reverse=largest_first
    )


def leaderboard(root: Path | str = "checkpoints") -> Section:
    """AUROC, then FPR at 95 % TPR, sorted by the near mean as OpenOOD does."""
    methods = contenders(root)
    sets = [name for name in (*NEAR, *FAR) if name in shared(methods)]

    def ours(value: Value) -> list[list[str]]:
        return [
            line(
                method.title,
                f"ours, {'with' if method.labels else 'without'} labels{', after ImageNet' if method.imagenet else ''}",
                {name: value(method, name) for name in sets},
            )
            for method in methods
        ]

    rows = ours(auroc) + [
        line(row.method, "published", {f"{name}-test": value for name, value in row.aurocs.items()}, row.near)
        for row in OPENOOD
    ]
    body = (
        "AUROC in percent, sorted by the near mean. Rows marked *published* are OpenOOD's (v1.5, ResNet-18, 100 epochs, three "
        "seeds), copied; all others are ours.\n\n"
        f"{table(TITLES, by_near_mean(rows))}\n\nFPR at 95 % TPR, the best first:\n\n"
        f"{table(TITLES, by_near_mean(ours(fpr), largest_first=False))}\n\n"
        f"{imagenet_note(methods)}**Not comparable:** our networks are compact ones, trained on two CPU cores on 42,750 points, since the rest is "
        "held out to calibrate and to choose the epoch; ours are scored on a random 2,000 iD and 1,000 OOD points per set, "
        "OpenOOD's on all; our Places is MiniPlaces at 32 px and theirs Places365; OpenOOD takes pictures that could pass for "
        "CIFAR-10 out of its OOD sets and ours keep them; its far mean also has MNIST and Textures, which are not here, so the far means "
        "of this table are over SVHN and Places alone, for published rows too where both are known."
    )
    return Section("leaderboard", "OpenOOD's table for CIFAR-10", body)
