"""Grounded tests in the layout that the authors released, in small, with one of each error."""

import hashlib
import json

import pytest
from PIL import Image

from biaslib import datasets, stimuli
from biaslib.datasets import _image_files

MEN = {"0": "This is John.", "1": "That is John.", "2": "This is Paul."}
WOMEN = {"0": "This is Amy.", "1": "This is Joan."}
CAREER = {"0": "Executives are things.", "1": "This is an office."}
FAMILY = {"0": "This is a home.", "1": "The wedding is there."}
WORDS = ["John", "Paul", "Amy", "Joan", "executive", "executives", "office", "home", "wedding"]


def released(**changes):
    """A test as the authors' files have it: names of men and women, career and family."""
    content = {
        "test_name": "sent-weat6",
        "dataset": "google",
        "dataset_dir": "weat6",
        "test_types": ["sentence", "contextual"],
        "targ1": {
            "category": "MaleNames",
            "captions": MEN,
            "images": {"male_0.jpg": [0, 1, 2], "male_1.jpg": [2]},
        },
        "targ2": {
            "category": "FemaleNames",
            "captions": WOMEN,
            "images": {"female_0.jpg": [0], "female_1.jpg": [1]},
        },
        "attr1": {
            "category": "Career",
            "captions": CAREER,
            "MaleNames_Images": {"male_office_0.jpg": [0, 1]},
            "FemaleNames_Images": {"female_office_0.jpg": [0, 1]},
        },
        "attr2": {
            "category": "Family",
            "captions": FAMILY,
            "MaleNames_Images": {"male_home_0.jpg": [0], "male_wedding_0.jpg": [1]},
            "FemaleNames_Images": {"female_home_0.jpg": [0, 1]},
        },
        "contextual_words": WORDS,
    }
    return content | changes


@pytest.fixture
def read(tmp_path):
    """Write a test's file and read it."""

    def written(content, name="sent-weat6", folder="google"):
        path = tmp_path / folder / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
        return datasets.grounded_test(path)

    return written


def kinds(test):
    return test.problems["kind"].tolist()


def test_every_image_is_paired_with_its_captions(read):
    test = read(released())
    assert (test.name, test.dataset, test.folder) == ("weat6", "google", "weat6")
    assert test.levels == ("sentence", "contextual")
    assert test.labels == {"X": "MaleNames", "Y": "FemaleNames", "A": "Career", "B": "Family"}
    counts = test.pairs.groupby("set").size().to_dict()
    assert counts == {"X": 4, "Y": 2, "Ax": 2, "Ay": 2, "Bx": 2, "By": 2}
    first = test.pairs[test.pairs["image"] == "male_1.jpg"].iloc[0]
    assert first[["caption", "word"]].tolist() == ["This is Paul.", "Paul"]
    assert test.problems.empty


def test_the_contextual_word_is_the_longest_in_either_case(read):
    content = released(contextual_words=["Jos\u00e9", *WORDS])
    content["attr1"]["captions"] = {"0": "Office work.", "1": "This is an office."}
    content["targ1"] |= {
        "captions": MEN | {"0": "This is Jose\u0301.", "1": "That is Jos\u00e9\u200b."}
    }
    captions = read(content).captions.set_index("caption")["word"]
    assert captions[["This is Jos\u00e9.", "That is Jos\u00e9."]].tolist() == ["Jos\u00e9"] * 2
    assert captions[["Office work.", "This is an office."]].tolist() == ["office", "office"]
    captions = read(released()).captions.set_index("caption")["word"]
    assert captions["Executives are things."] == "executives"


def test_the_folder_of_another_test_is_mended_in_the_file_that_names_it(read):
    wrong_folder = released(test_types=["word"], dataset_dir="weat13")
    found = read(wrong_folder, "weat6", folder="my-copy")
    assert (kinds(found), found.folder) == (["folder of another test"], "weat6")
    other = read(wrong_folder | {"dataset": "mine"}, "weat6")
    assert (kinds(other), other.folder) == ([], "weat13")


def test_numbers_given_as_text_are_read_as_numbers(read):
    content = released()
    content["targ2"]["images"] = {"female_0.jpg": "1"}
    test = read(content)
    women = test.pairs[test.pairs["set"] == "Y"]
    assert women[["image", "caption"]].to_numpy().tolist() == [["female_0.jpg", "This is Joan."]]
    assert test.problems.empty


def test_a_number_that_points_nowhere_is_an_error(read):
    content = released()
    content["attr2"]["FemaleNames_Images"]["female_home_0.jpg"] = [0, 1, 7]
    test = read(content)
    assert test.problems[["severity", "kind", "where", "what"]].to_numpy().tolist() == [
        ["error", "caption is not there", "By", "female_home_0.jpg: 7"]
    ]
    assert (test.pairs["set"] == "By").sum() == 2


def test_the_known_errors_of_the_released_files_are_found(read):
    content = released(contextual_words=[])
    content["attr1"]["FemaleNames_Images"] = content["attr1"]["MaleNames_Images"]
    content["targ1"]["images"] = {"COCO_val2014_1.jpg": [0, 1, 2]}
    found = read(content, folder="concap").problems.set_index("kind")["where"]
    assert found.index[:3].tolist() == [
        "key is missing", "images of another data set", "sets are the same",
    ]  # fmt: skip
    assert found["sets are the same"] == "Ax, Ay"
    assert found.index.str.startswith("caption without a contextual word").sum() == 9


def picture(path, colour):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), colour).save(path)


