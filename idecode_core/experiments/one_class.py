"""`reproduce one-class`: one class against the others, iDECODe beside its rivals, from stored scores (Table 2).

`python -m idecode_core one-class` makes the scores; they lie in `<root>/one-class/scores/<set>--<method>.npz`, with the
parts calibration, known (test points of the class) and strange (test points of the others).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import CheckpointError
from idecode_core.evaluation.methods import Metric
from idecode_core.evaluation.metrics import auroc
from idecode_core.evaluation.one_class_rivals import FOLDER, PARTS, read_one_class, score_path
from idecode_core.evaluation.one_class_rivals import TITLES as RIVALS
from idecode_core.evaluation.paper_one_class import reported_one_class
from idecode_core.evaluation.rates import RateInBand, rate_in_band
from idecode_core.experiments.results import Section
from idecode_core.report.tables import percent, table
from idecode_core.training.recipes import CIFAR10_KINDS, CIFAR100_KINDS

CIFAR10 = tuple(f"cifar10-{kind}" for kind in CIFAR10_KINDS)
CIFAR100 = {number: f"cifar100-{kind}" for number, kind in CIFAR100_KINDS.items()}
IDECODE = "idecode"
EPSILON, N, TARGET = 0.05, 5, 86.0
Vectors = NDArray[np.float64]
Scores = Mapping[str, Vectors]
"""By part: score vectors (N, n)."""


def read_parts(root: Path, name: str, method: str, suffix: str = "") -> Scores | None:
    """What is stored of a method on a set; None where it was not run."""
    path = score_path(root, name, method)
    if not path.exists():
        return None
    names = {part: f"{part}{suffix}" for part in PARTS}
    arrays = read_one_class(path, tuple(names.values()))
    return {part: arrays[stored].astype(np.float64) for part, stored in names.items()}


def over_runs(scores: Scores, n: int) -> Metric:
    """AUROC of the sum of n draws, for each run of n draws that the stored ones make."""
    known, strange = scores["known"], scores["strange"]
    starts = range(0, known.shape[1] - n + 1, n)
    return Metric.of(
        [auroc(known[:, s : s + n].sum(axis=1), strange[:, s : s + n].sum(axis=1)) for s in starts]
    )


def rate(scores: Scores, n: int) -> RateInBand:
    """The share of the class's own test points that is flagged at EPSILON, first run, beside its band."""
    return rate_in_band(Calibration(scores["calibration"]), scores["known"][:, :n], n, EPSILON)


def mixed(each: Vectors) -> Vectors:
    """What the released program takes for pictures' scores: base scores (N, n, 4) -> (N, n).

    It has the four turns of all pictures one turn after the other, and reads the list as if each picture's four came
    together. So a "picture's score" is the mean of four neighbours in one turn (facts about the code in docs/one-class.md).
    """
    return np.stack(
        [each[:, draw].T.reshape(-1, each.shape[2]).mean(axis=1) for draw in range(each.shape[1])], axis=1
    )


@dataclass(frozen=True, eq=False)
class Found:
    """iDECODe on one set: one range per draw (N, 20), and all four (N, 5, 4), which are averaged per draw."""

    number: int
    name: str
    one: Scores
    all: Scores

    @property
    def averaged(self) -> Scores:
        return {part: each.mean(axis=2) for part, each in self.all.items()}

    @property
    def dataset(self) -> str:
        return self.name.split("-")[0]

    @property
    def kind(self) -> str:
        return self.name.split("-")[1]

    def paper(self, method: str) -> str:
        theirs = reported_one_class(self.dataset, self.number, method)
        return "–" if theirs is None else f"{theirs:.1f}"


def find(root: Path, names: Mapping[int, str]) -> list[Found]:
    found = []
    for number, name in names.items():
        one, each = (read_parts(root, name, IDECODE, suffix) for suffix in ("_one", "_all"))
        if one is not None and each is not None:
            found.append(Found(number, name, one, each))
    return found


