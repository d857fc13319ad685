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
from lessons.breaking import SWITCHES, break_it, sample_points
from lessons.figures import density
from lessons.plan import PLAN, PlanRow
from ui.frame.samples import png
from ui.learn.moving_lesson import BATCH, NUMBERS

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
    """All text on the page, with ordinary spaces."""
    elements = (
        *at.title,
        *at.subheader,
        *at.markdown,
        *at.caption,
        *at.info,
        *at.warning,
        *at.error,
        *at.latex,
    )
    return "\n".join(element.value for element in elements).replace("\u00a0", " ")


def verdict(at: AppTest) -> str:
    """The coloured sentence."""
    return next(e.value for e in at.markdown if re.match(r"## :(orange|blue)\[", e.value)).replace(
        "\u00a0", " "
    )


def charts(at: AppTest) -> list[Any]:
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


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
    assert at.slider(key="play_x").value == 7.0
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
    start = {name: number.start for name, number in NUMBERS.items()}
    assert lesson(at)["values"] == {**start, "lean": 20.5, "n": 3, "seed": 4}
    assert {key: value for [key, [value]] in link(at).items() if key.startswith("how_")} == {
        "how_lean": "20.5",
        "how_n": "3",
        "how_seed": "4",
        "how_turn": "47.0",
    }
    at.session_state["how_lean"] = NUMBERS["lean"].start
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
    assert lesson(at)["values"][name] == NUMBERS[name].start
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
        **{name: number.start for name, number in BATCH.items()},
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
    assert lesson(at)["values"]["k"] == BATCH["k"].start
    assert "batch_k = 123" in at.warning[0].value.replace("\\", "")


def test_drawing_again_moves_on_to_the_next_seed_and_changes_the_figure() -> None:
    at = open_page("how_it_works", step="Playground")
    before = charts(at)
    at.button(key="play_seed_next").click().run()
    assert at.number_input(key="play_seed").value == 1
    assert charts(at) != before


def test_two_bumps_show_that_any_score_is_valid_but_not_every_score_is_useful() -> None:
    flagged = {}
    for ncm in ("Distance from the middle", "Distance to the nearest neighbours"):
        at = open_page(
            "how_it_works",
            step="Playground",
            play_shape="Two bumps",
            play_k="200",
            play_ncm=ncm,
            play_x="5.0",
        )
        assert at.slider(key="play_x").value == 5.0
        flagged[ncm] = verdict(at).startswith("## :orange[Flagged")
    assert flagged == {"Distance from the middle": False, "Distance to the nearest neighbours": True}


def test_the_playground_takes_own_numbers_and_refuses_words_with_a_sentence() -> None:
    at = open_page(
        "how_it_works", step="Playground", play_shape="My own numbers", play_points="1, 2, 3", play_x="9.0"
    )
    assert "0 of 2 points are at least as strange" in verdict(at)
    at.text_input(key="play_points").set_value("one, two").run()
    assert not at.exception
    assert "must be numbers" in at.error[0].value


def test_a_newcomer_beyond_the_end_of_a_shorter_line_is_moved_to_it() -> None:
    at = open_page(
        "how_it_works", step="Playground", play_shape="My own numbers", play_points="1, 20, 30, 40"
    )
    at.slider(key="play_x").set_value(40.0).run()
    at.selectbox(key="play_shape").set_value("One bump").run()
    assert not at.exception
    assert at.slider(key="play_x").value == 10.0


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_shows_what_it_breaks_beside_the_intact_run_and_says_why(switch: str) -> None:
    at = open_page("break_it", break_predict="false")
    at.radio(key="break_switch").set_value(switch).run()
    assert not at.exception
    intact, _, broken, _ = charts(at)
    heights = [np.asarray(_numbers(figure["data"][0]["y"])) for figure in (intact, broken)]
    assert np.abs(heights[0] - heights[1]).max() > 0.25  # of the uniform share
    assert re.search(r"## :orange\[(Broken|Blinded)", verdict(at))
    assert SWITCHES[switch].why in words(at)
    result = break_it(switch, k=100, n=5, repeats=200, generator=np.random.default_rng(0))
    shown = [float(rate) for rate in re.findall(r"\*\*([\d.]+) %\*\* false alarms", words(at))]
    rates = [run.mean_false_detection_rate(0.05) for run in (result.intact, result.broken)]
    assert shown == pytest.approx([100 * rate for rate in rates], abs=0.051)


def _numbers(values: Any) -> Any:
    """A list of numbers out of a figure's JSON, which may hold them in binary."""
    if isinstance(values, dict):
        import base64

        return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
    return values


def test_naive_fisher_with_one_draw_breaks_nothing() -> None:
    at = open_page("break_it", break_n="1", break_predict="false")
    at.radio(key="break_switch").set_value("naive_fisher").run()
    assert "Nothing to see" in verdict(at)


