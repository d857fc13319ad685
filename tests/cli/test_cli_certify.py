"""`idecode certify`, and the files of scores that it reads."""

import csv
import io
import json
import re

import numpy as np
import pytest

from idecode_core.cli.app import main
from idecode_core.conformal.certify import certify
from idecode_core.errors import IdecodeError
from idecode_core.files.archives import File
from idecode_core.files.tables import read_table

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
    words = re.search(r"above ([\d.]+) \(k = 200\)\. For 90 % of all calibration sets", out)
    assert words is not None
    exact, shown = certified.threshold(0.05, 0.1), float(words[1])
    assert exact <= shown < exact + 0.01  # as many digits as matter, rounded to the side that flags less
    assert not ((exact < NORMAL) & (shown >= NORMAL)).any()
    assert f"{int(table['is_ood'].sum())} of 30 new scores are flagged" in out
    assert out.endswith(f"{files / 'p.csv'}: the rows of {files / 'new.csv'} with p_value and is_ood.\n")


def test_the_table_keeps_its_rows_and_columns_and_a_row_without_a_score_has_no_verdict(files, capsys):
    (files / "new.tsv").write_text("file\tscore\tnote\n=a.png\t0,5\t-1\n\nc.png\t9,25\t\n")
    status, out, err = run(
        capsys, files / "normal.csv", "--test", files / "new.tsv", "--out", files / "p.csv"
    )
    p = certify(NORMAL).p_values([0.5, 9.25])
    with (files / "p.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["file", "score", "note", "p_value", "is_ood"],
        ["'=a.png", "0.5", "-1", repr(p[0].item()), "0"],
        ["", "", "", "", ""],
        ["c.png", "9.25", "", repr(p[1].item()), "1"],
    ]
    assert status == 1
    assert "1 of 2 new scores are flagged" in out
    assert "1 of 3 rows have no score" in err
    again = run(capsys, files / "normal.csv", "--test", files / "new.tsv", "--out", files / "p.csv")
    assert again == (status, out, err), "its own table is replaced"
    status, _, err = run(capsys, files / "normal.csv", "--test", files / "p.csv", "--out", files / "p.csv")
    assert status == 2
    assert "is not replaced" in err


def test_a_table_with_p_values_of_before_keeps_them_beside_the_new_ones(files, capsys):
    (files / "new.csv").write_text("p_value,is_ood,error,score\n0.5,0,,1\n")
    run(capsys, files / "normal.csv", "--test", files / "new.csv", "--out", files / "p.csv")
    head = (files / "p.csv").read_text().splitlines()[0]
    assert head == "p_value_before,is_ood_before,error,score,p_value,is_ood"
    before = (files / "new.csv").read_bytes()
    status, _, _ = run(
        capsys, files / "normal.csv", "--test", files / "normal.csv", "--out", files / "new.csv"
    )
    assert status == 2
    assert (files / "new.csv").read_bytes() == before, "a table of somebody else with such columns stays"


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
    assert "with 200 calibration scores: nothing is ever flagged" in out
    (files / "one.csv").write_text("1.5\n")
    assert "with 1 calibration score: nothing is ever flagged" in run(capsys, files / "one.csv")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv",), "could not be opened"),
        (("normal.csv", "--out", "p.csv"), "give them with --test"),
        (("normal.csv", "--epsilon", "2"), "epsilon must lie"),
        (("normal.csv", "--delta", "2"), "delta must lie"),
        (("normal.csv", "--column", "loss"), "has no column 'loss'"),
        (("two.csv",), "by its title or number (--column"),
        (("bad.csv",), "1 of 3 scores are NaN"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_2(files, capsys, monkeypatch, arguments, words):
    monkeypatch.chdir(files)
    (files / "bad.csv").write_text("score\n1\nnan\n2\n")
    (files / "two.csv").write_text("near,far\n1,2\n3,4\n")
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
        ('\ufeffname;loss\r\n"a; b";1.5\r\nc;2\r\n"d # e";-0.03\r\n', "loss"),
        ("7\t1.5\n8\t2\n9\t-0.03\n", "2"),
    ],
)
def test_the_column_is_found_in_what_people_export(text, column):
    np.testing.assert_array_equal(read_table(File("x.csv", text.encode())).scores(column), [1.5, 2, -0.03])


def test_arrays_are_read_too():
    buffer = io.BytesIO()
    np.save(buffer, np.arange(6.0).reshape(3, 2))
    file = File("x.npy", buffer.getvalue())
    np.testing.assert_array_equal(read_table(file).scores("2"), [1, 3, 5])
    with pytest.raises(IdecodeError, match=r"has 2 columns.*Say which one"):
        read_table(file).scores()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"score\n", "titles and no scores"),
        (b"id,loss\n1,2\n", "has 2 columns \\(id, loss\\)"),
        (b"score\n1\ncat\n", "cannot be read as numbers"),
        (b"id,score\n1,2\n3\n", "line 3 has 1 cells"),
        (b"\xff\xfe\x00", "not text"),
        (b"score\ninf\n", "1 of 1 scores are NaN or infinite"),
    ],
)
def test_files_that_hold_no_scores_are_refused_in_words(data, words):
    with pytest.raises(IdecodeError, match=words):
        read_table(File("x.csv", data)).scores()
