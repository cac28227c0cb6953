"""The planted world's verdicts on the papers' measures, for the page of contracts."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas

import plantedworld
from biaslib.display import interval_text, interval_texts, signed
from companion.planted_trial import MODELS, asked, row_name
from plantedworld import trial

DATA = Path(plantedworld.__file__).parent / "data" / "measure_verdicts.csv"

OF_THE_TRIAL = {
    "d, Experiment 1": ("1", ("d, word", "d, sentence", "d, contextual")),
    "B(E)": ("2", ("B(E)",)),
    "S_PT": ("2", ("S_PT",)),
    "S_L": ("2", ("S_L",)),
    "S_V": ("2", ("S_V",)),
    "scaled difference": ("3", ("difference",)),
    "C-ASC": ("3", ("C-ASC",)),
    "retrieval, top k": ("3", ("top k",)),
}
"""Measures that the sealed trial judges: the study that uses each, and what the trial calls it."""

NAMES = {
    "B(E)": "$S_L$ of the text model (the trial calls it B(E))",
    "S_PT": "$S_{PT}$",
    "S_L": "$S_L$",
    "S_V": "$S_V$",
}
"""What prose calls a measure, where that is not its name in the tables."""

RULE = "A target is reached only if the whole 95% interval lies within its bounds."
"""When the sealed trial says that a target is reached."""

TITLES = {
    "planted_world": "A world with a known answer",
    "planted_study1_grounded": "Study 1 in the planted world",
}
"""Headings of the pages that show the verdicts."""

QUESTIONS = {
    "signs": "sign",
    "rank within signs": "order within words of one sign",
    "partial rank": "order beyond what the same model says without a picture",
    "slope": "size (slope)",
}
"""What each statistic of the trial asks of a measure."""

OF_PRETRAINING = {"partial rank": "order beyond what the text-only model says"}
"""What is asked otherwise of S_PT, which has no picture: the text-only model takes its place."""


def measures() -> pandas.DataFrame:
    """Return what the planted world says of each measure: one row a measure.

    Returns
    -------
    pandas.DataFrame
        *measure* and the *study* that uses it; *what it finds*, of which *scope*; *page*, where it
        is shown.

    Examples
    --------
    >>> {"d, Experiment 1", "S_PT", "C-ASC", "vlbs"} <= set(measures()["measure"])
    True
    """
    table = verdicts().drop(columns="words of the page")
    return table.assign(page=table["page"].map(TITLES))


def verdicts() -> pandas.DataFrame:
    """Return :func:`measures` with the words of the page on which each rests.

    Where the sealed trial has judged a measure, that takes the place of what other worlds say.
    """
    table, sealed = pandas.read_csv(DATA, dtype=str), _of_trial_all(trial.judged())
    kept = table[~table["measure"].isin(sealed["measure"])]
    return pandas.concat([sealed, kept], ignore_index=True)


def questions() -> pandas.DataFrame:
    """Return what the sealed trial asked of each measure, with its answers and baselines.

    Returns
    -------
    pandas.DataFrame
        *measure*, *model*, *dose*; *question*, of ``QUESTIONS``; *verdict*, yes or no; *mean* over
        *worlds* with its *95% interval*; what was *asked*; *best wrong score*, the kind of stand-in
        that comes highest, or nearest to the middle of two bounds, and *its mean*.
    """
    found = trial.judged()
    judged, keys = found["verdicts"], ["measure", "model", "dose", "statistic"]
    wrong = found["stand_ins"].merge(judged[[*keys, "least", "most"]], on=keys)
    middle = (wrong["least"] + wrong["most"]) / 2
    away = -wrong["mean"].where(np.isinf(middle), -(wrong["mean"] - middle).abs())
    wrong = (
        wrong.assign(away=away).sort_values("away").drop_duplicates(keys)[[*keys, "scores", "mean"]]
    )
    table = judged.merge(wrong, on=keys, how="left", suffixes=("", " of wrong"))
    shares = table["statistic"] == "signs"  # an interval of Student can reach beyond 1
    table["high"] = table["high"].mask(shares, table["high"].clip(upper=1))
    return pandas.DataFrame(
        {
            "measure": table["measure"],
            "model": table["model"].map(MODELS),
            "dose": table["dose"],
            "question": [_question(row) for row in table.itertuples()],
            "verdict": table["reached"].map({True: "yes", False: "no"}),
            "mean": table["mean"],
            "95% interval": interval_texts(table),
            "worlds": table["n"],
            "asked": [asked(row) for row in table.itertuples()],
            "best wrong score": table["scores"].fillna("none asked"),
            "its mean": table["mean of wrong"],
        }
    )


def signs_sentence() -> str:
    """Return which targets a score that knows signs alone reaches as well as the measure does."""
    found = trial.judged()
    keys = ["measure", "model", "dose", "statistic"]
    alone = found["stand_ins"].query("scores == 'signs alone'")
    both = found["verdicts"].merge(alone[[*keys, "mean"]], on=keys, suffixes=("", " of signs"))
    both = both[both["reached"] & both["mean of signs"].between(both["least"], both["most"])]
    rows = both[["measure", "statistic"]].drop_duplicates().itertuples()
    targets = "; ".join(f"{row.measure}, {_question(row)}" for row in rows)
    return (
        "Of the targets that are reached, a score that knows signs alone would reach these as "
        f"well: {targets}."
    )


def sealed_sentences(study: str, rule: bool = True) -> str:
    """Return what the sealed trial found of the measures of one study, a line a measure.

    Where bounds were asked for, :data:`RULE` stands below the lines, unless the page has said it.

    Examples
    --------
    >>> print(sealed_sentences("3").splitlines()[1][:60])
    - C-ASC: order within words of one sign: target missed, 0.68
    >>> sealed_sentences("4").endswith(RULE)
    False
    """
    found = verdicts()
    rows = found[(found["study"] == study) & (found["page"] == "planted_world")]
    lines = [f"- {NAMES.get(row[0], row[0])}: {row[2]}." for row in rows.itertuples(index=False)]
    told = "\n".join(lines)
    return f"{told}\n\n{RULE}" if rule and "asked:" in told else told


def _of_trial_all(found: dict[str, pandas.DataFrame]) -> pandas.DataFrame:
    rows = [
        _of_trial(name, study, found["verdicts"].query("measure in @names and dose == 3"))
        for name, (study, names) in OF_THE_TRIAL.items()
    ]
    return pandas.DataFrame([*rows, _of_rises(found["rises"])])


def _of_trial(name: str, study: str, rows: pandas.DataFrame) -> dict[str, str]:
    """Return the row of one measure: what the trial found at dose 3."""
    if set(rows["statistic"]) == {"signs"}:
        told = [f"{MODELS[model]} {_levels(part)}" for model, part in rows.groupby("model")]
        text = (
            "finds the planted sign of gender and race tests, by level (in brackets: 95% interval "
            f"in %, what was asked): {'; '.join(told)}"
        )
    else:
        text = "; ".join(
            f"{_question(row)}: {_verdict(row.reached)}, {signed(row.mean)} "
            f"({interval_text(row.low, row.high)}; asked: {asked(row)})"
            for row in rows.itertuples()
        )
    return {
        "measure": name,
        "study": study,
        "what it finds": text,
        "scope": _scope(MODELS[each] for each in rows["model"].unique()),
        "page": "planted_world",
        "words of the page": row_name(next(rows.itertuples())),
    }


def _question(row) -> str:
    """Return what a target asks of its measure."""
    asks = QUESTIONS | (OF_PRETRAINING if row.measure == "S_PT" else {})
    return asks[row.statistic]


def _of_rises(risen: pandas.DataFrame) -> dict[str, str]:
    models = ("tiny-" + risen.loc[risen["reached"], "model"]).tolist()
    named = f" ({'; '.join(models)})" if models else ""
    return {
        "measure": "vlbs",
        "study": "4",
        "what it finds": f"rises with a planted bias by more than errors on stereotypical pictures "
        f"do, for {len(models)} of {len(risen)} models{named}",
        "scope": f"{_scope(['tiny models'])}; objects drawn half transparent",
        "page": "planted_world",
        "words of the page": f"for {len(models)} of {len(risen)} models",
    }


def _scope(models: Iterable[str]) -> str:
    return f"{', '.join(models)}; worlds and drawings on which no training was tuned, dose 3"


def _levels(part: pandas.DataFrame) -> str:
    return ", ".join(
        f"{row.measure.partition(', ')[2]} {row.mean:.0%} ({_of_shares(row)}; asked: "
        f"{row.least:.0%} or more; {_verdict(row.reached)})"
        for row in part.itertuples()
    )


def _of_shares(row) -> str:
    """Return the interval of a share, which ends at 100%; or that all worlds have the same."""
    if row.low == row.high:
        return f"the same in all {row.n} worlds"
    return f"{100 * row.low:.0f} to {min(100 * row.high, 100):.0f}"


def _verdict(reached: bool) -> str:
    return "target reached" if reached else "target missed"
