"""`reproduce rivals`: other methods on our networks beside iDECODe, on the same points, each with a p-value (Table 3 and more)."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from idecode_core.evaluation.contenders import Contender, contenders
from idecode_core.evaluation.paper import COMPARABLE, SBP
from idecode_core.experiments.results import Section
from idecode_core.report.tables import beside_the_paper, interval, table

EPSILON = 0.05


def shared(found: Sequence[Contender]) -> dict[str, str]:
    """Names and labels of the OOD sets that all have scores of, in the order of the tables."""
    names = set.intersection(*({one.name for one in c.stored.ood_sets} for c in found))
    return {one.name: one.label for one in found[0].stored.ood_sets if one.name in names}


def auroc(contender: Contender, name: str) -> float:
    return 100 * contender.evaluations[name].auroc.mean


def with_interval(contender: Contender, name: str) -> str:
    return f"{auroc(contender, name):.1f} {interval(contender.evaluations[name])}"


def grid(
    title: str,
    found: Sequence[Contender],
    sets: dict[str, str],
    cell: Callable[[Contender, str], str],
    value: Callable[[Contender, str], float],
) -> str:
    """One line per method, one column per OOD set, and the mean over the sets."""
    rows = [
        [
            one.title,
            "yes" if one.labels else "no",
            *(cell(one, name) for name in sets),
            f"{np.mean([value(one, name) for name in sets]):.1f}",
        ]
        for one in found
    ]
    return table([title, "labels", *sets.values(), "mean"], rows)


def beaten_on(group: Sequence[Contender], sets: dict[str, str]) -> list[str]:
    """Per OOD set with a rival above all of ours in this group: who, and by how much."""
    rivals, ours = [c for c in group if c.is_rival], [c for c in group if not c.is_rival]
    sentences = []
    for name, label in sets.items():
        best = max(ours, key=lambda one: auroc(one, name))
        above = sorted(
            (r for r in rivals if auroc(r, name) > auroc(best, name)), key=lambda r: -auroc(r, name)
        )
        if above:
            names = ", ".join(f"{r.title} {auroc(r, name):.1f}" for r in above)
            sentences.append(f"{label} ({names}; best of ours: {best.title}, {auroc(best, name):.1f})")
    return sentences


def verdict(found: Sequence[Contender], sets: dict[str, str]) -> str:
    """Which rivals are above all of iDECODe, set by set; then the same among those without labels."""
    beaten = beaten_on(found, sets)
    sentences = [
        f"**Rivals beat every iDECODe detector** (AUROC) on {'; '.join(beaten)}."
        if beaten
        else "**No rival is above the best iDECODe detector on any set** (AUROC)."
    ]
    label_free = [one for one in found if not one.labels]
    if {one.is_rival for one in label_free} == {True, False}:
        beaten = beaten_on(label_free, sets)
        sentences.append(
            f"Among methods without labels, rivals beat every iDECODe detector on {'; '.join(beaten)}."
            if beaten
            else "Among methods without labels, no rival is above the best iDECODe detector on any set."
        )
    return " ".join(sentences)


def one_by_one(found: Sequence[Contender], sets: dict[str, str]) -> str:
    """Each detector of ours at n=20 against rivals on the classifier: on how many sets it is above each."""
    ours = [one for one in found if not one.is_rival and one.n == 20]
    rivals = [one for one in found if one.is_rival]
    rows = [
        [
            rival.title,
            *(
                f"{sum(auroc(rival, name) > auroc(one, name) for name in sets)} of {len(sets)}"
                for one in ours
            ),
        ]
        for rival in rivals
    ]
    return table(["sets on which the rival's AUROC is above", *(one.title for one in ours)], rows)


def cost_rows(found: Sequence[Contender]) -> list[list[str]]:
    return [
        [
            one.title,
            "yes" if one.labels else "no",
            one.cost.passes() if one.cost else "–",
            f"{one.cost.seconds:.1f}" if one.cost else "–",
            str(one.false_detections(EPSILON)),
        ]
        for one in found
    ]


def beside_table_3(found: Sequence[Contender], sets: dict[str, str]) -> str:
    """SBP as the paper has it: on the frozen encoder."""
    frozen = next((one for one in found if one.stored.name == "sbp-frozen"), None)
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


def rivals(root: Path | str = "checkpoints") -> Section:
    """Every rival on our networks and every detector of CIFAR-10, on all OOD sets that all have."""
    found = contenders(root)
    sets = shared(found)
    stored = found[0].stored
    body = (
        f"{verdict(found, sets)}\n\n"
        "Rivals use networks of ours, named in brackets, without transforms, at their published settings; nothing was chosen "
        f"here. All score the same {len(stored.id_set):,} iD test points and up to {max(map(len, stored.ood_sets)):,} per OOD set, and "
        f"all are calibrated on the same {stored.calibration.k:,} held-out points (`cifar10-joint` on as many of its own), which gives the rivals the bound that they "
        "lack. In square brackets: 95 % interval of the AUROC (DeLong). docs/rivals.md has the formulas.\n\n"
        f"{grid('AUROC', found, sets, with_interval, auroc)}\n\n"
        f"{one_by_one(found, sets)}\n\n"
        f"{grid('FPR at 95 % TPR', found, sets, *both(fpr))}\n\n"
        f"{grid('TNR at 90 % TPR', found, sets, *both(tnr))}\n\n"
        "What a score costs, per picture: pictures that go through a network, and seconds in units of one forward pass of the "
        "classifier of `cifar10-invariance`, measured side by side on one machine. Beside it the false detection rate at "
        f"ε = {EPSILON:g} after calibration, with the band that holds it in 99 % of cases:\n\n"
        f"{table(['method', 'labels', 'passes', 'seconds', f'false detections, ε = {EPSILON:g}'], cost_rows(found))}\n\n"
        f"{beside_table_3(found, sets)}"
    )
    return Section("rivals", "iDECODe beside its rivals (Table 3 and more)", body)


Value = Callable[[Contender, str], float]


def both(value: Value) -> tuple[Callable[[Contender, str], str], Value]:
    """A number and how it is written."""
    return lambda one, name: f"{value(one, name):.1f}", value


def fpr(contender: Contender, name: str) -> float:
    return 100 * contender.evaluations[name].fpr.mean


def tnr(contender: Contender, name: str) -> float:
    return 100 * contender.evaluations[name].tnr.mean
