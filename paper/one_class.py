"""`reproduce one-class`: one class against the others, iDECODe beside its rivals, from stored scores (Table 2)."""

from pathlib import Path

import numpy as np

from idecode_core.errors import CheckpointError
from idecode_core.folder.stored import ONE_CLASS
from idecode_core.quality.methods import Metric
from idecode_core.report.tables import percent, table
from idecode_core.training.recipes import CIFAR10_KINDS, CIFAR100_KINDS
from paper.one_class_stored import (
    EPSILON,
    IDECODE,
    OURS,
    RIVALS,
    KnownClass,
    Method,
    N,
    averaged,
    draws,
    find,
    mixed,
    over_runs,
    rate,
)
from paper.results import Section

TARGET = 86.0


def methods_of(classes: list[KnownClass]) -> list[Method]:
    """Those that were run, in the order of the tables; ours last."""
    run = {method for known in classes for method in known.methods}
    order = [*RIVALS.values(), IDECODE]
    return sorted(run, key=lambda method: (order.index(method[0]), method[1]))


def row_title(method: Method) -> str:
    name, budget = method
    longer = f", {budget} times the steps" if budget > 1 else ""
    return (f"{IDECODE} n={N}" if name == IDECODE else name) + longer


def paper_mean(classes: list[KnownClass], method: str = f"{IDECODE} n={N}") -> float:
    return float(np.mean([float(known.paper(method)) for known in classes]))


def idecode_table(classes: list[KnownClass]) -> str:
    rows, columns = [], list[list[float]]()
    for known in classes:
        metrics = [over_runs(known.single, n) for n in (1, N, 20)]
        metrics += [over_runs(known.averaged, n) for n in (1, N)]
        columns.append([metric.mean for metric in metrics])
        rows.append([known.kind, *map(percent, metrics), known.paper("ICAD"), known.paper("iDECODe n=5")])
    means = [f"**{100 * mean:.1f}**" for mean in np.mean(columns, axis=0)]
    theirs = [f"{paper_mean(classes, method):.1f}" for method in ("ICAD", "iDECODe n=5")]
    rows.append(["**mean**", *means, *theirs])
    titles = ["known class, AUROC", "ICAD (n=1)", "n=5", "n=20", "all ranges, n=1", "all ranges, n=5"]
    return table([*titles, "paper: ICAD", "paper: n=5"], rows)


def rivals_table(classes: list[KnownClass]) -> str:
    """Ours, and behind a slash the paper's number; iDECODe as Algorithm 1 has it, and as the released code."""
    all_ranges = [Metric.of([over_runs(averaged(each), N).mean for each in known.wide]) for known in classes]
    lines = [(row_title(m), m[0], [known.auroc(m) for known in classes]) for m in methods_of(classes)]
    lines.append((f"{IDECODE}, all ranges, n={N}", IDECODE, list(all_ranges)))
    rows = []
    for title, name, metrics in lines:
        printed = [known.paper(f"{name} n={N}" if name == IDECODE else name) for known in classes]
        cells = ["–" if m is None else f"{percent(m)} / {p}" for m, p in zip(metrics, printed, strict=True)]
        means = [metric.mean for metric in metrics if metric]
        rows.append([title, *cells, f"{100 * np.mean(means):.1f}" if len(means) == len(metrics) else "–"])
    return table(["AUROC, ours / the paper's", *(known.kind for known in classes), "mean of ours"], rows)


def differences(classes: list[KnownClass]) -> str:
    """What "±" is, and by how much rivals are better where they and iDECODe were trained several times."""
    counts = {len(runs) for known in classes for runs in known.methods.values()} - {1}
    if not counts:
        return "One training of each."
    rows = []
    for name in RIVALS.values():
        pairs = [(known.kind, known.auroc((name, 1)), known.auroc(OURS)) for known in classes]
        gains = [
            f"{kind} {100 * (theirs.mean - ours.mean):+.1f} ± {100 * np.hypot(error(theirs), error(ours)):.1f}"
            for kind, theirs, ours in pairs
            if theirs and ours and min(len(theirs.values), len(ours.values)) > 1
        ]
        rows += [f"{name} on {', '.join(gains)}"] if gains else []
    return (
        f'Where "±" stands, it is the standard deviation over {" or ".join(map(str, sorted(counts)))} trainings on the same '
        "pictures, each with a seed of its own; elsewhere there was one training."
        + f" AUROC less iDECODe's at n={N}, and the standard error of that: {'; '.join(rows)}."
        * bool(rows)
    )


def error(metric: Metric) -> float:
    """The standard error of a mean over trainings."""
    return float(metric.spread / len(metric.values) ** 0.5)


def mixing_table(classes: list[KnownClass]) -> tuple[str, float]:
    """AUROC of the same base scores, right and wrong, and by how much the wrong ones gain in the mean at n=5."""
    rows, gains = [], []
    for known in classes:
        wrong = {part: mixed(each) for part, each in known.all_ranges.items()}
        values = [over_runs(scores, n).mean for n in (1, N) for scores in (known.averaged, wrong)]
        rows.append([known.kind, *(f"{100 * value:.1f}" for value in values)])
        gains.append(values)
    mean = np.mean(gains, axis=0)
    rows.append(["**mean**", *(f"**{100 * value:.1f}**" for value in mean)])
    titles = ["AUROC", "n=1, per picture", "n=1, mixed", "n=5, per picture", "n=5, mixed"]
    return table(titles, rows), float(100 * (mean[3] - mean[2]))


