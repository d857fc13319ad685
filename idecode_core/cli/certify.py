"""`certify`: a threshold with a meaning for scores that come from anywhere."""

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from idecode_core.cli.inputs import SOME_FLAGGED, Csv, Delta, Epsilon, Json, complain, print_rows
from idecode_core.errors import InputError, NothingFlaggedWarning, WrongSignWarning

if TYPE_CHECKING:
    from idecode_core.files.tables import Table

TITLES = "p_value,is_ood\n"
"""How the first line of a table that this command has written ends."""
Column = Annotated[str, typer.Option(help="Title or number of the column that holds the scores.")]


def certify(
    calibration: Annotated[
        Path,
        typer.Argument(help="Scores of normal points: CSV, TSV, Parquet, npy or npz.", show_default=False),
    ],
    test: Annotated[Path | None, typer.Option(help="Scores of new points, made the same way.")] = None,
    larger_is: Annotated[
        Literal["strange", "normal"], typer.Option(help="What a larger score means.")
    ] = "strange",
    epsilon: Epsilon = 0.05,
    delta: Delta = None,
    column: Column = "",
    groups: Annotated[
        str,
        typer.Option(
            help="Column of both files that says each row's group: the bound then holds in every group."
        ),
    ] = "",
    shifted_to: Annotated[
        Path | None,
        typer.Option(
            help="Rows of a source that has shifted, with the same further columns of numbers: calibration is weighted."
        ),
    ] = None,
    outliers: Annotated[
        Path | None,
        typer.Option(
            help="Known points that do not belong, with the same columns of scores: they say where to look."
        ),
    ] = None,
    folds: Annotated[
        str,
        typer.Option(
            help="Column that says the fold of each calibration row, scored by a model fitted without that fold; --test has a "
            "column of scores for each fold, titled by it. For few rows: the bound is looser, and said."
        ),
    ] = "",
    many: Annotated[
        Literal[
            "each",
            "bh",
            "storey",
            "e-bh",
            "envelope",
            "lord++",
            "saffron",
            "addis",
            "e-lond",
            "shiryaev-roberts",
        ],
        typer.Option(
            help="Flag each at epsilon, or bound the share of false alarms among the flags by epsilon: on average; e-bh with a column of "
            "scores per seed; envelope with probability 1 - delta for every cut; lord++ to e-lond row by row; shiryaev-roberts: alarms of a stream, on average "
            "1 / epsilon rows or more between false ones."
        ),
    ] = "each",
    time: Annotated[
        str, typer.Option(help="Column of --test with times, for --many row by row: none may go back.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Write the rows of --test with p_value and is_ood to this CSV file.")
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """A certified threshold and p-values for your own scores; no model is needed.

    Calibrate with scores of normal points that the scoring method has not been trained on. Exit status: 0 when nothing is
    flagged, 1 when some points are, 2 after an error.

    \b
    Examples:
      python -m idecode_core certify normal.csv --epsilon 0.01
      python -m idecode_core certify normal.csv --test new.csv --epsilon 0.05 --delta 0.1 --out p.csv
      python -m idecode_core certify likelihoods.npy --larger-is normal --json
      python -m idecode_core certify normal.csv --test new.csv --column score --groups camera
      python -m idecode_core certify normal.csv --test new.csv --column score --shifted-to winter.csv
      python -m idecode_core certify normal.csv --test new.csv --many bh --epsilon 0.1
      python -m idecode_core certify detector/calibration.npz --test scores/ --many e-bh --epsilon 0.1
      python -m idecode_core certify detector/calibration.npz --test scores/ --outliers known-scores/
      python -m idecode_core certify normal.csv --test stream.csv --many shiryaev-roberts --epsilon 0.001 --time hour
      python -m idecode_core certify few.csv --test new.csv --column score --folds fold
    """
    from idecode_core.conformal import check_epsilon
    from idecode_core.conformal.certify import certify as calibrate
    from idecode_core.files.names import csv_text
    from idecode_core.files.write import check_output, write_text
    from idecode_core.quality.columns import before, common_draws, has_vectors, number_columns, summed
    from idecode_core.quality.ways import ABOVE_EPSILON, Way

    check_epsilon(epsilon)
    if out is not None and test is None:
        raise InputError("--out needs new scores to write about: give them with --test.")
    if test is None and (groups or shifted_to or outliers or folds or time or many != "each"):
        raise InputError(
            "--groups, --shifted-to, --outliers, --folds, --many and --time are about new scores: give them with --test."
        )
    if out is not None and test is not None:
        check_output(out, (calibration, test), mark=TITLES)
    table, known = None if test is None else _table(test), _table(calibration)
    if many == "e-bh" and not column and not has_vectors(known):
        column = next(iter(number_columns(known)), "")  # any of the seeds stands for all in what is shown
    of_new = "" if table is not None and has_vectors(table) else column
    others = [None if path is None else _table(path) for path in (shifted_to, outliers)]
    draws = common_draws(known, table, *others)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = known.scores(column) if column or not has_vectors(known) else summed(known, "", draws)
        certified = calibrate(scores, larger_is, epsilon=epsilon, delta=delta)
        threshold = math.inf if many in ABOVE_EPSILON else certified.threshold(epsilon, delta)
        way = Way(certified, known, column, groups, others[0], many, others[1], folds, time, draws)
        rows = [] if table is None else way.rows(table, way.names[0] if folds else of_new)
    told = {
        str(warning.message): None
        for warning in caught
        if warning.category in (NothingFlaggedWarning, WrongSignWarning)
    }
    for sentence in told:
        complain(sentence)
    settings = {
        "threshold": threshold if math.isfinite(threshold) and way.plain else None,
        "larger_is": certified.larger_is,
        "epsilon": certified.epsilon,
        "delta": certified.delta,
        "k": certified.k,
    }
    told_rows = [
        {**{before(key, settings): value for key, value in row.items()}, **settings} for row in rows or [{}]
    ]
    for_programs = print_rows(told_rows, as_json=as_json, as_csv=as_csv)
    if not for_programs and way.plain:
        print(certified.statement())
    if not rows:
        return
    judged = [row for row in rows if row["p_value"] is not None]
    count = sum(row["is_ood"] for row in judged)
    if len(judged) < len(rows):
        complain(
            f"{test}: {len(rows) - len(judged):,} of {len(rows):,} rows have no score, and stay without a verdict."
        )
    if not for_programs:
        smallest = min((row["p_value"] for row in judged), default=math.nan)
        print(f"{count:,} of {len(judged):,} new scores are flagged; the smallest p-value is {smallest:.3g}.")
        for sentence in way.said:
            print(sentence)
    if out is not None:
        numbers = {None: None, False: 0, True: 1}
        write_text(out, csv_text([{**row, "is_ood": numbers[row["is_ood"]]} for row in rows]))
        if not for_programs:
            print(f"{out}: the rows of {test} with p_value and is_ood.")
    raise typer.Exit(SOME_FLAGGED if count else 0)


def _table(path: Path) -> "Table":
    """The table of a file, or of all parts in a folder that `score` has written."""
    from dataclasses import replace

    import pyarrow as pa

    from idecode_core.files.archives import File
    from idecode_core.files.read import reason
    from idecode_core.files.tables import read_table

    try:
        parts = sorted(path.glob("part-*.parquet")) if path.is_dir() else []
        tables = [read_table(File(str(part), part.read_bytes())) for part in parts or (path,)]
    except OSError as error:
        raise InputError(
            f"{path}: could not be opened ({reason(error)}); expected a file of scores, or a folder that `score` has written."
        ) from None
    if len(tables) == 1:
        return tables[0]
    columns = [[table.columns[i] for table in tables] for i in range(len(tables[0].columns))]
    joined = [pa.chunked_array([chunk for cells in side for chunk in cells.chunks]) for side in columns]
    return replace(tables[0], name=str(path), columns=joined)