def idecode_table(found: list[Found]) -> str:
    rows, columns = [], list[list[float]]()
    for one in found:
        metrics = [over_runs(one.one, n) for n in (1, N, 20)] + [over_runs(one.averaged, n) for n in (1, N)]
        columns.append([metric.mean for metric in metrics])
        rows.append([one.kind, *map(percent, metrics), one.paper("ICAD"), one.paper("iDECODe n=5")])
    means = [f"**{100 * mean:.1f}**" for mean in np.mean(columns, axis=0)]
    theirs = [
        f"{np.mean([float(one.paper(method)) for one in found]):.1f}" for method in ("ICAD", "iDECODe n=5")
    ]
    rows.append(["**mean**", *means, *theirs])
    titles = ["known class, AUROC", "ICAD (n=1)", "n=5", "n=20", "all ranges, n=1", "all ranges, n=5"]
    return table([*titles, "paper: ICAD", "paper: n=5"], rows)


def rival_aurocs(root: Path, one: Found) -> dict[str, float]:
    """By method, those that were run on this set."""
    found = {name: read_parts(root, one.name, method) for method, name in RIVALS.items()}
    return {name: over_runs(s, 1).mean for name, s in found.items() if s is not None}


def rivals_table(found: list[Found], by_set: Mapping[str, Mapping[str, float]]) -> str:
    """Ours, and behind a slash the paper's number; iDECODe as Algorithm 1 has it, and as the released code."""
    rows = []
    for method in RIVALS.values():
        cells = []
        for one in found:
            ours = by_set[one.name].get(method)
            cells.append("–" if ours is None else f"{100 * ours:.1f} / {one.paper(method)}")
        if any(cell != "–" for cell in cells):
            rows.append([method, *cells])
    for label, which in (("iDECODe n=5", "one"), ("iDECODe, all ranges, n=5", "averaged")):
        cells = [
            f"{100 * over_runs(getattr(one, which), N).mean:.1f} / {one.paper('iDECODe n=5')}"
            for one in found
        ]
        rows.append([label, *cells])
    return table(["AUROC, ours / the paper's", *(one.kind for one in found)], rows)


def mixing_table(found: list[Found]) -> tuple[str, float]:
    """AUROC of the same base scores, right and wrong, and by how much the wrong ones gain in the mean at n=5."""
    rows, gains = [], []
    for one in found:
        wrong = {part: mixed(each) for part, each in one.all.items()}
        values = [over_runs(scores, n).mean for n in (1, N) for scores in (one.averaged, wrong)]
        rows.append([one.kind, *(f"{100 * value:.1f}" for value in values)])
        gains.append(values)
    mean = np.mean(gains, axis=0)
    rows.append(["**mean**", *(f"**{100 * value:.1f}**" for value in mean)])
    titles = ["AUROC", "n=1, per picture", "n=1, mixed", "n=5, per picture", "n=5, mixed"]
    return table(titles, rows), float(100 * (mean[3] - mean[2]))


def rates_table(root: Path, found: list[Found]) -> tuple[str, str]:
    """False detection rates of every calibrated method on its own class, and a sentence."""
    rows, inside = [], []
    for method, label in (("", "iDECODe n=5"), *RIVALS.items()):
        cells = []
        for one in found:
            scores = read_parts(root, one.name, method) if method else one.one
            rates = None if scores is None else rate(scores, N if not method else 1)
            cells.append("–" if rates is None else str(rates))
            inside += [] if rates is None else [rates.inside]
        if any(cell != "–" for cell in cells):
            rows.append([label, *cells])
    outside = len(inside) - sum(inside)
    sentence = (
        f"All {len(inside)} rates lie inside of their bands."
        if not outside
        else f"{outside} of {len(inside)} rates lie outside of their 99 % bands; about {0.01 * len(inside):.1f} would by chance."
    )
    return table(["flagged in %, [band]", *(one.kind for one in found)], rows), sentence


