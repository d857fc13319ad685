"""A user's own scores, as CSV, npy and npz; what cannot be used is one sentence."""

import io

import numpy as np
import pytest

from idecode_core.errors import IdecodeError
from idecode_core.files.archives import File
from idecode_core.files.score_files import read_score_vectors


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
        "\ufeff0.5;1\r\n2;-3.5\r\n\r\n0;7.25\r\n",
    ],
)
def test_csv_with_and_without_titles_and_with_either_separator(text):
    np.testing.assert_array_equal(read_score_vectors(File("x.csv", text.encode())), VECTORS)


def test_one_column_is_one_draw_a_point():
    assert read_score_vectors(File("x.CSV", b"score\n1\n2\n3\n")).shape == (3, 1)
    assert read_score_vectors(File("x.npy", saved(np.save, np.arange(4)))).shape == (4, 1)


def test_numpy_files_come_back_as_they_were_saved():
    np.testing.assert_array_equal(read_score_vectors(File("x.npy", saved(np.save, VECTORS))), VECTORS)
    only = saved(np.savez_compressed, anything=VECTORS.astype(np.float32))
    np.testing.assert_array_equal(read_score_vectors(File("x.npz", only)), VECTORS)
    named = saved(np.savez, score_vectors=VECTORS, label=np.array("mine"))
    np.testing.assert_array_equal(read_score_vectors(File("x.npz", named)), VECTORS)


BAD = {
    "empty": ("x.csv", b"", "is empty"),
    "titles only": ("x.csv", b"a,b\n", "holds no scores"),
    "uneven rows": ("x.csv", b"1,2\n3\n", "equal length"),
    "words": ("x.csv", b"1,2\n3,four\n", "rows of numbers"),
    "not text": ("x.csv", b"\xff\xfe\x00\x01", "not text"),
    "missing value": ("x.csv", b"1,2\n3,nan\n", "missing, NaN or infinite"),
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
        read_score_vectors(File(name, data))


def test_an_npz_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr("idecode_core.files.score_files.MAX_SCORES", 1000)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(IdecodeError, match=r"unpacks to .* more than"):
        read_score_vectors(File("x.npz", saved(np.savez_compressed, a=np.zeros(5000))))
