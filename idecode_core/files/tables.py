"""A user's table of scores: one row per point, in CSV (comma, semicolon or tab, decimal point or comma), Parquet, npy or npz.

Rows stay where they are: a blank line or an empty cell is a point without a score, and is named with its line.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import InputError, ScoreError
from idecode_core.files.archives import File
from idecode_core.files.names import is_number
from idecode_core.files.read import DAMAGE, check_header, read_arrays, reason

if TYPE_CHECKING:
    import pyarrow as pa

TEXTS = (".csv", ".tsv", ".txt")
EXTENSIONS = (*TEXTS, ".parquet", ".npy", ".npz")
MAX_SCORES, MAX_COLUMNS = 20_000_000, 10_000
USUAL = ("score", "scores", "anomaly_score", "decision_scores")
"""A column of this name is taken when several are there and none was named."""
QUOTED = re.compile(r'"[^"]*"')
QUOTED_OR_BLANK = re.compile(rb'"[^"]*"|(?m:^[ \t]*\n)')
NAMED = 3  # lines of empty cells that a sentence names


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file, as they are there: texts of a CSV file stay texts."""

    name: str
    titles: tuple[str, ...]  # () where the file has none
    columns: Sequence["pa.ChunkedArray"]
    first_line: int = 1
    """The number of the first row, as an editor shows it."""

    def scores(self, column: str = "", *, empty_is_nan: bool = False) -> NDArray[np.float64]:
        """Scores (count,) of the column with this title or number (from 1); of the only one, or the usual one, when left out.
        Empty cells are refused, or NaN."""
        return self._numbers(self.place(column), empty_is_nan)

    def labels(self, column: str) -> NDArray[np.str_]:
        """The texts (count,) of a column that says each row's group; rows without one are refused."""
        cells = self.columns[self.place(column)].to_pylist()
        empty = sum(cell is None or str(cell).strip() == "" for cell in cells)
        if empty:
            raise InputError(
                f"{self.name}: {empty} of {len(cells)} rows have no group in the column {column}. Fill them in."
            )
        return np.array([str(cell).strip() for cell in cells])

    def vectors(self) -> NDArray[np.float64]:
        """All columns as score vectors (points, draws); a single column is one draw per point."""
        import pyarrow as pa

        if "score_vector" in self.titles:  # as `score` writes them
            rows = self.columns[self.titles.index("score_vector")].to_pylist()
            lengths = {len(row or ()) for row in rows}
            if len(lengths) != 1 or 0 in lengths:
                raise ScoreError(
                    f"{self.name}: the vectors have {sorted(lengths)} scores; expected as many for each point."
                )
            vectors = [pa.chunked_array([pa.array(draw, pa.float64())]) for draw in zip(*rows, strict=True)]
            return Table(self.name, (), vectors, self.first_line).vectors()
        return np.stack([self._numbers(i) for i in range(len(self.columns))], axis=1)

    def place(self, column: str) -> int:
        """Where the column is; InputError where none or several may be meant."""
        names = self.titles or tuple(str(i + 1) for i in range(len(self.columns)))
        if column and column in names:
            return names.index(column)
        if column.isdecimal() and 1 <= int(column) <= len(names):
            return int(column) - 1
        listed = ", ".join(title or f"(column {i + 1})" for i, title in enumerate(names))
        if column:
            raise InputError(f"{self.name}: has no column {column!r}; expected one of: {listed}.")
        usual = [i for i, title in enumerate(names) if title.lower() in USUAL]
        if len(names) == 1 or len(usual) == 1:
            return usual[0] if usual else 0
        raise InputError(
            f"{self.name}: has {len(names)} columns ({listed}). Say which one holds the scores, by its title or number "
            "(--column on the command line)."
        )

    def _numbers(self, place: int, empty_is_nan: bool = False) -> NDArray[np.float64]:
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = self.columns[place]
        title = (self.titles[place] if self.titles else "") or str(place + 1)
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
            cells = pc.utf8_trim_whitespace(cells)
            cells = pc.if_else(pc.equal(cells, ""), None, cells)
            decimal_comma = not pc.any(pc.match_substring(cells, ".")).as_py()
            try:
                numbers = pc.cast(
                    pc.replace_substring(cells, ",", ".") if decimal_comma else cells, pa.float64()
                )
            except pa.ArrowInvalid:
                numbers = pa.chunked_array([self._parsed(cells.to_pylist(), decimal_comma, title)])
        elif pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
            numbers = pc.cast(cells, pa.float64(), safe=False)
        else:
            raise InputError(
                f"{self.name}: the column {title} holds {cells.type}; expected numbers. Name another column."
            )
        lines = np.flatnonzero(numbers.is_null()) + self.first_line
        if lines.size and not empty_is_nan:
            named = ", ".join(map(str, lines[:NAMED])) + (", ..." if lines.size > NAMED else "")
            raise ScoreError(
                f"{self.name}: {lines.size} of {len(numbers)} cells of the column {title} are empty (line {named}). Fill them in, "
                "or take these rows out."
            )
        scores: NDArray[np.float64] = np.array(numbers.to_numpy(), dtype=np.float64)
        bad = int(np.count_nonzero(~np.isfinite(scores))) - lines.size
        if bad:
            raise ScoreError(
                f"{self.name}: {bad} of {scores.size} scores are NaN or infinite. Remove or mend them."
            )
        return scores

    def _parsed(self, cells: Sequence[str | None], decimal_comma: bool, title: str) -> "pa.Array":
        """Cell by cell, so that the line of one that is no number can be named."""
        import pyarrow as pa

        for i, cell in enumerate(cells):
            if cell is not None and not is_number(cell, decimal_comma):
                raise InputError(
                    f"{self.name}: the column {title} cannot be read as numbers: line {i + self.first_line} holds {cell[:40]!r}. "
                    "Mend that row, or name another column."
                )
        return pa.array([None if cell is None else float(cell.replace(",", ".")) for cell in cells])


