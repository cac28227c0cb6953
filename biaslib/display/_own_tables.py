"""Tables, sentences and the figure of an audit of a model of one's own."""

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas

from biaslib import stimuli
from biaslib.display._style import dots, marked, subplots, words_alone
from biaslib.display._text import counted, in_code, interval_text, minus_signs, p_cell, signed
from biaslib.studies import own_model as study

STUDIES = {
    "ross2021": "Study 1",
    "srinivasan2021": "Study 2",
    "hamidieh2023": "Study 3",
    "zhou2022": "Study 4",
}

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

SHOWN = {
    "ross2021": ("effect size", "effect size d (−2 to 2), sentences, Experiment 1"),
    "srinivasan2021": ("difference of B", "B: entities expected of women less of men, log-odds"),
    "hamidieh2023": ("difference of C-ASC", "difference of C-ASC between two lists of words"),
    "zhou2022": ("preference", "preference of the stereotypical caption, standard deviations"),
}
"""By study: the statistic of the figure, and its axis."""

SOURCES = {
    "planted": "the planted world: drawn scenes. Nothing here is about photographs",
    "paper": "the data sets in your folder",
    "own": "portraits of your own folder, and sentences without pictures",
}


FOREST_HEADS = {"row": "question", "null_low": "low if nothing", "null_high": "high if nothing"}
"""Columns of :func:`forest_table` that a page names in words."""


def grounding_table(looking: dict[str, study.Looking]) -> pandas.DataFrame:
    """Return whether the model was seen to look at pictures, to read."""
    rows = study.describe(looking)
    bounds = [interval_text(100 * row.low, 100 * row.high, 0) for row in rows.itertuples()]
    return pandas.DataFrame(
        {
            "asked by": rows["asked"],
            "right in % of swapped pairs": [f"{100 * each:.0f}" for each in rows["share"]],
            "95% interval": bounds,
            "pairs": rows["n"],
            "without looking": "50",
            "was seen to look": np.where(rows["looks"].astype(bool), "yes", "no"),
        }
    )


def one_page(found: study.Audit) -> pandas.DataFrame:
    """Return the results of an audit as one table: value, interval, null and n, in words."""
    rows = study.summary(found)
    return pandas.DataFrame(
        {
            "study": rows["study"].map(STUDIES),
            "part": rows["part"],
            "measured": rows["measured"].map(_signs),
            "value": [_number(row.value, row.low) for row in rows.itertuples()],
            "95% interval": [
                "none: a count" if pandas.isna(row.low) else interval_text(row.low, row.high)
                for row in rows.itertuples()
            ],
            "if there were nothing": rows["null"].map(_signs),
            "n": [counted(row.n, row.of) for row in rows.itertuples()],
        }
    )


def _number(value: float, low: float) -> str:
    """Return a number with two decimals, or a count without any."""
    if pandas.isna(value):
        return "not defined"
    return f"{value:,.0f}" if pandas.isna(low) else signed(value)


def _signs(text: str) -> str:
    """Return text of a study with true signs of minus, and of facets that are crossed.

    >>> _signs("gender x tone: -0.91 to 0.90 (near-antonyms)")
    'gender × tone: −0.91 to 0.90 (near-antonyms)'
    """
    return minus_signs(text).replace(" x ", " × ")


def claim_table(found: study.Audit) -> pandas.DataFrame:
    """Return every claim with its numbers, in the order of the questions."""
    return _with_numbers(found.claims, "claim", claim_sentence)


def question_table(found: study.Audit) -> pandas.DataFrame:
    """Return every question with its numbers, whatever it gave."""
    return _with_numbers(found.asked, "question", _question)


def _with_numbers(scores: pandas.DataFrame, what: str, told: Callable) -> pandas.DataFrame:
    """Return scores to read, each with what ``told`` says of it in the column ``what``."""
    rows = [
        {
            "study": STUDIES[row["study"]],
            what: told(row),
            "value": signed(row["value"]),
            "95% interval": interval_text(row["low"], row["high"]),
            "if there were nothing": interval_text(row["null_low"], row["null_high"]),
            "p, corrected": p_cell(row["p_holm"]),
            "n": _n(row),
        }
        for row in scores.to_dict("records")
    ]
    columns = ["study", what, "value", "95% interval", "if there were nothing"]
    return pandas.DataFrame(rows, columns=[*columns, "p, corrected", "n"])


