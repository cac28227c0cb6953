"""Time C-ASC with top-k for 408 words x 97,698 images x 1,024 dimensions x 23 groups.

Run as ``python -m benchmarks.caption_association`` on an idle machine: under load the many short
products of the pass suffer more than one long product. Prints one JSON record a line: what was
measured, at which size, and how. Four things are compared on the same inputs, in turns:

- product: ``text @ image.T`` in float32, its table of results allocated anew, as one writes it;
  product_reused: the same into a table that exists already, so that no memory has to be found;
- given: :func:`biaslib.metrics.caption_association.c_asc` alone, on given similarities;
- audit: :func:`biaslib.metrics.caption_association.audit`, normalising included;
- loop: word by word, one product, mask and sort at a time; timed for some words and multiplied.
"""

import argparse
import json
import os
import resource
import time
import tracemalloc

import numpy as np

from benchmarks import head
from biaslib.metrics import caption_association

WORDS, IMAGES, DIMENSIONS, GROUPS, TOP_K = 408, 97_698, 1_024, 23, 100
WORDS_OF_THE_LOOP = 8


def inputs(n_images: int, seed: int = 0):
    """Return text, image and groups; cosines lie in a narrow band, as CLIP's do."""
    rng = np.random.default_rng(seed)
    text = rng.standard_normal((WORDS, DIMENSIONS), dtype=np.float32)
    image = np.empty((n_images, DIMENSIONS), np.float32)
    rng.standard_normal(out=image, dtype=np.float32)
    image += text.mean(axis=0)
    return text, image, rng.random((n_images, GROUPS)) < 0.2


def word_by_word(text, image, groups):
    """Do what a first version does: return C-ASC and counts of the words given."""
    lengths = np.linalg.norm(image, axis=1)
    scores, counts = [], []
    for caption in text:
        cosines = image @ (caption / np.linalg.norm(caption)) / lengths
        spread = cosines.std(ddof=1)
        scores.append([(cosines[g].mean() - cosines[~g].mean()) / spread for g in groups.T])
        counts.append(groups[np.argsort(-cosines)[:TOP_K]].sum(axis=0))
    return np.array(scores), np.array(counts)


def seconds(call) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rounds(n_images: int, repeats: int) -> dict[str, list[float]]:
    """Time product and audit in turns: seconds of every round, by method."""
    text, image, groups = inputs(n_images)
    table = np.empty((WORDS, n_images), np.float32)
    calls = {
        "product": lambda: text @ image.T,
        "product_reused": lambda: np.matmul(text, image.T, out=table),
        "given": lambda: caption_association.c_asc(table, groups),
        "audit": lambda: caption_association.audit(text, image, groups, TOP_K),
    }
    for call in calls.values():
        call()
    turns = [{name: seconds(call) for name, call in calls.items()} for _ in range(repeats)]
    return {name: [turn[name] for turn in turns] for name in calls}


def timings(n_images: int, repeats: int) -> dict:
    """Return one record of times and of the ratio within each round."""
    times = {name: np.array(values) for name, values in rounds(n_images, repeats).items()}
    medians = {
        f"{name}_seconds": round(float(np.median(values)), 4) for name, values in times.items()
    }
    ratios = times["audit"] / times["product"]
    return {
        "measure": "time",
        "n_images": n_images,
        **medians,
        "ratio_median": round(float(np.median(ratios)), 2),
        "ratio_low": round(float(ratios.min()), 2),
        "ratio_high": round(float(ratios.max()), 2),
        "ratio_of_fastest": round(float(times["audit"].min() / times["product"].min()), 2),
        "ratio_to_reused_median": round(
            float(np.median(times["audit"] / times["product_reused"])), 2
        ),
        "ratio_of_given_median": round(float(np.median(times["given"] / times["product"])), 2),
        "repeats": repeats,
    }


def loop(n_images: int) -> dict:
    """Return the time of the loop, extrapolated from a few words, and how far the results lie."""
    text, image, groups = inputs(n_images)
    few = text[:WORDS_OF_THE_LOOP]
    start = time.perf_counter()
    scores, counts = word_by_word(few, image, groups)
    elapsed = time.perf_counter() - start
    result = caption_association.audit(few, image, groups, TOP_K)
    return {
        "measure": "loop",
        "n_images": n_images,
        "words_timed": WORDS_OF_THE_LOOP,
        "seconds_extrapolated": round(elapsed * WORDS / WORDS_OF_THE_LOOP, 1),
        "largest_difference_in_c_asc": float(f"{np.abs(scores - result.c_asc).max():.1e}"),
        "counts_that_differ": int((counts != result.composition.counts).sum()),
    }


def memory(n_images: int) -> dict:
    """Return the memory that the audit takes beyond its arguments, in bytes."""
    text, image, groups = inputs(n_images)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    caption_association.audit(text, image, groups, TOP_K)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    caption_association.audit(text, image, groups, TOP_K)
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "measure": "memory",
        "n_images": n_images,
        "traced_bytes": traced,
        "resident_bytes": (after - before) * 1024,
        "all_similarities_would_take": 4 * WORDS * n_images,
    }


def growth(records: list[dict], name: str) -> dict:
    """Return the exponent of time against the number of images, by least squares on logs."""
    sizes = np.log([record["n_images"] for record in records])
    times = np.log([record[name] for record in records])
    slope = np.polyfit(sizes, times, 1)[0]
    return {"measure": "growth", "of": head(name), "exponent": round(float(slope), 2)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    setting = {"words": WORDS, "dimensions": DIMENSIONS, "groups": GROUPS, "top_k": TOP_K}
    load = {"cpus": os.cpu_count(), "load_average": os.getloadavg()[0], "numpy": np.__version__}
    print(json.dumps({"measure": "setting", **setting, **load}))
    print(json.dumps(memory(options.images)), flush=True)
    records = []
    for parts in (16, 8, 4, 2, 1):
        records.append(timings(options.images // parts, options.repeats))
        print(json.dumps(records[-1]), flush=True)
    for name in ("product_seconds", "audit_seconds"):
        print(json.dumps(growth(records, name)))
    print(json.dumps(loop(options.images)))


if __name__ == "__main__":
    main()
