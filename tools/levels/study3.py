"""Study 3: intervals of C-ASC, and of shares of those retrieved; p-values of C-ASC.

Scores are normal but where they are called skewed: exponential. What the k retrieved of n show is
held to its mean over data of this size.
"""

import numpy as np

from biaslib import inference
from biaslib.studies.study3_clip_audit import c_asc_intervals, unit_means, welch_p_values
from tools.levels import coverage, levels

RESAMPLES, BATCHES = 400, 8


def rows(seed: int, runs: int) -> list[dict]:
    found = []
    for n_in, n_out, shift, each in C_ASC:
        rng = np.random.default_rng([seed, n_in, n_out, each])
        found += _c_asc(n_in, n_out, shift, each, runs, rng, seed)
    for n_in, n_out in SKEWED:
        found += _skewed(n_in, n_out, runs, np.random.default_rng([seed, n_in, n_out]), seed)
    for each in (1, 2, 5):
        found += _over_people(each, runs, np.random.default_rng([seed, each]), seed)
    for n, k in TOP:
        found += _top(n, k, runs, np.random.default_rng([seed, n, k]), seed)
    return found


C_ASC = [
    *((n // 2, n // 2, shift, 1) for n in (10, 20, 30, 60) for shift in (0.0, 0.6, 2.0)),
    (5, 35, 0.6, 1),
    (10, 190, 0.6, 1),
    (8, 12, 0.6, 5),
]
"""People in the group and outside it, how far apart they are, and portraits of each."""

TOP = [(10, 2), (20, 4), (30, 6), (60, 6), (60, 12), (200, 40), (400, 20)]
"""People, and how many of them are retrieved."""


def _scores(inside, shift: float, runs: int, rng):
    return rng.normal(size=(runs, len(inside))) + shift * (inside - 0.5)


def _c_asc(n_in, n_out, shift, each, runs, rng, seed) -> list[dict]:
    n, people = n_in + n_out, np.arange(n_in + n_out).repeat(each)
    members = (people < n_in)[:, None]
    ends = []
    for _ in range(BATCHES):
        scores = _scores(members[::each, 0], shift, -(-runs // BATCHES), rng).repeat(each, axis=1)
        scores += 0.5 * rng.normal(size=scores.shape) * (each > 1)
        settings = (members, people, 1, RESAMPLES, rng.integers(2**32))
        ends.append(np.stack(c_asc_intervals(scores, *settings))[1:, :, 0])
    low, high = np.concatenate(ends, axis=1)[:, :runs]
    share = n_in / n
    spread = 1.0 + 0.25 * (each > 1) + shift**2 * share * (1 - share)
    truth = shift / np.sqrt(spread)
    portraits = f", {each} portraits of each" if each > 1 else ""
    of = (f"C-ASC of {truth:.2f}", f"{n_in} and {n_out} people{portraits}")
    return [coverage("bootstrap_c_asc", *of, low, high, truth, seed)]


SKEWED = [(4, 26), (8, 192), (20, 20), (20, 180), (40, 160), (200, 7_800)]
"""People in the group and outside it, of the same exponential scores."""


def _skewed(n_in: int, n_out: int, runs: int, rng, seed: int) -> list[dict]:
    people = np.arange(n_in + n_out)
    members, (low, high), p_values = (people < n_in)[:, None], ([], []), []
    for _ in range(BATCHES):
        scores = rng.exponential(size=(-(-runs // BATCHES), len(people)))
        p_values.append(welch_p_values(scores, members)[:, 0])
        if len(people) > 1_000:
            continue  # Intervals of thousands of people take minutes.
        ends = c_asc_intervals(scores, members, people, 1, RESAMPLES, rng.integers(2**32))
        low.append(ends[1][:, 0])
        high.append(ends[2][:, 0])
    of, n = "skewed scores, C-ASC of 0", f"{n_in} and {n_out} people"
    found = levels("welch_p_values", of, n, np.concatenate(p_values)[:runs], seed)
    if low:
        ends = (np.concatenate(each)[:runs] for each in (low, high))
        found.append(coverage("bootstrap_c_asc", of, n, *ends, 0.0, seed))
    return found


def _over_people(each: int, runs: int, rng, seed: int) -> list[dict]:
    """Return the level of Welch's test of people with several portraits, half of them a group."""
    units = np.arange(60).repeat(each)
    scores = rng.normal(size=(runs, 60)).repeat(each, axis=1) + rng.normal(size=(runs, 60 * each))
    p_values = welch_p_values(*unit_means(scores, units[:, None] < 30, units))[:, 0]
    n = f"30 and 30 people, {each} portraits of each"
    return levels("welch_p_values", "means of a person's portraits", n, p_values, seed)


def _top(n: int, k: int, runs: int, rng, seed: int) -> list[dict]:
    inside = np.arange(n) < n // 2
    members = np.stack([inside, ~inside], axis=1)
    many = np.argsort(-_scores(inside, 0.6, 20_000, rng), axis=1)[:, :k]
    truth, ends = inside[many].mean(), []
    for _ in range(BATCHES):
        ranking = np.argsort(-_scores(inside, 0.6, -(-runs // BATCHES), rng), axis=1)
        interval = inference.bootstrap_top_k(ranking, members, k, n_resamples=RESAMPLES, rng=rng)
        ends.append(np.stack([interval.low[..., 0], interval.high[..., 0]]))
    low, high = np.concatenate(ends, axis=1)[:, :runs]
    return [coverage("bootstrap_top_k", "share", f"{k} of {n}", low, high, truth, seed)]
