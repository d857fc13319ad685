"""The examples in the docstrings of the NumPy core are run, so that they stay true."""

import doctest
import importlib

import pytest

MODULES = [
    "conformal",
    "calibration",
    "metrics",
    "testing.conditional",
    "testing.derandomise",
    "testing.martingales",
    "testing.merging",
    "testing.mondrian",
    "testing.multiple",
    "simulate.batch",
    "simulate.breaking",
    "simulate.stream",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_show_what_really_happens(name):
    results = doctest.testmod(importlib.import_module(f"idecode_core.{name}"))
    assert results.attempted > 0
    assert results.failed == 0
