"""Generative models: every score against a plain pass of the network over prompt and answer."""

import datetime
import itertools
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support import generative_models

from biaslib import capabilities as can
from biaslib import models
from biaslib.errors import CheckpointError, InputError
from biaslib.models.conversation import DATE
from biaslib.models.generative import PROMPTS, SCORES, Prompts
from biaslib.models.reading import read_network
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
    return by_template(folders[name], network)


def by_template(folder, network, **switches):
    """Score an answer as the documentation of transformers would: one pass, nothing shared.

    Its tokens are those that the chat template gives for the assistant's message.
    """
    processor = transformers.AutoProcessor.from_pretrained(folder)
    counts = {"return_dict": True, "return_tensors": "pt", "tokenize": True, **switches}
    special = {
        *processor.tokenizer.all_special_ids,
        *processor.tokenizer.get_added_vocab().values(),
    }

    @torch.inference_mode()
    def score(picture, prompt, answer):
        shown = [{"type": "image", "image": picture}] if picture is not None else []
        asked = [{"role": "user", "content": [*shown, {"type": "text", "text": prompt}]}]
        parts = [{"type": "text", "text": answer}]
        as_string = "m['content'] }}" in processor.chat_template
        said = [{"role": "assistant", "content": answer if as_string else parts}]
        before = processor.apply_chat_template(asked, add_generation_prompt=True, **counts)
        before = before["input_ids"][0].tolist()
        whole = processor.apply_chat_template(asked + said, **counts)
        ids = whole["input_ids"][0]
        same = torch.tensor(before) == ids[: len(before)]
        start = int(same.cumprod(0).sum())
        after = [at for at, each in enumerate(ids.tolist()) if at >= start and each in special]
        end = after[0] if after else len(ids)
        while not processor.tokenizer.decode(ids[end - 1]).strip():
            end -= 1  # a blank or line break of the template
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


@pytest.mark.parametrize("asked", [PROMPTS.judge, 'Does "{caption}" fit? {yes} or {no}'])
def test_yes_is_scored_against_no(model, plain, asked):
    """Other braces of a prompt are text."""
    (found,) = model.scored_by("yes", Prompts(judge=asked)).match(pictures(1), CAPTIONS[:1])
    for value, caption in zip(found, CAPTIONS[0], strict=True):
        prompt = asked.replace("{caption}", caption)
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


@pytest.mark.parametrize("text", ["a <image> man", "a </s> man"])
def test_a_text_that_spells_a_special_token_is_refused(folders, text):
    model = models.load(str(folders["llava"]), device="cpu")
    for ask in (model.log_likelihood, model.yes_no, model.choose):
        with pytest.raises(InputError) as caught:
            ask(pictures(1), [[text, "a man"]])
        assert caught.value.word in text


PARTS = "{% for c in m['content'] %}{{ c['text'] }}{% endfor %}"
USER = (
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>\n{% else %}"
    "{{ c['text'] }}{% endif %}{% endfor %}"
)


def chat(user, answer, end, said=PARTS, prompt=None):
    """Return a chat template by what stands before a question, before its answer and behind it."""
    return (
        "{% for m in messages %}{% if m['role'] == 'user' %}" + user + USER + "{% else %}"
        f"{answer}{said}{end}{{% endif %}}{{% endfor %}}"
        f"{{% if add_generation_prompt %}}{answer if prompt is None else prompt}{{% endif %}}"
    )


