"""The numbers printed in the paper (Kaur et al., AAAI 2022), to stand beside ours. In percent, as printed.

"Spread" is the standard deviation over five runs. n is |V(x)|: 1 for the base score and ICAD.

The paper's numbers of one-class detection (Table 2 and App. C.1.4): AUROC in percent, as printed.

The rivals' columns are quoted there from other papers, with other networks. The columns of ICAD and iDECODe come from a
program that averages scores of four different pictures, so they are not numbers of single pictures (docs/one-class.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from idecode_core.quality.side_by_side import Reported

Number = tuple[float, float]  # mean and spread, in percent


COMPARABLE = {
    "svhn": "SVHN",
    "tinyimagenet": "ImageNet",
    "cifar100": "CIFAR100",
    "places": "Places365",
    "places365": "Places365",
    "lsunproxy": "LSUN",
    "lsun": "LSUN",
    "cifar10": "CIFAR-10",
}
"""Our OOD sets and the paper's of the same kind. lsunproxy is a proxy for LSUN; iSUN is not in the paper."""

_COLUMNS = (("base score", 1), ("ICAD", 1), ("iDECODe", 5), ("iDECODe", 20))
_PRINTED: dict[tuple[str, str, str], tuple[str, Sequence[tuple[str, int]], dict[str, Sequence[Number]]]] = {
    ("cifar10", "projective", "tnr"): ("Table 1", _COLUMNS, {
        "SVHN": ((84.18, 0.88), (84.11, 0.89), (93.81, 0.38), (97.12, 0.13)),
        "LSUN": ((55.70, 0.94), (55.66, 0.92), (64.22, 0.68), (67.54, 0.34)),
        "ImageNet": ((60.76, 0.72), (60.73, 0.70), (70.29, 0.61), (73.67, 0.45)),
        "CIFAR100": ((43.82, 0.94), (43.764, 0.89), (48.70, 0.39), (51.15, 0.23)),
        "Places365": ((88.58, 0.34), (88.58, 0.34), (99.97, 0.01), (100.0, 0.0)),
    }),
    ("cifar10", "projective", "auroc"): ("Table 1", _COLUMNS, {
        "SVHN": ((92.86, 0.16), (92.86, 0.16), (95.70, 0.07), (96.50, 0.01)),
        "LSUN": ((79.47, 0.26), (79.47, 0.26), (85.98, 0.13), (87.94, 0.03)),
        "ImageNet": ((82.21, 0.18), (82.21, 0.18), (87.97, 0.15), (89.58, 0.06)),
        "CIFAR100": ((72.61, 0.30), (72.60, 0.30), (78.04, 0.20), (79.92, 0.09)),
        "Places365": ((96.87, 0.05), (96.87, 0.06), (99.98, 0.01), (99.97, 0.02)),
    }),
    ("cifar10", "rotations", "auroc"): ("App. C.1.6", _COLUMNS[1:3], {
        "SVHN": ((92.09, 0.02), (92.37, 0.02)),
        "LSUN": ((86.65, 0.06), (87.52, 0.05)),
        "ImageNet": ((88.59, 0.05), (89.43, 0.05)),
        "CIFAR100": ((82.46, 0.04), (83.08, 0.04)),
        "Places365": ((86.73, 0.04), (88.15, 0.03)),
    }),
    ("svhn", "projective", "tnr"): ("App. C.1.3", _COLUMNS[:3], {
        "CIFAR-10": ((36.01, 0.52), (35.87, 0.55), (40.75, 0.38)),
        "LSUN": ((35.66, 0.62), (35.51, 0.64), (39.99, 0.56)),
        "ImageNet": ((35.65, 0.40), (35.50, 0.41), (39.53, 0.51)),
        "CIFAR100": ((35.88, 0.43), (35.74, 0.43), (40.41, 0.41)),
        "Places365": ((90.42, 0.09), (90.37, 0.0), (99.98, 0.01)),
    }),
    ("svhn", "projective", "auroc"): ("App. C.1.3", _COLUMNS[:3], {
        "CIFAR-10": ((80.74, 0.13), (80.74, 0.13), (86.35, 0.07)),
        "LSUN": ((80.08, 0.27), (80.08, 0.27), (86.72, 0.09)),
        "ImageNet": ((80.21, 0.14), (80.21, 0.14), (86.78, 0.11)),
        "CIFAR100": ((79.62, 0.13), (79.62, 0.13), (85.90, 0.10)),
        "Places365": ((98.10, 0.02), (98.09, 0.02), (99.99, 0.00)),
    }),
}  # fmt: skip
"""By iD set, transforms and metric: where it stands, methods with their n, and by OOD set a number for each of these."""

