"""What every test and doctest begins with: a store of the test run's own, and no run begun."""

import os
import tempfile

import pytest

from biaslib.runtime import _profile


def pytest_configure(config):
    """Share one empty store among all processes: what a user stored before changes no test."""
    if not hasattr(config, "workerinput"):
        store = tempfile.TemporaryDirectory(prefix="biaslib-tests-")
        config.add_cleanup(store.cleanup)
        os.environ["BIASLIB_STORE"] = store.name


@pytest.fixture(autouse=True)
def _no_run(monkeypatch):
    monkeypatch.setattr(_profile._Run, "begun", None)
    monkeypatch.setattr(_profile._Run, "loaded", [])
