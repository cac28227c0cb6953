"""Tiny repositories in the formats of the official ones: the same kinds of files, random weights.

Each builder writes what the official repository has at its top, as far as it is known: pickled
weights where there are only such, no tokenizer where there is none, and files of other programs,
which must not be downloaded.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
import yaml
from PIL import Image

from biaslib import stimuli
from biaslib.models import REGISTRY, detector
from biaslib.models.networks.faster_rcnn import FasterRcnn, FasterRcnnConfig

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
PIECES += sorted(_words_of_the_papers() - set(PIECES))
"""A WordPiece vocabulary that has the words of the papers' lists and spells all others."""

LONGEST = 512
"""Tokens of the longest text, as in BERT; where each letter is a token, half as many."""

GOLDEN_DETECTOR = Path(__file__).parents[1] / "golden" / "frcnn" / "config.json"
CLASSES = ["man", "woman", "dog", "hat", "nurse", "car", "tree", "cup", "sky", "boy", "cat", "sea"]
ATTRIBUTES = ["red", "tall", "wet", "old", "blue", "flat", "open"]


def build(name: str, folder: Path) -> Path:
    """Write the repository of a registered model, and return its folder."""
    return _write(REGISTRY[name].source, name, folder)


def build_all(folder: Path) -> list[str]:
    """Write the repositories of all models that come from the hub, and return their names."""
    names = [name for name, entry in REGISTRY.items() if entry.source.startswith("hub ")]
    for name in names:
        build(name, folder)
    return names


def _write(source: str, name: str, folder: Path) -> Path:
    path = folder / source.removeprefix("hub ")
    path.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    BUILDERS[name](path)
    (path / "README.md").write_text("A tiny model with random weights.\n")
    (path / "modeling_custom.py").write_text("raise SystemExit('remote code was run')\n")
    (path / "tf_model.h5").write_bytes(b"another program's weights")
    return path


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


def _clip(path: Path) -> None:
    size = _bytes_of_words(path, [], ["<|startoftext|>", "<|endoftext|>"], ending="</w>")
    tokenizer = transformers.CLIPTokenizerFast(
        str(path / "vocab.json"), str(path / "merges.txt"), model_max_length=LONGEST // 2
    )
    tokenizer.save_pretrained(path)
    text = {"vocab_size": size, "max_position_embeddings": LONGEST // 2, **TRANSFORMER}
    text |= {"bos_token_id": size - 2, "eos_token_id": size - 1}
    vision = {"image_size": SIDE, "patch_size": 8, **TRANSFORMER}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)
    sides = {"height": SIDE, "width": SIDE}
    processor = transformers.CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=sides)
    processor.save_pretrained(path)
    _pickled(transformers.CLIPModel(config), path)


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


BUILDERS: dict[str, Callable[[Path], None]] = {
    "bert": _bert,
    "bert-large": _bert,
    "roberta": _roberta,
    "visualbert": _visualbert(2048),
    "visualbert-nlvr2": _visualbert(1024),
    "lxmert": _lxmert,
    "vilt": _vilt,
    "vilt-itm": _vilt_itm,
    "clip": _clip,
    "siglip": _siglip,
    "open-clip": _open_clip,
    "flava": _flava,
}


def build_detector(folder: Path) -> Path:
    """Write the repository of the region detector, with regions of 2,048 numbers; see its config.

    Its pictures are small and their contrast is, so that random weights find a variety of regions.
    The names of its classes are in another repository; :func:`write_labels` writes them.
    """
    path = folder / detector.SOURCE
    path.mkdir(parents=True, exist_ok=True)
    settings = json.loads(GOLDEN_DETECTOR.read_text())
    settings["model"]["pixel_std"] = [100.0, 100.0, 50.0]
    settings["input"] |= {"min_size_test": 64, "max_size_test": 96}
    settings["resnets"] |= {"res2_out_channels": 256, "width_per_group": 2}
    settings["roi_box_head"] |= {"pooler_resolution": 4}
    torch.manual_seed(0)
    network = FasterRcnn(FasterRcnnConfig.from_nested(settings))
    torch.save(network.state_dict(), path / "pytorch_model.bin")
    (path / "config.yaml").write_text(yaml.safe_dump(settings))
    return path


def write_labels(folder: Path) -> None:
    """Write the names of the detector's classes and attributes, as their repository has them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "objects_vocab.txt").write_text("\n".join(CLASSES) + "\n")
    (folder / "attributes_vocab.txt").write_text("\n".join(ATTRIBUTES) + "\n")


def picture(seed: int = 0) -> Image.Image:
    """Return a picture of noise."""
    pixels = torch.randint(0, 256, (48, 40, 3), generator=torch.Generator().manual_seed(seed))
    return Image.fromarray(pixels.to(torch.uint8).numpy())
