"""The examples in the docstrings of the core are run, so that they stay true."""

import doctest
import importlib

import pytest

MODULES = [
    "conformal",
    "calibration",
    "exchangeability",
    "experiments.audio_scores",
    "experiments.false_detections",
    "experiments.results",
    "guarantee",
    "metrics",
    "paper",
    "verdict",
    "testing.conditional",
    "testing.derandomise",
    "testing.martingales",
    "testing.merging",
    "testing.mondrian",
    "testing.multiple",
    "simulate.arrows",
    "simulate.batch",
    "simulate.breaking",
    "simulate.playground",
    "simulate.stream",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_show_what_really_happens(name):
    results = doctest.testmod(importlib.import_module(f"idecode_core.{name}"))
    assert results.attempted > 0
    assert results.failed == 0
