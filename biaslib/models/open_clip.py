"""OpenCLIP models, through open_clip_torch."""

import functools
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import open_clip
import torch
from PIL import Image

from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import require_weights, revision_of
from biaslib.checkpoints.folders import read_config
from biaslib.checkpoints.weights import CheckpointError, require_numbers_for
from biaslib.models.dual import ContrastiveEncoder
from biaslib.models.reading import steady
from biaslib.models.tokens import require_embedded, require_fitting, require_known_words
from biaslib.pictures.transforms import split
from biaslib.runtime import unknown_name
from biaslib.runtime.batches import on_device

__all__ = ["load", "repository", "require_whole"]

PARTS = {"vision_cfg", "text_cfg", "multimodal_cfg"}
OPTIONS = {"act_kwargs", "norm_kwargs", "tokenizer_kwargs"}
NAMES = """
approximate attentional_pool attn_pooler_heads attn_pooler_queries bias block_type clean
context_length custom_text dim_head elementwise_affine embed_cls embed_dim eos_id eps
final_ln_after_pool head_width heads hf_model_name hf_model_pretrained hf_pooler_type
hf_proj_type hf_tokenizer_name image_size init_logit_bias init_logit_scale inplace language
layers ls_init_value mlp_ratio n_queries negative_slope no_causal_mask no_ln_pre
nonscalar_logit_scale output_dict output_tokens pad_id patch_dropout patch_size pool_type
pos_embed_type proj_bias proj_type qk_norm quick_gelu reduction_mask scale_attn scale_attn_inner
scale_fc scale_heads scaled_cosine_attn strip_sep_token timm_drop timm_drop_path timm_model_name
timm_model_pretrained timm_pool timm_proj timm_proj_bias tokenizer_mode vocab_size width
"""
KNOWN = {*PARTS, *OPTIONS, *NAMES.split()}
"""The settings of OpenCLIP 3 that are numbers, words, switches, or groups of these."""


