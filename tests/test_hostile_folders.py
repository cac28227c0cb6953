"""Whatever a folder holds: it is refused as one kind of error that names it, or gives its numbers.

A row is a change to a tiny folder and what must follow. Nothing may hang: what runs on without end
is ended here by a limit of the processor's time, which a busy machine does not use up.
"""

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support import generative_models

from biaslib import __main__ as command_line
from biaslib import models
from biaslib.checkpoints import _trial
from biaslib.errors import CheckpointError
from plantedworld.models.checkpoints import checkpoint

resource = pytest.importorskip("resource", reason="only Unix has pipes and limits of a process")
pytestmark = pytest.mark.filterwarnings("ignore")
PICTURES = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), dtype=np.uint8)
TEXTS = ["a man", "the woman is carrying a purse"]
ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
PROMPT = "{% for m in messages %}{% for c in m['content'] %}{{ c['text'] }}{% endfor %}{% endfor %}"


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """Folders by name, and what their models give."""
    folders = {name: checkpoint(name, 3, 0) for name in ("bert", "clip")}
    folders["llava"] = generative_models.llava(tmp_path_factory.mktemp("llava"))
    return {name: (folder, answer(folder)) for name, folder in folders.items()}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(_trial, "OF_TEMPLATE", 2)
    monkeypatch.setattr(_trial, "OF_TOKENIZER", 2)


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


def added_tokens(count):
    def change(folder):
        path = folder / "tokenizer.json"
        whole = json.loads(path.read_text())
        keys = ("single_word", "lstrip", "rstrip", "normalized", "special")
        more = [
            {"id": 10**6 + at, "content": f"t{at}", **dict.fromkeys(keys, False)}
            for at in range(count)
        ]
        path.write_text(json.dumps(whole | {"added_tokens": whole["added_tokens"] + more}))

    return change


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


def header(content, length=None):
    return written("model.safetensors", struct.pack("<Q", length or len(content)) + content)


def template(text):
    return written("chat_template.jinja", text)


def replacing(pattern, content, times=1):
    step = {"type": "Replace", "pattern": pattern, "content": content}
    return tokenizer(normalizer={"type": "Sequence", "normalizers": [step] * times})


def opened(**vision):
    text = {"layers": 1, "width": 16, "heads": 2, "vocab_size": 99, "context_length": 9}
    whole = {"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}
    return written("open_clip_config.json", json.dumps({"model_cfg": whole}))


def ending(*ids):
    """End texts with other tokens."""
    end = {"id": "end", "ids": ids, "tokens": ["end"] * len(ids)}
    parts = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "end", "type_id": 0}}]
    whole = {"type": "TemplateProcessing", "single": parts, "pair": parts}
    return tokenizer(post_processor=whole | {"special_tokens": {"end": end}})


def all_zero(folder):
    state = load_file(folder / "model.safetensors")
    state = {name: torch.zeros_like(each) for name, each in state.items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})


