"""The statistics of study 1 as the released code of Ross, Katz and Barbu (2021) computes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from biaslib import inference
from biaslib.metrics.grounded import GroundedResult

SAMPLED_ABOVE = 20
"""Targets of X up to which the code means to count every partition (weat_images_union.py:140)."""

SAMPLES = 100_000
"""Of its configurations: one less is drawn, and one is added to both counts (:146)."""


def asked(masking: str, level: str, experiments: Sequence[int]) -> Sequence[int]:
    """Return which experiments it runs: with masks Experiment 1 (bias_test.py:270), on sentences.

    The paper says that the masked runs are those of Experiment 2.

    Examples
    --------
    >>> asked("none", "word", (1, 2)), asked("words", "sentence", (2, 3))
    ((1, 2), (1,))
    """
    if masking == "none":
        return experiments
    return (1,) if level == "sentence" else ()


def rows(result: GroundedResult, p: dict[str, Any]) -> list[dict[str, Any]]:
    """Return statistic, value and p-value: one row, or one a target set for Experiment 3.

    Experiment 3 is not half the sum of absolute values that the paper prints, but a signed effect
    size of each target set (weat_images_intra_targ.py:180).
    """
    if result.experiment == 3:
        halves = {"X": result.x_effect, "Y": result.y_effect}
        return [
            {"statistic": f"effect size of {name}", "value": d} | p for name, d in halves.items()
        ]
    return [{"statistic": "effect size", "value": result.effect_size} | p]


def p_values(results: Sequence[GroundedResult], seed: int) -> list[dict[str, Any]]:
    """Return the one-sided p-value of each result over items, ties counted.

    Above 20 targets it is sampled, all tests of one size with the same shuffles; up to 20 it is
    that of all partitions, where the code stops with an error. The longer target set is cut to the
    length of the shorter (weat_images_union.py:97), in Experiment 2 too, where the code stops.
    Experiment 3's is 1 whatever the data, since the sampled statistic is never compared with the
    observed one (weat_images_intra_targ.py:111-139).
    """
    found: list[dict[str, Any]] = [{"p_value": 1.0, "p_method": "never evaluated"} for _ in results]
    sizes = [min(len(each.x_scores), len(each.y_scores)) for each in results]
    for n in set(sizes):
        rows = [at for at, each in enumerate(results) if sizes[at] == n and each.experiment < 3]
        cut = [(results[at].x_scores[:n], results[at].y_scores[:n]) for at in rows]
        of_size = (
            _sampled(cut, seed)
            if n > SAMPLED_ABOVE and cut
            else (_exact(each, seed) for each in cut)
        )
        for at, each in zip(rows, of_size, strict=True):
            found[at] = each
    return found


def _sampled(tests: Sequence[tuple[np.ndarray, np.ndarray]], seed: int) -> list[dict[str, Any]]:
    x, y = (np.stack(each) for each in zip(*tests, strict=True))
    p = inference.permutation_p_values(x, y, n_resamples=SAMPLES, rng=seed)
    reached = np.rint(p * SAMPLES).astype(int) - 1
    drawn = [inference.proportion_interval(int(each), SAMPLES - 1) for each in reached]
    return [_described(q, s.low, s.high, "sampled") for q, s in zip(p, drawn, strict=True)]


def _exact(test: tuple[np.ndarray, np.ndarray], seed: int) -> dict[str, Any]:
    found = inference.permutation_test(*test, rng=seed)
    return _described(found.p_value, found.low, found.high, found.method)


def _described(p: float, low: float, high: float, method: str) -> dict[str, Any]:
    return {"p_value": float(p), "p_low": low, "p_high": high, "p_method": method}
