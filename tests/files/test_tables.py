"""A user's own scores, as CSV, npy and npz; what cannot be used is one sentence."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idecode_core.errors import IdecodeError
from idecode_core.files.archives import File
from idecode_core.files.tables import read_table


def saved(save, *arrays, **named) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    return buffer.getvalue()


VECTORS = np.array([[0.5, 1.0], [2.0, -3.5], [0.0, 7.25]])


@pytest.mark.parametrize(
    "text",
    [
        "0.5,1.0\n2.0,-3.5\n0,7.25\n",
        "draw 1,draw 2\n0.5,1\n2,-3.5\n0,7.25",
        "\ufeff0.5;1\r\n2;-3.5\r\n0;7.25\r\n\r\n",
        "0,5;1\n2;-3,5\n0;7,25\n",
        "draw 1\tdraw 2\n0.5\t1\n2\t-3.5\n0\t7.25\n",
        "0,5\t1,0\r2,0\t-3,5\r0,0\t7,25\r",
        'a,b\n"0,5","1"\n2,"-3,5"\n+0,"7,25"\n',
    ],
)
def test_csv_with_and_without_titles_and_with_either_separator(text):
    np.testing.assert_array_equal(read_table(File("x.csv", text.encode())).vectors(), VECTORS)


def test_one_column_is_one_draw_a_point():
    assert read_table(File("x.CSV", b"score\n1\n2\n3\n")).vectors().shape == (3, 1)
    assert read_table(File("x.npy", saved(np.save, np.arange(4)))).vectors().shape == (4, 1)


def test_numpy_files_come_back_as_they_were_saved():
    np.testing.assert_array_equal(read_table(File("x.npy", saved(np.save, VECTORS))).vectors(), VECTORS)
    only = saved(np.savez_compressed, anything=VECTORS.astype(np.float32))
    np.testing.assert_array_equal(read_table(File("x.npz", only)).vectors(), VECTORS)
    named = saved(np.savez, score_vectors=VECTORS, label=np.array("mine"))
    np.testing.assert_array_equal(read_table(File("x.npz", named)).vectors(), VECTORS)


BAD = {
    "empty": ("x.csv", b"", "is empty"),
    "titles only": ("x.csv", b"a,b\n", "titles and no scores"),
    "uneven rows": ("x.csv", b"1,2\n3\n", "line 2 has 1 cells and the first has 2"),
    "words": ("x.csv", b"1,2\n3,four\n", "line 2 holds 'four'"),
    "not text": ("x.csv", b"\xff\xfe\x00\x01", "not text"),
    "missing value": ("x.csv", b"1,2\n3,nan\n", "1 of 2 scores are NaN or infinite"),
    "blank line": ("x.csv", b"a,b\n1,2\n\n3,4\n", r"1 of 3 cells of the column a are empty \(line 3\)"),
    "empty cell": ("x.csv", b"\n1;2\n3;\n", r"the column 2 are empty \(line 3\)"),
    "decimal commas or two columns": ("x.csv", b"1,64\n0,35\n", "decimal commas or two"),
    "points and commas": ("x.tsv", b"a\tb\n1\t1,234.5\n", "line 2 holds '1,234.5'"),
    "not parquet": ("x.parquet", b"PAR1?", "cannot be read as a Parquet table"),
    "other type": ("x.xlsx", b"?", "of another type"),
    "not numpy": ("x.npy", b"?", "cannot be read as an array"),
    "not a zip": ("x.npz", b"?", "cannot be read as an array"),
    "pickle": (
        "x.npy",
        saved(np.save, np.array([{"run": "code"}], dtype=object)),
        "cannot be read as an array",
    ),
    "text array": ("x.npy", saved(np.save, np.array(["a", "b"])), "expected numbers"),
    "three axes": ("x.npy", saved(np.save, np.zeros((2, 2, 2))), "expected \\(points, draws\\)"),
    "two arrays": ("x.npz", saved(np.savez, a=VECTORS, b=VECTORS), "holds the arrays a, b"),
}


@pytest.mark.parametrize(("name", "data", "message"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_used_is_one_sentence(name, data, message):
    with pytest.raises(IdecodeError, match=message):
        read_table(File(name, data)).vectors()


def test_an_npz_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr("idecode_core.files.tables.MAX_SCORES", 1000)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(IdecodeError, match=r"unpacks to .* more than"):
        read_table(File("x.npz", saved(np.savez_compressed, a=np.zeros(5000)))).vectors()


def parquet(**columns) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def test_a_title_tells_decimal_commas_from_two_columns():
    np.testing.assert_array_equal(
        read_table(File("x.csv", b"score\n1,64\n2\n0,35\n")).scores(), [1.64, 2, 0.35]
    )
    np.testing.assert_array_equal(read_table(File("x.csv", b"id,score\n1,64\n0,35\n")).scores(), [64, 35])


def test_blank_lines_keep_their_place_except_inside_a_quoted_cell():
    table = read_table(File("x.csv", b'note,score\n"a\n\nb",1\n\nc,2\n'))
    np.testing.assert_array_equal(table.scores(empty_is_nan=True), [1, np.nan, 2])
    assert table.columns[0].to_pylist() == ["a\n\nb", "", "c"]


def test_parquet_gives_a_column_by_name_and_the_vectors_that_score_writes():
    rows = File(
        "x.parquet", parquet(file=["a", "b"], score=[1.5, -2.0], score_vector=[[1.0, 0.5], [-3.0, 1.0]])
    )
    np.testing.assert_array_equal(read_table(rows).scores(), [1.5, -2.0])
    np.testing.assert_array_equal(read_table(rows).vectors(), [[1, 0.5], [-3, 1]])
    np.testing.assert_array_equal(
        read_table(File("x.parquet", parquet(a=VECTORS[:, 0], b=VECTORS[:, 1].astype(np.float32)))).vectors(),
        VECTORS,
    )
    with pytest.raises(IdecodeError, match=r"1 of 2 cells of the column score are empty"):
        read_table(File("x.parquet", parquet(file=["a", "b"], score=[1.5, None]))).scores()


def test_a_parquet_bomb_is_refused_by_what_it_declares(monkeypatch):
    monkeypatch.setattr("idecode_core.files.tables.MAX_SCORES", 1000)
    with pytest.raises(IdecodeError, match="more than 1,000 cells"):
        read_table(File("x.parquet", parquet(a=np.zeros(5000)))).vectors()


def test_a_row_of_millions_of_cells_is_refused_before_it_is_parsed() -> None:
    """Arrow takes minutes for so many columns."""
    with pytest.raises(IdecodeError, match="has 2,000,001 columns"):
        read_table(File("wide.csv", b"1," * 2_000_000 + b"1"))
    wide = ",".join(map(str, range(10_000)))
    assert read_table(File("wide.csv", f"{wide}\n{wide}\n".encode())).vectors().shape == (2, 10_000)
