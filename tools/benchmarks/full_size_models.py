"""Models of the published sizes with random weights, in memory or as their repositories are.

Vocabularies have the published sizes; all but a few words of them are stand-ins.
"""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from plantedworld.models.checkpoints import checkpoint
from tools.benchmarks.full_size import WORDS

SIZES = json.loads(Path(__file__).with_name("sizes.json").read_text(encoding="utf-8"))
PUBLISHED, TINY = SIZES["published"], SIZES["tiny"]
"""By family: published sizes that no class has as its defaults, and what makes a network tiny."""

SEED = 0
HALF = [0.5] * 3
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())


class Parts(NamedTuple):
    """What a model is made of; ``file`` is the authors' one file, where that is their layout."""

    network: type
    config: Any
    tokenizer: Callable[[], Any]
    processor: Any = None
    file: str = ""

    def built(self, device: str = "cpu") -> torch.nn.Module:
        """Return the network on a device, with random weights."""
        torch.manual_seed(SEED)
        with torch.device(device):
            return self.network(self.config)

    def write(self, folder: Path, device: str = "cpu") -> None:
        """Write network, tokenizer and image processor as their official repository has them.

        The random weights are drawn on the device: a card draws a billion in no time.
        """
        self.tokenizer().save_pretrained(folder)
        network = self.built(device).cpu()
        if self.file:
            torch.save({"state_dict": network.state_dict()}, folder / self.file)
            return
        transformers.utils.logging.disable_progress_bar()
        network.save_pretrained(folder, max_shard_size="100GB")
        if self.processor is not None:
            self.processor.save_pretrained(folder)


def bert_base(**settings: int) -> Parts:
    """google-bert/bert-base-uncased."""
    return Parts(transformers.BertForMaskedLM, transformers.BertConfig(**settings), wordpiece)


def bert_large() -> Parts:
    """google-bert/bert-large-uncased."""
    config = transformers.BertConfig(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16
    )
    return Parts(transformers.BertForMaskedLM, config, wordpiece)


def roberta_base() -> Parts:
    """FacebookAI/roberta-base."""
    config = transformers.RobertaConfig(
        vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5
    )
    return Parts(transformers.RobertaForMaskedLM, config, byte_pairs)


def visualbert(**settings: int) -> Parts:
    """uclanlp/visualbert-vqa-coco-pre."""
    config = transformers.VisualBertConfig(visual_embedding_dim=2048, **settings)
    return Parts(transformers.VisualBertForPreTraining, config, wordpiece)


def lxmert(**settings: int) -> Parts:
    """unc-nlp/lxmert-base-uncased."""
    config = transformers.LxmertConfig(**settings)
    return Parts(transformers.LxmertForPreTraining, config, wordpiece)


def vilt(**settings: int) -> Parts:
    """dandelin/vilt-b32-mlm with the matching head of the authors' own file."""

    class Vilt(transformers.ViltForMaskedLM):
        def __init__(self, config):
            super().__init__(config)
            self.itm_score = torch.nn.Module()
            self.itm_score.fc = torch.nn.Linear(config.hidden_size, 2)

    processor = transformers.ViltImageProcessor(image_mean=HALF, image_std=HALF)
    return Parts(Vilt, transformers.ViltConfig(**settings), wordpiece, processor)


def clip(text: dict | None = None, vision: dict | None = None, **settings: int) -> Parts:
    """openai/clip-vit-base-patch32."""
    ends = {"bos_token_id": 49406, "eos_token_id": 49407}
    config = transformers.CLIPConfig(
        text_config=ends | (text or {}), vision_config=vision or {}, **settings
    )
    processor = transformers.CLIPImageProcessor()
    return Parts(transformers.CLIPModel, config, clip_tokenizer, processor)


