"""Time batches by length beside batches as given, and the store beside computing again.

Run as ``python -m tools.benchmarks.encoders``. BERT has the base size and random weights. Prints
one JSON record a line: ``bucketing``, ``store``.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers

from biaslib.models.bert import Bert
from biaslib.runtime import Store
from biaslib.runtime.batches import run_in_batches

BATCH = 16
N_TEXTS = 48
REPEATS = 3
WORDS = [f"word{number}" for number in range(500)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


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
    print(json.dumps(bucketing()), flush=True)
    print(json.dumps(store()), flush=True)


if __name__ == "__main__":
    main()
