"""The golden fixtures: official weights, inputs and outputs, read for the networks written here.

A batch is a dictionary of tensors with n rows each; :func:`outputs` runs a network on one and
returns its outputs by the fixture's names, so that rows can be permuted, padded and run alone.
"""

import json
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from support import volta

from biaslib.checkpoints.weights import unwrapped
from biaslib.models.networks import albef, vilbert, vl_bert
from biaslib.models.reading import read_official

FOLDER = Path(__file__).parents[1] / "golden"

NAMES = (
    "vlbert",
    "vlbert_withouttextonly",
    "vilbert",
    "vilbert_beta",
    "albef",
    "albef_retrieval",
    "volta_vilbert",
    "volta_ctrl_vilbert",
)

PAIRWISE = ("sim", "sim_i2t_over_temp", "fusion_embeds", "itm_logits")
"""Outputs of ALBEF that have a row of images and a row of texts."""

UNREAD = ("packed_", "obj_reps", "embedding_output")
"""Beginnings of the names of outputs between layers, which the networks here do not return."""

PADDING = {
    "input_ids": ("tokens", 0),
    "mlm_input_ids": ("tokens", 0),
    "token_type_ids": ("tokens", 0),
    "attention_mask": ("tokens", 0),
    "boxes": ("regions", -2),
    "features": ("regions", -2),
    "hidden": ("regions", 0),
    "real": ("regions", 0),
    "image_feat": ("regions", 0),
    "image_loc": ("regions", 0),
    "image_attention_mask": ("regions", 0),
}
"""What a column of padding is of, and what it is filled with."""


@cache
@torch.inference_mode(False)
def weights(name):
    return load_file(FOLDER / name / "weights.safetensors")


def official_config(name):
    return json.loads((FOLDER / name / "config.json").read_text(encoding="utf-8"))


@cache
def expected(name):
    with np.load(FOLDER / name / "outputs.npz") as arrays:
        found = {key: arrays[key] for key in arrays if not key.startswith(UNREAD)}
    if name.startswith("vlbert"):
        # Beyond the end of a shorter row's text the authors' rows hold its regions.
        inputs = batch(name)
        tokens, real = (inputs["input_ids"] > 0).numpy(), inputs["real"].numpy()
        for key, each in found.items():
            rows = slice(-len(each), None) if key == "mlm_logits_aux" else slice(len(each))
            there = real if key in ("object_hidden", "mvrc_logits") else tokens
            found[key] = each * there[rows, : each.shape[1], None]
    return found


@cache
def network(name):
    """The network with the official weights."""
    return loaded(name, weights(name))


def loaded(name, state):
    """The fixture's network with weights: its heads are of sizes that were never published."""
    module, settings = MODULES[name], config(name)
    if module is volta:
        return volta.load_official(state, settings)
    kind = getattr(module, type(settings).__name__.replace("Config", "Network"))
    return read_official(kind, unwrapped(state), name, settings)


def batch(name):
    """The fixture's inputs."""
    with np.load(FOLDER / name / "inputs.npz") as arrays:
        inputs = {key: torch.from_numpy(arrays[key]) for key in arrays}
    return _vl_bert_batch(inputs) if name.startswith("vlbert") else inputs


def config(name):
    """The configuration of the network written here, from the official one."""
    official = official_config(name)
    if name.startswith("vlbert"):
        known = official | official["VLBERT"]
        return _from(
            vl_bert.VlBertConfig,
            known,
            text_only=name != "vlbert_withouttextonly",
        )
    if name.startswith("albef"):
        vit = official["vit"]
        return _from(
            albef.AlbefConfig,
            official["bert_config_file"],
            image_size=official["image_res"],
            patch_size=vit["patch_size"],
            vision_width=vit["embed_dim"],
            vision_layers=vit["depth"],
            vision_heads=vit["num_heads"],
            vision_intermediate_size=4 * vit["embed_dim"],
            embed_dim=official["embed_dim"],
            masked_words=name == "albef",
        )
    if name.startswith("volta"):
        return _of_volta(name, official)
    return _from(vilbert.VilbertConfig, official)


def _of_volta(name, official):
    return _from(
        vilbert.VilbertConfig,
        official,
        num_hidden_layers=4,
        v_num_hidden_layers=2,
        v_target_size=len(weights(name)["cls.imagePredictions.decoder_dict.0.bias"]),
        bi_hidden_size=official["sublayer2attn_hidden_size"].get("4", 48),
        bi_num_attention_heads=official["sublayer2num_attention_heads"].get("4", 4),
        t_biattention_id=(2, 3),
        v_biattention_id=(0, 1),
    )


def _from(config, official, **changes):
    names = {field.name for field in fields(config)}
    known = {key: official[key] for key in official.keys() & names}
    return config(**{**known, **changes})


