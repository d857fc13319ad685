"""`idecode certify`, and the files of scores that it reads."""

import io
import json

import numpy as np
import pytest

from idecode_core.cli.app import main
from idecode_core.errors import IdecodeError
from idecode_core.files.archives import File
from idecode_core.files.one_column import read_scores
from idecode_core.own.scores import certify

NORMAL = np.random.default_rng(0).normal(size=200)
NEW = np.random.default_rng(1).normal(2, size=30)


@pytest.fixture
def files(tmp_path):
    np.savetxt(tmp_path / "normal.csv", NORMAL)
    np.savetxt(tmp_path / "new.csv", NEW, header="score", comments="")
    return tmp_path


def run(capsys, *arguments) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["certify", *map(str, arguments)])
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_p_values_and_verdicts_of_new_scores_are_written(files, capsys):
    status, out, _ = run(
        capsys, files / "normal.csv", "--test", files / "new.csv", "--epsilon", 0.05, "--delta", 0.1,
        "--out", files / "p.csv",
    )  # fmt: skip
    certified = certify(NORMAL, epsilon=0.05, delta=0.1)
    table = np.genfromtxt(files / "p.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(table["score"], NEW)
    np.testing.assert_array_equal(table["p_value"], certified.p_values(NEW))
    np.testing.assert_array_equal(table["is_ood"], certified.predict(NEW) == -1)
    assert status == 1
    assert f"above {certified.threshold(0.05, 0.1)!r} (k = 200). For 90 % of all calibration sets" in out
    assert f"{int(table['is_ood'].sum())} of 30 new scores are flagged" in out


def test_a_threshold_needs_normal_scores_only(files, capsys):
    status, out, _ = run(capsys, files / "normal.csv", "--larger-is", "normal", "--json")
    assert status == 0
    told = json.loads(out)
    assert told["threshold"] == certify(NORMAL, "normal").threshold(0.05)
    assert (told["k"], told["delta"], told["larger_is"]) == (200, None, "normal")


def test_a_wrong_sign_and_too_few_scores_are_said_and_do_not_stop_it(files, capsys):
    np.savetxt(files / "low.csv", NEW - 20)
    status, _, err = run(capsys, files / "normal.csv", "--test", files / "low.csv")
    assert status == 0
    assert err.count("Does a larger score mean normal here?") == 1
    status, out, err = run(capsys, files / "normal.csv", "--epsilon", 0.001)
    assert status == 0
    assert "k of at least 1000" in err
    assert "nothing is ever flagged" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv",), "could not be opened"),
        (("normal.csv", "--out", "p.csv"), "give them with --test"),
        (("normal.csv", "--epsilon", "2"), "epsilon must lie"),
        (("normal.csv", "--delta", "2"), "delta must lie"),
        (("normal.csv", "--column", "loss"), "has no column 'loss'"),
        (("bad.csv",), "1 of 3 scores are NaN"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_2(files, capsys, monkeypatch, arguments, words):
    monkeypatch.chdir(files)
    (files / "bad.csv").write_text("score\n1\nnan\n2\n")
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert words in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("1.5\n2\n-3e-2\n", ""),
        ("score\n1.5\n2\n-0.03\n", ""),
        ("file,score,label\na.png,1.5,cat\nb.png,2,dog\nc.png,-0.03,cat\n", ""),
        ("file,loss,label\na.png,1.5,cat\nb.png,2,dog\nc.png,-0.03,cat\n", "loss"),
        ("file,loss,label\na.png,1.5,cat\nb.png,2,dog\nc.png,-0.03,cat\n", "2"),
        (",score\n0,1.5\n1,2\n2,-0.03\n", ""),  # as pandas writes a series
        ('\ufeffname;loss\r\n"a; b";1.5\r\n\r\nc;2\r\n"d # e";-0.03\r\n', "loss"),
        ("7\t1.5\n8\t2\n9\t-0.03\n", "2"),
    ],
)
def test_the_column_is_found_in_what_people_export(text, column):
    np.testing.assert_array_equal(read_scores(File("x.csv", text.encode()), column), [1.5, 2, -0.03])


def test_arrays_are_read_too():
    buffer = io.BytesIO()
    np.save(buffer, np.arange(6.0).reshape(3, 2))
    file = File("x.npy", buffer.getvalue())
    np.testing.assert_array_equal(read_scores(file, "2"), [1, 3, 5])
    with pytest.raises(IdecodeError, match=r"has 2 columns.*Say which one"):
        read_scores(file)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"score\n", "titles and no scores"),
        (b"id,loss\n1,2\n", "has 2 columns \\(id, loss\\)"),
        (b"score\n1\ncat\n", "cannot be read as numbers"),
        (b"id,score\n1,2\n3\n", "cannot be read as numbers"),
        (b"\xff\xfe\x00", "not text"),
        (b"score\ninf\n", "1 of 1 scores are NaN or infinite"),
    ],
)
def test_files_that_hold_no_scores_are_refused_in_words(data, words):
    with pytest.raises(IdecodeError, match=words):
        read_scores(File("x.csv", data))
