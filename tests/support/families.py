"""A small network of every family, with random weights, in a folder from which it is loaded."""

import json
import string
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from support import small_models
from support.small_models import BLOCKS, PATCH, SIDE, VOCABULARY
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel

from biaslib.models import vilt
from biaslib.models.networks.albef import AlbefConfig, AlbefNetwork
from biaslib.models.networks.vilbert import VilbertConfig, VilbertNetwork
from biaslib.models.networks.vl_bert import VlBertConfig, VlBertNetwork
from biaslib.pictures.regions import RegionFeatures

WIDTH = 67
"""Numbers a region: those of the planted world's, so that its scenes can be read, too."""

LONGEST = 20
PLACES = 64
"""Tokens of the longest text of a fusion model, but for ViLT's 40, and of a dual encoder."""

BERT = {"vocab_size": len(VOCABULARY), "max_position_embeddings": LONGEST, **BLOCKS}
TEXT = {"vocab_size": len(VOCABULARY), "max_position_embeddings": PLACES, **BLOCKS}
VISION = {"image_size": SIDE, "patch_size": PATCH, **BLOCKS}
ENDS = {
    "bos_token_id": VOCABULARY.index("[CLS]"),
    "eos_token_id": VOCABULARY.index("[SEP]"),
    "pad_token_id": 0,
}
STREAMS = {
    "v_feature_size": WIDTH,
    "v_target_size": 5,
    "v_hidden_size": 24,
    "v_num_hidden_layers": 1,
    "v_num_attention_heads": 2,
    "v_intermediate_size": 24,
    "bi_hidden_size": 16,
    "bi_num_attention_heads": 2,
    "t_biattention_id": (1,),
    "v_biattention_id": (0,),
}
VILT = {
    **BLOCKS,
    "vocab_size": len(VOCABULARY),
    "image_size": SIDE,
    "patch_size": PATCH,
    "layer_norm_eps": 1e-12,
}
HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
SQUARE = {"size": {"height": SIDE, "width": SIDE}}
CROPPED = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}


def bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(**BERT)), None


def visualbert():
    config = transformers.VisualBertConfig(**BERT, visual_embedding_dim=WIDTH)
    return transformers.VisualBertForPreTraining(config), None


def lxmert():
    layers = {"l_layers": 2, "x_layers": 2, "r_layers": 1}
    heads = {"num_qa_labels": 5, "num_object_labels": 6, "num_attr_labels": 7}
    sizes = {key: each for key, each in BERT.items() if key != "num_hidden_layers"}
    config = transformers.LxmertConfig(**sizes, **layers, **heads, visual_feat_dim=WIDTH)
    return transformers.LxmertForPreTraining(config), None


def vl_bert():
    config = VlBertConfig(**BERT, feature_size=WIDTH, visual_region_classes=5)
    return VlBertNetwork(config), None


def vilbert():
    return VilbertNetwork(VilbertConfig(**BERT, **STREAMS)), None


def albef():
    vision = {"vision_width": 24, "vision_layers": 1, "vision_heads": 2}
    config = AlbefConfig(**BERT, **vision, image_size=32, fusion_layer=1, embed_dim=8)
    return AlbefNetwork(config), None


def of_vilt():
    processor = transformers.ViltImageProcessor(
        size={"shortest_edge": SIDE}, size_divisor=PATCH, **HALF
    )
    return vilt.ViltNetwork(transformers.ViltConfig(**VILT)), processor


def flava():
    config = transformers.FlavaConfig(
        image_config=VISION,
        text_config=BERT,
        multimodal_config=BLOCKS,
        image_codebook_config={"hidden_size": 4, "vocab_size": 16},
        hidden_size=BLOCKS["hidden_size"],
        projection_dim=24,
    )
    size = {"height": SIDE, "width": SIDE}
    processor = transformers.FlavaImageProcessor(size=size, crop_size=size, **HALF)
    return transformers.FlavaForPreTraining(config), processor


def clip():
    config = transformers.CLIPConfig(
        text_config=TEXT | ENDS, vision_config=VISION, projection_dim=24
    )
    return transformers.CLIPModel(config), transformers.CLIPImageProcessor(**CROPPED)


def siglip():
    config = transformers.SiglipConfig(text_config=TEXT | ENDS, vision_config=VISION)
    return transformers.SiglipModel(config), transformers.SiglipImageProcessor(**SQUARE, **HALF)


def siglip2():
    vision = {**BLOCKS, "patch_size": PATCH, "num_patches": 16}
    config = transformers.Siglip2Config(text_config=TEXT | ENDS, vision_config=vision)
    processor = transformers.Siglip2ImageProcessor(patch_size=PATCH, max_num_patches=16, **HALF)
    return transformers.Siglip2Model(config), processor


