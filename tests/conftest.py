"""What several test files share."""

import os
import random

import pytest


def pytest_addoption(parser):
    parser.addoption("--order-seed", type=int, help="run files, and the tests of each, shuffled")
    parser.addoption("--weekly", action="store_true", help="train, too")


def pytest_xdist_auto_num_workers(config) -> int:
    """One process more than cores: a fifth of the time a test waits, for a browser or a program."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


def pytest_collection_modifyitems(config, items):
    """Start what takes long first.

    With ``--order-seed`` the order is drawn instead, the same one in every process.
    """
    seed = config.getoption("--order-seed")
    if seed is None:
        longest_first(items)
    else:
        shuffle(items, random.Random(seed))
    if not config.getoption("--weekly"):
        skip_what_runs_once_a_week(items)


def skip_what_runs_once_a_week(items: list) -> None:
    """Skip a training from nothing, and what asks a model of another package."""
    skipped = pytest.mark.skip(
        reason="minutes of training, or a model of another package: pytest --weekly"
    )
    for item in items:
        if item.get_closest_marker("weekly"):
            item.add_marker(skipped)


def longest_first(items: list) -> None:
    """Sort files: the site, whose build runs every notebook, those with a slow test, the others.

    So no long file is left for the end, where other processes would wait for it.
    """
    ranks: dict[str, int] = {}
    for item in items:
        rank = 1 if item.get_closest_marker("slow") else 2
        rank = 0 if item.get_closest_marker("minutes") else rank
        ranks[file_of(item)] = min(rank, ranks.get(file_of(item), rank))
    items.sort(key=lambda item: ranks[file_of(item)])


def file_of(item) -> str:
    return item.nodeid.partition("::")[0]


def shuffle(items: list, generator: random.Random) -> None:
    """Shuffle files, and tests within a file."""
    files: dict[str, list] = {}
    for item in items:
        files.setdefault(file_of(item), []).append(item)
    drawn = list(files.values())
    generator.shuffle(drawn)
    for tests in drawn:
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
