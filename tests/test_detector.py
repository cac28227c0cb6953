"""The region detector: equal to the official outputs, and sound where the official code fails."""

import copy
import json
import pathlib
import pickle

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from torchvision.ops import box_iou

from biaslib import models
from biaslib.checkpoints.weights import CheckpointError
from biaslib.pictures import detector
from biaslib.pictures.faster_rcnn import FasterRcnn, FasterRcnnConfig, Readings, select

GOLDEN = pathlib.Path(__file__).parent / "golden" / "frcnn"
SETTINGS = json.loads((GOLDEN / "config.json").read_text())
CLASSES = ["man", "dog", "hat", "woman", "nurse", "car", "tree", "cup", "sky", "boy", "cat", "sea"]
ATTRIBUTES = ["red", "tall", "wet", "old", "blue", "flat", "open"]
ANCHORS = "proposal_generator.anchor_generator.cell_anchors.0"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def weights():
    return load_file(GOLDEN / "weights.safetensors")


@pytest.fixture(scope="module")
def network(weights):
    network = FasterRcnn(FasterRcnnConfig(SETTINGS)).eval()
    network.load_state_dict(weights)
    return network


def small_settings(**changed):
    """Return the fixture's settings, with some changed: section__name=value.

    Pictures are small, and their contrast is, so that the random network finds a variety of things.
    """
    settings = json.loads(json.dumps(SETTINGS))
    settings["model"]["pixel_std"] = [100.0, 100.0, 50.0]
    settings["input"] |= {"min_size_test": 96, "max_size_test": 160}
    for place, value in changed.items():
        section = settings
        *sections, name = place.split("__")
        for each in sections:
            section = section[each]
        section[name] = value
    return settings


def load(folder, device="cpu", **options):
    return models.load("detector", checkpoint=folder, device=device, **options)


@torch.inference_mode()
def detect(model, picture):
    """Return what the network finds in one picture, with boxes in pixels of the picture."""
    prepared = prepare(model.config, picture)
    found = model.network(prepared)
    height, width = (
        own / given for own, given in zip(picture.shape[:2], prepared.shape[-2:], strict=True)
    )
    return found._replace(boxes=found.boxes * torch.tensor([width, height, width, height]))


def prepare(config, picture):
    preparation = detector.Preparation(config)
    return preparation.prepared(torch.tensor(preparation(picture)["pixel_values"])[None])


def write_official(folder, weights, settings=None, labels=True):
    """Write a checkpoint in the published layout."""
    folder.mkdir()
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "config.yaml").write_text(yaml.safe_dump(settings or small_settings()))
    if labels:
        (folder / "objects_vocab.txt").write_text("\n".join(CLASSES) + "\n")
        (folder / "attributes_vocab.txt").write_text("\n".join(ATTRIBUTES) + "\n")
    return folder


@pytest.fixture(scope="module")
def official(tmp_path_factory, weights):
    return write_official(tmp_path_factory.mktemp("checkpoints") / "official", weights)


@pytest.fixture(scope="module")
def loaded(official):
    return load(official, device="cpu")


