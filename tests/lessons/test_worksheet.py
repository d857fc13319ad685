"""The worksheet's solutions are those of the library, and its exit quiz has one key for each question."""

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from idecode_core import conformal

PAGE = Path(__file__).parents[2] / "lessons" / "worksheet.html"
TEXT = PAGE.read_text("utf-8")


def table(name: str) -> list[list[float]]:
    """The numbers of a table, row by row; headings are left out."""
    [found] = re.findall(rf'<table id="{name}">(.*?)</table>', TEXT, re.DOTALL)
    rows = [re.findall(r"<td>([\d.]+)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", found, re.DOTALL)]
    return [[float(cell) for cell in row] for row in rows if row]


def answers(kind: str) -> dict[float, float]:
    """What the solutions say, by what was asked: data-kind="asked">said<."""
    found = re.findall(rf'data-{kind}="([\d.]+)">([\d.]+)<', TEXT)
    assert found
    return {float(asked): float(said) for asked, said in found}


FRIENDS = np.array(table("friends")[1])


def test_ranks_and_p_values_are_those_of_the_friends_on_the_sheet() -> None:
    assert FRIENDS.size == 9
    for score, rank in answers("rank").items():
        assert rank == conformal.ranks(FRIENDS, [score])[0]
    for score, p in answers("p").items():
        assert p == pytest.approx(conformal.p_values(FRIENDS, [score])[0])
    assert len(answers("p")) == len(answers("rank")) == 3


def test_thresholds_and_numbers_of_friends_are_the_librarys() -> None:
    for epsilon, said in answers("threshold").items():
        assert said == conformal.threshold(FRIENDS, epsilon)
    for epsilon, said in answers("needed").items():
        assert said == conformal.k_needed(epsilon)
    for epsilon, said in answers("promised").items():
        assert said == 1000 * epsilon
    for epsilon, said in answers("exactly").items():
        assert said == pytest.approx(
            1000 * conformal.flagging_rank(FRIENDS.size, epsilon) / (FRIENDS.size + 1)
        )
    assert conformal.flagging_rank(FRIENDS.size, 0.1) == 0  # "nothing can ever be flagged"


def test_the_table_of_turns_is_the_clock_readers() -> None:
    asked, solved = table("turns"), table("solved")
    assert [row[:2] for row in solved] == asked
    for lean, turn, points_to, reads, error in solved:
        assert points_to == (lean + turn) % 360
        assert reads == min(range(0, 361, 30), key=lambda hour: abs(hour - points_to)) % 360
        assert error == min(abs(reads - turn), 360 - abs(reads - turn))


def test_the_sum_and_its_p_value_follow_from_the_table() -> None:
    total = sum(row[-1] for row in table("solved"))
    p = conformal.p_values(table("sums")[0], [total])[0]
    assert f"<b data-sum>{total:g}</b>" in TEXT
    assert f"<b data-sum-p>{p:g}</b>" in TEXT
    assert p < 0.2
    assert '<b data-sum-flagged="0.2">flagged</b>' in TEXT


def test_every_question_of_the_quiz_has_a_key_among_its_choices() -> None:
    choices = [part.count("<li>") for part in re.findall(r'<ol class="choices">(.*?)</ol>', TEXT)]
    keys = re.findall(r'id="key">([^<]*)<', TEXT)[0].split(", ")
    assert len(keys) == len(choices) == 6
    assert all("ABC".index(key) < count for key, count in zip(keys, choices, strict=True))


def test_it_prints_on_four_pages_at_most_and_is_not_wider_than_a_phone(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 500, "height": 900})
    page.goto(PAGE.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 500
    pages = page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "15mm"))
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pages)) <= 4
    page.close()