SBP: dict[str, tuple[float, float]] = {
    "SVHN": (55.71, 87.86),
    "LSUN": (66.14, 89.90),
    "ImageNet": (59.13, 87.32),
    "CIFAR100": (50.52, 83.13),
    "Places365": (52.77, 83.48),
}
"""Maximum softmax score on CIFAR-10 as iD (Table 3): TNR at 90% TPR and AUROC."""


@dataclass(frozen=True)
class Published:
    """A row of OpenOOD's table for CIFAR-10 (Zhang et al. 2023, arXiv 2306.09301): AUROC of the near mean, and by set."""

    method: str
    near: float
    aurocs: dict[str, float]


OPENOOD = (
    Published("Softmax baseline (MSP)", 88.0, {}),
    Published("KNN", 90.6, {"cifar100": 89.7, "tinyimagenet": 91.6, "svhn": 92.7, "places": 91.8}),
    Published("LogitNorm", 92.3, {}),
    Published("RotPred", 92.7, {}),
    Published("T2FNorm", 92.8, {"cifar100": 91.6, "tinyimagenet": 94.0, "svhn": 98.8, "places": 94.4}),
)
"""What we know of it; sets that are not here are left out."""

AUDIO: tuple[tuple[float, Number, Number, Number, Number], ...] = (
    (59.39, (61.46, 0.72), (62.19, 0.26), (65.07, 0.39), (66.21, 0.39)),
    (53.77, (52.88, 0.86), (52.48, 1.72), (54.69, 0.75), (56.18, 0.27)),
    (58.04, (57.97, 0.61), (57.41, 0.81), (60.91, 0.71), (61.13, 0.18)),
    (50.07, (55.18, 0.67), (54.35, 1.38), (56.56, 1.10), (56.83, 0.34)),
)
"""AUROC on FSDnoisy18k's four sets (Table 4): SBP, base score, ICAD, iDECODe n=5, iDECODe n=20."""

ATTACKED_NETWORKS = ("resnet", "densenet")
_ATTACKS = ("fgsm", "bim", "deepfool", "cw")
_ADVERSARIAL: dict[str, tuple[float, ...]] = {
    "KD+PU": (83.51, 16.16, 76.80, 56.30, 85.96, 3.10, 68.34, 53.21),
    "LID": (99.69, 95.38, 71.86, 77.53, 98.20, 94.55, 70.86, 71.50),
    "Mahalanobis": (99.94, 98.91, 78.06, 93.90, 99.94, 99.51, 83.42, 87.95),
    "Odds": (46.32, 59.85, 75.58, 57.58, 45.23, 69.01, 58.30, 61.29),
    "AE": (97.24, 94.93, 78.19, 74.29, 78.38, 97.51, 65.31, 68.15),
    "ICAD": (93.1, 92.6, 92.6, 91.7, 92.3, 92.2, 90.7, 90.3),
    "iDECODe n=5": (96.6, 96.4, 96.4, 95.9, 96.2, 96.1, 95.2, 95.0),
}
"""AUROC of adversarial detection on CIFAR-10 (Table 5): each attack against ResNet, then against DenseNet. ICAD and iDECODe
are with projective transforms; those of the others are taken from their authors."""