def rates_table(classes: list[KnownClass]) -> tuple[str, str]:
    """False detection rates of every calibrated method on its own class, of first trainings, and a sentence on all trainings."""
    rows, inside = [], list[bool]()
    for method in (OURS, *(method for method in methods_of(classes) if method != OURS)):
        by_class = [[rate(run, draws(run)) for run in known.methods.get(method, [])] for known in classes]
        inside += [each.inside for rates in by_class for each in rates]
        rows.append([row_title(method), *(str(rates[0]) if rates else "–" for rates in by_class)])
    outside = len(inside) - sum(inside)
    sentence = (
        f"All {len(inside)} rates lie inside of their bands"
        if not outside
        else f"{outside} of {len(inside)} rates lie outside of their 99 % bands; about {0.01 * len(inside):.1f} would by chance"
    )
    shown = sum(cell != "–" for _, *cells in rows for cell in cells)
    sentence += (
        "."
        if shown == len(inside)
        else ", those of further trainings, which the table leaves out, among them."
    )
    return table(["flagged in %, [band]", *(known.kind for known in classes)], rows), sentence


def above_ours(name: str, classes: list[KnownClass]) -> str:
    """On how many classes, of those that it was run on, a rival is better, and both means over these; "" where on none."""
    both = [(known.auroc((name, 1)), known.auroc(OURS)) for known in classes]
    pairs = [(theirs.mean, ours.mean) for theirs, ours in both if theirs and ours]
    wins = sum(theirs > ours for theirs, ours in pairs)
    if not wins:
        return ""
    theirs, ours = 100 * np.mean(pairs, axis=0)
    return f"{name} on {wins} of {len(pairs)} classes (mean {theirs:.1f} against {ours:.1f})"


def verdict(classes: list[KnownClass]) -> str:
    """The first sentences: where rivals are better, and whether the targets were reached."""
    better = [beaten for method in RIVALS.values() if (beaten := above_ours(method, classes))]
    beaten = (
        f"**With the same network and the same steps these beat iDECODe (n=5):** {'; '.join(better)}."
        if better
        else "No rival that was run beats iDECODe (n=5) with the same network and the same steps."
        if any(known.has_rivals for known in classes)
        else "No rival was run."
    )
    run = {name for name, _ in methods_of(classes)}
    if missing := [name for name in RIVALS.values() if name not in run]:
        beaten += f" **Not run here** (they wait for `python -m idecode_core paper one-class`): {', '.join(missing)}."
    five, single = ([over_runs(known.single, n).mean for known in classes] for n in (N, 1))
    above, mean = sum(a > b for a, b in zip(five, single, strict=True)), 100 * float(np.mean(five))
    reached = "reaches" if mean >= TARGET else "**misses**"
    return (
        f"{beaten} n=5 is above ICAD on {above} of {len(classes)} classes. The mean of iDECODe at n=5, scored per picture, is "
        f"{mean:.1f}; it {reached} our target of {TARGET:.0f}. The paper trained a WRN-40-2 for 200 epochs; ours is a "
        "narrow network that sees pictures at 24 pixels and was trained for minutes."
    )


def one_class(root: Path | str = "checkpoints") -> Section:
    root = Path(root)
    classes = find(root, "cifar10", dict(enumerate(CIFAR10_KINDS)))
    if not classes:
        raise CheckpointError(
            f"{root / ONE_CLASS} has no scores of iDECODe: expected some of one class of CIFAR-10. Make them with `python -m "
            "idecode_core paper one-class --classes all` (slow)."
        )
    superclasses = find(root, "cifar100", CIFAR100_KINDS)
    compared = [known for known in classes if known.has_rivals]
    mixing, gain = mixing_table(classes)
    rates, sentence = rates_table(classes)
    first = classes[0].single
    body = [
        verdict(classes),
        f"Each class of CIFAR-10 in turn; k = {len(first['calibration'])}, about {len(first['known'])} test pictures of the "
        f"class against {len(first['strange'])} of the other nine, chosen by a fixed seed, so an AUROC has a sampling error of "
        'about one point. "±" is the standard deviation over runs of n draws (20 runs for n=1, 4 for n=5). Columns "all '
        'ranges": a draw shows all four ranges, as the released code does, and so costs four passes. '
        "[docs/one-class.md](docs/one-class.md) says how everything was trained and what was chosen.",
        idecode_table(classes),
    ]
    if compared:
        body += [
            "Rivals: the same training pictures, backbone, optimiser, gradient steps and pictures per step. "
            f"{differences(compared)} "
            "This is a comparison at a small budget, which suits easy questions such as four turns and is far below what the "
            "authors of GM, GOAD, CSI and DeepSVDD spend: it does not say what these methods can reach. Behind the slash stands "
            "the paper's number, quoted there from other papers and networks.",
            rivals_table(compared),
        ]
    if superclasses:
        body += [
            "Superclasses of CIFAR-100, half as many training pictures and so half as many steps:",
            idecode_table(superclasses),
        ]
    body += [
        f"**What mixing pictures does.** The released code reads its list of scores in the wrong order, so that what it takes "
        f"for one picture is the mean of four. With our own networks and the same base scores this adds {gain:.1f} points at "
        f"n=5, where the paper prints a mean of {paper_mean(classes):.1f}: the number then "
        "says how well groups of four pictures are told apart, not pictures.",
        mixing,
        f"False detection rate at ε = {EPSILON:g} on the class's own test pictures, beside the band that holds it in 99 % of "
        f"cases; the rivals have no bound of their own, ours comes from calibration. {sentence}",
        rates,
    ]
    return Section("one-class", "One-class detection, beside its rivals", "\n\n".join(body))
