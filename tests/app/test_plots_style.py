"""Colours: lines and text stand out from the page in both themes, measured; figures are repainted, not redrawn."""

import tomllib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from small import contrast

from idecode_core.plots.histograms import Group, score_histograms
from idecode_core.plots.style import CALIBRATION, DARK, ID, LIGHT, OOD, THRESHOLD, faded, repainted
from lessons.figures import rank_line
from ui.frame.look import INK
from ui.inspect import batch

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
LINES, TEXT = 3.0, 4.5
"""Least contrast, WCAG 2.2: 1.4.11 and 1.4.3."""
CAPTION = 0.6  # Streamlit writes captions in the text's colour with this opacity


def mixed(colour: str, background: str, opacity: float) -> str:
    parts = [
        round(opacity * int(colour[i : i + 2], 16) + (1 - opacity) * int(background[i : i + 2], 16))
        for i in (1, 3, 5)
    ]
    return "#{:02X}{:02X}{:02X}".format(*parts)


@pytest.mark.parametrize(("theme", "name"), [(LIGHT, "light"), (DARK, "dark")])
def test_lines_and_text_of_figures_stand_out_from_the_page(theme, name):
    assert theme.background == CONFIG[name]["backgroundColor"]
    for colour in theme.lines.values():
        assert contrast(colour, theme.background) >= LINES, colour
    for colour in theme.text.values():
        assert contrast(colour, theme.background) >= TEXT, colour
    assert len(set(theme.lines.values())) == len(theme.lines)  # no two become one


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_of_the_page_stands_out_also_in_the_sidebar_and_as_a_caption(name):
    colours = CONFIG[name]
    backgrounds = [colours["backgroundColor"], colours["sidebar"]["backgroundColor"]]
    for background in [*backgrounds, colours["secondaryBackgroundColor"]]:
        coloured = [f"{name}TextColor" for name in ("blue", "orange", "yellow", "green", "red")]
        for key in ("textColor", "linkColor", *coloured):
            assert contrast(colours[key], background) >= TEXT, (key, background)
    for background in backgrounds:
        assert contrast(mixed(colours["textColor"], background, CAPTION), background) >= TEXT, background
        for key in ("primaryColor", "blueColor", "orangeColor", "violetColor"):
            assert contrast(colours[key], background) >= LINES, (key, background)
    assert contrast(INK[name], colours["primaryColor"]) >= TEXT  # on buttons and tags


@pytest.mark.parametrize("name", ["light", "dark"])
def test_verdicts_in_a_table_stand_out_from_the_page(name, monkeypatch):
    monkeypatch.setattr(batch, "is_dark", lambda: name == "dark")
    for answer in ("flagged", "not flagged"):
        colour = batch.verdict_colour(answer).removeprefix("color: ")[:7]
        assert contrast(colour, CONFIG[name]["backgroundColor"]) >= TEXT, answer


def test_contrast_is_that_of_the_standard():
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.478, abs=0.001)  # the example that just fails


def test_a_repainted_figure_has_the_colours_of_the_theme_and_the_given_one_stays_as_it_is():
    figure = score_histograms(
        [Group("a", np.arange(9.0), CALIBRATION), Group("b", np.arange(5.0), ID)],
        4.0,
        "threshold",
        height=300,
    )
    before = figure.to_json()
    dark = repainted(figure, DARK).to_json()
    assert figure.to_json() == before
    for colour in (ID, THRESHOLD, CALIBRATION):
        assert colour not in dark
    assert DARK.lines[ID] in dark or faded(DARK.lines[ID], 0.5)[:-4] in dark
    text = go.Figure(layout={"annotations": [{"text": "x", "font": {"color": OOD, "size": 10}}]})
    (annotation,) = repainted(text, LIGHT, 1.4).layout.annotations
    assert (annotation.font.color, annotation.font.size) == (LIGHT.text[OOD], 14)


def test_faded_colours_keep_their_opacity():
    figure = go.Figure(go.Scatter(x=[1], y=[1], fillcolor=faded(ID, 0.18)))
    assert repainted(figure, DARK).data[0].fillcolor == faded(DARK.lines[ID], 0.18)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_label_that_lies_on_points_has_the_colour_of_the_page_behind_it(theme):
    figure = rank_line([3.0, 7.0, 9.0], 7.0, x_title="score", flagged=True)
    assert figure.data[-1].name == "newcomer"  # drawn last, so its name is above all points
    figure = score_histograms([Group("iD", [3.0, 7.0, 9.0], ID)], 8.0, "flagged beyond")
    labels = repainted(figure, theme).layout.annotations
    assert [label.bgcolor for label in labels] == [faded(theme.background, 0.75)]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_axes_say_their_colour_themselves(theme):
    """Streamlit's look writes them in #808495, which has a contrast of 3.7:1 on white."""
    axis = repainted(rank_line([3.0, 7.0], 5.0, x_title="score"), theme).layout.xaxis
    for font in (axis.tickfont, axis.title.font):
        assert contrast(font.color, theme.background) >= TEXT
    assert axis.title.text == "score"