def align():
    vision = {
        "image_size": SIDE,
        "width_coefficient": 0.1,
        "depth_coefficient": 0.1,
        "hidden_dim": 32,
        "depthwise_padding": [],
    }
    config = transformers.AlignConfig(text_config=TEXT, vision_config=vision, projection_dim=32)
    processor = transformers.EfficientNetImageProcessor(**SQUARE, **HALF)
    network = transformers.AlignModel(config)
    for module in network.vision_model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    return network, processor


def chinese_clip():
    config = transformers.ChineseCLIPConfig(
        text_config=TEXT, vision_config=VISION, projection_dim=24
    )
    return transformers.ChineseCLIPModel(config), transformers.CLIPImageProcessor(**CROPPED)


def word_pieces():
    tokenizer = small_models.tokenizer()
    tokenizer.model_max_length = PLACES
    return tokenizer


def ended_words():
    """Return a tokenizer like SigLIP's: no first token, the last one also pads."""
    whole = ["carrying" if token == "car" else token for token in VOCABULARY]
    numbers = {token: number for number, token in enumerate(whole)}
    tokenizer = Tokenizer(WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    end = [("[SEP]", numbers["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="$A [SEP]", special_tokens=end)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[SEP]", eos_token="[SEP]"
    )


def letters():
    """Return a tokenizer of SigLIP 2's class, whose tokens are single letters."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", ".", *string.ascii_lowercase]
    numbers = {token: number for number, token in enumerate(tokens)}
    return transformers.Siglip2Tokenizer(vocab=numbers, merges=[], padding_side="right")


def open_clip(folder, **text):
    """Write an OpenCLIP repository of a small model, and return the model."""
    import open_clip as library

    vision = {"image_size": SIDE, "patch_size": PATCH, "width": 32, "layers": 2, "head_width": 8}
    sizes = {"context_length": 12, "width": 32, "heads": 4, "layers": 2, "vocab_size": 49408}
    config = {"embed_dim": 24, "vision_cfg": vision, "text_cfg": sizes | text}
    torch.manual_seed(0)
    network = small_models.random_parameters(library.CLIP(**config))
    save_file(network.state_dict(), folder / "open_clip_model.safetensors")
    preprocess = {"mean": [0.5] * 3, "std": [0.4] * 3, "resize_mode": "squash"}
    written = {"model_cfg": config, "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(written))
    return network


TOKENIZERS = {"siglip": ended_words, "siglip2": letters, "clip": word_pieces}
TOKENIZERS |= {"align": word_pieces, "chinese_clip": word_pieces}

BUILDERS = {
    "bert": bert,
    "visualbert": visualbert,
    "lxmert": lxmert,
    "vl-bert": vl_bert,
    "vilbert": vilbert,
    "albef": albef,
    "vilt": of_vilt,
    "flava": flava,
    "clip": clip,
    "siglip": siglip,
    "siglip2": siglip2,
    "align": align,
    "chinese_clip": chinese_clip,
}
"""A network and its image processor, by the name of the family."""

DUAL = ("clip", "siglip", "siglip2", "align", "chinese_clip")
OF_REGIONS = ("visualbert", "lxmert", "vl-bert", "vilbert")
NAMES = (*BUILDERS, "open-clip")


def save(name: str, folder: Path) -> Path:
    """Write the folder of a family."""
    folder.mkdir(parents=True, exist_ok=True)
    if name == "open-clip":
        open_clip(folder)
        return folder
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network, processor = BUILDERS[name]()
        small_models.random_parameters(network)
        if name == "align":  # Batch normalisation needs the moments of some pictures.
            with torch.no_grad():
                network.vision_model.train()(torch.randn(8, 3, SIDE, SIDE))
            network.eval()
    network.save_pretrained(folder)
    TOKENIZERS.get(name, small_models.tokenizer)().save_pretrained(folder)
    if processor is not None:
        processor.save_pretrained(folder)
    return without(folder, "rank_output", "mlm_score.bias") if name == "vilt" else folder


def without(folder: Path, *prefixes: str) -> Path:
    """Take weights out of a checkpoint's file."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    kept = {name: each for name, each in weights.items() if not name.startswith(prefixes)}
    save_file(kept, path, {"format": "pt"})
    return folder


def registered(name: str) -> str:
    """Return the registered name under which a family's folder is loaded."""
    return "clip" if name in DUAL else name


def regions(n: int = 4, k: int = 5, seed: int = 0) -> RegionFeatures:
    """Return random regions; the later a picture, the fewer; what is not there holds no number."""
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.random((n, k, 2, 2)), axis=2).reshape(n, k, 4)
    real = np.arange(k) < k - np.arange(n)[:, None]
    features = rng.normal(size=(n, k, WIDTH))
    features[~real] = np.nan
    persons = rng.random((n, k)) < 0.5
    persons[:, 0] = True
    return RegionFeatures(features, corners, real, persons, np.full((n, 2), 64))
