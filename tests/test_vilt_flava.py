"""ViLT and FLAVA: values against direct calls of transformers, the traps of both, bad input."""

import dataclasses

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support import families, small_models
from support.families import VILT, without
from support.small_models import VOCABULARY

from biaslib import models
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


def place_of_mask(found):
    return found["input_ids"][0].tolist().index(VOCABULARY.index("[MASK]"))


@pytest.fixture(scope="module")
def direct_vilt(vilt_folder):
    """The library's own classes, one for each head, with the weights put in by hand."""
    config = transformers.ViltConfig.from_pretrained(vilt_folder)
    weights = load_file(vilt_folder / "model.safetensors")
    masked = transformers.ViltForMaskedLM(config)
    masked.mlm_score.decoder.weight = torch.nn.Parameter(weights["mlm_score.decoder.weight"])
    masked.load_state_dict(weights, strict=False)
    for layer in masked.vilt.encoder.layer:
        layer.layernorm_before.eps = layer.layernorm_after.eps = 1e-6
    masked.vilt.layernorm.eps = 1e-6
    return masked.eval(), weights


@torch.inference_mode()
def test_vilt_reads_the_text_stream_and_its_heads_as_transformers_does(
    our_vilt, direct_vilt, vilt_folder
):
    network, weights = direct_vilt
    embedded = our_vilt.embed(TEXTS, PICTURES)
    words = our_vilt.embed(TEXTS[1:], PICTURES[1:], "contextual", ["man", "woman"])
    filled = our_vilt.mask_log_prob(MASKED, ["nurse", "pilot"], PICTURES)
    matched = our_vilt.match(PICTURES, CAPTIONS)
    for i, picture in enumerate(PICTURES):
        states = network.vilt(**inputs(vilt_folder, TEXTS[i], picture)).last_hidden_state[0]
        assert embedded[i] == pytest.approx(states[0].numpy(), abs=1e-5)
        if i:
            assert words[i - 1] == pytest.approx(states[[2, 3][i - 1]].numpy(), abs=1e-5)
        found = inputs(vilt_folder, MASKED[i], picture)
        log = network(**found).logits[0, place_of_mask(found)].log_softmax(-1)
        columns = [VOCABULARY.index(word) for word in ("nurse", "pilot")]
        assert filled[i] == pytest.approx(log[columns].numpy(), abs=1e-5)
        for j, caption in enumerate(CAPTIONS[i]):
            pooled = network.vilt(**inputs(vilt_folder, caption, picture)).pooler_output[0]
            both = weights["itm_score.fc.weight"] @ pooled + weights["itm_score.fc.bias"]
            assert matched[i, j] == pytest.approx(float(both[1] - both[0]), abs=1e-5)


@torch.inference_mode()
def test_flava_reads_what_its_pretraining_model_reads(our_flava, flava_folder):
    network = transformers.FlavaForPreTraining.from_pretrained(flava_folder).eval()
    embedded, alone = our_flava.embed(TEXTS, PICTURES), our_flava.embed(TEXTS)
    filled = our_flava.mask_log_prob(MASKED, ["nurse", "pilot"], PICTURES)
    filled_alone = our_flava.mask_log_prob(MASKED, ["nurse", "pilot"])
    matched = our_flava.match(PICTURES, CAPTIONS)
    columns = [VOCABULARY.index(word) for word in ("nurse", "pilot")]

    def run(text, picture=None):
        found = inputs(flava_folder, text, picture)
        masked = {"input_ids_masked": found["input_ids"], "return_loss": False}
        return network(**found, **masked, skip_unmasked_multimodal_encoder=False)

    for i, picture in enumerate(PICTURES):
        n_tokens = inputs(flava_folder, TEXTS[i])["input_ids"].shape[1]
        both = run(TEXTS[i], picture)
        assert embedded[i] == pytest.approx(both.multimodal_embeddings[0, -n_tokens], abs=1e-5)
        assert alone[i] == pytest.approx(run(TEXTS[i]).text_embeddings[0, 0].numpy(), abs=1e-5)
        place = place_of_mask(inputs(flava_folder, MASKED[i]))
        log = run(MASKED[i], picture).mmm_text_logits[0, place].log_softmax(-1)
        assert filled[i] == pytest.approx(log[columns].numpy(), abs=1e-5)
        log = run(MASKED[i]).mlm_logits[0, place].log_softmax(-1)
        assert filled_alone[i] == pytest.approx(log[columns].numpy(), abs=1e-5)
        for j, caption in enumerate(CAPTIONS[i]):
            logits = run(caption, picture).itm_logits[0]
            assert matched[i, j] == pytest.approx(float(logits[1] - logits[0]), abs=1e-5)


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


@torch.inference_mode()
def test_without_a_picture_vilt_reads_the_words_alone(our_vilt, direct_vilt, vilt_folder):
    network, _ = direct_vilt
    tokens = inputs(vilt_folder, TEXTS[2])
    embedded = network.vilt.embeddings.text_embeddings(tokens["input_ids"])
    states = embedded + network.vilt.embeddings.token_type_embeddings.weight[0]
    for layer in network.vilt.encoder.layer:
        states = layer(states)[0]
    states = network.vilt.layernorm(states)
    found = our_vilt.embed(TEXTS)
    assert found[2] == pytest.approx(states[0, 0].numpy(), abs=1e-5)
    with_pictures = our_vilt.embed(TEXTS, PICTURES)
    assert np.abs(found - with_pictures).max() > 0.01


def test_all_patches_of_a_large_picture_are_kept(our_vilt, vilt_folder, tmp_path, monkeypatch):
    before = our_vilt.embed(TEXTS, PICTURES)
    monkeypatch.setattr(our_vilt.network.config, "max_image_length", 5)
    assert np.allclose(our_vilt.embed(TEXTS, PICTURES), before, atol=1e-5)
