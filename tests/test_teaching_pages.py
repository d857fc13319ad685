"""The teaching pages, each alone: they run, they answer to every control, and their sentences tell the truth."""

import json
import re
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from idecode_core.plots.breaking import density
from idecode_core.simulate import SWITCHES, break_it, changing_stream, mixed_batch
from idecode_core.simulate.arrows import algorithm_1, draw_friends
from idecode_core.simulate.world import sample_points
from ui.learn.teaching import PLAN, PlanRow

PAGES = Path(__file__).parent.parent / "pages"
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
    return next(e.value for e in at.markdown if re.match(r"### :(orange|blue)\[", e.value)).replace(
        "\u00a0", " "
    )


def charts(at: AppTest) -> list[Any]:
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


@pytest.mark.parametrize("step", STEPS)
def test_each_step_of_how_it_works_shows_a_figure_a_caption_and_questions(step: str) -> None:
    at = open_page("how_it_works", step=step)
    assert charts(at)
    assert at.caption
    assert "Ask the class" in [expander.label for expander in at.expander]
    assert len(at.get("download_button")) == 4


def test_next_leads_through_all_steps_to_the_playground() -> None:
    at = open_page("how_it_works")
    seen = [at.subheader[0].value]
    for _ in STEPS[1:]:
        at.button(key="next").click().run()
        seen.append(at.subheader[0].value)
    at.button(key="next").click().run()
    assert len(set(seen)) == len(STEPS)
    assert at.slider(key="play_x").value == 7.0
    assert not at.exception


def test_a_link_that_cannot_be_followed_says_so_until_something_is_changed() -> None:
    at = open_page("how_it_works", step="3 Threshold", how_lean="999", how_epsilon="0.2", present="true")
    [notice] = [element.value.replace("\\", "") for element in at.warning]
    assert notice == "The link asks for how_lean = 999, which this page does not have; shown is **14**."
    assert at.run().warning
    at.slider(key="how_lean").set_value(20.0).run()
    assert not at.warning
    at = open_page("break_it", break_switch="Ties", break_n="7", break_predict="true")
    assert [element.value.replace("\\", "").split(",")[0] for element in at.warning] == [
        "The link asks for break_switch = Ties"
    ]


def test_rank_and_p_value_are_those_of_the_numbers_on_the_page() -> None:
    at = open_page("how_it_works", step="2 p-value", how_lean="10.5")
    leans = [float(word) for word in at.code[0].value.split()]
    by_hand = sum(lean >= 10.5 for lean in leans)
    assert len(leans) == 19
    assert f"\\frac{{{by_hand} + 1}}{{19 + 1}} = {(by_hand + 1) / 20:.3f}" in at.latex[0].value
    at = open_page("how_it_works", how_lean="10.5")
    assert f"{by_hand} of 19 friends" in verdict(at)


def test_moving_the_newcomer_out_flips_the_verdict() -> None:
    at = open_page("how_it_works", step="3 Threshold")
    assert "Not flagged" in verdict(at)
    at.slider(key="how_lean").set_value(40.0).run()
    assert verdict(at).startswith("### :orange[Flagged: p = 0.050 < ε = 0.1")


def test_an_epsilon_that_can_flag_nothing_is_explained() -> None:
    at = open_page("how_it_works", step="3 Threshold", how_lean="60.0", how_epsilon="0.05")
    assert "Not flagged" in verdict(at)
    assert "20 friends" in at.warning[0].value


def test_the_model_step_shows_the_arithmetic_of_one_turn() -> None:
    at = open_page("how_it_works", step="4 Model", how_lean="8.0", how_turn="47.0")
    assert "|60 - 47.0| = 13.0" in at.latex[0].value


def test_algorithm_1_on_the_page_is_that_of_the_library() -> None:
    at = open_page("how_it_works", step="6 Algorithm", how_lean="20.0", how_n="3", how_seed="4")
    friends = draw_friends(19, generator=np.random.default_rng(4))
    working = algorithm_1(friends, 20.0, 3, generator=np.random.default_rng(100_004))
    assert f"({working.rank} + 1) / (19 + 1) = {working.p_value:.3f}" in words(at)
    table = at.dataframe[0].value
    assert table["sum"][0] == pytest.approx(table.loc[0, ["error 1", "error 2", "error 3"]].sum())
    assert (table["counts"] == "yes").sum() == working.rank


