"""Checks of the claims of Srinivasan and Bisk (2021), nearly all on the scores of a run.

The paper prints its scores in figures. A run of study 2 has them: S(f), S(m) and B by entity, in
natural logarithms; B is above 0 where the entity goes with women.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas

from biaslib import inference
from biaslib.ledger._evidence import Evidence, Finding, NoEvidenceError, answer, mean_over

ENTITIES = ("purse", "briefcase", "apron", "suit", "wine", "beer")
SIMILAR = ("suit", "wine")
APART = tuple(each for each in ENTITIES if each not in SIMILAR)
SIGNS = {"women": 1.0, "men": -1.0}

FACTOR = math.log(2)  # ours: "much", "heavily", "considerably" are a factor of two
RANGE = 0.5  # ours: scores of entities that "differ" lie so far apart
HALF = 0.5  # ours: "majority", "most", "often", "largely" are more than half
PRE_TRAINING, LANGUAGE, IMAGE = "S_PT", "S_L", "S_V"
ALONE, TEXT_MODEL = "S_L, no image", "S_L, text model"


def _score(
    evidence: Evidence, level: str, statistic: str, entities: Sequence[str] = ENTITIES
) -> pandas.DataFrame:
    """Return a score of some entities, in their order, by entity."""
    rows = evidence.scores_of(level=level, statistic=statistic, test=list(entities))
    rows = rows.dropna(subset="value").set_index("test", drop=False)
    missing = [each for each in entities if each not in rows.index]
    if missing:
        raise NoEvidenceError(f"the run has no {level} of {', '.join(missing)}")
    if rows.index.has_duplicates:
        raise NoEvidenceError(f"the run has {level} of more than one model or world")
    return rows.loc[list(entities)]


def _bias(evidence: Evidence, level: str, entities: Sequence[str] = ENTITIES) -> pandas.DataFrame:
    """Return the bias scores B of some entities."""
    return _score(evidence, level, "B", entities)


def _value(evidence: Evidence, level: str, entity: str, agent: str) -> float:
    """Return S of one entity with a woman (f) or a man (m)."""
    return float(_score(evidence, level, f"S({agent})", [entity])["value"].iloc[0])


def _each(rows: pandas.DataFrame) -> str:
    """Return scores in words, with their intervals where they have some."""
    parts = []
    for name, row in rows.iterrows():
        low, high = row.get("low", np.nan), row.get("high", np.nan)
        bounds = f" [{low:.2f}, {high:.2f}]" if np.isfinite([low, high]).all() else ""
        parts.append(f"{name} {row['value']:.2f}{bounds}")
    return ", ".join(parts)


def _with_intervals(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return scores that all have intervals."""
    if rows[["low", "high"]].isna().any(axis=None):
        raise NoEvidenceError("the run has no intervals over images")
    return rows


# The printed probabilities


def _pictures(evidence: Evidence) -> pandas.DataFrame:
    """Return by printed picture the probability of the entity that is there, and of the other."""
    rows = evidence.table("srinivasan2021_case_study", table=3, mark=["✓", "✗"])
    rows = rows.assign(is_there=rows["mark"].map({"✓": "there", "✗": "absent"}))
    wide = rows.pivot(index="image", columns="is_there", values="probability").dropna()
    named = rows[rows["mark"] == "✗"].set_index("image")
    extra = [name for name in ("entity", "gender") if name in named]
    return wide.join(named[extra].rename(columns={"entity": "absent entity"}))


def _in_pictures(found: pandas.DataFrame) -> str:
    """Return the two probabilities of each picture in words."""
    return " and ".join(
        f"{row['absent']:g} against {row['there']:g}" for _, row in found.iterrows()
    )


def often_wrong(evidence: Evidence) -> Finding:
    """Check that the absent entity is ahead in more than half of the pictures."""
    found = _pictures(evidence)
    n = int((found["absent"] > found["there"]).sum())
    interval = inference.proportion_interval(n, len(found))
    told = f"The absent entity is ahead in {n} of {len(found)} pictures ({_in_pictures(found)}); "
    told += f"the share's interval is [{interval.low:.2f}, {interval.high:.2f}]."
    return Finding(answer([n / len(found) > HALF, interval.low > HALF]), told)


def both_wrong(evidence: Evidence) -> Finding:
    """Check that the absent entity is ahead in every picture."""
    found = _pictures(evidence)
    ahead = found["absent"] > found["there"]
    told = f"The absent entity is ahead in {ahead.sum()} of {len(ahead)} pictures: "
    return Finding(answer(ahead), f"{told}{_in_pictures(found)}.")


