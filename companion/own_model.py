"""The chapter on a model of one's own: its answers in one figure, its files as links, exercises."""

import base64
import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib.audit import Audit, files
from biaslib.display import interval_text, marked, subplots
from companion._check import Check, judge, stopped

__all__ = [
    "FAMILIES",
    "answers_figure",
    "answers_table",
    "beside_untrained",
    "check_count",
    "check_reading",
    "check_swapped",
    "links",
]

FAMILIES = {
    "albef": "ALBEF",
    "clip": "CLIP",
    "flava": "FLAVA",
    "lxmert": "LXMERT",
    "vilbert": "ViLBERT",
    "vilt": "ViLT",
    "visualbert": "VisualBERT",
    "vl_bert": "VL-BERT",
}
"""Families of models by the names of their checkpoints."""


STUDIES = {
    "ross2021": "Study 1: names\nand attributes",
    "srinivasan2021": "Study 2:\nmasked words",
    "hamidieh2023": "Study 3:\nportraits",
    "zhou2022": "Study 4: captions\nto choose from",
}
"""What each study of an audit asks about."""

NUMBER = re.compile(r"(?<=,)-?\d+\.\d{5,}(?:e-\d+)?(?=[,\n])")
"""A number in a CSV file with more digits than a page has to carry."""


