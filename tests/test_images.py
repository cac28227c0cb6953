"""Pictures of every kind, good and bad, as models take them."""

import io
import multiprocessing.synchronize
import os

import numpy as np
import pandas
import pytest
import torch
from PIL import EpsImagePlugin, Image

import plantedworld
from biaslib import runtime
from biaslib.pictures import images, transforms
from biaslib.pictures.images import (
    ImageError,
    Workers,
    check_images,
    open_image,
    pictures,
    prefetched,
)


@pytest.fixture(scope="module")
def photo():
    """Noise, so that no part of the file can be guessed."""
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8))


def write_bad_files(folder, photo):
    """Write files that are no pictures, or damaged ones, and return where they are, or are not."""
    (folder / "empty.jpg").touch()
    (folder / "page.jpg").write_text("<html>404 not found</html>")
    (folder / "folder.jpg").mkdir()
    Image.new("F", (2, 2)).save(folder / "floats.tif")
    for mode in ("L", "I;16", "I"):
        Image.new(mode, (2, 2)).save(folder / f"signed {mode}.tif", tiffinfo={339: 2})
    Image.fromarray(np.full((2, 2), 100_000, np.int32)).save(folder / "wide.tif")
    for kind in ("JPEG", "PNG", "GIF", "WEBP"):
        stream = io.BytesIO()
        photo.save(stream, kind)
        (folder / f"cut.{kind}").write_bytes(stream.getvalue()[: stream.tell() // 2])
    return [*sorted(folder.iterdir()), folder / "gone.jpg"]


def test_bad_files_are_named_one_by_one_and_all_at_once(tmp_path, photo):
    bad = write_bad_files(tmp_path, photo)
    for path in bad:
        with pytest.raises(ImageError) as caught:
            open_image(path)
        assert caught.value.path == path
    photo.save(tmp_path / "good.png")
    table = check_images([tmp_path / "good.png", *bad, tmp_path / "good.png"])
    assert table["row"].tolist() == list(range(1, len(bad) + 1))
    assert table["path"].tolist() == [str(path) for path in bad]
    assert check_images([tmp_path / "good.png"]).empty


@pytest.mark.parametrize(
    ("images", "error"),
    [
        ("photo.jpg", TypeError),
        (Image.new("RGB", (2, 2)), TypeError),
        (np.zeros((2, 2, 3), np.uint8), ValueError),
        (np.zeros((1, 2, 2, 3)), ValueError),
        ([np.zeros((2, 2), np.uint8)], ValueError),
        (["a.jpg", None], TypeError),
        (7, TypeError),
        (pandas.DataFrame({"path": ["a.jpg"]}), ValueError),
    ],
)
def test_what_is_no_list_of_images_is_refused(images, error):
    with pytest.raises(error):
        pictures(images)


@pytest.fixture
def ghostscript(tmp_path, monkeypatch):
    """A program of the name that Pillow looks for, which leaves a file when it is started."""
    programs, started = tmp_path / "programs", tmp_path / "started"
    programs.mkdir()
    for name in ("gs", "gswin64c"):
        (programs / name).write_text(f"#!/bin/sh\necho run >> '{started}'\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    return started


def test_a_page_description_called_jpg_starts_no_program(tmp_path, photo, ghostscript):
    path = tmp_path / "photo.jpg"
    photo.save(path, "EPS")
    with pytest.raises(ImageError, match=r"photo.jpg is not an image that Pillow reads as JPEG"):
        open_image(path)
    assert not ghostscript.exists()
    with pytest.raises(OSError, match=r"\w"), Image.open(path) as image:
        image.load()
    assert "run" in ghostscript.read_text(), "Pillow left to choose does not start it either"


def test_paths_images_and_arrays_in_any_mixture(tmp_path, photo):
    photo.save(tmp_path / "photo.png")
    array = np.array(photo)
    found = pictures([tmp_path / "photo.png", str(tmp_path / "photo.png"), photo, array])
    assert len(found) == 4
    assert all((picture == array).all() for picture in found)
    assert (pictures(pandas.Series([photo]))[0] == array).all()
    assert (pictures(array[None])[0] == array).all()
    assert pictures(found) is found


def test_scenes_are_named_by_all_that_is_drawn_and_by_nothing_else():
    scenes = plantedworld.faces(2, np.random.default_rng(3)).iloc[:20]
    ids, pixels = pictures(scenes).ids, pictures(plantedworld.draw(scenes)).ids
    assert len(set(ids)) >= len(set(pixels)) > 1
    assert len(set(zip(ids, pixels, strict=True))) == len(set(ids))  # one name, one picture
    assert pictures(scenes.assign(caption="a photo", triplet=range(20))).ids == ids
    moved = pictures(scenes.assign(layout=scenes["layout"] + 1)).ids
    assert not set(moved) & set(ids)
    assert pictures(plantedworld.blank(2)).ids == ["white", "white"]
    hatched = plantedworld.Scenes(scenes, "hatched")
    assert hatched.source != plantedworld.Scenes(scenes).source
    unknown = scenes.assign(blank=[None, *[False] * 19])
    with pytest.raises(ValueError, match="scene 0: blank is not known"):
        plantedworld.draw(unknown)


def test_ids_are_hashes_of_content(tmp_path, photo):
    photo.save(tmp_path / "one.png")
    os.link(tmp_path / "one.png", tmp_path / "two.png")
    found = pictures([tmp_path / "one.png", tmp_path / "two.png", photo, np.array(photo)])
    assert found.ids[0] == found.ids[1] == runtime.file_sha256(tmp_path / "one.png")
    assert found.ids[2] == found.ids[3] != found.ids[0]
    before = found.ids[0]
    photo.rotate(180).save(tmp_path / "one.png")
    assert pictures([tmp_path / "one.png"]).ids != [before]
    flat, tall = np.zeros((2, 8, 3), np.uint8), np.zeros((8, 2, 3), np.uint8)
    assert len(set(pictures([flat, tall]).ids)) == 2
    with pytest.raises(ImageError) as caught:
        _ = pictures([tmp_path / "gone.jpg"]).ids
    assert caught.value.path == tmp_path / "gone.jpg"


class Half:
    """Takes every other pixel, and no picture that is less than four pixels high."""

    def __call__(self, picture):
        if len(picture) < 4:
            raise ValueError("too flat")
        return picture[::2, ::2]


@pytest.fixture
def mixed(tmp_path):
    """Seventy pictures of different heights, every other one a file; and the same as arrays."""
    rng = np.random.default_rng(1)
    arrays = [rng.integers(0, 255, (4 + i, 8, 3), np.uint8) for i in range(70)]
    for i in range(0, 70, 2):
        Image.fromarray(arrays[i]).save(tmp_path / f"{i}.png")
    return [array if i % 2 else tmp_path / f"{i}.png" for i, array in enumerate(arrays)], arrays


@pytest.fixture(params=[0, 2])
def n_workers(request, monkeypatch):
    """How many workers there are, whatever the pictures and the machine."""
    if request.param and not images.FORKS:
        pytest.skip("no processes are forked here")
    monkeypatch.setattr(images, "_workers", lambda *_: request.param)
    return request.param


@pytest.mark.usefixtures("n_workers")
def test_order_is_kept_with_workers_and_without(mixed):
    shown, arrays = mixed
    rows = np.random.default_rng(2).permutation(70)
    halves = prefetched(pictures(shown), Half(), [rows[:30], rows[30:]], list)
    found = [half for batch in halves for half in batch]
    assert len(found) == 70
    for half, row in zip(found, rows, strict=True):
        assert np.array_equal(half, arrays[row][::2, ::2])
    batches = [rows[:40], rows[40:], rows[:1]]
    totals = prefetched(pictures(shown), np.sum, batches, sum)
    assert list(totals) == [sum(arrays[row].sum() for row in batch) for batch in batches]


def test_many_pictures_need_no_shared_memory(tmp_path, monkeypatch, photo):
    """As in a container that mounts /dev/shm read-only, where no lock can be made."""

    def refused(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(multiprocessing.synchronize.SemLock, "__init__", refused)
    monkeypatch.setattr(os, "access", lambda path, kind: path != "/dev/shm")
    photo.save(tmp_path / "photo.png")
    assert check_images([tmp_path / "photo.png"] * 300).empty


@pytest.mark.usefixtures("n_workers")
def test_an_error_in_a_worker_names_the_file_and_earlier_batches_arrive(tmp_path):
    good, flat = np.zeros((4, 4, 3), np.uint8), np.zeros((2, 4, 3), np.uint8)
    (tmp_path / "cut.jpg").write_bytes(b"\xff\xd8")
    for bad, problem in ((tmp_path / "cut.jpg", "cut.jpg is"), (flat, "image 20 .*too flat")):
        shown = pictures([*[good] * 20, bad, good])
        batches = prefetched(shown, Half(), [range(16), range(16, 22)], np.stack)
        assert next(batches).shape == (16, 2, 2, 3)
        with pytest.raises(ImageError, match=problem):
            next(batches)


# Batches for a network


def as_planes(picture):
    return {"pixel_values": picture.transpose(2, 0, 1)}


def normalised(picture):
    """What an image processor makes of a picture that it does not resize."""
    means, stds = np.array([0.4, 0.5, 0.6]), np.array([0.2, 0.3, 0.4])
    pixels = (picture / 255 - means) / stds
    return {"pixel_values": pixels.transpose(2, 0, 1).astype(np.float32)}


@pytest.mark.usefixtures("n_workers")
@pytest.mark.parametrize("shared", [True, False])
def test_batches_are_normalised_and_padded_with_zeros(mixed, monkeypatch, shared):
    """Workers send tensors through shared memory, or arrays where there is little of it."""
    shown, arrays = mixed
    monkeypatch.setattr(transforms, "shared_room", lambda: np.inf if shared else 0)
    transform = transforms.split(normalised, as_planes)
    assert transform.scale == pytest.approx([1 / (255 * std) for std in (0.2, 0.3, 0.4)])
    planned = [np.array([9, 9, 2]), np.array([4, 9, 4]), np.array([6])]
    batches = list(transforms.image_batches(pictures(shown), transform, planned, "cpu"))
    assert [each.images.tolist() for each in batches] == [[9, 2], [4, 9], [6]]
    for batch in batches:
        pixels = batch.of(batch.images)["pixel_values"].numpy()
        for row, image in zip(pixels, batch.images, strict=True):
            expected = normalised(arrays[image])["pixel_values"]
            height = expected.shape[1]
            np.testing.assert_allclose(row[:, :height], expected, atol=1e-6)
            assert not row[:, height:].any()
    one = batches[0].of([2, 2])["pixel_values"]
    assert np.array_equal(one[0], batches[0].of([9, 2])["pixel_values"][1])
    assert np.array_equal(one[0], one[1])


def test_a_model_on_the_processor_asks_nothing_of_a_card_that_is_there(mixed, monkeypatch):
    """Pinned memory would: of a card that is full, or here of none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    transform = transforms.split(normalised, as_planes)
    planned = [np.array([9, 2])]
    [batch] = transforms.image_batches(pictures(mixed[0]), transform, planned, "cpu")
    assert len(batch.of([9])["pixel_values"]) == 1


def test_a_batch_without_memory_on_its_way_follows_in_parts(mixed, monkeypatch):
    shown, transform = pictures(mixed[0]), transforms.split(normalised, as_planes)
    planned = [np.array([9, 2]), np.array([2, 9])]

    def batches():
        return transforms.image_batches(shown, transform, planned, "cpu")

    expected = [batch.of([9])["pixel_values"] for batch in batches()]
    to = torch.Tensor.to

    def with_room_for_one(tensor, *args, **kwargs):
        if tensor.dtype == torch.uint8 and len(tensor) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return to(tensor, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "to", with_room_for_one)
    for batch, one in zip(batches(), expected, strict=True):
        with pytest.raises(torch.OutOfMemoryError):
            batch.of([9, 2])
        assert torch.equal(batch.of([9])["pixel_values"], one)


def test_what_cannot_be_normalised_after_resizing_is_left_to_the_workers():
    def first_lighter(picture):
        pixels = normalised(picture)["pixel_values"]
        pixels[:, 0] += 1
        return {"pixel_values": pixels}

    assert transforms.split(first_lighter, as_planes).scale is None
    assert transforms.split(normalised, normalised).scale is None


@pytest.mark.parametrize("expected", [range(20, 60), range(0, 20), ()])
def test_workers_of_a_run_are_started_once_and_give_each_part_its_own(
    mixed, monkeypatch, n_workers, expected
):
    """Whatever was expected; what is left unread, or read beside another part, goes to no other."""
    from torch.utils import data

    started, real = [], data.DataLoader
    monkeypatch.setattr(
        data, "DataLoader", lambda *args, **kwargs: started.append(1) or real(*args, **kwargs)
    )
    shown, arrays = mixed
    workers = Workers(pictures(shown), lambda: [*range(20), *expected])
    half = Half()

    def halves(rows, size=1):
        batches = [range(len(rows))[start : start + size] for start in range(0, len(rows), size)]
        return prefetched(workers.part(rows), half, batches, list)

    def require(found, rows):
        for each, row in zip(found, rows, strict=True):
            assert np.array_equal(each, arrays[row][::2, ::2])

    for start, size in ((0, 5), (20, 5), (40, 4)):
        rows = list(range(start, start + 20))
        for at, found in enumerate(halves(rows, size)):
            require(found, rows[at * size : (at + 1) * size])
    assert len(started) == (n_workers > 0)
    left = halves([3, 4])
    require(next(left), [3])
    require(next(halves([5])), [5])
    require(next(left), [4])
    left = halves([6, 7])
    require(next(left), [6])
    del left
    require(next(halves([8])), [8])
    workers.close()
    require(next(halves([9])), [9])
