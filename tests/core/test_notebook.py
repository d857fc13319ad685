"""Notebooks hold values as data and nothing that a name could turn into code."""

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_report import inspection, sample

from idecode_core.errors import SettingError
from idecode_core.report import (
    inspection_notebook,
)
from idecode_core.report.notebook import literal

Literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=40,
)


@given(Literals)
def test_a_value_written_as_data_reads_back_as_itself(value: object) -> None:
    assert (
        ast.literal_eval(literal(value).replace('float("inf")', "1e999").replace('float("-inf")', "-1e999"))
        == value
    )


def test_an_array_written_as_data_reads_back_as_a_list_of_its_numbers() -> None:
    array = np.array([[0.1, 1 / 3], [2.0, -7.0]])
    assert np.array_equal(ast.literal_eval(literal({"x": array}))["x"], array)


def test_what_no_reader_could_type_is_refused() -> None:
    with pytest.raises(SettingError, match="cannot hold a set"):
        literal({"a": {1}})


def test_the_same_page_gives_the_same_notebook() -> None:
    first, second = (inspection_notebook(inspection(sample()), {}) for _ in range(2))
    assert first == second


def test_a_stranger_s_name_in_a_notebook_means_no_more_than_its_characters():
    """Rendered as Markdown, it gives the name as text, and no picture, link or other tag."""
    from markdown_it import MarkdownIt

    from idecode_core.report.notebook import plain_line

    name = "<img src=x onerror=alert(1)> ![a](http://b) [c](d) `e` *f* __g__ $h$ &lt;"
    heading = f"# {plain_line(f'The guarantee of {name}')}"
    tokens = next(token for token in MarkdownIt().parse(heading) if token.type == "inline")
    assert {child.type for child in tokens.children} <= {"text", "text_special"}
    assert "".join(child.content for child in tokens.children) == f"The guarantee of {name}"
