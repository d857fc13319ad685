"""Points that come one after the other and must each be answered at once: the false discovery rate at every time is at most q.

The procedures are those of the package online-fdr (extra [online]); this is the door to them.
Promised: e-LOND, with e-values of the p-values, keeps the rate whatever the dependence (Xu & Ramdas 2024). LORD++, SAFFRON and ADDIS keep
it for independent p-values. Not promised: the latter for p-values that share one calibration set, which depend on each other;
`trial.guarantees` measures them there. Nor that e-LOND
finds much: its first test level asks for p-values near 1e-5, and k for as many points.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idecode_core.conformal.merging import e_values
from idecode_core.conformal.ranking import checked_p_values
from idecode_core.errors import SettingError

PROCEDURES = ("lord++", "saffron", "addis", "e-lond")


def online_discoveries(p_values: ArrayLike, q: float, procedure: str) -> NDArray[np.bool_]:
    """Which points are flagged, each decided by the p-values up to its own. (m,)"""
    p = checked_p_values(p_values)
    if not 0.0 < q < 1.0:
        raise SettingError(f"q must lie strictly between 0 and 1, got {q}. A usual choice is 0.1.")
    if procedure not in PROCEDURES:
        raise SettingError(f"procedure must be one of {', '.join(PROCEDURES)}, got {procedure!r}.")
    try:
        from online_fdr.e_values import ELond
        from online_fdr.p_values import Addis, LordPlusPlus, Saffron
    except ImportError as error:
        raise SettingError(
            "Online procedures need the package online-fdr: run `pip install idecode-studio[online]`."
        ) from error
    tests: dict[str, Any] = {
        "lord++": lambda: LordPlusPlus(q, q / 2),
        "saffron": lambda: Saffron(q, q / 2, 0.5),
        "addis": lambda: Addis(q, q / 2, 0.25, 0.5),
        "e-lond": lambda: ELond(q),
    }
    test, values = tests[procedure](), e_values(p[None])[0] if procedure == "e-lond" else p
    return np.array([bool(test.test_one(float(value))) for value in values])
