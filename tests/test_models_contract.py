"""What every model shows, whatever its family: small networks with random weights."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support import families, small_models

import plantedworld
from biaslib import capabilities as can
from biaslib import models
from biaslib.capabilities import CapabilityError
from biaslib.errors import CheckpointError
from biaslib.models.fusion import Mask
from biaslib.runtime import batches

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* was trained on features of:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* cannot .* have no head for it:UserWarning"),
]
TEXTS = ["the woman is carrying a nurse.", "old", "a man is here.", "the pilot is a tall woman."]
WORDS = ["carrying", "old", "man", "woman"]
MASKED = ["the [MASK] is a nurse.", "[MASK]", "a man is [MASK] here.", "the tall [MASK]."]
CANDIDATES = ["woman", "carrying", "abcd"]
CAPTIONS = [[text, "the nurse is here.", "a man"] for text in TEXTS]
LIMITS = {"vl-bert": 18, "vilt": 40, "open-clip": 12, **dict.fromkeys(families.DUAL, 64)}
LIMITS["siglip"] = LIMITS["siglip2"] = None
FUSION = (*families.OF_REGIONS, "albef", "vilt", "flava")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("families")
    return {name: families.save(name, root / name) for name in families.NAMES}


@pytest.fixture(scope="module")
def loaded(folders):
    return {
        name: models.load(families.registered(name), checkpoint=folder, device="cpu")
        for name, folder in folders.items()
    }


@pytest.fixture
def model(request, loaded):
    return loaded[request.param]


def of(*names):
    return pytest.mark.parametrize("model", names or families.NAMES, indirect=True)


def shown(model):
    """Return four pictures as a model reads them."""
    return families.regions() if hasattr(model, "width_setting") else small_models.pictures(4)


def taken(images, rows):
    return [images[row] for row in rows] if isinstance(images, list) else images[list(rows)]


def answers(model, images, rows=range(4), **options) -> dict[str, np.ndarray]:
    """Return all that a model says of rows."""

    def some(all_of_them):
        return [all_of_them[row] for row in rows]

    asked: dict[str, Callable] = {
        can.EMBED: lambda: model.embed(some(TEXTS), **options),
        can.FILL: lambda: model.mask_log_prob(some(MASKED), CANDIDATES, **options),
        can.EMBED_WITH_IMAGES: lambda: model.embed(some(TEXTS), taken(images, rows)),
        can.FILL_WITH_IMAGES: lambda: model.mask_log_prob(
            some(MASKED), CANDIDATES, taken(images, rows)
        ),
        can.MATCH: lambda: model.match(taken(images, rows), some(CAPTIONS)),
        can.ENCODE: lambda: model.encode_text(some(TEXTS)),
    }
    found = {name: ask() for name, ask in asked.items() if name in model.capabilities}
    if can.ENCODE in model.capabilities:
        found["images"] = model.encode_image(taken(images, rows))
    if {can.EMBED, can.EMBED_WITH_IMAGES} & model.capabilities:
        seen = () if can.EMBED_WITH_IMAGES not in model.capabilities else (taken(images, rows),)
        words = some(WORDS)
        found["contextual"] = model.embed(some(TEXTS), *seen, level="contextual", words=words)
    return found


def require_near(found, expected, atol=1e-5, rtol=1e-6):
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        np.testing.assert_allclose(found[name], each, atol=atol, rtol=rtol, err_msg=name)


# Batches, order and padding


@of()
@pytest.mark.parametrize("size", [1, 3])
def test_one_row_alone_is_the_same_in_any_batch_and_order(model, size, monkeypatch):
    """The rows differ in the number of tokens, so each has other padding in each batch."""
    images = shown(model)
    alone = [answers(model, images, [row]) for row in range(4)]
    expected = {name: np.concatenate([each[name] for each in alone]) for name in alone[0]}
    for each in expected.values():
        assert np.abs(each - each[0]).max() > 1e-3  # rows differ, so that order shows
    order = [2, 0, 3, 1]
    if hasattr(model, "batch_size"):
        monkeypatch.setattr(model, "batch_size", size)
    found = answers(model, images, order)
    require_near(found, {name: each[order] for name, each in expected.items()})


@of("bert", *families.DUAL, "open-clip", "albef", "flava")
def test_the_number_of_rows_a_pass_changes_nothing(model):
    if can.ENCODE in model.capabilities:
        asked = [(model.encode_text, TEXTS), (model.encode_image, small_models.pictures(4))]
    else:
        asked = [(model.embed, TEXTS)]
    for ask, rows in asked:
        np.testing.assert_allclose(ask(rows, batch_size=3), ask(rows), atol=1e-5)


@of("bert", *families.DUAL, "open-clip", "albef", "flava")
def test_a_device_is_asked_how_many_rows_fit(model, monkeypatch):
    sizes, run = [], batches._Batches
    for module in ("text", "bert", "dual", "pixel_model"):
        place = f"biaslib.models.{module}.rows_that_fit"
        monkeypatch.setattr(place, lambda device, least: 3, raising=False)
    monkeypatch.setattr(
        batches,
        "_Batches",
        lambda rows, ask, size, load: sizes.append(size) or run(rows, ask, size, load),
    )
    if can.ENCODE in model.capabilities:
        model.encode_text(TEXTS), model.encode_image(small_models.pictures(4))
    else:
        model.embed(TEXTS), model.mask_log_prob(MASKED, CANDIDATES)
    assert sizes == [3, 3]


@of(*families.OF_REGIONS)
def test_regions_that_are_not_there_are_not_read(model):
    images = families.regions()
    wide = {}
    for part in ("features", "boxes", "real", "persons"):
        each = getattr(images, part)
        more = np.zeros((len(each), 3, *each.shape[2:]), each.dtype)
        wide[part] = np.concatenate([each, more + np.nan if part == "features" else more], axis=1)
    require_near(answers(model, dataclasses.replace(images, **wide)), answers(model, images))


# Numbers


@of()
def test_the_same_input_gives_the_same_bytes_and_leaves_torchs_generator_alone(model):
    images, state = shown(model), torch.get_rng_state()
    first, again = answers(model, images), answers(model, images)
    for name, each in first.items():
        assert each.tobytes() == again[name].tobytes(), name
    assert torch.equal(torch.get_rng_state(), state)


@of()
@pytest.mark.parametrize(("dtype", "share"), [(torch.bfloat16, 0.15), (torch.float16, 0.02)])
def test_half_the_precision_is_close_to_float32(model, dtype, share, monkeypatch):
    """To a share of how far the rows are apart."""
    whole = answers(model, shown(model))
    for module in ("fusion", "text", "dual", "pixel_model", "bert"):
        monkeypatch.setattr(
            f"biaslib.models.{module}.autocast",
            lambda _: torch.autocast("cpu", dtype=dtype),
            raising=False,
        )
    half = answers(model, shown(model))
    for name, each in whole.items():
        assert half[name].dtype == each.dtype
        apart = np.abs(half[name] - each).max()
        assert 0 < apart <= share * np.ptp(each), name


@of("albef", "flava", *families.DUAL, "open-clip")
def test_vectors_have_length_one(model):
    for vectors in (model.encode_text(TEXTS), model.encode_image(small_models.pictures(4))):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        assert vectors.dtype == np.float32


@of(*(name for name in families.NAMES if name != "bert"))
def test_planted_scenes_are_read_by_their_regions_or_drawn(model):
    scenes = plantedworld.faces(1, np.random.default_rng(3)).iloc[:2]
    if can.ENCODE in model.capabilities:
        read = model.encode_image
    else:

        def read(images):
            return model.embed(TEXTS[:2], images)

    if hasattr(model, "width_setting"):
        from plantedworld.models.regions import regions_of as seen
    else:
        seen = plantedworld.draw
    found = read(scenes)
    np.testing.assert_allclose(found, read(seen(scenes)), atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-3


@of(*FUSION)
def test_hidden_words_are_mask_tokens_for_the_network(model):
    images = shown(model)
    texts = ["the [MASK] is [MASK][MASK][MASK] a nurse.", *TEXTS[1:3]]
    texts.append("the pilot is a tall [MASK].")
    hidden = model.embed(TEXTS, images, mask=Mask(words=["woman", "carrying"]))
    np.testing.assert_allclose(hidden, model.embed(texts, images), atol=1e-5)
    assert np.abs(hidden - model.embed(TEXTS, images))[[0, 3]].max(axis=1).min() > 1e-3


@of(*families.OF_REGIONS)
def test_hidden_persons_leave_no_trace_of_their_features(model):
    images, mask = families.regions(), Mask(persons=True)
    features = images.features.copy()
    features[images.persons] = 9.0
    other = dataclasses.replace(images, features=features)
    hidden = model.embed(TEXTS, images, mask=mask)
    np.testing.assert_allclose(hidden, model.embed(TEXTS, other, mask=mask), atol=1e-6)
    assert np.abs(hidden - model.embed(TEXTS, images)).max() > 1e-3


# Capabilities


@of()
def test_models_can_do_what_the_registry_says(model, request):
    name = request.node.callspec.params["model"]
    assert model.capabilities == {*models.REGISTRY[families.registered(name)].capabilities} | (
        {can.MATCH} if name == "vilt" else set()
    )


@of(*FUSION, "bert")
def test_what_lacks_a_head_says_so(model, monkeypatch):
    images = shown(model)
    lacking = set(can.NAMES) - model.capabilities
    asked = {
        can.FILL: lambda: model.mask_log_prob(MASKED, CANDIDATES),
        can.EMBED: lambda: model.embed(TEXTS),
        can.FILL_WITH_IMAGES: lambda: model.mask_log_prob(MASKED, CANDIDATES, images),
        can.EMBED_WITH_IMAGES: lambda: model.embed(TEXTS, images),
        can.MATCH: lambda: model.match(images, CAPTIONS),
    }
    if model.name == "bert":
        asked = {can.FILL: asked[can.FILL]}
    for name in lacking & asked.keys():
        with pytest.raises(CapabilityError, match=name):
            asked[name]()
    monkeypatch.setattr(model, "capabilities", frozenset())
    for name, ask in asked.items():
        with pytest.raises(CapabilityError, match=name):
            ask()


# Bad input


@of(*(name for name in families.NAMES if not name.startswith("siglip")))
def test_texts_that_are_too_long_or_no_texts_are_refused(model, request):
    """ALBEF counts a [SEP] that it does not read; of VL-BERT's positions two are for regions."""
    name = request.node.callspec.params["model"]
    most = LIMITS.get(name, families.LONGEST)
    images = shown(model)[:1] if name in FUSION else None

    def ask(text):
        if can.ENCODE in model.capabilities and name not in ("albef", "flava"):
            return model.encode_text(text)
        return model.embed(text, images)

    longest = " ".join(["the"] * (most - 2))
    assert len(ask([longest])) == 1
    with pytest.raises(ValueError, match=rf"text 0 has {most + 1} tokens, and .* takes {most}"):
        ask([f"{longest} the"])
    with pytest.raises(TypeError, match="texts is one string"):
        ask("the woman")
    with pytest.raises(ValueError, match=r"empty|no texts"):
        ask([])


