"""Rivals of a detector that knows one class: `one-class/scores/<detector>--<method>.npz`, read as any rival's scores are.

`python -m idecode_core one-class` makes these files. No torch.
"""

from functools import partial
from pathlib import Path

import numpy as np

from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import CheckpointError
from idecode_core.evaluation.sets import label
from idecode_core.files.read import read_arrays
from idecode_core.folder.scores import ScoreSet
from idecode_core.folder.settings import read_settings
from idecode_core.image.sets import class_names, dataset_and_class

FOLDER = "one-class"
PARTS = ("calibration", "known", "strange")
"""Held-out points of the class, its test points, and test points of the others."""
GROUPS = "groups"
"""The classes of the strange points (N,)."""
BETWEEN = "--"
AGAIN = "Delete it and run `python -m idecode_core one-class` again."
TITLES = {
    "oc_svm": "OC-SVM",
    "deep_svdd": "DeepSVDD",
    "geometric": "GM",
    "rotnet": "RotNet",
    "auxiliary": "AUX",
    "auxiliary_shifts": "AUX+Trans",
    "goad": "GOAD",
    "goad_affine": "GOAD, affine",
    "csi": "CSI",
}
"""Kind of scorer -> the paper's name."""


def score_path(root: Path | str, detector: str, method: str) -> Path:
    return Path(root) / FOLDER / "scores" / f"{detector}{BETWEEN}{method}.npz"


read_one_class = partial(
    read_arrays, what="stored scores of one-class detection", error=CheckpointError, hint=AGAIN
)
"""Path and names -> the arrays of these names."""


def one_class_rivals(root: Path | str, detector: str) -> list[str]:
    """`<detector>--<method>` of the rivals that were run on what this detector knows."""
    stems = [f"{detector}{BETWEEN}{method}" for method in TITLES]
    return [stem for stem in stems if (Path(root) / FOLDER / "scores" / f"{stem}.npz").exists()]


def sets_of(root: Path | str, name: str) -> tuple[Calibration, ScoreSet, list[ScoreSet]]:
    """The calibration, the class's test points and those of each other class, as the detector's own sets are named."""
    detector, _, method = name.partition(BETWEEN)
    dataset, only = dataset_and_class(read_settings(Path(root) / detector).dataset)
    if only is None or method not in TITLES:
        raise CheckpointError(
            f"{name} is no rival of a detector of one class: expected DETECTOR{BETWEEN}METHOD, the method one of {', '.join(TITLES)}."
        )
    path = score_path(root, detector, method)
    arrays = read_one_class(path, (*PARTS, GROUPS))
    if arrays[GROUPS].shape != arrays["strange"].shape[:1]:
        raise CheckpointError(f"{path}: expected the class of every strange point. {AGAIN}")

    def one(number: int) -> ScoreSet:
        set_name = f"{dataset}-{class_names(dataset)[number]}"
        vectors = arrays["known"] if number == only else arrays["strange"][arrays[GROUPS] == number]
        return ScoreSet(set_name, label(set_name), number != only, vectors)

    others = [one(number) for number in np.unique(arrays[GROUPS]).tolist()]
    calibration = Calibration(arrays["calibration"].astype(np.float64)).rounded(np.float32)
    return calibration, one(only), others
