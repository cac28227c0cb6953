"""Adapters of texts with images against direct calls of their networks, a pair at a time.

The networks of VL-BERT, ViLBERT and ALBEF are compared with the official implementations in
test_networks_parity.py; here it is shown what of a text and an image reaches them.
"""

import dataclasses
import shutil
from typing import NamedTuple

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file
from support import families, small_models
from support.families import WIDTH

from biaslib import models
from biaslib.capabilities import EMBED, EMBED_WITH_IMAGES, FILL, FILL_WITH_IMAGES, MATCH
from biaslib.models.fusion import Mask

TEXTS = ["the woman is carrying a nurse.", "old", "a man is here.", "the pilot is a tall woman."]
WORDS, PLACES = ["carrying", "old", "man", "woman"], [4, 1, 2, 6]
MASKED = ["the [MASK] is a nurse.", "[MASK]", "a man is [MASK] here.", "the tall [MASK]."]
CANDIDATES = ["woman", "man", "nurse"]
CAPTIONS = [[text, "the nurse is here.", "a man"] for text in TEXTS]


class Direct(NamedTuple):
    """A network's states of a text (tokens, d), words' logits there, and that of a match."""

    states: torch.Tensor
    words: torch.Tensor | None = None
    match: torch.Tensor | None = None


def regions():
    """Return four pictures' regions: one picture is not square, and the last has none."""
    found = families.regions()
    real = found.real.copy()
    real[3] = False
    return dataclasses.replace(found, real=real, sizes=[[64, 64], [200, 80], [64, 64], [64, 64]])


def tokens_of(text):
    return small_models.tokenizer()(text, return_tensors="pt")["input_ids"]


def there(row):
    """Return features and boxes of the real regions of one picture, as tensors."""
    real = row.real[0]
    return torch.tensor(row.features[0, real])[None], torch.tensor(row.boxes[0, real])[None]


def with_mean(row):
    """Return features and boxes with the mean of the features in front, in whose place is none."""
    features, boxes = there(row)
    mean = features.mean(dim=1, keepdim=True) if row.real.any() else torch.zeros(1, 1, WIDTH)
    return torch.cat([mean, features], dim=1), boxes


def bert(network, text, _):
    output = network(tokens_of(text), output_hidden_states=True)
    return Direct(output.hidden_states[-1][0], output.logits[0])


def visualbert(network, text, row):
    """Regions have the token type 0; index 1 is a match."""
    ids, visual = tokens_of(text), {}
    if row is not None and row.real.any():
        features, _ = there(row)
        types = torch.zeros(features.shape[:2], dtype=torch.long)
        visual = {"visual_embeds": features, "visual_token_type_ids": types}
    output = network(input_ids=ids, output_hidden_states=True, **visual)
    logits, n = output.seq_relationship_logits[0], ids.shape[1]
    words = output.prediction_logits[0, :n]
    return Direct(output.hidden_states[-1][0, :n], words, logits[1] - logits[0])


def lxmert(network, text, row):
    """A text alone is read beside one region of zeros; index 1 is a match."""
    features, boxes = torch.zeros(1, 1, WIDTH), torch.zeros(1, 1, 4)
    if row is not None and row.real.any():
        features, boxes = there(row)
    output = network(
        input_ids=tokens_of(text),
        visual_feats=features,
        visual_pos=boxes,
        output_hidden_states=True,
    )
    logits = output.cross_relationship_score[0]
    states = output.language_hidden_states[-1][0]
    return Direct(states, output.prediction_logits[0], logits[1] - logits[0])


def vl_bert(network, text, row):
    """The whole image, cut by a pixel, stands first; boxes are in pixels of the resized image."""
    ids = tokens_of(text)
    if row is None:
        states = network(ids, torch.ones_like(ids))[0][0]
        return Direct(states, network.word_logits(states))
    width, height = {64: (600, 600), 200: (1000, 400)}[row.sizes[0, 0]]
    sides = torch.tensor([width, height, width, height])
    features, boxes = with_mean(row)
    boxes = torch.minimum(boxes * sides, sides - 1)
    right, bottom = (row.sizes[0] - 1) * [width, height] / row.sizes[0]
    whole = torch.tensor([[[0, 0, right, bottom]]], dtype=torch.float32)
    states, _ = network(
        ids,
        torch.ones_like(ids),
        boxes=torch.cat([whole, boxes], dim=1),
        sizes=torch.tensor([[width, height]]),
        features=features,
    )
    return Direct(states[0], network.word_logits(states[0]))


