"""Time adapters beside bare loops of forward passes, batches by length, and the store.

Run as ``python -m benchmarks.encoders``. Models have the base size of their papers and random
weights. Prints one JSON record a line: ``overhead`` for each adapter, ``bucketing``, ``store``.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import transformers

from biaslib.models._batches import batch_order, run_in_batches
from biaslib.models.bert import Bert
from biaslib.models.clip import encoder_of
from biaslib.models.dual import ContrastiveEncoder
from biaslib.models.fusion import FusionModel
from biaslib.models.lxmert import Lxmert
from biaslib.models.regions import RegionFeatures
from biaslib.models.visualbert import VisualBert
from biaslib.runtime import Store

BATCH = 16
N_TEXTS = 48
N_IMAGES = 48
REPEATS = 3
WORDS = [f"word{number}" for number in range(500)]
RANDOM = ("base size", "random weights", "cpu")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class Pair(NamedTuple):
    """An adapter and the bare loop over the same batches, both ready to be called."""

    adapter: Callable
    bare: Callable


def mixed_texts(n: int, seed: int = 0) -> list[str]:
    """Return texts of 3 to 80 words, short ones more often, as captions and sentences mix."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.uniform(np.log(3), np.log(80), n)).astype(int)
    return [" ".join(rng.choice(WORDS, size=length)) for length in lengths]


def tokenizer_of_made_up_words(longest: int) -> transformers.BertTokenizerFast:
    """Return a tokenizer that knows the words of :func:`mixed_texts`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join([*SPECIAL, *WORDS]), encoding="utf-8")
        return transformers.BertTokenizerFast(str(path), model_max_length=longest)


def base_bert() -> Bert:
    """Return BERT-base with random weights."""
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(transformers.BertConfig())
    return Bert(model, tokenizer_of_made_up_words(512), "bert", "random", "cpu")


def base_clip() -> ContrastiveEncoder:
    """Return CLIP of ViT-B/32 with random weights."""
    torch.manual_seed(0)
    model = transformers.CLIPModel(transformers.CLIPConfig())
    processor = transformers.CLIPImageProcessor()
    return encoder_of(model, tokenizer_of_made_up_words(77), processor, "clip", "random", "cpu")


def ready_batches(tokenizer, texts: list[str]) -> list:
    """Return texts as tensors, in the batches that an adapter makes of them."""
    counts = np.array([len(ids) for ids in tokenizer(texts)["input_ids"]])
    order = np.argsort(-counts, kind="stable")
    parts = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
    return [
        tokenizer([texts[row] for row in part], padding=True, return_tensors="pt") for part in parts
    ]


def bert_embed() -> Pair:
    """BERT's ``[CLS]`` states of sentences."""
    bert, texts = base_bert(), mixed_texts(N_TEXTS)
    batches = ready_batches(bert.tokenizer, texts)
    return Pair(
        lambda: bert.embed(texts, batch_size=BATCH),
        lambda: [bert.model(**inputs) for inputs in batches],
    )


def bert_masks() -> Pair:
    """BERT's probabilities of twenty words at a mask."""
    bert, texts = base_bert(), [f"{text} [MASK]" for text in mixed_texts(N_TEXTS)]
    batches = ready_batches(bert.tokenizer, texts)
    return Pair(
        lambda: bert.mask_log_prob(texts, WORDS[:20], batch_size=BATCH),
        lambda: [bert.masked_lm(**inputs) for inputs in batches],
    )


def clip_pictures() -> Pair:
    """CLIP's vectors of pictures, normalised by workers; the bare loop has pixel values ready."""
    clip, rng = base_clip(), np.random.default_rng(0)
    images = rng.integers(0, 255, (N_IMAGES, 224, 224, 3), np.uint8)
    prepared = np.stack([clip.prepare(image) for image in images])
    batches = [prepared[at : at + BATCH] for at in range(0, N_IMAGES, BATCH)]
    return Pair(
        lambda: clip.encode_image(images, batch_size=BATCH),
        lambda: [clip.encode_batch_of_images(batch) for batch in batches],
    )


def visualbert_embed() -> Pair:
    """VisualBERT's ``[CLS]`` states of sentences with 36 regions each."""
    torch.manual_seed(0)
    config = transformers.VisualBertConfig(visual_embedding_dim=2048)
    network = transformers.VisualBertForPreTraining(config)
    return fusion_pair(VisualBert(network, tokenizer_of_made_up_words(512), *RANDOM), regions())


def lxmert_embed() -> Pair:
    """LXMERT's ``[CLS]`` states of sentences with 36 regions each."""
    torch.manual_seed(0)
    network = transformers.LxmertForPreTraining(transformers.LxmertConfig())
    return fusion_pair(Lxmert(network, tokenizer_of_made_up_words(512), *RANDOM), regions())


