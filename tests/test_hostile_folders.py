"""What is promised of strangers' folders (.github/SECURITY.md): a test for each promise.

A row is a change to a tiny folder and what must follow: one error that names it, or its numbers.
"""

import json
import os
import pickle
import shutil
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support import generative_models, repositories

from biaslib import __main__ as command_line
from biaslib import models
from biaslib.checkpoints import weights as reading_weights
from biaslib.errors import CheckpointError, InputError
from plantedworld.models.checkpoints import checkpoint

pytestmark = pytest.mark.filterwarnings("ignore")
PICTURES = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), dtype=np.uint8)
TEXTS = ["a man", "the woman is carrying a purse"]
PROMPT = "{% for m in messages %}{% for c in m['content'] %}{{ c['text'] }}{% endfor %}{% endfor %}"


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """Folders by name, and what their models give."""
    folders = {name: checkpoint(name, 3, 0) for name in ("bert", "clip")}
    folders["llava"] = generative_models.llava(tmp_path_factory.mktemp("llava"))
    return {name: (folder, answer(folder)) for name, folder in folders.items()}


def answer(folder):
    model = models.load(folder, device="cpu")
    if hasattr(model, "encode_image"):
        return np.concatenate([model.encode_image(PICTURES), model.encode_text(TEXTS)])
    if hasattr(model, "embed"):
        return model.embed(TEXTS)
    return model.match(PICTURES, [["a woman", "a man"]] * 2)


def settings(file, **changes):
    """Change settings; two underscores lead into a part."""

    def change(folder):
        path = folder / file
        whole = json.loads(path.read_text()) if path.is_file() else {}
        for name, value in changes.items():
            *parts, last = name.split("__")
            found = whole
            for part in parts:
                found = found.setdefault(part, {})
            found[last] = value
        path.write_text(json.dumps(whole))

    return change


def written(file, content):
    content = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / file).write_bytes(content)


def replaced(file, make):
    def change(folder):
        (folder / file).unlink(missing_ok=True)
        make(folder / file)

    return change


def tokenizer(**changes):
    return settings("tokenizer.json", **changes)


def replacing(pattern):
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""}


def weights(make, name="visual_projection.weight"):
    def change(folder):
        state = load_file(folder / "model.safetensors")
        state |= {name: make(state[name])}
        save_file(state, folder / "model.safetensors", {"format": "pt"})

    return change


class Code:
    def __reduce__(self):
        return os.mkdir, ("code-ran",)


def pickled(file):
    def change(folder):
        (folder / "model.safetensors").unlink()
        (folder / file).write_bytes(pickle.dumps({"a": Code()}))

    return change


def saved(make):
    """Have torch save what is made of the weights, in place of them."""

    def change(folder):
        state = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        torch.save(make(state), folder / "pytorch_model.bin")

    return change


def indexed(name, make=None):
    """Have an index list a file of weights, in place of them."""

    def change(folder):
        if make is not None:
            make(folder / name)
        (folder / "model.safetensors").unlink()
        names = json.dumps({"weight_map": {"a": name}})
        (folder / "model.safetensors.index.json").write_text(names)

    return change


def renamed(name):
    return lambda folder: (folder / "model.safetensors").rename(folder / name)


def template(text):
    return written("chat_template.jinja", text)


def ending(*ids):
    """End texts with other tokens."""
    end = {"id": "end", "ids": ids, "tokens": ["end"] * len(ids)}
    parts = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "end", "type_id": 0}}]
    whole = {"type": "TemplateProcessing", "single": parts, "pair": parts}
    return tokenizer(post_processor=whole | {"special_tokens": {"end": end}})


def rows_added(folder):
    """Have a row for two tokens more than the configuration says."""
    weights(lambda old: torch.cat([old, old[:2]]), WORD_TABLE)(folder)


