"""Intervals of study 4: vlrs, vlbs and ivlas, means of shifts, and differences of two models.

Images of a triplet share what is odd about its captions; each triplet has four, half of them
anti-stereotypical.
"""

import numpy as np

from biaslib import inference
from biaslib.metrics.caption_selection import ivlas, selection_scores
from biaslib.studies.study4_captions import mean_interval
from tools.levels import coverage

IMAGES, RESAMPLES = 4, 400
NAMES = ("vlrs", "vlbs", "ivlas")
CAPTIONS = {"often relevant": (0.2, 0.0, -1.0), "nearly always relevant": (-1.5, 0.5, -3.0)}
"""How high the stereotypical, the anti-stereotypical and the meaningless caption score."""


def rows(seed: int, runs: int) -> list[dict]:
    found = []
    for n in (5, 8, 10, 20, 30, 80):
        for condition, centre in CAPTIONS.items():
            found += _selection(n, condition, centre, runs, np.random.default_rng([seed, n]), seed)
        found += _shifts(n, runs, np.random.default_rng([seed, n, 1]), seed)
    return found


def _scores(n: int, centre, runs: int, rng):
    """Return scores of three captions, (runs, n, images, 3)."""
    odd = rng.normal(size=(runs, n, 1, 3)) * (1.0, 0.0, 0.7)
    return np.array(centre) + odd + rng.normal(size=(runs, n, IMAGES, 3))


def _selection(n, condition, centre, runs, rng, seed) -> list[dict]:
    picked = _scores(250_000, centre, 1, rng).argmax(-1)
    vlrs, vlbs = 100 * (picked != 2).mean(), 100 * (picked == 0).mean()
    truths = {"vlrs": vlrs, "vlbs": vlbs, "ivlas": ivlas(vlrs, vlbs)}
    anti, triplets = np.tile([True, False], n * IMAGES // 2), np.arange(n).repeat(IMAGES)
    ends = {name: [] for name in NAMES}
    for scores in _scores(n, centre, runs, rng):
        sets = selection_scores(scores.reshape(-1, 3), anti, require_relevant=False)["overall"]
        for name in NAMES:
            interval = inference.bootstrap_selection(
                sets, triplets, name, n_resamples=RESAMPLES, rng=0
            )
            ends[name].append((interval.low, interval.high))
    found = []
    for name, each in ends.items():
        low, high = np.array(each).T
        of = ("bootstrap_selection", f"{name}, {condition}", f"{n} triplets")
        found.append(coverage(*of, low, high, truths[name], seed))
    return found


def _shifts(n: int, runs: int, rng, seed: int) -> list[dict]:
    """Return the intervals of the mean and the share above 0, and of a difference of two models."""
    triplets = np.arange(n).repeat(IMAGES)
    values = rng.normal(size=(runs, n, 1)) + rng.normal(size=(runs, n, IMAGES))
    values = values.reshape(runs, -1)
    above = 100.0 * (values > 0)
    second = 100.0 * (values + rng.normal(size=values.shape) > 0)
    cases = {
        "mean of shifts": (values, {}),
        "% positive": (above, {"within": (0.0, 100.0)}),
        "difference of two models": (above - second, {"limit": 100.0}),
    }
    truths = {"% positive": 50.0}
    found = []
    for name, (each, bounds) in cases.items():
        ends = [mean_interval(one, triplets, RESAMPLES, 0, **bounds)[1:] for one in each]
        low, high = np.array(ends).T
        of = ("study 4, mean_interval", name, f"{n} triplets")
        found.append(coverage(*of, low, high, truths.get(name, 0.0), seed))
    return found
