"""The Certify page through Streamlit's AppTest, and the notebook that it hands out."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from idecode_core.cli.app import app as cli
from idecode_core.conformal.certify import certify
from idecode_core.conformal.groups import mondrian_p_values
from idecode_core.conformal.integrative import integrative_p_values
from idecode_core.files.names import SCORES_BYTES
from idecode_core.plots.histograms import Group, score_histograms
from idecode_core.plots.style import CALIBRATION
from idecode_core.report import to_csv
from idecode_core.report.guarantees import certified_export

PAGE = Path(__file__).parents[2] / "pages" / "certify.py"
NORMAL = np.random.default_rng(0).normal(size=100).round(3)
CSV = "text/csv"


def page(**state: object) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=60)
    for key, value in {"c_source": "Your scores", **state}.items():
        app.session_state[key] = value
    return app.run()


def test_the_page_opens_with_its_example() -> None:
    app = AppTest.from_file(str(PAGE), default_timeout=60).run()
    no_trouble(app)
    assert "clothing it had not seen" in words(app)


def as_csv(scores: np.ndarray) -> bytes:
    return ("score\n" + "\n".join(map(repr, scores.tolist()))).encode()


def words(app: AppTest) -> str:
    return "\n".join(e.value for e in [*app.header, *app.markdown, *app.info, *app.warning, *app.caption])


def no_trouble(app: AppTest) -> None:
    assert not app.exception
    assert [error.value for error in app.error] == []


def test_normal_scores_alone_give_a_threshold():
    app = page()
    assert "Bring a file" in words(app)
    app.file_uploader(key="certify_normal").set_value(("normal.csv", as_csv(NORMAL), CSV)).run()
    no_trouble(app)
    shown = float(app.header[0].value.split()[3])
    assert sorted(NORMAL.tolist())[-5] <= shown < sorted(NORMAL.tolist())[-4]  # flags the same of them
    assert len(f"{shown:g}".strip("-0.").replace(".", "")) <= 4  # and no digit more than that needs
    assert f"THRESHOLD = {sorted(NORMAL.tolist())[-5]!r}" in app.code[0].value
    app.segmented_control(key="c_sure").set_value("90%").run()
    limit = certify(NORMAL).threshold(0.05, delta=0.1)
    assert f"THRESHOLD = {limit!r}" in app.code[0].value
    assert "For 90 % of all calibration sets" in words(app)


def test_a_link_with_any_epsilon_is_followed_and_what_cannot_be_is_said():
    for link, epsilon, sentence in (("0.04619", 0.04619, ""), ("7", 0.05, "asks for epsilon = 7")):
        app = AppTest.from_file(str(PAGE), default_timeout=60)
        app.query_params["c_epsilon"], app.query_params["c_source"] = link, "Your scores"
        app.run()
        no_trouble(app)
        assert app.select_slider(key="c_epsilon").value == epsilon
        assert [sentence in element.value for element in app.warning] == ([True] if sentence else [])
        assert {box.proto.max_upload_size_mb for box in app.file_uploader} == {SCORES_BYTES // 2**20}


def test_new_scores_are_judged_and_a_wrong_sign_is_said():
    app = page()
    app.file_uploader(key="certify_normal").set_value(("normal.csv", as_csv(NORMAL), CSV))
    app.file_uploader(key="certify_new").set_value(("new.csv", as_csv(NORMAL[:10] + 9), CSV)).run()
    no_trouble(app)
    assert "**10 of 10** new scores are flagged" in words(app)
    assert not app.warning
    app.segmented_control(key="c_larger_is").set_value("normal").run()
    no_trouble(app)
    assert "Does a larger score mean strange here?" in app.warning[0].value


def test_the_user_s_id_stays_beside_its_score_in_the_table_and_the_file():
    app = page()
    app.file_uploader(key="certify_normal").set_value(("normal.csv", as_csv(NORMAL), CSV))
    new = b"id,score\nbolt-7,0.1\nbolt-9,99\nbolt-8,0.2\n"
    app.file_uploader(key="certify_new").set_value(("new.csv", new, CSV)).run()
    no_trouble(app)
    table = app.dataframe[0].value
    assert table["id"].tolist()[0] == "bolt-9"  # the strangest first
    assert dict(zip(table["id"], table["score"], strict=True)) == {"bolt-7": 0.1, "bolt-9": 99, "bolt-8": 0.2}
    figure = score_histograms([Group("normal", NORMAL, CALIBRATION)], 1.0)
    kept = {"id": ["bolt-7", "bolt-9", "bolt-8"]}
    export = certified_export(
        certify(NORMAL), ("a.csv", "b.csv"), NORMAL, np.array([0.1, 99, 0.2]), figure, "Look.", kept=kept
    )
    titles, first, *_ = to_csv(export.report).splitlines()
    assert (titles.split(",")[0], first.split(",")[0]) == ("id", "bolt-7")


def test_a_bad_file_costs_one_sentence_and_the_other_stays():
    app = page()
    app.file_uploader(key="certify_normal").set_value(("normal.csv", as_csv(NORMAL), CSV))
    app.file_uploader(key="certify_new").set_value(("new.csv", b"a,b\n1,2\n", CSV)).run()
    no_trouble(app)
    assert "has 2 columns" in app.warning[0].value
    assert app.header
    app.text_input(key="certify_column").set_value("1").run()  # the first column of both
    no_trouble(app)
    assert "of 1** new scores" in words(app)


def test_too_few_scores_say_how_many_are_needed():
    app = page()
    app.file_uploader(key="certify_normal").set_value(("normal.csv", b"1\n2\n3\n", CSV)).run()
    no_trouble(app)
    assert "k of at least 20" in app.warning[0].value
    assert "nothing is ever flagged" in words(app)
    assert "line" not in app.caption[0].value  # there is none


def test_the_example_flags_what_is_no_clothing_and_keeps_the_rate_on_clothing():
    app = page(c_source="An example")
    no_trouble(app)
    table = app.dataframe[0].value
    flagged = table["row"][table["verdict"] == "flagged"]
    assert (flagged <= 200).sum() <= 20  # clothing; 10 are expected and 21 or more have a chance below 0.001
    assert (flagged > 200).sum() >= 100


def table_of(**columns) -> bytes:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    return "\n".join(lines).encode()


def brought(known: bytes, new: bytes, **state: object) -> AppTest:
    app = page(**state)
    app.file_uploader(key="certify_normal").set_value(("normal.csv", known, CSV))
    return app.file_uploader(key="certify_new").set_value(("new.csv", new, CSV)).run()


def judged(app: AppTest) -> list[bool]:
    """In the order of the file."""
    table = app.dataframe[1].value.sort_values("row")
    return (table["verdict"] == "flagged").tolist()


@pytest.mark.parametrize(
    ("many", "words_said"),
    [("bh", "these very flags"), ("storey", "these very flags"), ("saffron", "proven for independent ones"),
     ("envelope", "chosen after looking"), ("shiryaev-roberts", "mean time to an alarm"), ("e-bh", "e\\-BH over 2 seeds")],
)  # fmt: skip
def test_new_scores_are_judged_together_or_as_a_stream_as_the_command_does(many, words_said, tmp_path):
    """The promise, what is not promised, the rows and the command that gives the same."""
    generator = np.random.default_rng(2)
    first = generator.normal(size=2_000)
    known = table_of(score=first, again=first + generator.normal(size=2_000) / 3)
    strange = np.where(np.arange(40) >= 20, 6.0, 0.0) + generator.normal(size=40)
    new = table_of(score=strange, again=strange + generator.normal(size=40) / 3)
    app = brought(known, new, c_many=many, c_epsilon=0.6 if many == "saffron" else 0.2)
    no_trouble(app)
    assert words_said in words(app)
    assert "ot promised" in words(app)
    command = app.code[0].value.split()
    assert command[:2] == ["idecode", "certify"]
    (tmp_path / "normal.csv").write_bytes(known)
    (tmp_path / "new.csv").write_bytes(new)
    shell = CliRunner()
    with contextlib.chdir(tmp_path):
        found = shell.invoke(cli, [*command[1:], "--json"])
    assert judged(app) == [json.loads(line)["is_ood"] for line in found.stdout.splitlines()]
    assert any(judged(app))


def test_groups_known_outliers_a_shift_and_folds_are_on_the_page():
    generator = np.random.default_rng(3)
    light, score = generator.normal(size=300), generator.normal(size=300)
    camera = np.array(["a", "b"])[np.arange(300) % 2]
    known = table_of(score=score, light=light, camera=camera)
    new = table_of(score=score[:50] + 0.1, light=light[:50] - 0.3, camera=camera[:50])
    app = brought(known, new, c_beside="groups")
    app.selectbox(key="c_groups").set_value("camera").run()
    no_trouble(app)
    assert "One threshold for all flags" in words(app)
    both = np.stack([score, light], axis=1)
    expected = mondrian_p_values(score, camera, score[:50] + 0.1, camera[:50]) < 0.05
    assert judged(app) == expected.tolist()
    app.selectbox(key="c_beside").set_value("outliers").run()
    strange = generator.normal((0, 5), size=(9, 2))
    file = table_of(score=strange[:, 0], light=strange[:, 1])
    app.file_uploader(key="certify_outliers").set_value(("strange.csv", file, CSV)).run()
    no_trouble(app)
    asked = np.stack([score[:50] + 0.1, light[:50] - 0.3], axis=1)
    assert judged(app) == (integrative_p_values(both, strange, asked) < 0.05).tolist()
    assert "9 known outliers help to read 2 scores" in words(app)
    assert "--outliers strange.csv" in app.code[0].value
    app.selectbox(key="c_beside").set_value("shifted_to").run()
    batch = table_of(score=score[:100], light=light[:100] - 0.4)
    app.file_uploader(key="certify_shifted_to").set_value(("winter.csv", batch, CSV)).run()
    no_trouble(app)
    assert "300 calibration points count as" in words(app)
    app.file_uploader(key="certify_shifted_to").set_value(
        ("far.csv", table_of(score=[0] * 50, light=[99] * 50), CSV)
    ).run()
    assert "too far from the calibration points" in app.warning[0].value
    app.selectbox(key="c_beside").set_value("").run()
    app.selectbox(key="c_many").set_value("bh").run()
    app.segmented_control(key="c_sure").set_value("90%").run()
    assert app.warning[0].value.startswith("How sure goes with How envelope")