def test_a_hidden_slider_keeps_its_value_from_step_to_step() -> None:
    at = open_page("how_it_works", step="3 Threshold")
    at.slider(key="how_epsilon").set_value(0.3).run()
    at.button(key="next").click().run()
    at.button(key="next").click().run()
    assert at.slider(key="how_epsilon").value == 0.3


def test_views_keep_their_values_while_another_is_shown() -> None:
    at = open_page("many_and_streams")
    at.slider(key="batch_q").set_value(0.2).run()
    at.button_group(key="view").set_value("A stream that changes").run()
    at.slider(key="stream_change").set_value(200).run()
    at.button_group(key="view").set_value("A batch of many").run()
    assert at.slider(key="batch_q").value == 0.2
    at.button_group(key="view").set_value("A stream that changes").run()
    assert at.slider(key="stream_change").value == 200


def test_drawing_again_moves_on_to_the_next_seed_and_changes_the_figure() -> None:
    at = open_page("how_it_works")
    before = charts(at)
    at.button(key="how_seed_next").click().run()
    assert at.number_input(key="how_seed").value == 10
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
        flagged[ncm] = verdict(at).startswith("### :orange[Flagged")
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
    assert re.search(r"### :orange\[(Broken|Blinded)", verdict(at))
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


def test_the_batch_never_confuses_its_two_rates() -> None:
    at = open_page("many_and_streams", batch_seed="3")
    result = mixed_batch(repeats=200, generator=np.random.default_rng(3))
    plain = [
        100 * rates[0].mean() for rates in (result.false_discovery_proportions, result.false_detection_rates)
    ]
    row = re.search(r"\| plain threshold \| ([\d.]+) % \| ([\d.]+) % \|", words(at))
    assert row is not None
    assert [float(value) for value in row.groups()] == pytest.approx(plain, abs=0.051)
    assert "false *discovery* rate" in words(at)
    assert "false *detection* rate" in words(at)


def test_a_batch_without_ood_points_is_no_accident() -> None:
    at = open_page("many_and_streams", batch_ood="0", batch_show="OOD found")
    assert "no OOD points to find" in at.info[0].value
    assert "none there" in words(at)


def test_too_few_calibration_points_for_the_batch_are_pointed_out() -> None:
    assert "at least 4,999" in open_page("many_and_streams", batch_size="500").warning[0].value


def test_the_stream_says_when_each_watcher_noticed() -> None:
    at = open_page("many_and_streams", view="A stream that changes", stream_change="300", stream_seed="2")
    run = changing_stream(
        length=1000, change_at=300, strangeness=1.0, mean_time=10_000.0, generator=np.random.default_rng(2)
    )
    assert f"alarm {run.delay('simple jumper')} points after the change" in verdict(at)
    assert f"alarm {run.delay('CUSUM')} points after the change" in verdict(at)


def test_a_stream_that_never_changes_speaks_of_no_change() -> None:
    at = open_page("many_and_streams", view="A stream that changes", stream_change="1000")
    assert "after the change" not in verdict(at)
    assert verdict(at).startswith("### :blue[")


def test_the_same_link_shows_the_same_simulation() -> None:
    one, same = (open_page("many_and_streams", batch_seed="7", batch_k="500") for _ in range(2))
    assert charts(one) == charts(same)
    assert charts(one) != charts(open_page("many_and_streams", batch_seed="8", batch_k="500"))


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


def test_only_the_line_that_asks_the_model_is_said_to_need_it() -> None:
    at = open_page("how_it_works", step="6 Algorithm")
    question = "Which lines need the model"
    assert question in words(at)
    assert "Only line 3" not in words(at)  # behind the button
    reveal(at, question)
    assert "Only line 3 asks M" in words(at)


def reveal(at: AppTest, question: str) -> None:
    """Press the button that stands under a question."""
    asked = next(element.value for element in at.markdown if question in element.value)
    at.button(key=f"reveal-{zlib.crc32(asked.strip('*').encode()):08x}").click().run()


@pytest.mark.parametrize(
    ("page", "query"), [("how_it_works", {"step": s}) for s in STEPS] + [("many_and_streams", {})]
)
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


def test_the_presenter_view_has_large_type_and_no_sidebar() -> None:
    plain, large = (open_page("how_it_works", **query) for query in ({}, {"present": "true"}))
    styles = ["".join(element.proto.body for element in at.get("html")) for at in (plain, large)]
    assert "stSidebar" not in styles[0]
    assert re.search(r'"stSidebar".*display: none', styles[1])
    sizes = [figure[0]["layout"]["font"]["size"] for figure in (charts(plain), charts(large))]
    assert sizes[1] > 1.3 * sizes[0]
