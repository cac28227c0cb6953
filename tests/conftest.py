"""What several test files share."""

import random

import pytest
from nbval.plugin import IPyNbCell

SECONDS_FOR_OUTPUT = 60


def pytest_addoption(parser):
    parser.addoption("--order-seed", type=int, help="run files, and the tests of each, shuffled")


def pytest_collection_modifyitems(config, items):
    """Start what takes minutes first, and let a busy machine's notebooks send their output late.

    With ``--order-seed`` the order is drawn instead, the same one in every process.
    """
    seed = config.getoption("--order-seed")
    if seed is None:
        items.sort(key=lambda item: item.get_closest_marker("minutes") is None)
    else:
        shuffle(items, random.Random(seed))
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = SECONDS_FOR_OUTPUT


def shuffle(items: list, generator: random.Random) -> None:
    """Shuffle files, and tests within a file; cells of a notebook keep their order."""
    files: dict[str, list] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    drawn = list(files.values())
    generator.shuffle(drawn)
    for tests in drawn:
        if not isinstance(tests[0], IPyNbCell):
            generator.shuffle(tests)
    items[:] = [item for tests in drawn for item in tests]


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
