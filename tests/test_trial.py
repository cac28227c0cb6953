"""At loading a model answers twice, in any company, and what was found stands in its notes."""

import json
import threading

import numpy as np
import open_clip
import pytest
import torch
import transformers
from support import families, small_models

from biaslib import models
from biaslib.errors import CheckpointError, InputError
from biaslib.models.tokens import token_limit

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*one text at a time:UserWarning"),
    pytest.mark.filterwarnings("ignore:Initializing zero-element tensors:UserWarning"),
]
SIZES = {**small_models.BLOCKS, "vocab_size": len(small_models.VOCABULARY), "pad_token_id": 0}
SIZES |= {"max_position_embeddings": 24}
NARROW = {"embedding_size": 32}
SHORT, LONG = "the woman is a [MASK] .", "the old tall man is here . the woman is a [MASK] ."
BOTTLE = {"true_hidden_size": 32, "intra_bottleneck_size": 32, "num_feedforward_networks": 1}
FUNNEL = {"block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48}
FUNNEL |= {"vocab_size": len(small_models.VOCABULARY), "type_vocab_size": 3}
COMPANY = {
    "ConvBert": {**SIZES, **NARROW, "conv_kernel_size": 5},
    "FNet": {**SIZES, "num_attention_heads": 1},
    "Yoso": SIZES,
    "MobileBert": {**SIZES, **NARROW, **BOTTLE},
    "Funnel": FUNNEL,
}
BEYOND = ("Camembert", "MPNet", "Data2VecText", "IBert", "Longformer", "Xmod", "Bert", "Electra")


def made(name, sizes, folder, head="ForMaskedLM"):
    """Write a network of random weights, and return it."""
    config = getattr(transformers, f"{name}Config")(**sizes)
    network = small_models.random_network(lambda: getattr(transformers, name + head)(config))
    network.save_pretrained(folder)
    small_models.tokenizer().save_pretrained(folder)
    return network


@pytest.mark.parametrize("name", COMPANY)
def test_no_score_depends_on_the_texts_beside(name, tmp_path):
    network = made(name, COMPANY[name], tmp_path)
    model = models.load(tmp_path, device="cpu")
    row = model.tokenizer([SHORT], return_tensors="pt")
    with torch.inference_mode():
        logits = network(**row).logits.log_softmax(-1)
        state = network.base_model(**row).last_hidden_state[0, 0]
    at_mask = logits[row["input_ids"] == model.tokenizer.mask_token_id][0]
    expected = at_mask[model.tokenizer.convert_tokens_to_ids(["nurse", "pilot"])]
    found = model.mask_log_prob([SHORT, LONG], ["nurse", "pilot"])[0]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_allclose(model.embed([SHORT, LONG])[0], state, rtol=1e-4, atol=1e-4)
    assert f"{name.lower()} answers a text otherwise beside a longer one" in model.notes[-1]


def test_what_was_warned_of_is_told_at_each_loading_and_noted(tmp_path):
    made("Bert", SIZES, tmp_path, head="Model")
    for _ in range(2):
        with pytest.warns(UserWarning, match="fill") as told:
            model = models.load("bert", checkpoint=tmp_path, device="cpu")
        assert model.notes == (str(told[0].message),)
    made("Bert", SIZES, tmp_path)
    assert models.load(tmp_path, device="cpu").notes == ()


def test_active_dropout_is_refused(tmp_path, monkeypatch):
    made("Bert", SIZES, tmp_path)
    monkeypatch.setattr(transformers.BertModel, "eval", torch.nn.Module.train)
    monkeypatch.setattr(transformers.BertForMaskedLM, "eval", torch.nn.Module.train)
    with pytest.raises(CheckpointError, match="drawn at random") as caught:
        models.load(tmp_path, device="cpu")
    assert caught.value.path == tmp_path


@pytest.mark.parametrize("name", BEYOND)
def test_the_last_position_is_read_and_no_text_beyond(name, tmp_path):
    more = {"languages": ["en"], "default_language": "en"} if name == "Xmod" else {}
    more |= {"attention_window": 4} if name == "Longformer" else {}
    network = made(name, SIZES | more, tmp_path)
    model = models.load(tmp_path, device="cpu")
    count = 0
    with torch.inference_mode():  # as many as the library itself reads
        for count in range(18, 26):
            ids = torch.full((1, count), 5)
            try:
                network(input_ids=ids, attention_mask=torch.ones_like(ids))
            except (IndexError, RuntimeError):
                count -= 1
                break
    assert model.limit == token_limit(model.tokenizer, network) == count
    assert len(model.embed(["nurse " * (count - 2)])) == 1
    with pytest.raises(ValueError, match=f"takes {count}"):
        model.embed(["nurse " * (count - 1)])


@pytest.mark.parametrize(
    ("text", "candidates", "field", "value"),
    [
        ("the <mask> is a [MASK] .", ["nurse"], "row", 1),
        ("the woman is a [MASK] .", ["nurse", "<mask> nurse"], "word", "<mask> nurse"),
    ],
)
def test_a_second_mask_is_refused(text, candidates, field, value, tmp_path):
    made("Bert", SIZES | {"vocab_size": SIZES["vocab_size"] + 1}, tmp_path)
    words = small_models.tokenizer()
    words.mask_token = "<mask>"
    words.save_pretrained(tmp_path)
    model = models.load(tmp_path, device="cpu")
    assert model.tokenizer.mask_token == "<mask>"
    with pytest.raises(InputError) as caught:
        model.mask_log_prob([SHORT, text], candidates)
    assert getattr(caught.value, field) == value


def test_heads_of_flava_are_not_mixed_in_threads(tmp_path):
    model = models.load(families.save("flava", tmp_path / "flava"), device="cpu")
    picture, wrong = small_models.pictures(1), []
    expected = {id(each): model.mask_log_prob([SHORT], ["nurse"], each) for each in (None, picture)}

    def ask(images):
        for _ in range(30):
            found = model.mask_log_prob([SHORT], ["nurse"], images)
            wrong.append(np.abs(found - expected[id(images)]).max() > 1e-3)

    threads = [threading.Thread(target=ask, args=(each,)) for each in (None, picture)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [False] * 60


def test_candidates_of_albef_are_made_plain(tmp_path):
    model = models.load(families.save("albef", tmp_path / "albef"), device="cpu")
    picture = small_models.pictures(1)
    found = model.mask_log_prob([SHORT], ["old-nurse", "old nurse"], images=picture)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])


