"""FairFace in both layouts, in small, with one of each error."""

import shutil

import numpy as np
import pandas
import pyarrow.parquet
import pytest
from support import rehearsal_clip_audit as sample

from biaslib import datasets
from biaslib.datasets import DataError, fairface
from biaslib.runtime import UnknownNameError


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return sample.write_folders(tmp_path_factory.mktemp("fairface"))


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    return sample.write_parquet(tmp_path_factory.mktemp("hub"))


@pytest.fixture
def copy(released, tmp_path):
    return shutil.copytree(released, tmp_path / "copy")


def labels(folder, change):
    path = folder / "fairface_label_train.csv"
    table = pandas.read_csv(path)
    change(table).to_csv(path, index=False)


def test_the_authors_folders_are_read(released):
    people = datasets.read_fairface(released)
    assert len(people) == 2 * 7 * sample.N_PER_GROUP
    assert people["gender"].value_counts().to_dict() == {"Male": 21, "Female": 21}
    assert people["race"].value_counts().unique().tolist() == [6]
    assert people.loc[0, ["file", "age", "split", "crop", "row"]].tolist() == [
        "train/1.jpg", "0-2", "train", "0.25", -1,
    ]  # fmt: skip
    images = fairface.FairFaceImages(people)
    assert images.part([3]).name(0) == str(released / "train" / "4.jpg")
    assert people["sha256"].str.len().unique().tolist() == [64]
    assert len(datasets.read_fairface(released, "validation")) == 14
    (note,) = people.attrs["problems"]
    assert note["severity"] == "note"
    assert note["what"] == "42 portraits in the split train; 86,744 were released"
    assert fairface.SPLITS == {"train": 86_744, "validation": 10_954}


def test_each_crop_has_a_folder_of_its_own(copy, tmp_path):
    both = tmp_path / "both"
    shutil.copytree(copy, both / "fairface-img-margin025-trainval")
    shutil.copytree(copy, both / "fairface-img-margin125-trainval")
    for crop, name in fairface.CROPS.items():
        people = datasets.read_fairface(both, crop=crop)
        assert name in people["path"].iloc[0]


def test_the_hubs_files_hold_the_same_pictures_and_labels(hub, released):
    people = datasets.read_fairface(hub)
    assert len(people) == 28
    assert people["race"].value_counts().to_dict() == dict.fromkeys(fairface.RACES, 4)
    assert people["file"].is_unique
    expected = sample.people(2)
    assert people[["gender", "race", "age"]].equals(expected[["gender", "race", "age"]])
    images = fairface.FairFaceImages(people).part([27, 3, 14])
    for row, image in zip([27, 3, 14], images, strict=True):
        difference = np.asarray(image).astype(int) - expected["picture"][row]
        assert np.abs(difference).mean() < 6  # JPEG


def test_wrong_labels_are_named_and_counted(copy):
    def change(table):
        table.loc[0, "race"] = "Latino Hispanic"
        table.loc[[1, 2], "gender"] = "F"
        return table

    labels(copy, change)
    message = r"has 3 problems: gender is unknown \(2, such as train/2\.jpg.*race is unknown \(1"
    with pytest.raises(DataError, match=message) as error:
        datasets.read_fairface(copy)
    assert "Did you mean 'Latino_Hispanic'" in str(error.value)


def test_images_that_cannot_be_opened_are_named_and_counted(copy, hub, tmp_path):
    (copy / "train" / "5.jpg").write_bytes(b"no image")
    (copy / "train" / "6.jpg").unlink()
    message = r"has 2 problems: image is missing \(1, such as train/6\.jpg.*cannot be opened \(1"
    with pytest.raises(DataError, match=message):
        datasets.read_fairface(copy)
    other = shutil.copytree(hub, tmp_path / "other")
    path = sorted((other / "0.25").iterdir())[1]
    table = pyarrow.parquet.read_table(path).to_pydict()
    table["image"][2]["bytes"] = b"no image"
    table["race"][3] = 9
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    with pytest.raises(DataError, match=r"cannot be opened \(1.*race is unknown \(1"):
        datasets.read_fairface(other)


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="fairface_label_train") as caught:
        datasets.read_fairface(tmp_path)
    assert caught.value.path == tmp_path
    with pytest.raises(UnknownNameError, match="unknown split of FairFace 'val'"):
        datasets.read_fairface(tmp_path, "val")
    with pytest.raises(UnknownNameError, match=r"unknown crop of FairFace '0\.5'"):
        datasets.read_fairface(tmp_path, crop="0.5")


def test_groups_are_partitions_and_empty_ones_are_named():
    people = pandas.DataFrame({"gender": ["Male", "Female", "Male"], "race": ["White"] * 3})
    both = datasets.membership(people, ["gender", "race"])
    assert both.columns.tolist() == ["Female, White", "Male, White"]
    assert both.to_numpy().tolist() == [[False, True], [True, False], [False, True]]
    with pytest.raises(DataError) as caught:
        datasets.membership(people, "race", ["White", "Black"])
    assert caught.value.word == "Black"
    with pytest.raises(DataError) as caught:
        datasets.membership(people, "tone")
    assert caught.value.word == "tone"


def test_a_picture_asked_for_twice_is_given_twice(hub, released):
    for given in (hub, released):
        images = fairface.FairFaceImages(datasets.read_fairface(given))
        asked = [0, 1, 1, 0]
        assert [each.tobytes() for each in map(np.asarray, images.part(asked))] == [
            np.asarray(images[row]).tobytes() for row in asked
        ]


def test_sizes_name_the_groups_that_nobody_is_in():
    people = pandas.DataFrame({"gender": ["Male", "Female", "Male"], "race": ["White"] * 3})
    labels = {"gender": ["Female", "Male"], "race": ["White", "Black"]}
    assert fairface.group_sizes(people, ["gender", "race"], labels).to_dict() == {
        "Female, White": 1, "Female, Black": 0, "Male, White": 2, "Male, Black": 0,
    }  # fmt: skip
    with pytest.raises(DataError) as caught:
        fairface.group_sizes(people, ["age"], {"age": ["0-2"]})
    assert caught.value.word == "age"


def test_labels_are_those_that_a_person_sees(copy):
    expected = datasets.read_fairface(copy)
    labels(
        copy,
        lambda table: table.assign(race=table["race"] + "\u200b", gender=" " + table["gender"]),
    )
    pandas.testing.assert_frame_equal(datasets.read_fairface(copy), expected)
