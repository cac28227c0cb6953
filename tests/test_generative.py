"""Generative models: every score against a plain pass of the network over prompt and answer."""

import itertools

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support import generative_models

from biaslib import capabilities as can
from biaslib import models
from biaslib.errors import CheckpointError
from biaslib.models.generative import PROMPTS, SCORES, Prompts
from biaslib.runtime import UnknownNameError
from biaslib.studies import study4_captions

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

CAPTIONS = [["the woman is a nurse.", "a man"], ["the man is a doctor", "the pilot."]]
CLASSES = {
    "llava": transformers.LlavaForConditionalGeneration,
    "qwen2_5_vl": transformers.Qwen2_5_VLForConditionalGeneration,
    "idefics3": transformers.Idefics3ForConditionalGeneration,
    "gemma3": transformers.Gemma3ForConditionalGeneration,
}


def pictures(n=2, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (40, 50 + 4 * at, 3), dtype=np.uint8) for at in range(n)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {name: tmp_path_factory.mktemp(name) for name in CLASSES}
    return {name: generative_models.build(name, folder) for name, folder in made.items()}


@pytest.fixture(scope="module", params=CLASSES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def model(folders, name):
    return models.load(str(folders[name]), device="cpu")


@pytest.fixture(scope="module")
def network(folders, name):
    return CLASSES[name].from_pretrained(folders[name]).eval()


@pytest.fixture(scope="module")
def plain(folders, name, network):
    """Score an answer as the documentation of transformers would: one pass, nothing shared.

    Its tokens are those that the chat template gives for the assistant's message.
    """
    processor = transformers.AutoProcessor.from_pretrained(folders[name])
    counts = {"return_dict": True, "return_tensors": "pt", "tokenize": True}
    special = {
        *processor.tokenizer.all_special_ids,
        *processor.tokenizer.get_added_vocab().values(),
    }

    @torch.inference_mode()
    def score(picture, prompt, answer):
        shown = [{"type": "image", "image": picture}] if picture is not None else []
        asked = [{"role": "user", "content": [*shown, {"type": "text", "text": prompt}]}]
        said = [{"role": "assistant", "content": [{"type": "text", "text": answer}]}]
        before = processor.apply_chat_template(asked, add_generation_prompt=True, **counts)
        start = before["input_ids"].shape[1]
        whole = processor.apply_chat_template(asked + said, **counts)
        ids = whole["input_ids"][0]
        after = [at for at, each in enumerate(ids.tolist()) if at >= start and each in special]
        end = after[0] if after else len(ids)
        labels = whole["input_ids"].clone()
        labels[:, :start], labels[:, end:] = -100, -100
        output = network(**whole, labels=labels)
        log_p = output.logits[0, start - 1 : end - 1].log_softmax(-1)
        scored = log_p[torch.arange(end - start), ids[start:end]].double().numpy()
        assert -scored.mean() == pytest.approx(output.loss.item(), abs=1e-5)
        return scored

    return score


def test_likelihoods_are_those_of_one_plain_pass_and_of_the_loss(model, plain):
    found = model.log_likelihood(pictures(), CAPTIONS)
    for at, picture in enumerate(pictures()):
        for which, caption in enumerate(CAPTIONS[at]):
            said = plain(picture, model.prompts.describe, caption)
            assert found.total[at, which] == pytest.approx(said.sum(), abs=1e-4)
            assert found.mean[at, which] == pytest.approx(said.mean(), abs=1e-5)
            assert found.tokens[at, which] == len(said)
    assert np.ptp(found.mean) > 1e-2


def test_without_a_picture_and_with_a_grey_one_are_two_baselines(model, plain):
    grey = [np.full_like(each, 128) for each in pictures()]
    expected = [
        [plain(g, model.prompts.describe, c).sum() for c in row]
        for g, row in zip(grey, CAPTIONS, strict=True)
    ]
    found = model.log_likelihood(pictures(), CAPTIONS, without="content").total
    np.testing.assert_allclose(found, expected, atol=1e-4)
    none = model.log_likelihood(pictures(), CAPTIONS, without="picture").total
    assert np.abs(none - found).max() > 1e-3
    other = model.log_likelihood(pictures(seed=1), CAPTIONS, without="picture").total
    np.testing.assert_allclose(none, other, atol=1e-5)
    said = plain(None, PROMPTS.describe, CAPTIONS[0][0]).sum()
    assert none[0, 0] == pytest.approx(said, abs=1e-4)
    whole = model.log_likelihood(pictures(), CAPTIONS).total
    gain = model.scored_by("gain").match(pictures(), CAPTIONS)
    np.testing.assert_allclose(gain, whole - none, atol=1e-6)


def test_a_choice_is_asked_in_all_orders(model, plain):
    captions = [*CAPTIONS[0], "a pilot"]
    found = model.choose(pictures(1), [captions])
    log_p, places, by_order = np.zeros(3), np.zeros(3), []
    for order in itertools.permutations(range(3)):
        lines = "\n".join(f"{'ABC'[at]}. {captions[which]}" for at, which in enumerate(order))
        prompt = model.prompts.choose.format(options=lines)
        said = np.array([plain(pictures(1)[0], prompt, letter).sum() for letter in "ABC"])
        said -= np.log(np.exp(said).sum())
        log_p[list(order)] += said / 6
        places += np.exp(said) / 6
        by_order.append(said[np.argsort(order)])
    np.testing.assert_allclose(found.log_p[0], log_p, atol=1e-4)
    np.testing.assert_allclose(found.by_place[0], places, atol=1e-5)
    np.testing.assert_allclose(found.by_order[0], by_order, atol=1e-4)
    matched = model.scored_by("choice").match(pictures(1), [captions])
    np.testing.assert_allclose(matched, found.log_p, atol=1e-5)


def test_yes_is_scored_against_no(model, plain):
    (found,) = model.yes_no(pictures(1), CAPTIONS[:1])
    for value, caption in zip(found, CAPTIONS[0], strict=True):
        prompt = model.prompts.judge.format(caption=caption)
        yes, no = (plain(pictures(1)[0], prompt, answer).sum() for answer in ("yes", "no"))
        assert value == pytest.approx(yes - no, abs=1e-4)


def test_a_cloze_is_the_end_of_a_completed_sentence(model, plain):
    found = model.mask_log_prob(["the man is a [MASK]."], ["nurse", "doctor"], pictures(1))
    before = len(plain(pictures(1)[0], model.prompts.describe, "the man is a"))
    for value, word in zip(found[0], ("nurse", "doctor"), strict=True):
        said = plain(pictures(1)[0], model.prompts.describe, f"the man is a {word}.")
        assert value == pytest.approx(said[before:].sum(), abs=1e-4)
    shares = model.mask_log_prob(
        ["the man is a [MASK]."], ["nurse", "doctor"], pictures(1), among="candidates"
    )
    np.testing.assert_allclose(shares, found - np.log(np.exp(found).sum()), atol=1e-9)


def test_the_files_tell_the_kind_and_study_4_asks_it(folders, name, model):
    assert models.identify(folders[name]) == ("smolvlm", folders[name])
    own = models.load(folders[name], device="cpu")
    can.require(own, can.MATCH, can.LIKELIHOOD)
    assert own.name == model.name == name
    found = study4_captions.caption_scores(model, "matching", pictures(), CAPTIONS)
    np.testing.assert_allclose(found, model.log_likelihood(pictures(), CAPTIONS).mean, atol=1e-6)


def test_answers_of_other_scores_and_prompts_are_stored_apart(folders):
    model = models.load(str(folders["llava"]), device="cpu")
    other = model.scored_by("yes", Prompts(judge="{caption}?"))
    assert len({model.revision, model.scored_by("total").revision, other.revision}) == 3
    assert (model.score, other.score) == ("mean", "yes")
    assert {*SCORES} >= {model.score, other.score}
    with pytest.raises(UnknownNameError):
        model.scored_by("likelihood")


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["a man", "a woman"], TypeError),
        ([["a man"]], ValueError),
        ([["a man"], ["a man", "a woman"]], ValueError),
        ([["a man"], [" "]], ValueError),
        ([["a man"], ["a man " * 600]], ValueError),
    ],
)
def test_rows_of_captions_fit_the_images(folders, texts, error):
    model = models.load(str(folders["llava"]), device="cpu")
    with pytest.raises(error):
        model.log_likelihood(pictures(), texts)