def verdict(found: list[Found], by_set: Mapping[str, Mapping[str, float]]) -> str:
    """The first sentences: where rivals are better, and whether the targets were reached."""
    better = [
        f"{method} on {one.kind} ({100 * value:.1f} against {ours:.1f})"
        for one in found
        for method, value in by_set.get(one.name, {}).items()
        if 100 * value > (ours := 100 * over_runs(one.one, N).mean)
    ]
    beaten = (
        f"**With the same network and the same steps these beat iDECODe (n=5):** {', '.join(better)}."
        if better
        else "No rival that was run beats iDECODe (n=5) with the same network and the same steps."
        if by_set
        else "No rival was run."
    )
    run = {method for values in by_set.values() for method in values}
    if missing := [method for method in RIVALS.values() if method not in run]:
        beaten += (
            f" **Not run here** (they wait for `python -m idecode_core one-class`): {', '.join(missing)}."
        )
    five, single = ([over_runs(one.one, n).mean for one in found] for n in (N, 1))
    above, mean = sum(a > b for a, b in zip(five, single, strict=True)), 100 * float(np.mean(five))
    reached = "reaches" if mean >= TARGET else "**misses**"
    return (
        f"{beaten} n=5 is above ICAD on {above} of {len(found)} classes. The mean of iDECODe at n=5, scored per picture, is "
        f"{mean:.1f}; it {reached} our target of {TARGET:.0f}. The paper trained a WRN-40-2 for 200 epochs; ours is a "
        "narrow network that sees pictures at 24 pixels and was trained for minutes."
    )


def one_class(root: Path | str = "checkpoints") -> Section:
    root = Path(root)
    found = find(root, dict(enumerate(CIFAR10)))
    if not found:
        raise CheckpointError(
            f"{root / FOLDER} has no scores of iDECODe: expected some of one class of CIFAR-10. Make them with `python -m "
            "idecode_core one-class --classes all` (slow)."
        )
    superclasses = find(root, CIFAR100)
    by_set = {one.name: rivals for one in found if (rivals := rival_aurocs(root, one))}
    compared = [one for one in found if one.name in by_set]
    mixing, gain = mixing_table(found)
    rates, sentence = rates_table(root, found)
    first = found[0].one
    body = [
        verdict(found, by_set),
        f"Each class of CIFAR-10 in turn; k = {len(first['calibration'])}, about {len(first['known'])} test pictures of the "
        f"class against {len(first['strange'])} of the other nine, chosen by a fixed seed, so an AUROC has a sampling error of "
        'about one point. "±" is the standard deviation over runs of n draws (20 runs for n=1, 4 for n=5). Columns "all '
        'ranges": a draw shows all four ranges, as the released code does, and so costs four passes. '
        "[docs/one-class.md](docs/one-class.md) says how everything was trained and what was chosen.",
        idecode_table(found),
    ]
    if compared:
        body += [
            "Rivals: the same training pictures, backbone, optimiser, gradient steps and pictures per step; one training run each. "
            "This is a comparison at a small budget, which suits easy questions such as four turns and is far below what the "
            "authors of GM, GOAD, CSI and DeepSVDD spend: it does not say what these methods can reach. Behind the slash stands "
            "the paper's number, quoted there from other papers and networks.",
            rivals_table(compared, by_set),
        ]
    if superclasses:
        body += [
            "Superclasses of CIFAR-100, half as many training pictures and so half as many steps:",
            idecode_table(superclasses),
        ]
    body += [
        f"**What mixing pictures does.** The released code reads its list of scores in the wrong order, so that what it takes "
        f"for one picture is the mean of four. With our own networks and the same base scores this adds {gain:.1f} points at "
        f"n=5, where the paper prints a mean of {np.mean([float(one.paper('iDECODe n=5')) for one in found]):.1f}: the number then "
        "says how well groups of four pictures are told apart, not pictures.",
        mixing,
        f"False detection rate at ε = {EPSILON:g} on the class's own test pictures, beside the band that holds it in 99 % of "
        f"cases; the rivals have no bound of their own, ours comes from calibration. {sentence}",
        rates,
    ]
    return Section("one-class", "One-class detection, beside its rivals", "\n\n".join(body))