@of(*FUSION)
def test_images_and_texts_that_do_not_go_together_are_refused(model):
    images = shown(model)
    with pytest.raises(ValueError, match="4 images for 2 texts"):
        model.embed(TEXTS[:2], images)
    if can.MATCH in model.capabilities:
        with pytest.raises(ValueError, match="4 images for 2 texts"):
            model.match(images, CAPTIONS[:2])
        with pytest.raises(ValueError, match="matching needs an image"):
            model.match(None, CAPTIONS)
    with pytest.raises(TypeError, match="single image"):
        model.embed(TEXTS[:1], "photo.jpg")


@of("albef", "flava", *families.DUAL, "open-clip")
def test_no_pictures_are_refused(model):
    with pytest.raises(ValueError, match="empty"):
        model.encode_image([])


@of(*families.OF_REGIONS)
def test_features_of_another_width_are_refused(model):
    images = families.regions()
    narrow = dataclasses.replace(images, features=images.features[..., :8])
    with pytest.raises(ValueError, match="reads 67 numbers a region, and these features have 8"):
        model.embed(TEXTS, narrow)


# Checkpoints


@pytest.mark.parametrize("name", families.NAMES)
def test_weights_that_are_missing_or_left_over_are_named(name, folders, tmp_path):
    for file in folders[name].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (path,) = tmp_path.glob("*.safetensors")
    weights = load_file(path)
    taken = next(key for key in sorted(weights) if ".1." in key and key.endswith("bias"))
    del weights[taken]
    save_file({**weights, "left.over": torch.ones(1)}, path, {"format": "pt"})
    with pytest.raises(CheckpointError) as told:
        models.load(families.registered(name), checkpoint=tmp_path, device="cpu")
    assert taken in str(told.value)
    assert "left.over" in str(told.value)


@pytest.mark.parametrize("name", FUSION)
def test_a_checkpoint_of_another_family_is_named(name, folders):
    other = "flava" if name == "albef" else "albef"
    with pytest.raises(CheckpointError, match=rf"of '{other}' .*'{name}' is loaded from"):
        models.load(name, checkpoint=folders[other], device="cpu")
