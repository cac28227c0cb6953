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


def rows(result: GroundedResult, seed: int, p_values: bool) -> list[dict[str, Any]]:
    """Return statistic, value and p-value: one row, or one a target set for Experiment 3.

    Experiment 3 is not half the sum of absolute values that the paper prints, but a signed effect
    size of each target set (weat_images_intra_targ.py:180). Its p-value is 1 whatever the data,
    since the sampled statistic is never compared with the observed one (:111-139).
    """
    if result.experiment == 3:
        halves = {"X": result.x_effect, "Y": result.y_effect}
        p = {"p_value": 1.0, "p_method": "never evaluated"} if p_values else {}
        return [
            {"statistic": f"effect size of {name}", "value": d} | p for name, d in halves.items()
        ]
    row = {"statistic": "effect size", "value": result.effect_size}
    return [row | (p_value(result.x_scores, result.y_scores, seed) if p_values else {})]


def p_value(x: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the one-sided p-value over items, ties counted.

    Above 20 targets it is sampled; up to 20 it is that of all partitions, where the code stops with
    an error. The longer target set is cut to the length of the shorter (weat_images_union.py:97),
    in Experiment 2 too, where the code stops.
    """
    n = min(len(x), len(y))
    method = {"method": "sampled", "n_resamples": SAMPLES} if n > SAMPLED_ABOVE else {}
    found = inference.permutation_test(x[:n], y[:n], rng=seed, **method)
    return {
        "p_value": found.p_value,
        "p_low": found.low,
        "p_high": found.high,
        "p_method": found.method,
    }
