"""The teaching pages, each alone: they run, they answer to every control, and their sentences tell the truth."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from idecode_core.folder.detector import load_detector
from idecode_core.image.sets import load_images
from lessons.breaking import SWITCHES
from lessons.plan import PLAN, PlanRow
from ui.frame.samples import png
from ui.learn.moving_lesson import NUMBERS

PAGES = Path(__file__).parents[2] / "pages"
CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
PATIENCE = 240
STEPS = ("1 Rank", "2 p-value", "3 Threshold", "4 Model", "5 Draws", "6 Algorithm")


def open_page(name: str, **query: str) -> AppTest:
    at = AppTest.from_file(str(PAGES / f"{name}.py"), default_timeout=PATIENCE)
    at.query_params.update(query)
    at.run()
    assert not at.exception
    return at


def words(at: AppTest) -> str:
    """All text on the page."""
    return "\n".join(element.value for element in (*at.title, *at.markdown, *at.caption))


def lesson(at: AppTest) -> dict[str, Any]:
    """What the page tells the lesson, or the strip of the presenter, in the browser (tests/lessons/ tries the lesson itself)."""
    told = [json.loads(component.proto.json or "null") for component in at.get("bidi_component")]
    [found] = [data for data in told if data]  # a button without data may stand beside it
    return dict(found)


@pytest.mark.parametrize("step", STEPS)
def test_each_step_of_how_it_works_shows_the_lesson_at_that_step(step: str) -> None:
    at = open_page("how_it_works", step=step)
    assert lesson(at)["step"] == int(step[0])


def test_next_leads_through_all_steps_to_the_playground() -> None:
    at = open_page("how_it_works")
    seen = [lesson(at)["step"]]
    for _ in STEPS[1:]:
        at.button(key="next").click().run()
        seen.append(lesson(at)["step"])
    at.button(key="next").click().run()
    assert lesson(at)["world"]["name"].startswith("sneaker")
    at.button(key="next").click().run()
    assert seen == [1, 2, 3, 4, 5, 6]
    assert (lesson(at)["step"], lesson(at)["values"]["x"]) == (11, 7)
    assert not at.exception


def test_a_link_that_cannot_be_followed_says_so_until_something_is_changed() -> None:
    at = open_page("how_it_works", step="3 Threshold", how_lean="999", how_epsilon="0.2", present="true")
    [notice] = [element.value.replace("\\", "") for element in at.warning]
    assert notice == "The link asks for how_lean = 999, which this page does not have; shown is **14**."
    assert at.run().warning
    at.session_state["how_lean"] = 20.0
    assert not at.run().warning
    at = open_page("break_it", break_switch="Ties", break_n="7", break_predict="true")
    assert [element.value.replace("\\", "").split(",")[0] for element in at.warning] == [
        "The link asks for break_switch = Ties"
    ]


def test_numbers_of_the_lesson_come_from_the_link_and_go_back_to_it() -> None:
    at = open_page(
        "how_it_works", step="3 Threshold", how_lean="20.5", how_n="3", how_seed="4", how_turn="47.0"
    )
    start = {name: number["start"] for name, number in NUMBERS["how"].items()}
    assert lesson(at)["values"] == {**start, "lean": 20.5, "n": 3, "seed": 4}
    assert {key: value for [key, [value]] in link(at).items() if key.startswith("how_")} == {
        "how_lean": "20.5",
        "how_n": "3",
        "how_seed": "4",
        "how_turn": "47.0",
    }
    at.session_state["how_lean"] = NUMBERS["how"]["lean"]["start"]
    assert "how_lean" not in link(at.run())  # what is as at the start is left out
    at.button(key="next").click().run()
    assert lesson(at)["values"]["n"] == 3


def link(at: AppTest) -> dict[str, list[str]]:
    return {key: value if isinstance(value, list) else [value] for key, value in at.query_params.items()}


@pytest.mark.parametrize(
    ("name", "text"), [("lean", "-61"), ("epsilon", "0"), ("n", "2.5"), ("seed", "nan"), ("turn", "inf")]
)
def test_a_number_that_the_lesson_does_not_have_is_refused_with_a_sentence(name: str, text: str) -> None:
    at = open_page("how_it_works", **{f"how_{name}": text})
    assert lesson(at)["values"][name] == NUMBERS["how"][name]["start"]
    assert f"how_{name} = {text}" in at.warning[0].value.replace("\\", "")


def test_a_new_link_goes_before_what_was_dragged_and_an_old_one_does_not() -> None:
    at = open_page("how_it_works", how_lean="20.0")
    version = lesson(at)["version"]
    at.session_state["how_lean"] = 33.0  # as the lesson's callback does
    at.run()
    assert lesson(at)["version"] == version
    assert lesson(at)["values"]["lean"] == 33.0
    at.query_params["how_lean"] = "5"
    at.run()
    assert lesson(at)["values"]["lean"] == 5.0
    assert lesson(at)["version"] > version


def test_the_shoe_goes_through_the_lines_with_the_p_values_of_the_library() -> None:
    """Computed another way: the detector judges the bundled picture from its pixels, and sums are counted by hand."""
    told = lesson(open_page("how_it_works", step="7 Picture"))["world"]
    detector = load_detector(CHECKPOINTS / "fashion-rotations")
    shoe = load_images("fashion-sample").x[1]
    for n in (1, 5, 20):
        [verdict] = detector.detect([shoe], n=n, epsilon=0.1)
        sums = detector.calibration.score_vectors[:, :n].sum(axis=1)
        by_n = told["by_n"][n - 1]
        assert (by_n["p"], by_n["rank"]) == (verdict.p_value, verdict.rank)
        assert sum(by_n["counts"]) == told["k"] == sums.size
        for percent in (1, 5, 50):  # flagged is what lies beyond the threshold
            cut = by_n["thresholds"][percent - 1]
            assert (
                (np.sum(sums > cut) + 1) / (sums.size + 1)
                <= percent / 100
                <= (np.sum(sums >= cut) + 1) / (sums.size + 1) + 1e-9
            )
    assert len(told["draws"]) == len(told["scores"]) == 20
    assert told["scores"][:5] == pytest.approx(detector.score_vectors([shoe], n=5)[0])


def test_the_picture_step_waits_for_a_photograph_and_refuses_what_is_none() -> None:
    at = open_page("how_it_works", step="7 Picture", how_newcomer="My photograph")
    assert not any(component.proto.json for component in at.get("bidi_component"))
    at.file_uploader(key="own_photograph").set_value(("cat.png", b"no picture", "image/png")).run()
    assert not at.exception
    assert "cat.png" in at.warning[0].value.replace("\\", "")
    photograph = png(load_images("photos-sample").x[0])
    at.file_uploader(key="own_photograph").set_value(("temple.png", photograph, "image/png")).run()
    assert lesson(at)["world"]["name"] == "temple.png"


def test_views_keep_their_values_while_another_is_shown() -> None:
    at = open_page("many_and_streams", batch_q="0.2", batch_k="500")
    assert lesson(at)["values"] == {
        **{name: number["start"] for name, number in NUMBERS["batch"].items()},
        "q": 0.2,
        "k": 500,
    }
    at.query_params["stream_martingale"] = "mixture"
    at.button_group(key="view").set_value("A stream that changes").run()
    assert (lesson(at)["step"], lesson(at)["values"]["martingale"]) == (9, "mixture")
    at.button_group(key="view").set_value("A batch of many").run()
    assert (lesson(at)["step"], lesson(at)["values"]["q"]) == (8, 0.2)


def test_a_choice_that_the_lesson_does_not_have_is_refused_with_a_sentence() -> None:
    at = open_page("many_and_streams", batch_k="123", view="A batch of many")
    assert lesson(at)["values"]["k"] == NUMBERS["batch"]["k"]["start"]
    assert "batch_k = 123" in at.warning[0].value.replace("\\", "")


def test_the_playground_keeps_typed_numbers_and_a_place_beyond_the_usual_line_in_the_link() -> None:
    at = open_page(
        "how_it_works", step="Playground", play_shape="My own numbers", play_points="1, 20 30", play_x="29.5"
    )
    values = lesson(at)["values"]
    assert (lesson(at)["step"], values["points"], values["x"]) == (11, "1, 20 30", 29.5)
    assert not at.warning


def test_a_vote_may_be_left_out_by_the_link_and_the_switch_is_named_by_its_title() -> None:
    at = open_page("break_it", break_predict="false", break_switch=SWITCHES["strict_ties"].title)
    assert lesson(at)["step"] == 10
    assert (lesson(at)["values"]["predict"], lesson(at)["values"]["switch"]) == (
        "false",
        "Ties with a strict comparison",
    )


@pytest.mark.parametrize(
    "row",
    [row for row in PLAN if row.page in ("how_it_works", "break_it", "many_and_streams")],
    ids=lambda row: row.label,
)
def test_each_row_of_the_plan_names_a_page_and_a_state_that_it_has(row: PlanRow) -> None:
    at = open_page(row.page, **row.state)
    for key, value in row.state.items():
        assert type(at.session_state[key])(value) == at.session_state[key]


def test_the_plan_fills_forty_five_minutes_without_a_gap() -> None:
    ends = [tuple(map(int, row.minutes.split(" to "))) for row in PLAN]
    assert (ends[0][0], ends[-1][1]) == (0, 45)
    assert all(one[1] == two[0] for one, two in pairwise(ends))


def test_the_documentation_has_the_same_plan() -> None:
    text = (PAGES.parent / "docs" / "teach.md").read_text("utf-8")
    rows = [
        re.sub(r"\[(.*?)\]\(.*?\)| \(app, .*?\)", r"\1", line)
        for line in text.splitlines()
        if re.match(r"\| \d", line)
    ]
    assert rows == [f"| {row.minutes} | {row.label} | {row.todo} |" for row in PLAN]


def shown_by_presenter(page: str, **query: str) -> AppTest:
    def script(page: str) -> None:
        from ui.learn.class_plan import present

        present(page)

    at = AppTest.from_function(script, args=(page,), default_timeout=PATIENCE)
    at.query_params.update(query)
    return at.run()


def test_the_presenter_view_has_no_sidebar_and_says_where_in_the_plan_it_is() -> None:
    plain, large = (shown_by_presenter("inspect", **query) for query in ({}, {"present": "true"}))
    styles = ["".join(element.proto.body for element in at.get("html")) for at in (plain, large)]
    assert "stSidebar" not in styles[0]
    assert re.search(r'"stSidebar"[^{}]*\{ display: none', styles[1])
    assert not plain.get("bidi_component")
    assert lesson(large)["words"].startswith(f"{len(PLAN)} of {len(PLAN)} · 41 to 45 min · Inspect: ")
    assert (lesson(large)["first"], lesson(large)["last"]) == (False, True)


@pytest.mark.parametrize(
    ("page", "query", "row"),
    [
        ("break_it", {"plan": "9"}, 10),
        ("break_it", {"plan": "99"}, 9),
        ("how_it_works", {"step": "5 Draws"}, 6),
        ("attack_lab", {}, 1),
    ],
)
def test_the_row_of_the_plan_is_the_links_else_the_one_most_like_what_is_shown(
    page: str, query: dict[str, str], row: int
) -> None:
    at = shown_by_presenter(page, present="true", **query)
    assert lesson(at)["words"].startswith(f"{row} of {len(PLAN)} · ")
    assert ("Back to the plan" in lesson(at)["words"]) is (page == "attack_lab")


def test_a_page_beside_the_plan_leads_back_to_the_row_that_was_shown() -> None:
    at = shown_by_presenter("attack_lab", present="true", plan="9")
    at.query_params.clear()
    at.query_params["present"] = "true"
    assert lesson(at.run())["words"].startswith(f"10 of {len(PLAN)} · Back to the plan at ")


def test_the_plan_has_the_goals_of_the_worksheet_and_offers_it() -> None:
    at = open_page("how_it_works")
    sheet = (Path(__file__).parents[2] / "lessons" / "worksheet.html").read_text("utf-8")
    goals = re.search(r'<ul id="goals">(.*?)</ul>', sheet, re.DOTALL)
    assert goals is not None
    for goal in re.findall(r"<li>(.*?)</li>", goals[1]):
        assert f"- {goal}" in words(at)
    assert goals[1].count("<li>") >= 4
    labels = [button.proto.label for button in at.get("download_button")]
    assert labels == ["Worksheet with solutions and exit quiz", "The lesson as one page, without a server"]
