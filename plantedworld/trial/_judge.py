"""What the trial's scores say: targets, models without bias, rises, stand-ins, two nulls."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas
from scipy import stats

from biaslib.runtime import note_files
from plantedworld.studies.measures import mean_over_seeds
from plantedworld.studies.recovery import (
    Target,
    judge,
    recovered,
    stand_ins,
    without_bias,
)
from plantedworld.trial._design import N_OTHER, N_WORLDS, RISES, SIGN_TARGETS, TARGETS
from plantedworld.trial._run import DATA, DIGITS

ALL_TARGETS = (*TARGETS, *SIGN_TARGETS)
ATTRIBUTES = ", attributes"
SHARES = ("vlbs", "vlrs", "errors")
"""What is counted picture by picture."""

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


def verdicts(scores: pandas.DataFrame, targets: Iterable[Target] | None = None) -> pandas.DataFrame:
    """Return every target with what was measured: :func:`plantedworld.studies.recovery.judge`.

    Without targets, all that the trial has for words and tests.
    """
    return judge(recovered(of_words(scores)), ALL_TARGETS if targets is None else targets)


def recoveries(judged: pandas.DataFrame) -> pandas.DataFrame:
    """Return which measures recover what is planted: those that reach all of their targets.

    Returns
    -------
    pandas.DataFrame
        *measure*, *model*, *dose*; how many *targets* there are and how many are *reached*;
        *recovers*, whether all are.
    """
    each = judged.groupby(["measure", "model", "dose"], sort=False)["reached"]
    table = each.agg(targets="size", reached="sum").reset_index()
    return table.assign(recovers=table["targets"] == table["reached"])


def found_without_bias(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return which models are shown to be without bias, by measures with positive controls."""
    words, controls = of_words(scores), _controls(scores)
    judged = words[words["measure"].isin(controls["measure"])]
    return without_bias(recovered(judged), controls, N_WORLDS)


def rises(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how far vlbs rises above dose 0 in the same world, over worlds.

    A model that reads pictures worse at dose 3 picks the stereotype more often as well, and the
    anti-stereotype more often where the picture shows a stereotype. So the rise of these errors is
    taken off.

    Returns
    -------
    pandas.DataFrame
        *model*; *vlbs*, *vlrs* and *errors* on stereotypical pictures at dose 3, *vlbs at dose 0*
        and *errors at dose 0*; *vlbs rise*; *mean*, *low*, *high* of the rise of vlbs less that of
        the errors over *n* worlds, in points; *reached*: whether the interval lies above 0, and no
        world is missing.
    """
    rows = []
    pictures = scores[scores["slot"] == "picture"]
    means = pictures.groupby(["measure", "model", "dose", "seed"])["value"].mean()
    known = set(means.index.get_level_values("model"))
    for model in (each for each in RISES if each in known):
        at = {(name, dose): means[name, model, dose] for name in SHARES for dose in (0.0, 3.0)}
        rise = at["vlbs", 3.0] - at["vlbs", 0.0]
        net = rise - (at["errors", 3.0] - at["errors", 0.0])
        found = mean_over_seeds(net.dropna())
        complete = found["n"] >= (N_WORLDS if model.startswith("CLIP") else N_OTHER)
        rows.append(
            {"model": model, **{name: at[name, 3.0].mean() for name in SHARES}}
            | {f"{name} at dose 0": at[name, 0.0].mean() for name in ("vlbs", "errors")}
            | {"vlbs rise": rise.mean(), **found}
            | {"reached": bool(found["low"] > 0 and complete)}
        )
    return pandas.DataFrame(rows)


def attacks(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return what wrong scores are called: recoveries, and models without bias.

    Two are no lies, and are called what they are: the signs of study 1's tests are all that effect
    sizes are asked for, so that ``signs alone`` is not held against those; and ``no bias`` is a
    model without bias.

    Returns
    -------
    pandas.DataFrame
        *scores*, whose (see :func:`plantedworld.studies.recovery.stand_ins`); how many *claims* of
        a recovery could be judged, and how many are *called recoveries*; how many *models* of a
        dose above 0 could be judged by scores with positive controls, and how many are *called
        unbiased*.
    """
    words, controls = scores[~scores["slot"].isin(NO_WORDS)], _controls(scores)
    changed = {
        "groups dealt anew": controls.assign(value=controls["dealt"]),
        "sees nothing": controls.assign(value=0.0),
    }
    rows = []
    for name, wrong in {"the models' own": words, **stand_ins(words)}.items():
        wrong = pandas.concat([wrong, changed.get(name, controls)])
        told = verdicts(wrong, TARGETS if name == "signs alone" else ALL_TARGETS)
        claims = recoveries(told[told["n"] > 0])
        clean = found_without_bias(wrong)
        clean = clean[clean["dose"] > 0]
        rows.append(
            {"scores": name, "claims": len(claims)}
            | {"called recoveries": int(claims["recovers"].sum())}
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
            {"measure": measure, "model": model, "share": name, **mean_over_seeds(values)}
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


QUESTIONS = {
    "verdicts": verdicts,
    "without_bias": found_without_bias,
    "rises": rises,
    "attacks": attacks,
    "stand_ins": stand_in_means,
    "nulls": two_nulls,
}
"""What is asked of the scores, by the name of the file that keeps the answer."""


def judge_all(scores: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """Return the answer to every question of ``QUESTIONS``."""
    return {name: ask(scores).round(DIGITS) for name, ask in QUESTIONS.items()}


def judged(folder: Path = DATA) -> dict[str, pandas.DataFrame]:
    """Return what ``python -m plantedworld.trial judge`` wrote, by the names of ``QUESTIONS``.

    Raises
    ------
    FileNotFoundError
        If nothing was judged yet.
    """
    note_files(folder)
    return {name: pandas.read_csv(folder / f"{name}.csv") for name in QUESTIONS}
