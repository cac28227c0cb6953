"""The steps of CONTRIBUTING.md for a model, followed for one that is not in the package."""

import dataclasses
import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from support import small_models

from biaslib import capabilities as can
from biaslib import models
from biaslib.checkpoints.entries import read_entry
from biaslib.studies import study4_captions

SIZES = {name: each for name, each in small_models.BLOCKS.items() if name != "initializer_range"}
TEXT = SIZES | {
    "vocab_size": len(small_models.VOCABULARY),
    "encoder_hidden_size": 32,
    "max_position_embeddings": 20,
    "bos_token_id": 2,
    "sep_token_id": 3,
    "eos_token_id": 3,
}
CAPTIONS = [["the woman is a nurse.", "the old man"], ["a pilot", "the tall woman is here."]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BLIP as transformers saves it."""
    vision = SIZES | {"image_size": small_models.SIDE, "patch_size": small_models.PATCH}
    config = transformers.BlipConfig(text_config=TEXT, vision_config=vision)
    network = small_models.random_network(lambda: transformers.BlipForImageTextRetrieval(config))
    size = {"height": small_models.SIDE, "width": small_models.SIDE}
    processor = transformers.BlipImageProcessor(size=size)
    return small_models.save(tmp_path_factory.mktemp("blip"), network, processor)


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """The entry of CONTRIBUTING.md, registered, with its adapter in a package of one's own."""
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    adapter = textwrap.dedent(re.search(r"```python\n(.+?)```", page, re.DOTALL)[1])
    written = re.search(r"```json\n(.+?)```", page, re.DOTALL)[1]
    (tmp_path / "my_adapters").mkdir()
    (tmp_path / "my_adapters" / "blip.py").write_text(adapter, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entry = read_entry(json.loads(written))
    entry = dataclasses.replace(entry, family=f"my_adapters.{entry.family}")
    models.register(entry)
    yield entry
    del models.REGISTRY[entry.name]


@torch.inference_mode()
def test_the_adapter_says_what_the_network_says(entry, folder):
    model = models.load("blip", checkpoint=folder, device="cpu")
    pictures = small_models.pictures(2)
    found = model.match(pictures, CAPTIONS)
    network = transformers.BlipForImageTextRetrieval.from_pretrained(folder).eval()
    tokenizer = small_models.tokenizer()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    for i, picture in enumerate(pictures):
        pixels = processor(images=[picture], return_tensors="pt")
        for j, caption in enumerate(CAPTIONS[i]):
            said = network(**tokenizer([caption], return_tensors="pt"), **pixels).itm_score[0]
            assert found[i, j] == pytest.approx((said[1] - said[0]).item(), abs=1e-5)
    assert np.ptp(found) > 1e-3
    scores = study4_captions.caption_scores(model, "matching", pictures, CAPTIONS)
    np.testing.assert_allclose(scores, found, atol=1e-5)


def test_it_is_found_by_its_files_and_asked_for_what_it_can_do(entry, folder, tmp_path):
    own = models.load(folder, device="cpu")
    assert models.identify(folder)[0] == "blip"
    assert entry.takes_images
    can.require(own, can.MATCH)
    with pytest.raises(can.CapabilityError):
        own.embed(["the woman"], small_models.pictures(1))
    (tmp_path / "my_adapters" / "blip.py").rename(tmp_path / "myblip.py")
    models.REGISTRY["blip"] = dataclasses.replace(entry, family="myblip")
    assert models.load("blip", checkpoint=folder, device="cpu").name == "blip"


def test_what_is_no_entry_or_another_kind_is_refused(entry, tmp_path):
    with pytest.raises(TypeError):
        models.register({"name": "blip"})
    with pytest.raises(ValueError, match="blip"):
        models.register(entry)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(models.CheckpointError) as caught:
        models.load("blip", checkpoint=tmp_path)
    assert caught.value.path == tmp_path


def test_the_number_of_parameters_is_that_of_the_published_size(entry):
    with torch.device("meta"):
        network = transformers.BlipForImageTextRetrieval(transformers.BlipConfig())
    assert sum(each.numel() for each in network.parameters()) == entry.parameters
