"""Every model that comes from the hub: downloaded, verified, cached and loaded, without a network.

The repositories are tiny ones of random weights in the official formats, so that the path is
tested and not the official files, of which none was at hand.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from support import repositories

from biaslib import capabilities as can
from biaslib import models
from biaslib.checkpoints import downloads, registry
from biaslib.models.networks.albef import AlbefNetwork
from biaslib.models.networks.vilbert import VilbertNetwork
from biaslib.models.networks.vl_bert import VlBertNetwork
from biaslib.runtime import Lock, UnknownNameError, file_sha256

pytestmark = pytest.mark.filterwarnings("ignore:.* was trained on features of:UserWarning")

TEXTS = [repositories.SENTENCE, "the woman is here"]


@pytest.mark.parametrize("name", repositories.BUILDERS)
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
    if can.EMBED in model.capabilities:
        assert np.ptp(model.embed(TEXTS), axis=0).max() > 1e-5


def test_a_checkpoint_named_by_repository_and_revision(hub):
    commit = "0123456789" * 4
    name = f"FacebookAI/roberta-base@{commit}"
    Lock().path.unlink(missing_ok=True)
    encoder = models.load("roberta", profile="paper", checkpoint=name, device="cpu")
    assert commit in encoder.revision
    Lock().path.unlink()


def test_a_model_of_openclip_is_found_by_its_name_and_training_data():
    entry = models.REGISTRY["open-clip"]
    found = registry.repository(entry, "ViT-H-14/laion2b_s32b_b79k")
    assert f"hub {found}" == entry.source
    with pytest.raises(UnknownNameError):
        registry.repository(entry, "ViT-B-32/laion2b_s34b")


def test_a_bert_without_its_masked_word_head_embeds_and_fills_in_nothing(official, tmp_path):
    folder = shutil.copytree(official / "google-bert" / "bert-base-uncased", tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    weights = torch.load(folder / "pytorch_model.bin", weights_only=True)
    body = {name: each for name, each in weights.items() if name.startswith("bert.")}
    torch.save(body, folder / "pytorch_model.bin")
    with pytest.warns(UserWarning, match="cannot fill masks"):
        bert = models.load("bert", checkpoint=folder)
    assert bert.embed(TEXTS).shape == (2, 16)
    with pytest.raises(can.CapabilityError):
        bert.mask_log_prob(["the [MASK] is here"], ["nurse"])


# The registry


def test_the_registry_is_complete_and_consistent():
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


LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
LARGE |= {"intermediate_size": 4096}
LARGE_PICTURES = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 512,
    "patch_size": 16,
}
SMALL_TEXT = {
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49280,
    "tie_word_embeddings": False,
}
SMOLVLM = {
    "vision_config": LARGE_PICTURES,
    "text_config": SMALL_TEXT,
    "scale_factor": 4,
    "tie_word_embeddings": False,
}
OF_ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
FULL_SIZE = {
    "bert": (transformers.BertForMaskedLM, {}),
    "bert-large": (transformers.BertForMaskedLM, LARGE),
    "roberta": (transformers.RobertaModel, OF_ROBERTA),
    "visualbert": (transformers.VisualBertForPreTraining, {"visual_embedding_dim": 2048}),
    "visualbert-nlvr2": (transformers.VisualBertForPreTraining, {"visual_embedding_dim": 1024}),
    "lxmert": (transformers.LxmertForPreTraining, {}),
    "vilt": (transformers.ViltForMaskedLM, {}),
    "clip": (transformers.CLIPModel, {}),
    "tinyclip": (transformers.CLIPModel, repositories.TINYCLIP),
    "siglip": (transformers.SiglipModel, {}),
    "flava": (transformers.FlavaForPreTraining, {"init_codebook": False}),
    "smolvlm": (transformers.Idefics3ForConditionalGeneration, SMOLVLM),
    "vl-bert": (VlBertNetwork, {}),
    "vl-bert-large": (VlBertNetwork, LARGE),
    "vilbert": (VilbertNetwork, {}),
    "vilbert-beta": (VilbertNetwork, {}),
    "albef": (AlbefNetwork, {}),
    "albef-coco": (AlbefNetwork, {"image_size": 384, "masked_words": False}),
}


@pytest.mark.parametrize("name", FULL_SIZE)
def test_parameters_are_those_of_the_full_size(name):
    network, settings = FULL_SIZE[name]
    with torch.device("meta"):
        built = network(network.config_class(**settings))
    built.tie_weights()
    assert sum(each.numel() for each in built.parameters()) == models.REGISTRY[name].parameters


def test_tinyclip_in_its_published_shape_is_a_file_of_94_megabytes_that_loads(tmp_path):
    repositories.tinyclip(tmp_path)
    size = (tmp_path / "model.safetensors").stat().st_size
    assert size == pytest.approx(93.8e6, rel=1e-3)
    assert models.REGISTRY["tinyclip"].megabytes == round(size / 1e6)
    model = models.load("tinyclip", profile="paper", checkpoint=tmp_path, device="cpu")
    assert model.encode_text(["a nurse"]).shape == (1, 512)


def test_parameters_of_openclip_are_those_of_the_full_size():
    import open_clip

    with torch.device("meta"):
        built = open_clip.CLIP(**open_clip.get_model_config("ViT-H-14"))
    found = sum(each.numel() for each in built.parameters())
    assert found == models.REGISTRY["open-clip"].parameters
