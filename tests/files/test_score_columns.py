"""A user's own scores: which columns are used, and what is said when the numbers cannot be right."""

import numpy as np

from idecode_core.conformal.calibration import Calibration
from idecode_core.files.archives import File
from idecode_core.files.tables import read_table
from idecode_core.folder.shelf import ScoreSet
from idecode_core.quality.metrics import auroc_interval
from idecode_core.quality.side_by_side import cautions, columns_used, counting_columns
from idecode_core.quality.strength import operating_point

RNG = np.random.default_rng(0)


def test_titles_of_columns_are_read_where_there_are_some():
    assert read_table(File("a.csv", '"draw, first",b\n1,2\n'.encode("utf-8-sig"))).titles == (
        "draw, first",
        "b",
    )
    assert read_table(File("a.csv", b"\n\n1;2\n")).titles == ()
    assert read_table(File("a.csv", b"a.png,1.5\nb.png,2\n")).titles == (), "the first point is no title"
    assert read_table(File("a.csv", b",0,1\n0,0.5,0.1\n")).titles == ("", "0", "1"), (
        "as pandas writes a frame"
    )


def test_the_columns_that_n_draws_use_are_named():
    assert columns_used("ood.npy", (), 5, 5) == "ood.npy: columns 1, 2, 3, 4, 5"
    assert columns_used("id.csv", ("score",), 1, 1) == "id.csv: column score"
    assert "a to t of 30" in columns_used("id.csv", tuple("abcdefghijklmnopqrstuvwxyzabcd"), 30, 20)


def test_a_column_that_counts_the_rows_is_noticed():
    scores = RNG.random((50, 3))
    scores[:, 1] = np.arange(1, 51)
    assert counting_columns(scores) == [1]
    assert counting_columns(RNG.random((50, 3))) == []
    assert counting_columns(np.array([[0.0], [1.0]])) == [], "two rows may well be 0 and 1"


def test_a_sound_result_has_no_caution_and_a_doubtful_one_says_why():
    assert cautions({"iD points": 200, "OOD points": 100}, 0.9, (0.88, 0.92), None) == []
    interval = auroc_interval([RNG.random(8)], [RNG.random(200)])
    [small] = cautions({"iD points": 8, "OOD points": 200}, 0.6, interval, None)
    assert "Only 8 iD points" in small
    assert f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}" in small
    [below] = cautions({"iD points": 200, "OOD points": 100}, 0.31, (0.2, 0.4), None)
    assert "AUROC 31.0 is below 50" in below


def test_iD_points_that_are_all_flagged_are_noticed():
    known = ScoreSet("id", "iD", False, RNG.random((40, 3)) + 9)
    strange = ScoreSet("ood", "OOD", True, RNG.random((50, 3)))
    point = operating_point(Calibration(RNG.random((60, 3))), known, strange, 3, 0.05)
    [said] = cautions({}, 0.7, (0.6, 0.8), point)
    assert said.startswith("All 40 iD points are flagged at epsilon = 0.05")