def weights_outside(folder):
    shutil.copy(folder / "model.safetensors", folder.parent / "outside.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(folder.parent / "outside.safetensors")


WEIGHTS = "model.safetensors or pytorch_model.bin"
CONFIG, PICTURE, WORDS = "config.json", "preprocessor_config.json", "tokenizer_config.json"
WORD_TABLE = "text_model.embeddings.token_embedding.weight"
POINTER = "version https://git-lfs.github.com/spec/v1\n"
HEADER = b'{"logit_scale":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}'
BEFORE_2023 = settings(CONFIG, text_config__eos_token_id=2)
REFUSED = {
    # No code of theirs runs
    "code that torch saved": ("clip", saved(lambda _: {"a": Code()}), "posix.mkdir"),
    "a program of torch": (
        "clip",
        replaced(
            "pytorch_model.bin",
            lambda path: (
                torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path),
                (path.parent / "model.safetensors").unlink(),
            ),
        ),
        None,
    ),
    "code as index": ("clip", pickled("pytorch_model.bin.index.json"), None),
    "code in a template": (
        "llava",
        template("{{ cycler.__init__.__globals__.os.mkdir('code-ran') }}" + PROMPT),
        None,
    ),
    # Nothing outside their folder is read
    "weights named elsewhere": ("clip", settings(CONFIG, transformers_weights="/etc/passwd"), None),
    "weights that are a link": ("clip", weights_outside, None),
    "a template that imports": ("llava", template("{% import '/etc/passwd' as x %}{{ x }}"), None),
    # The network is as large as its weights, or no memory is taken
    "a vocabulary of 33 million": ("bert", settings(CONFIG, vocab_size=33_000_000), None),
    "patches of 4,096 pixels": (
        "clip",
        settings(CONFIG, vision_config__patch_size=4096, vision_config__image_size=4096),
        None,
    ),
    "tokens added and not said": ("clip", rows_added, WORD_TABLE),
    "other shape": ("clip", weights(lambda old: old[:5].clone()), "visual_projection.weight"),
    # Nothing is wrong in silence
    "weights that are no numbers": (
        "clip",
        weights(lambda old: torch.full_like(old, torch.nan)),
        "visual_projection.weight",
    ),
    "weights of 0": ("clip", weights(torch.zeros_like), None),
    "weights of whole numbers": ("clip", weights(torch.Tensor.char), "visual_projection.weight"),
    "pickled whole numbers": (
        "clip",
        saved(lambda state: {name: each.char() for name, each in state.items()}),
        "text_model.embeddings.position_embedding.weight",
    ),
    "a sentence encoder's pooling without its list": (
        "bert",
        lambda folder: (folder / "1_Pooling").mkdir(),
        None,
    ),
    "a sentence encoder's settings without its list": (
        "bert",
        written("config_sentence_transformers.json", "{}"),
        None,
    ),
    "a sentence encoder's length without its list": (
        "clip",
        written("sentence_bert_config.json", "{}"),
        None,
    ),
    "a sentence encoder of 2020": (
        "bert",
        lambda folder: (
            (folder / "modules.json").write_text("[]"),
            (folder / "0_Transformer").mkdir(),
            (folder / CONFIG).rename(folder / "0_Transformer" / CONFIG),
        ),
        None,
    ),
    "no number as epsilon": ("bert", settings(CONFIG, layer_norm_eps=float("nan")), None),
    "no number as mean": ("clip", settings(PICTURE, image_mean=[float("nan")] * 3), None),
    "no spread": ("clip", settings(PICTURE, image_std=[0, 0, 0]), None),
    "no end of texts": ("clip", tokenizer(post_processor=None), None),
    "another end of texts": ("clip", ending(3), None),
    "a token that is none": ("bert", ending(99_999), None),
    "the prompt is lost": ("llava", template("<image> the prompt is lost"), None),
    "an adapter": ("clip", written("adapter_config.json", "{}"), None),
    "an adapter's weights": ("clip", written("my_lora.safetensors", ""), None),
    "quantised weights": ("clip", settings(CONFIG, quantization_config={"bits": 4}), None),
    "a quantised part": ("clip", settings(CONFIG, text_config__compression_config={"a": 1}), None),
    "a file of quantised weights": ("clip", written("quantize_config.json", "{}"), None),
    "no tokenizer": ("clip", lambda folder: (folder / "tokenizer.json").unlink(), None),
    "a pointer as weights": ("clip", written("model.safetensors", POINTER), None),
    "a pointer as tokenizer": ("bert", written("tokenizer.json", POINTER), None),
    # What is wrong is one error
    "no settings": ("clip", written(CONFIG, "[]"), None),
    "a pipe": ("clip", replaced(CONFIG, os.mkfifo), None),
    "a link to itself": ("clip", replaced(CONFIG, lambda path: path.symlink_to(path.name)), None),
    "kinds that are a list": ("clip", settings(CONFIG, model_type=["clip"]), None),
    "a width of 0": ("clip", settings(CONFIG, text_config__hidden_size=0), None),
    "a panic in Rust": (
        "clip",
        tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        None,
    ),
    "a panic at a study's caption": (
        "clip",
        tokenizer(normalizer=replacing("(?:(?:p|p)+)+\\d photo|photo(.*)*(.*)*(.*)*(.*)*(.*)*Q")),
        None,
    ),
    "an end of before 2023 that is not the highest token": (
        "clip",
        lambda folder: (ending(3)(folder), BEFORE_2023(folder)),
        None,
    ),
    "a shape that overflows": (
        "clip",
        written("model.safetensors", struct.pack("<Q", len(HEADER)) + HEADER),
        None,
    ),
    "a pipe as a shard": ("clip", indexed("a.safetensors", os.mkfifo), "a.safetensors"),
    "a null character in an index": ("clip", indexed("a\0b"), "a\0b"),
    "5,000 letters in an index": ("clip", indexed("a" * 5000), "a" * 5000),
    "a list that is no table": ("clip", saved(lambda state: [*state.values()]), None),
    "weights of a training run": ("clip", renamed("epoch_3.pt"), WEIGHTS),
    "weights of another program": ("clip", renamed("model.onnx"), WEIGHTS),
    "weights that link to themselves": (
        "clip",
        replaced("model.safetensors", lambda path: path.symlink_to(path.name)),
        None,
    ),
    "no file": ("clip", lambda folder: [path.unlink() for path in folder.iterdir()], None),
}
READ = {
    "code named": ("clip", settings(CONFIG, auto_map={"AutoModel": "evil.Evil"}), None),
    "another place named": (
        "clip", settings(CONFIG, _name_or_path="owner/name", revision="x"), None),
    "code beside": ("clip", written("pytorch_model.bin", pickle.dumps(Code())), None),
    "cut off": ("clip", tokenizer(truncation={
        "direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}), None),
    # It draws in inference, too: huggingface/tokenizers 644.
    "merges dropped at random": ("llava", tokenizer(model__dropout=0.5), None),
    "padded in front": ("clip", settings(WORDS, padding_side="left"), None),
    "padded in front, BERT": ("bert", settings(WORDS, padding_side="left"), None),
    "an end of before 2023": ("clip", BEFORE_2023, None),
    "a file of macOS": ("clip", written("._tokenizer.json", b"\0\5\x16\7"), None),
    "a pointer that nothing reads": ("bert", written("tf_model.h5", POINTER), None),
    "a folder in itself": ("clip", lambda folder: (folder / "self").symlink_to(folder), None),
    "the template without its tag": ("llava", template(
        "{% generation %}" + generative_models.LLAVA + "{% endgeneration %}"), None),
}  # fmt: skip


@pytest.fixture
def changed(request, unchanged, tmp_path, monkeypatch):
    base, change, word = request.param
    folder, expected = unchanged[base]
    folder = shutil.copytree(folder, tmp_path / "mine")
    change(folder)
    monkeypatch.chdir(tmp_path)
    yield folder, expected, word
    assert not (tmp_path / "code-ran").exists()


@pytest.mark.parametrize("changed", REFUSED.values(), ids=REFUSED, indirect=True)
def test_one_error_names_the_folder(changed):
    folder, _, word = changed
    with pytest.raises(CheckpointError) as caught:
        models.load(folder, device="cpu")
    assert caught.value.path.is_relative_to(folder)
    assert str(folder) in str(caught.value)
    assert "`False`" not in str(caught.value)  # PyTorch's advice is to set weights_only so
    assert word in (None, caught.value.word)


@pytest.mark.filterwarnings("ignore:.* at random .*:UserWarning")
@pytest.mark.parametrize("changed", READ.values(), ids=READ, indirect=True)
def test_what_changes_no_number_is_read_as_before(changed):
    folder, expected, _ = changed
    np.testing.assert_allclose(answer(folder), expected, atol=1e-6)


@pytest.mark.parametrize("place", ["snapshots/" + "a" * 40, "checkpoint-500", "final"])
def test_the_folder_below_that_holds_a_model_is_named(unchanged, tmp_path, place):
    """The hub's own cache, what a training run saved, a folder in a folder."""
    shutil.copytree(unchanged["clip"][0], tmp_path / "models--a--b" / place)
    with pytest.raises(CheckpointError) as caught:
        models.load(tmp_path / "models--a--b", device="cpu")
    assert f" {place} " in str(caught.value)
    np.testing.assert_array_equal(answer(tmp_path / "models--a--b" / place), unchanged["clip"][1])


def test_weights_as_openclip_trains_them_are_read_under_the_name_in_the_error(tmp_path):
    repositories._open_clip(tmp_path)
    for name in set(os.listdir(tmp_path)) - {
        "open_clip_config.json",
        "open_clip_pytorch_model.bin",
    }:
        (tmp_path / name).unlink()
    expected, path = answer(tmp_path), tmp_path / "open_clip_pytorch_model.bin"
    state = {f"module.{name}": each for name, each in torch.load(path).items()}
    path.unlink()
    for epoch in (9, 10):
        path = tmp_path / f"epoch_{epoch}.pt"
        torch.save({"epoch": epoch, "state_dict": state, "optimizer": {}}, path)
    with pytest.raises(CheckpointError) as caught:
        models.load(tmp_path, device="cpu")
    assert "epoch_10.pt" in str(caught.value)
    path.rename(tmp_path / caught.value.word)
    np.testing.assert_allclose(answer(tmp_path), expected, atol=1e-6)
    settings("open_clip_config.json", model_cfg__text_cfg__vocab_size=33_000_000)(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        models.load(tmp_path, device="cpu")
    assert caught.value.path == tmp_path / "open_clip_config.json"


def test_two_words_with_one_vector_are_refused(unchanged, tmp_path):
    folder = shutil.copytree(unchanged["clip"][0], tmp_path / "mine")
    tokenizer(normalizer=replacing("wo(?=man)"))(folder)
    model = models.load(folder, device="cpu")
    with pytest.raises(InputError) as caught:
        model.encode_text(["a man", "a man.", "a woman"])
    assert (caught.value.row, caught.value.word) == (2, "a woman")


@pytest.mark.parametrize("name", ["a\nTraceback: b", "a\x1b[2Jb", "a\rb", "a\u202eb"])
def test_no_name_ends_a_line_or_moves_the_cursor(name, tmp_path, capsys):
    folder = tmp_path / name
    folder.mkdir()
    (folder / CONFIG).write_text("{}")
    with pytest.raises(CheckpointError) as caught:
        models.load(folder, device="cpu")
    assert str(caught.value).isprintable()
    assert command_line.main(["audit", str(folder), "--dry-run", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.rstrip("\n").isprintable()


def test_what_is_the_callers_fault_or_the_cards_is_none_of_the_folder(unchanged, monkeypatch):
    folder, _ = unchanged["llava"]
    with pytest.raises(TypeError):
        models.load("smolvlm", checkpoint=folder, device="cpu", colour="red")
    with pytest.raises(KeyError):
        models.load("smolvlm", checkpoint=folder, device="cpu", score="bad")
    for error in (torch.cuda.OutOfMemoryError("CUDA out of memory"), KeyboardInterrupt()):
        monkeypatch.setattr("biaslib.models.generative.read_network", raising(error))
        with pytest.raises(type(error)):
            models.load("smolvlm", checkpoint=folder, device="cpu")


def test_a_file_that_may_not_be_opened_is_named(unchanged, monkeypatch):
    path = unchanged["bert"][0] / "tokenizer.json"
    refused = PermissionError(13, "Permission denied", str(path))
    monkeypatch.setattr("biaslib.checkpoints.folders.require_no_pointer", raising(refused))
    with pytest.raises(CheckpointError) as caught:
        models.load(path.parent, device="cpu")
    assert caught.value.path == path
    assert "download" not in str(caught.value)


def raising(error):
    def raised(*args, **options):
        raise error

    return raised


def test_gigabytes_are_told_before_they_are_read(unchanged, monkeypatch):
    monkeypatch.setattr(reading_weights, "MUCH", 1000)
    monkeypatch.setattr("biaslib.models.text.read_network", raising(MemoryError()))
    with pytest.warns(RuntimeWarning, match="GB"), pytest.raises(CheckpointError):
        models.load("roberta", checkpoint=unchanged["bert"][0], device="cpu")
