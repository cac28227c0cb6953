r"""Whether scores recover what was planted, by statistics that can fail.

A correlation with the truth over all words is high as soon as a score knows which words go with
women and which with men: the signs alone reach .87. So a recovery is judged by the slope of scores
on truths, in log-odds, and by the rank correlation *within* words of one sign, of which a score
that knows signs alone has 0. Units are worlds: an interval says what another world would give.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas
from scipy import stats

from plantedworld.studies.measures import EQUIVALENCE, mean_over_seeds

__all__ = [
    "Target",
    "judge",
    "partial_rank",
    "rank_within_signs",
    "recovered",
    "stand_ins",
    "without_bias",
]

SIZE = 0.3
"""Root mean square of scores, in log-odds, from which a model does not count as without bias: the
weakest association that a word of a set carries at dose 1."""

ZERO = 1e-9
"""Truths, in log-odds, that are 0 but for rounding, and have no sign."""

FEWEST = 3
"""Words of a sign of which a rank correlation is taken."""

WORLD = ["measure", "model", "dose", "seed"]
MODEL = [*WORLD, "sample"]


@dataclass(frozen=True)
class Target:
    """What is to be reached, set before it is measured.

    Attributes
    ----------
    measure, model, dose
        Of what.
    statistic
        A column of :func:`recovered`.
    least, most
        Between which the whole 95% interval over worlds has to lie.
    worlds
        How many worlds there have to be: one that is missing may be the one that would have failed.
    """

    measure: str
    model: str
    dose: float
    statistic: str
    least: float
    most: float = np.inf
    worlds: int = 2


def rank_within_signs(value: Sequence[float], truth: Sequence[float]) -> float:
    r"""Return Spearman's correlation within words of one sign, averaged over both signs.

    .. math:: \frac{n_+ \rho_+ + n_- \rho_-}{n_+ + n_-}

    where :math:`\rho_+` is that of the :math:`n_+` words whose truth is above 0. Values that are
    all the same have a correlation of 0; a sign of fewer than three words is left out.

    Examples
    --------
    >>> truth = [-3, -2, -1, 1, 2, 3]
    >>> rank_within_signs([-1, -1, -1, 1, 1, 1], truth), rank_within_signs(truth, truth)
    (0.0, 1.0)
    """
    value, truth = np.asarray(value, float), np.asarray(truth, float)
    total, n = 0.0, 0
    for side in (truth > ZERO, truth < -ZERO):
        if side.sum() >= FEWEST:
            total += side.sum() * _spearman(value[side], truth[side])
            n += side.sum()
    return float(total / n) if n else np.nan


def partial_rank(value: Sequence[float], truth: Sequence[float], given: Sequence[float]) -> float:
    r"""Return the partial rank correlation of values and truths, given other scores.

    .. math:: \frac{\rho_{vt} - \rho_{vg} \rho_{tg}}
              {\sqrt{(1 - \rho_{vg}^2) (1 - \rho_{tg}^2)}}

    with Spearman's correlations. 0 where the values say nothing that the others do not.

    Examples
    --------
    >>> truth, given = [1, 3, 2, 4, 6, 5], [1, 2, 3, 4, 5, 6]
    >>> partial_rank(given, truth, given), round(partial_rank(truth, truth, given), 2)
    (0.0, 1.0)
    """
    vt, vg, tg = _spearman(value, truth), _spearman(value, given), _spearman(truth, given)
    left = (1 - vg**2) * (1 - tg**2)
    return float((vt - vg * tg) / np.sqrt(left)) if left > 1e-12 else 0.0


def _spearman(one: Sequence[float], other: Sequence[float]) -> float:
    one, other = np.asarray(one, float), np.asarray(other, float)
    if min(np.ptp(one), np.ptp(other)) < 1e-12:
        return 0.0
    return float(stats.spearmanr(one, other).statistic)


def recovered(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how models recover the truth: one row a measure, model, dose and world.

    Parameters
    ----------
    scores
        One row a word and model: *measure*, *model*, *dose*, *seed* (of the world), *sample*,
        *item*, *value*, *truth*, *planted* (the truth at dose 1), and *blind*, what the same model
        says without the picture, where there is such a score.

    Returns
    -------
    pandas.DataFrame
        The keys; *n* words; *slope* of the least-squares line of values on truths; *rank within
        signs*; *partial rank*, given what the model says without a picture; *rank*, Spearman's
        correlation over all words, and *signs*, the share whose value has the sign of the truth,
        among those whose truth is above ``EQUIVALENCE`` in size; *response*, the slope on the
        truth at dose 1, whatever the dose; *size*, the root mean square of the values. Means over
        the world's samples. Where nothing is planted, only *response* and *size* are numbers.
    """
    rows = [
        dict(zip(MODEL, key, strict=True)) | _of_model(part)
        for key, part in scores.dropna(subset="value").groupby(MODEL, sort=False)
    ]
    statistics = [
        "n",
        "response",
        "size",
        "slope",
        "rank within signs",
        "partial rank",
        "rank",
        "signs",
    ]
    table = pandas.DataFrame(rows, columns=[*MODEL, *statistics])
    return table.groupby(WORLD, sort=False)[statistics].mean().reset_index()


