"""Tiny repositories in the formats of the official ones: the same kinds of files, random weights.

Each builder writes what the official repository has at its top, as far as it is known: pickled
weights where there are only such, no tokenizer where there is none, and files of other programs,
which must not be downloaded.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import torch
import transformers
import yaml
from PIL import Image
from support import generative_models
from support.official import save_official
from support.small_models import random_parameters

from biaslib import stimuli
from biaslib.checkpoints.downloads import BY_HAND
from biaslib.models import REGISTRY
from biaslib.models.networks import albef, vilbert, vl_bert
from biaslib.pictures.faster_rcnn import FasterRcnn, FasterRcnnConfig

SIDE = 32
"""Width and height of the tiny models' pictures."""

TRANSFORMER = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
SENTENCE = "the nurse is here"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _words_of_the_papers() -> set[str]:
    lists = (Path(stimuli.__file__).parent / "data").iterdir()
    return {
        word for path in lists for word in re.findall("[a-z]+", path.read_text("utf-8").lower())
    }


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SENTENCE.split(), "woman", "man", "."]
PIECES += [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
PIECES += [*sorted(_words_of_the_papers() - set(PIECES)), *"-,'0123456789"]
"""A WordPiece vocabulary that has the words of the papers' lists and spells all others."""

LONGEST = 512
"""Tokens of the longest text, as in BERT; where each letter is a token, half as many."""

CLASSES = ["hat", "tree", "dog", "cup", "nurse", "car", "boy", "woman", "sky", "man", "cat", "sea"]
ATTRIBUTES = ["red", "tall", "wet", "old", "blue", "flat", "open"]


def build(name: str, folder: Path) -> Path:
    """Write the repository or the file of a registered model, and return its folder."""
    path = place(REGISTRY[name].source, folder)
    path.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    BUILDERS[name](path)
    if REGISTRY[name].source.startswith("hub "):
        (path / "README.md").write_text("A tiny model with random weights.\n")
        (path / "modeling_custom.py").write_text("raise SystemExit('remote code was run')\n")
        (path / "tf_model.h5").write_bytes(b"another program's weights")
    return path


def build_all(folder: Path) -> list[str]:
    """Write the repositories and files of all models that are not in a package, and name them."""
    for name in BUILDERS:
        build(name, folder)
    return list(BUILDERS)


def place(source: str, folder: Path) -> Path:
    """Return where the hub of these tests keeps what comes from a source."""
    kind, _, address = source.partition(" ")
    if kind == "url":
        found = urlsplit(address)
        return (folder / found.netloc / found.path.lstrip("/")).parent
    return folder / (address if kind == "hub" else BY_HAND)


def _word_pieces(path: Path) -> transformers.PreTrainedTokenizerFast:
    (path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(path / "vocab.txt"), model_max_length=LONGEST)
    tokenizer.save_pretrained(path)
    return tokenizer


def _bytes_of_words(path: Path, first: list[str], last: list[str], ending: str) -> int:
    """Write a byte-level vocabulary without merges, and return its size."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    ended = [f"{letter}{ending}" for letter in letters] if ending else []
    vocabulary = [*first, *letters, *ended, *last]
    numbers = {token: number for number, token in enumerate(vocabulary)}
    (path / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    (path / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    return len(vocabulary)


def _safe(model: transformers.PreTrainedModel, path: Path) -> None:
    """Save as the newer repositories do: safetensors, and a pickled copy."""
    model.save_pretrained(path)
    torch.save(model.state_dict(), path / "pytorch_model.bin")


def _pickled(model: transformers.PreTrainedModel, path: Path, **more: torch.Tensor) -> None:
    """Save as the older repositories do, with nothing but a pickled file."""
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(path)
    torch.save({**model.state_dict(), **more}, path / "pytorch_model.bin")


def _bert(path: Path) -> None:
    _word_pieces(path)
    config = transformers.BertConfig(vocab_size=len(PIECES), **TRANSFORMER)
    _safe(transformers.BertForPreTraining(config), path)


def _roberta(path: Path) -> None:
    first = ["<s>", "<pad>", "</s>", "<unk>"]
    size = _bytes_of_words(path, first, ["<mask>"], ending="")
    tokenizer = transformers.RobertaTokenizerFast(
        str(path / "vocab.json"), str(path / "merges.txt"), model_max_length=LONGEST // 2
    )
    tokenizer.save_pretrained(path)
    config = transformers.RobertaConfig(
        vocab_size=size, max_position_embeddings=LONGEST // 2 + 4, **TRANSFORMER
    )
    _safe(transformers.RobertaForMaskedLM(config), path)


def _visualbert(numbers: int) -> Callable[[Path], None]:
    def builder(path: Path) -> None:
        config = transformers.VisualBertConfig(
            vocab_size=len(PIECES), visual_embedding_dim=numbers, **TRANSFORMER
        )
        positions = torch.arange(config.max_position_embeddings)[None]
        model = transformers.VisualBertForPreTraining(config)
        _pickled(model, path, **{"visual_bert.embeddings.position_ids": positions})

    return builder


def _lxmert(path: Path) -> None:
    _word_pieces(path)
    sizes = {key: value for key, value in TRANSFORMER.items() if key != "num_hidden_layers"}
    config = transformers.LxmertConfig(
        vocab_size=len(PIECES),
        l_layers=1,
        x_layers=1,
        r_layers=1,
        num_qa_labels=5,
        num_object_labels=6,
        num_attr_labels=4,
        **sizes,
    )
    _pickled(transformers.LxmertForPreTraining(config), path)


def _vilt_model() -> transformers.ViltForMaskedLM:
    config = transformers.ViltConfig(
        vocab_size=len(PIECES), image_size=SIDE, patch_size=8, **TRANSFORMER
    )
    return transformers.ViltForMaskedLM(config)


def _vilt(path: Path) -> None:
    _word_pieces(path)
    processor = transformers.ViltImageProcessorPil(size={"shortest_edge": SIDE}, size_divisor=8)
    processor.save_pretrained(path)
    _pickled(_vilt_model(), path)


def _vilt_itm(path: Path) -> None:
    head = torch.nn.Linear(TRANSFORMER["hidden_size"], 2)
    more = {"itm_score.fc.weight": head.weight.data, "itm_score.fc.bias": head.bias.data}
    _pickled(_vilt_model(), path, **more)


TINYCLIP = {
    "text_config": {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4},
    "vision_config": {"hidden_size": 256, "num_hidden_layers": 10, "num_attention_heads": 4},
    "projection_dim": 512,
}
TINYCLIP["text_config"] |= {"intermediate_size": 1024, "vocab_size": 49408}
TINYCLIP["vision_config"] |= {"intermediate_size": 1024, "patch_size": 16}
"""TinyCLIP-ViT-8M-16-Text-3M as published: 23,446,017 parameters, 93.8 MB in float32."""


def _clip(path: Path) -> None:
    text = {"max_position_embeddings": LONGEST // 2, **TRANSFORMER}
    vision = {"image_size": SIDE, "patch_size": 8, **TRANSFORMER}
    _pickled(_clip_model(path, text, vision, 8), path)


def tinyclip(path: Path) -> None:
    """Write TinyCLIP's repository in its real shape, 94 MB of random weights in safetensors."""
    parts = (TINYCLIP[f"{part}_config"] for part in ("text", "vision"))
    _clip_model(path, *parts, TINYCLIP["projection_dim"]).save_pretrained(path)


def _clip_model(path: Path, text: dict, vision: dict, width: int) -> transformers.CLIPModel:
    """Write tokenizer and image processor of a CLIP, and return the network."""
    size = _bytes_of_words(path, [], ["<|startoftext|>", "<|endoftext|>"], ending="</w>")
    longest = text.get("max_position_embeddings", 77)
    tokenizer = transformers.CLIPTokenizerFast(
        str(path / "vocab.json"), str(path / "merges.txt"), model_max_length=longest
    )
    tokenizer.save_pretrained(path)
    text = {"vocab_size": size, **text, "bos_token_id": size - 2, "eos_token_id": size - 1}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=width)
    side = config.vision_config.image_size
    processor = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}
    )
    processor.save_pretrained(path)
    return transformers.CLIPModel(config)