def read_table(file: File) -> Table:
    """The table of a file of any of EXTENSIONS."""
    name, data = file.name, file.data
    ending = name.lower()[name.rfind(".") :]
    if not data.strip():
        raise InputError(f"{name}: is empty; expected one row of scores per point. Export it again.")
    if ending not in EXTENSIONS:
        raise InputError(
            f"{name}: is of another type; expected {', '.join(EXTENSIONS)}. Export the scores as CSV."
        )
    read = _text_table if ending in TEXTS else _parquet_table if ending == ".parquet" else _array_table
    table = read(file)
    if not table.columns or not len(table.columns[0]):
        raise InputError(f"{name}: holds titles and no scores; expected one row per point. Export it again.")
    return table


def _text_table(file: File) -> Table:
    import pyarrow as pa
    from pyarrow import csv as arrow

    data = file.data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    above = len(data) - len(data := data.lstrip(b"\n"))
    try:
        data.decode("utf-8")
        head = data[:100_000].decode("utf-8", errors="ignore").split("\n")
    except UnicodeDecodeError:
        raise InputError(
            f"{file.name}: is not text; expected a CSV file in UTF-8. Export it again."
        ) from None
    plain = QUOTED.sub("", head[0])
    # without any of these it is one column, perhaps with decimal commas
    mark = next((mark for mark in "\t;," if mark in plain), "\x1f")
    if (
        columns := data.partition(b"\n")[0].count(mark.encode()) + 1
    ) > MAX_COLUMNS:  # each costs Arrow its time
        raise InputError(
            f"{file.name}: has {columns:,} columns, expected at most {MAX_COLUMNS:,}. Put one point in each row."
        )
    data = data.rstrip(b"\n " if mark == "\t" else b"\n \t") + b"\n"
    try:
        first, second = ([*csv.reader(head[i : i + 1], delimiter=mark), []][0] for i in (0, 1))
    except csv.Error as error:
        raise InputError(f"{file.name}: the first lines cannot be read as a table ({error}).") from None
    width = len(first)
    blank = mark.encode() * (width - 1) + b"\n"
    data = QUOTED_OR_BLANK.sub(lambda match: match[0] if match[0][:1] == b'"' else blank, data)
    wrong: list[str] = []

    def refuse(row: Any) -> str:
        where = f"line {row.number + above}" if row.number else "a line"
        wrong.append(f"{where} has {row.actual_columns} cells and the first has {row.expected_columns}")
        return "error"

    try:
        table = arrow.read_csv(
            io.BytesIO(data),
            arrow.ReadOptions(
                autogenerate_column_names=True, use_threads=False, block_size=max(1 << 20, len(data))
            ),
            arrow.ParseOptions(
                delimiter=mark,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=refuse,
            ),
            arrow.ConvertOptions(column_types={f"f{i}": pa.string() for i in range(width)}),
        )
    except (pa.ArrowException, *DAMAGE) as error:
        comma = " If the commas are decimal commas, separate columns by semicolons." if mark == "," else ""
        raise InputError(
            f"{file.name}: cannot be read as rows of equal length ({wrong[0] if wrong else reason(error)}). Mend that row.{comma}"
        ) from None
    titled = _are_titles(first, second)
    if not titled and mark == "," and width == 2 and _may_be_decimals(table):
        raise InputError(
            f"{file.name}: may be one column with decimal commas or two of whole numbers. Put a line with the titles of its "
            "columns above."
        )
    titles = tuple(cell.strip() for cell in first) if titled else ()
    return Table(file.name, titles, table.slice(int(titled)).columns, above + int(titled) + 1)


