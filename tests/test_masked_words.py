"""A masked word has the tokens that it has in the text: against direct calls of transformers."""

import json

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from support import small_models
from tokenizers import models as kinds
from tokenizers import pre_tokenizers, trainers

from biaslib import models
from biaslib.models.tokens import word_pieces

TEXTS = {
    "inside": "The woman is carrying a [MASK].",
    "first": "[MASK] is a word.",
    "last": "The woman is carrying a [MASK]",
    "after a bracket": "The woman ([MASK]) is here.",
    "after a quotation mark": 'The woman is carrying "[MASK]".',
    "before a comma": "The woman, a [MASK], is here.",
    "after a hyphen": "The woman is a non-[MASK].",
}
CANDIDATES = ["purse", "nurse", "briefcase", "zq"]
TRAINING = [
    "The woman is carrying a purse . purse is a word ( nurse ) , a nurse , - here .",
    "nurse is a word . The woman is a non nurse , nurse ( purse ) .",
] * 20
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 66,
    "initializer_range": 0.5,
}
ROBERTAS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BERTS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def bytes_of(specials):
    """Return the byte-level vocabulary and merges that the library's own trainer finds."""
    made = tokenizers.Tokenizer(kinds.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=340, special_tokens=specials, initial_alphabet=letters, show_progress=False
    )
    made.train_from_iterator(TRAINING, trainer)
    model = json.loads(made.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}


def sentence_pieces(specials):
    """Return a vocabulary of SentencePiece, with scores."""
    words = ["The", "woman", "is", "carrying", "a", "purse", "nurse", "word", "here", "non"]
    whole = ["purse", *(f"▁{word}" for word in words)]
    letters = [*"▁abcdefghijklmnopqrstuvwxyzT().,-", '"']
    scored = [*((each, -1.0) for each in whole), *((each, -9.0) for each in letters)]
    return {"vocab": [*((each, 0.0) for each in specials), *scored]}


def mask(specials):
    """Return the mask token as the published byte-level tokenizers have it: with its space."""
    return {
        "mask_token": transformers.AddedToken(specials[-1], lstrip=True, special=True),
        "model_max_length": 60,
    }


def roberta():
    words = transformers.RobertaTokenizer(**bytes_of(ROBERTAS), **mask(ROBERTAS))
    config = transformers.RobertaConfig(vocab_size=len(words), **SIZES)
    return transformers.RobertaForMaskedLM(config), words


def deberta_v2():
    words = transformers.DebertaV2Tokenizer(**sentence_pieces(BERTS), model_max_length=60)
    config = transformers.DebertaV2Config(vocab_size=len(words), **SIZES)
    return transformers.DebertaV2ForMaskedLM(config), words


def bert():
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    known = ["the", "woman", "is", "carrying", "a", "purse", "nurse", "word", "here", "non"]
    known += [*'().,-"']
    tokens = [*BERTS, *known, *alphabet[1:], *(f"##{letter}" for letter in alphabet)]
    words = transformers.BertTokenizer(vocab={each: at for at, each in enumerate(tokens)})
    config = transformers.BertConfig(vocab_size=len(tokens), **SIZES)
    return transformers.BertForMaskedLM(config), words


@pytest.fixture(
    scope="module",
    params=[roberta, deberta_v2, bert],
    ids=lambda made: made.__name__,
)
def family(request, tmp_path_factory):
    """A model of random weights that was read from a folder, and the same by transformers."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network, words = request.param()
    small_models.random_parameters(network).save_pretrained(folder)
    words.save_pretrained(folder)
    network = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    return (
        models.load(folder, device="cpu"),
        network,
        transformers.AutoTokenizer.from_pretrained(folder),
    )


def pieces_of(words, text, word):
    """Return a word's tokens: from where the mask is, those of the filled text that spell it."""
    masked = words(text.replace("[MASK]", words.mask_token))["input_ids"]
    start = masked.index(words.mask_token_id)
    ids = words(text.replace("[MASK]", word))["input_ids"]
    start -= words.convert_ids_to_tokens(masked[start - 1]) == "Ġ"
    for end in range(start + 1, len(ids) + 1):
        spelt = "".join(words.convert_ids_to_tokens(ids[start:end])).replace("##", "")
        if spelt.lstrip("▁Ġ") == word:
            return ids[start:end]
    raise AssertionError(f"{word} is not spelt in {words.convert_ids_to_tokens(ids)}")


@torch.no_grad()
def chain(network, words, text, pieces):
    """Return log P of pieces at the mask, filled in from left to right, row by row."""
    ids = words(text.replace("[MASK]", words.mask_token))["input_ids"]
    place, total = ids.index(words.mask_token_id), 0.0
    row = [*ids[:place], *[words.mask_token_id] * len(pieces), *ids[place + 1 :]]
    for at, piece in enumerate(pieces, place):
        log_p = network(input_ids=torch.tensor([row])).logits[0, at].double().log_softmax(-1)
        total += log_p[piece].item()
        row[at] = piece
    return total


def test_masked_words_have_the_tokens_that_stand_in_the_text(family):
    model, network, words = family
    texts = list(TEXTS.values())
    pieces = [[pieces_of(words, text, word) for word in CANDIDATES] for text in texts]
    assert {len(each) > 1 for row in pieces for each in row} == {True, False}
    expected = [
        [chain(network, words, text, each) for each in row]
        for text, row in zip(texts, pieces, strict=True)
    ]
    np.testing.assert_allclose(model.mask_log_prob(texts, CANDIDATES), expected, atol=1e-4)
    shared = model.mask_log_prob(texts, CANDIDATES, among="candidates")
    np.testing.assert_allclose(np.exp(shared).sum(axis=1), 1)
    alone = np.concatenate([model.mask_log_prob([text], CANDIDATES) for text in texts])
    np.testing.assert_allclose(alone, expected, atol=1e-4)
    spaced = model.mask_log_prob(texts, [f" {word}" for word in CANDIDATES])
    np.testing.assert_allclose(spaced, expected, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.* at random .*:UserWarning")
def test_dropout_of_a_tokenizer_is_switched_off_and_noted(family, tmp_path):
    model, network, words = family
    network.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    path = tmp_path / "tokenizer.json"
    settings = json.loads(path.read_text())
    if settings["model"]["type"] != "BPE":
        pytest.skip("merges nothing")
    settings["model"]["dropout"] = 0.5
    path.write_text(json.dumps(settings))
    path = tmp_path / "tokenizer_config.json"  # of a class that reads tokenizer.json as it is
    path.write_text(path.read_text().replace("RobertaTokenizer", "PreTrainedTokenizerFast"))
    dropping, texts = models.load(tmp_path, device="cpu"), list(TEXTS.values())
    for _ in range(3):
        found = dropping.mask_log_prob(texts, CANDIDATES)
        np.testing.assert_allclose(found, model.mask_log_prob(texts, CANDIDATES), atol=1e-5)
    assert ["dropout" in note for note in dropping.notes] == [True]
    assert model.notes == ()


@pytest.mark.parametrize(
    ("made", "glued", "token"),
    [
        (roberta, "The woman is non[MASK].", "nurse"),
        (roberta, "The [MASK]s.", "Ġnurse"),
        (deberta_v2, "The [MASK]s.", "▁nurse"),
        (bert, "The woman is non[MASK].", "nurse"),
        (bert, "The [MASK]s.", "nurse"),
    ],
)
def test_a_mask_that_is_glued_to_letters_stands_for_a_whole_word(made, glued, token):
    _, words = made()
    found = word_pieces(words, ["nurse"], [glued], "the model")
    assert words.convert_ids_to_tokens(found[0][0]) == [token]
