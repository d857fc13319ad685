"""Stored vectors are judged without the model, as the detector would."""

# ruff: noqa: F811  `command` and others are fixtures of another file

import json

import pandas
import pyarrow
import pyarrow.parquet as pq
import pytest
from test_score import DAMAGES, FILES, PART, command, copied, first_part, small_blocks, unbroken, world  # noqa: F401  fixtures

from idecode_core.folder.detector import load_detector
from idecode_core.scale.judged import judge_scored


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"n": 1},
        {"n": 2, "epsilon": 0.3},
        {"epsilon": 0.5, "delta": 0.1},
        {"aggregate": "max", "epsilon": 0.2},
    ],
)
def test_stored_vectors_are_judged_as_the_detector_would(asked, world, unbroken):
    found = judge_scored(unbroken, **asked)
    stored = pq.read_table(unbroken)
    assert found["file"].to_pylist() == stored["file"].to_pylist()
    assert found["error"].equals(stored["error"])
    good = [i for i, error in enumerate(stored["error"].to_pylist()) if error is None]
    paths = [world / stored["file"][i].as_py() for i in good]
    expected = load_detector(world / "tiny", "cpu").detect(paths, **{"n": 3, **asked})
    for i, verdict in zip(good, expected, strict=True):
        row = {name: found[name][i].as_py() for name in ("is_ood", "p_value", "rank", "k")}
        assert row == {name: getattr(verdict, name) for name in row}
        assert found["score"][i].as_py() == pytest.approx(verdict.score)
    bad = stored["file"].to_pylist().index("pictures/b broken.png")
    assert [found[name][bad].as_py() for name in ("is_ood", "p_value", "rank", "score")] == [None] * 4


def test_judge_gives_csv_parquet_and_json_without_the_model(copied, command, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "idecode_core.folder.detector.load_detector", lambda *a: pytest.fail("model was loaded")
    )
    expected = judge_scored(copied, epsilon=0.5)
    flagged = sum(expected["is_ood"].drop_null().to_pylist())
    assert 0 < flagged < FILES
    for name in ("v.csv", "v.parquet"):
        status, _, err = command("judge", copied, "--epsilon", 0.5, "--out", tmp_path / name)
        assert (
            status,
            f"{flagged} of {FILES} files flagged at epsilon = 0.5; 1 more have no score" in err,
        ) == (1, True)
    assert pq.read_table(tmp_path / "v.parquet").equals(expected)
    table = pandas.read_csv(tmp_path / "v.csv")
    assert table["p_value"].dropna().tolist() == expected["p_value"].drop_null().to_pylist()
    assert table["file"].tolist() == expected["file"].to_pylist()
    _, text, _ = command("judge", copied, "--epsilon", 0.5)
    assert text == (tmp_path / "v.csv").read_text()
    _, text, _ = command("judge", copied, "--epsilon", 0.5, "--json")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["is_ood"] for line in lines] == expected["is_ood"].to_pylist()
    status, _, err = command("judge", copied, "--epsilon", 0.01)
    assert (status, "can never flag anything" in err) == (0, True)


def test_judge_writes_over_its_own_tables_only(copied, command, tmp_path):
    pq.write_table(pyarrow.table({"file": ["a"], "mine": [1]}), tmp_path / "mine.parquet")
    (tmp_path / "mine.csv").write_text("file,mine\na,1\n")
    (tmp_path / "torn.parquet").write_text("PAR1 and no more")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name in before:
        status, out, err = command("judge", copied, "--out", tmp_path / name)
        assert (status, out, "is not from this command, so it is not replaced" in err) == (2, "", True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    for name in ("v.csv", "v.parquet"):
        for epsilon in (0.5, 0.2):  # again into the same file
            assert command("judge", copied, "--epsilon", epsilon, "--out", tmp_path / name)[0] in (0, 1)
    assert pq.read_table(tmp_path / "v.parquet").equals(judge_scored(copied, epsilon=0.2))


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "a part that is gone"])
def test_judge_refuses_a_damaged_folder_in_one_sentence(damage, copied, command):
    DAMAGES[damage](copied)
    status, out, err = command("judge", copied, "--epsilon", 0.2)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "Traceback" not in err


def test_judge_says_what_it_cannot_do_in_one_sentence(copied, command, world, tmp_path):
    for words, sentence in (
        ([tmp_path], "holds no scores"),
        ([copied, "--n", 4], "n must lie between 1 and 3"),
        ([copied, "--n", 0], "n must lie between 1 and 3"),
        ([copied, "--epsilon", 2], "epsilon must lie strictly between 0 and 1"),
        ([copied, "--aggregate", "median"], "aggregate must be one of"),
        ([copied, "--out", tmp_path / "a.txt"], "ends in .csv or .parquet"),
        ([copied, "--out", copied / "a.parquet"], "would lie among the scored parts"),
        ([copied, "-d", "nowhere"], "No detector is called nowhere"),
    ):
        status, out, err = command("judge", *words)
        assert (status, out) == (2, "")
        assert sentence in err
    first_part(copied).unlink()
    status, _, err = command("judge", copied, "--epsilon", 0.2)
    assert f"{FILES + 1 - PART} of {FILES + 1} files have been scored, and are judged" in err
    # A detector with the same scorer that was calibrated again may judge, when it is named.
    _, text, _ = command("judge", copied, "--epsilon", 0.5, "-d", "other")
    assert text.count("\n") > FILES - PART