def vilbert(network, text, row):
    """The whole image stands first, a text alone beside no region; index 0 is a match."""
    ids = tokens_of(text)
    if row is None:
        seen = (torch.zeros(1, 1, WIDTH), torch.zeros(1, 1, 5), torch.zeros(1, 1, dtype=torch.bool))
    else:
        features, boxes = with_mean(row)
        boxes = torch.cat([torch.tensor([[[0.0, 0, 1, 1]]]), boxes], dim=1)
        areas = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
        places = torch.cat([boxes, areas[..., None]], dim=-1)
        seen = (features, places, torch.ones(features.shape[:2]))
    output = network(ids, torch.ones_like(ids), *seen)
    logits = network.match_logits(output)[0]
    return Direct(output.text[0], network.word_logits(output.text[0]), logits[0] - logits[1])


def albef(network, text, picture):
    """Captions have no punctuation and no [SEP]; pictures become squares; index 1 is a match."""
    ids = tokens_of(text.replace(".", ""))[:, :-1]
    image = Image.fromarray(picture).resize((32, 32), Image.Resampling.BICUBIC)
    means = np.array([0.48145466, 0.4578275, 0.40821073])
    pixels = (np.asarray(image) / 255 - means) / [0.26862954, 0.26130258, 0.27577711]
    pixels = torch.tensor(pixels.transpose(2, 0, 1)[None], dtype=torch.float32)
    states = network(ids, torch.ones_like(ids), pixels)
    logits = network.match_logits(states)[0]
    return Direct(states[0], network.word_logits(states[0]), logits[1] - logits[0])


def prepared(network, text, picture):
    """Return a pair as the library prepares it, with no batch."""
    inputs = dict(small_models.tokenizer()(text, return_tensors="pt"))
    inputs.pop("token_type_ids")
    if picture is None:
        return inputs
    processor = transformers.AutoImageProcessor.from_pretrained(network.name_or_path, backend="pil")
    pixels = processor([picture], return_tensors="pt")
    return inputs | {name: each for name, each in pixels.items() if name.startswith("pixel")}


def vilt(network, text, picture):
    """Blocks have another epsilon than transformers gives them; a text alone has no patches."""
    inputs = prepared(network, text, picture)
    n = inputs["input_ids"].shape[1]
    if picture is None:
        embeddings = network.vilt.embeddings
        states = embeddings.text_embeddings(inputs["input_ids"])
        states = states + embeddings.token_type_embeddings.weight[0]
        for layer in network.vilt.encoder.layer:
            states = layer(states)[0]
        states = network.vilt.layernorm(states)[0]
        return Direct(states, network.mlm_score(states))
    output = network.vilt(**inputs)
    logits = torch.nn.functional.linear(output.pooler_output[0], *network.match_head)
    states = output.last_hidden_state[0, :n]
    return Direct(states, network.mlm_score(states), logits[1] - logits[0])


def flava(network, text, picture):
    """Both are read at the text's part of the encoder of both; a text alone has its own head."""
    inputs = prepared(network, text, picture)
    output = network(
        **inputs,
        input_ids_masked=inputs["input_ids"],
        return_loss=False,
        skip_unmasked_multimodal_encoder=False,
    )
    n = inputs["input_ids"].shape[1]
    if picture is None:
        return Direct(output.text_embeddings[0], output.mlm_logits[0])
    logits = output.itm_logits[0]
    states = output.multimodal_embeddings[0, -n:]
    return Direct(states, output.mmm_text_logits[0], logits[1] - logits[0])


def of_vilt(folder):
    """Return transformers' own class with the weights put in by hand, and another epsilon."""
    weights = load_file(folder / "model.safetensors")
    network = transformers.ViltForMaskedLM(transformers.ViltConfig.from_pretrained(folder))
    network.mlm_score.decoder.weight = torch.nn.Parameter(weights["mlm_score.decoder.weight"])
    network.load_state_dict(weights, strict=False)
    for layer in network.vilt.encoder.layer:
        layer.layernorm_before.eps = layer.layernorm_after.eps = 1e-6
    network.vilt.layernorm.eps = 1e-6
    network.match_head = weights["itm_score.fc.weight"], weights["itm_score.fc.bias"]
    network.name_or_path = str(folder)
    return network


