"""Time the permutation test beside SciPy's and a plain loop, on the same scores in one run.

Run as ``python -m tools.benchmarks.permutation``. Prints one JSON record a line: one for each size,
and for each method the exponent of its growth with the number of targets.
"""

import json
import random
import statistics
import time

import numpy as np
from scipy import stats

from biaslib.inference import permutation_test
from tools.benchmarks import head

SIZES = (8, 25, 80, 400)
N_PARTITIONS = 100_000


def ours(x, y):
    """Return the p-value of the package."""
    return permutation_test(x, y).p_value


def scipy_resampled(x, y, n_resamples=N_PARTITIONS):
    """Return SciPy's p-value from random partitions, vectorised."""
    result = stats.permutation_test(
        (x, y),
        lambda first, second, axis: first.mean(axis=axis) - second.mean(axis=axis),
        vectorized=True,
        alternative="greater",
        n_resamples=n_resamples,
        batch=2_000,
        random_state=np.random.default_rng(0),
    )
    return result.pvalue


def plain_loop(x, y, n_partitions=N_PARTITIONS):
    """Shuffle, split, sum and compare, one partition after the other, as sent-bias does."""
    score = dict(enumerate([*x.tolist(), *y.tolist()]))
    observed = sum(x.tolist()) - sum(y.tolist())
    shuffler, names, hits = random.Random(0), list(score), 1
    for _ in range(n_partitions - 1):
        shuffler.shuffle(names)
        first, second = names[: len(x)], names[len(x) :]
        hits += sum(score[n] for n in first) - sum(score[n] for n in second) >= observed
    return hits / n_partitions


def seconds_of(function, x, y, repeats):
    """Return the median time of a call and what it returned."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        p_value = function(x, y)
        times.append(time.perf_counter() - started)
    return statistics.median(times), float(p_value)


def growth(sizes, seconds):
    """Return the slope of log seconds over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main(sizes=SIZES, n_partitions=N_PARTITIONS):
    """Print the table."""
    rows = []
    for size in sizes:
        rng = np.random.default_rng(size)
        x, y = rng.normal(0.3, 1.0, size), rng.normal(0.0, 1.0, size)
        result = permutation_test(x, y)
        own, p_value = seconds_of(ours, x, y, repeats=9)
        scipys, scipy_p = seconds_of(lambda a, b: scipy_resampled(a, b, n_partitions), x, y, 1)
        loop, loop_p = seconds_of(lambda a, b: plain_loop(a, b, n_partitions), x, y, 1)
        rows.append(
            {
                "measure": "time",
                "targets_a_side": size,
                "method": result.method,
                "p": float(f"{p_value:.4g}"),
                "p_scipy": float(f"{scipy_p:.4g}"),
                "p_loop": float(f"{loop_p:.4g}"),
                "biaslib_ms": round(1e3 * own, 2),
                "scipy_ms": round(1e3 * scipys, 1),
                "loop_ms": round(1e3 * loop, 1),
                "scipy_ratio": round(scipys / own),
                "loop_ratio": round(loop / own),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    for name in ("biaslib_ms", "scipy_ms", "loop_ms"):
        exponent = round(growth(sizes, [row[name] for row in rows]), 2)
        print(json.dumps({"measure": "growth", "of": head(name), "exponent": exponent}))


if __name__ == "__main__":
    main()
