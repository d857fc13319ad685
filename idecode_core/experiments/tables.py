"""Tables: methods side by side (Table 1), PT against RS (App. C.1.6), Fashion-MNIST, and SVHN as iD (App. C.1.3)."""

from collections.abc import Sequence
from pathlib import Path

from idecode_core.evaluation.methods import evaluate
from idecode_core.evaluation.paper import COMPARABLE, Reported, reported
from idecode_core.evaluation.side_by_side import Row, side_by_side
from idecode_core.experiments.results import Section
from idecode_core.folder.scores import ScoreSet
from idecode_core.folder.stored import Stored, has_scores, open_all, open_stored
from idecode_core.report.tables import beside_the_paper, fpr, interval, percent, table

N = 5
METHOD_TITLES = [
    f"{metric} {method}" for metric in ("TNR", "AUROC") for method in ("base score", "ICAD", f"n={N}")
]
SURE_TITLES = [f"95 % interval n={N}", f"FPR95 n={N}"]


def seeds(stored: Stored) -> str:
    """Where the numbers come from: points, draws, seeds and training time."""
    training = stored.training
    hours = f" Training: {training.hours:.1f} h on two CPU cores, seed {training.seed}." if training else ""
    return (
        f"`{stored.name}`: k = {stored.calibration.k:,} calibration points, {len(stored.id_set):,} iD test points, "
        f"draws with seed {stored.calibration.seed} keyed by content; runs are draws 1-20, 21-40, ... of each point.{hours}"
    )


def paper_number(number: Reported | None) -> str:
    return f"{number.mean:.1f} ± {number.spread:.1f}" if number else "–"


def method_rows(stored: Stored) -> list[Row]:
    """Every method on every OOD set of a detector, beside the paper's numbers where there are some."""
    return side_by_side(
        stored.calibration,
        stored.id_set,
        stored.ood_sets,
        N,
        "sum",
        stored.settings.dataset,
        stored.transforms,
    )


def method_table(rows: Sequence[Row]) -> str:
    """One line per OOD set: base score, ICAD and iDECODe, each with the paper's number in brackets; of iDECODe also the
    AUROC's interval and FPR at 95 % TPR."""
    cells: dict[str, list[str]] = {}
    for metric in ("tnr", "auroc"):
        for row in rows:
            ours, theirs = (row.tnr, row.paper_tnr) if metric == "tnr" else (row.auroc, row.paper_auroc)
            beside = f" ({theirs.mean:.1f})" if theirs else ""
            cells.setdefault(row.label, []).append(percent(ours) + beside)
    for row in rows:
        if row.method == "iDECODe":
            cells[row.label] += [interval(row), fpr(row)]
    titles = ["OOD set", *METHOD_TITLES, *SURE_TITLES]
    return table(titles, [[label, *values] for label, values in cells.items()])


def precision_table(found: Sequence[Stored]) -> str:
    """Per detector the AUROC's interval, then FPR at 95 % TPR, on every OOD set that all have."""
    rows = []
    for label, sets in shared_sets(found):
        cells = [label]
        for stored, ood_set in zip(found, sets, strict=True):
            evaluation = evaluate(stored.calibration, stored.id_set, ood_set, N)
            cells.append(f"{interval(evaluation)}, {fpr(evaluation)}")
        rows.append(cells)
    names = [stored.name.removeprefix("cifar10-") for stored in found]
    return table([f"OOD set at n={N}: AUROC's 95 % interval, FPR95", *names], rows)


def table1(root: Path | str = "checkpoints") -> Section:
    """Base score, ICAD and iDECODe with n=5 on every OOD set, for each detector of CIFAR-10."""
    parts = []
    for stored in open_all(root):
        rows = method_rows(stored)
        pairs = [
            (row.label, 100 * row.auroc.mean, row.paper_auroc.mean)
            for row in rows
            if row.method == "iDECODe" and row.paper_auroc
        ]
        gain = [
            row.label
            for row in rows
            if row.method == "iDECODe" and row.auroc.mean > _icad(rows, row.ood_set).auroc.mean
        ]
        parts.append(
            f"### {stored.name}\n\n{seeds(stored)}\n\n{method_table(rows)}\n\n"
            f"n=5 is above ICAD on {len(gain)} of {len(stored.ood_sets)} sets. {beside_the_paper(pairs, f'AUROC at n={N}')}"
        )
    note = "In brackets: the paper's number for the same transforms (Table 1; rotations: App. C.1.6)."
    return Section("table1", "Table 1: base score, ICAD and iDECODe", "\n\n".join([note, *parts]))