READERS = {
    "bert": (bert, transformers.BertForMaskedLM.from_pretrained),
    "visualbert": (visualbert, transformers.VisualBertForPreTraining.from_pretrained),
    "lxmert": (lxmert, transformers.LxmertForPreTraining.from_pretrained),
    "vl-bert": (vl_bert, None),
    "vilbert": (vilbert, None),
    "albef": (albef, None),
    "vilt": (vilt, of_vilt),
    "flava": (flava, transformers.FlavaForPreTraining.from_pretrained),
}
"""How a pair is read, and the class of transformers; where there is none, the adapter's network."""


@pytest.fixture(scope="module", params=READERS)
def pair(request, tmp_path_factory):
    """A loaded model, its images, and a direct call of its network for one text and image."""
    name = request.param
    folder = families.save(name, tmp_path_factory.mktemp("families") / name)
    model = models.load(name, checkpoint=folder, device="cpu")
    read, build = READERS[name]
    network = build(folder).eval() if build else model.network
    images = regions() if hasattr(model, "width_setting") else small_models.pictures(4)
    if EMBED_WITH_IMAGES not in model.capabilities:
        images = None

    @torch.inference_mode()
    def direct(text, row=None, images=images):
        return read(network, text, None if row is None or images is None else images[row])

    return model, images, direct


def near(found, expected):
    np.testing.assert_allclose(found, np.array(expected), atol=1e-5, rtol=1e-5)


def words_at_masks(direct, rows):
    columns = small_models.tokenizer().convert_tokens_to_ids(CANDIDATES)
    places = [tokens_of(text)[0].tolist().index(4) for text in MASKED]
    read = zip(MASKED, places, rows, strict=True)
    return [direct(text, row).words[place].log_softmax(-1)[columns] for text, place, row in read]


def test_embeddings_are_the_networks_states(pair):
    model, images, direct = pair
    states = [direct(text, row).states for row, text in enumerate(TEXTS)]
    for level in ("sentence", "word"):
        near(model.embed(TEXTS, images, level), [each[0] for each in states])
    contextual = [each[place] for each, place in zip(states, PLACES, strict=True)]
    near(model.embed(TEXTS, images, "contextual", WORDS), contextual)


def test_masked_words_have_the_networks_probabilities(pair):
    model, images, direct = pair
    if FILL_WITH_IMAGES in model.capabilities:
        near(model.mask_log_prob(MASKED, CANDIDATES, images), words_at_masks(direct, range(4)))


def test_captions_are_scored_by_the_logit_of_a_match_less_that_of_none(pair):
    model, images, direct = pair
    if MATCH in model.capabilities:
        logits = [[direct(text, i).match for text in row] for i, row in enumerate(CAPTIONS)]
        near(model.match(images, CAPTIONS), logits)


def test_without_an_image_the_words_alone_are_read(pair):
    model, _, direct = pair
    if EMBED in model.capabilities:
        near(model.embed(TEXTS), [direct(text).states[0] for text in TEXTS])
    if FILL in model.capabilities:
        near(model.mask_log_prob(MASKED, CANDIDATES), words_at_masks(direct, [None] * 4))


def test_hidden_persons_have_features_of_zero_and_keep_their_box(pair):
    """What of them counts in VL-BERT and ViLBERT: test_pictures_through_detector.py."""
    model, images, direct = pair
    if model.name not in ("visualbert", "lxmert"):
        return
    features = np.where(images.persons[..., None], 0, images.features)
    hidden = dataclasses.replace(images, features=features)
    states = [direct(text, row, hidden).states[0] for row, text in enumerate(TEXTS)]
    found = model.embed(TEXTS, images, mask=Mask(persons=True))
    near(found, states)
    assert np.abs(found - model.embed(TEXTS, images)).max() > 1e-3


def test_lxmert_may_be_without_the_heads_that_nothing_reads(tmp_path):
    folder = families.save("lxmert", tmp_path / "whole")
    shutil.copytree(folder, tmp_path / "less")
    families.without(tmp_path / "less", "answer_head", "obj_predict_head")
    whole, less = (
        models.load("lxmert", checkpoint=tmp_path / name, device="cpu")
        for name in ("whole", "less")
    )
    assert EMBED_WITH_IMAGES in less.capabilities
    near(less.embed(TEXTS, regions()), whole.embed(TEXTS, regions()))
