"""A model of one's own is read by the family that its files name, or refused by its name."""

import shutil

import pytest
from safetensors.torch import save_file

from biaslib import models
from biaslib.checkpoints.weights import read_weights
from plantedworld.models.checkpoints import checkpoint

TEXT = ["the nurse is here"]

CALLED = {"google/siglip-base-patch16-224": "siglip", "FacebookAI/roberta-base": "roberta"}
"""Of a kind that the family which reads them reads beside its own."""


@pytest.mark.parametrize(
    ("name", "read_as", "images"),
    [
        ("bert", "bert", False),
        ("clip", "clip", True),
        ("open_clip", "open-clip", True),
        ("flava", "flava", True),
        ("vilt", "vilt", True),
        ("lxmert", "lxmert", True),
        ("visualbert", "visualbert", True),
    ],
)
def test_a_planted_folder_is_read_by_its_family(name, read_as, images):
    folder = checkpoint(name, 3, 0)
    assert models.identify(folder)[0] == read_as
    assert models.REGISTRY[read_as].takes_images == images
    named = models.load(read_as, profile="planted", dose=3, seed=0, device="cpu")
    assert models.load(folder, device="cpu").revision == named.revision


@pytest.mark.parametrize(
    ("given", "read_as"),
    [
        ("openai/clip-vit-base-patch32", "clip"),
        ("google/siglip-base-patch16-224", "clip"),
        ("laion/CLIP-ViT-H-14-laion2B-s32B-b79K", "open-clip"),
        ("ViT-H-14/laion2b_s32b_b79k", "open-clip"),
        ("FacebookAI/roberta-base", "bert"),
        ("uclanlp/visualbert-vqa-coco-pre", "visualbert"),
        ("dandelin/vilt-b32-mlm", "vilt"),
        ("facebook/flava-full@" + "ab" * 20, "flava"),
    ],
)
def test_a_name_of_the_hub_is_read_by_its_family(hub, given, read_as):
    assert models.identify(given, "paper")[0] == read_as
    found = models.load(given, profile="paper", device="cpu")
    assert found.name == CALLED.get(given, read_as)
    if read_as in ("clip", "open-clip"):
        assert found.encode_text(TEXT).shape[0] == 1
    else:
        assert found.embed(TEXT).shape == (1, 16)


def test_what_a_model_can_do_is_told_by_its_heads(official, tmp_path):
    whole, weights = official / "dandelin" / "vilt-b32-mlm", ("*.safetensors", "*.bin")
    folder = shutil.copytree(whole, tmp_path / "vilt", ignore=shutil.ignore_patterns(*weights))
    (file,) = (each for ending in weights for each in whole.glob(ending))
    body = {name: each for name, each in read_weights(file).items() if name.startswith("vilt.")}
    save_file(body, folder / "model.safetensors", {"format": "pt"})
    with pytest.warns(UserWarning, match="cannot fill masks or fill masks with images: these"):
        found = models.load(folder, device="cpu")
    assert found.capabilities == {"embed texts", "embed texts with images"}
