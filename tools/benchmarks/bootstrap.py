"""Time the bootstrap of an effect size over words against a loop and against SciPy.

Run as ``python -m tools.benchmarks.bootstrap``. All three resample the words of four sets; ours
draws one set at a time, a quarter of the resamples each. Prints one JSON record a line.
"""

import json
import time

import numpy as np
from scipy import stats

from biaslib import inference
from biaslib.metrics.association import cosines, effect_size
from tools.benchmarks import head

SENTENCES, DIMENSIONS, RESAMPLES, LOOPED = 6, 384, 2_000, 100


def inputs(words: int, seed: int = 0):
    """Return embeddings of four sets, several sentences a word."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(words * SENTENCES, DIMENSIONS)) for _ in range(4)]


def ours(sets, words):
    """Return the interval by weights, cosines computed once and included in the time."""
    targets = np.concatenate(sets[:2])
    units = np.repeat(np.arange(words), SENTENCES)
    tables = cosines(targets, sets[2]), cosines(targets, sets[3])
    return inference.bootstrap_effect_size(*tables, *[units] * 4, n_resamples=RESAMPLES // 4, rng=0)


def drawn(rows, chosen):
    """Return the sentences of the chosen words."""
    return rows.reshape(-1, SENTENCES, DIMENSIONS)[chosen].reshape(-1, DIMENSIONS)


def loop(sets, words):
    """Do what a first version does: draw words, copy embeddings, compute everything anew."""
    rng = np.random.default_rng(0)
    choices = rng.integers(words, size=(LOOPED, 4, words))
    return [
        effect_size(*(drawn(rows, each) for rows, each in zip(sets, four, strict=True)))
        for four in choices
    ]


def scipys(sets, words):
    """Let SciPy resample word numbers; the statistic is computed anew each time."""

    def statistic(*chosen):
        return effect_size(*(drawn(r, c.astype(int)) for r, c in zip(sets, chosen, strict=True)))

    return stats.bootstrap(
        [np.arange(words)] * 4,
        statistic,
        n_resamples=LOOPED,
        vectorized=False,
        method="percentile",
        random_state=np.random.default_rng(0),
    )


def seconds(call, *arguments) -> float:
    """Return the least of three times."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure and print."""
    records = []
    for words in (8, 16, 32):
        sets = inputs(words)
        fast = seconds(ours, sets, words)
        slow, library = (seconds(call, sets, words) * RESAMPLES / LOOPED for call in (loop, scipys))
        records.append(
            {
                "measure": "time",
                "words_a_set": words,
                "biaslib_ms": round(1e3 * fast, 1),
                "loop_ms": round(1e3 * slow, 1),
                "scipy_ms": round(1e3 * library, 1),
                "loop_ratio": round(slow / fast, 1),
                "scipy_ratio": round(library / fast, 1),
            }
        )
        print(json.dumps(records[-1]), flush=True)
    sizes = np.log([record["words_a_set"] for record in records])
    slope = np.polyfit(sizes, np.log([record["biaslib_ms"] for record in records]), 1)[0]
    print(
        json.dumps(
            {"measure": "growth", "of": head("biaslib_ms"), "exponent": round(float(slope), 2)}
        )
    )


if __name__ == "__main__":
    main()
