"""The examples in the docstrings of the core are run, so that they stay true."""

import doctest
import importlib
import pkgutil

import pytest

import idecode_core

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(idecode_core.__path__, "idecode_core.")
    if not module.name.endswith("__main__")
)
EXAMPLES = 80
"""At least this many are found: a search that finds none would pass for the wrong reason."""


def examples(name: str) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(importlib.import_module(name)) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_show_what_really_happens(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_module_is_searched_for_examples() -> None:
    assert sum(len(test.examples) for name in MODULES for test in examples(name)) >= EXAMPLES
