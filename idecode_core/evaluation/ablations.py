"""Other base NCMs on the predictions that a detector was scored with: `ablations/<base NCM>.npz`.

Each file has one run of 20 draws for every set that was scored, the calibration set among them.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal import p_values, smoothed_p_values
from idecode_core.conformal.calibration import Calibration, aggregate_scores
from idecode_core.evaluation.metrics import auroc
from idecode_core.files import write_npz
from idecode_core.folder.manifest import check_if_listed
from idecode_core.folder.scores import read_tied
from idecode_core.folder.stored import Stored

ABLATIONS = ("invariance", "kl_divergence", "argmax_disagreement", "label_cross_entropy", "soft_disagreement")
CALIBRATION = "calibration"
"""The calibration set's name among the scored sets."""
TIES = ("argmax_disagreement",)  # base NCMs with few values, which need smoothed p-values
Vectors = NDArray[np.float32]


def ablation_path(folder: Path, base_ncm: str) -> Path:
    return folder / "ablations" / f"{base_ncm}.npz"


def read_ablation(folder: Path, base_ncm: str, scorer_sha256: str) -> dict[str, Vectors]:
    """Score vectors (N, 20) by set under another base NCM; refuses those of another scorer."""
    return read_tied(ablation_path(folder, base_ncm), (), scorer_sha256)


def write_ablation(folder: Path, base_ncm: str, vectors: dict[str, Vectors], scorer_sha256: str) -> None:
    write_npz(ablation_path(folder, base_ncm), {**vectors, "scorer": np.array(scorer_sha256)})


def ablation_aurocs(stored: Stored, base_ncm: str) -> tuple[float, float, float]:
    """AUROC at n = 1, 5, 20 of another base NCM against all OOD sets together, one run."""
    check_if_listed(stored.settings, f"ablations/{base_ncm}.npz")
    sets = read_ablation(stored.folder, base_ncm, stored.settings.scorer_sha256)
    calibration, inside = Calibration(sets[CALIBRATION].astype(np.float64)), sets[stored.id_set.name]
    outside = np.concatenate([sets[ood_set.name] for ood_set in stored.ood_sets])

    def ranked(vectors: Vectors, n: int) -> NDArray[np.float64]:
        scores = calibration.scores(n), aggregate_scores(vectors[:, :n])
        if base_ncm in TIES:
            return smoothed_p_values(*scores, generator=np.random.default_rng(n))
        return p_values(*scores)

    one, five, twenty = (auroc(-ranked(inside, n), -ranked(outside, n)) for n in (1, 5, 20))
    return one, five, twenty