def answers_figure(result: Audit) -> Any:
    """Draw each question's answer in half-widths of its null; those that are claimed in orange."""
    asked = _against_null(result)
    rows = list(asked.groupby("study", sort=False))
    figure, axes = subplots(height=1.1 + 0.6 * len(rows), width=3.42)
    axes.axvspan(-1, 1, color="0.86", zorder=0)
    for height, (_, row) in enumerate(rows):
        at = height + np.random.default_rng(0).uniform(-0.3, 0.3, len(row))
        for claimed, style in ((False, ("C0", 12, 0.5)), (True, ("C1", 42, 1))):
            shown, (colour, size, alpha) = row["claimed"] == claimed, style
            axes.scatter(row["away"][shown], at[shown], c=colour, s=size, alpha=alpha, lw=0)
    axes.set_yticks(range(len(rows)), [STUDIES[name] for name, _ in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("no  ←  answer  →  yes", fontsize=9)
    axes.set_title(
        f"{asked['claimed'].sum()} of {len(asked)} answers are claimed",
        fontsize=11,
        loc="left",
    )
    return marked(figure, result.stimuli)


def answers_table(result: Audit) -> pandas.DataFrame:
    """Return by part how many questions there are, outside of their null, and claimed."""
    asked = _against_null(result).assign(outside=lambda rows: rows["away"].abs() > 1)
    table = asked.groupby(["study", "part"], sort=False, as_index=False).agg(
        questions=("away", "size"), outside=("outside", "sum"), claimed=("claimed", "sum")
    )
    table["study"] = table["study"].map(STUDIES).str.partition(":")[0]
    return table


def _against_null(result: Audit) -> pandas.DataFrame:
    """Return the questions with how far they lie from the middle of their null: 1 is its end."""
    middle = result.asked[["null_low", "null_high"]].mean(axis=1)
    away = (result.asked["value"] - middle) / (result.asked["null_high"] - middle)
    return result.asked.assign(away=away, claimed=result.asked.index.isin(result.claims.index))


def links(result: Audit) -> Any:
    """Return links that hold the files of an audit themselves, packed; scores to six digits."""
    from IPython.display import HTML

    texts = files(result)
    texts["scores.csv"] = NUMBER.sub(lambda n: f"{float(n[0]):.6g}", texts["scores.csv"])
    packed = {name: gzip.compress(text.encode(), mtime=0) for name, text in texts.items()}
    return HTML(
        "<p>To keep: "
        + ", ".join(
            f'<a download="{name}.gz" href="data:application/gzip;base64,'
            f'{base64.b64encode(content).decode()}">{name}</a>'
            for name, content in packed.items()
        )
        + ".</p>"
    )


def beside_untrained(audits: dict[str, Audit]) -> pandas.DataFrame:
    """Count the answers of audits that lie outside the null, and beyond networks that are random.

    The last columns have the median size of the C-ASC of single words, of the random networks from
    the least to the greatest.
    """
    rows = []
    for name, result in audits.items():
        asked, drawn = result.asked, result.untrained
        ends = [ends[asked.index] for ends in (drawn.min(axis=1), drawn.max(axis=1))]
        beyond = ~asked["value"].between(*ends)
        words = result.scores["statistic"] == "c_asc"
        sizes = drawn[words].abs().median()
        row = {
            "model": name,
            "questions": len(asked),
            "outside the null": (
                ~asked["value"].between(asked["null_low"], asked["null_high"])
            ).sum(),
            "beyond three untrained": beyond.sum(),
            "claimed": len(result.claims),
            "claimed and beyond": beyond[result.claims.index].sum(),
            "|C-ASC|, single words": result.scores.loc[words, "value"].abs().median(),
            "the same, untrained": interval_text(sizes.min(), sizes.max()),
        }
        rows.append(row)
    return pandas.DataFrame(rows)


# Exercises


def check_count(count: Any) -> Check:
    """Check how many of 13 independent tests are expected to reject at .05 where nothing is.

    >>> check_count(13 * 0.05)
    Right: well over half a test on average, so that one rejection of 13 is no news.
    """
    right = "well over half a test on average, so that one rejection of 13 is no news."
    return judge(count, 13 * 0.05, "each test rejects with probability .05", right=right)


def check_swapped(share: Any) -> Check:
    """Check in which share of swapped pairs a model is right that does not look.

    >>> check_swapped(0.5)
    Right: what a caption is worth by itself stands on both sides.
    """
    hint = "write both sums for one pair: do any of their terms differ?"
    right = "what a caption is worth by itself stands on both sides."
    return judge(share, 0.5, hint, right=right)


DATA = Path(__file__).parent / "data"
VERDICTS = re.compile("|".join((DATA / "verdicts.txt").read_text(encoding="utf-8").splitlines()))
"""What a score cannot bear, as whole words: FairFace is a name."""

DISCLAIMED = re.compile(
    r"(\b(not|cannot|never)|n't) (\w+ ){0,3}?(shows?|shown|prov\w+|mean|say|imply|tell|establish)\b"
    r"[^,.;:!?]*|\bno (verdict|proof|evidence|claim)\b[^,.;:!?]*|\bprov\w+ nothing\b"
)
"""A clause that says what does not follow."""

READINGS = ((0.1234, -0.3021, 0.5437), (-0.7146, -1.0219, -0.4038))
"""Values and intervals that a sentence is tried with; one interval has 0 in it, one has not."""


def check_reading(sentence: Any) -> Check:
    """Check that a function words an interval without words that a score cannot bear.

    >>> check_reading(lambda v, l, h: f"on FairFace we measured {v:.2f} ({l:.2f} to {h:.2f})")
    Right: value and interval are there, and no verdict on the model.
    >>> check_reading(lambda v, l, h: f"{v:.2f} ({l:.2f} to {h:.2f}), so it is unbiased")
    Not yet: 'unbiased' says what the model is: say what was measured, and pass no verdict
    """
    for numbers in READINGS:
        try:
            text = " ".join(str(sentence(*numbers)).lower().split())
        except Exception as error:
            return stopped(error)
        if not _in_order(text, numbers):
            return Check(False, "give value, low and high, in this order, with two decimals each")
        if found := VERDICTS.search(DISCLAIMED.sub(" ", text)):
            hint = "says what the model is: say what was measured, and pass no verdict"
            return Check(False, f"'{found[0]}' {hint}")
    return Check(True, "value and interval are there, and no verdict on the model.")


def _in_order(text: str, numbers: tuple[float, ...]) -> bool:
    """Return whether numbers follow one another in a text, each with two decimals."""
    there = iter(re.findall(r"(?<![\d.])-?\d*\.\d+", text.replace("−", "-")))
    shown = (f"{number:.2f}" for number in numbers)
    return all(any(each in (one, one.replace("0.", ".", 1)) for each in there) for one in shown)
