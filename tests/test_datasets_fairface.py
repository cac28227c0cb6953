"""FairFace in small, as the hub has it, with one of each error."""

import json

import numpy as np
import pandas
import pyarrow.parquet
import pytest
from support import rehearsal_clip_audit as sample

from biaslib import datasets
from biaslib.datasets import DataError, fairface


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    sample.write_parquet(folder, "validation", sample.people(1))
    return sample.write_parquet(folder)


def test_the_files_hold_pictures_and_labels(hub):
    people = datasets.read_fairface(hub)
    assert people["race"].value_counts().to_dict() == dict.fromkeys(fairface.RACES, 4)
    assert people["file"].is_unique
    assert people["sha256"].str.len().unique().tolist() == [64]
    expected = sample.people(2)
    assert people[["gender", "race", "age"]].equals(expected[["gender", "race", "age"]])
    asked = [27, 3, 14, 3]
    images = fairface.FairFaceImages(people).part(asked)
    for row, image in zip(asked, images, strict=True):
        difference = np.asarray(image).astype(int) - expected["picture"][row]
        assert np.abs(difference).mean() < 6  # JPEG
    assert len(datasets.read_fairface(hub, "validation")) == 14
    (note,) = people.attrs["problems"]
    assert note["what"] == "28 portraits in the split train; 86,744 were released"
    assert fairface.SPLITS == {"train": 86_744, "validation": 10_954}


def test_class_numbers_mean_what_the_file_says(tmp_path):
    path = sorted((sample.write_parquet(tmp_path) / "0.25").iterdir())[0]
    table = pyarrow.parquet.read_table(path)
    names = {"gender": {"names": ["Female", "Male"]}}
    said = {b"huggingface": json.dumps({"info": {"features": names}}).encode()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(said), path)
    expected = sample.people(2)["gender"].replace({"Male": "Female", "Female": "Male"})[:14]
    assert datasets.read_fairface(tmp_path)["gender"][:14].tolist() == expected.tolist()


def test_pictures_and_labels_that_are_not_sound_are_named_and_counted(tmp_path):
    path = sorted((sample.write_parquet(tmp_path) / "0.25").iterdir())[1]
    table = pyarrow.parquet.read_table(path).to_pydict()
    table["image"][2]["bytes"] = b"no image"
    table["race"][3] = table["race"][4] = 9
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    with pytest.raises(DataError) as caught:
        datasets.read_fairface(tmp_path)
    assert "3 problems" in str(caught.value)
    assert caught.value.word == "train-00001-of-00002/row 2"


def test_groups_are_partitions_and_empty_ones_are_named():
    people = pandas.DataFrame({"gender": ["Male", "Female", "Male"], "race": ["White"] * 3})
    both = datasets.membership(people, ["gender", "race"])
    assert both.columns.tolist() == ["Female, White", "Male, White"]
    assert both.to_numpy().tolist() == [[False, True], [True, False], [False, True]]


def test_sizes_name_the_groups_that_nobody_is_in():
    people = pandas.DataFrame({"gender": ["Male", "Female", "Male"], "race": ["White"] * 3})
    labels = {"gender": ["Female", "Male"], "race": ["White", "Black"]}
    assert fairface.group_sizes(people, ["gender", "race"], labels).to_dict() == {
        "Female, White": 1, "Female, Black": 0, "Male, White": 2, "Male, Black": 0,
    }  # fmt: skip
