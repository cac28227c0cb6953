"""Every model that comes from the hub: downloaded, verified, cached and loaded, without a network.

The repositories are tiny ones of random weights in the official formats, so that the path is
tested and not the official files, of which none was at hand.
"""

import importlib.util
import json
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
import transformers
from support import repositories
from support.hub import instead_of_the_real_one, serving

from biaslib import models
from biaslib.models import _registry, downloads
from biaslib.models import capabilities as can
from biaslib.models._checkpoints import CheckpointError
from biaslib.models.networks.albef import AlbefNetwork
from biaslib.models.networks.vilbert import VilbertNetwork
from biaslib.models.networks.vl_bert import VlBertNetwork
from biaslib.runtime import Lock, UnknownNameError, file_sha256

pytestmark = pytest.mark.filterwarnings("ignore:.* was trained on features of:UserWarning")

MODELS = [
    name
    for name in repositories.BUILDERS
    if importlib.util.find_spec(f"biaslib.models.{models.REGISTRY[name].family}")
]
TEXTS = [repositories.SENTENCE, "the woman is here"]


def those_that(*can_do):
    """The models with at least one of some capabilities."""
    return [name for name in MODELS if {*can_do} & {*models.REGISTRY[name].capabilities}]


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    folder = tmp_path_factory.mktemp("official")
    repositories.build_all(folder)
    return folder


@pytest.fixture(scope="module")
def hub(official, tmp_path_factory):
    with instead_of_the_real_one(official, tmp_path_factory.mktemp("scratch")) as running:
        yield running


def images_for(name, n=2):
    """Return n images of the kind that a model takes: files but for one."""
    if name != "visualbert-nlvr2":
        return [repositories.picture(seed) for seed in range(n)]
    from biaslib.models.regions import RegionFeatures

    width = 1024
    random = np.random.default_rng(0)
    boxes = np.tile([0.1, 0.1, 0.9, 0.8], (n, 3, 1))
    there = np.ones((n, 3), dtype=bool)
    features = random.normal(size=(n, 3, width))
    return RegionFeatures(features, boxes, there, ~there, np.full((n, 2), 64))


def test_a_repository_or_a_file_is_built_for_every_model_that_is_in_no_package():
    elsewhere = {
        name
        for name, entry in models.REGISTRY.items()
        if entry.source.startswith(("hub ", "url ", "by hand "))
    }
    assert set(repositories.BUILDERS) == elsewhere


@pytest.mark.parametrize("name", MODELS)
def test_paper_downloads_verifies_caches_and_loads(hub, official, name):
    entry = models.REGISTRY[name]
    model = models.load(name, profile="paper", device="cpu")
    recorded = Lock().entries()[entry.source]
    served = repositories.place(entry.source, official)
    weights = max(recorded["files"], key=lambda file: recorded["files"][file]["bytes"])
    checksum = file_sha256(served / weights)
    assert recorded["files"][weights]["sha256"] == checksum
    assert checksum[:12] in model.revision
    if entry.source.startswith("hub "):
        commit = entry.revision or hub.commit(entry.source.removeprefix("hub "))
        assert recorded["revision"] == commit
    asked = len(hub.requests)
    models.load(name, profile="paper", device="cpu")
    assert len(hub.requests) == asked


@pytest.mark.parametrize("name", those_that(can.ENCODE))
def test_dual_encoders_encode(hub, name):
    model = models.load(name, profile="paper", device="cpu")
    vectors = model.encode_text(TEXTS), model.encode_image(_stack(images_for(name)))
    for each in vectors:
        assert each.shape == (2, 8 if name != "siglip" else 16)
        np.testing.assert_allclose(np.linalg.norm(each, axis=1), 1, atol=1e-5)
        assert np.abs(each[0] - each[1]).max() > 1e-5


def _stack(pictures):
    return np.stack([np.asarray(picture) for picture in pictures])


@pytest.mark.parametrize("name", those_that(can.EMBED, can.EMBED_WITH_IMAGES))
def test_encoders_embed(hub, name):
    model = models.load(name, profile="paper", device="cpu")
    seen = {"images": images_for(name)} if models.REGISTRY[name].takes_images else {}
    for level, words in (("sentence", None), ("contextual", ["nurse", "woman"])):
        vectors = model.embed(TEXTS, level=level, words=words, **seen)
        assert vectors.shape == (2, 64 if name in WRITTEN_HERE else 16)
        assert np.abs(vectors[0] - vectors[1]).max() > 1e-5


