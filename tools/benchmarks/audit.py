"""Time the audit's scoring of captions beside a plain loop over transformers, on one CPU thread.

Run as ``python -m tools.benchmarks.audit [width captions pictures]``. Two models of random weights
read the captions and drawn pictures of study 4 in the planted world: a dual encoder, and one that
writes and is asked for the likelihood of every caption beside every picture. They are the tiny CLIP
and the tiny LLaVA with six layers of a given width. The audit's side has its checks, its batches
and its store, which is empty each time; the plain loop has the same batches, and what somebody
would write who needs it once. Both take turns and have to say the same; seconds are the process's
own. Prints one JSON record a line.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers

from biaslib import models, runtime
from biaslib.audit import _parts
from biaslib.models.generative import PROMPTS
from biaslib.pictures.images import Pictures, pictures
from biaslib.studies import study4_captions as selection
from plantedworld.models.checkpoints import checkpoint
from tools.benchmarks import loops

WIDTH, CAPTIONS, PICTURES, TURNS = 384, 32, 16, 5
LAYERS = 6
CLOSE = 1e-3


def widened(name: str, kind: type, folder: Path, width: int, seed: int) -> Path:
    """Write a planted checkpoint's files with a network of random weights and another width."""
    tiny = checkpoint(name, 0, seed)
    config = transformers.AutoConfig.from_pretrained(tiny)
    for part in (config.text_config, config.vision_config):
        part.hidden_size, part.intermediate_size = width, 4 * width
        part.num_hidden_layers, part.num_attention_heads = LAYERS, width // 64
        if hasattr(part, "head_dim"):
            part.head_dim, part.num_key_value_heads = 64, width // 64
    config.dtype = "float32"
    torch.manual_seed(0)
    kind(config).save_pretrained(folder)
    for path in tiny.iterdir():
        if path.name not in ("config.json", "card.json") and path.suffix != ".safetensors":
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def asked(captions: int, shown: int) -> tuple[list[str], Pictures]:
    """Return captions of study 4, each another one, and pictures in memory."""
    given = selection.inputs("planted")
    said = list(dict.fromkeys(given.table[selection.CAPTIONS].to_numpy().ravel()))
    drawn = [np.asarray(given.images[at]) for at in range(shown)]
    return [each.lower() for each in said[:captions]], pictures(np.stack(drawn))


def audits(model, head: str, said: list[str], shown: Pictures) -> Callable[[], np.ndarray]:
    """Return the audit's side: scores of captions (rows) and pictures, from an empty store."""

    def scores() -> np.ndarray:
        with tempfile.TemporaryDirectory() as place:
            return _parts.similarities(model, head, shown, said, runtime.Store(place))

    return scores


def dual(folder: Path, said: list[str], shown: Pictures) -> Callable[[], np.ndarray]:
    """Return the plain loop over a dual encoder of transformers."""
    network = transformers.CLIPModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    processor = transformers.CLIPImageProcessorPil.from_pretrained(folder)

    @torch.inference_mode()
    def scores() -> np.ndarray:
        tokens = tokenizer(said, padding=True, return_tensors="pt")
        pixels = processor(images=[np.asarray(each) for each in shown], return_tensors="pt")
        text = network.get_text_features(**tokens).pooler_output
        image = network.get_image_features(**pixels).pooler_output
        unit = [torch.nn.functional.normalize(each, dim=-1) for each in (text, image)]
        return (unit[0] @ unit[1].T).numpy()

    return scores


def writes(folder: Path, said: list[str], shown: Pictures) -> Callable[[], np.ndarray]:
    """Return the plain loop over a model that writes: a prefix a picture, and all captions."""
    network = transformers.LlavaForConditionalGeneration.from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    prompt = PROMPTS.describe
    content = [{"type": "image"}, {"type": "text", "text": prompt}]
    told = processor.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    ids = [processor.tokenizer(f" {each}", add_special_tokens=False)["input_ids"] for each in said]
    longest = max(map(len, ids))
    padded = torch.tensor([each + [0] * (longest - len(each)) for each in ids])
    real = torch.tensor([[1] * len(each) + [0] * (longest - len(each)) for each in ids])

    @torch.inference_mode()
    def scores() -> np.ndarray:
        return np.stack([of_picture(np.asarray(each)) for each in shown], axis=1)

    def of_picture(picture: np.ndarray) -> np.ndarray:
        options = {"return_tensors": "pt", "add_special_tokens": False}
        inputs = processor(text=[told], images=[picture], **options)
        read = network(**inputs, use_cache=True, logits_to_keep=1)
        read.past_key_values.batch_repeat_interleave(len(said))
        before = torch.ones(len(said), inputs["input_ids"].shape[1], dtype=torch.long)
        later = network(
            input_ids=padded[:, :-1],
            attention_mask=torch.cat([before, real[:, :-1]], dim=1),
            past_key_values=read.past_key_values,
        ).logits
        first = read.logits[:, -1:].expand(len(said), -1, -1)
        log_p = torch.cat([first, later], dim=1).log_softmax(-1)
        each = log_p.gather(-1, padded[:, :, None])[:, :, 0] * real
        return (each.sum(dim=1) / real.sum(dim=1)).numpy()

    return scores


WAYS = {
    "dual encoder": ("clip", transformers.CLIPModel, 0, "contrastive", dual),
    "model that writes": (
        *("llava", transformers.LlavaForConditionalGeneration, 2100, "matching", writes),
    ),
}
"""By kind of model: checkpoint, network, seed of its world, how it is asked, and the plain loop."""


def measured(kind: str, width: int, captions: int, shown: int) -> dict:
    """Return the record of a kind of model."""
    name, network, seed, head, plain = WAYS[kind]
    said, seen = asked(captions, shown)
    with tempfile.TemporaryDirectory() as place:
        folder = widened(name, network, Path(place), width, seed)
        model = models.load(str(folder), device="cpu")
        public, bare = audits(model, head, said, seen), plain(folder, said, seen)
        apart = np.abs(public() - bare()).max()
        if not apart < CLOSE:
            raise ArithmeticError(f"the plain loop says something else, {apart:.1e} away")
        found = loops.in_turns(public, bare, time.process_time, TURNS)
    size = {"measure": "time", "kind": kind, "width": width}
    return size | {"captions": captions, "pictures": shown, "turns": TURNS} | found


def main(sizes: list[int]) -> None:
    """Print the records."""
    torch.set_num_threads(1)
    for kind in WAYS:
        print(json.dumps(measured(kind, *sizes)), flush=True)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [WIDTH, CAPTIONS, PICTURES])
