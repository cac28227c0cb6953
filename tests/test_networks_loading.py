"""Published files into networks: what wraps them, what is in them twice, and what is refused."""

import dataclasses
import json
import pickle
import re

import numpy as np
import pytest
import torch
from support import golden
from support.official import save_official

from biaslib.models._checkpoints import CheckpointError, unwrapped
from biaslib.models.networks import albef, vilbert, vl_bert
from biaslib.models.networks.files import Layout, load_converted, save_converted
from biaslib.runtime import UnknownNameError


def same_outputs(name, network):
    """Tell whether a network has the fixture's weights bit by bit, and does with them the same."""
    expected, found = golden.network(name).state_dict(), network.state_dict()
    if expected.keys() != found.keys() or not all(
        torch.equal(found[k], expected[k]) for k in found
    ):
        return False
    batch = golden.batch(name)
    expected, found = golden.outputs(name, batch), golden.outputs(name, batch, network)
    return all(np.allclose(expected[key], found[key], atol=2e-5) for key in expected)


load = golden.loaded


# The published sizes, tied and unused tensors counted as often as the files hold them

SIZES = {
    # folder's module, variant: tensors in the file, millions of numbers in it
    (vl_bert, "base-prec"): (218, 137.9),
    (vilbert, "pretrained"): (533, 273.5),
    (albef, "pretrained"): (844, 500.4),
    (albef, "retrieval"): (831, 452.7),
}


def written_by_the_authors(config, state):
    """Number of tensors and of numbers in the authors' file for a network's tensors."""
    sizes = {name: tensor.numel() for name, tensor in state.items()}
    words = next(size for name, size in sizes.items() if name.endswith("word_embeddings.weight"))
    count, total = len(sizes) + 1, sum(sizes.values()) + words  # the decoder of words
    if isinstance(config, albef.AlbefConfig):
        count, total = _with_momentum(config, sizes)
    return count, total


def _with_momentum(config, sizes):
    sizes = dict(sizes)
    if config.masked_words:
        words = sizes["text_encoder.bert.embeddings.word_embeddings.weight"]
        sizes["text_encoder.cls.predictions.decoder.weight"] = words
        sizes["text_encoder.cls.predictions.decoder.bias"] = config.vocab_size
    sizes["text_encoder.embeddings.position_ids"] = config.max_position_embeddings
    copied = [size for name, size in sizes.items() if name != "temp" and "itm_head" not in name]
    queues = [2 * 256 * 65_536, 0, 1] + ([] if config.masked_words else [65_536])
    return len(sizes) + len(copied) + len(queues), sum([*sizes.values(), *copied, *queues])


@pytest.mark.parametrize(
    ("module", "variant"), SIZES, ids=lambda each: getattr(each, "__name__", each)
)
def test_published_sizes(module, variant):
    config = module.VARIANTS[variant]
    kinds = {
        vl_bert.VlBertConfig: vl_bert.VlBertNetwork,
        vilbert.VilbertConfig: vilbert.VilbertNetwork,
        albef.AlbefConfig: albef.AlbefNetwork,
    }
    with torch.device("meta"):
        state = kinds[type(config)](config).state_dict()
    count, total = written_by_the_authors(config, state)
    if module is vilbert:
        unused = config.bi_hidden_size + 1
        count += 4 * len(config.t_biattention_id)
        total += len(config.t_biattention_id) * unused * (config.v_hidden_size + config.hidden_size)
    assert (count, round(total / 1e6, 1)) == SIZES[module, variant]


# What wraps the weights


@pytest.mark.parametrize(
    ("name", "wrapper"),
    [("vlbert", "state_dict"), ("albef", "model"), ("volta_vilbert", "model_state_dict")],
)
def test_files_as_the_authors_save_them(tmp_path, name, wrapper):
    path = tmp_path / "file.pth"
    torch.save({wrapper: golden.weights(name), "optimizer": {"state": {}}, "epoch": 3}, path)
    assert same_outputs(name, load(name, path))


def test_old_files_and_half_precision():
    name = "vilbert"
    weights = golden.weights(name)
    old = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): each
        for key, each in weights.items()
    }
    assert old.keys() != weights.keys()
    torch_format = {f"module.{key}": each for key, each in old.items()}
    assert same_outputs(name, load(name, torch_format))
    halves = load(name, {key: each.half() for key, each in weights.items()})
    assert {each.dtype for each in halves.parameters()} == {torch.float32}


def test_the_mapping_that_was_passed_stays_as_it_is():
    weights = {key: each.clone() for key, each in golden.weights("vilbert").items()}
    network = load("vilbert", weights)
    with torch.no_grad():
        network.bert.embeddings.word_embeddings.weight.zero_()
    for key, each in golden.weights("vilbert").items():
        assert torch.equal(weights[key], each)


def test_code_in_a_file_is_never_run(tmp_path):
    class Intruder:
        def __reduce__(self):
            return (print, ("code in a checkpoint was run",))

    path = tmp_path / "vl-bert-base-prec.model"
    path.write_bytes(pickle.dumps({"state_dict": Intruder()}, protocol=2))
    with pytest.raises(CheckpointError, match=r"vl-bert-base-prec.model is damaged, or holds ob"):
        vl_bert.load_official(path)


