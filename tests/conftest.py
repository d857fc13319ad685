"""Settings for all tests."""

import sys
from collections.abc import Iterator

import pytest
from browser import app_url, browser, visitor  # noqa: F401  fixtures of the browser tests
from hypothesis import settings

# A busy machine is no bug: hypothesis' wall-clock deadline would make tests fail at random.
settings.register_profile("project", deadline=None)
settings.load_profile("project")


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """AppTest leaves a page's script as `__main__`, and processes that a later test starts would run that page."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
