"""Every guarantee within its exact 99.9 % band, in the short run; and docs/guarantees.md has the long one."""

from pathlib import Path

from trial.guarantees import BEGIN, END, measured

DOCUMENT = Path(__file__).parents[2] / "docs" / "guarantees.md"


def test_every_guarantee_lies_in_its_band_and_every_line_is_in_the_document() -> None:
    table = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    found = list(measured(short=True, seed=1))
    assert [one.promise for one in found if not one.sound] == []
    assert len(found) >= 15
    written = [line.split(" | ") for line in table.strip().splitlines()[2:]]
    assert [line[0].removeprefix("| ") for line in written] == [one.promise for one in found]
    assert [float(line[2]) for line in written] == [float(f"{one.bound:g}") for one in found]


def test_a_rate_outside_of_its_band_is_not_sound() -> None:
    from trial.guarantees import rate

    assert rate("", "", 0.1, 100, 1_000, "", exact=True).sound
    assert not rate("", "", 0.1, 140, 1_000, "", exact=True).sound
    assert not rate("", "", 0.1, 60, 1_000, "", exact=True).sound
    assert rate("", "", 0.1, 60, 1_000, "").sound
