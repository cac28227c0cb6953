"""Models of the published sizes with random weights, saved as their official repositories are.

Vocabularies have the published sizes; all but a few words of them are stand-ins.
"""

import json
from pathlib import Path

import open_clip
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SEED = 0
HALF = [0.5] * 3
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [
    *("the", "a", "an", "woman", "man", "is", "nurse", "pilot", "doctor", "old", "here", "."),
    *("carrying", "bag", "in", "street", "city", "photo", "of"),
]


def bert_base(folder: Path) -> None:
    """Write google-bert/bert-base-uncased."""
    _save(folder, transformers.BertForMaskedLM, transformers.BertConfig(), wordpiece())


def bert_large(folder: Path) -> None:
    """Write google-bert/bert-large-uncased."""
    config = transformers.BertConfig(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16
    )
    _save(folder, transformers.BertForMaskedLM, config, wordpiece())


def roberta_base(folder: Path) -> None:
    """Write FacebookAI/roberta-base."""
    config = transformers.RobertaConfig(
        vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5
    )
    _save(folder, transformers.RobertaForMaskedLM, config, byte_pairs())


def visualbert(folder: Path) -> None:
    """Write uclanlp/visualbert-vqa-coco-pre."""
    config = transformers.VisualBertConfig(visual_embedding_dim=2048)
    _save(folder, transformers.VisualBertForPreTraining, config, wordpiece())


def lxmert(folder: Path) -> None:
    """Write unc-nlp/lxmert-base-uncased."""
    _save(folder, transformers.LxmertForPreTraining, transformers.LxmertConfig(), wordpiece())


def vilt(folder: Path) -> None:
    """Write dandelin/vilt-b32-mlm with the matching head of the authors' own file."""

    class Vilt(transformers.ViltForMaskedLM):
        def __init__(self, config):
            super().__init__(config)
            self.itm_score = torch.nn.Module()
            self.itm_score.fc = torch.nn.Linear(config.hidden_size, 2)

    processor = transformers.ViltImageProcessor(image_mean=HALF, image_std=HALF)
    _save(folder, Vilt, transformers.ViltConfig(), wordpiece(), processor)


def clip(folder: Path) -> None:
    """Write openai/clip-vit-base-patch32."""
    text = {"bos_token_id": 49406, "eos_token_id": 49407}
    config = transformers.CLIPConfig(text_config=text)
    processor = transformers.CLIPImageProcessor()
    _save(folder, transformers.CLIPModel, config, clip_tokenizer(), processor)


def siglip(folder: Path) -> None:
    """Write google/siglip-base-patch16-224."""
    config = transformers.SiglipConfig()
    size = {"height": 224, "width": 224}
    processor = transformers.SiglipImageProcessor(size=size, image_mean=HALF, image_std=HALF)
    _save(folder, transformers.SiglipModel, config, sentence_pieces(), processor)


def flava(folder: Path) -> None:
    """Write facebook/flava-full, its image codebook included."""
    config, processor = transformers.FlavaConfig(), transformers.FlavaImageProcessor()
    _save(folder, transformers.FlavaForPreTraining, config, wordpiece(), processor)


def open_clip_h14(folder: Path, size: str = "ViT-H-14") -> None:
    """Write laion/CLIP-ViT-H-14-laion2B-s32B-b79K, or another of OpenCLIP's sizes."""
    torch.manual_seed(SEED)
    config = open_clip.get_model_config(size)
    model = open_clip.create_model(size, pretrained=None)
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    written = {"model_cfg": config, "preprocess_cfg": open_clip.get_model_preprocess_cfg(model)}
    (folder / "open_clip_config.json").write_text(json.dumps(written), encoding="utf-8")


def vl_bert_base(folder: Path) -> None:
    """Write vl-bert-base-prec.model."""
    _vl_bert(folder, "base")


def vl_bert_large(folder: Path) -> None:
    """Write vl-bert-large-prec.model."""
    large = {"hidden_size": 1024, "num_hidden_layers": 24}
    large |= {"num_attention_heads": 16, "intermediate_size": 4096}
    _vl_bert(folder, "large", **large)


def _vl_bert(folder: Path, size: str, **settings: int) -> None:
    from biaslib.models.networks.vl_bert import VlBertNetwork

    _as_authors_do(folder / f"vl-bert-{size}-prec.model", VlBertNetwork, **settings)


def vilbert(folder: Path) -> None:
    """Write pretrained_model.bin."""
    from biaslib.models.networks.vilbert import VilbertNetwork

    _as_authors_do(folder / "pretrained_model.bin", VilbertNetwork)


def albef(folder: Path) -> None:
    """Write ALBEF.pth, without what training alone uses."""
    from biaslib.models.networks.albef import AlbefNetwork

    _as_authors_do(folder / "ALBEF.pth", AlbefNetwork)


def albef_coco(folder: Path) -> None:
    """Write mscoco.pth, without what training alone uses."""
    from biaslib.models.networks.albef import AlbefNetwork

    _as_authors_do(folder / "mscoco.pth", AlbefNetwork, image_size=384, masked_words=False)


def _as_authors_do(path: Path, network: type, **settings: object) -> None:
    torch.manual_seed(SEED)
    built = network(network.config_class(**settings))
    torch.save({"state_dict": built.state_dict()}, path)
    wordpiece().save_pretrained(path.parent)


def _save(folder: Path, network, config, tokenizer, image_processor=None) -> None:
    torch.manual_seed(SEED)
    transformers.utils.logging.disable_progress_bar()
    network(config).save_pretrained(folder, max_shard_size="100GB")
    tokenizer.save_pretrained(folder)
    if image_processor is not None:
        image_processor.save_pretrained(folder)


def wordpiece() -> transformers.PreTrainedTokenizerBase:
    """Return a tokenizer of uncased BERT's kind and size."""
    tokens = _filled([*SPECIALS, *WORDS], 30522)
    return transformers.BertTokenizer(vocab=tokens, model_max_length=512)


def byte_pairs() -> transformers.PreTrainedTokenizerBase:
    """Return a tokenizer of RoBERTa's kind and size, of single letters."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = _filled(["<s>", "<pad>", "</s>", "<unk>", *letters], 50264) | {"<mask>": 50264}
    return transformers.RobertaTokenizer(vocab=tokens, merges=[], model_max_length=512)


def clip_tokenizer() -> transformers.PreTrainedTokenizerBase:
    """Return CLIP's own tokenizer, from the copy that OpenCLIP carries."""
    own = open_clip.tokenizer.SimpleTokenizer()
    new = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
    tokens = {new.get(token, token): number for token, number in own.encoder.items()}
    merges = sorted(own.bpe_ranks, key=own.bpe_ranks.get)
    return transformers.CLIPTokenizer(vocab=tokens, merges=merges, model_max_length=77)


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
