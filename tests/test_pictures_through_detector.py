"""Pictures to region models: looked at once by the detector, and read as each model reads them."""

import copy
import warnings

import numpy as np
import pytest
from support import repositories
from support.hub import instead_of_the_real_one

from biaslib import models
from biaslib.models import region_model
from biaslib.models.fusion import Mask
from biaslib.pictures import detector
from biaslib.runtime import Store

pytestmark = pytest.mark.filterwarnings("ignore:.* was trained on features of:UserWarning")

TEXTS = ["the woman is here", "a man", "the nurse"]
TRAINED_WITH_IT = ["lxmert", "vl-bert", "vl-bert-large"]
TRAINED_WITH_ANOTHER = ["visualbert", "vilbert"]


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder, scratch = (tmp_path_factory.mktemp(name) for name in ("served", "scratch"))
    needed = ["bert", "visualbert-nlvr2", "albef", "detector"]
    for name in (*needed, *TRAINED_WITH_IT, *TRAINED_WITH_ANOTHER):
        repositories.build(name, folder)
    with instead_of_the_real_one(folder, scratch) as running:
        yield running


@pytest.fixture(scope="module")
def finder(hub):
    return models.load("detector", profile="paper", device="cpu")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    paths = [folder / f"{seed}.png" for seed in range(3)]
    for seed, path in enumerate(paths):
        repositories.picture(seed).save(path)
    return paths


@pytest.fixture(scope="module")
def regions(finder, files):
    return finder.regions(files)


def load(name):
    return models.load(name, profile="paper", device="cpu")


@pytest.mark.parametrize("name", [*TRAINED_WITH_IT, *TRAINED_WITH_ANOTHER])
def test_pictures_give_what_their_regions_give(hub, files, regions, name):
    model = load(name)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = model.embed(TEXTS, files)
    assert np.allclose(found, model.embed(TEXTS, regions), atol=1e-5)
    told = [str(each.message) for each in said if "was trained on features of" in str(each.message)]
    assert bool(told) == (name in TRAINED_WITH_ANOTHER)
    assert not np.array_equal(found[0], model.embed(TEXTS, files[::-1])[0])


def test_what_was_found_is_kept_by_detector_and_content(finder, files, regions, tmp_path):
    store, looked = Store(tmp_path / "store"), []

    class Counted:
        name, revision = finder.name, finder.revision
        with_persons = staticmethod(finder.with_persons)

        @staticmethod
        def regions(images):
            looked.extend(images.ids)
            return finder.regions(images)

    first = region_model.found_regions(files[:2], Counted, store)[[0, 1]]
    moved = tmp_path / "moved.png"
    moved.write_bytes(files[1].read_bytes())
    second = region_model.found_regions([files[2], moved, files[0], moved], Counted, store)
    assert (len(second), second.width) == (4, regions.width)
    second = second[np.arange(4)]
    assert second.labelled
    assert len(looked) == len(set(looked)) == 3
    for name, expected in regions.arrays().items():
        assert np.allclose(getattr(first, name), expected[:2], atol=1e-4), name
        assert np.allclose(getattr(second, name), expected[[2, 1, 0, 1]], atol=1e-4), name
    assert first.class_names == regions.class_names == tuple(repositories.CLASSES)
    Counted.revision = "another"
    region_model.found_regions(files[:1], Counted, store)
    assert len(looked) == 4


def test_a_mask_hides_persons_and_the_regions_with_its_words(hub, files, regions):
    names = np.array([*repositories.CLASSES, ""])[regions.classes]
    persons = np.isin(names, ["person", "woman", "man"])
    assert np.array_equal(regions.persons, persons)
    word = next(name for name in ("nurse", "dog", "cup", "tree", "sky") if (names == name).any())
    named = names == word
    assert persons.any()
    model = load("lxmert")
    rows = np.arange(3)
    prepared = model.prepare(files)[rows]
    for words, hidden in (([], persons), ([word.title()], persons | named)):
        seen = model.visual(prepared, rows, Mask(words=words, persons=True))
        assert np.array_equal(~seen["features"].numpy().any(axis=2), hidden)
    seen = model.visual(prepared, rows, None)["features"]
    assert np.allclose(seen, regions.features, atol=1e-4)
    hidden = model.embed(TEXTS, files, mask=Mask(words=["nurse"], persons=True))
    assert not np.array_equal(hidden, model.embed(TEXTS, files))


def test_hidden_regions_do_not_count_in_the_whole_image(hub, files, regions):
    counted = regions.real & ~regions.persons & ~regions.named(["nurse", "dog"])
    expected = np.where(counted[..., None], regions.features, 0).sum(axis=1)
    expected /= np.maximum(counted.sum(axis=1, keepdims=True), 1)
    assert expected.any(axis=1).sum() >= 1
    for name in ("vl-bert", "vilbert"):
        seen = load(name).visual(regions, np.arange(3), Mask(words=["nurse", "dog"], persons=True))
        np.testing.assert_allclose(seen["features"][:, 0], expected, rtol=1e-4, atol=1e-5)


def test_pictures_in_which_nothing_is_found_are_named(hub, files, monkeypatch):
    model = load("lxmert")
    blind = with_smallest_side(model.detector, 1e6)
    monkeypatch.setattr(model, "detector", blind)
    with (
        pytest.warns(UserWarning, match="found nothing in"),
        pytest.raises(ValueError, match=r"nothing in 3 of 3 pictures: .*0\.png, .*1\.png, .*2.p"),
    ):
        model.embed(TEXTS, files)
    # Known from the store the second time, and named again.
    with pytest.raises(ValueError, match=r"nothing in 1 of 1 pictures: .*1\.png"):
        model.embed(TEXTS[:1], files[1:2])


def with_smallest_side(found, pixels):
    """Return a detector with the same weights that passes over what is smaller."""
    network = copy.deepcopy(found.network)
    network.config.proposal_generator.min_size = pixels
    return detector.Detector(network, found.name, "blind", "cpu", found.class_names)