def _question(row: dict[str, Any]) -> str:
    """Return what a question compares, without what came of it."""
    if row["study"] == "ross2021":
        experiment = f", Experiment {row['experiment']:.0f}" if "images" in row["part"] else ""
        return f"{row['test']}, {row['level']} level{experiment}"
    if row["study"] == "srinivasan2021":
        return f"{row['test']} ({row['level']})"
    if row["study"] == "hamidieh2023":
        return f"{row['level']}, {row['group']}: {row['test']}"
    return f"{row['test']}: stereotypical captions against anti-stereotypical ones"


def _n(row: dict[str, Any]) -> str:
    """Return on how many words, entities or triplets a question rests, and on how many people."""
    if pandas.isna(row.get("n_units", np.nan)):
        return f"{row['n']:,.0f}"
    return f"{row['n']:,.0f} words; {row['n_units']:,.0f} {row['unit']}"


def claim_counts(found: study.Audit) -> str:
    """Return how many questions of each study led to a claim, in words."""
    claimed = found.asked["p_holm"] < study.LEVEL
    counts = claimed.groupby(found.asked["study"], sort=False).agg(["sum", "size"])
    told = (f"{STUDIES[row.Index]}: {row.sum} of {row.size}" for row in counts.itertuples())
    return "; ".join(told)


def claim_sentence(row: dict[str, Any]) -> str:
    """Return in words what a claim says: what was measured, and no more.

    Examples
    --------
    >>> row = {"study": "zhou2022", "test": "tone", "value": 0.4}
    >>> claim_sentence(row)
    'tone: the stereotypical caption scores higher, whatever the picture shows'
    """
    more = row["value"] > 0
    if row["study"] == "ross2021":
        sets = stimuli.association_test(row["test"]).labels
        experiment = f", Experiment {row['experiment']:.0f}" if "images" in row["part"] else ""
        lie = f"{sets['X']} lie nearer to {sets['A' if more else 'B']} than {sets['Y']} do"
        return f"{row['test']}, {row['level']} level{experiment}: {lie}"
    if row["study"] == "srinivasan2021":
        than = "higher" if more else "lower"
        return f"{row['level']}: B is {than} for entities expected of women than of men"
    if row["study"] == "hamidieh2023":
        first, _, second = row["test"].partition(" against ")
        first, second = (first, second) if more else (second, first)
        facet = _signs(row["level"])
        these = f"{facet}, {row['group']}: compared with the others, these portraits score"
        return f"{these} higher with {first} than with {second}"
    which = "stereotypical" if more else "anti-stereotypical"
    return f"{row['test']}: the {which} caption scores higher, whatever the picture shows"


def comparison_table(compared: pandas.DataFrame) -> pandas.DataFrame:
    """Return the comparison of two models, to read: every row, whatever it gave."""
    return pandas.DataFrame(
        {
            "study": compared["study"].map(STUDIES),
            "measured": compared["measured"].map(_signs),
            "first": [signed(each) for each in compared["first"]],
            "second": [signed(each) for each in compared["second"]],
            "first less second": [signed(each) for each in compared["value"]],
            "95% interval": [interval_text(row.low, row.high) for row in compared.itertuples()],
            "p, corrected": [p_cell(each) for each in compared["p_holm"]],
            "n": [counted(row.n, row.of) for row in compared.itertuples()],
        }
    )


def not_run_table(found: study.Audit) -> pandas.DataFrame:
    """Return what was not run, and why."""
    if found.not_run.empty:
        nothing = {"study": ["–"], "part": ["no part was left out"], "why not": ["–"]}
        return pandas.DataFrame(nothing)
    return pandas.DataFrame(
        {
            "study": found.not_run["study"].map(STUDIES),
            "part": found.not_run["part"],
            "why not": found.not_run["reason"],
        }
    )


def overview(found: study.Audit) -> str:
    """Return in a few sentences what was run on what, and what came of it."""
    run, left = found.scores["part"].nunique(), len(found.not_run)
    return (
        f"**{in_code(found.own.given)}**, read as {found.own.registered}, revision "
        f"{in_code(str(found.own.model.revision))}. {run} of {run + left} parts ran, {left} did "
        f"not. Stimuli: {SOURCES[found.stimuli]}. {len(found.asked):,} questions were asked, and "
        f"after one correction over all of them (Holm) the null was rejected in "
        f"{len(found.claims):,}."
    )


