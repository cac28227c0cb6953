"""The held-out test: measures judged in worlds that nobody tuned on, by rules that were set before.

``plantedworld/PROTOCOL.md`` says what was trained, scored and asked, when a target counts as
reached, and which commits hold the code that did it. What came of it lies in ``data/held_out``.
"""

from pathlib import Path

import pandas

import plantedworld
from biaslib.runtime import note_files

__all__ = ["models", "results"]

DATA = Path(plantedworld.__file__).parent / "data" / "held_out"
QUESTIONS = ("verdicts", "without_bias", "rises", "attacks", "stand_ins", "nulls")


def results() -> dict[str, pandas.DataFrame]:
    """Return what the test found, a table a question.

    Returns
    -------
    dict
        ``verdicts``: every target (*measure*, *model*, *dose*, *statistic*, and *least* and *most*,
        between which the interval has to lie) with *mean*, *low* and *high* over *n* worlds, and
        whether it was *reached*. ``without_bias``: the 90% interval of the slope on the log-odds of
        dose 1, the upper end of the *size* of scores, the lower end of that of the positive
        *control*, and whether all of it *shown* a model to be without bias. ``rises``: vlbs, vlrs
        and errors by model, and the rise of vlbs less that of the errors, in points. ``attacks``:
        of scores that have to fail, how many were called a recovery or without bias, of how many.
        ``stand_ins``: the mean of each kind of these scores. ``nulls``: shares of words, and
        correlations with the sample, in models of a world without bias.
    """
    note_files(DATA)
    return {name: pandas.read_csv(DATA / f"{name}.csv") for name in QUESTIONS}


def models() -> pandas.DataFrame:
    """Return the models that were trained and scored, with hashes of their weights and scores.

    Examples
    --------
    >>> models().groupby("family").size()[["bert", "albef"]].tolist()
    [60, 10]
    """
    note_files(DATA / "*")
    return pandas.read_csv(DATA / "models.csv", converters={"start": str})
