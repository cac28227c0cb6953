"""What every model shows, whatever its family: small networks with random weights."""

import dataclasses
import functools
import shutil
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
from biaslib.runtime import UnknownNameError

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


def images_of(model):
    """Return four pictures as a model reads them."""
    return families.regions() if hasattr(model, "width_setting") else small_models.pictures(4)


def taken(images, rows):
    return [images[row] for row in rows] if isinstance(images, list) else images[list(rows)]


def answers(model, images, rows=range(4), **options) -> dict[str, np.ndarray]:
    """Return all that a model says of rows."""

    def some(all_of_them):
        return [all_of_them[row] for row in rows]

    calls: dict[str, Callable] = {
        can.EMBED: lambda: model.embed(some(TEXTS), **options),
        can.FILL: lambda: model.mask_log_prob(some(MASKED), CANDIDATES, **options),
        can.EMBED_WITH_IMAGES: lambda: model.embed(some(TEXTS), taken(images, rows)),
        can.FILL_WITH_IMAGES: lambda: model.mask_log_prob(
            some(MASKED), CANDIDATES, taken(images, rows)
        ),
        can.MATCH: lambda: model.match(taken(images, rows), some(CAPTIONS)),
        can.ENCODE: lambda: model.encode_text(some(TEXTS)),
    }
    found = {name: call() for name, call in calls.items() if name in model.capabilities}
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
    images = images_of(model)
    alone = [answers(model, images, [row]) for row in range(4)]
    expected = {name: np.concatenate([each[name] for each in alone]) for name in alone[0]}
    for each in expected.values():
        assert np.abs(each - each[0]).max() > 1e-3  # rows differ, so that order shows
    order = [2, 0, 3, 1]
    if hasattr(model, "batch_size"):
        monkeypatch.setattr(model, "batch_size", size)
    found = answers(model, images, order)
    require_near(found, {name: each[order] for name, each in expected.items()})


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
    images, state = images_of(model), torch.get_rng_state()
    first, again = answers(model, images), answers(model, images)
    for name, each in first.items():
        assert each.tobytes() == again[name].tobytes(), name
    assert torch.equal(torch.get_rng_state(), state)


@of()
@pytest.mark.parametrize(("dtype", "share"), [(torch.bfloat16, 0.15), (torch.float16, 0.02)])
def test_half_the_precision_is_close_to_float32(model, dtype, share, monkeypatch):
    """To a share of how far the rows are apart."""
    whole = answers(model, images_of(model))
    for module in ("fusion", "text", "dual", "pixel_model", "bert"):
        monkeypatch.setattr(
            f"biaslib.models.{module}.autocast",
            lambda _: torch.autocast("cpu", dtype=dtype),
            raising=False,
        )
    half = answers(model, images_of(model))
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
    images = images_of(model)
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


# What is refused


def refusal(ask, kind=(ValueError, UnknownNameError)):
    with pytest.raises(kind) as caught:
        ask()
    return caught.value


@of(*FUSION, "bert")
def test_what_lacks_a_head_says_so(model, monkeypatch):
    images = images_of(model)
    calls = {
        can.FILL: lambda: model.mask_log_prob(MASKED, CANDIDATES),
        can.EMBED_WITH_IMAGES: lambda: model.embed(TEXTS, images),
        can.FILL_WITH_IMAGES: lambda: model.mask_log_prob(MASKED, CANDIDATES, images),
        can.MATCH: lambda: model.match(images, CAPTIONS),
    }
    if model.name == "bert":
        calls = {can.FILL: calls[can.FILL]}
    monkeypatch.setattr(model, "capabilities", frozenset())
    for name, call in calls.items():
        assert name in str(refusal(call, CapabilityError))


@of(*(name for name in families.NAMES if not name.startswith("siglip")))
def test_texts_that_cannot_be_read_are_refused(model, request):
    """ALBEF counts a [SEP] that it does not read; of VL-BERT's positions two are for regions."""
    name = request.node.callspec.params["model"]
    images = images_of(model)[:1] if name in FUSION else None

    def read(texts):
        if can.ENCODE in model.capabilities and name not in ("albef", "flava"):
            return model.encode_text(texts)
        return model.embed(texts, images)

    longest = " ".join(["the"] * (LIMITS.get(name, families.LONGEST) - 2))
    assert len(read([longest])) == 1
    refusal(lambda: read([f"{longest} the"]))
    refusal(lambda: read("the woman"), TypeError)
    refusal(lambda: read([]))
    if name != "open-clip":  # byte pairs spell any word
        assert "π" in str(refusal(lambda: read(["the π"])))


@of(*FUSION, "bert")
def test_words_that_cannot_be_asked_for_are_refused(model):
    images = None if model.name == "bert" else images_of(model)[:1]
    for level, words in (("wrd", None), ("contextual", None), ("contextual", ["wom"])):
        refusal(lambda level=level, words=words: model.embed(TEXTS[:1], images, level, words))
    if not {can.FILL, can.FILL_WITH_IMAGES} & model.capabilities:
        return
    for text, words, options in (
        ("the woman", ["man"], {}),
        ("[MASK] [MASK]", ["man"], {}),
        ("[MASK]", [], {}),
        ("[MASK]", ["π"], {}),
        ("[MASK]", [""], {}),
        ("[MASK]", ["man"], {"pieces": "chains"}),
        ("[MASK]", ["man"], {"among": "candidate"}),
        ("the " * 40 + "[MASK]", ["man"], {}),
    ):
        ask = functools.partial(model.mask_log_prob, [text], words, images, **options)
        refusal(ask)


@of(*FUSION)
def test_images_that_do_not_go_with_the_texts_are_refused(model):
    images = images_of(model)
    refusal(lambda: model.embed(TEXTS[:2], images))
    refusal(lambda: model.embed(TEXTS[:1], "photo.jpg"), TypeError)
    if can.MATCH in model.capabilities:
        for matched, captions in ((images, CAPTIONS[:2]), (None, CAPTIONS), (images, [["a"]] * 3)):
            refusal(lambda m=matched, c=captions: model.match(m, c))
    if isinstance(images, families.RegionFeatures):
        narrow = dataclasses.replace(images, features=images.features[..., :8])
        refusal(lambda: model.embed(TEXTS, narrow))
    elif can.ENCODE in model.capabilities:
        refusal(lambda: model.encode_image([]))


# Checkpoints


@pytest.mark.parametrize("name", families.NAMES)
def test_weights_that_are_missing_or_left_over_are_named(name, folders, tmp_path):
    shutil.copytree(folders[name], tmp_path, dirs_exist_ok=True)
    (path,) = tmp_path.glob("*.safetensors")
    weights = load_file(path)
    lost = next(key for key in sorted(weights) if ".1." in key and key.endswith("bias"))
    del weights[lost]
    save_file({**weights, "left.over": torch.ones(1)}, path, {"format": "pt"})
    with pytest.raises(CheckpointError) as caught:
        models.load(families.registered(name), checkpoint=tmp_path, device="cpu")
    assert lost in str(caught.value)
    assert "left.over" in str(caught.value)


@pytest.mark.parametrize("name", FUSION)
def test_a_checkpoint_of_another_family_is_refused(name, folders):
    other = "flava" if name == "albef" else "albef"
    with pytest.raises(CheckpointError, match=other):
        models.load(name, checkpoint=folders[other], device="cpu")