CONFIG, PICTURE, WORDS = "config.json", "preprocessor_config.json", "tokenizer_config.json"
BEFORE_2023 = settings(CONFIG, text_config__eos_token_id=2)
REFUSED = {
    # What is no configuration
    **{
        f"config {text!r:.20}": ("clip", written(CONFIG, text))
        for text in (
            "[]",
            '"clip"',
            "null",
            "",
            "5",
            '{"a":' * 9999,
            b"\xff\xfe{}",
            '{"model_type": "\\ud800"}',
        )
    },
    "config is a folder": ("clip", replaced(CONFIG, os.mkdir)),
    "config is a pipe": ("clip", replaced(CONFIG, os.mkfifo)),
    "config is a device": ("clip", replaced(CONFIG, lambda path: path.symlink_to("/dev/zero"))),
    "config links to itself": ("clip", replaced(CONFIG, lambda path: path.symlink_to(path.name))),
    "config of a terabyte": ("clip", lambda folder: os.truncate(folder / CONFIG, 2**40)),
    "tokenizer is a pipe": ("clip", replaced("tokenizer.json", os.mkfifo)),
    "template is a pipe": ("llava", replaced("chat_template.jinja", os.mkfifo)),
    "unread settings are a pipe": ("llava", replaced("generation_config.json", os.mkfifo)),
    # Kinds and sizes
    **{
        f"config {changes!r:.60}": ("clip", settings(CONFIG, **changes))
        for changes in (
            {"model_type": ["clip"]},
            {"model_type": 7},
            {"model_type": None},
            {"model_type": "zzz", "architectures": "CLIPModel"},
            {"model_type": "zzz", "architectures": [1, 2]},
            {"projection_dim": 10**20},
            {"projection_dim": None},
            {"num_labels": 10**9},
            {"text_config": [1]},
            {"vision_config": "x"},
            {"return_dict": False},
            {"transformers_weights": "/etc/passwd"},
            {"quantization_config": {"quant_method": "quanto"}},
            {"text_config__hidden_size": "big"},
            {"text_config__hidden_size": 0},
            {"text_config__hidden_size": -48},
            {"text_config__hidden_size": None},
            {"text_config__hidden_size": 10**9},
            {"text_config__num_attention_heads": 0},
            {"text_config__num_attention_heads": 7},
            {"text_config__num_hidden_layers": 10**6},
            {"text_config__layer_norm_eps": float("nan")},
            {"text_config__layer_norm_eps": "x"},
            {"vision_config__patch_size": 0},
            {"vision_config__image_size": 10**6},
        )
    },
    "layers of OpenCLIP": ("clip", opened(layers=10**6, width=16, image_size=32, patch_size=16)),
    "width of OpenCLIP": ("clip", opened(layers=9, width=40_000, image_size=32, patch_size=16)),
    "image token is text": ("llava", settings(CONFIG, image_token_index="x", image_token_id="x")),
    **{
        f"pictures {changes!r:.60}": ("clip", settings(PICTURE, **changes))
        for changes in (
            {"size": "big"},
            {"size": {"shortest_edge": 10**9}},
            {"size": {"shortest_edge": -5}},
            {"image_mean": "x"},
            {"image_mean": [float("nan")] * 3},
            {"image_std": [0, 0, 0]},
            {"image_std": [1e-300] * 3},
            {"image_mean": [float("inf")] * 3},
            {"resample": 99},
            {"rescale_factor": "x"},
            {"rescale_factor": 0},
        )
    },
    **{
        f"processor {changes!r}": ("llava", settings("processor_config.json", **changes))
        for changes in (
            {"patch_size": 0},
            {"patch_size": None},
            {"num_additional_image_tokens": 10**9},
        )
    },
    # Chat templates
    **{
        f"template {text!r:.50}": ("llava", template(text))
        for text in (
            ENDLESS,
            "{{ bos_token + '' }}" + ENDLESS,
            "{% generation %}" + ENDLESS + "{% endgeneration %}",
            "{% if messages[0]['content']|length == 1 %}" + ENDLESS + "{% endif %}" + PROMPT,
            "{{ (10**10)**(10**8) }}",
            "{{ 'a' * 10**11 }}",
            "{{ 'a'.center(10**10) }}",
            "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}"
            "{% endfor %}",
            "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
            "a" * 10**6,
            "{% for %}",
            "{{ raise_exception('no') }}",
            "{% import '/etc/passwd' as x %}{{ x }}",
            "{{ ''.__class__.__mro__[1].__subclasses__() }}",
            "<image> the prompt is lost",
            b"\xff\xfe",
            "{{ cycler.__init__.__globals__.os.mkdir('code-ran') }}" + PROMPT,
        )
    },
    # Tokenizers
    "many added tokens": ("clip", added_tokens(200_000)),
    "many special tokens": (
        "clip",
        settings(WORDS, extra_special_tokens=[f"t{n}" for n in range(99_999)]),
    ),
    "replaced by more": ("clip", replacing({"String": "a"}, "aaaaaaaaaa", 9)),
    "nothing replaced": ("clip", replacing({"Regex": ""}, "aaaa", 12)),
    "a panic": (
        "clip",
        tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
    ),
    "no version": ("clip", tokenizer(version="9.9")),
    "pickled": ("clip", written("tokenizer.json", pickle.dumps(Code()))),
    "empty": ("clip", written("tokenizer.json", "")),
    "longest text in words": ("clip", settings(WORDS, model_max_length="many")),
    "no end": ("clip", tokenizer(post_processor=None)),
    "another end": ("clip", ending(3)),
    "two ends": ("clip", ending(935, 935)),
    "a token that is none": ("bert", ending(99_999)),
    "longest text in words, BERT": ("bert", settings(WORDS, model_max_length="many")),
    "settings of words are a list": ("clip", written(WORDS, "[1]")),
    # Weights
    **{
        f"weights {value}": ("clip", weights(lambda old, value=value: torch.full_like(old, value)))
        for value in (float("nan"), float("inf"), 0.0)
    },
    **{
        f"weights of {kind}": ("clip", weights(lambda old, kind=kind: (old * 9).to(kind)))
        for kind in (torch.int8, torch.uint8, torch.int64, torch.bool, torch.complex64)
    },
    "one matrix of whole numbers": (
        "bert",
        weights(torch.Tensor.char, "bert.encoder.layer.0.output.dense.weight"),
    ),
    "all weights 0": ("bert", all_zero),
    **{
        f"epsilon {value}": ("bert", settings(CONFIG, layer_norm_eps=value))
        for value in (float("inf"), -1.0, -1e-1)
    },
    "other shape": ("clip", weights(lambda old: old[:5].clone())),
    "header of 2**63 bytes": ("clip", header(b"{}", 2**63)),
    "shape that overflows": (
        "clip",
        header(
            b'{"logit_scale":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}'
        ),
    ),
    "code as weights": ("clip", pickled("pytorch_model.bin")),
    "code as index": ("clip", pickled("pytorch_model.bin.index.json")),
    "weights are a folder": ("clip", replaced("model.safetensors", os.mkdir)),
    "no file": ("clip", lambda folder: [path.unlink() for path in folder.iterdir()]),
}
READ = {
    "code named": ("clip", settings(CONFIG, auto_map={"AutoModel": "evil.Evil"})),
    "another place named": ("clip", settings(CONFIG, _name_or_path="owner/name", revision="x")),
    "code beside": ("clip", written("pytorch_model.bin", pickle.dumps(Code()))),
    "cut off": ("clip", tokenizer(truncation={
        "direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0})),
    "padded to 10**9": ("clip", tokenizer(padding={
        "strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
        "pad_type_id": 0, "pad_token": "[PAD]"})),
    "padded in front": ("clip", settings(WORDS, padding_side="left")),
    "padded in front, BERT": ("bert", settings(WORDS, padding_side="left")),
    "an end of before 2023": ("clip", BEFORE_2023),
    "a file of macOS": ("clip", written("._tokenizer.json", b"\0\5\x16\7")),
    "another file of macOS": ("bert", written("._config.json", b"\0\5\x16\7")),
    "a folder in itself": ("clip", lambda folder: (folder / "self").symlink_to(folder)),
    "the template without its tag": ("llava", template(
        "{% generation %}" + generative_models.LLAVA + "{% endgeneration %}")),
}  # fmt: skip


@pytest.fixture
def changed(request, unchanged, tmp_path, monkeypatch):
    base, change = request.param
    folder, expected = unchanged[base]
    folder = shutil.copytree(folder, tmp_path / "mine")
    change(folder)
    monkeypatch.chdir(tmp_path)
    yield folder, expected
    assert not (tmp_path / "code-ran").exists()


@pytest.mark.parametrize("changed", REFUSED.values(), ids=REFUSED, indirect=True)
def test_one_error_names_the_folder(changed):
    folder, _ = changed
    begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with pytest.raises(CheckpointError) as caught:
        models.load(folder, device="cpu")
    assert caught.value.path.is_relative_to(folder)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun < 10


@pytest.mark.parametrize("changed", READ.values(), ids=READ, indirect=True)
def test_what_changes_no_number_is_read_as_before(changed):
    folder, expected = changed
    np.testing.assert_allclose(answer(folder), expected, atol=1e-6)


def test_the_highest_token_of_before_2023_that_ends_no_text_is_told(unchanged, tmp_path):
    """transformers reads such texts off at whichever token has the highest number, and so do we."""
    folder = shutil.copytree(unchanged["clip"][0], tmp_path / "mine")
    ending(3)(folder)
    BEFORE_2023(folder)
    with pytest.warns(UserWarning, match="does not end texts with token"):
        models.load(folder, device="cpu")


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


def raising(error):
    def raised(*args, **options):
        raise error

    return raised


def command(*arguments, before=""):
    code = f"{before}\nimport sys; from biaslib.__main__ import main; sys.exit(main({arguments!r}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert "Traceback" not in found.stderr
    return found.returncode, found.stderr.strip().splitlines()


def test_little_memory_is_told_in_one_line(tmp_path):
    """The libraries are there before memory is short: what fails then is the audit."""
    before = """
import resource, biaslib.audit, torch, transformers
biaslib.audit.cost("bert", "planted", "cpu", "planted")
there = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (there + 2**20,) * 2)
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("the system does not limit a process's memory")
    status, told = command("audit", "bert", "--out", str(tmp_path / "out"), before=before)
    assert status == 1
    assert told[-1].partition(":")[0].endswith("Error")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--device", "cpu:9"), "cpu:9"),
        (("--out", ""), "--out"),
        (("--data", "closed"), "closed/labels.csv"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_that_names_it(tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    before = """
import pathlib
opening = pathlib.Path.open
def refusing(path, *rest, **more):
    if path.name == "labels.csv":
        raise PermissionError(13, "Permission denied", str(path))
    return opening(path, *rest, **more)
pathlib.Path.open = refusing
"""
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "labels.csv").write_text("file,person,gender\n")
    status, told = command("audit", "bert", *arguments, before=before)
    assert status == 1
    assert len(told) == 1
    assert named in told[0]