def test_a_caption_that_spells_a_special_token_is_text(folders):
    model = models.load(str(folders["llava"]), device="cpu")
    found = model.log_likelihood(pictures(1), [["a <image> man", "a </s> man"]])
    assert (found.tokens > 5).all()
    assert np.isfinite(found.total).all()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ASSISTANT:{% endif %}", "ASSISTANT: <think>{% endif %}"),
        ("{{ c['text'] }}", "{{ c['text'][:9] }}"),
        ("' ASSISTANT: '", "' MODEL: '"),
    ],
)
def test_a_template_that_puts_no_answer_behind_its_prompt_is_refused(old, new, tmp_path):
    folder = generative_models.build("llava", tmp_path)
    assert old in generative_models.LLAVA
    template = generative_models.LLAVA.replace(old, new)
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(CheckpointError) as caught:
        models.load(str(folder), device="cpu")
    assert caught.value.path == folder


def blind(folder):
    weights = load_file(folder / "model.safetensors")
    state = {key: each * ("multi_modal" not in key) for key, each in weights.items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def test_a_network_that_ignores_pictures_or_has_no_template_is_refused(tmp_path):
    folder = generative_models.build("llava", tmp_path)
    blind(folder)
    for _ in range(2):
        with pytest.raises(CheckpointError) as caught:
            models.load(str(folder), device="cpu")
        assert caught.value.path == folder
        (folder / "chat_template.jinja").unlink(missing_ok=True)


def test_a_network_that_encodes_texts_apart_is_refused(tmp_path):
    sizes = generative_models.SIZES
    text = transformers.T5Config(d_model=32, d_ff=48, d_kv=8, num_layers=2, num_heads=4)
    config = transformers.Blip2Config(
        vision_config={**sizes, "image_size": 32, "patch_size": 16},
        qformer_config={**sizes, "encoder_hidden_size": 32},
        text_config={**text.to_dict(), "vocab_size": 50},
    )
    transformers.Blip2ForConditionalGeneration(config).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="encoded and decoded apart"):
        models.load(str(tmp_path), device="cpu")
