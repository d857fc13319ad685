"""`idecode certify` within groups, for a source that has shifted, and for many rows together."""

import json

import numpy as np
import pytest
from test_cli_certify import run

from idecode_core.conformal import p_values
from idecode_core.conformal.evidence import envelope
from idecode_core.conformal.groups import mondrian_p_values
from idecode_core.conformal.integrative import integrative_p_values
from idecode_core.conformal.multiple import benjamini_hochberg
from idecode_core.conformal.online import online_discoveries
from idecode_core.conformal.streams import online_p_values, shiryaev_roberts_alarms
from idecode_core.conformal.weighted import density_ratio, weighted_p_values, weighted_selection


@pytest.fixture
def tables(tmp_path):
    """Camera b is noisier; in winter it is darker, and dark pictures score higher."""
    generator = np.random.default_rng(0)

    def write(name, count, light, strange=0):
        cameras = np.array(["a", "b"])[generator.integers(0, 2, count)]
        shade = generator.normal(light, size=count)
        scores = generator.normal(size=count) * np.where(cameras == "a", 1, 3) - shade
        scores[:strange] += 12
        lines = [f"{s!r},{c},{x!r}" for s, c, x in zip(scores.tolist(), cameras, shade.tolist(), strict=True)]
        (tmp_path / name).write_text("score,camera,light\n" + "\n".join(lines) + "\n")
        return scores, cameras, shade

    known, new = write("normal.csv", 400, 0.0), write("new.csv", 60, -1.0, strange=6)
    winter = write("winter.csv", 200, -1.0)
    return tmp_path, known, new, winter


def rows_of(out: str) -> tuple[np.ndarray, np.ndarray]:
    found = [json.loads(line) for line in out.splitlines()]
    return np.array([row["p_value"] for row in found]), np.array([row["is_ood"] for row in found])


def rows(out: str) -> tuple[np.ndarray, np.ndarray]:
    assert all(json.loads(line)["threshold"] is None for line in out.splitlines())
    return rows_of(out)


def test_each_row_is_ranked_within_its_group_and_the_worst_treated_group_is_named_first(
    tables, capsys
) -> None:
    folder, known, new, _ = tables
    asked = (folder / "normal.csv", "--test", folder / "new.csv", "--column", "score", "--groups", "camera")
    p, flagged = rows(run(capsys, *asked, "--json")[1])
    expected = mondrian_p_values(known[0], known[1], new[0], new[1])
    np.testing.assert_allclose(p, expected, rtol=1e-12)
    np.testing.assert_array_equal(flagged, expected < 0.05)
    status, out, _ = run(capsys, *asked)
    pooled = p_values(known[0], new[0]) < 0.05
    rate = pooled[new[1] == "b"].mean()
    assert status == 1
    assert f"One threshold for all flags {rate:.1%} of b" in out
    assert "Flag scores above" not in out
    assert f"k = {np.sum(known[1] == 'b'):,}" in out
    p, flagged = rows(run(capsys, *asked, "--delta", 0.1, "--json")[1])
    assert (flagged <= (expected < 0.05)).all()


def test_a_shifted_source_is_weighted_and_its_price_is_said(tables, capsys) -> None:
    folder, known, new, winter = tables
    asked = (folder / "normal.csv", "--test", folder / "new.csv", "--column", "score")
    asked = (*asked, "--shifted-to", folder / "winter.csv")
    weights, own = density_ratio(known[2][:, None], winter[2][:, None], new[2][:, None])
    sides = (known[0], weights, new[0], own)
    p, flagged = rows(run(capsys, *asked, "--json")[1])
    np.testing.assert_allclose(p, weighted_p_values(*sides), rtol=1e-9)
    np.testing.assert_array_equal(flagged, p < 0.05)
    _, together = rows(run(capsys, *asked, "--many", "bh", "--epsilon", 0.2, "--json")[1])
    np.testing.assert_array_equal(together, weighted_selection(*sides, 0.2))
    assert "400 calibration points count as" in run(capsys, *asked)[1]
    far = folder / "far.csv"
    far.write_text("score,camera,light\n" + "0,a,-30\n" * 50)
    status, _, err = run(capsys, *asked[:-1], far)
    assert (status, "too far from the calibration points" in err) == (2, True)


def test_known_outliers_weigh_the_columns_and_the_gain_is_said(tables, capsys) -> None:
    folder, known, new, _ = tables
    strange = np.random.default_rng(1).normal((8.0, 4.0), size=(12, 2))
    (folder / "strange.csv").write_text(
        "score,light\n" + "\n".join(f"{a!r},{b!r}" for a, b in strange.tolist()) + "\n"
    )
    asked = (folder / "normal.csv", "--test", folder / "new.csv", "--column", "score")
    asked = (*asked, "--outliers", folder / "strange.csv")
    p, flagged = rows(run(capsys, *asked, "--json")[1])
    sides = [np.stack([one[0], one[2]], axis=1) for one in (known, new)]
    np.testing.assert_allclose(p, integrative_p_values(sides[0], strange, sides[1]), rtol=1e-12)
    np.testing.assert_array_equal(flagged, p < 0.05)
    assert "12 known outliers help to read 2 scores; the bound of 0.05 is kept." in run(capsys, *asked)[1]
    status, _, err = run(capsys, *asked[:-1], folder / "normal.csv")
    assert (status, "400 of the known outliers are calibration points too" in err) == (2, True)


