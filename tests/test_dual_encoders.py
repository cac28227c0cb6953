"""Dual encoders: values against direct calls of transformers and OpenCLIP, traps, bad input."""

import dataclasses
import json

import numpy as np
import open_clip as library
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file
from support import families, small_models
from support.families import PLACES
from support.families import open_clip as save_open_clip
from support.small_models import SIDE, VOCABULARY

from biaslib import models
from biaslib.checkpoints import registry
from biaslib.checkpoints.weights import CheckpointError
from biaslib.models import open_clip

TEXTS = ["the woman is a nurse .", "a man is here .", "the old woman is a tall pilot ."]
PICTURES = small_models.pictures(3)


@pytest.fixture(scope="module", params=families.DUAL)
def folder(request, tmp_path_factory):
    return families.save(request.param, tmp_path_factory.mktemp("families") / request.param)


@pytest.fixture(scope="module")
def model(folder):
    return models.load("clip", checkpoint=folder, device="cpu")


def direct_logits(folder):
    """Return the model's own logits of each picture and text, run one pair at a time."""
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    padded = "siglip" in network.config.model_type

    def logit(picture, text):
        inputs = dict(processor(images=[picture], return_tensors="pt"))
        if padded:
            ids = tokenizer(text)["input_ids"]
            ids += [tokenizer.pad_token_id] * (PLACES - len(ids))
            inputs["input_ids"] = torch.tensor([ids])
        else:
            inputs |= dict(tokenizer(text, return_tensors="pt"))
        return network(**inputs).logits_per_text.item()

    with torch.inference_mode():
        return np.array([[logit(picture, text) for text in TEXTS] for picture in PICTURES])


def test_products_of_vectors_are_the_models_own_logits(model, folder):
    texts, pictures = model.encode_text(TEXTS), model.encode_image(PICTURES)
    assert np.linalg.norm(texts, axis=1) == pytest.approx(1, abs=1e-6)
    found = model.scale * pictures @ texts.T + model.bias
    expected = direct_logits(folder)
    assert found == pytest.approx(expected, abs=1e-4)
    assert np.ptp(expected, axis=0).min() > 0.01
    assert np.ptp(expected, axis=1).min() > 0.01


@pytest.fixture(scope="module")
def bytes_and_merges(tmp_path_factory):
    """A repository that uses OpenCLIP's own tokenizer, as that of ViT-H-14 does."""
    folder = tmp_path_factory.mktemp("own")
    network = save_open_clip(folder, vocab_size=49408)
    return network, models.load("open-clip", checkpoint=folder, device="cpu")


def test_open_clips_vectors_are_its_own(bytes_and_merges):
    network, loaded = bytes_and_merges
    tokens = library.SimpleTokenizer(context_length=12)
    texts, pictures = loaded.encode_text(TEXTS), loaded.encode_image(PICTURES)
    with torch.inference_mode():
        for i, text in enumerate(TEXTS):
            vector = network.encode_text(tokens([text]), normalize=True)[0].numpy()
            assert texts[i] == pytest.approx(vector, abs=1e-5)
            small = Image.fromarray(PICTURES[i]).resize((SIDE, SIDE), Image.BICUBIC)
            pixels = (np.array(small) / 255 - 0.5) / 0.4
            batch = torch.tensor(pixels).permute(2, 0, 1)[None].float()
            vector = network.encode_image(batch, normalize=True)[0].numpy()
            assert pictures[i] == pytest.approx(vector, abs=1e-5)
    assert loaded.scale == pytest.approx(network.logit_scale.exp().item(), rel=1e-6)


def test_open_clip_with_a_tokenizer_of_transformers_beside_it(tmp_path):
    network = save_open_clip(
        tmp_path,
        vocab_size=len(VOCABULARY),
        hf_tokenizer_name="somewhere/else",
        pool_type="last",
    )
    small_models.tokenizer().save_pretrained(tmp_path)
    loaded = models.load("open-clip", checkpoint=tmp_path, device="cpu")
    ids = small_models.tokenizer()(TEXTS[0])["input_ids"]
    padded = torch.tensor([ids + [0] * (12 - len(ids))])
    with torch.inference_mode():
        vector = network.encode_text(padded, normalize=True)[0].numpy()
    assert loaded.encode_text(TEXTS[:1])[0] == pytest.approx(vector, abs=1e-5)
    with pytest.raises(ValueError, match="tokens"):
        loaded.encode_text([" ".join(["woman"] * 20)])


def test_pictures_that_come_out_in_different_sizes_are_refused(tmp_path):
    families.save("clip", tmp_path)
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_center_crop": False}))
    loaded = models.load("clip", checkpoint=tmp_path, device="cpu")
    wide, tall = (np.zeros(shape, np.uint8) for shape in ((40, 80, 3), (80, 40, 3)))
    with pytest.raises(ValueError, match=r"pictures of one size.*preprocessor_config\.json"):
        loaded.encode_image([wide, tall])


def test_a_sigmoid_models_bias_is_open_clips_too(tmp_path):
    entry = dataclasses.replace(registry.REGISTRY["open-clip"], name="sigmoid")
    save_open_clip(tmp_path, vocab_size=49408)
    config = json.loads((tmp_path / "open_clip_config.json").read_text())
    config["model_cfg"]["init_logit_bias"] = -10
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    path = tmp_path / "open_clip_model.safetensors"
    save_file(load_file(path) | {"logit_bias": torch.tensor(-7.5)}, path)
    assert open_clip.load(entry, tmp_path, "cpu").bias == -7.5


def test_every_network_that_open_clip_ships_passes_but_those_with_texts_from_elsewhere():
    elsewhere = set()
    for name in library.list_models():
        settings = library.get_model_config(name)
        if "hf_model_name" in settings["text_cfg"]:
            elsewhere.add(name)
            with pytest.raises(CheckpointError):
                open_clip.require_whole(settings, name)
        else:
            open_clip.require_whole(settings, name)
    assert len(library.list_models()) - len(elsewhere) > 100 > len(elsewhere) > 0


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("vision_cfg", "timm_model_name", "hf-hub:owner/name"),
        ("vision_cfg", "timm_model_name", "local-dir:/tmp/name"),
        ("text_cfg", "hf_model_name", "roberta-base"),
        ("text_cfg", "hf_model_config", "owner/name"),
        ("text_cfg", "norm_kwargs", {"dtype": "owner/name"}),
        ("text_cfg", "tokenizer_kwargs", {"trust_remote_code": True}),
        ("text_cfg", "tokenizer_kwargs", {"clean": {"trust_remote_code": True}}),
    ],
)
def test_settings_that_ask_another_repository_are_refused_by_name(part, name, value):
    settings = library.get_model_config("ViT-B-32")
    settings[part] = settings[part] | {name: value}
    with pytest.raises(CheckpointError, match=name):
        open_clip.require_whole(settings, "mine")