def reported_adversarial(method: str, network: str, attack: str) -> float | None:
    """What the paper prints for a method against an attack on "resnet" or "densenet", or None.

    >>> reported_adversarial("LID", "densenet", "cw")
    71.5
    """
    if method not in _ADVERSARIAL or attack not in _ATTACKS:
        return None
    place = len(_ATTACKS) * ATTACKED_NETWORKS.index(network) + _ATTACKS.index(attack)
    return _ADVERSARIAL[method][place]


def reported(
    dataset: str, transforms: str, ood_set: str, method: str, n: int, metric: str
) -> Reported | None:
    """What the paper prints for this setting, or None where it prints nothing of the kind.

    dataset "cifar10" or "svhn" is the iD set, transforms "projective" or "rotations", ood_set one of ours (with or
    without its split, as in "svhn-test"), method one of `methods.METHODS`, metric "auroc" or "tnr".

    >>> reported("cifar10", "projective", "svhn", "iDECODe", 20, "auroc")
    Reported(mean=96.5, spread=0.01, table='Table 3')
    """
    place, columns, rows = _PRINTED.get((dataset, transforms, metric), ("", (), {}))
    row = rows.get(COMPARABLE.get(ood_set.removesuffix("-test"), ""))
    if row is None or (method, n) not in columns:
        return None
    return Reported(*row[columns.index((method, n))], "Table 3" if n == 20 else place)


METHODS = ("OC-SVM", "DeepSVDD", "GM", "RotNet", "GOAD", "AUX+Trans", "CSI", "ICAD", "iDECODe n=5")
_CIFAR10 = (
    (65.6, 61.7, 76.2, 71.9, 77.2, 77.5, 76.51, 85.94, 86.46),
    (40.9, 65.9, 84.8, 94.5, 96.7, 96.9, 98.68, 97.82, 98.11),
    (65.3, 50.8, 77.1, 78.4, 83.3, 87.3, 88.30, 86.14, 86.04),
    (50.1, 59.1, 73.2, 70.0, 77.7, 80.9, 79.38, 81.59, 82.57),
    (75.2, 60.9, 82.8, 77.2, 87.8, 92.7, 88.15, 90.27, 90.87),
    (51.2, 65.7, 84.8, 86.6, 87.8, 90.2, 91.79, 88.57, 89.24),
    (71.8, 67.7, 82.0, 81.6, 90.0, 90.9, 88.49, 88.10, 88.18),
    (51.2, 67.3, 88.7, 93.7, 96.1, 96.5, 97.08, 97.55, 97.79),
    (67.9, 75.9, 89.5, 90.7, 93.8, 95.2, 96.00, 96.96, 97.21),
    (48.5, 73.1, 83.4, 88.8, 92.0, 93.3, 93.31, 95.29, 95.46),
)
_SUPERCLASS_METHODS = ("OC-SVM", "GM", "AUX", "AUX+Trans", "GOAD", "CSI", "ICAD", "iDECODe n=5")
_CIFAR100 = {
    9: (74.1, 90.6, 86.3, 87.3, 83.7, 95.0, 94.43, 94.70),
    10: (84.1, 87.6, 87.1, 88.6, 84.0, 94.0, 88.80, 88.92),
    13: (64.6, 58.0, 60.7, 62.1, 56.6, 81.5, 59.91, 59.94),
    17: (73.7, 93.8, 92.2, 93.5, 91.6, 97.5, 98.10, 98.28),
}
"""The superclasses that stand in our table."""


def reported_one_class(dataset: str, number: int, method: str) -> float | None:
    """What the paper prints for a class of CIFAR-10 or a superclass of CIFAR-100, or None where it prints nothing.

    >>> reported_one_class("cifar10", 7, "CSI"), reported_one_class("cifar100", 17, "iDECODe n=5")
    (97.08, 98.28)
    >>> reported_one_class("cifar100", 17, "DeepSVDD")
    """
    methods = METHODS if dataset == "cifar10" else _SUPERCLASS_METHODS
    row = _CIFAR10[number] if dataset == "cifar10" else _CIFAR100[number]
    return row[methods.index(method)] if method in methods else None
