"""Feature files made elsewhere: what they hold is read, what does not fit is named."""

import base64
import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from biaslib.models import region_files
from biaslib.models.region_files import FeatureFileError

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


def write_npz(folder, name, **changed):
    folder.mkdir(exist_ok=True)
    width, height = SIZES[name]
    columns = {
        "x": FEATURES[name],
        "bbox": BOXES[name],
        "num_bbox": len(BOXES[name]),
        "image_w": width,
        "image_h": height,
        "info": {"objects_id": [1]},
    }
    np.savez_compressed(folder / f"{name}.npz", **(columns | changed))


@pytest.fixture
def folder(tmp_path):
    for name in BOXES:
        write_npz(tmp_path / "features", name)
    return tmp_path / "features"


def cell(numbers, kind):
    return base64.b64encode(np.asarray(numbers, kind).tobytes()).decode()


def table_row(name, columns=10):
    width, height = SIZES[name]
    n = len(BOXES[name])
    said = [cell(np.arange(n) + 5, np.int64), cell(np.full(n, 0.5), np.float32)]
    said += [cell(np.arange(n) + 7, np.int64), cell(np.full(n, 0.25), np.float32)]
    last = [str(n), cell(BOXES[name], np.float32), cell(FEATURES[name], np.float32)]
    if columns == 6:
        return "\t".join([name, str(width), str(height), *last])
    return "\t".join([name, str(height), str(width), *said, *last])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "obj36.tsv"
    path.write_text("\n".join(table_row(name) for name in BOXES) + "\n")
    return path


def test_a_folder_of_npz_files_is_read_in_the_order_asked_for(folder):
    regions = region_files.read(folder, ["b", "a", "b"], width=8)
    assert regions.real.tolist() == [[True, False], [True, True], [True, False]]
    assert regions.sizes.tolist() == [[100, 200], [64, 48], [100, 200]]
    assert regions.boxes[[1, 0]].tolist() == SHARES
    assert np.array_equal(regions.features[1], FEATURES["a"])
    assert np.array_equal(regions.features[0], [-np.ones(8), np.zeros(8)])
    assert not regions.persons.any()
    assert regions.classes is None


@pytest.mark.parametrize("columns", [10, 6])
def test_tables_of_either_kind_are_read(tmp_path, columns):
    path = tmp_path / "features.tsv"
    path.write_text("".join(table_row(name, columns) + "\r\n" for name in BOXES))
    regions = region_files.read(path, ["a", "b"], width=8)
    assert regions.boxes.tolist() == SHARES
    assert regions.sizes.tolist() == [[64, 48], [100, 200]]
    assert np.array_equal(regions.features[0], FEATURES["a"])
    if columns == 10:
        assert regions.classes.tolist() == [[5, 6], [5, -1]]
        assert regions.attributes.tolist() == [[7, 8], [7, -1]]
        assert regions.scores.tolist() == [[0.5, 0.5], [0.5, 0]]
    else:
        assert regions.classes is None


def test_our_own_file_keeps_everything(tmp_path, table):
    regions = region_files.read(table, ["a", "b"], width=8)
    path = tmp_path / "regions.safetensors"
    region_files.write(path, regions, ["a", "b"])
    found = region_files.read(path, ["b", "a"], width=8)
    for name in ("features", "boxes", "real", "persons", "sizes", "classes", "scores"):
        assert np.array_equal(getattr(found, name), getattr(regions, name)[::-1])
    with pytest.raises(ValueError, match="2 pictures need as many ids, all different"):
        region_files.write(path, regions, ["a", "a"])


def test_missing_pictures_are_named(folder, table, tmp_path):
    ours = tmp_path / "regions.safetensors"
    region_files.write(ours, region_files.read(table, ["a"], width=8), ["a"])
    for path in (folder, table, ours):
        with pytest.raises(FeatureFileError, match="no regions of 2 of 3 ") as caught:
            region_files.read(path, ["a", "c", "d"], width=8)
        assert (caught.value.path, caught.value.word) == (path, "c")
    with pytest.raises(ValueError, match="there are no ids"):
        region_files.read(folder, [])


def test_another_width_is_named(folder, table, tmp_path):
    ours = tmp_path / "regions.safetensors"
    region_files.write(ours, region_files.read(table, ["a"], width=8), ["a"])
    for path in (folder, table, ours):
        with pytest.raises(
            FeatureFileError, match=r"have 8 numbers a region.*takes 2048"
        ) as caught:
            region_files.read(path, ["a"])
        assert caught.value.path == (path / "a.npz" if path == folder else path)
        assert caught.value.word == (None if path == ours else "a")