def test_a_web_page_in_place_of_a_file(tmp_path):
    path = tmp_path / "pretrained_model.bin"
    path.write_text("<html>Too many users have viewed or downloaded this file</html>")
    with pytest.raises(CheckpointError, match=r"pretrained_model.bin is damaged"):
        vilbert.load_official(path)


# Tensors that are there twice, or for training alone


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("vlbert", "module.vlbert.mlm_head.predictions.decoder.weight"),
        ("vilbert", "cls.predictions.decoder.weight"),
        ("albef", "text_encoder.cls.predictions.decoder.bias"),
    ],
)
def test_a_second_copy_may_be_missing_but_not_differ(name, copy):
    weights = dict(golden.weights(name))
    tensor = weights.pop(copy)
    assert same_outputs(name, load(name, weights))
    with pytest.raises(CheckpointError, match=r"should be the same one differ.*not written by the"):
        load(name, {**weights, copy: tensor + 1})


def test_the_copy_alone_is_enough():
    weights = dict(golden.weights("vilbert"))
    del weights["bert.embeddings.word_embeddings.weight"]
    assert same_outputs("vilbert", load("vilbert", weights))


def test_momentum_copies_and_queues_are_left_out():
    weights = golden.weights("albef")
    kept = {k: v for k, v in weights.items() if "_m." not in k and not k.endswith("queue")}
    assert len(kept) < len(weights) / 2 + 2
    assert same_outputs("albef", load("albef", kept))


def test_retrieval_files_may_keep_the_names_of_pretraining():
    name = "albef_retrieval"
    renamed = {
        key.replace("text_encoder.", "text_encoder.bert."): each
        for key, each in golden.weights(name).items()
    }
    assert same_outputs(name, load(name, renamed))


def test_what_an_albef_cannot_do_is_said():
    network = golden.network("albef_retrieval")
    side = network.config.image_size
    with pytest.raises(ValueError, match="has no masked-word head; load 'albef'"):
        network.word_logits(torch.zeros(1, 1, network.config.hidden_size))
    with pytest.raises(ValueError, match=rf"images of {side} x {side} pixels, not 8 x 8; resize"):
        network.encode_image(torch.zeros(1, 3, 8, 8))


# What is refused


def test_missing_unknown_and_misshapen_tensors_are_named():
    weights = dict(golden.weights("vilbert"))
    weights["bert.extra.weight"] = weights.pop("cls.bi_seq_relationship.bias")
    weights["bert.t_pooler.dense.bias"] = torch.zeros(3)
    with pytest.raises(CheckpointError) as refusal:
        load("vilbert", weights)
    told = str(refusal.value)
    assert "lacks 1 weight that the model needs: cls.bi_seq_relationship.bias" in told
    assert "does not know: bert.extra.weight" in told
    assert "bert.t_pooler.dense.bias (3,) not (64,)" in told


VL_BERT = {
    "vlbert.word_embeddings.weight": torch.zeros(2, 768),
    "vlbert.mlm_head.predictions.bias": torch.zeros(2),
    "aux_text_visual_embedding.weight": torch.zeros(1, 768),
}
LARGE = VL_BERT | {"vlbert.word_embeddings.weight": torch.zeros(2, 1024)}
PIXELS = VL_BERT | {"image_feature_extractor.backbone.conv1.weight": torch.zeros(1)}
ALBEF = {"visual_encoder.pos_embed": torch.zeros(1, 5, 768), "itm_head.weight": torch.zeros(2, 2)}
VILBERT = {"bert.v_embeddings.image_embeddings.weight": torch.zeros(1024, 2)}
VOLTA = {
    "bert.encoder.layer.0.attention_self.query.weight": torch.zeros(1),
    "bert.v_embeddings.image_embeddings.weight": torch.zeros(1024, 2),
    "bert.v_embeddings.LayerNorm.weight": torch.zeros(2),
}


@pytest.mark.parametrize(
    ("module", "weights", "told"),
    [
        (vl_bert, {**VL_BERT, "final_mlp.1.weight": torch.zeros(1)}, "fine-tuned for"),
        (vl_bert, VILBERT, "another family of models"),
        (vl_bert, PIXELS, "end-to-end VL-BERT, which reads pixels"),
        (vilbert, {**VILBERT, "vil_logit.weight": torch.zeros(1)}, "tuned for tasks"),
        (vilbert, VOLTA, "a ViLBERT of VOLTA"),
        (albef, {**ALBEF, "text_decoder.x": torch.zeros(1)}, "to answer questions"),
        (albef, VL_BERT, "another family of models"),
    ],
)
def test_what_is_of_no_known_variant_is_refused_by_name(module, weights, told):
    with pytest.raises(CheckpointError, match=rf"{told}.*which are not known of .*; known: "):
        module.load_official(weights)


