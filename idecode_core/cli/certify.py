"""`certify`: a threshold with a meaning for scores that come from anywhere."""

import json
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from idecode_core.cli.inputs import Delta, Epsilon, Json, complain
from idecode_core.errors import InputError, NothingFlaggedWarning, WrongSignWarning

if TYPE_CHECKING:
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
    from idecode_core.files import write_text
    from idecode_core.own.scores import certify as calibrate

    check_epsilon(epsilon)
    if out is not None and test is None:
        raise InputError("--out needs new scores to write about: give them with --test.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certified = calibrate(_scores(calibration, column), larger_is, epsilon=epsilon, delta=delta)
        threshold = certified.threshold(epsilon, delta)
        rows = [] if test is None else _rows(certified, _scores(test, column))
    told = {
        str(one.message): None for one in caught if one.category in (NothingFlaggedWarning, WrongSignWarning)
    }
    for sentence in told:
        complain(sentence)
    settings = {
        "threshold": threshold if math.isfinite(threshold) else None,
        "larger_is": certified.larger_is,
        "epsilon": certified.epsilon,
        "delta": certified.delta,
        "k": certified.k,
    }
    if as_json:
        for row in rows or [{}]:
            print(json.dumps({**row, **settings}))
    else:
        print(certified.statement())
    if not rows:
        return
    count = sum(row["is_ood"] for row in rows)
    if not as_json:
        smallest = min(row["p_value"] for row in rows)
        print(f"{count:,} of {len(rows):,} new scores are flagged; the smallest p-value is {smallest:.3g}.")
    if out is not None:
        lines = (f"{row['score']!r},{row['p_value']!r},{int(row['is_ood'])}" for row in rows)
        write_text(out, "\n".join(["score,p_value,is_ood", *lines, ""]))
    raise typer.Exit(SOME_FLAGGED if count else 0)


def _rows(certified: "Certified", scores: "FloatArray") -> list[dict[str, Any]]:
    """What is said of each new score."""
    columns = scores, certified.p_values(scores), certified.predict(scores) == -1
    return [
        {"score": score, "p_value": p, "is_ood": flagged}
        for score, p, flagged in zip(*(column.tolist() for column in columns), strict=True)
    ]


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