MESSAGES = {
    "Mistral's": chat("<s>[INST]", "[/INST]", "</s>"),
    "Aya's": chat("<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|end|>"),
    "Phi's": chat("<|user|>", "<|end|>\n<|assistant|>\n", "<|end|>"),
    "LLaVA's": chat("USER: ", " ASSISTANT: ", " ", prompt=" ASSISTANT:"),
    "a blank behind the prompt": chat("USER: ", " ASSISTANT: ", "</s>"),
    "a line behind the answer": chat("USER: ", " ASSISTANT: ", "\n", prompt=" ASSISTANT:"),
    "trimmed": chat("[INST] ", " [/INST] ", " </s>", "{{ m['content'][0]['text'] | trim }}"),
    "a string": chat("[INST]", "[/INST]", "</s>", "{{ '' + m['content'] }}"),
    "an empty thought": chat("<|user|>", "<|assistant|><think>\n\n</think>\n\n", "<|end|>"),
}
CONTROL = ("[INST]", "[/INST]", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|user|>", "<|end|>")
SPACES = {
    "bytes": {},
    "prefixed bytes": {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}},
    "Llama's": {
        "pre_tokenizer": None,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    },
    **{
        each: {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": each}}
        for each in ("first", "always", "never")
    },
}  # fmt: skip


def written(folder, template, spaces="bytes"):
    """Write a LLaVA of a chat template and of a way to tell where words begin."""
    generative_models.build("llava", folder, CONTROL)
    (folder / "chat_template.jinja").write_text(template)
    text = (folder / "tokenizer.json").read_text()
    if spaces not in ("bytes", "prefixed bytes"):
        text = text.replace("Ġ", "▁").replace("Ċ", "\\n")
    made = json.loads(text)
    if "▁" in text:
        made["decoder"] = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    for key, value in SPACES[spaces].items():
        made[key] = value | {"trim_offsets": True, "use_regex": True} if value else value
    (folder / "tokenizer.json").write_text(json.dumps(made))
    return folder


@pytest.mark.parametrize(
    ("form", "spaces"),
    [
        *((form, "bytes") for form in MESSAGES),
        *(("LLaVA's", each) for each in SPACES),
        ("Mistral's", "Llama's"),
        ("Mistral's", "first"),
    ],
)
def test_answers_are_the_tokens_of_the_templates_own_message(form, spaces, tmp_path):
    folder = written(tmp_path, MESSAGES[form], spaces)
    model = models.load(folder, device="cpu")
    plain = by_template(folder, CLASSES["llava"].from_pretrained(folder).eval())
    (picture,) = pictures(1)
    (captions,) = CAPTIONS[:1]
    found = model.log_likelihood([picture], [captions])
    said = [plain(picture, PROMPTS.describe, caption) for caption in captions]
    np.testing.assert_allclose(found.total[0], [each.sum() for each in said], atol=1e-4)
    assert found.tokens[0].tolist() == [len(each) for each in said]
    text = "the man is a [MASK]."
    words = ["nurse", "25", *["看護師"] * ("bytes" in spaces)]
    filled = model.mask_log_prob([text], words, [picture])[0]
    for value, word in zip(filled, words, strict=True):
        whole, begun = (
            plain(picture, PROMPTS.describe, each)
            for each in (text.replace("[MASK]", word), "the man is a")
        )
        assert value == pytest.approx(whole[len(begun) :].sum(), abs=1e-4)
    yes, no = (
        plain(picture, PROMPTS.judge.format(caption=captions[0]), each).sum()
        for each in ("yes", "no")
    )
    assert model.yes_no([picture], [captions])[0, 0] == pytest.approx(yes - no, abs=1e-4)
    options = "\n".join(f"{at}. {text}" for at, text in zip("AB", captions, strict=True))
    a, b = (plain(picture, PROMPTS.choose.format(options=options), each).sum() for each in "AB")
    first = model.choose([picture], [captions]).by_order[0, 0]
    assert first[0] - first[1] == pytest.approx(a - b, abs=1e-4)


def test_text_that_looks_at_its_picture_through_a_mask_is_scored(tmp_path):
    folder = generative_models.mllama(tmp_path)
    plain = by_template(
        folder, transformers.MllamaForConditionalGeneration.from_pretrained(folder).eval()
    )
    found = models.load(folder, device="cpu").log_likelihood(pictures(1), CAPTIONS[:1]).total[0]
    said = [plain(pictures(1)[0], PROMPTS.describe, each).sum() for each in CAPTIONS[0]]
    np.testing.assert_allclose(found, said, atol=1e-4)


OFF = "{% if X is not defined or X %}<think>\n{% else %}<think>\n\n</think>\n\n{% endif %}"


@pytest.mark.parametrize("switch", ["enable_thinking", "thinking"])
def test_thinking_is_switched_off_where_the_template_knows_how(switch, tmp_path):
    off = OFF.replace("X", switch)
    folder = written(tmp_path, chat("<|user|>", "<|end|>", "", prompt="<|end|>" + off))
    with pytest.warns(UserWarning, match="think"):
        model = models.load(folder, device="cpu")
    assert model.rendered("x").endswith("<think>\n\n</think>\n\n")
    found = model.log_likelihood(pictures(1), CAPTIONS[:1]).total
    carried = written(tmp_path, chat("<|user|>", "<|end|><think>\n\n</think>\n\n", ""))
    same = models.load(carried, device="cpu").log_likelihood(pictures(1), CAPTIONS[:1]).total
    np.testing.assert_allclose(found, same, atol=1e-6)


@pytest.mark.parametrize(
    "template",
    [
        *(
            chat("<|user|>", "<|end|>", "", prompt=f"<|end|>{mark}\n")
            for mark in ("<think>", "◁think▷", "[THINK]", "<|channel|>analysis<|message|>")
        ),
        chat("<|user|>", "<|end|><think>\n", ""),
        chat("<|user|>", "<|end|><think>\n\n</think>\n\n", "", prompt="<|end|><think>\n"),
        chat("<|user|>", "<|end|><think>\n\n</think>\n\n", "", prompt="<|end|>"),
        generative_models.LLAVA.replace("{{ c['text'] }}", "{{ c['text'][:9] }}"),
        generative_models.LLAVA.replace("' ASSISTANT: '", "' MODEL: '"),
        "{{ ['a', 'b'] | random }}" + generative_models.LLAVA,
        "{{ now() }}" + generative_models.LLAVA,
        "{{ 'USER: ' + messages[0]['content'] }}" + generative_models.LLAVA,
    ],
)
def test_a_template_that_draws_or_puts_an_answer_elsewhere_is_refused(template, tmp_path):
    """Inside a thought, behind another name, without its prompt; or asks for what is not there."""
    assert template != generative_models.LLAVA
    with pytest.raises(CheckpointError) as caught:
        models.load(written(tmp_path, template), device="cpu")
    assert caught.value.path == tmp_path
    assert "download it again" not in str(caught.value)


DAYS = "%d %b %Y", "%Y-%m-%d", "%A, %B %d, %Y", "%H:%M", "%-d/%-m/%y"


@pytest.mark.parametrize("form", DAYS)
def test_a_template_that_asks_for_today_gets_one_day(form, tmp_path, monkeypatch):
    class Day(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.combine(DATE, datetime.time())

    template = f"Today: {{{{ strftime_now('{form}') }}}} " + generative_models.LLAVA
    folder = written(tmp_path, template)
    with pytest.warns(UserWarning, match="26 July 2024"):
        model = models.load(folder, device="cpu")
    monkeypatch.setattr("transformers.utils.chat_template_utils.datetime", Day)
    chats = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "x"}]}]
    processor = transformers.AutoProcessor.from_pretrained(folder)
    assert model.rendered("x") == processor.apply_chat_template(chats, add_generation_prompt=True)
    other = written(tmp_path, template.replace("Today", "Day"))
    with warnings.catch_warnings(action="ignore"):
        other = models.load(other, device="cpu")
    assert other.revision.partition(";")[2] != model.revision.partition(";")[2]