@pytest.mark.parametrize(
    ("box", "what"),
    [
        ([10, 10, 70, 40], r"leaves the picture: \[10, 10, 70, 40\] in 64 x 48"),
        ([-3, 10, 20, 40], "leaves the picture"),
        ([10, 10, 10, 40], "is empty"),
    ],
)
def test_boxes_that_do_not_fit_are_named(folder, box, what):
    write_npz(folder, "a", bbox=np.array([[0, 0, 64, 48], box]))
    with pytest.raises(FeatureFileError, match=what) as caught:
        region_files.read(folder, ["b", "a"], width=8)
    assert (caught.value.path, caught.value.row, caught.value.word) == (folder / "a.npz", 1, "a")


def test_files_whose_parts_disagree_are_named(folder):
    write_npz(folder, "a", x=FEATURES["a"].T)
    with pytest.raises(FeatureFileError, match=r"says 2 regions and has x of .*\(8, 2\)") as caught:
        region_files.read(folder, ["a"], width=8)
    assert caught.value.path == folder / "a.npz"
    np.savez(folder / "b.npz", x=FEATURES["b"])
    with pytest.raises(FeatureFileError, match="image_w") as caught:
        region_files.read(folder, ["b"], width=8)
    assert caught.value.path == folder / "b.npz"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda row: row[:-20], "is damaged"),
        (lambda row: row.rsplit("\t", 1)[0], "has 9 columns; known are 10, 6, 8"),
        (lambda row: row.replace("\t2\t", "\tb'2'\t"), "is damaged"),
        (lambda row: row[:-4] + "!!!!", "is damaged"),
        (lambda row: row.replace(cell([5, 6], np.int64), cell([5], np.int64)), "is damaged"),
    ],
)
def test_damaged_rows_are_named(tmp_path, spoil, message):
    path = tmp_path / "features.tsv"
    path.write_text(spoil(table_row("a")) + "\n")
    with pytest.raises(FeatureFileError, match=message) as caught:
        region_files.read(path, ["a"], width=8)
    assert (caught.value.path, caught.value.word) == (path, "a")


def as_shares(name):
    return (BOXES[name] / np.tile(SIZES[name], 2)).astype(np.float32)


@pytest.mark.parametrize(
    "shares",
    [
        as_shares("a"),
        np.array([[0, 0, 1, 1], [0, 0, 0.5, 1.00005]], np.float32),
        np.array([[0.25, 0.25, 0.25, 0.25], [0, 0, 1, 1]], np.float64),  # x, y, width, height
        np.array([[0, 0, 1, 1], [0, 0, 1, 1]], np.int64),
    ],
)
def test_boxes_as_shares_of_the_picture_are_refused(folder, shares):
    write_npz(folder, "a", bbox=shares)
    with pytest.raises(FeatureFileError, match=r"in pixels .* and not shares") as caught:
        region_files.read(folder, ["b", "a"], width=8)
    assert (caught.value.path, caught.value.word) == (folder / "a.npz", "a")
    assert list(region_files.damaged(folder, ["a", "b"], width=8)) == ["a"]


def test_boxes_as_shares_are_refused_in_a_table_too(table):
    shares = cell(as_shares("b"), np.float32)
    table.write_text(table.read_text().replace(cell(BOXES["b"], np.float32), shares))
    assert region_files.read(table, ["a"], width=8).boxes.tolist() == SHARES[:1]
    with pytest.raises(FeatureFileError) as caught:
        region_files.read(table, ["b"], width=8)
    assert (caught.value.path, caught.value.word) == (table, "b")


def test_a_box_of_one_pixel_beside_larger_ones_is_read(folder):
    write_npz(folder, "a", bbox=np.array([[0, 0, 1, 1], [0, 0, 2, 2]], np.float32))
    assert region_files.read(folder, ["a"], width=8).boxes[0, 0].tolist() == pytest.approx(
        [0, 0, 1 / 64, 1 / 48]
    )


def test_a_table_whose_bytes_are_written_as_python_writes_them_is_read(tmp_path):
    path = tmp_path / "features.tsv"
    cells = table_row("a", 6).split("\t")
    row = [each if at < 4 else f"b'{each}'" for at, each in enumerate(cells)]
    path.write_text("\t".join(row) + "\n")
    regions = region_files.read(path, ["a"], width=8)
    assert regions.boxes.tolist() == SHARES[:1]
    assert np.array_equal(regions.features[0], FEATURES["a"])