@pytest.mark.parametrize(
    ("module", "weights", "variant"),
    [
        (vl_bert, VL_BERT, "base-prec"),
        (vl_bert, LARGE, "large-prec"),
        (vilbert, VILBERT, "pretrained"),
        (albef, ALBEF, "retrieval"),
    ],
)
def test_names_and_widths_tell_the_variant(module, weights, variant):
    assert module._variant_of(weights) == variant


def test_a_file_says_by_itself_what_it_is():
    """Told by names and widths alone: the rest of these tensors is missing."""
    for module, weights, network in (
        (vl_bert, VL_BERT, "VlBertNetwork"),
        (vilbert, VILBERT, "VilbertNetwork"),
        (albef, ALBEF, "AlbefNetwork"),
    ):
        with pytest.raises(CheckpointError, match=f"the checkpoint of '{network}' lacks"):
            module.load_official(weights)
    with pytest.raises(CheckpointError, match="another family of models', which are not known of"):
        albef.load_official(VILBERT)


def test_what_is_not_weights():
    with pytest.raises(CheckpointError, match="holds no tensors"):
        vilbert.load_official({"epoch": 3})


def test_a_file_says_which_resolution_it_is_of(monkeypatch):
    other = dataclasses.replace(golden.config("albef"), image_size=64)
    monkeypatch.setattr(albef, "VARIANTS", {"pretrained": other})
    assert albef.load_official(golden.weights("albef")).config == golden.config("albef")


# Saved here, and as the authors save it


@pytest.mark.parametrize("name", golden.NAMES)
def test_saved_and_read_again(tmp_path, name):
    network = golden.network(name)
    folder = save_converted(network, tmp_path / "there")
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    again = load_converted(folder)
    assert type(again) is type(network)
    assert again.config == network.config
    assert not again.training
    assert same_outputs(name, again)


@pytest.mark.parametrize("name", [each for each in golden.NAMES if not each.startswith("volta")])
def test_tests_write_files_as_the_authors_do(tmp_path, name):
    """Every tensor that the network uses is there, by its official name and bit by bit."""
    official = unwrapped(golden.weights(name))
    again = unwrapped(torch.load(save_official(golden.network(name), tmp_path / "file.pth")))
    unused = golden.MODULES[name].LAYOUT.unused
    used = {key for key in official if not any(re.search(each, key) for each in unused)}
    assert again.keys() == used
    assert all(torch.equal(again[key], official[key]) for key in used)
    saved = torch.load(tmp_path / "file.pth")
    wrapper = {"vlbert": ("state_dict",), "albef": ("model",)}
    assert tuple(saved)[:1] == wrapper.get(name.split("_")[0], tuple(saved)[:1])
    assert same_outputs(name, load(name, tmp_path / "file.pth"))


@pytest.mark.parametrize("module", [vl_bert, vilbert, albef])
def test_sizes_are_told_by_the_tensors(module):
    """From the published file of each variant: its configuration, whatever one starts from."""
    for config in module.VARIANTS.values():
        network = getattr(module, type(config).__name__.replace("Config", "Network"))
        with torch.device("meta"):
            state = network(config).state_dict()
        small = {"vocab_size": 5, "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 4}
        found = module._sized(dataclasses.replace(config, num_attention_heads=1, **small), state)
        assert found == config


def test_a_network_of_another_size_is_told_by_its_tensors(tmp_path):
    config = vl_bert.VlBertConfig(
        vocab_size=9,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        visual_region_classes=5,
        feature_size=24,
    )
    path = save_official(vl_bert.VlBertNetwork(config), tmp_path / "vl-bert-base-prec.model")
    assert vl_bert.load_official(path).config == config


def test_half_precision_takes_half_the_space(tmp_path):
    network = golden.network("vilbert")
    sizes = [
        (save_converted(network, tmp_path / str(dtype), dtype) / "model.safetensors").stat().st_size
        for dtype in (torch.float32, torch.float16)
    ]
    assert sizes[1] < 0.55 * sizes[0]
    again = load_converted(tmp_path / "torch.float16")
    words = again.bert.embeddings.word_embeddings.weight
    assert words.dtype == torch.float32
    assert torch.allclose(words, network.bert.embeddings.word_embeddings.weight, atol=1e-2)


def test_a_converted_folder_that_does_not_fit(tmp_path):
    folder = save_converted(golden.network("vilbert"), tmp_path)
    path = folder / "config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "hidden_size": 24}))
    with pytest.raises(CheckpointError, match="of another shape"):
        load_converted(folder)
    path.write_text(json.dumps({**settings, "hiden_size": 24}))
    with pytest.raises(UnknownNameError, match=r"unknown setting 'hiden_size'. Did you mean"):
        load_converted(folder)
    path.write_text(json.dumps({**settings, "model_type": "bert"}))
    with pytest.raises(UnknownNameError, match="unknown model_type 'bert'"):
        load_converted(folder)


def test_a_layout_renames_drops_and_merges():
    layout = Layout(renames=[("^a", "b")], copies=[("^twin$", "b.one")], unused=["^drop"])
    state = {"a.one": torch.ones(2), "twin": torch.ones(2), "drop.this": torch.zeros(1)}
    assert list(layout.apply(state)) == ["b.one"]
