"""What every test and doctest begins with: no run, so that none settles another's profile."""

import pytest

from biaslib.runtime import _profile


@pytest.fixture(autouse=True)
def _no_run(monkeypatch):
    monkeypatch.setattr(_profile._Run, "begun", None)
    monkeypatch.setattr(_profile._Run, "loaded", [])