def _icad(rows: Sequence[Row], ood_set: str) -> Row:
    return next(row for row in rows if row.ood_set == ood_set and row.method == "ICAD")


def transform_sets(root: Path | str = "checkpoints") -> Section:
    """PT against RS at n = 1 and n = 5: which sets are better detected with which G."""
    found = [open_stored(Path(root) / name) for name in ("cifar10-projective", "cifar10-rotations")]
    rows, pairs = [], []
    for label, sets in shared_sets(found):
        cells = [label]
        for n, method in ((1, "ICAD"), (N, "iDECODe")):
            for stored, ood_set in zip(found, sets, strict=True):
                ours = evaluate(stored.calibration, stored.id_set, ood_set, n, method=method).auroc
                theirs = reported(
                    stored.settings.dataset, stored.transforms, ood_set.name, method, n, "auroc"
                )
                cells += [percent(ours), paper_number(theirs)]
                if theirs and n == N:
                    name = "PT" if stored.transforms == "projective" else "RS"
                    pairs.append((f"{label} with {name}", 100 * ours.mean, theirs.mean))
        rows.append(cells)
    titles = [f"{name} n={n}{who}" for n in (1, N) for name in ("PT", "RS") for who in ("", " (paper)")]
    sources = "\n\n".join(seeds(stored) for stored in found)
    body = (
        f"{sources}\n\n{table(['OOD set, AUROC', *titles], rows)}\n\n{precision_table(found)}\n\n"
        f"{beside_the_paper(pairs, f'AUROC at n={N}')}"
    )
    return Section("transform-sets", "Projective transforms (PT) against rotation ranges (RS)", body)


def shared_sets(found: Sequence[Stored]) -> list[tuple[str, list[ScoreSet]]]:
    """OOD sets that all detectors have scores of, in the order of the first."""
    by_name = [{ood_set.name: ood_set for ood_set in stored.ood_sets} for stored in found]
    return [
        (ood_set.label, [sets[ood_set.name] for sets in by_name])
        for ood_set in found[0].ood_sets
        if all(ood_set.name in sets for sets in by_name)
    ]


def fashion(root: Path | str = "checkpoints") -> Section:
    """The embedded detector: Fashion-MNIST as iD. The paper has nothing of the kind."""
    stored = open_stored(Path(root) / "fashion-rotations")
    note = "The small detector that comes with its data; the paper has no numbers for it."
    return Section(
        "fashion",
        "Fashion-MNIST as in-distribution",
        f"{note}\n\n{seeds(stored)}\n\n{method_table(method_rows(stored))}",
    )


def svhn(root: Path | str = "checkpoints") -> Section:
    """SVHN as iD: our numbers where the detector is there, else how to get them, beside the paper's."""
    folder = Path(root) / "svhn-projective"
    sets = ("cifar10", "lsunproxy", "tinyimagenet", "cifar100", "places")
    if has_scores(folder):
        stored = open_stored(folder)
        body = f"{seeds(stored)}\n\n{method_table(method_rows(stored))}"
    else:
        cells = [
            [COMPARABLE[name]]
            + [
                paper_number(reported("svhn", "projective", name, method, n, metric))
                for metric in ("tnr", "auroc")
                for method, n in (("base score", 1), ("ICAD", 1), ("iDECODe", N))
            ]
            for name in sets
        ]
        body = (
            "SVHN's training set is not part of this project's development data, so there are no numbers of ours. Where "
            "the data is:\n\n"
            "```\npython -m idecode_core data fetch svhn cifar10 cifar100\n"
            "torchrun --nproc_per_node=1 -m idecode_core train paper-svhn-projective --out checkpoints/svhn-projective\n"
            "python -m idecode_core score-sets checkpoints/svhn-projective\n"
            "python -m idecode_core reproduce svhn\n```\n\n"
            f"The paper's numbers (App. C.1.3):\n\n{table(['OOD set', *METHOD_TITLES], cells)}"
        )
    return Section("svhn", "SVHN as in-distribution", body)
