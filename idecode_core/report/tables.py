"""Tables and numbers as Markdown, alike in cards and in RESULTS.md."""

from collections.abc import Sequence

from idecode_core.quality.methods import Evaluation, Metric


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers.

    >>> print(table(["set", "AUROC"], [["SVHN", "95.0"]]))
    | set | AUROC |
    |---|---:|
    | SVHN | 95.0 |
    """
    lines = [f"| {' | '.join(titles)} |", f"|---|{'---:|' * (len(titles) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def percent(metric: Metric) -> str:
    """ "95.7 ± 0.1", from a metric between 0 and 1; of a single run there is no spread."""
    spread = f" ± {100 * metric.spread:.1f}" if len(metric.values) > 1 else ""
    return f"{100 * metric.mean:.1f}{spread}"


def interval(evaluation: Evaluation) -> str:
    """ "[95.1, 96.3]", of the AUROC."""
    low, high = evaluation.interval
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def fpr(evaluation: Evaluation) -> str:
    """At 95 % TPR."""
    return f"{100 * evaluation.fpr.mean:.1f}"


def beside_the_paper(pairs: Sequence[tuple[str, float, float]], what: str) -> str:
    """A plain sentence on (set, ours, the paper's), in percent: where ours are worse, and where they are not."""
    worse = [
        f"{label} by {theirs - ours:.1f}" for label, ours, theirs in pairs if round(theirs - ours, 1) > 0
    ]
    better = [
        f"{label} by {ours - theirs:.1f}" for label, ours, theirs in pairs if round(ours - theirs, 1) > 0
    ]
    equal = [label for label, ours, theirs in pairs if round(abs(ours - theirs), 1) == 0]
    sentences = []
    if worse:
        sentences.append(f"**Ours are worse than the paper's** ({what}): {', '.join(worse)}.")
    if better:
        sentences.append(f"Ours are better: {', '.join(better)}.")
    if equal:
        sentences.append(f"Equal to one decimal: {', '.join(equal)}.")
    return " ".join(sentences)
