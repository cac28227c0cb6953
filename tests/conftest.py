"""What several test files share."""

import pytest


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