@pytest.mark.parametrize(
    "name", [name for name in those_that(can.FILL, can.FILL_WITH_IMAGES) if name != "smolvlm"]
)
def test_masked_words_have_probabilities(hub, name):
    model = models.load(name, profile="paper", device="cpu")
    seen = None if models.REGISTRY[name].family == "bert" else images_for(name, n=1)
    scores = model.mask_log_prob(["the [MASK] is here"], ["nurse", "man"], images=seen)
    assert scores.shape == (1, 2)
    assert (scores < 0).all()
    assert (scores > np.log(1e-6)).all()


@pytest.mark.parametrize("name", those_that(can.MATCH))
def test_captions_match(hub, name):
    model = models.load(name, profile="paper", device="cpu")
    scores = model.match(images_for(name, n=1), [TEXTS])
    assert scores.shape == (1, 2)
    assert np.isfinite(scores).all()


def test_a_checkpoint_named_by_repository_and_revision(hub):
    commit = "0123456789" * 4
    name = f"FacebookAI/roberta-base@{commit}"
    Lock().path.unlink(missing_ok=True)
    encoder = models.load("roberta", profile="paper", checkpoint=name, device="cpu")
    assert commit in encoder.revision
    Lock().path.unlink()


def test_a_model_of_openclip_is_found_by_its_name_and_training_data():
    entry = models.REGISTRY["open-clip"]
    found = _registry.repository(entry, "ViT-H-14/laion2b_s32b_b79k")
    assert f"hub {found}" == entry.source
    with pytest.raises(UnknownNameError, match="Did you mean 'laion2b_s34b_b79k'"):
        _registry.repository(entry, "ViT-B-32/laion2b_s34b")


def test_a_checkpoint_of_another_architecture_is_refused_before_it_is_loaded(hub, official):
    for name, other in (("bert", "clip"), ("clip", "bert"), ("roberta", "lxmert")):
        folder = official / models.REGISTRY[other].source.removeprefix("hub ")
        kind = json.loads((folder / "config.json").read_text())["model_type"]
        with pytest.raises(
            CheckpointError, match=f"is a checkpoint of '{kind}' .* and '{name}' is"
        ):
            models.load(name, checkpoint=folder)
    with pytest.raises(CheckpointError, match=r"'clip' without an open_clip_config.json"):
        models.load("open-clip", checkpoint=official / "openai" / "clip-vit-base-patch32")


def test_pickled_weights_and_an_old_torch(hub, official, monkeypatch):
    folder = official / "openai" / "clip-vit-base-patch32"
    monkeypatch.setattr("biaslib.models._checkpoints.torch.__version__", "2.5.0")
    with pytest.raises(CheckpointError, match=r"pytorch_model.bin is a pickled file.*torch 2.6"):
        models.load("clip", checkpoint=folder)


class Intruder:
    def __reduce__(self):
        return (print, ("code in a checkpoint was run",))


@pytest.fixture
def broken_clip(official, tmp_path):
    """CLIP's folder, for a test to spoil."""
    return shutil.copytree(official / "openai" / "clip-vit-base-patch32", tmp_path / "clip")


def test_code_in_a_checkpoint_is_not_run(broken_clip, capfd):
    (broken_clip / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Intruder()}, protocol=2))
    with pytest.raises(CheckpointError, match=r"clip is damaged, or holds objects and not only"):
        models.load("clip", checkpoint=broken_clip)
    assert "was run" not in capfd.readouterr().out


def test_a_truncated_file_of_weights(official, broken_clip, tmp_path):
    whole = (broken_clip / "pytorch_model.bin").read_bytes()
    (broken_clip / "pytorch_model.bin").write_bytes(whole[:-2_000])
    with pytest.raises(CheckpointError, match=r"clip is damaged .* download it again"):
        models.load("clip", checkpoint=broken_clip)
    bert = shutil.copytree(official / "google-bert" / "bert-base-uncased", tmp_path / "bert")
    whole = (bert / "model.safetensors").read_bytes()
    (bert / "model.safetensors").write_bytes(whole[:-2_000])
    with pytest.raises(CheckpointError, match=r"bert.* is damaged .* download it again"):
        models.load("bert", checkpoint=bert)


