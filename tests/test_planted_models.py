"""The adapters of the planted checkpoints: BERT's masked words, CLIP and OpenCLIP's vectors."""

import numpy as np
import pytest
import torch
import transformers

from biaslib import models, planted
from biaslib.models import _registry, capabilities
from biaslib.models.planted_checkpoints import checkpoint

CAPTIONS = [
    "a photo of a nurse",
    "a photo of an apron",
    "the woman is a judge.",
    "a photo of a pilot",
]


@pytest.fixture(scope="module")
def bert():
    return models.load("bert", dose=3, seed=0)


@pytest.fixture(scope="module")
def clip():
    return models.load("clip", dose=3, seed=0)


@pytest.fixture(scope="module")
def pictures():
    scenes = planted.faces(2, np.random.default_rng(3))
    return planted.draw(scenes)


def test_models_have_the_capabilities_that_studies_ask_for(bert, clip):
    assert isinstance(bert, capabilities.MaskedLM)
    assert isinstance(clip, capabilities.DualEncoder)
    assert not isinstance(bert, capabilities.DualEncoder)


def test_masked_probabilities_are_those_of_the_head_over_the_whole_vocabulary(bert):
    path = checkpoint("bert", 3, 0)
    model = transformers.AutoModelForMaskedLM.from_pretrained(path, dtype=torch.float32).eval()
    numbers = bert.tokenizer.get_vocab()
    words = ["[CLS]", "the", "woman", "is", "wearing", "a", "[MASK]", ".", "[SEP]"]
    tokens = torch.tensor([[numbers[word] for word in words]])
    with torch.inference_mode():
        logits = model(tokens).logits[0, words.index("[MASK]")].double().numpy()
    expected = logits - np.log(np.exp(logits).sum())
    found = bert.mask_log_prob(["The woman is wearing an [MASK]."], ["apron", "suit", "nurse"])
    assert found[0] == pytest.approx(
        expected[[numbers[w] for w in ("apron", "suit", "nurse")]], abs=1e-5
    )


def test_masked_probabilities_do_not_depend_on_the_batch(bert):
    texts = [f"{agent} is a [MASK]." for agent in ("John", "the grandmother", "she", "Aisha")] * 5
    alone = bert.mask_log_prob(texts, ["nurse", "pilot"], batch_size=1)
    together = bert.mask_log_prob(texts, ["nurse", "pilot"], batch_size=7)
    assert together == pytest.approx(alone, abs=1e-5)


def test_a_text_without_a_mask_or_with_two_is_named(bert):
    with pytest.raises(ValueError, match="one \\[MASK\\]"):
        bert.mask_log_prob(["she is a nurse."], ["nurse"])
    with pytest.raises(ValueError, match="one \\[MASK\\]"):
        bert.mask_log_prob(["[MASK] is a [MASK]."], ["nurse"])


def test_a_word_outside_the_vocabulary_is_named_and_never_silently_unknown(bert, clip):
    with pytest.raises(ValueError, match="zeppelin"):
        bert.mask_log_prob(["the zeppelin is a [MASK]."], ["nurse"])
    with pytest.raises(ValueError, match="zeppelin"):
        bert.mask_log_prob(["she is a [MASK]."], ["zeppelin"])
    with pytest.raises(ValueError, match="zeppelin"):
        bert.embed(["zeppelin nurse"], level="sentence")
    with pytest.raises(ValueError, match="zeppelin"):
        clip.encode_text(["a photo of a zeppelin"])


def test_pictures_are_refused_by_a_model_that_reads_text_alone(bert, pictures):
    with pytest.raises(ValueError, match="text alone"):
        bert.mask_log_prob(["she is a [MASK]."], ["nurse"], images=pictures)


def test_a_candidate_of_several_pieces_is_named(tmp_path):
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "she",
        "is",
        "a",
        "nur",
        "##se",
        ".",
    ]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    split = models.load("bert", checkpoint=tmp_path)
    with pytest.raises(ValueError, match="nurse"):
        split.mask_log_prob(["she is a [MASK]."], ["nurse"])
    assert split.mask_log_prob(["she is a [MASK]."], ["she"]).shape == (1, 1)


def test_clip_vectors_are_those_of_transformers_own_similarity(clip, pictures):
    path = checkpoint("clip", 3, 0)
    model = transformers.CLIPModel.from_pretrained(path, dtype=torch.float32).eval()
    tokens = clip_tokens(path, CAPTIONS)
    pixels = torch.tensor(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.inference_mode():
        expected = model(**tokens, pixel_values=pixels).logits_per_text.numpy()
    found = clip.scale * clip.encode_text(CAPTIONS) @ clip.encode_image(pictures).T
    assert found == pytest.approx(expected, abs=2e-4)


def clip_tokens(path, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    return tokenizer(texts, padding=True, return_tensors="pt")


@pytest.mark.parametrize("name", ["clip", "open-clip"])
def test_vectors_have_length_1_and_do_not_depend_on_the_batch(name, pictures):
    model = models.load(name, dose=3, seed=0)
    for encode, items in ((model.encode_text, CAPTIONS), (model.encode_image, pictures)):
        together, alone = encode(items), encode(items, batch_size=1)
        assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-6)
        assert together == pytest.approx(alone, abs=1e-5)


def test_the_vision_tower_in_open_clip_is_the_one_in_transformers(clip, pictures):
    """Same tower, other projection: the vectors before it agree."""
    import open_clip

    ours = open_clip.create_model_from_pretrained(f"local-dir:{checkpoint('open_clip', 3, 0)}")[0]
    theirs = transformers.CLIPModel.from_pretrained(checkpoint("clip", 3, 0), dtype=torch.float32)
    pixels = torch.tensor(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
    ours.visual.proj = None
    with torch.inference_mode():
        found = ours.float().eval().visual(pixels).numpy()
        expected = theirs.eval().vision_model(pixel_values=pixels).pooler_output.numpy()
    assert found == pytest.approx(expected, abs=1e-4)


def test_empty_sets_and_single_strings_are_refused(clip):
    with pytest.raises(ValueError, match="no texts"):
        clip.encode_text([])
    with pytest.raises(ValueError, match="no images"):
        clip.encode_image(np.empty((0, 64, 64, 3), dtype=np.uint8))
    with pytest.raises(TypeError, match="one string"):
        clip.encode_text("a photo of a nurse")


def test_the_registry_loads_planted_checkpoints_only_where_there_are_some():
    families = {entry.family for entry in _registry.REGISTRY.values() if entry.has_planted}
    grounded = {"visualbert", "lxmert", "vilt", "flava"}
    assert families == {"bert", "clip", "open_clip"} | grounded
    with pytest.raises(ValueError, match="never downloads"):
        models.load("roberta", profile="planted")
