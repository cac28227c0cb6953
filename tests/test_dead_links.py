"""Half of the links dead: what is left, and which tests lose what, is told before the embedding."""

import json

import pytest
from support import rehearsal_grounded

from biaslib import models
from biaslib.studies import study1_grounded as grounded
from companion import study1_grounded as plots

TARGETS = {"X": "targ1", "Y": "targ2"}


def counted(root, row):
    """Pictures that a file's targets name, and how many of them lie where the lists write them."""
    content = json.loads((root / "tests/grounded-tests/google" / row.file).read_text("utf-8"))
    folder = content["dataset_dir"] if row.file != "weat6.jsonl" else "weat6"  # theirs: weat13
    part = TARGETS[row.set]
    # An image without a caption stands in no pair of the test, so that none of it can be lost.
    names = [name for name, captions in content[part]["images"].items() if captions != []]
    there = root / "images" / "google" / folder / part
    return len(names), sum((there / name).is_file() for name in names)


@pytest.fixture
def left(tmp_path, monkeypatch):
    """Study 1's inputs when every other picture of those that were there is gone."""

    def asked(*_, **__):
        raise AssertionError("a model was asked")

    rehearsal_grounded.build(tmp_path)
    for path in sorted((tmp_path / "ross2021/images/google").glob("*/*/*"))[::2]:
        path.unlink()
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    monkeypatch.setattr(models, "load", asked)
    return grounded.inputs("paper", only_sound=True)


def test_study_1_counts_what_is_left_and_names_the_tests_that_lose_a_set(left, tmp_path):
    rows = left.left[left.left["source"].eq("google") & left.left["set"].isin(TARGETS)]
    found = [(row.n_images, row.images_left) for row in rows.itertuples()]
    assert found == [counted(tmp_path / "ross2021", row) for row in rows.itertuples()]
    assert 0 < sum(n for _, n in found) < sum(n for n, _ in found)
    files = left.left.groupby("file")["images_left"].min()
    empty = set(left.left[left.left["file"].isin(files.index[files == 0])]["test"])
    there = left.asked["test"].isin(left.left["test"])
    assert (left.asked.loc[~there, "outcome"] == "not there").all()
    stopped = left.asked[there & (left.asked["outcome"] != "run")]
    assert set(stopped["test"]) <= empty
    assert stopped["outcome"].str.match("no image in (X|Y|Ax|Ay|Bx|By)").all()
    assert len(plots.missing_tables(left)) == 3
