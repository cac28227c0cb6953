"""Where the profile paper looks for data, and what it says where there is none."""

import pytest

from biaslib import runtime


def test_the_folder_is_below_the_environment_s(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    (tmp_path / "fairface").mkdir()
    assert runtime.data_folder("fairface") == tmp_path / "fairface"


def test_a_folder_that_is_not_there_and_an_unknown_set_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BIASLIB_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="ross2021"):
        runtime.data_folder("ross2021")
    with pytest.raises(runtime.UnknownNameError):
        runtime.data_folder("fair-face")