@pytest.mark.parametrize("rule", ["bh", "lord++"])
def test_rows_are_judged_together(tables, capsys, rule) -> None:
    folder, known, new, _ = tables
    asked = (folder / "normal.csv", "--test", folder / "new.csv", "--column", "score", "--many", rule)
    p, flagged = rows(run(capsys, *asked, "--epsilon", 0.2, "--json")[1])
    expected = p_values(known[0], new[0])
    np.testing.assert_array_equal(p, expected)
    own = benjamini_hochberg(expected, 0.2) if rule == "bh" else online_discoveries(expected, 0.2, rule)
    np.testing.assert_array_equal(flagged, own)
    assert flagged.any()
    words = {"bh": "these very flags", "lord++": "proven for independent ones"}[rule]
    assert "Not promised: " in (out := run(capsys, *asked)[1])
    assert words in out


@pytest.mark.parametrize(("rule", "flags"), [("storey", 30), ("saffron", 0), ("bh", 0)])
def test_a_rule_is_said_to_flag_nothing_only_where_it_is_so(tmp_path, capsys, rule, flags) -> None:
    """All p-values are 1/10 and epsilon is 0.09; Storey's share of those that belong is 10/5 of 30, so its line is at 30 * 0.09 / 2."""
    for name, scores in (("nine.csv", range(9)), ("far.csv", [99] * 30)):
        (tmp_path / name).write_text("score\n" + "\n".join(map(str, scores)) + "\n")
    asked = (tmp_path / "nine.csv", "--test", tmp_path / "far.csv", "--many", rule, "--epsilon", 0.09)
    _, out, err = run(capsys, *asked)
    assert f"{flags} of 30 new scores are flagged" in out
    assert ("can never flag anything" in err) == (flags == 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--groups", "camera", "--shifted-to", "winter.csv"), "do not go together"),
        (("--groups", "nothing"), "has no column 'nothing'"),
        (("--many", "bh", "--delta", 0.1), "--delta goes with --many envelope"),
        (("--shifted-to", "bare.csv"), "has no column 'light'"),
        (("--shifted-to", "single.csv"), "weights are learned from its rows: expected at least 20, got 1"),
        (("--shifted-to", "winter.csv", "--many", "storey"), "each or bh"),
        (("--outliers", "winter.csv", "--groups", "camera"), "--groups and --outliers do not go together"),
        (("--outliers", "winter.csv", "--shifted-to", "winter.csv"), "do not go together"),
        (("--outliers", "winter.csv", "--delta", 0.1), "--delta goes with --many envelope"),
        (("--outliers", "winter.csv", "--many", "bh"), "--outliers goes with --many each"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(tables, capsys, monkeypatch, options, words) -> None:
    folder = tables[0]
    monkeypatch.chdir(folder)
    (folder / "bare.csv").write_text("score\n1\n2\n")
    (folder / "single.csv").write_text("score,light\n1,0\n")
    status, _, err = run(capsys, "normal.csv", "--test", "new.csv", "--column", "score", *options)
    assert status == 2
    assert words in err
    assert err.count("\n") == 1


def test_a_group_that_was_never_calibrated_and_empty_groups_are_refused(tables, capsys) -> None:
    folder = tables[0]
    for text, words in (
        ("1,c,0", "group c has no calibration points"),
        ("1,,0", "1 of 1 rows have no group"),
    ):
        (folder / "one.csv").write_text(f"score,camera,light\n{text}\n")
        asked = (
            folder / "normal.csv",
            "--test",
            folder / "one.csv",
            "--column",
            "score",
            "--groups",
            "camera",
        )
        status, _, err = run(capsys, *asked)
        assert (status, words in err) == (2, True), err
    status, _, err = run(capsys, folder / "normal.csv", "--column", "score", "--groups", "camera")
    assert "give them with --test" in err


def test_few_rows_in_folds_get_cross_conformal_p_values_and_the_looser_bound_is_said(
    tmp_path, capsys
) -> None:
    """Each new row is compared with each fold by that fold's own model; counted by hand."""
    generator = np.random.default_rng(3)
    known, new = generator.normal(size=24), generator.normal(size=(5, 3))
    new[-1] += 9
    fold = np.repeat(["x", "y", "z"], 8)
    lines = [f"{s!r},{f}" for s, f in zip(known.tolist(), fold, strict=True)]
    (tmp_path / "few.csv").write_text("score,fold\n" + "\n".join(lines) + "\n")
    lines = [",".join([f"id{i}", *map(repr, row)]) for i, row in enumerate(new.tolist())]
    (tmp_path / "new.csv").write_text("name,x,y,z\n" + "\n".join(lines) + "\n")
    asked = (tmp_path / "few.csv", "--test", tmp_path / "new.csv", "--column", "score", "--folds", "fold")
    p, flagged = rows(run(capsys, *asked, "--json")[1])
    place = {"x": 0, "y": 1, "z": 2}
    by_hand = [
        (1 + sum(s >= row[place[f]] for s, f in zip(known, fold, strict=True))) / 25 for row in new.tolist()
    ]
    np.testing.assert_allclose(p, by_hand, rtol=1e-12)
    assert flagged.tolist() == [one < 0.05 for one in by_hand]
    assert flagged[-1]
    out = run(capsys, *asked)[1]
    assert "3 folds of 24 points: one that belongs is flagged with probability at most 0.248, not 0.05" in out
    status, _, told = run(capsys, *asked, "--many", "bh")
    assert status == 2
    assert "--folds goes with --many each" in told


def test_the_envelope_says_how_many_flags_may_be_false_at_every_cut(tables, capsys) -> None:
    folder, known, new, _ = tables
    asked = (folder / "normal.csv", "--test", folder / "new.csv", "--column", "score", "--many", "envelope")
    asked = (*asked, "--epsilon", 0.4, "--delta", 0.2)
    found = [json.loads(line) for line in run(capsys, *asked, "--json")[1].splitlines()]
    p = p_values(known[0], new[0])
    share = envelope(400, 60, 0.2, generator=np.random.default_rng(0)).false_discoveries(p)
    np.testing.assert_array_equal([row["false_share"] for row in found], share)
    np.testing.assert_array_equal([row["is_ood"] for row in found], p <= p[share <= 0.4].max(initial=0.0))
    assert any(row["is_ood"] for row in found)
    assert "With probability 0.8 at most" in run(capsys, *asked)[1]
    assert "No cut keeps" in run(capsys, *asked[:-3], 1e-6)[1]


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (("1", "2", "2"), ""),
        (("2026-01-01", "2026-01-02T10:00", "2026-01-03"), ""),
        (("1", "3", "2"), "line 4 goes back in time, from 3.0 to 2.0"),
        (("1", "soon", "2"), "line 3: the time 'soon' cannot be compared"),
        (("1", "2026-01-01", "2"), "line 3: the time '2026-01-01' cannot be compared"),
        (("1", "", "2"), "line 3: the time"),
    ],
)
def test_a_stream_that_goes_back_in_time_is_refused(tables, capsys, times, words) -> None:
    folder = tables[0]
    (folder / "stream.csv").write_text("score,time\n" + "".join(f"0.5,{time}\n" for time in times))
    asked = (folder / "normal.csv", "--test", folder / "stream.csv", "--column", "score", "--time", "time")
    status, _, err = run(capsys, *asked, "--many", "lord++")
    assert (status, words in err, err.count("\n")) == ((2, True, 1) if words else (0, True, 0))
    assert "--time goes with --many lord++" in run(capsys, *asked)[2]


