"""`certify`: a threshold with a meaning for scores that come from anywhere."""

import json
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from idecode_core.cli.inputs import Delta, Epsilon, Json, complain
from idecode_core.errors import InputError, NothingFlaggedWarning, WrongSignWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idecode_core.conformal import FloatArray
    from idecode_core.own.scores import Certified

SOME_FLAGGED = 1
Column = Annotated[str, typer.Option(help="Title or number of the column that holds the scores.")]


def certify(
    calibration: Annotated[
        Path, typer.Argument(help="Scores of normal points: CSV, npy or npz.", show_default=False)
    ],
    test: Annotated[Path | None, typer.Option(help="Scores of new points, made the same way.")] = None,
    larger_is: Annotated[
        Literal["strange", "normal"], typer.Option(help="What a larger score means.")
    ] = "strange",
    epsilon: Epsilon = 0.05,
    delta: Delta = None,
    column: Column = "",
    out: Annotated[
        Path | None, typer.Option(help="Write score, p-value and verdict of each new point.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A certified threshold and p-values for your own scores; no model is needed.

    Calibrate with scores of normal points that the scoring method has not been trained on. Exit status: 0 when nothing is
    flagged, 1 when some points are, 2 after an error.

    \b
    Examples:
      python -m idecode_core certify normal.csv --epsilon 0.01
      python -m idecode_core certify normal.csv --test new.csv --epsilon 0.05 --delta 0.1 --out p.csv
      python -m idecode_core certify likelihoods.npy --larger-is normal --json
    """
    from idecode_core.conformal import check_epsilon
    from idecode_core.own.scores import certify as calibrate

    check_epsilon(epsilon)
    if out is not None and test is None:
        raise InputError("--out needs new scores to write about: give them with --test.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certified = calibrate(_scores(calibration, column), larger_is, epsilon=epsilon, delta=delta)
        threshold = certified.threshold(epsilon, delta)
        scores = None if test is None else _scores(test, column)
        p = None if scores is None else certified.p_values(scores)
        flagged = None if scores is None else certified.predict(scores) == -1
    told = {
        str(one.message): None for one in caught if one.category in (NothingFlaggedWarning, WrongSignWarning)
    }
    for sentence in told:
        complain(sentence)
    if as_json:
        _print_json(certified, threshold, scores, p, flagged)
    else:
        print(certified.statement())
    if scores is None or p is None or flagged is None:
        return
    count = int(flagged.sum())
    if not as_json:
        print(f"{count:,} of {len(p):,} new scores are flagged; the smallest p-value is {p.min():.3g}.")
    if out is not None:
        _write(out, scores, p, flagged)
    raise typer.Exit(SOME_FLAGGED if count else 0)


def _scores(path: Path, column: str) -> "FloatArray":
    from idecode_core.files.archives import File
    from idecode_core.files.one_column import read_scores
    from idecode_core.files.read import reason

    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: could not be opened ({reason(error)}); expected a file of scores."
        ) from None
    return read_scores(File(str(path), data), column)


def _print_json(
    certified: "Certified",
    threshold: float,
    scores: "FloatArray | None",
    p: "FloatArray | None",
    flagged: "NDArray[np.bool_] | None",
) -> None:
    settings = {
        "threshold": threshold if math.isfinite(threshold) else None,
        "larger_is": certified.larger_is,
        "epsilon": certified.epsilon,
        "delta": certified.delta,
        "k": certified.k,
    }
    if scores is None or p is None or flagged is None:
        print(json.dumps(settings))
        return
    for score, one, flag in zip(scores, p, flagged, strict=True):
        print(json.dumps({"score": float(score), "p_value": float(one), "is_ood": bool(flag), **settings}))


def _write(out: Path, scores: "FloatArray", p: "FloatArray", flagged: "NDArray[np.bool_]") -> None:
    from idecode_core.files import write_text

    rows = (f"{s!r},{q!r},{int(f)}" for s, q, f in zip(scores.tolist(), p.tolist(), flagged, strict=True))
    write_text(out, "\n".join(["score,p_value,is_ood", *rows, ""]))
