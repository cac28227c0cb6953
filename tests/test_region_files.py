"""Feature files made elsewhere: what they hold is read, what does not fit is named."""

import base64
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from biaslib.pictures import region_files
from biaslib.pictures.images import pictures
from biaslib.pictures.region_files import FeatureFileError
from biaslib.pictures.regions import RegionFeatures
from biaslib.studies import _regions

BOXES = {
    "a": np.array([[0, 0, 64, 48], [16, 12, 32, 24]], np.float32),
    "b": np.array([[25, 50, 50, 100]], np.float32),
}
SIZES = {"a": (64, 48), "b": (100, 200)}
FEATURES = {
    "a": np.arange(16, dtype=np.float32).reshape(2, 8),
    "b": -np.ones((1, 8), np.float32),
}
SHARES = [[[0, 0, 1, 1], [0.25, 0.25, 0.5, 0.5]], [[0.25, 0.25, 0.5, 0.5], [0, 0, 0, 0]]]


def cell(numbers, kind):
    return base64.b64encode(np.asarray(numbers, kind).tobytes()).decode()


def table_row(name, columns=10, boxes=None):
    width, height = SIZES[name]
    n = len(BOXES[name])
    said = [cell(np.arange(n) + 5, np.int64), cell(np.full(n, 0.5), np.float32)]
    said += [cell(np.arange(n) + 7, np.int64), cell(np.full(n, 0.25), np.float32)]
    boxes = cell(BOXES[name] if boxes is None else boxes, np.float32)
    last = [str(n), boxes, cell(FEATURES[name], np.float32)]
    if columns == 6:
        return "\t".join([name, str(width), str(height), *last])
    return "\t".join([name, str(height), str(width), *said, *last])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "obj36.tsv"
    path.write_text("\n".join(table_row(name) for name in BOXES) + "\n")
    return path


@pytest.fixture
def ours(tmp_path, table):
    region_files.write(tmp_path / "o.safetensors", region_files.read(table, "ab", width=8), "ab")
    return tmp_path / "o.safetensors"


@pytest.mark.parametrize("columns", [10, 6])
def test_tables_of_either_kind_are_read(tmp_path, columns):
    path = tmp_path / "features.tsv"
    path.write_text("".join(table_row(name, columns) + "\r\n" for name in BOXES))
    regions = region_files.read(path, ["a", "b"], width=8)
    assert regions.boxes.tolist() == SHARES
    assert regions.sizes.tolist() == [[64, 48], [100, 200]]
    assert np.array_equal(regions.features[0], FEATURES["a"])
    assert not regions.persons.any()
    if columns == 10:
        assert regions.classes.tolist() == [[5, 6], [5, -1]]
        assert regions.attributes.tolist() == [[7, 8], [7, -1]]
        assert regions.scores.tolist() == [[0.5, 0.5], [0.5, 0]]
    else:
        assert regions.classes is None


def test_pictures_are_read_in_the_order_asked_for_from_a_folder_of_tables(tmp_path):
    for name in BOXES:
        (tmp_path / f"{name}.tsv").write_text(table_row(name, 6) + "\n")
    regions = region_files.read(tmp_path, ["b.jpg", "a", "b"], width=8)
    assert regions.real.tolist() == [[True, False], [True, True], [True, False]]
    assert regions.boxes[[1, 0]].tolist() == SHARES
    assert np.array_equal(regions.features[0], [-np.ones(8), np.zeros(8)])
    assert region_files.missing(tmp_path, ["c", "b.jpg", "a", "a.b"]) == ["c"]
    (tmp_path / "c.tsv").write_text(table_row("a", 6) + "\n")
    with pytest.raises(FeatureFileError, match=r"c\.tsv and .*a\.tsv both have 'a'"):
        region_files.read(tmp_path, ["b"], width=8)


def test_our_own_file_keeps_everything(table, ours):
    regions = region_files.read(table, ["a", "b"], width=8)
    found = region_files.read(ours, ["b", "a"], width=8)
    for name in ("features", "boxes", "real", "persons", "sizes", "classes", "scores"):
        assert np.array_equal(getattr(found, name), getattr(regions, name)[::-1])
    with pytest.raises(ValueError, match="2 pictures need as many ids, all different"):
        region_files.write(ours, regions, ["a", "a"])


def test_a_box_of_one_pixel_beside_larger_ones_is_read(table):
    table.write_text(table_row("a", boxes=[[0, 0, 1, 1], [0, 0, 2, 2]]) + "\n")
    assert region_files.read(table, ["a"], width=8).boxes[0, 0].tolist() == pytest.approx(
        [0, 0, 1 / 64, 1 / 48]
    )


def test_a_table_whose_bytes_are_written_as_python_writes_them_is_read(table):
    cells = table_row("a", 6).split("\t")
    table.write_text("\t".join(c if at < 4 else f"b'{c}'" for at, c in enumerate(cells)) + "\n")
    regions = region_files.read(table, ["a"], width=8)
    assert regions.boxes.tolist() == SHARES[:1]
    assert np.array_equal(regions.features[0], FEATURES["a"])


