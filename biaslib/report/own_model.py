"""The page about a model of one's own: what was asked, its nulls, what was not run, and why."""

import re
from typing import Any

import numpy as np

from biaslib.report._check import Check, judge
from biaslib.report._own_report import (
    Downloads,
    blocks,
    html_report,
    report_figure,
    require_writable,
)
from biaslib.report._own_report import write_up as write_up
from biaslib.report._own_tables import (
    FAMILIES,
    FOREST_HEADS,
    STUDIES,
    claim_counts,
    claim_table,
    comparison_table,
    forest,
    forest_table,
    grounding_table,
    not_run_table,
    one_page,
    overview,
    wording_table,
)

__all__ = [
    "FAMILIES",
    "FOREST_HEADS",
    "STUDIES",
    "Downloads",
    "blocks",
    "check_count",
    "check_reading",
    "check_swapped",
    "claim_counts",
    "claim_table",
    "comparison_table",
    "false_alarm_sentence",
    "forest",
    "forest_table",
    "grounding_table",
    "html_report",
    "not_run_table",
    "one_page",
    "overview",
    "report_figure",
    "require_writable",
    "wording_table",
    "write_up",
]


def false_alarm_sentence(rate: dict[str, float]) -> str:
    """Return how many reports on models without planted bias claim anything.

    Parameters
    ----------
    rate
        *reports*, *false*, *share*, *low* and *high*.
    """
    return (
        f"Something is claimed in {rate['false']} of {rate['reports']} reports on tiny models in "
        f"which nothing was planted ({rate['share']:.1%}; 95% interval {rate['low']:.1%} to "
        f"{rate['high']:.1%})."
    )


# Exercises


def check_count(count: Any) -> Check:
    """Check how many of 13 independent tests are expected to reject at .05 where nothing is.

    >>> check_count(13 * 0.05)
    Right: well over half a test on average, so that one rejection of 13 is no news.
    """
    right = "well over half a test on average, so that one rejection of 13 is no news."
    return judge(count, 13 * 0.05, "each test rejects with probability .05", 1e-9, right)


def check_swapped(share: Any) -> Check:
    """Check in which share of swapped pairs a model is right that does not look.

    >>> check_swapped(0.5)
    Right: what a caption is worth by itself stands on both sides.
    """
    hint = "write both sums for one pair: do any of their terms differ?"
    return judge(share, 0.5, hint, 1e-9, "what a caption is worth by itself stands on both sides.")


VERDICTS = (
    *(r"\bunbiased\b", r"\bde-?biased\b", r"\bunfair\b", r"\bfair(ly|er|est|ness)?\b"),
    *(r"(?<!not )\bpro(ves?|ved|ven)\b", r"\bfree (of|from)\b", r"\bharmless\b"),
    *(r"\b(racist|sexist|bigoted|prejudiced|biased)\b", r"\bno (bias|association)\b"),
    *(r"\bdiscriminat\w*\b", r"\b(safe|certified|solved|significant bias)\b"),
)
"""What a score cannot bear, as whole words: FairFace is a name."""

READINGS = ((0.12, -0.3, 0.54), (-0.71, -1.02, -0.4))
"""Values and intervals that a sentence is tried with; one interval has 0 in it, one has not."""


def check_reading(sentence: Any) -> Check:
    """Check that a function words an interval without words that a score cannot bear.

    >>> check_reading(lambda v, l, h: f"on FairFace we measured {v:.2f} ({l:.2f} to {h:.2f})")
    Right: value and interval are there, and no verdict on the model.
    """
    hint = (
        "give value, low and high with two decimals, and say what was measured, not what the model "
        "is: no verdict such as racist, unbiased, fair or proven"
    )
    try:
        texts = [" ".join(str(sentence(*each)).split()) for each in READINGS]
    except Exception:
        return Check(False, hint)
    passed = all(_bears(*each) for each in zip(texts, READINGS, strict=True))
    return Check(
        passed, "value and interval are there, and no verdict on the model." if passed else hint
    )


def _bears(text: str, numbers: tuple[float, ...]) -> bool:
    """Return whether all numbers are in a text, and no verdict is."""
    there = [float(each) for each in re.findall(r"-?\d*\.\d+", text.replace("−", "-"))]
    said = all(any(np.isclose(each, number) for each in there) for number in numbers)
    return said and not any(re.search(verdict, text.lower()) for verdict in VERDICTS)