def purse_ahead(evidence: Evidence) -> Finding:
    """Check that an absent purse is ahead of what is there, in a picture of a man."""
    found = _pictures(evidence)
    found = found[found["absent entity"] == "purse"]
    if found.empty:
        raise NoEvidenceError("there is no picture without the purse")
    ahead = found["absent"] > found["there"]
    men = found["gender"].eq("man") if "gender" in found else pandas.Series(False, found.index)
    told = f"Among pictures without a purse, purse is ahead in {ahead.sum()} of {len(found)} "
    told += f"({_in_pictures(found)}); {int(men.sum())} are said to show a man."
    return Finding(answer([ahead.any(), (ahead & men).any()]), told)


# Pre-training


def both_scores(evidence: Evidence, signs: Mapping[str, int]) -> Finding:
    """Check that pre-training moves entities one way, with a woman and with a man."""
    parts, told = [], []
    for entity, sign in signs.items():
        f, m = (_value(evidence, PRE_TRAINING, entity, agent) for agent in "fm")
        parts += [sign * f > 0, sign * m > 0]
        told.append(f"{entity} {f:.2f} with a woman and {m:.2f} with a man")
    return Finding(answer(parts), f"S_PT: {'; '.join(told)}.")


def entities_differ(evidence: Evidence) -> Finding:
    """Check that pre-training moves entities differently."""
    f, m = (_score(evidence, PRE_TRAINING, f"S({agent})")["value"] for agent in "fm")
    mean = (f + m) / 2
    apart = mean.max() - mean.min()
    told = f"Mean S_PT from {mean.min():.2f} ({mean.idxmin()}) to {mean.max():.2f} "
    return Finding(answer([apart > RANGE]), f"{told}({mean.idxmax()}): {apart:.2f} apart.")


def more_for_men(evidence: Evidence) -> Finding:
    """Check that briefcase gains more with a man than with a woman, by a factor of two."""
    apart = -float(_bias(evidence, PRE_TRAINING, ["briefcase"])["value"].iloc[0])
    told = f"S_PT of briefcase with a man, less that with a woman: {apart:.2f}; "
    told += f"a factor of two is {FACTOR:.2f}."
    return Finding(answer([apart > 0, apart >= FACTOR]), told)


def women_lose_more(evidence: Evidence) -> Finding:
    """Check that apron, wine and beer lose, and more with a woman."""
    parts, told = [], []
    for entity in ("apron", "wine", "beer"):
        f, m = (_value(evidence, PRE_TRAINING, entity, agent) for agent in "fm")
        parts.append(f < m < 0)
        told.append(f"{entity} {f:.2f} and {m:.2f}")
    return Finding(answer(parts), f"S_PT with a woman and with a man: {', '.join(told)}.")


def purse_moves_apart(evidence: Evidence) -> Finding:
    """Check that purse gains with a man and loses with a woman."""
    f, m = (_value(evidence, PRE_TRAINING, "purse", agent) for agent in "fm")
    told = f"S_PT of purse: {f:.2f} with a woman, {m:.2f} with a man."
    return Finding(answer([m > 0, f < 0]), told)


def towards_men(evidence: Evidence, least: int) -> Finding:
    """Check that most of the six entities move towards men, and at least so many."""
    rows = _bias(evidence, PRE_TRAINING)
    n = int((rows["value"] < 0).sum())
    told = f"B_PT is below 0 for {n} of {len(rows)} entities: {_each(rows)}."
    return Finding(answer([n > HALF * len(rows), n >= least]), told)


# Language and image


def sources_differ(evidence: Evidence) -> Finding:
    """Check that B has the stereotype's sign on average, in each of the three sources."""
    parts, told = [], []
    for level in (PRE_TRAINING, LANGUAGE, IMAGE):
        rows = _bias(evidence, level)
        if "stereotype" not in rows or not rows["stereotype"].isin(SIGNS).all():
            raise NoEvidenceError("the run does not say which stereotype the entities have")
        mean = mean_over(rows["value"] * rows["stereotype"].map(SIGNS), rows.index)
        parts.append(mean.low > 0)
        told.append(f"{level} {mean.value:.2f} [{mean.low:.2f}, {mean.high:.2f}]")
    told = f"Mean B towards the stereotype over {len(ENTITIES)} entities: {', '.join(told)}."
    return Finding(answer(parts), told)