def test_images_are_found_checked_and_counted(read, tmp_path):
    test = read(released())
    folder = tmp_path / "images"
    for number, row in enumerate(test.pairs[["set", "image"]].drop_duplicates().itertuples()):
        group = {"x": "attr1", "y": "attr2", "X": "targ1", "Y": "targ2"}[row.set[-1]]
        picture(folder / "weat6" / group / row.image, (number, 0, 90))
    folder = folder.resolve()
    (folder / "weat6/targ2/female_1.jpg").unlink()
    (folder / "weat6/attr1/male_home_0.jpg").write_bytes(b"no image")
    (folder / "weat6/targ1/male_1.jpg").write_bytes(
        (folder / "weat6/targ1/male_0.jpg").read_bytes()
    )
    pairs, problems = datasets.images_of(test, folder)
    assert problems[["severity", "kind", "where"]].to_numpy().tolist() == [
        ["error", "image is missing", "Y"],
        ["error", "image cannot be opened", "Bx"],
        ["note", "picture is there twice", "X"],
        ["note", "sets are unbalanced", "X, Y"],
        ["note", "sets are unbalanced", "Ax, Bx"],
    ]
    assert problems["what"].tolist()[-2:] == ["X 2 of 2, Y 1 of 2", "Ax 1 of 1, Bx 1 of 2"]
    table = datasets.balance(test, pairs).set_index("set")
    assert table.loc["Y", ["n_images", "images_left", "share"]].tolist() == [2, 1, 0.5]
    assert table.loc["Bx", ["n_captions", "captions_left"]].tolist() == [2, 1]
    assert table["share"].drop(["Y", "Bx"]).eq(1).all()


def test_a_name_in_two_folders_is_an_error_and_a_picture_in_two_sets_a_note(read, tmp_path):
    test = read(released())
    for name in test.pairs["image"].unique():
        picture(tmp_path / "flat" / name, "red")
    (tmp_path / "flat" / "weat6" / "attr1").mkdir(parents=True)
    picture(tmp_path / "flat" / "weat6" / "attr1" / "male_home_0.jpg", "blue")
    picture(tmp_path / "flat" / "weat6" / "attr2" / "male_home_0.jpg", "green")
    pairs, problems = datasets.images_of(test, tmp_path / "flat")
    errors = problems[problems["severity"] == "error"]
    assert errors[["kind", "where", "what"]].to_numpy().tolist() == [
        ["image lies in two folders", "Bx", "male_home_0.jpg"]
    ]
    twice = problems[problems["kind"] == "picture is in two sets"]
    assert {"X, Y", "Ax, Bx", "Ay, By"} <= set(twice["where"])
    assert "male_home_0.jpg" not in set(pairs["image"])


def test_a_users_folders_make_a_test(tmp_path):
    test = stimuli.association_test("C6")
    for set_name, words in {"X": test.X, "Y": test.Y[:1], "Ax": test.A}.items():
        for word in words:
            picture(tmp_path / set_name / word / "1.png", "blue")
    made = datasets.user_test("C6", tmp_path)
    assert made.pairs.groupby("set").size().to_dict() == {"X": 8, "Y": 1, "Ax": 8}
    missing = made.problems[made.problems["kind"] == "word without an image"]
    assert missing["what"].tolist() == list(test.Y[1:])
    folders = made.problems[made.problems["kind"] == "folder is missing"]
    assert folders["where"].tolist() == ["Ay", "Bx", "By"]
    sentences = datasets.user_test("C6", tmp_path, level="sentence")
    john = sentences.pairs[sentences.pairs["word"] == "John"]
    assert john["caption"].tolist() == list(stimuli.association_test("C6", "sentence").X[:6])
    pairs, _ = datasets.images_of(made, tmp_path)
    assert len(pairs) == 17


def test_what_lies_in_a_users_folder_is_taken_or_noted_whatever_it_is_called(tmp_path):
    taken = {"X/John/1.png", "X/John/2.JFIF", "X/John/3.tif", "X/John/four", "Ax/office/1.jpe"}
    noted = {"Az": "/office/1.png", "X/5.png": "", "X/John/more": "/6.png", "X/Jon": "/7.png"}
    left = {"X/John/Thumbs.db", "__MACOSX/X/John/1.png", *map("".join, noted.items())}
    picture(tmp_path / "X/John/1.png", "blue")
    for name in taken | left:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((tmp_path / "X/John/1.png").read_bytes())
    made = datasets.user_test("C6", tmp_path)
    assert set(made.pairs["image"]) == taken
    notes = made.problems[made.problems["severity"] == "note"]
    assert notes["where"].tolist() == list(noted)
    (tmp_path / "X/John/four").write_text("no picture")
    pairs, wrong = datasets.images_of(made, tmp_path)
    assert set(pairs["image"]) == taken - {"X/John/four"}
    assert wrong.loc[wrong["severity"] == "error", "where"].tolist() == ["X"]


def test_a_picture_that_opened_once_is_not_decoded_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
    decoded, decode = [], _image_files.check_images

    def counting(paths):
        decoded.append([path.name for path in paths])
        return decode(paths)

    monkeypatch.setattr(_image_files, "check_images", counting)
    for number, name in enumerate("abc"):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / f"{name}.png")
    paths = [tmp_path / f"{name}.png" for name in "abc"]
    (tmp_path / "b.png").write_bytes(b"no image")
    (tmp_path / "empty.png").touch()
    names = ["a.png", "b.png", "c.png"]
    for first in (names, []):
        hashes, wrong = _image_files._checked([*paths, tmp_path / "empty.png"])
        assert sorted(wrong) == [str(tmp_path / "b.png"), str(tmp_path / "empty.png")]
        assert "0 bytes" in wrong[str(tmp_path / "empty.png")]
        assert hashes[paths[0]] == hashlib.sha256(paths[0].read_bytes()).hexdigest()
        asked = [first] if first else []
        assert decoded == [*asked, ["b.png", "empty.png"]]
        decoded.clear()
