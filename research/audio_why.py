"""Why more draws do not help Eq. 3 on sounds: the numbers of docs/audio-findings.md, from stored scores.

    python -m research.audio_why

Everything is about the first run of 20 draws of the ESC-50 detectors: Eq. 3 and soft disagreement read the same
predictions, and SBP says how sure the model was of each clip.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.folder.shelf import DRAWS_PER_RUN, SBP
from idecode_core.folder.stored import Stored, open_all
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import table
from paper.audio import DETECTORS

Vectors = NDArray[np.float64]
SURE = ((0.0, 0.5), (0.5, 0.9), (0.9, 1.0))
LARGE = 0.5  # of Eq. 3, which is at most 2: the answer has changed


@dataclass(frozen=True, eq=False)
class Side:
    """iD or OOD clips of one detector: scores of the same 20 draws (N, 20), and how sure M(x) is (N,)."""

    eq_3: Vectors
    soft: Vectors
    sure: Vectors

    @property
    def unsure(self) -> Vectors:
        """What Eq. 3 takes off twice the disagreement: how often two labels drawn from M(x), or from M(g(x)), differ."""
        return 2 * self.soft - self.eq_3


def sides(stored: Stored) -> tuple[Side, Side]:
    """The iD and the OOD clips of a detector's stored scores."""
    eq_3, softmax = stored.scores_of("invariance").sets, stored.scores_of(SBP)
    merged = "members" in stored.settings.scorer  # then the classifier's own scores lie beside
    soft = stored.scores_of("soft_disagreement").sets if merged else {}
    known, strange = (
        Side(
            np.concatenate([eq_3[part.name].score_vectors for part in sets]).astype(np.float64),
            np.concatenate(
                [soft.get(part.name, part).score_vectors[:, :DRAWS_PER_RUN] for part in sets]
            ).astype(np.float64),
            1 - np.concatenate([softmax.once(part.name) for part in sets]),
        )
        for sets in ([stored.id_set], stored.ood_sets)
    )
    return known, strange


def mean_auroc(pairs: Sequence[tuple[Side, Side]], score: Callable[[Side], Vectors]) -> str:
    """Over detectors, and over the columns where `score` gives several (N, columns)."""
    values = []
    for known, strange in pairs:
        a, b = (score(side).reshape(len(side.sure), -1) for side in (known, strange))
        values.append(np.mean([auroc(a[:, i], b[:, i]) for i in range(a.shape[1])]))
    return f"{100 * np.mean(values):.1f}"


def aggregates(pairs: Sequence[tuple[Side, Side]]) -> str:
    """AUROC of one draw, and of 20 under several F."""
    kinds: tuple[tuple[str, Callable[[Side], Vectors]], ...] = (
        ("Eq. 3, ‖M(g(x)) - M(x)‖²", lambda side: side.eq_3),
        ("soft disagreement, 1 - M(g(x))·M(x)", lambda side: side.soft),
        ("what Eq. 3 takes off: both answers' unsureness", lambda side: side.unsure),
    )
    rows = [
        [
            name,
            mean_auroc(pairs, score),
            mean_auroc(pairs, lambda side, score=score: score(side).sum(axis=1)),  # type: ignore[misc]
            mean_auroc(pairs, lambda side, score=score: np.median(score(side), axis=1)),  # type: ignore[misc]
        ]
        for name, score in kinds
    ]
    return table(["AUROC", "one draw", "sum of 20", "median of 20"], rows)


def draws(pairs: Sequence[tuple[Side, Side]]) -> str:
    """How single draws of Eq. 3 are spread: the mean follows few large ones."""
    rows = []
    for name, which in (("iD", 0), ("OOD", 1)):
        eq_3 = [pair[which].eq_3 for pair in pairs]
        cells = [np.mean([f(e) for e in eq_3]) for f in (np.median, np.mean)]
        rows.append(
            [name, *(f"{c:.3f}" for c in cells), f"{100 * np.mean([(e > LARGE).mean() for e in eq_3]):.1f} %"]
        )
    return table(["Eq. 3, single draws", "median", "mean", f"above {LARGE:g}"], rows)


def by_sureness(pairs: Sequence[tuple[Side, Side]]) -> str:
    """Mean scores of clips that M is more or less sure of, and how many clips these are."""
    rows = []
    for low, high in SURE:
        cells = []
        for which in (0, 1):
            chosen = [(side, (side.sure > low) & (side.sure <= high)) for side in (p[which] for p in pairs)]
            share = np.mean([here.mean() for _, here in chosen])
            scores = [np.concatenate([v[here] for v, here in part]) for part in values(chosen)]
            cells += [
                f"{100 * share:.0f} %",
                *(f"{part.mean():.3f}" if part.size else "–" for part in scores),
            ]
        rows.append([f"{low:g} to {high:g}", *cells])
    header = [f"{side} {what}" for side in ("iD", "OOD") for what in ("clips", "Eq. 3", "soft")]
    return table(["largest share of M(x)", *header], rows)


def values(
    chosen: Sequence[tuple[Side, NDArray[np.bool_]]],
) -> tuple[list[tuple[Vectors, NDArray[np.bool_]]], ...]:
    """Eq. 3 and soft disagreement beside which clips are meant."""
    return [(side.eq_3, here) for side, here in chosen], [(side.soft, here) for side, here in chosen]


def audio_why(root: Path | str = "checkpoints") -> str:
    """The three tables as Markdown."""
    pairs = [sides(stored) for stored in open_all(root, DETECTORS)]
    return "\n\n".join([aggregates(pairs), draws(pairs), by_sureness(pairs)])


if __name__ == "__main__":
    print(audio_why(*sys.argv[1:]))