def test_missing_and_left_over_weights_are_named(official, tmp_path):
    folder = shutil.copytree(official / "google-bert" / "bert-large-uncased", tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    weights = torch.load(folder / "pytorch_model.bin", weights_only=True)
    name = "bert.encoder.layer.1.output.dense.bias"
    weights["adapter.weight"] = weights.pop(name)
    torch.save(weights, folder / "pytorch_model.bin")
    for model, missing in (("all-MiniLM-L6-v2", name.removeprefix("bert.")), ("bert", name)):
        with pytest.raises(CheckpointError, match=rf"'{model}' lacks 1 weight.*{missing}.*adapter"):
            models.load(model, checkpoint=folder)


def test_a_bert_without_its_masked_word_head_embeds_and_fills_in_nothing(official, tmp_path):
    folder = shutil.copytree(official / "google-bert" / "bert-base-uncased", tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    weights = torch.load(folder / "pytorch_model.bin", weights_only=True)
    body = {name: each for name, each in weights.items() if name.startswith("bert.")}
    torch.save(body, folder / "pytorch_model.bin")
    with pytest.warns(UserWarning, match=r"bert \(bert, sha256 .* cannot fill masks: these"):
        bert = models.load("bert", checkpoint=folder)
    assert bert.embed(TEXTS).shape == (2, 16)
    with pytest.raises(
        ValueError, match=r"bert cannot fill masks\. Its weights .* can: embed texts"
    ):
        bert.mask_log_prob(["the [MASK] is here"], ["nurse"])


def test_the_larger_bert_fills_masks(hub):
    bert = models.load("bert-large", profile="paper", device="cpu")
    found = bert.mask_log_prob(["the [MASK] is here"], ["nurse", "pilot"], among="candidates")
    tokenizer, network = bert.tokenizer, bert.masked_lm
    tokens = tokenizer("the [MASK] is here", return_tensors="pt")
    with torch.inference_mode():
        row = network(**tokens).logits[0, tokens["input_ids"][0] == tokenizer.mask_token_id][0]
    logits = row[tokenizer.convert_tokens_to_ids(["nurse", "pilot"])]
    np.testing.assert_allclose(found[0], logits.log_softmax(0), atol=1e-5)


# The registry


def test_the_registry_is_complete_and_consistent():
    for name, entry in models.REGISTRY.items():
        assert entry.name == name
        assert entry.licence
        assert entry.note
        assert not entry.source.startswith("hub ") or entry.source.count("/") == 1
        assert entry.revision == "" or len(entry.revision) in (5, 40)
    assert models.REGISTRY["bert"].megabytes == 438
    table = models.available().set_index("name")
    assert table.loc["bert", "revision"] == "main, recorded at first download"
    assert table.loc["lxmert", "features"].startswith("36 regions of 2,048 numbers, with boxes (A")
    assert table.loc["oracle", "revision"] == ""


def test_the_book_shows_the_registry_its_addresses_and_the_cards_as_they_are(tmp_path, monkeypatch):
    """After a change of the registry or a checkpoint: ``python tools/registry.py``."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "tools")
    import registry

    for path, table in registry.TABLES.items():
        shown = path.read_text(encoding="utf-8")
        assert shown == table().to_csv(index=False, lineterminator="\n")


def test_the_book_tells_to_place_files_where_they_are_looked_for(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "tools")
    import registry

    for name in ("BIASLIB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Path(registry.CACHE.replace("$HOME", str(tmp_path))) == downloads.cache_folder()
    page = registry.FILES.read_text(encoding="utf-8")
    assert registry.files_list() in page
    folders = re.findall(r"\$HOME/([^\s\"]+)", page)
    assert folders
    assert all(folder.startswith(registry.CACHE.replace("$HOME/", "")) for folder in folders)
    assert registry.FILES == registry.ROOT / downloads.STEPS
    for entry in models.REGISTRY.values():
        outside = not entry.source.startswith(("package ", "planted "))
        assert (downloads._steps(entry).partition("#")[2] in page) == outside
        assert "PLACE" not in registry.by_hand(entry)


def test_evidence_names_models_and_tests_that_there_are():
    proven = pandas.read_csv(Path(models.__file__).parent / "data" / "proven.csv")
    assert list(proven.columns) == ["model", "claim", "how", "where"]
    assert proven.notna().all(axis=None)
    for model in proven["model"]:
        named = re.findall("`(.+?)`", model)
        assert set(named) <= set(models.available()["name"])
        assert named or model == "every model from the hub"
    root = Path(__file__).parents[1]
    for row in proven.itertuples():
        places = re.findall("`(.+?)`", row[4])
        assert all((root / place).is_file() for place in places)
        assert bool(places) != row.how.startswith("not shown: ")


LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
LARGE_PICTURES = {
    **{"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12},
    **{"num_attention_heads": 12, "image_size": 512, "patch_size": 16},
}
SMALL_TEXT = {
    **{"model_type": "llama", "hidden_size": 576, "intermediate_size": 1536},
    **{"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3},
    **{"vocab_size": 49280, "tie_word_embeddings": False},
}
FULL_SIZE = {
    "bert": ("BertForMaskedLM", {}),
    "bert-large": ("BertForMaskedLM", {**LARGE, "intermediate_size": 4096}),
    "roberta": (
        "RobertaModel",
        {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1},
    ),
    "visualbert": ("VisualBertForPreTraining", {"visual_embedding_dim": 2048}),
    "visualbert-nlvr2": ("VisualBertForPreTraining", {"visual_embedding_dim": 1024}),
    "lxmert": ("LxmertForPreTraining", {}),
    "vilt": ("ViltForMaskedLM", {}),
    "clip": ("CLIPModel", {}),
    "siglip": ("SiglipModel", {}),
    "flava": ("FlavaForPreTraining", {"init_codebook": False}),
    "smolvlm": (
        "Idefics3ForConditionalGeneration",
        {
            "vision_config": LARGE_PICTURES,
            "text_config": SMALL_TEXT,
            "scale_factor": 4,
            "tie_word_embeddings": False,
        },
    ),
}


@pytest.mark.parametrize("name", FULL_SIZE)
def test_parameters_are_those_of_the_full_size(name):
    kind, changes = FULL_SIZE[name]
    network = getattr(transformers, kind)
    with torch.device("meta"):
        built = network(network.config_class(**changes))
    built.tie_weights()
    assert sum(each.numel() for each in built.parameters()) == models.REGISTRY[name].parameters


LARGE = {"hidden_size": 1024, "num_hidden_layers": 24}
LARGE |= {"num_attention_heads": 16, "intermediate_size": 4096}
WRITTEN_HERE = {
    "vl-bert": (VlBertNetwork, {}),
    "vl-bert-large": (VlBertNetwork, LARGE),
    "vilbert": (VilbertNetwork, {}),
    "vilbert-beta": (VilbertNetwork, {}),
    "albef": (AlbefNetwork, {}),
    "albef-coco": (AlbefNetwork, {"image_size": 384, "masked_words": False}),
}


@pytest.mark.parametrize("name", WRITTEN_HERE)
def test_parameters_of_networks_written_here(name):
    network, settings = WRITTEN_HERE[name]
    with torch.device("meta"):
        built = network(network.config_class(**settings))
    built.tie_weights()
    assert sum(each.numel() for each in built.parameters()) == models.REGISTRY[name].parameters


def test_parameters_of_openclip_are_those_of_the_full_size():
    import open_clip

    with torch.device("meta"):
        built = open_clip.CLIP(**open_clip.get_model_config("ViT-H-14"))
    found = sum(each.numel() for each in built.parameters())
    assert found == models.REGISTRY["open-clip"].parameters


# The server from the command line


def test_the_hub_can_be_started_from_the_command_line(official, tmp_path):
    tests = Path(__file__).parent
    command = [sys.executable, "-m", "support.hub", "--folder", str(official)]
    with subprocess.Popen(command, cwd=tests, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip().removeprefix("HF_ENDPOINT=")
            path = tmp_path / "config.json"
            url = f"{address}/FacebookAI/roberta-base/resolve/main/config.json"
            downloads.retrieve([url], path)
        finally:
            process.terminate()
    served = official / "FacebookAI" / "roberta-base" / "config.json"
    assert path.read_bytes() == served.read_bytes()


def test_the_loopback_hub_tells_what_huggingface_hub_asks(official, tmp_path):
    """The library's own downloads work through it, too."""
    from huggingface_hub import hf_hub_download

    with serving(official) as running:
        found = hf_hub_download(
            "FacebookAI/roberta-base", "vocab.json", endpoint=running.address, cache_dir=tmp_path
        )
        assert (
            Path(found).read_bytes()
            == (official / "FacebookAI/roberta-base/vocab.json").read_bytes()
        )
