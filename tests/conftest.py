"""Settings for all tests."""

from browser import app_url, browser, visitor  # noqa: F401  fixtures of the browser tests
from hypothesis import settings

# A busy machine is no bug: hypothesis' wall-clock deadline would make tests fail at random.
settings.register_profile("project", deadline=None)
settings.load_profile("project")