def of_openai(folder):
    """Write a tiny CLIP with OpenAI's vocabulary, and return OpenCLIP's reader of it."""
    words = open_clip.tokenizer.SimpleTokenizer()
    names = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
    vocabulary = {names.get(token, token): number for token, number in words.encoder.items()}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    merges = "\n".join(" ".join(pair) for pair in words.bpe_ranks)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}")
    settings = {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    blocks = {name: size for name, size in small_models.BLOCKS.items() if "range" not in name}
    text = {**blocks, "vocab_size": 49408, "eos_token_id": 49407}
    config = transformers.CLIPConfig(
        text_config=text, vision_config={**blocks, "image_size": 32, "patch_size": 8}
    )
    small_models.random_network(lambda: transformers.CLIPModel(config)).save_pretrained(folder)
    transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(folder)
    return words


def test_clip_reads_texts_as_openais_code_does(tmp_path):
    words = of_openai(tmp_path)
    model = models.load(tmp_path, device="cpu")
    network = transformers.CLIPModel.from_pretrained(tmp_path).eval()
    texts = ["the nurse's bag", "the nurse\u2019s bag", "a \u201cdoctor\u201d", "r&amp;amp;b"]
    texts += ["a \ufb01re\ufb01ghter", "\uff46\uff55\uff4c\uff4c width", "\ufeffa nurse"]
    for text in texts:
        ids = torch.tensor([[49406, *words.encode(text), 49407]])
        with torch.inference_mode():
            vector = network.get_text_features(input_ids=ids).pooler_output[0]
        found = model.encode_text([text])[0]
        np.testing.assert_allclose(found, vector / vector.norm(), atol=1e-5, err_msg=text)


def test_siglip_reads_texts_as_its_authors_do_without_sentencepiece(tmp_path):
    """Expected: the lower case, no punctuation, one blank of big_vision's canonicalize."""
    folder = families.save("siglip", tmp_path / "siglip")
    plain = models.load(folder, device="cpu").encode_text(["the old woman is a nurse", "old man"])
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text()) | {"tokenizer_class": "SiglipTokenizer"}
    path.write_text(json.dumps(settings))
    model = models.load(folder, device="cpu")
    found = model.encode_text(["The old-woman... is\t a NURSE!".replace("-", " "), "(old) 'man'"])
    np.testing.assert_allclose(found, plain, atol=1e-6)
    (folder / "tokenizer.json").unlink()
    (folder / "spiece.model").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        models.load(folder, device="cpu")
