"""Time C-ASC and top-k of 408 words x 97,698 images x 1,024 dimensions x 23 groups.

Run as ``python -m tools.benchmarks.caption_association`` on an idle machine. Prints one JSON record
a line: what was measured, at which size, and how. On the same inputs, in turns:

- product: ``text @ image.T`` in float32, without which no method can do;
- c_asc and top_k: :func:`biaslib.metrics.caption_association.c_asc`, and the nearest 100 images
  with who they show, on its result;
- loop: word by word, one product, mask and sort at a time; timed for some words and multiplied.
"""

import argparse
import json
import os
import time

import numpy as np

from biaslib.metrics import caption_association

WORDS, IMAGES, DIMENSIONS, GROUPS, TOP_K = 408, 97_698, 1_024, 23, 100
WORDS_OF_THE_LOOP = 8


def inputs(n_images: int, seed: int = 0):
    """Return text, image and groups, of unit length; cosines lie in a narrow band, as CLIP's do."""
    rng = np.random.default_rng(seed)
    text = rng.standard_normal((WORDS, DIMENSIONS), dtype=np.float32)
    image = np.empty((n_images, DIMENSIONS), np.float32)
    rng.standard_normal(out=image, dtype=np.float32)
    image += text.mean(axis=0)
    for rows in (text, image):
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return text, image, rng.random((n_images, GROUPS)) < 0.2


def word_by_word(text, image, groups):
    """Do what a first version does: return C-ASC and counts of the words given."""
    scores, counts = [], []
    for caption in text:
        cosines = image @ caption
        spread = cosines.std(ddof=1)
        scores.append([(cosines[g].mean() - cosines[~g].mean()) / spread for g in groups.T])
        counts.append(groups[np.argsort(-cosines)[:TOP_K]].sum(axis=0))
    return np.array(scores), np.array(counts)


def retrieved(similarities, groups):
    """Return who is among the nearest images."""
    top = caption_association.top_k(similarities, TOP_K)
    return caption_association.top_k_composition(top, groups)


def seconds(call) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def timings(n_images: int, repeats: int) -> dict:
    """Return one record of times and of their ratio to the product within each round."""
    text, image, groups = inputs(n_images)
    table = text @ image.T
    calls = {
        "product": lambda: text @ image.T,
        "c_asc": lambda: caption_association.c_asc(table, groups),
        "top_k": lambda: retrieved(table, groups),
    }
    for call in calls.values():
        call()
    turns = [{name: seconds(call) for name, call in calls.items()} for _ in range(repeats)]
    times = {name: np.array([turn[name] for turn in turns]) for name in calls}
    ratios = sum(times.values()) / times["product"]
    return {
        "measure": "time",
        "n_images": n_images,
        **{f"{name}_seconds": round(float(np.median(each)), 4) for name, each in times.items()},
        "ratio_median": round(float(np.median(ratios)), 2),
        "ratio_low": round(float(ratios.min()), 2),
        "ratio_high": round(float(ratios.max()), 2),
        "repeats": repeats,
    }


def loop(n_images: int) -> dict:
    """Return the time of the loop, extrapolated from a few words, and how far the results lie."""
    text, image, groups = inputs(n_images)
    few = text[:WORDS_OF_THE_LOOP]
    start = time.perf_counter()
    scores, counts = word_by_word(few, image, groups)
    elapsed = time.perf_counter() - start
    similarities = few @ image.T
    difference = np.abs(scores - caption_association.c_asc(similarities, groups)).max()
    return {
        "measure": "loop",
        "n_images": n_images,
        "words_timed": WORDS_OF_THE_LOOP,
        "seconds_extrapolated": round(elapsed * WORDS / WORDS_OF_THE_LOOP, 1),
        "largest_difference_in_c_asc": float(f"{difference:.1e}"),
        "counts_that_differ": int((counts != retrieved(similarities, groups).counts).sum()),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    setting = {"words": WORDS, "dimensions": DIMENSIONS, "groups": GROUPS, "top_k": TOP_K}
    load = {"cpus": os.cpu_count(), "load_average": os.getloadavg()[0], "numpy": np.__version__}
    print(json.dumps({"measure": "setting", **setting, **load}))
    for parts in (16, 4, 1):
        print(json.dumps(timings(options.images // parts, options.repeats)), flush=True)
    print(json.dumps(loop(options.images)))


if __name__ == "__main__":
    main()