def _of_model(part: pandas.DataFrame) -> dict[str, float]:
    value, truth, planted = (part[name].to_numpy(float) for name in ("value", "truth", "planted"))
    found = {
        "n": len(part),
        "response": float(np.polyfit(planted, value, 1)[0]),
        "size": float(np.sqrt(np.mean(value**2))),
    }
    if np.ptp(truth) < 1e-9:
        return found
    clear = np.abs(truth) > EQUIVALENCE
    found |= {
        "slope": float(np.polyfit(truth, value, 1)[0]),
        "rank within signs": rank_within_signs(value, truth),
        "rank": _spearman(value, truth),
        "signs": float(np.mean(np.sign(value[clear]) == np.sign(truth[clear]))),
    }
    if "blind" in part and part["blind"].notna().all():
        found["partial rank"] = partial_rank(value, truth, part["blind"].to_numpy(float))
    return found


def judge(table: pandas.DataFrame, targets: Iterable[Target]) -> pandas.DataFrame:
    """Return every target with what was measured.

    Parameters
    ----------
    table
        Of :func:`recovered`.
    targets
        What was to be reached.

    Returns
    -------
    pandas.DataFrame
        The target; *mean* over *n* worlds with *low* and *high*; *reached*, whether the whole
        interval lies between *least* and *most*, and no world is missing.
    """
    rows = []
    for each in targets:
        here = (table["measure"] == each.measure) & (table["model"] == each.model)
        here &= table["dose"] == each.dose
        found = mean_over_seeds(table.loc[here, each.statistic])
        inside = found["low"] >= each.least and found["high"] <= each.most
        reached = bool(inside and found["n"] >= max(each.worlds, 2))
        rows.append({**vars(each), **found, "reached": reached})
    return pandas.DataFrame(rows)


def without_bias(
    table: pandas.DataFrame, controls: pandas.DataFrame, worlds: int = 2
) -> pandas.DataFrame:
    """Return which models are shown to be without bias, by measure and dose.

    Shown, if the whole 90% interval over worlds of *response* lies within ``EQUIVALENCE``, two
    one-sided tests at 5%, and that of *size* below :data:`SIZE`: a bias may have other directions
    than those that one looks for. For measures in log-odds; elsewhere the bounds have no meaning. A
    measure that sees nothing would show every model to be so: the lower end of its positive
    controls has to be above ``EQUIVALENCE``, and without any nothing is shown.

    Parameters
    ----------
    table
        Of :func:`recovered`.
    controls
        *measure*, *model*, *dose*, *seed* and *value* of items whose value is above 0 if the
        measure sees the groups.
    worlds
        How many worlds there have to be.

    Returns
    -------
    pandas.DataFrame
        *measure*, *model*, *dose*; *mean*, *low*, *high* (90%) and *n* of *response*; *size*, the
        upper end; *control*, the lower end of the positive controls; *shown*.
    """
    rows = []
    for key, part in table.groupby(["measure", "model", "dose"], sort=False):
        found = mean_over_seeds(part["response"], 0.9)
        control = _lower_end(controls, key)
        size = mean_over_seeds(part["size"], 0.9)["high"]
        small = found["low"] > -EQUIVALENCE and found["high"] < EQUIVALENCE and size < SIZE
        shown = bool(small and control > EQUIVALENCE and found["n"] >= max(worlds, 2))
        labels = dict(zip(("measure", "model", "dose"), key, strict=True))
        rows.append({**labels, **found, "size": size, "control": control, "shown": shown})
    names = ["measure", "model", "dose", "mean", "low", "high", "n", "size", "control", "shown"]
    return pandas.DataFrame(rows, columns=names)