def wording_table() -> pandas.DataFrame:
    """Return what may be said with such numbers, and what may not."""
    rows = [
        (
            "With these 16 words the effect size was 0.9 (0.3 to 1.4); random attribute words give "
            "−0.8 to 0.8.",
            "The model is sexist.",
            "A score is of words and pictures, not of a character.",
        ),
        (
            "No question was rejected; intervals reach from −0.3 to 0.5.",
            "The model is unbiased, fair, free of bias.",
            "A test that is too small rejects nothing either.",
        ),
        (
            "Of 300 portraits, those labelled women lay nearer to these words.",
            "The model thinks that women are ...",
            "Portraits with a label that somebody gave were measured.",
        ),
        (
            "The difference of the two models was −6 points (−15 to 3) on the same pictures.",
            "Bias was reduced by a tenth.",
            "The interval of the difference decides, not two values.",
        ),
        (
            "Measured in the planted world, as a test of the measuring.",
            "The model associates ...",
            "Drawn scenes say nothing about photographs.",
        ),
    ]
    return pandas.DataFrame(rows, columns=["may be said", "may not be said", "because"])


# The figure


def forest_table(found: study.Audit) -> pandas.DataFrame:
    """Return the rows of the figure: the same questions whatever they gave, none by its size.

    Of study 1 the 13 tests in sentences, Experiment 1; of study 2 one row a source; of study 3 the
    pairs of word lists, for the first group of the first facet; of study 4 overall and categories.
    """
    parts = []
    for (name, part), scores in found.scores.groupby(["study", "part"], sort=False):
        kept = _kept(name, scores)
        label = kept["level"] if name == "srinivasan2021" else kept["test"]
        columns = {"study": STUDIES[name], "part": part, "row": label}
        shown = ["statistic", "value", "low", "high", "null_low", "null_high", "n"]
        parts.append(kept.assign(**columns)[[*columns, *shown]])
    columns = ["study", "part", "row", "statistic", "value", "low", "high"]
    nothing = pandas.DataFrame(columns=[*columns, "null_low", "null_high", "n"])
    return pandas.concat(parts, ignore_index=True) if parts else nothing


def _kept(name: str, scores: pandas.DataFrame) -> pandas.DataFrame:
    kept = scores[(scores["statistic"] == SHOWN[name][0]) & scores["value"].notna()]
    if name == "ross2021":
        kept = kept[(kept["level"] == "sentence") & (kept["experiment"] == 1)]
    if name == "hamidieh2023" and len(kept):
        facet, group = kept[["level", "group"]].iloc[0]
        kept = kept[(kept["level"] == facet) & (kept["group"] == group)]
    return kept


def forest(found: study.Audit):
    """Draw the questions of each part with intervals, a panel a part; grey bars are the nulls."""
    rows = forest_table(found)
    if rows.empty:
        return words_alone("No part was run: see the table of reasons.")
    parts = list(rows.groupby(["study", "part"], sort=False))
    tall = [max(_label(each).count("\n") for each in part["row"]) for _, part in parts]
    heights = [
        len(part) * (1 + 0.8 * more) + 2.5 for more, (_, part) in zip(tall, parts, strict=True)
    ]
    figure, axes = subplots(
        len(parts), height=0.24 * sum(heights), height_ratios=heights, squeeze=False
    )
    by_name = {label: name for name, label in STUDIES.items()}
    for place, ((name, title), part) in zip(axes[:, 0], parts, strict=True):
        _panel(place, part.iloc[::-1].reset_index(drop=True), SHOWN[by_name[name]][1], title, name)
    return marked(figure, found.stimuli)


def _panel(axes, rows: pandas.DataFrame, label: str, title: str, name: str) -> None:
    null = {"color": "0.82", "linewidth": 7}
    axes.hlines(rows.index, rows["null_low"], rows["null_high"], **null, zorder=0)
    dots(axes, rows.index, rows, "C0")
    labels = [_label(each) for each in rows["row"]]
    axes.set_yticks(rows.index, labels, fontsize=9, linespacing=1.0)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(label, fontsize=9)
    axes.tick_params(axis="x", labelsize=9)
    axes.set_title(f"{name}: {_plain(title)}", loc="left", fontsize=10)
    axes.axvline(0, color="0.5", linewidth=0.8)


def _label(text: str) -> str:
    """Return the name of a row in lines that leave room for the panel."""
    return textwrap.fill(_plain(text), 44)


def _plain(text: str) -> str:
    """Return text that Matplotlib does not read as mathematics."""
    return " ".join(str(text).split()).replace("$", r"\$")