@pytest.mark.parametrize(
    "boxes",
    [
        [BOXES["a"][0], [10, 10, 70, 40]],
        [BOXES["a"][0], [-3, 10, 20, 40]],
        [BOXES["a"][0], [10, 10, 10, 40]],
        BOXES["a"] / np.tile(SIZES["a"], 2),  # as shares of the picture
    ],
)
def test_boxes_that_do_not_fit_are_named(table, boxes):
    table.write_text(table_row("a", boxes=boxes) + "\n" + table_row("b") + "\n")
    with pytest.raises(FeatureFileError) as caught:
        region_files.read(table, ["b", "a"], width=8)
    assert (caught.value.path, caught.value.word) == (table, "a")
    assert list(region_files.damaged(table, ["a", "b", "c"], width=8)) == ["a"]


def test_missing_pictures_another_width_and_other_formats_are_refused(table, ours):
    for path in (table, ours):
        with pytest.raises(FeatureFileError) as caught:
            region_files.read(path, ["a", "c", "d"], width=8)
        assert (caught.value.path, caught.value.word) == (path, "c")
        with pytest.raises(FeatureFileError):
            region_files.read(path, ["a"])
    table.write_text(table_row("a")[:-20] + "\n")
    for path in (table, ours.with_name("features.npy")):
        path.touch()
        with pytest.raises(FeatureFileError) as caught:
            region_files.read(path, ["a"], width=8)
        assert caught.value.path == path


WHOLE = {
    "features": np.zeros((2, 1, 8)),
    "boxes": np.tile([0.0, 0.0, 1.0, 1.0], (2, 1, 1)),
    "real": np.ones((2, 1)),
    "persons": np.zeros((2, 1)),
    "sizes": [[64, 48], [64, 64]],
}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("features", np.zeros((2, 8))),
        ("features", np.full((2, 1, 8), [[[0]], [[np.nan]]])),
        ("boxes", np.tile([0.5, 0.0, 0.5, 1.0], (2, 1, 1))),
        ("boxes", np.zeros((2, 2, 4))),
        ("persons", np.zeros(2)),
        ("sizes", [[64, 48], [0, 64]]),
    ],
)
def test_regions_that_do_not_go_together_are_refused(part, value):
    with pytest.raises(ValueError, match=r"picture|shape"):
        RegionFeatures(**WHOLE | {part: value})


def test_a_list_of_classes_beside_the_file_says_which_regions_show_a_person(table):
    (table.parent / "objects_vocab.txt").write_text("a\nb\nc\nd\ne\nman\nhat\n")
    shown = pictures([np.zeros((8, 8, 3), np.uint8)] * 2)
    found = _regions.with_regions(shown, table, "ab", width=8).regions()
    assert found.class_names[5:] == ("man", "hat")
    assert found.persons.tolist() == [[True, False], [True, False]]
    assert found.features[0].tolist() == FEATURES["a"].tolist()


PAGE = Path(__file__).parents[1] / "book" / "profiles.md"


def test_lines_of_the_page_convert_what_visualberts_own_script_writes(tmp_path, monkeypatch):
    """The layout of extract_image_features_nlvr.py: name -> (features, boxes, confidence)."""
    torch.manual_seed(0)
    numbers = {"male_0.jpg": 3, "female_0.jpg": 5}
    corner = torch.tensor([[0.0, 0.0, 99.0, 49.5]])
    giant = {
        name: (torch.rand(n, 1024), torch.cat([corner, torch.rand(n - 1, 4) * 9]), torch.rand(n))
        for name, n in numbers.items()
    }
    for _, boxes, _ in giant.values():
        boxes[1:, 2:] += boxes[1:, :2] + 1
    monkeypatch.chdir(tmp_path)
    torch.save(giant, "weat6.th")
    with pytest.raises(FeatureFileError, match="of another format"):
        region_files.read("weat6.th", list(giant), width=1024)
    [lines] = [
        each for each in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if ".th" in each
    ]
    exec(lines, {})
    found = region_files.read("visualbert-nlvr2.safetensors", ["female_0.jpg", "male_0.jpg"], 1024)
    assert found.real.sum(1).tolist() == [5, 3]
    assert found.sizes.tolist() == [[100, 51]] * 2
    features, boxes, confidence = giant["female_0.jpg"]
    np.testing.assert_array_equal(found.features[0], features)
    np.testing.assert_allclose(found.boxes[0] * [100, 51, 100, 51], boxes, rtol=1e-5)
    np.testing.assert_array_equal(found.scores[0], confidence)
    assert not found.features[1, 3:].any()


def test_pictures_that_two_tests_call_alike_have_names_of_their_own(tmp_path):
    """Of the authors' lists 798 names of this depth lead to two pictures."""
    places = ["weat12/attr1/ea_families_0.jpg", "db/attr1/ea_families_0.jpg", "db/targ1/a.jpg"]
    places += ["db/targ1/b.jpg", "weat12/targ2/b.jpg"]
    for number, place in enumerate(places):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (9 * number, 0, 0)).save(path, "png")
    shown = pictures([tmp_path / place for place in places])
    assert _regions.names_of(shown) == (*places[:2], "a.jpg", "targ1/b.jpg", "targ2/b.jpg")