def _lower_end(controls: pandas.DataFrame, key: tuple) -> float:
    here = (controls[["measure", "model", "dose"]] == list(key)).all(axis=1)
    return mean_over_seeds(controls[here].groupby("seed")["value"].mean(), 0.9)["low"]


def stand_ins(scores: pandas.DataFrame) -> Mapping[str, pandas.DataFrame]:
    """Return scores that should not pass for a recovery, in the place of the models' own.

    Returns
    -------
    dict
        By name: ``signs alone``, the sign of the truth, so scaled that its slope is 1; ``sees
        nothing``, 0 for every word; ``label alone``, what the papers' lists
        call the word, without any model; ``signs exchanged``; ``truth shuffled``, among the words
        of a world; ``another world``, the model of the next seed; ``no bias``, the model of dose 0
        posing as that of the dose; ``no picture``, what the model says without one; ``groups dealt
        anew``, with the group labels of the portraits permuted. Where a kind does not exist for a
        measure, its rows are left out.
    """
    rng = np.random.default_rng(0)
    shuffled = scores.groupby(MODEL, sort=False)["truth"].transform(
        lambda truth: rng.permutation(truth.to_numpy())
    )
    found = {
        "signs alone": scores.assign(value=_signs(scores)),
        "sees nothing": scores.assign(value=0.0),
        "label alone": scores.assign(value=scores["label"]),
        "signs exchanged": scores.assign(value=-scores["value"]),
        "truth shuffled": scores.assign(truth=shuffled),
        "another world": scores.assign(value=_of_another_world(scores)),
        "no bias": scores.assign(value=_of_dose_zero(scores)),
        "no picture": scores.assign(value=scores["blind"]),
        "groups dealt anew": scores.assign(value=scores["dealt"]),
    }
    return {name: each.dropna(subset="value") for name, each in found.items()}


def _signs(scores: pandas.DataFrame) -> np.ndarray:
    """Return the signs of the truths, times what makes their slope 1 in each model."""
    sign = np.sign(scores["truth"].where(scores["truth"].abs() > ZERO, 0.0))
    keys = [scores[name] for name in MODEL]
    truth = scores["truth"] - scores["truth"].groupby(keys).transform("mean")
    scale = (truth**2).groupby(keys).transform("sum") / (truth * sign).groupby(keys).transform(
        "sum"
    )
    return (sign * scale.fillna(1.0)).to_numpy()


def _of_another_world(scores: pandas.DataFrame) -> np.ndarray:
    """Return each row's value in the next world, the last one's in the first."""
    of_model = scores.groupby(["measure", "model", "dose"], sort=False)["seed"]
    return _looked_up(scores, scores.assign(seed=of_model.transform(_following)))


def _following(seeds: pandas.Series) -> pandas.Series:
    """Return for each seed the next one that is there."""
    known = sorted(seeds.unique())
    return seeds.map(dict(zip(known, np.roll(known, -1), strict=True)))


def _of_dose_zero(scores: pandas.DataFrame) -> np.ndarray:
    return _looked_up(scores, scores.assign(dose=0.0))


def _looked_up(scores: pandas.DataFrame, asked: pandas.DataFrame) -> np.ndarray:
    keys = [*MODEL, "item"]
    values = scores.set_index(keys)["value"]
    return values.reindex(pandas.MultiIndex.from_frame(asked[keys])).to_numpy()