def _are_titles(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a first line holds titles: no number at all, a text above a number, or the counting numbers of a data frame."""
    numbers = [is_number(cell) for cell in first]
    if not any(numbers):
        return True
    above = any(
        cell.strip() and not n and is_number(s) for cell, n, s in zip(first, numbers, second, strict=False)
    )
    return above or (not first[0].strip() and list(first[1:]) == [str(i) for i in range(len(first) - 1)])


def _may_be_decimals(table: "pa.Table") -> bool:
    import pyarrow.compute as pc

    pairs = zip(table.columns, (r"^\s*[+-]?\d+$", r"^\d+\s*$"), strict=True)
    return all(pc.all(pc.match_substring_regex(cells, pattern)).as_py() for cells, pattern in pairs)


def _parquet_table(file: File) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(io.BytesIO(file.data))
        about = parquet.metadata
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        cells = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
        if max(cells, about.num_rows * about.num_columns) > MAX_SCORES:
            raise ValueError(f"it holds more than {MAX_SCORES:,} cells")
        texts = [field.name for field in parquet.schema_arrow if pa.types.is_string(field.type)]
        # as a dictionary, a long text that is there many times is kept once
        table = pq.read_table(io.BytesIO(file.data), read_dictionary=texts)
    except (pa.ArrowException, *DAMAGE) as error:
        raise InputError(
            f"{file.name} cannot be read as a Parquet table: {reason(error)}. Save it again."
        ) from None
    kept = [name for name in table.column_names if not name.startswith("__index_level_")]  # of a data frame
    return Table(file.name, tuple(kept), table.select(kept).columns)


def _array_table(file: File) -> Table:
    import pyarrow as pa

    vectors = _read_npy(file) if file.name.lower().endswith(".npy") else _read_npz(file)
    if vectors.ndim == 1:
        vectors = vectors[:, None]
    if vectors.ndim != 2 or vectors.size == 0:
        raise ScoreError(
            f"{file.name}: has shape {vectors.shape}; expected (points, draws). Reshape it first."
        )
    if vectors.dtype.kind not in "iuf":
        raise ScoreError(f"{file.name}: holds {vectors.dtype}; expected numbers. Export the scores only.")
    columns = np.ascontiguousarray(vectors.T, dtype=np.float64)
    return Table(file.name, (), [pa.chunked_array([pa.array(column)]) for column in columns])


def _read_npz(file: File) -> NDArray[np.generic]:
    arrays = read_arrays(
        file.data,
        what="an array",
        error=InputError,
        hint="Save it again.",
        name=file.name,
        most_bytes=8 * MAX_SCORES,
    )
    chosen = "score_vectors" if "score_vectors" in arrays else next(iter(arrays)) if len(arrays) == 1 else ""
    if not chosen:
        raise InputError(
            f"{file.name}: holds the arrays {', '.join(arrays) or 'none'}; expected one, or one called score_vectors. "
            "Save it again with that name."
        )
    return arrays[chosen]


def _read_npy(file: File) -> NDArray[np.generic]:
    try:
        # before NumPy makes room for what it declares
        if check_header(io.BytesIO(file.data), file.name, len(file.data)) > 8 * MAX_SCORES:
            raise ValueError(f"it holds more than {MAX_SCORES:,} numbers")
        return np.asarray(np.load(io.BytesIO(file.data), allow_pickle=False))
    except DAMAGE as damage:
        raise InputError(
            f"{file.name} cannot be read as an array: {reason(damage)}. Save it again."
        ) from None