def test_a_stream_has_alarms_where_it_changes_and_at_most_epsilon_of_the_rows_are_false_ones(
    tmp_path, capsys
) -> None:
    generator = np.random.default_rng(6)
    known, stream = generator.normal(size=200), generator.normal(size=120) + 4 * (np.arange(120) >= 60)
    for name, side in (("known.csv", known), ("stream.csv", stream)):
        np.savetxt(tmp_path / name, -side, header="score", comments="", fmt="%.17g")
    asked = (tmp_path / "known.csv", "--test", tmp_path / "stream.csv", "--many", "shiryaev-roberts")
    asked = (*asked, "--epsilon", 0.002, "--larger-is", "normal")
    p, flagged = rows(run(capsys, *asked, "--json")[1])
    expected = online_p_values(known, stream, generator=np.random.default_rng(0))
    np.testing.assert_allclose(p, expected, rtol=1e-12)
    alarms = shiryaev_roberts_alarms(expected, mean_time=500).alarms
    np.testing.assert_array_equal(np.flatnonzero(flagged), alarms)
    assert 60 <= alarms[0] < 80
    _, out, err = run(capsys, *asked)
    assert err == ""  # though no p-value of 200 rows lies below 0.002
    assert f"the first comes at row {alarms[0] + 1}" in out
    assert "at least 500 rows" in out
    assert "nothing is proven" in run(capsys, *asked, "--delta", 0.1)[2]


def test_one_known_outlier_is_not_tried_on_itself(tables, capsys) -> None:
    folder = tables[0]
    (folder / "strange.csv").write_text("score,light\n9,4\n")
    asked = (folder / "normal.csv", "--test", folder / "new.csv", "--column", "score")
    out = run(capsys, *asked, "--outliers", folder / "strange.csv")[1]
    assert "1 known outlier helps to read 2 scores" in out
    assert "One alone leaves none to try it on." in out