@pytest.mark.parametrize("switch", ["shared_draw", "contaminated_calibration"])
def test_the_figures_of_a_switch_wait_for_a_vote_and_the_vote_is_answered(switch: str) -> None:
    at = open_page("break_it", break_switch=SWITCHES[switch].title)
    assert charts(at) == []
    assert "Before you look" in at.button_group(key=f"vote_{switch}").label
    result = break_it(switch, k=100, n=5, repeats=200, generator=np.random.default_rng(0))
    rates = [run.mean_false_detection_rate(0.05) for run in (result.intact, result.broken)]
    truth, lie = ("More", "Fewer") if rates[1] > rates[0] else ("Fewer", "More")
    at.button_group(key=f"vote_{switch}").set_value(truth).run()
    assert len(charts(at)) == 4
    assert f"You said: {truth.lower()}. That is right." in words(at)
    at.button_group(key=f"vote_{switch}").set_value(lie).run()
    assert f"It is: {truth.lower()}." in words(at)
    other = "naive_fisher"
    at.radio(key="break_switch").set_value(other).run()
    assert charts(at) == []  # each switch has a vote of its own


def test_under_ties_the_sentence_agrees_with_the_histogram() -> None:
    run = break_it("strict_ties", k=100, n=5, repeats=200, generator=np.random.default_rng(0)).intact
    assert np.abs(density(run.p_values) - 1).max() > 1  # bars stand apart: flat would be a lie
    for p in np.linspace(
        0.01, 1, 100
    ):  # and what the sentence says instead; 20,000 p-values that tie in each repeat
        assert np.mean(run.p_values <= p) <= p + 0.01
    at = open_page("break_it", break_switch=SWITCHES["strict_ties"].title, break_predict="false")
    captions = [caption.value for caption in at.caption if caption.value.startswith("p-values of iD points")]
    assert len(captions) == 2
    for caption in captions:
        assert "Flat" not in caption
        assert "no more than a share p" in caption
    at.radio(key="break_switch").set_value("shared_draw").run()
    assert "Flat at the dashed line is right" in words(at)


def test_the_caption_of_break_it_knows_the_world_it_speaks_of() -> None:
    at = open_page("break_it", break_predict="false")
    points = sample_points(2, generator=np.random.default_rng(0))
    assert f"A toy detector in {points.shape[1]} dimensions" in words(at)


@pytest.mark.parametrize(("page", "query"), [("how_it_works", {"step": "Playground"})])
def test_every_question_has_a_button_of_its_own_that_reveals_and_hides_the_answer(page, query) -> None:
    at = open_page(page, **query)
    buttons = [button.key for button in at.button if str(button.key).startswith("reveal-")]
    assert len(buttons) >= 2
    before = len(at.caption)
    at.button(key=buttons[0]).click().run()
    assert len(at.caption) == before + 1
    assert [at.button(key=key).label for key in buttons[:2]] == ["Hide", "Reveal"]
    at.button(key=buttons[0]).click().run()
    assert len(at.caption) == before


@pytest.mark.parametrize("row", [row for row in PLAN if row.page != "inspect"], ids=lambda row: row.label)
def test_each_row_of_the_plan_names_a_page_and_a_state_that_it_has(row: PlanRow) -> None:
    at = open_page(row.page, **row.state)
    for key, value in row.state.items():
        shown = at.session_state[key]
        shown = SWITCHES[shown].title if key == "break_switch" else shown
        assert type(shown)(value) == shown


def test_the_plan_fills_forty_five_minutes_without_a_gap() -> None:
    ends = [tuple(map(int, row.minutes.split(" to "))) for row in PLAN]
    assert (ends[0][0], ends[-1][1]) == (0, 45)
    assert all(one[1] == two[0] for one, two in pairwise(ends))


def shown_by_presenter(page: str, **query: str) -> AppTest:
    def script(page: str) -> None:
        from ui.learn.present import present

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
    assert lesson(large)["words"].startswith(f"{len(PLAN)} of {len(PLAN)} · 43 to 45 min · Inspect: ")
    assert (lesson(large)["first"], lesson(large)["last"]) == (False, True)


@pytest.mark.parametrize(
    ("page", "query", "row"),
    [
        ("break_it", {"plan": "8"}, 9),
        ("break_it", {"plan": "99"}, 8),
        ("how_it_works", {"step": "5 Draws"}, 6),
        ("guarantee", {}, 1),
    ],
)
def test_the_row_of_the_plan_is_the_links_else_the_one_most_like_what_is_shown(
    page: str, query: dict[str, str], row: int
) -> None:
    at = shown_by_presenter(page, present="true", **query)
    assert lesson(at)["words"].startswith(f"{row} of 13 · ")
    assert ("Back to the plan" in lesson(at)["words"]) is (page == "guarantee")


def test_figures_are_larger_for_a_projector_and_those_of_break_it_stand_side_by_side() -> None:
    plain, large = (
        open_page("how_it_works", step="Playground", **query) for query in ({}, {"present": "true"})
    )
    large.session_state["present"] = True
    large.run()
    sizes = [figure[0]["layout"]["font"]["size"] for figure in (charts(plain), charts(large))]
    assert sizes[1] > 1.3 * sizes[0]


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