@pytest.fixture(scope="module")
def shown():
    """Four pictures of different sizes; the first and the last have the same."""
    rng = np.random.default_rng(0)
    coarse = [rng.integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in [(6, 8), (9, 6), (3, 5)]]
    coarse.append(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    return [np.kron(each, np.ones((12, 12, 1), np.uint8)) for each in coarse]


# Parity


RUNS = [("single", 0), ("batch", 0), ("batch", 1)]


@pytest.mark.parametrize(("run", "row"), RUNS)
@torch.inference_mode()
def test_every_step_gives_what_the_official_network_gives(network, run, row):
    image, size, _, expected = golden(run, row)
    maps = network.backbone(image)
    logits, shifts = network.proposal_generator.rpn_head(maps)
    proposals, proposal_logits = network.proposal_generator(maps, size)
    readings = network.roi_heads(maps, proposals)
    anchors = network.proposal_generator.anchor_generator(*maps.shape[-2:])
    found = {"res4": maps[0], "rpn_objectness": logits[0], "rpn_deltas": shifts[0]}
    found |= {"anchors": anchors, "proposals": proposals, "proposal_logits": proposal_logits}
    names = ("feature_pooled", "obj_logits", "attr_logits", "box_deltas")
    found |= dict(zip(names, readings, strict=True))
    for name, values in found.items():
        tolerance = 1e-3 if name.startswith("proposals") else 1e-4
        np.testing.assert_allclose(values, expected[name], rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("run", "row"), RUNS)
@torch.inference_mode()
def test_regions_are_those_of_the_official_network(network, run, row):
    image, size, scale, expected = golden(run, row)
    found = network(image, size)
    k = expected["preds_per_image"]
    assert found.classes.tolist() == expected["obj_ids"][:k].tolist()
    assert found.attributes.tolist() == expected["attr_ids"][:k].tolist()
    boxes = found.boxes * scale[[1, 0, 1, 0]]
    np.testing.assert_allclose(boxes, expected["boxes"][:k], rtol=0, atol=1e-3)
    np.testing.assert_allclose(found.scores, expected["obj_probs"][:k], rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.features, expected["roi_features"][:k], rtol=0, atol=1e-4)


def golden(run, row):
    """Return a picture of the fixture as a run gets it, its size and scale, and its outputs.

    The official network pads the pictures of a batch to a common size.
    """
    given = {name: torch.from_numpy(a) for name, a in np.load(GOLDEN / "inputs.npz").items()}
    size, image = tuple(given["sizes"][row].tolist()), given["images"][row : row + 1]
    if run == "single":
        image = image[:, :, : size[0], : size[1]]
    outputs = np.load(GOLDEN / "outputs.npz")
    every = {name.removeprefix(f"{run}_"): outputs[name] for name in outputs if run in name}
    parts = [f"proposals{i}" for i in range(2)] + [f"proposal_logits{i}" for i in range(2)]
    counts = [len(every[name]) for name in ("proposals0", "proposals1") if name in every]
    first, expected = sum(counts[:row]), {}
    for name, values in every.items():
        if name in parts:
            if name.endswith(str(row)):
                expected[name[:-1]] = values
        elif name == "anchors":
            expected[name] = values
        elif len(values) == sum(counts):
            expected[name] = values[first : first + counts[row]]
        else:
            expected[name] = values[row]
    return image, size, given["scales_yx"][row], expected


def test_boxes_as_shares_are_the_official_ones(network):
    image, *_, expected = golden("single", 0)
    model = detector.Detector(network, "detector", "", "cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detector.Preparation, "prepared", lambda self, pixels: image)
        patch.setattr(detector.Preparation, "size", lambda self, *size: image.shape[-2:])
        regions = model.regions([np.zeros((144, 192, 3), np.uint8)])
    np.testing.assert_allclose(regions.boxes[0, :5], expected["normalized_boxes"][:5], atol=1e-6)


# Preparation


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [
        (480, 640, (800, 1067)),
        (640, 480, (1067, 800)),
        (600, 600, (800, 800)),
        (300, 900, (444, 1333)),
        (1000, 4000, (333, 1333)),
        (10, 12, (800, 960)),
    ],
)
def test_the_shorter_side_is_resized_unless_the_longer_one_passes_its_limit(
    height, width, expected
):
    config = FasterRcnnConfig(small_settings(input__min_size_test=800, input__max_size_test=1333))
    assert detector.Preparation(config).size(height, width) == expected


def test_colours_are_blue_green_red_less_their_means(network):
    picture = np.full((96, 128, 3), [10, 20, 30], np.uint8)
    config = FasterRcnnConfig(small_settings())
    (pixels,) = prepare(config, picture)
    assert pixels.shape == (3, 96, 128)
    assert pixels[:, 50, 60].tolist() == pytest.approx([-0.729801, -0.959465, -2.255434])


def test_a_picture_is_made_smaller_without_smoothing():
    picture = np.zeros((384, 384, 3), np.uint8)
    picture[:, 1::4] = 200
    config = FasterRcnnConfig(small_settings())
    (pixels,) = prepare(config, picture)
    # To a quarter: each new pixel lies between the second and third of four, and is their mean.
    np.testing.assert_allclose(100 * pixels[0, 40] + 102.9801, 100, atol=1e-3)


# Batches, and what the official code cannot do


def test_regions_do_not_depend_on_the_other_pictures(loaded, shown):
    together = loaded.regions(shown)
    assert together.features.shape == (4, 8, 192)
    assert together.sizes.tolist() == [[96, 72], [72, 108], [60, 36], [96, 72]]
    assert (together.real.sum(axis=1) >= 4).all()
    for row, picture in enumerate(shown):
        alone = loaded.regions([picture])
        assert alone.class_names == together.class_names == tuple(CLASSES)
        for name, numbers in alone.arrays().items():
            assert np.allclose(getattr(together, name)[row], numbers[0], atol=1e-4), name


# Half precision


def test_regions_stay_in_half_precision(official, loaded, monkeypatch):
    """95 of 100 at least, of random weights, to which many regions are nearly as likely.

    The detector takes float16 where bfloat16 is asked for, which keeps fewer.
    """
    pictures = coarse(16, 0)
    whole = loaded.regions(pictures)
    monkeypatch.setattr("biaslib.runtime.batches.precision", lambda *_: torch.bfloat16)
    half = load(official)
    assert half.precision == "float16"
    assert kept(whole, half.regions(pictures)) >= 0.95


def kept(whole, half, close=1e-3):
    """Return the share of regions that half precision keeps: class, box, and nearly the features.

    Features are told apart by the length of their difference, as a share of their own.
    """
    n_kept = 0
    for row in range(len(whole)):
        boxes = (torch.tensor(each.boxes[row][each.real[row]]) for each in (whole, half))
        best, place = (each.numpy() for each in box_iou(*boxes).max(dim=1))
        same = (best > 0.9) & (whole.classes[row][whole.real[row]] == half.classes[row][place])
        features = whole.features[row][whole.real[row]]
        apart = np.linalg.norm(features - half.features[row][place], axis=1)
        assert (apart < close * np.linalg.norm(features, axis=1))[same].all()
        n_kept += same.sum()
    return n_kept / whole.real.sum()


def coarse(n, seed):
    """Return pictures of three sizes, in turn."""
    rng = np.random.default_rng(seed)
    sides = [[(6, 8), (9, 6), (6, 8), (3, 5)][i % 4] for i in range(n)]
    drawn = [rng.integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in sides]
    return [np.kron(each, np.ones((12, 12, 1), np.uint8)) for each in drawn]


def test_regions_are_the_detections_sorted_padded_and_as_shares(loaded, shown):
    found = detect(loaded, shown[1])
    regions = loaded.regions([shown[1]])
    k = len(found.boxes)
    assert 4 <= k < 8
    assert regions.real[0].tolist() == [True] * k + [False] * (8 - k)
    assert (np.diff(found.scores) <= 0).all()
    np.testing.assert_allclose(regions.boxes[0, :k] * [72, 108, 72, 108], found.boxes, atol=1e-4)
    assert np.allclose(regions.features[0, :k], found.features, atol=1e-4)
    assert regions.classes[0].tolist() == [*found.classes, *[-1] * (8 - k)]
    assert regions.attributes[0].tolist() == [*found.attributes, *[-1] * (8 - k)]
    assert regions.scores[0, :k] == pytest.approx(found.scores)
    assert not regions.features[0, k:].any()
    assert not regions.boxes[0, k:].any()


def test_a_white_picture_has_the_regions_that_there_are(tmp_path, weights):
    settings = small_settings(min_detections=24, max_detections=24)
    asking = load(write_official(tmp_path / "asking", weights, settings), device="cpu")
    white = np.full((72, 96, 3), 255, np.uint8)
    regions = asking.regions([white])
    n_real = int(regions.real.sum())
    assert 1 <= n_real < 24
    assert n_real == len(detect(asking, white).boxes)


def test_the_overlaps_are_tried_in_turn_and_the_most_regions_win(network):
    proposals = torch.tensor([[0, 0, 40, 40], [0, 0, 40, 36], [0, 0, 40, 24], [60, 60, 90, 90.0]])
    logits = torch.full((4, 13), -9.0)
    logits[torch.arange(4), [2, 5, 5, 1]] = torch.tensor([4.0, 3.0, 2.0, 1.0])
    readings = Readings(torch.eye(4), logits, torch.zeros(4, 8), torch.zeros(4, 48))
    # Overlaps with the first: .9 and .6.
    kept = {
        (0.5, 0.7, 0.95): {1: [2, 1], 2: [2, 1], 3: [2, 5, 1], 4: [2, 5, 5, 1], 5: [2, 5, 5, 1]},
        (0.5, 0.7): {4: [2, 5, 1]},
        (0.7, 0.5): {4: [2, 5, 1]},
    }
    config = copy.deepcopy(network.config)
    for overlaps, by_least in kept.items():
        for least, classes in by_least.items():
            config.roi_heads.nms_thresh_test, config.min_detections = overlaps, least
            found = select(proposals, readings, (100, 100), config)
            assert found.classes.tolist() == classes
    assert found.boxes[0].tolist() == [0, 0, 40, 40]


# Names and persons


def test_classes_and_persons_have_names(loaded, shown):
    regions = loaded.regions(shown)
    assert loaded.revision.startswith("official, sha256 ")
    assert regions.class_names == tuple(CLASSES)
    assert set(regions.attributes[regions.real]) <= set(range(len(ATTRIBUTES)))
    names = np.array([*CLASSES, ""])[regions.classes]
    assert set(names[regions.real]) <= set(CLASSES)
    assert set(names[~regions.real]) == {""}
    assert np.array_equal(regions.persons, np.isin(names, ["man", "woman"]))
    assert {"woman", "nurse", "cup"} <= set(names.ravel())


# Files


def test_published_files_and_ours_are_read_with_names_or_without(tmp_path, weights, shown):
    """Published: pickled weights with counters of batches, YAML; ours: safetensors, JSON."""
    folder = write_official(tmp_path / "bare", weights, labels=False)
    nameless = load(folder)
    regions = nameless.regions(shown[:1])
    assert regions.classes[0, 0] >= 0
    assert not regions.labelled
    (folder / "pytorch_model.bin").unlink()
    (folder / "config.yaml").unlink()
    used = {key: each for key, each in weights.items() if "num_batches" not in key}
    save_file(used, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(small_settings()))
    (folder / "objects_vocab.txt").write_text("\n".join(["Man,men", *CLASSES[1:]]))
    named = load(folder)
    state = named.network.state_dict()
    assert all(torch.equal(state[key], each) for key, each in used.items())
    assert named.class_names == CLASSES
    assert named.revision != nameless.revision


ATTRIBUTE_BIAS = "roi_heads.box_predictor.fc_attr.bias"


@pytest.mark.parametrize(
    ("tensors", "settings"),
    [
        ({ATTRIBUTE_BIAS: None}, {}),
        ({ATTRIBUTE_BIAS: torch.ones(14)}, {}),
        ({ANCHORS: torch.ones(12, 4)}, {}),
        ({}, {"resnets__norm": "GN"}),
        ({}, {"anchor_generator__sizes": [[32], [64]]}),
        ({}, {"rpn": {}}),
    ],
)
def test_weights_and_settings_that_do_not_fit_are_refused(tmp_path, weights, tensors, settings):
    changed = {key: each for key, each in (weights | tensors).items() if each is not None}
    folder = write_official(tmp_path / "wrong", changed, small_settings(**settings))
    with pytest.raises(CheckpointError):
        load(folder)


def test_a_file_that_holds_code_is_refused_and_not_run(tmp_path, weights):
    folder = write_official(tmp_path / "evil", weights)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"model": print}, protocol=2))
    with pytest.raises(CheckpointError):
        load(folder)


def test_settings_are_read_in_either_case_and_one_overlap_need_not_be_a_list():
    settings = small_settings(roi_heads__nms_thresh_test=0.5)
    upper = {
        key.upper(): {k.upper(): v for k, v in part.items()} if isinstance(part, dict) else part
        for key, part in settings.items()
    }
    config = FasterRcnnConfig(upper)
    assert config.roi_heads.nms_thresh_test == [0.5]
    assert (config.resnets.depth, config.max_detections, config.width) == (50, 8, 192)
