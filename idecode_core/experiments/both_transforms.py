"""PT merged with RS, the paper's future work, from the stored scores of the two detectors: no model is run.

Half of the held-out points rank the members' scores, the other half calibrates the merged score, so Theorem 1 holds.
The same p-values combined by Fisher's method, as if they were independent, show what goes wrong without that.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from idecode_core.calibration import Calibration
from idecode_core.evaluation import ScoreSet
from idecode_core.experiments.false_detections import observed_band
from idecode_core.experiments.results import table
from idecode_core.experiments.stored import Stored
from idecode_core.merged import merge_vectors
from idecode_core.metrics import false_detection_rate
from idecode_core.testing.merging import fisher_assuming_independence, twice_the_mean

EPSILONS = (0.05, 0.1, 0.2)


def merge_stored(members: Sequence[Stored], name: str = "PT + RS") -> Stored:
    """The members as one detector, each with weight 1; all of them scored the same points."""
    half = members[0].calibration.k // 2
    references = [member.calibration.score_vectors[:half] for member in members]
    weights = [1.0] * len(members)

    def merged_set(sets: Sequence[ScoreSet]) -> ScoreSet:
        vectors = merge_vectors([s.score_vectors.astype(np.float64) for s in sets], references, weights)
        return replace(sets[0], score_vectors=vectors.astype(np.float32))

    calibrating = [member.calibration.score_vectors[half:] for member in members]
    return Stored(
        name,
        members[0].folder.parent,
        {},
        Calibration(merge_vectors(calibrating, references, weights), members[0].calibration.seed),
        merged_set([member.id_set for member in members]),
        [merged_set(sets) for sets in zip(*(member.ood_sets for member in members), strict=True)],
        None,
    )


def first_run_p_values(stored: Stored, n: int) -> NDArray[np.float64]:
    """p-values of the iD test points, from the first n draws."""
    calibration = Calibration(stored.calibration.score_vectors.astype(np.float32))
    return calibration.p_values(stored.id_set.score_vectors[:, :n])


def false_detections(members: Sequence[Stored], together: Stored, n: int) -> str:
    """False detection rates of the members, of the merged score and of two ways to combine the members' p-values."""
    alone = np.stack([first_run_p_values(member, n) for member in members])  # (members, points)
    ways = {
        **{member.name.removeprefix("cifar10-"): p for member, p in zip(members, alone, strict=True)},
        f"{together.name}, calibrated": first_run_p_values(together, n),
        "twice the mean of the two p-values": twice_the_mean(alone.T),
        "Fisher, as if independent (**not valid**)": fisher_assuming_independence(alone.T),
    }
    rows = [
        [name, *(f"{100 * false_detection_rate(p, epsilon):.1f}" for epsilon in EPSILONS)]
        for name, p in ways.items()
    ]
    bands = [observed_band(together.calibration.k, epsilon, len(together.id_set)) for epsilon in EPSILONS]
    rows.append(
        ["exact 99 % band of the calibrated one", *(f"{100 * a:.1f} to {100 * b:.1f}" for a, b in bands)]
    )
    return table(
        [f"false detection rate in percent, n={n}", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)], rows
    )
