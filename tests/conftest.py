"""What several test files share."""

import pytest
from nbval.plugin import IPyNbCell

SECONDS_FOR_OUTPUT = 60


def pytest_collection_modifyitems(items):
    """Start what takes minutes first, and let a busy machine's notebooks send their output late."""
    items.sort(key=lambda item: item.get_closest_marker("minutes") is None)
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = SECONDS_FOR_OUTPUT


@pytest.fixture(scope="session")
def encoder():
    """The real encoder that a package carries."""
    from biaslib import models

    return models.load("all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def browser():
    """One headless Chromium for all tests that need one."""
    from support.browser import launched

    with launched() as running:
        yield running