def clip_h14(text: dict | None = None, vision: dict | None = None) -> Parts:
    """laion/CLIP-ViT-H-14-laion2B-s32B-b79K, as transformers reads it."""
    of_text = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24}
    of_vision = {"hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32}
    both = {"num_attention_heads": 16, "hidden_act": "gelu", "projection_dim": 1024}
    of_text, of_vision = of_text | both, of_vision | both | {"patch_size": 14}
    return clip(of_text | (text or {}), of_vision | (vision or {}), projection_dim=1024)


def siglip() -> Parts:
    """google/siglip-base-patch16-224."""
    config = transformers.SiglipConfig()
    size = {"height": 224, "width": 224}
    processor = transformers.SiglipImageProcessor(size=size, image_mean=HALF, image_std=HALF)
    return Parts(transformers.SiglipModel, config, sentence_pieces, processor)


def flava(**settings: Any) -> Parts:
    """facebook/flava-full, its image codebook included unless ``init_codebook`` is false."""
    config = transformers.FlavaConfig(**settings)
    processor = transformers.FlavaImageProcessor()
    return Parts(transformers.FlavaForPreTraining, config, wordpiece, processor)


def vl_bert_base(**settings: int) -> Parts:
    """vl-bert-base-prec.model."""
    return _of_authors("vl-bert-base-prec.model", "vl_bert", "VlBertNetwork", **settings)


def vl_bert_large() -> Parts:
    """vl-bert-large-prec.model."""
    large = {"hidden_size": 1024, "num_hidden_layers": 24}
    large |= {"num_attention_heads": 16, "intermediate_size": 4096}
    return _of_authors("vl-bert-large-prec.model", "vl_bert", "VlBertNetwork", **large)


def vilbert(**settings: Any) -> Parts:
    """pretrained_model.bin."""
    return _of_authors("pretrained_model.bin", "vilbert", "VilbertNetwork", **settings)


def albef(**settings: int) -> Parts:
    """ALBEF.pth, without what training alone uses."""
    return _of_authors("ALBEF.pth", "albef", "AlbefNetwork", **settings)


def albef_coco() -> Parts:
    """mscoco.pth, without what training alone uses."""
    return _of_authors("mscoco.pth", "albef", "AlbefNetwork", image_size=384, masked_words=False)


def _of_authors(file: str, module: str, name: str, **settings: Any) -> Parts:
    network = getattr(importlib.import_module(f"biaslib.models.networks.{module}"), name)
    return Parts(network, network.config_class(**settings), wordpiece, file=file)


def llava(text: dict | None = None, vision: dict | None = None) -> Parts:
    """A LLaVA of TinyLlama 1.1B and CLIP ViT-L/14 of 336 pixels, with the planted one's words."""
    sizes = PUBLISHED["llava"]
    processor = transformers.AutoProcessor.from_pretrained(checkpoint("llava", 3, 2100))
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**sizes["vision"] | (vision or {})),
        text_config=transformers.LlamaConfig(**sizes["text"] | (text or {})),
        image_token_index=processor.tokenizer.convert_tokens_to_ids("<image>"),
    )
    processor.tokenizer.model_max_length = config.text_config.max_position_embeddings
    for name, value in sizes["processor"].items():
        setattr(processor, name, value)
    processor.image_processor.size = dict.fromkeys(("height", "width"), 336)
    network = transformers.LlavaForConditionalGeneration
    return Parts(network, config, lambda: processor.tokenizer, processor)


class Detector(NamedTuple):
    """unc-nlp/frcnn-vg-finetuned, with the settings of its file as far as they are known."""

    settings: dict[str, Any]

    def write(self, folder: Path, device: str = "cpu") -> None:
        """Write weights, drawn on the device, and settings."""
        from biaslib.pictures.faster_rcnn import FasterRcnn, FasterRcnnConfig

        torch.manual_seed(SEED)
        with torch.device(device):
            network = FasterRcnn(FasterRcnnConfig(self.settings))
        save_file(network.cpu().state_dict(), folder / "model.safetensors")
        (folder / "config.yaml").write_text(json.dumps(self.settings), encoding="utf-8")


def detector(**settings: dict[str, Any]) -> Detector:
    """unc-nlp/frcnn-vg-finetuned, with other settings in some sections."""
    published = PUBLISHED["detector"]
    return Detector(published | {name: published[name] | settings[name] for name in settings})


class OpenClip(NamedTuple):
    """One of OpenCLIP's sizes, as its repositories are."""

    size: str

    def write(self, folder: Path) -> None:
        """Write weights and settings."""
        import open_clip

        torch.manual_seed(SEED)
        config = open_clip.get_model_config(self.size)
        model = open_clip.create_model(self.size, pretrained=None)
        save_file(model.state_dict(), folder / "open_clip_model.safetensors")
        written = {"model_cfg": config, "preprocess_cfg": open_clip.get_model_preprocess_cfg(model)}
        (folder / "open_clip_config.json").write_text(json.dumps(written), encoding="utf-8")


def open_clip_h14(size: str = "ViT-H-14") -> OpenClip:
    """laion/CLIP-ViT-H-14-laion2B-s32B-b79K, or another of OpenCLIP's sizes."""
    return OpenClip(size)


def wordpiece() -> transformers.PreTrainedTokenizerBase:
    """Return a tokenizer of uncased BERT's kind and size."""
    tokens = _filled([*SPECIALS, *WORDS], 30522)
    return transformers.BertTokenizer(vocab=tokens, model_max_length=512)


def byte_pairs() -> transformers.PreTrainedTokenizerBase:
    """Return a tokenizer of RoBERTa's kind and size, of single letters."""
    tokens = _filled(["<s>", "<pad>", "</s>", "<unk>", *LETTERS], 50264) | {"<mask>": 50264}
    return transformers.RobertaTokenizer(vocab=tokens, merges=[], model_max_length=512)


def clip_tokenizer() -> transformers.PreTrainedTokenizerBase:
    """Return a tokenizer of CLIP's kind and size, of single letters."""
    letters = [f"{letter}{end}" for letter in LETTERS for end in ("", "</w>")]
    tokens = _filled(letters, 49406) | {"<|startoftext|>": 49406, "<|endoftext|>": 49407}
    return transformers.CLIPTokenizer(vocab=tokens, merges=[], model_max_length=77)


def sentence_pieces() -> transformers.PreTrainedTokenizerBase:
    """Return a tokenizer of SigLIP's size, of whole words, which ends a text as SigLIP's does."""
    tokens = _filled(["</s>", "<unk>", *WORDS], 32000)
    tokenizer = Tokenizer(models.WordLevel(tokens, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokens["</s>"])]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="</s>",
        eos_token="</s>",
        model_max_length=64,
    )


def _filled(tokens: list[str], size: int) -> dict[str, int]:
    tokens = [*tokens, *(f"[unused{number}]" for number in range(size - len(tokens)))]
    return {token: number for number, token in enumerate(tokens)}
