"""Where the profile paper looks for data, and what it says where there is none."""

import pytest

from biaslib import runtime


def test_the_folder_is_below_the_environment_s(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    (tmp_path / "fairface").mkdir()
    assert runtime.data_folder("fairface") == tmp_path / "fairface"


def test_without_one_the_error_says_what_to_put_there(tmp_path, monkeypatch):
    monkeypatch.delenv("BIASLIB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        runtime.data_folder("ross2021")
    message = str(caught.value)
    assert str(tmp_path / "biaslib-data" / "ross2021") in message
    assert "tests/grounded-tests/" in message
    assert "github.com/candacelax/bias-in-vision-and-language" in message
    assert "BIASLIB_DATA" in message


def test_the_folder_of_study_4_says_which_two_lines_fill_it(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught:
        runtime.data_folder("vlstereoset")
    two = "from biaslib.datasets import vlstereoset; vlstereoset.fetch_images"
    assert f"{two}({str(tmp_path / 'vlstereoset')!r})" in str(caught.value)


def test_an_unknown_set_is_named():
    with pytest.raises(runtime.UnknownNameError, match="Did you mean 'fairface'"):
        runtime.data_folder("fair-face")