def both_contexts(evidence: Evidence, by_factor: bool) -> Finding:
    """Check that B_L and B_V of most entities are apart from 0, or by a factor of two."""
    least, parts, told = FACTOR * by_factor, [], []
    for level in (LANGUAGE, IMAGE):
        rows = _with_intervals(_bias(evidence, level))
        clear = (rows["low"] > 0) | (rows["high"] < 0)
        n = int((clear & (rows["value"].abs() >= least)).sum())
        parts.append(n > HALF * len(rows))
        told.append(f"{level} of {n} of {len(rows)} entities")
    much = f" and a size of at least {least:.2f}" if least else ""
    return Finding(answer(parts), f"B with an interval without 0{much}: {', '.join(told)}.")


def towards(evidence: Evidence, agent: str, sign: int) -> Finding:
    """Check that a word for a person changes purse by a factor of two."""
    row = _with_intervals(_score(evidence, LANGUAGE, f"S({agent})", ["purse"]))
    value, low, high = row[["value", "low", "high"]].iloc[0]
    clear = low > 0 if sign > 0 else high < 0
    who = {"f": "woman", "m": "man"}[agent]
    told = f"S_L with a {who}: {_each(row)}, n = {row['n'].iloc[0]:.0f} images; "
    parts = [sign * value >= FACTOR, clear]
    return Finding(answer(parts), f"{told}a factor of two is {FACTOR:.2f}.")


def signed(evidence: Evidence, level: str, signs: Mapping[str, int], by_factor: bool) -> Finding:
    """Check that entities have a bias of a sign, with its interval, or by a factor of two."""
    rows = _with_intervals(_bias(evidence, level, list(signs)))
    sign = pandas.Series(signs)
    clear = np.where(sign > 0, rows["low"] > 0, rows["high"] < 0)
    large = sign * rows["value"] >= FACTOR * by_factor
    told = f"B of {level}: {_each(rows)}"
    told += f"; a factor of two is {FACTOR:.2f}." if by_factor else "."
    return Finding(answer(clear & large), told)


def similar_language(evidence: Evidence) -> Finding:
    """Check that suit and wine depend little on the word, and less than the other entities."""
    rows = _with_intervals(_bias(evidence, LANGUAGE))
    two, least = rows.loc[list(SIMILAR)], rows.loc[list(APART), "value"].abs().min()
    within = (two["low"] > -FACTOR) & (two["high"] < FACTOR)
    parts = [*within, *(two["value"].abs() < least)]
    told = f"B_L: {_each(two)}; the least of the four others is {least:.2f} in size; "
    return Finding(answer(parts), f"{told}a factor of two is {FACTOR:.2f}.")


def less_by_image(evidence: Evidence) -> Finding:
    """Check that suit and wine depend less on the picture than the other entities."""
    rows = _bias(evidence, IMAGE)
    two, least = rows.loc[list(SIMILAR)], rows.loc[list(APART), "value"].abs().min()
    told = f"B_V: {_each(two)}; the least of the four others is {least:.2f} in size."
    return Finding(answer(two["value"].abs() < least), told)


# Forty entities


def _share(evidence: Evidence, level: str, statistic: str) -> pandas.Series:
    """Return a share of the larger set of entities."""
    rows = evidence.scores_of(test="gendered", level=level, statistic=statistic)
    rows = rows.dropna(subset="value")
    if len(rows) != 1:
        raise NoEvidenceError(f"the run has {len(rows)} shares '{statistic}' of the larger set")
    return rows.iloc[0]


def majority(evidence: Evidence, shares: Sequence[tuple[str, str]]) -> Finding:
    """Check that shares of the larger set are above one half, with their intervals."""
    parts, told = [], []
    for level, statistic in shares:
        row = _share(evidence, level, statistic)
        parts += [row["value"] > HALF, row["low"] > HALF]
        bounds = f"[{row['low']:.0%}, {row['high']:.0%}]"
        told.append(f"{statistic}: {row['value']:.0%} {bounds} of {row['n']:.0f} entities")
    return Finding(answer(parts), f"{'; '.join(told)}.".capitalize())


def cat_and_cigar(evidence: Evidence) -> Finding:
    """Check that cat goes with women and cigar with men, less than in the text-only model."""
    both, text = (
        _bias(evidence, level, ["cat", "cigar"])["value"] for level in (ALONE, TEXT_MODEL)
    )
    weaker = both.abs() < text.abs()
    told = ", ".join(f"{name} {both[name]:.2f} (text only {text[name]:.2f})" for name in both.index)
    return Finding(answer([both["cat"] > 0, both["cigar"] < 0, *weaker]), f"B_L: {told}.")