def regions() -> RegionFeatures:
    """Return 36 regions a text, as detectors give them."""
    rng, shape = np.random.default_rng(0), (N_TEXTS, 36)
    corners = np.concatenate([rng.random((*shape, 2)) / 2, 0.6 + rng.random((*shape, 2)) / 3], -1)
    real, nobody = np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool)
    sizes = np.full((N_TEXTS, 2), 640)
    return RegionFeatures(rng.exponential(size=(*shape, 2048)), corners, real, nobody, sizes)


def fusion_pair(model: FusionModel, images: RegionFeatures) -> Pair:
    """Return a fusion model's embeddings and its bare passes, whose tensors are ready."""
    texts = mixed_texts(N_TEXTS)
    lengths = np.array([len(ids) for ids in model.tokenizer(texts)["input_ids"]])
    order = batch_order(lengths)
    parts = [order[at : at + BATCH] for at in range(0, N_TEXTS, BATCH)]
    prepared = model.prepare(images)
    batches = [
        (
            model.tokenizer([texts[row] for row in part], padding=True, return_tensors="pt"),
            model.visual(prepared, part, None),
        )
        for part in parts
    ]
    keep = ("input_ids", "attention_mask")
    inputs = [({name: tokens[name] for name in keep}, visual) for tokens, visual in batches]
    model.batch_size = BATCH
    return Pair(
        lambda: model.embed(texts, images),
        lambda: [model.forward(tokens, visual) for tokens, visual in inputs],
    )


ADAPTERS: dict[str, Callable[[], Pair]] = {
    "bert, embed": bert_embed,
    "bert, mask_log_prob": bert_masks,
    "clip, encode_image": clip_pictures,
    "visualbert, embed": visualbert_embed,
    "lxmert, embed": lxmert_embed,
}
"""A further adapter is a line here and a function that returns its pair."""


def seconds_of(function: Callable) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    with torch.inference_mode():
        function()
    return time.perf_counter() - started


def side_by_side(first: Callable, second: Callable) -> tuple[float, float]:
    """Return the median seconds of two functions that take turns, after a first turn each."""
    turns = [(seconds_of(first), seconds_of(second)) for _ in range(REPEATS + 1)][1:]
    return tuple(statistics.median(each) for each in zip(*turns, strict=True))


def overhead(name: str) -> dict:
    """Return how much longer an adapter takes than the forward passes within it."""
    adapter, bare = side_by_side(*ADAPTERS[name]())
    return {
        "measure": "overhead",
        "adapter": name,
        "rows_a_batch": BATCH,
        "adapter_s": round(adapter, 3),
        "bare_loop_s": round(bare, 3),
        "overhead_percent": round(100 * (adapter / bare - 1), 1),
    }


def bucketing() -> dict:
    """Return what it pays to put texts of like length together."""
    bert, texts = base_bert(), mixed_texts(N_TEXTS)
    counts = bert.token_counts(texts)

    def run(rows: np.ndarray) -> np.ndarray:
        return bert._pool(*bert._hidden_states([texts[row] for row in rows]))

    def by_length() -> np.ndarray:
        return run_in_batches(counts, run, BATCH)

    def as_given() -> np.ndarray:
        return run_in_batches(np.ones(len(texts)), run, BATCH)

    bucketed, given = side_by_side(by_length, as_given)
    return {
        "measure": "bucketing",
        "texts": len(texts),
        "shortest": int(counts.min()),
        "longest": int(counts.max()),
        "rows_a_batch": BATCH,
        "by_length_s": round(bucketed, 3),
        "as_given_s": round(given, 3),
        "times_faster": round(given / bucketed, 2),
        "largest_difference": f"{np.abs(by_length() - as_given()).max():.0e}",
    }


def store() -> dict:
    """Return what it pays to encode once: the same rows computed, and read again."""
    bert, texts = base_bert(), mixed_texts(N_TEXTS)
    key = {"model": bert.name, "revision": bert.revision, "output": "sentence"}

    with tempfile.TemporaryDirectory() as folder:

        def rows() -> np.ndarray:
            return Store(folder).rows(
                key, texts, lambda which: bert.embed([texts[at] for at in which], batch_size=BATCH)
            )

        first, again = seconds_of(rows), statistics.median(seconds_of(rows) for _ in range(5))
    return {
        "measure": "store",
        "texts": len(texts),
        "computed_s": round(first, 3),
        "read_again_s": round(again, 4),
        "times_faster": round(first / again),
    }


def main() -> None:
    """Print the records."""
    for name in ADAPTERS:
        print(json.dumps(overhead(name)), flush=True)
    print(json.dumps(bucketing()), flush=True)
    print(json.dumps(store()), flush=True)


if __name__ == "__main__":
    main()