FAMILIES = {"vlbert": vl_bert, "vilbert": vilbert, "albef": albef, "volta": volta}
MODULES = {name: FAMILIES[re.match("[a-z]+", name).group()] for name in NAMES}


def _vl_bert_batch(inputs):
    """Rows with an image, then those without, as one batch."""
    boxes = inputs["boxes"]
    batch = {
        "input_ids": inputs["text"],
        "boxes": boxes[..., :4],
        "sizes": inputs["im_info"][:, :2],
        "hidden": inputs["mvrc_ops"],
        "real": (boxes[..., 0] > -1.5).long(),
    }
    if boxes.shape[-1] > 4:
        batch["features"] = boxes[..., 4:]
    if "image" in inputs:
        batch["images"] = inputs["image"]
    if "aux_text" in inputs:
        alone = inputs["aux_text"]
        tokens = torch.zeros(len(alone), batch["input_ids"].shape[1], dtype=torch.long)
        tokens[:, : alone.shape[1]] = alone
        batch = {
            key: torch.cat([each, _blank(each, len(alone)) if key != "input_ids" else tokens])
            for key, each in batch.items()
        }
    return batch


def _blank(tensor, n):
    return torch.zeros(n, *tensor.shape[1:], dtype=tensor.dtype)


def rows(batch, chosen):
    """Some rows of a batch."""
    return {key: each[list(chosen)] for key, each in batch.items()}


def padded(batch, **extra):
    """A batch with further columns of padding: ``tokens`` and ``regions`` say how many."""
    padded = dict(batch)
    for key in batch.keys() & PADDING.keys():
        kind, value = PADDING[key]
        each = batch[key]
        more = torch.full((len(each), extra[kind], *each.shape[2:]), value, dtype=each.dtype)
        padded[key] = torch.cat([each, more], dim=1)
    return padded


@torch.inference_mode()
def outputs(name, batch, other=None):
    """The outputs of the fixture's network, or another, for a batch: arrays by their names."""
    run = next(each for start, each in RUNS.items() if name.startswith(start))
    found = run(other or network(name), batch)
    found = {key: each for key, each in found.items() if each is not None}
    return {k: (v.float() if v.is_floating_point() else v).numpy() for k, v in found.items()}


def _run_vl_bert(network, batch):
    ids = batch["input_ids"]
    given = {key: each for key, each in batch.items() if key != "input_ids"}
    text, objects = network(ids, ids > 0, **given)
    words, real = network.word_logits(text), (ids > 0)[..., None]
    return {
        "text_hidden": text * real,
        "object_hidden": objects * batch["real"][..., None],
        "mvrc_logits": network.vlbert.mvrc_head(objects) * batch["real"][..., None],
        "mlm_logits": words * real,
        "mlm_logits_wvc": words * real,
        "mlm_logits_aux": words * real,
    }


def _run_streams(network, batch):
    given = (batch["image_feat"], batch["image_loc"], batch["image_attention_mask"])
    found = network(
        batch["input_ids"],
        batch["attention_mask"],
        *given,
        token_type_ids=batch["token_type_ids"],
    )
    classes = network.cls.imagePredictions(found.image)
    named = {
        "sequence_output_t": found.text,
        "sequence_output_v": found.image,
        "pooled_output_t": found.pooled_text,
        "pooled_output_v": found.pooled_image,
        "prediction_scores_t": network.word_logits(found.text),
        "prediction_scores_v": classes,
        "prediction_scores_v_0": classes,
        "prediction_scores_v_6": classes,
    }
    return {**named, "seq_relationship_score": network.match_logits(found)}


def _run_albef(network, batch):
    mask, n = batch["attention_mask"], len(batch["image"])
    image = network.encode_image(batch["image"])
    text = network.encode_text(batch["input_ids"], mask)
    fused = torch.stack([network.fuse(text, mask, each.expand(n, -1, -1)) for each in image])
    image_feat, text_feat = network.image_features(image), network.text_features(text)
    named = {
        "image_embeds": image,
        "text_embeds": text,
        "image_feat": image_feat,
        "text_feat": text_feat,
        "sim": image_feat @ text_feat.T,
        "sim_i2t_over_temp": image_feat @ text_feat.T / network.temp,
        "fusion_embeds": fused,
        "itm_logits": torch.stack([network.match_logits(each) for each in fused]),
    }
    if "mlm_input_ids" in batch:
        ids = batch["mlm_input_ids"]
        fused = network(ids, mask, batch["image"])
        named["mlm_multimodal_embeds"] = fused
        named["mlm_logits"] = network.word_logits(fused)
        named["mlm_logits_text_mode_only"] = network.word_logits(network.encode_text(ids, mask))
    return named


RUNS = {
    "vlbert": _run_vl_bert,
    "vilbert": _run_streams,
    "volta": _run_streams,
    "albef": _run_albef,
}