def load(entry: Entry, folder: Path, device: str) -> ContrastiveEncoder:
    """Load an OpenCLIP model from a folder in the layout of its hub repositories.

    Raises
    ------
    CheckpointError
        If there are no weights, or weights are missing, left over or of another shape; or the
        settings of its text encoder lie elsewhere.
    """
    settings = _settings(folder, entry.name)
    require_whole(settings, str(folder))
    name, path = f"local-dir:{folder}", folder / "open_clip_config.json"
    weights = require_weights(folder, open_clip=True)
    require_numbers_for(functools.partial(_without_weights, name), path, weights)
    model, preprocess = open_clip.create_model_from_pretrained(name, device="cpu")
    model = on_device(model.float(), device, entry.name)
    model.build_untrained = functools.partial(_without_weights, name, "cpu")
    # Its own tokenizer takes neither option, and runs nothing; the others are of transformers.
    wrapped = settings["text_cfg"].get("hf_tokenizer_name")
    safely = {"trust_remote_code": False, "local_files_only": True} if wrapped else {}
    tokenizer = open_clip.get_tokenizer(name, **safely)
    if wrapped:
        tokenizer.tokenizer = steady(tokenizer.tokenizer, folder)

    require_embedded(getattr(tokenizer, "tokenizer", tokenizer), model, folder)

    def token_counts(texts: list[str]) -> np.ndarray:
        counts = _token_counts(tokenizer, texts, entry.name)
        require_fitting(counts, tokenizer.context_length, entry.name, texts)
        return counts

    def encode_texts(texts: list[str]) -> torch.Tensor:
        return model.encode_text(tokenizer(texts).to(device, non_blocking=True))

    def encode_images(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return model.encode_image(batch["pixel_values"])

    return ContrastiveEncoder(
        encode_texts,
        encode_images,
        float(model.logit_scale.detach().exp()),
        entry.name,
        revision_of(folder, open_clip=True),
        bias=_bias(model),
        transform=split(Pixels(preprocess), Pixels(preprocess, resized=True)),
        token_counts=token_counts,
        device=device,
        network=model,
    )


def _without_weights(name: str, device: str = "meta") -> torch.nn.Module:
    """Return a network with random weights, of which OpenCLIP would warn, or with none."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        return open_clip.create_model(name, load_weights=False, device=device)
    finally:
        logging.disable(before)


def _settings(folder: Path, name: str) -> dict:
    path = folder / "open_clip_config.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))["model_cfg"]
    except (FileNotFoundError, NotADirectoryError):
        kind = read_config(folder, name).get("model_type") if folder.is_dir() else "one file"
        raise CheckpointError(
            f"{folder} is a checkpoint of {kind!r} without an open_clip_config.json, and {name!r} "
            "is loaded from a folder with that file beside the weights. If transformers has the "
            "model, load it as 'clip'"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} holds no settings under model_cfg ({error!r})") from error


def repository(name: str) -> str:
    """Return the hub repository of a model of OpenCLIP that is named with its training data.

    Raises
    ------
    UnknownNameError
        If OpenCLIP has the model and not with these data.
    CheckpointError
        As :func:`require_whole`.

    Examples
    --------
    >>> repository("ViT-H-14/laion2b_s32b_b79k")
    'laion/CLIP-ViT-H-14-laion2B-s32B-b79K'
    >>> repository("owner/name")
    'owner/name'
    """
    model, _, data = name.partition("/")
    if model not in open_clip.list_models():
        return name
    known = open_clip.list_pretrained_tags_by_model(model)
    if data not in known:
        raise unknown_name(f"training data of {model}", data, known)
    require_whole(open_clip.get_model_config(model), name)
    place = open_clip.get_pretrained_cfg(model, data).get("hf_hub", "")
    return "/".join(place.split("/")[:2])


def require_whole(settings: dict, name: str) -> None:
    """Refuse settings that OpenCLIP would run something for, or ask another repository for.

    Only known settings pass, none of them objects but known groups: others could reach
    ``from_pretrained`` of transformers (``trust_remote_code``) or timm (a name such as
    ``hf-hub:owner/name``), in no revision, past the lock file, and in any profile.

    Parameters
    ----------
    settings
        Of the model, as of ``open_clip.get_model_config``.
    name
        The model, for the error.

    Raises
    ------
    CheckpointError
        If a setting is unknown or of another type, or its text encoder is one of another
        repository; the message names it.

    Examples
    --------
    >>> require_whole(open_clip.get_model_config("ViT-B-32"), "ViT-B-32")
    >>> text = {"tokenizer_kwargs": {"trust_remote_code": True}}
    >>> require_whole({"embed_dim": 8, "vision_cfg": {}, "text_cfg": text}, "mine")
    Traceback (most recent call last):
    biaslib.errors.CheckpointError: mine: text_cfg.tokenizer_kwargs.trust_remote_code is \
no setting of OpenCLIP's that is known to be safe; remove it from open_clip_config.json
    """
    if not isinstance(settings, dict):
        raise CheckpointError(f"{name}: model_cfg is {settings!r}, and no object of settings")
    _require_known(settings, name)
    for part in ("vision_cfg", "text_cfg"):
        if not isinstance(settings.get(part), dict):
            raise CheckpointError(f"{name} has no {part}; OpenCLIP needs it")
    picture = settings["vision_cfg"].get("timm_model_name") or "none"
    if not re.fullmatch(r"\w+(\.\w+)?", picture):
        raise CheckpointError(
            f"{name} takes its image encoder from {picture!r}, which timm would fetch, unchecked "
            "and unrecorded. Name a network alone as timm_model_name, as vit_base_patch16_224"
        )
    elsewhere = settings["text_cfg"].get("hf_model_name")
    if elsewhere:
        raise CheckpointError(
            f"{name} takes its text encoder from {elsewhere!r} (hf_model_name), which OpenCLIP "
            "would ask the hub for, unchecked and unrecorded. Take a model of OpenCLIP whose text "
            "encoder is its own"
        )


def _require_known(settings: dict, name: str, where: str = "") -> None:
    """Refuse settings that are not among the known ones, or are groups where none is known."""
    for key, value in settings.items():
        if key not in KNOWN:
            raise CheckpointError(
                f"{name}: {where}{key} is no setting of OpenCLIP's that is known to be safe; "
                "remove it from open_clip_config.json"
            )
        if isinstance(value, dict) and key in PARTS | OPTIONS:
            _require_known(value, name, f"{where}{key}.")
        elif not all(
            item is None or isinstance(item, int | float | str)
            for item in (value if isinstance(value, list) else [value])
        ):
            raise CheckpointError(f"{name}: {where}{key} is {value!r}, which is of another type")


def _bias(model: torch.nn.Module) -> float:
    """Return what a model trained with a sigmoid loss adds to scaled cosines, or 0."""
    bias = getattr(model, "logit_bias", None)
    return 0.0 if bias is None else float(bias.detach())


@dataclass(frozen=True)
class Pixels:
    """What OpenCLIP's preprocessing makes of a picture, or its steps before it is a tensor."""

    preprocess: Callable
    resized: bool = False

    def __call__(self, picture: np.ndarray) -> dict[str, np.ndarray]:
        """Return the pixel values of a picture, uint8 (h, w, 3)."""
        image = Image.fromarray(picture)
        if not self.resized:
            return {"pixel_values": self.preprocess(image).numpy()}
        for step in self.preprocess.transforms[:-2]:
            image = step(image)
        return {"pixel_values": np.asarray(image).transpose(2, 0, 1)}


def _token_counts(tokenizer, texts: list[str], name: str = "the model") -> np.ndarray:
    """Return the tokens of each text, special ones among them, before OpenCLIP cuts any off.

    Its own tokenizer adds a start and an end; the others wrap one of transformers.
    """
    wrapped = getattr(tokenizer, "tokenizer", None)
    if wrapped is None:
        return np.array([len(tokenizer.encode(text)) + 2 for text in texts])
    require_known_words(wrapped, texts, name)
    cleaned = [tokenizer.clean_fn(text) for text in texts]
    return np.array([len(ids) for ids in wrapped(cleaned, verbose=False)["input_ids"]])
