"""Intervals of effect sizes, and of means over words and people."""

import numpy as np

from biaslib import inference
from biaslib.audit.nulls import contrast, portrait_contrast, standardised
from tools.levels import coverage

RESAMPLES = 400


def rows(seed: int, runs: int) -> list[dict]:
    found = []
    for n in (4, 5, 8, 12, 25):
        found.append(_effect_sizes(n, 0.8, 2.0, runs, seed))
        for shift in (0.0, 0.8, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0):
            found.append(_effect_sizes(n, shift, 0.5, runs, seed))
    for sizes in ((5, 5), (10, 10), (6, 20)):
        found += [_differences(sizes, kind, runs, seed) for kind in ("normal", "exponential")]
    found.append(_portraits(runs, seed))
    return found


def _effect_sizes(n, shift, noise, runs, seed) -> dict:
    """Targets are near to A and far from B by a number of their own, attributes add noise."""
    rng = np.random.default_rng([seed, n, int(10 * shift), int(10 * noise)])
    words, ends = [range(n)] * 4, []
    for _ in range(runs):
        own = rng.normal(np.repeat([shift / 2, -shift / 2], n))[:, None]
        near, far = (by * own + noise * rng.normal(size=(2 * n, n)) for by in (1, -1))
        found = inference.bootstrap_effect_size(near, far, *words, n_resamples=RESAMPLES, rng=rng)
        ends.append((found.low, found.high))
    truth = 2 * shift / np.sqrt(4 + 2 * noise**2 / n + shift**2)
    condition = f"d of {truth:.2f}, attributes differ by {noise:g} of what targets do"
    return coverage(
        "bootstrap_effect_size", condition, f"{n} words a set", *np.transpose(ends), truth, seed
    )


def _differences(sizes, kind: str, runs: int, seed: int) -> dict:
    rng = np.random.default_rng([seed, *sizes])
    draw = rng.normal if kind == "normal" else rng.exponential
    found = [contrast(*(draw(size=n) for n in sizes), RESAMPLES, at) for at in range(runs)]
    ends = [[each[name] for each in found] for name in ("low", "high")]
    n = "{} and {} words".format(*sizes)
    return coverage("contrast", f"difference of two means, {kind}", n, *ends, 0.0, seed)


def _portraits(runs: int, seed: int) -> dict:
    rng, ends = np.random.default_rng([seed, 40]), []
    for at in range(runs):
        shared = rng.normal(size=40)
        lists = [0.7 * by * shared + rng.normal(size=(8, 40)) for by in (1, -1)]
        found = portrait_contrast(
            *map(standardised, lists), np.arange(40) < 20, np.arange(40), RESAMPLES, at
        )
        ends.append((found["low"], found["high"]))
    n = "8 and 8 words, 40 people"
    condition = "no difference, words go together"
    return coverage("portrait_contrast", condition, n, *np.transpose(ends), 0.0, seed)
