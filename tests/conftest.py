"""What several test files share."""

import pytest


def pytest_collection_modifyitems(items):
    """Start what takes minutes first: no process waits for it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("minutes") is None)


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