def _siglip(path: Path) -> None:
    """Write SigLIP's files, with WordPiece's vocabulary in place of SentencePiece's."""
    _word_pieces(path)
    text = {"vocab_size": len(PIECES), "max_position_embeddings": 77, **TRANSFORMER}
    text |= {"bos_token_id": 2, "eos_token_id": 3}
    vision = {"image_size": SIDE, "patch_size": 8, **TRANSFORMER}
    config = transformers.SiglipConfig(text_config=text, vision_config=vision)
    processor = transformers.SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    processor.save_pretrained(path)
    _safe(transformers.SiglipModel(config), path)


def _open_clip(path: Path) -> None:
    """Write both layouts that the official repository has: OpenCLIP's and that of transformers."""
    import open_clip

    _clip(path)
    model = {
        "embed_dim": 8,
        "vision_cfg": {
            "image_size": SIDE,
            "patch_size": 8,
            "width": 16,
            "layers": 1,
            "head_width": 8,
        },
        "text_cfg": {
            "context_length": 77,
            "vocab_size": 49408,
            "width": 16,
            "heads": 2,
            "layers": 1,
        },
    }
    preprocess = {"mean": [0.5] * 3, "std": [0.5] * 3}
    config = {"model_cfg": model, "preprocess_cfg": preprocess}
    (path / "open_clip_config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = open_clip.CLIP(**model).state_dict()
    torch.save(weights, path / "open_clip_pytorch_model.bin")


def _flava(path: Path) -> None:
    _word_pieces(path)
    text = {"vocab_size": len(PIECES), "max_position_embeddings": 77, **TRANSFORMER}
    image = {"image_size": SIDE, "patch_size": 8, "vocab_size": 16, **TRANSFORMER}
    codebook = {"num_groups": 4, "hidden_size": 8, "vocab_size": 16, "num_blocks_per_group": 1}
    config = transformers.FlavaConfig(
        text_config=text,
        image_config=image,
        multimodal_config=TRANSFORMER,
        image_codebook_config=codebook,
        projection_dim=8,
        hidden_size=TRANSFORMER["hidden_size"],
    )
    sides = {"height": SIDE, "width": SIDE}
    transformers.FlavaImageProcessorPil(size=sides, crop_size=sides).save_pretrained(path)
    _pickled(transformers.FlavaForPreTraining(config), path)


REGIONS = 2048
"""Numbers a region in the published networks; their width decides what features they take."""

BERT = {
    "vocab_size": len(PIECES),
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 1,
    "intermediate_size": 32,
    "max_position_embeddings": LONGEST,
}
"""Sizes of the authors' own networks: heads of 64 numbers, as in the published files."""


def _vl_bert(name: str, **parts: object) -> Callable[[Path], None]:
    def builder(path: Path) -> None:
        config = vl_bert.VlBertConfig(**BERT, visual_region_classes=7, **parts)
        save_official(random_parameters(vl_bert.VlBertNetwork(config)), path / name)

    return builder


def _vilbert(name: str) -> Callable[[Path], None]:
    def builder(path: Path) -> None:
        config = vilbert.VilbertConfig(
            **BERT,
            v_target_size=7,
            v_hidden_size=128,
            v_num_hidden_layers=1,
            v_num_attention_heads=1,
            v_intermediate_size=32,
            bi_hidden_size=128,
            bi_num_attention_heads=1,
            t_biattention_id=(1,),
            v_biattention_id=(0,),
        )
        save_official(random_parameters(vilbert.VilbertNetwork(config)), path / name)

    return builder


def _albef(name: str, masked_words: bool) -> Callable[[Path], None]:
    def builder(path: Path) -> None:
        config = albef.AlbefConfig(
            **BERT,
            image_size=SIDE,
            vision_width=64,
            vision_layers=1,
            vision_heads=1,
            fusion_layer=1,
            embed_dim=8,
            masked_words=masked_words,
        )
        save_official(random_parameters(albef.AlbefNetwork(config)), path / name)

    return builder


DETECTOR = json.loads((Path(__file__).parents[1] / "golden/frcnn/config.json").read_text())
DETECTOR["model"]["pixel_std"] = [100.0, 100.0, 50.0]
DETECTOR["input"] |= {"min_size_test": 96, "max_size_test": 160}
DETECTOR["resnets"] |= {"stem_out_channels": 8, "width_per_group": 4}
DETECTOR["resnets"]["res2_out_channels"] = REGIONS // 8
DETECTOR["proposal_generator"]["hidden_channels"] = 16
DETECTOR["rpn"]["post_nms_topk_test"] = 48
DETECTOR["roi_heads"]["nms_thresh_test"] = [0.5, 0.6, 0.7]
DETECTOR["roi_box_head"]["pooler_resolution"] = 4
DETECTOR |= {"min_detections": 36, "max_detections": 36}
"""Settings in the published layout: few narrow layers, and features of the published width."""


def _detector(path: Path) -> None:
    """Write the detector's files; the names of its classes are another host's."""
    network = FasterRcnn(FasterRcnnConfig(DETECTOR))
    with torch.no_grad():  # or every region would be of the same class
        classes = network.roi_heads.box_predictor.cls_score.weight
        classes.sub_(classes.mean(dim=1, keepdim=True)).mul_(1000)
    torch.save(network.state_dict(), path / "pytorch_model.bin")
    (path / "config.yaml").write_text(yaml.safe_dump(DETECTOR), encoding="utf-8")
    entry = REGISTRY["detector"]
    root = path.parents[len(place(entry.source, Path()).parts) - 1]
    for url, names in zip(entry.beside, (CLASSES, ATTRIBUTES), strict=True):
        labels = place(f"url {url}", root) / url.rpartition("/")[2]
        labels.parent.mkdir(parents=True, exist_ok=True)
        labels.write_text("\n".join(names) + "\n", encoding="utf-8")


BUILDERS: dict[str, Callable[[Path], None]] = {
    "smolvlm": generative_models.idefics,
    "bert": _bert,
    "bert-large": _bert,
    "roberta": _roberta,
    "visualbert": _visualbert(2048),
    "visualbert-nlvr2": _visualbert(1024),
    "lxmert": _lxmert,
    "vilt": _vilt,
    "vilt-itm": _vilt_itm,
    "clip": _clip,
    "tinyclip": _clip,
    "siglip": _siglip,
    "open-clip": _open_clip,
    "flava": _flava,
    "vl-bert": _vl_bert("vl-bert-base-prec.model"),
    "vl-bert-large": _vl_bert("vl-bert-large-prec.model"),
    "vilbert": _vilbert("pretrained_model.bin"),
    "vilbert-beta": _vilbert("vilbert_six_layers_concap.bin"),
    "albef": _albef("ALBEF.pth", masked_words=True),
    "albef-coco": _albef("mscoco.pth", masked_words=False),
    "detector": _detector,
}


def picture(seed: int = 0) -> Image.Image:
    """Return a picture of noise."""
    pixels = torch.randint(0, 256, (48, 40, 3), generator=torch.Generator().manual_seed(seed))
    return Image.fromarray(pixels.to(torch.uint8).numpy())
