"""What several test files share."""

import os
import random

import pytest
from nbval.plugin import IPyNbCell

SECONDS_FOR_OUTPUT = 60
LONG = {
    "own_model",
    "planted_study1_grounded",
    "planted_study2_masked",
    "planted_study3_clip_audit",
    "planted_study4_captions",
    "planted_world",
    "study1_grounded",
    "study4_captions",
    "text_encoders",
}
"""Notebooks whose execution with an empty store takes more than 30 seconds on two cores."""


def pytest_addoption(parser):
    parser.addoption("--order-seed", type=int, help="run files, and the tests of each, shuffled")
    parser.addoption("--weekly", action="store_true", help="train, and run long notebooks, too")


def pytest_xdist_auto_num_workers(config) -> int:
    """One process more than cores: a fifth of the time a test waits, for a browser or a program."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


def pytest_collection_modifyitems(config, items):
    """Start what takes long first, and let a busy machine's notebooks send their output late.

    With ``--order-seed`` the order is drawn instead, the same one in every process.
    """
    seed = config.getoption("--order-seed")
    if seed is None:
        longest_first(items)
    else:
        shuffle(items, random.Random(seed))
    if not config.getoption("--weekly"):
        skip_what_runs_once_a_week(items)
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = SECONDS_FOR_OUTPUT


def skip_what_runs_once_a_week(items: list) -> None:
    """Skip a training from nothing, and long notebooks, which the site's build executes as well."""
    training = pytest.mark.skip(
        reason="minutes of training, or a model of another package: pytest --weekly"
    )
    notebook = pytest.mark.skip(reason="a notebook of 30 seconds or more: pytest --weekly")
    for item in items:
        if item.get_closest_marker("weekly"):
            item.add_marker(training)
        if isinstance(item, IPyNbCell) and item.path.stem in LONG:
            item.add_marker(notebook)


def longest_first(items: list) -> None:
    """Sort files: the site, then those with a slow test, then notebooks, then the short ones.

    So no long file is left for the end, where other processes would wait for it; and notebooks run
    when the site's build has put what their models answer into the store.
    """
    ranks: dict[str, int] = {}
    for item in items:
        runs_notebook = isinstance(item, IPyNbCell) or "test_classroom_runs" in item.nodeid
        rank = 2 if runs_notebook else 3
        rank = 1 if item.get_closest_marker("slow") else rank
        rank = 0 if item.get_closest_marker("minutes") else rank
        ranks[file_of(item)] = min(rank, ranks.get(file_of(item), rank))
    items.sort(key=lambda item: ranks[file_of(item)])


def file_of(item) -> str:
    return item.nodeid.partition("::")[0]


def shuffle(items: list, generator: random.Random) -> None:
    """Shuffle files, and tests within a file; cells of a notebook keep their order."""
    files: dict[str, list] = {}
    for item in items:
        files.setdefault(file_of(item), []).append(item)
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
def official(tmp_path_factory):
    """Repositories of all registered models in the official formats, with random weights."""
    from support import repositories

    folder = tmp_path_factory.mktemp("official")
    repositories.build_all(folder)
    return folder


@pytest.fixture(scope="module")
def hub(official, tmp_path_factory):
    """A hub on this machine that has them."""
    from support.hub import instead_of_the_real_one

    with instead_of_the_real_one(official, tmp_path_factory.mktemp("scratch")) as running:
        yield running


@pytest.fixture(scope="session")
def browser():
    """One headless Chromium for all tests that need one."""
    from support.browser import launched

    with launched() as running:
        yield running