def test_a_template_may_lie_with_the_tokenizer(tmp_path):
    folder = written(tmp_path, MESSAGES["LLaVA's"])
    found = models.load(folder, device="cpu").log_likelihood(pictures(1), CAPTIONS[:1]).total
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["chat_template"] = (folder / "chat_template.jinja").read_text()
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "chat_template.jinja").unlink()
    same = models.load(folder, device="cpu").log_likelihood(pictures(1), CAPTIONS[:1]).total
    np.testing.assert_array_equal(found, same)


def test_a_network_that_draws_is_refused(folders, monkeypatch):
    def noisy(*args, **options):
        network, missing = read_network(*args, **options)
        network.lm_head.register_forward_hook(lambda *given: given[2] + torch.rand(()))
        network.model.register_forward_pre_hook(lambda module, _: module.train() and None)
        network.config.text_config.attention_dropout = 0.5
        for module in network.modules():
            module.attention_dropout = 0.5
        return network, missing

    monkeypatch.setattr("biaslib.models.generative.read_network", noisy)
    with pytest.raises(CheckpointError, match="differently"):
        models.load(folders["llava"], device="cpu")


@pytest.mark.parametrize(
    ("given", "word"),
    [({"judge": "Does it fit?"}, "{caption}"), ({"choose": "Which fits?"}, "{options}")],
)
def test_a_prompt_without_place_for_captions_is_refused(given, word):
    with pytest.raises(InputError) as caught:
        Prompts(**given)
    assert caught.value.word == word


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


@pytest.mark.parametrize("saved", ["before 4.47", "without a class token", "another strategy"])
def test_a_processor_keeps_the_places_that_the_network_fills(saved, folders, tmp_path):
    """huggingface/transformers, issues 30962 and 41206: ``config.json`` has what is missing."""
    folder = Path(shutil.copytree(folders["llava"], tmp_path / "llava"))
    settings = json.loads((folder / "processor_config.json").read_text())
    lost = ("patch_size", "vision_feature_select_strategy", "num_additional_image_tokens")
    if saved == "another strategy":
        settings["vision_feature_select_strategy"] = "full"
    for name in () if saved == "another strategy" else lost[2 * (saved != "before 4.47") :]:
        del settings[name]
    (folder / "processor_config.json").write_text(json.dumps(settings))
    image, captions = np.zeros((1, 40, 50, 3), np.uint8), [["the woman is a nurse", "a man"]]
    whole, found = (models.load(each, device="cpu") for each in (folders["llava"], folder))
    expected = whole.log_likelihood(image, captions).total
    np.testing.assert_allclose(found.log_likelihood(image, captions).total, expected, atol=1e-5)
