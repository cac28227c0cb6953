"""Tiny generative models with random weights, saved as the hub's repositories are."""

from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

WORDS = "the a woman man is nurse pilot doctor Describe picture in one sentence yes no A B C . ?"
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
TEXT = SIZES | {"num_key_value_heads": 2, "max_position_embeddings": 1024}
SIDE, PATCH = 32, 16
LLAVA = (
    "{% for m in messages %}{{ 'USER: ' if m['role'] == 'user' else ' ASSISTANT: ' }}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>\n{% else %}"
    "{{ c['text'] }}{% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %} ASSISTANT:{% endif %}"
)
QWEN = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA = (
    "<s>{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<|image|>{% else %}"
    "{{ c['text'] }}{% endif %}{% endfor %}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
IDEFICS = (
    "<|im_start|>{% for m in messages %}{{ 'User:' if m['role'] == 'user' else 'Assistant: ' }}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>{% else %}"
    "{{ c['text'] }}{% endif %}{% endfor %}"
    "<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)


def tokenizer(*special: str, **named: str) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer that knows a few words whole and spells all others."""
    vocabulary = ["<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = []
    for word in WORDS.split():
        pieces = ["Ġ", *word]
        while len(pieces) > 1:
            merges.append((pieces[0], pieces[1]))
            pieces = [pieces[0] + pieces[1], *pieces[2:]]
            vocabulary.append(pieces[0])
    numbers = {each: number for number, each in enumerate(dict.fromkeys(vocabulary))}
    made = Tokenizer(models.BPE(vocab=numbers, merges=list(dict.fromkeys(merges))))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    ends = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    found = PreTrainedTokenizerFast(tokenizer_object=made, **ends, extra_special_tokens=named)
    found.add_tokens(list(special), special_tokens=True)
    return found


def _save(folder: Path, network, processor) -> Path:
    """Write a repository whose weights are large enough for pictures to matter."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6)
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def llava(
    folder: Path, control: tuple[str, ...] = (), image: str = "<image>", known: bool = True
) -> Path:
    """Write a LLaVA 1.5; its tokenizer may lack the token that stands for pictures."""
    words = tokenizer(*[image] * known, *control)
    vision = transformers.CLIPVisionConfig(**SIZES, image_size=SIDE, patch_size=PATCH)
    config = transformers.LlavaConfig(
        vision_config=vision,
        text_config=transformers.LlamaConfig(**TEXT, vocab_size=len(words)),
        image_token_index=words.convert_tokens_to_ids(image) if known else len(words) - 1,
    )
    sides = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    processor = transformers.LlavaProcessor(
        transformers.CLIPImageProcessor(**sides),
        words,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=LLAVA,
    )
    return _save(folder, transformers.LlavaForConditionalGeneration(config), processor)


def qwen(folder: Path) -> Path:
    """Write a Qwen2.5-VL, which counts the places of a picture in three directions."""
    special = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>")
    words = tokenizer(*special, "<|image_pad|>", "<|video_pad|>")
    number = words.convert_tokens_to_ids
    config = transformers.Qwen2_5_VLConfig(
        vision_config={
            **{"depth": 2, "hidden_size": 32, "out_hidden_size": 32, "intermediate_size": 48},
            **{"num_heads": 4, "patch_size": 14, "fullatt_block_indexes": [1]},
        },
        text_config=TEXT
        | {
            "vocab_size": len(words),
            "rope_parameters": {
                "rope_type": "default",
                "mrope_section": [1, 1, 2],
                "rope_theta": 1e4,
            },
        },
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
    )
    pixels = {"min_pixels": 28 * 28 * 4, "max_pixels": 28 * 28 * 16}
    processor = transformers.Qwen2_5_VLProcessor(
        transformers.Qwen2VLImageProcessor(**pixels),
        words,
        transformers.Qwen2VLVideoProcessor(),
        chat_template=QWEN,
    )
    return _save(folder, transformers.Qwen2_5_VLForConditionalGeneration(config), processor)


def idefics(folder: Path) -> Path:
    """Write an Idefics 3, which is what SmolVLM is."""
    special = ("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
    words = tokenizer(
        *special, "<|im_start|>", *(f"<row_{r}_col_{c}>" for r in (1, 2) for c in (1, 2))
    )
    vision = SIZES | {"image_size": SIDE, "patch_size": 8}
    config = transformers.Idefics3Config(
        vision_config=vision,
        text_config=transformers.LlamaConfig(**TEXT, vocab_size=len(words)),
        image_token_id=words.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    pictures = transformers.Idefics3ImageProcessor(
        size={"longest_edge": SIDE}, max_image_size={"longest_edge": SIDE}
    )
    processor = transformers.Idefics3Processor(
        pictures, words, image_seq_len=4, chat_template=IDEFICS
    )
    return _save(folder, transformers.Idefics3ForConditionalGeneration(config), processor)


def gemma(folder: Path) -> Path:
    """Write a Gemma 3, whose pictures see all of themselves and whose layers slide."""
    named = {
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
        "image_token": "<image_soft_token>",
    }
    words = tokenizer(**named)
    number = words.convert_tokens_to_ids
    vision = SIZES | {"image_size": SIDE, "patch_size": 8, "model_type": "siglip_vision_model"}
    text = TEXT | {"vocab_size": len(words), "head_dim": 8, "sliding_window": 512}
    config = transformers.Gemma3Config(
        vision_config=vision,
        text_config=text,
        image_token_index=number("<image_soft_token>"),
        boi_token_index=number("<start_of_image>"),
        eoi_token_index=number("<end_of_image>"),
        mm_tokens_per_image=4,
    )
    network = transformers.Gemma3ForConditionalGeneration(config)
    torch.nn.init.normal_(network.model.multi_modal_projector.mm_input_projection_weight)
    pictures = transformers.Gemma3ImageProcessor(size={"height": SIDE, "width": SIDE})
    processor = transformers.Gemma3Processor(
        pictures,
        words,
        chat_template=LLAVA.replace("<image>", "<start_of_image>"),
        image_seq_length=4,
    )
    return _save(folder, network, processor)


def mllama(folder: Path) -> Path:
    """Write a Llama 3.2 Vision, whose text looks at pictures through a mask with a row a token."""
    torch.manual_seed(0)
    ends = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>")
    words = tokenizer(*ends, image_token="<|image|>")
    tiles = [[high, wide] for high in range(1, 5) for wide in range(1, 5) if high * wide <= 4]
    config = transformers.MllamaConfig(
        vision_config={
            **{"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
            **{"num_global_layers": 1, "attention_heads": 4, "num_attention_heads": 4},
            **{"image_size": SIDE, "patch_size": PATCH, "vision_output_dim": 96},
            **{"intermediate_layers_indices": [0, 1], "supported_aspect_ratios": tiles},
        },
        text_config=TEXT
        | {"vocab_size": len(words), "num_hidden_layers": 3, "cross_attention_layers": [1]}
        | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
        image_token_index=words.image_token_id,
    )
    network = transformers.MllamaForConditionalGeneration(config)
    for name, parameter in network.named_parameters():
        if "gate" in name:
            torch.nn.init.ones_(parameter)
    size = {"height": SIDE, "width": SIDE}
    pictures = transformers.MllamaImageProcessor(size=size, max_image_tiles=4)
    return _save(folder, network, transformers.MllamaProcessor(pictures, words, LLAMA))


BUILDERS: dict[str, Callable[..., Path]] = {
    "llava": llava,
    "qwen2_5_vl": qwen,
    "idefics3": idefics,
    "gemma3": gemma,
}


def build(name: str, folder: Path, *given: object) -> Path:
    """Write the repository of a kind of model into a folder, and return it."""
    torch.manual_seed(0)
    return BUILDERS[name](folder, *given)
