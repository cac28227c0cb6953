"""Published files into networks: what wraps them, what is in them twice, and what is refused."""

import numpy as np
import pytest
import torch
from support import golden
from support.official import save_official

from biaslib.checkpoints.weights import CheckpointError, read_weights
from biaslib.models.networks.albef import AlbefNetwork
from biaslib.models.networks.vilbert import VilbertNetwork
from biaslib.models.networks.vl_bert import VlBertConfig, VlBertNetwork
from biaslib.models.reading import read_official


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

LARGE = {"hidden_size": 1024, "num_hidden_layers": 24}
LARGE |= {"num_attention_heads": 16, "intermediate_size": 4096}
RETRIEVAL = {"image_size": 384, "masked_words": False}
PUBLISHED = [
    # network, settings, tensors in the file, millions of numbers in it
    (VlBertNetwork, {}, 218, 137.9),
    (VlBertNetwork, LARGE, None, None),
    (VlBertNetwork, {"text_only": False}, None, None),
    (VilbertNetwork, {}, 533, 273.5),
    (AlbefNetwork, {}, 844, 500.4),
    (AlbefNetwork, RETRIEVAL, 831, 452.7),
]


def state_of(network, **settings):
    """The tensors of a network of full size, without memory."""
    with torch.device("meta"):
        return network(network.config_class(**settings)).state_dict()


def written_by_the_authors(network, config, state):
    """Number of tensors and of numbers in the authors' file for a network's tensors."""
    sizes = {name: tensor.numel() for name, tensor in state.items()}
    if network is not AlbefNetwork:
        sizes.pop(next(name for name in sizes if name.endswith("predictions.decoder.bias")))
    if network is VilbertNetwork:  # linear maps that the authors' code never calls
        for layer in range(len(config.t_biattention_id)):
            for width in (config.v_hidden_size, config.hidden_size):
                sizes |= {f"q_dense {layer} {width}": width * config.bi_hidden_size}
                sizes |= {f"q_dense bias {layer} {width}": width}
    if network is not AlbefNetwork:
        return len(sizes), sum(sizes.values())
    sizes["text_encoder.embeddings.position_ids"] = config.max_position_embeddings
    copied = [size for name, size in sizes.items() if name != "temp" and "itm_head" not in name]
    queues = [2 * 256 * 65_536, 0, 1] + ([] if config.masked_words else [65_536])
    return len(sizes) + len(copied) + len(queues), sum([*sizes.values(), *copied, *queues])


@pytest.mark.parametrize(("network", "settings", "count", "millions"), PUBLISHED)
def test_published_sizes_are_told_by_the_tensors(network, settings, count, millions):
    config, state = network.config_class(**settings), state_of(network, **settings)
    assert network.config_of(state).to_diff_dict() == config.to_diff_dict()
    if count:
        found = written_by_the_authors(network, config, state)
        assert (found[0], round(found[1] / 1e6, 1)) == (count, millions)


# What wraps the weights


@pytest.mark.parametrize(
    ("name", "wrapper"),
    [("vlbert", "state_dict"), ("albef", "model"), ("volta_vilbert", "model_state_dict")],
)
def test_files_as_the_authors_save_them(tmp_path, name, wrapper):
    path = tmp_path / "file.pth"
    torch.save({wrapper: golden.weights(name), "optimizer": {"state": {}}, "epoch": 3}, path)
    assert same_outputs(name, load(name, read_weights(path)))


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
    with pytest.raises(CheckpointError):
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


# Saved here, and as the authors save it


@pytest.mark.parametrize("name", golden.NAMES)
def test_saved_and_read_again(tmp_path, name):
    network = golden.network(name)
    network.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    again = type(network).from_pretrained(tmp_path)
    assert again.config.to_diff_dict() == network.config.to_diff_dict()
    assert same_outputs(name, again)


def test_a_network_of_another_size_is_told_by_its_tensors(tmp_path):
    config = VlBertConfig(
        vocab_size=9,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        visual_region_classes=5,
        feature_size=24,
    )
    path = save_official(VlBertNetwork(config), tmp_path / "vl-bert-base-prec.model")
    found = read_official(VlBertNetwork, read_weights(path), "vl-bert")
    assert found.config.to_diff_dict() == config.to_diff_dict() | {"dtype": "float32"}
