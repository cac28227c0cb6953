"""Networks of published sizes with random weights, built in memory on a device, and their tasks."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tools.benchmarks import full_size_models, loops

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL |= {"intermediate_size": 64}
TINY: dict[str, dict[str, Any]] = {
    "clip": {"vision": SMALL, "text": SMALL},
    "vilt": SMALL,
    "visualbert": SMALL,
    "vl_bert_base": SMALL,
    "flava": {"image_config": SMALL, "text_config": SMALL, "multimodal_config": SMALL}
    | {"hidden_size": 32},
    "albef": SMALL
    | {"vision_width": 32, "vision_layers": 2, "vision_heads": 2}
    | {"fusion_layer": 1, "embed_dim": 8},
}
"""What is smaller where a device is none of CUDA's, by the function of full_size_models."""


class Asked(NamedTuple):
    """A model with its task.

    ``owner`` has the forward pass under ``name``, ``rows`` makes of its output what ``public``
    makes of inputs.
    """

    model: Any
    owner: Any
    name: str
    rows: Callable[[Any], torch.Tensor]
    public: Callable[[Any], np.ndarray]


class Task(NamedTuple):
    """What is measured: how it is built, of how many items, and the pixels of a picture.

    Without pixels, the items are texts with regions. A network that has a kind of half precision of
    its own has it in *half*.
    """

    built: Callable[[str, str], Asked]
    items: dict[str, int]
    pixels: tuple[int, int] | None = (480, 640)
    half: torch.dtype | None = None
    needs: float = 10


def parts_of(name: str, size: str) -> full_size_models.Parts:
    """Return the parts of a model at its published size, or at a tiny one."""
    builder = getattr(full_size_models, name)
    smaller = {"clip_h14": "clip"}.get(name, name)
    fixed = {"init_codebook": False} if name == "flava" else {}
    if size == "tiny":
        return getattr(full_size_models, smaller)(**TINY[smaller], **fixed)
    return builder(**fixed)


def as_loaded(processor: Any) -> Any:
    """Return an image processor as the package reads it from a folder."""
    from biaslib.pictures.transforms import read_image_processor

    with tempfile.TemporaryDirectory() as folder:
        processor.save_pretrained(folder)
        return read_image_processor(Path(folder))


def dual(name: str, size: str, device: str) -> Asked:
    """Return a dual encoder of transformers that encodes pictures."""
    from biaslib.models.clip import encoder_of

    parts = parts_of(name, size)
    network = parts.built(device)
    processor, tokenizer = as_loaded(parts.processor), full_size_models.sentence_pieces()
    model = encoder_of(network, tokenizer, processor, name, "random", device)

    def unit(found: Any) -> torch.Tensor:
        return torch.nn.functional.normalize(
            network.visual_projection(found.pooler_output).float(), dim=-1
        )

    return Asked(model, network, "vision_model", unit, model.encode_image)


def matching(name: str, size: str, device: str) -> Asked:
    """Return a model that says how well two captions fit each picture."""
    from biaslib.models import albef, flava, vilt

    parts = parts_of(name, size)
    made = (parts.tokenizer(),)
    if name != "albef":
        made += (as_loaded(parts.processor),)
    if name == "vilt":
        parts = parts._replace(network=vilt.ViltNetwork)
    adapter = {"albef": albef.Albef, "flava": flava.Flava, "vilt": vilt.Vilt}[name]
    model = adapter(parts.built(device), *made, name, "random", device)

    def public(images: Sequence[Any]) -> np.ndarray:
        said = loops.texts(2 * len(images))
        return model.match(images, [said[at : at + 2] for at in range(0, len(said), 2)]).ravel()

    return Asked(model, model, "outputs", lambda found: found.match, public)


def embedding(name: str, size: str, device: str) -> Asked:
    """Return a model that embeds texts with 36 regions each."""
    from biaslib.models import visualbert, vl_bert

    parts = parts_of(name, size)
    adapter = {"visualbert": visualbert.VisualBert, "vl_bert_base": vl_bert.VlBert}[name]
    model = adapter(parts.built(device), parts.tokenizer(), name, "random", device)

    def public(images: Any) -> np.ndarray:
        return model.embed(loops.texts(len(images)), images)

    return Asked(model, model, "outputs", lambda found: found.text[:, 0], public)


def detector(size: str, device: str) -> Asked:
    """Return the region detector."""
    from tools.benchmarks import detector as published
    from tools.benchmarks import overhead

    if size == "full":
        return detecting(published.SETTINGS, device)
    settings = overhead.small_settings()
    settings["input"] |= {"min_size_test": 96, "max_size_test": 160}
    settings["resnets"] |= {"stem_out_channels": 8, "width_per_group": 4}
    settings["resnets"]["res2_out_channels"] = 16
    settings["rpn"]["post_nms_topk_test"] = 8
    return detecting(settings, device)


def detecting(settings: dict[str, Any], device: str) -> Asked:
    """Return a region detector of random weights."""
    from biaslib.pictures.detector import Detector
    from biaslib.pictures.faster_rcnn import FasterRcnn, FasterRcnnConfig

    torch.manual_seed(0)
    with torch.device(device):
        network = FasterRcnn(FasterRcnnConfig(settings))
    model = Detector(network, "detector", "random", device)

    def public(images: Sequence[Any]) -> np.ndarray:
        return model.regions(images, words=None).features.sum(axis=(1, 2))

    def rows(found: Any) -> torch.Tensor:
        return found.features.sum(dim=1).sum(dim=0, keepdim=True)

    return Asked(model, model, "network", rows, public)


def _of(make: Callable, name: str) -> Callable[[str, str], Asked]:
    return lambda size, device: make(name, size, device)


PORTRAIT = (224, 224)
TASKS = {
    "ViT-H/14": Task(_of(dual, "clip_h14"), {"full": 512, "tiny": 6}, PORTRAIT, needs=25),
    "detector": Task(detector, {"full": 32, "tiny": 5}, half=torch.float16, needs=15),
    "ViLT matching": Task(_of(matching, "vilt"), {"full": 256, "tiny": 4}),
    "VisualBERT": Task(_of(embedding, "visualbert"), {"full": 1024, "tiny": 6}, None),
    "CLIP ViT-B/32": Task(_of(dual, "clip"), {"full": 2048, "tiny": 6}, PORTRAIT),
    "VL-BERT": Task(_of(embedding, "vl_bert_base"), {"full": 1024, "tiny": 6}, None),
    "FLAVA matching": Task(_of(matching, "flava"), {"full": 128, "tiny": 2}),
    "ALBEF matching": Task(_of(matching, "albef"), {"full": 128, "tiny": 2}),
}
"""In order of worth."""
