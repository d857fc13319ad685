"""The paper's numbers of one-class detection (Table 2 and App. C.1.4): AUROC in percent, as printed.

The rivals' columns are quoted there from other papers, with other networks. The columns of ICAD and iDECODe come from a
program that averages scores of four different pictures, so they are not numbers of single pictures (docs/one-class.md).
"""

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