def save_npy(path):
    np.save(path, FEATURES["a"])


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("features.npy", save_npy),
        ("features.pth", lambda path: torch.save(torch.zeros(2), path)),
        ("features.pt", lambda path: torch.save([1], path, _use_new_zipfile_serialization=False)),
        ("features.h5", lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(90))),
        ("features.pkl", lambda path: path.write_bytes(pickle.dumps({"a": [1.0]}))),
        ("features.tsv.gz", lambda path: path.write_bytes(gzip.compress(b"a\t1\n"))),
        ("a.npz", lambda path: np.savez(path, x=FEATURES["a"])),
        ("resnet/a.npy", save_npy),
        ("deeper/down/a.h5", lambda path: path.write_bytes(b"\x89HDF")),
        ("resnet/a.pth", lambda path: torch.save(torch.zeros(2), path)),
    ],
)
def test_formats_that_are_not_read_are_named(tmp_path, name, write):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    given = path if path.parent == tmp_path else tmp_path / name.split("/")[0]
    for read in (region_files.read, region_files.missing, region_files.damaged):
        with pytest.raises(FeatureFileError, match=r"Read are a folder with one \.npz") as caught:
            read(given, ["a"])
        assert caught.value.path == path


def test_damaged_pictures_of_a_file_are_told_from_sound_and_missing_ones(folder, table):
    write_npz(folder, "b", bbox=np.array([[3, 3, 3, 5]], np.float32))
    for path in (folder, table):
        if path == table:
            path.write_text(path.read_text().replace(cell(BOXES["b"], np.float32), "AAAA"))
        found = region_files.damaged(path, ["a", "b", "c"], width=8)
        assert list(found) == ["b"]
        assert "'b'" in found["b"] or "b.npz" in found["b"]
        assert list(region_files.damaged(path, ["a"], width=4)) == ["a"]


# The files of study 1


def released_row(name):
    """A row of VL-BERT's tables: the classes are float64, as the released code reads them."""
    width, height = SIZES[name]
    n = len(BOXES[name])
    said = [cell(BOXES[name], np.float32), cell(FEATURES[name], np.float32), ""]
    said.append(cell(np.arange(n) + 5, np.float64))
    return "\t".join([f"{name}.jpg", str(height), str(width), str(n), *said])


def test_a_folder_of_vl_bert_s_tables_is_read_with_classes(tmp_path):
    for name in BOXES:
        (tmp_path / f"{name}.tsv").write_text(released_row(name) + "\n")
    regions = region_files.read(tmp_path, ["b.jpg", "a.jpg"], width=8)
    assert regions.boxes.tolist() == SHARES[::-1]
    assert regions.classes.tolist() == [[5, -1], [5, 6]]
    assert region_files.missing(tmp_path, ["a.jpg", "c.jpg", "b.jpg"]) == ["c.jpg"]


def test_visualbert_s_dictionary_of_tensors_is_read_in_file_order(tmp_path):
    parts = {f"{n}.jpg": (torch.tensor(FEATURES[n]), torch.tensor(BOXES[n]), None) for n in BOXES}
    torch.save(parts, tmp_path / "one.th")
    regions = region_files.read(tmp_path / "one.th", ["b.jpg", "a.jpg"], width=8)
    assert regions.real.tolist() == [[True, False], [True, True]]
    assert np.array_equal(regions.features[1], FEATURES["a"])
    assert region_files.missing(tmp_path / "one.th", ["c.jpg", "b.jpg"]) == ["c.jpg"]
    with pytest.raises(FeatureFileError, match="8 numbers a region, and the model takes 1024"):
        region_files.read(tmp_path / "one.th", ["a.jpg"], width=1024)


def test_a_dictionary_that_runs_a_program_when_unpickled_is_refused(tmp_path):
    class Program:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "was run",))

    torch.save({"a.jpg": Program()}, tmp_path / "one.th")
    with pytest.raises(FeatureFileError, match=r"one\.th is no dictionary of a tuple of tensors"):
        region_files.read(tmp_path / "one.th", ["a.jpg"], width=8)
    assert not (tmp_path / "was run").exists()


def test_an_lmdb_is_refused_with_what_to_do(tmp_path):
    folder = tmp_path / "features.lmdb"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"pickled rows")
    for asked in (region_files.read, region_files.missing):
        with pytest.raises(FeatureFileError, match=r"rows are pickled.*write each row as a line"):
            asked(folder, ["a"])


def test_an_ending_may_lack_in_the_file(table):
    regions = region_files.read(table, ["b.jpg"], width=8)
    assert regions.sizes.tolist() == [[100, 200]]
    assert region_files.missing(table, ["b.jpg", "a", "a.b"]) == []
    assert region_files.missing(table, ["c"]) == ["c"]
