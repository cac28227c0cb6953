"""What ViLT and FLAVA have to themselves: vectors, epsilons, heads, files of older versions."""

import dataclasses

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support import families, small_models
from support.families import VILT, without

from biaslib import models
from biaslib.capabilities import FILL, FILL_WITH_IMAGES, MATCH
from biaslib.checkpoints import registry
from biaslib.models import flava, vilt

TEXTS = ["the woman is a [MASK] .", "a man is here.", "the old woman is a tall pilot ."]
MASKED = ["the woman is a [MASK] .", "[MASK] is here", "the old man is a tall [MASK] ."]
CAPTIONS = [
    ["a nurse .", "the tall woman is here ."],
    ["the pilot is a man", "here"],
    ["a woman is old .", "the man ."],
]
PICTURES = small_models.pictures(3)


def entry(name):
    return dataclasses.replace(registry.REGISTRY["clip"], name=name, family=name)


@pytest.fixture(scope="module")
def vilt_folder(tmp_path_factory):
    return families.save("vilt", tmp_path_factory.mktemp("families") / "vilt")


@pytest.fixture(scope="module")
def flava_folder(tmp_path_factory):
    return families.save("flava", tmp_path_factory.mktemp("families") / "flava")


@pytest.fixture(scope="module")
def our_vilt(vilt_folder):
    return vilt.load(entry("vilt"), vilt_folder, "cpu")


@pytest.fixture(scope="module")
def our_flava(flava_folder):
    return flava.load(entry("flava"), flava_folder, "cpu")


def copied(folder, target, *prefixes):
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return without(target, *prefixes)


def inputs(folder, text, picture=None):
    """Prepare a pair as the library does, with no batch."""
    tokens = small_models.tokenizer()(text, return_tensors="pt")
    found = {"input_ids": tokens.input_ids, "attention_mask": tokens.attention_mask}
    if picture is None:
        return found
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    prepared = processor([picture], return_tensors="pt")
    return found | {name: each for name, each in prepared.items() if name.startswith("pixel")}


@torch.inference_mode()
def test_flavas_vectors_are_those_of_its_contrastive_loss_or_lack_the_projections(
    our_flava, flava_folder
):
    network = transformers.FlavaForPreTraining.from_pretrained(flava_folder).eval()
    texts, pictures = our_flava.encode_text(TEXTS), our_flava.encode_image(PICTURES)
    assert texts.shape == pictures.shape == (3, 24)
    products = our_flava.scale * pictures @ texts.T
    for i, picture in enumerate(PICTURES):
        for j, text in enumerate(TEXTS):
            found = inputs(flava_folder, text, picture)
            output = network(**found, input_ids_masked=found["input_ids"], return_loss=False)
            logit = output.contrastive_logits_per_image[0, 0].item()
            assert products[i, j] == pytest.approx(logit, abs=1e-4)
    plain_texts = our_flava.encode_text(TEXTS, encoder="unimodal")
    plain_pictures = our_flava.encode_image(PICTURES, encoder="unimodal")
    for i in range(3):
        output = network.flava(**inputs(flava_folder, TEXTS[i], PICTURES[i]))
        text, picture = output.text_embeddings[0, 0], output.image_embeddings[0, 0]
        assert plain_texts[i] == pytest.approx((text / text.norm()).numpy(), abs=1e-5)
        assert plain_pictures[i] == pytest.approx((picture / picture.norm()).numpy(), abs=1e-5)


def test_vilts_epsilons_are_those_it_was_trained_with_whatever_the_configuration_says():
    for given in (1e-12, 1e-3):
        network = vilt.ViltNetwork(transformers.ViltConfig(**VILT | {"layer_norm_eps": given}))
        layers = network.vilt.encoder.layer
        blocks = [n.eps for each in layers for n in (each.layernorm_before, each.layernorm_after)]
        assert {*blocks, network.vilt.layernorm.eps} == {1e-6}
        assert network.vilt.embeddings.text_embeddings.LayerNorm.eps == 1e-12
        assert network.mlm_score.transform.LayerNorm.eps == 1e-12


def test_the_bias_of_the_words_may_lie_where_older_files_have_it(our_vilt, vilt_folder, tmp_path):
    copied(vilt_folder, tmp_path, "mlm_score.decoder.bias")
    path = tmp_path / "model.safetensors"
    bias = load_file(vilt_folder / "model.safetensors")["mlm_score.decoder.bias"]
    save_file(load_file(path) | {"mlm_score.bias": bias}, path, {"format": "pt"})
    loaded = vilt.load(entry("vilt"), tmp_path, "cpu")
    arguments = MASKED, ["nurse", "old"], PICTURES
    expected = our_vilt.mask_log_prob(*arguments)
    assert np.allclose(loaded.mask_log_prob(*arguments), expected, atol=1e-5)


@torch.inference_mode()
def test_vilt_for_retrieval_is_scored_by_its_one_logit(our_vilt, vilt_folder, tmp_path):
    copied(vilt_folder, tmp_path)
    network = small_models.random_network(
        lambda: transformers.ViltForImageAndTextRetrieval(transformers.ViltConfig(**VILT))
    )
    vilt.set_epsilons(network.vilt)
    network.save_pretrained(tmp_path)
    loaded = vilt.load(entry("vilt"), tmp_path, "cpu")
    found = loaded.match(PICTURES, CAPTIONS)
    for i, picture in enumerate(PICTURES):
        for j, caption in enumerate(CAPTIONS[i]):
            logit = network(**inputs(tmp_path, caption, picture)).logits.item()
            assert found[i, j] == pytest.approx(logit, abs=1e-5)
    assert loaded.capabilities == set(models.REGISTRY["vilt-itm"].capabilities)
    with pytest.raises(ValueError, match=r"vilt cannot fill masks with images\. Its weights \("):
        loaded.mask_log_prob(MASKED, ["nurse"], PICTURES)


def test_all_patches_of_a_large_picture_are_kept(our_vilt, vilt_folder, tmp_path, monkeypatch):
    before = our_vilt.embed(TEXTS, PICTURES)
    monkeypatch.setattr(our_vilt.network.config, "max_image_length", 5)
    assert np.allclose(our_vilt.embed(TEXTS, PICTURES), before, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "heads", "lacking"),
    [
        ("vilt", ["itm_score"], {MATCH}),
        ("flava", ["itm_head", "mlm_head"], {MATCH, FILL}),
        ("flava", ["mmm_text_head"], {FILL_WITH_IMAGES}),
    ],
)
@pytest.mark.filterwarnings("ignore:.* cannot .*:UserWarning")
def test_a_file_without_a_head_allows_less(name, heads, lacking, tmp_path):
    whole = models.load(name, checkpoint=families.save(name, tmp_path / "whole"), device="cpu")
    less = without(families.save(name, tmp_path / "less"), *heads)
    loaded = models.load(name, checkpoint=less, device="cpu")
    assert loaded.capabilities == whole.capabilities - lacking
