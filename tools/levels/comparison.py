"""Reports on two models: how often they claim a difference, on labels dealt by coin and planted.

The words of a list share a direction, with :math:`\\rho` the correlation of their scores over
pictures, or are those of the audit's captions by the real all-MiniLM-L6-v2. Pictures, one of each
of 60 people, are vectors at random; of a model that was tuned from the other one they correlate by
.7. A report claims something if one of its seven pairs of lists is below .05 after Holm's
correction. What is planted, the models' difference in C-ASC, is in career against family words; it
counts where it is claimed as if no other pair was.
"""

import numpy as np
import pandas
from scipy import stats

from biaslib import inference, models
from biaslib.audit import LISTS, differences, listed_captions, word_sides
from biaslib.audit.nulls import standardised
from tools.levels import row

PEOPLE, RUNS, DIMENSIONS = 60, 400, 48
TOGETHER = (0.05, 0.1, 0.2, 0.34)
PLANTED = (0.3, 0.6, 1.0)


def rows(seed: int, runs: int) -> list[dict]:
    table, runs = listed_captions(), min(runs, RUNS)
    real = models.load("all-MiniLM-L6-v2", profile="planted").embed(table["caption"].tolist())
    real = _unit(np.asarray(real, dtype=float))
    conditions = {f"words of a list correlate by {rho:g}": (rho, 0.0) for rho in TOGETHER}
    conditions |= {"captions by all-MiniLM-L6-v2": (real, 0.0)}
    conditions |= {"words of a list correlate by 0.34, one model tuned from the other": (0.34, 0.7)}
    found = []
    for condition, (words, related) in conditions.items():
        for planted in (0.0, *PLANTED):
            rng = np.random.default_rng([seed, round(10 * planted)])
            claimed = [_report(words, related, planted, table, rng) for _ in range(runs)]
            what = (f"{condition}; a difference of {planted:g}", "60 people, 7 pairs of lists")
            if not planted:
                what = (f"{condition}; labels by coin", what[1])
            quantity = "power" if planted else "level"
            found.append(row("audit.compare", *what, quantity, 0.05, claimed, seed))
    return found


def _report(words, related: float, planted: float, table, rng) -> bool:
    """Say whether anything is claimed; where something is planted, whether that is, as if alone."""
    inside = rng.permutation(PEOPLE) % 2 == 0
    texts = [words if np.ndim(words) else _texts(words, table, rng) for _ in range(2)]
    if related:
        texts[1] = texts[0]
    shown = [rng.normal(size=(PEOPLE, texts[0].shape[1])) for _ in range(2)]
    shown[1] = related * shown[0] + np.sqrt(1 - related**2) * shown[1]
    scores = [of @ _unit(pictures).T for of, pictures in zip(texts, shown, strict=True)]
    scores[0] = scores[0] + _effect(scores[0], planted, table, inside)
    z = [standardised(each) for each in scores]
    asked = _perhaps(z[0] - z[1], table, inside)
    if planted:
        asked = asked & (table["bias_type"] == LISTS[0][0])
    listed, people = table[asked], np.arange(PEOPLE)
    found = differences(*(each[asked] for each in z), listed, inside, people, 0).values()
    p_values = [each["p_value"] for each in found] + [1.0] * (len(LISTS) - len(found))
    return bool((inference.adjust(p_values, "holm") < 0.05).any())


def _perhaps(apart: np.ndarray, table: pandas.DataFrame, inside: np.ndarray) -> pandas.Series:
    """Say which captions are of pairs of lists that might be claimed, which saves most of the time.

    A claim needs p < .05 / 7 by people, far below .03 by Student's t over the same 60 of them.
    """
    found = {}
    for name, (first, second) in word_sides(apart, table).items():
        t = first.mean(axis=0) - second.mean(axis=0)
        found[name] = stats.ttest_ind(t[inside], t[~inside]).pvalue < 0.03
    return table["bias_type"].map(found)


def _texts(rho: float, table: pandas.DataFrame, rng) -> np.ndarray:
    lists = pandas.factorize(table["bias_type"] + table["kind"])[0]
    shared = rng.normal(size=(lists.max() + 1, DIMENSIONS))[lists]
    own = rng.normal(size=(len(table), DIMENSIONS))
    return _unit(np.sqrt(rho) * shared + np.sqrt(1 - rho) * own)


def _effect(scores: np.ndarray, planted: float, table: pandas.DataFrame, inside) -> np.ndarray:
    """Return what makes the lists' mean C-ASC differ so much; it adds to a word's spread, too."""
    of_list = (table["bias_type"] == LISTS[0][0]) * np.where(table["kind"] == "0", 0.5, -0.5)
    size = planted / np.sqrt(1 - planted**2 / 16) * scores.std(axis=1)
    return np.outer(of_list * size, inside - 0.5)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
