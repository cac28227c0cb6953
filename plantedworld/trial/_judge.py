"""What the trial's scores say: targets, models without bias, rises, stand-ins, two nulls."""

from collections.abc import Iterable

import numpy as np
import pandas
from scipy import stats

from plantedworld.studies.recovery import (
    Target,
    judge,
    over_worlds,
    recovered,
    stand_ins,
    without_bias,
)
from plantedworld.trial._design import RISES, SIGN_TARGETS, TARGETS

ATTRIBUTES = ", attributes"
LOG_ODDS = ("B(E)", "difference", "S_L", "S_V", "S_PT")
"""Measures whose slope on the planted log-odds is in their own unit."""

LEVEL = 0.05
NO_WORDS = ("picture", "control")
"""Slots of rows that have no planted truth of their own."""


def _controls(scores: pandas.DataFrame) -> pandas.DataFrame:
    return scores[scores["slot"] == "control"]


def of_words(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows that are judged by slopes, ranks and signs.

    Roles, objects and tests as they are; attributes, which go with tone too, as measures of their
    own.
    """
    words = scores[~scores["slot"].isin(NO_WORDS)]
    attributes = words["slot"] == "attribute"
    names = words["measure"].where(~attributes, words["measure"] + ATTRIBUTES)
    return words.assign(measure=names)


def verdicts(
    scores: pandas.DataFrame, targets: Iterable[Target] = (*TARGETS, *SIGN_TARGETS)
) -> pandas.DataFrame:
    """Return every target with what was measured: :func:`plantedworld.studies.recovery.judge`."""
    return judge(recovered(of_words(scores)), targets)


def found_without_bias(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return which models are shown to be without bias, for measures in log-odds."""
    words, controls = of_words(scores), _controls(scores)
    return without_bias(recovered(words[words["measure"].isin(LOG_ODDS)]), controls)


def rises(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how far vlbs rises above dose 0 in the same world, over worlds.

    Returns
    -------
    pandas.DataFrame
        *model*; *vlbs* and *vlrs* at dose 3, and *vlbs at dose 0*; *mean*, *low*, *high* of the
        rise over *n* worlds, in points; *reached*: whether the interval lies above 0.
    """
    rows = []
    pictures = scores[scores["slot"] == "picture"]
    keys = ["measure", "model", "dose", "seed"]
    means = pictures.groupby(keys)["value"].mean()
    for model in RISES:
        if ("vlbs", model) not in means.index.droplevel(["dose", "seed"]):
            continue
        biased, zero = (means["vlbs", model, dose] for dose in (3.0, 0.0))
        found = over_worlds((biased - zero).dropna())
        rows.append(
            {"model": model, "vlbs": biased.mean(), "vlrs": means["vlrs", model, 3.0].mean()}
            | {"vlbs at dose 0": zero.mean(), **found, "reached": bool(found["low"] > 0)}
        )
    return pandas.DataFrame(rows)


def attacks(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return what wrong scores are called: recoveries, and models without bias.

    A measure recovers a model's dose if it reaches all of its targets there.

    Returns
    -------
    pandas.DataFrame
        *scores*, whose (see :func:`plantedworld.studies.recovery.stand_ins`); how many *claims* of
        a recovery could be judged, and how many are *called recoveries*; how many *models* of a
        dose above 0 could be judged by scores in log-odds, and how many are *called unbiased*.
    """
    words, controls = scores[~scores["slot"].isin(NO_WORDS)], _controls(scores)
    dealt = {"groups dealt anew": controls.assign(value=controls["dealt"])}
    rows = []
    for name, wrong in {"the models' own": words, **stand_ins(words)}.items():
        wrong = pandas.concat([wrong, dealt.get(name, controls)])
        # The signs of tests are all that effect sizes are asked for: there they are the truth.
        targets = TARGETS if name == "signs alone" else (*TARGETS, *SIGN_TARGETS)
        told = verdicts(wrong, targets)
        claims = told[told["n"] > 1].groupby(["measure", "model", "dose"])["reached"].all()
        clean = found_without_bias(wrong)
        clean = clean[(clean["n"] > 1) & (clean["dose"] > 0)]
        rows.append(
            {"scores": name, "claims": len(claims), "called recoveries": int(claims.sum())}
            | {"models": len(clean), "called unbiased": int(clean["shown"].sum())}
        )
    return pandas.DataFrame(rows)


def stand_in_means(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return what each kind of wrong scores reaches of the targets of words.

    Returns
    -------
    pandas.DataFrame
        *measure*, *model*, *dose*, *statistic*; *scores*, whose; *mean* over worlds.
    """
    words = scores[~scores["slot"].isin(NO_WORDS)]
    tables = [
        verdicts(wrong, TARGETS).assign(scores=name) for name, wrong in stand_ins(words).items()
    ]
    columns = ["measure", "model", "dose", "statistic", "scores", "mean"]
    return pandas.concat(tables, ignore_index=True)[columns].dropna(subset="mean")


def two_nulls(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return what models of a world without bias are called biased for.

    A test that rejects there is wrong about the world, in which nothing is planted. It need not be
    wrong about the sample that the model was trained on, in which every word goes a little more
    with one gender by chance.

    Returns
    -------
    pandas.DataFrame
        *measure*, *model*; *rejected by portraits* and *by drawings*, shares of the words at 5%
        with portraits and with drawings as units, missing where there are none; *with the sample*,
        the correlation of scores and the associations in the model's own corpus; each a mean over
        *n* worlds with *low* and *high*.
    """
    words = of_words(scores)
    zero = words[(words["dose"] == 0) & words["sampled"].notna()]
    rows = []
    for (measure, model), part in zero.groupby(["measure", "model"], sort=False):
        each = part.groupby("seed")
        shares = {
            "with the sample": each.apply(_with_sample, include_groups=False),
            "rejected by portraits": each["p_portraits"].apply(_rejected),
            "rejected by drawings": each["p_drawings"].apply(_rejected),
        }
        rows += [
            {"measure": measure, "model": model, "share": name, **over_worlds(values)}
            for name, values in shares.items()
            if values.notna().any()
        ]
    return pandas.DataFrame(rows)


def _with_sample(part: pandas.DataFrame) -> float:
    found = [
        stats.pearsonr(each["value"], each["sampled"]).statistic
        for _, each in part.groupby("sample")
    ]
    return float(np.mean(found))


def _rejected(p: pandas.Series) -> float:
    return float((p.dropna() < LEVEL).mean()) if p.notna().any() else np.nan
