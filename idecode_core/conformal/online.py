"""Points that come one after the other and must each be answered at once: the false discovery rate at every time is at most q.

The procedures are those of the package online-fdr (extra [online]); this is the door to them.
Promised: e-LOND, with e-values of the p-values, keeps the rate whatever the dependence (Xu & Ramdas 2024). LORD++, SAFFRON and ADDIS keep
it for independent p-values. Not promised: the latter for p-values that share one calibration set, which depend on each other;
`trial.guarantees` measures them there. Nor that e-LOND
finds much: its first test level asks for p-values near 1e-5, and k for as many points.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idecode_core.conformal.merging import e_values
from idecode_core.conformal.ranking import checked_p_values
from idecode_core.errors import InputError, SettingError

PROCEDURES = ("lord++", "saffron", "addis", "e-lond")


def check_order(times: Sequence[object], first_line: int = 1) -> None:
    """InputError where a row is earlier than the one before: numbers, or dates and times as ISO 8601 writes them.

    >>> check_order(["2026-01-01", "2026-01-01T10:00", "2026-01-02"])
    """
    before: float | datetime | None = None
    for line, cell in enumerate(times, first_line):
        try:
            time = _time(str(cell).strip())
            back = before is not None and time < before  # type: ignore[operator]
        except (TypeError, ValueError):
            raise InputError(
                f"line {line}: the time {str(cell)[:40]!r} cannot be compared with those before; expected numbers, or dates and times "
                "as 2026-01-31T12:00. Write all of them alike."
            ) from None
        if back:
            raise InputError(
                f"line {line} goes back in time, from {before} to {time}; expected rows in the order in which they came, because each "
                "is judged by those before it. Sort them by time."
            )
        before = time


def _time(text: str) -> float | datetime:
    try:
        number = float(text)
    except ValueError:
        return datetime.fromisoformat(text)
    if math.isnan(number):
        raise ValueError("no number")
    return number


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
