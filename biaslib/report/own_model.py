"""The page about a model of one's own: results, what was not run, files, a report to fill in."""

import base64
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib.report._check import Check, judge
from biaslib.report._style import dots, marked, subplots, words_alone
from biaslib.report._text import in_code, interval_text, signed
from biaslib.studies import own_model as study

STUDIES = {
    "ross2021": "Study 1",
    "srinivasan2021": "Study 2",
    "hamidieh2023": "Study 3",
    "zhou2022": "Study 4",
}
SHOWN = {
    "ross2021": ("effect size", "effect size d (−2 to 2)", (-2.1, 2.1), 0.0),
    "srinivasan2021": ("B", "bias score B, log-odds", None, 0.0),
    "hamidieh2023": ("c_asc", "C-ASC of women against men", (-2.1, 2.1), 0.0),
    "zhou2022": ("vlbs", "vlbs, % of images", (-3, 103), np.nan),
}
"""By study: the statistic of the figure, its axis, the ends of the axis, and where nothing is."""

MOST = 8
"""Rows that a panel of the figure has room for."""


def capability_table(own) -> pandas.DataFrame:
    """Return which parts of the audit a model can be asked for, to read."""
    found = study.capabilities(own)
    return pandas.DataFrame(
        {
            "study": found["study"].map(STUDIES),
            "part": found["part"],
            "asks the model to": found["needs"],
            "possible": np.where(found["possible"], "yes", "no: " + found["missing"]),
        }
    )


def one_page(found: study.Audit) -> pandas.DataFrame:
    """Return the results of an audit as one table, intervals in words."""
    rows = study.summary(found)
    return pandas.DataFrame(
        {
            "study": rows["study"].map(STUDIES),
            "part": rows["part"],
            "measured": rows["measured"],
            "value": rows["value"],
            "95% interval": [
                "none: one number" if pandas.isna(row.low) else interval_text(row.low, row.high)
                for row in rows.itertuples()
            ],
            "n": [f"{row.n:,.0f} {row.of}" for row in rows.itertuples()],
        }
    )


def not_run_table(found: study.Audit) -> pandas.DataFrame:
    """Return what was not run, and why."""
    if found.not_run.empty:
        return pandas.DataFrame({"study": ["–"], "part": ["everything was run"], "why not": ["–"]})
    return pandas.DataFrame(
        {
            "study": found.not_run["study"].map(STUDIES),
            "part": found.not_run["part"],
            "why not": found.not_run["reason"],
        }
    )


def overview(found: study.Audit) -> str:
    """Return in one sentence what was run on what."""
    run, left = found.scores["part"].nunique(), len(found.not_run)
    source = (
        "the planted world: nothing here is about photographs"
        if found.profile == "planted"
        else "the data sets in your folder"
    )
    return (
        f"**{in_code(found.own.given)}**, read as {found.own.registered}, revision "
        f"{in_code(found.own.model.revision)}. {run} of {run + left} parts ran, {left} did not. "
        f"Stimuli: {source}. {len(found.scores):,} scores in all."
    )


def floor_sentence(found: study.Audit) -> str:
    """Return what the audit of a model without any association shows."""
    rows = study.summary(found)
    largest = rows[rows["measured"].str.startswith("largest")]
    scores = ", ".join(f"{signed(row.value)} ({row.part})" for row in largest.itertuples())
    return (
        "Nothing was planted in that model, and its page is not empty. The largest scores: "
        f"{scores}. Whoever reports the largest score of a model reports such a number."
    )


# The figure


def forest_table(found: study.Audit) -> pandas.DataFrame:
    """Return the rows of the figure: the largest scores of each part, up to eight."""
    parts = []
    for (name, part), scores in found.scores.groupby(["study", "part"], sort=False):
        statistic, *_ = SHOWN[name]
        kept = scores[(scores["statistic"] == statistic) & scores["value"].notna()]
        if name == "hamidieh2023":
            kept = kept[kept["bias_type"] == study.QUOTED]
        order = kept["value"].abs().sort_values(ascending=False).index[:MOST]
        kept = kept.loc[order].sort_values("value")
        label = kept["test"] if name != "srinivasan2021" else kept["test"] + ", " + kept["level"]
        columns = {"study": STUDIES[name], "part": part, "row": label}
        parts.append(kept.assign(**columns)[[*columns, "statistic", "value", "low", "high", "n"]])
    columns = ["study", "part", "row", "statistic", "value", "low", "high", "n"]
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame(columns=columns)


def forest(found: study.Audit):
    """Draw the scores of each part with their intervals, a panel a part, each in its own unit."""
    rows = forest_table(found)
    if rows.empty:
        return words_alone("No part was run: see the table of reasons.")
    parts = list(rows.groupby(["study", "part"], sort=False))
    heights = [len(part) + 2.5 for _, part in parts]
    figure, axes = subplots(
        len(parts), height=0.24 * sum(heights), height_ratios=heights, squeeze=False
    )
    by_name = {label: name for name, label in STUDIES.items()}
    for place, ((name, title), part) in zip(axes[:, 0], parts, strict=True):
        _panel(place, part.reset_index(drop=True), SHOWN[by_name[name]], f"{name}: {title}")
    return marked(figure, found.profile)


def _panel(axes, rows: pandas.DataFrame, shown: tuple, title: str) -> None:
    _, label, ends, nothing = shown
    dots(axes, rows.index, rows, "C0")
    axes.set_yticks(rows.index, rows["row"], fontsize=8)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(label, fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(title, loc="left", fontsize=10)
    if ends:
        axes.set_xlim(*ends)
    if np.isfinite(nothing):
        axes.axvline(nothing, color="0.5", linewidth=0.8)


# Files


class Downloads:
    """Links that hold the files of an audit themselves, so that they work on a page too.

    Attributes
    ----------
    files
        Kind and text by name: the scores, what they were made of, and the report to fill in.
    """

    def __init__(self, found: study.Audit):
        self.files = {
            "scores.csv": ("text/csv", found.scores.to_csv(index=False)),
            "provenance.json": ("application/json", json.dumps(found.provenance, indent=1) + "\n"),
            "report.md": ("text/markdown", write_up(found)),
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write the files, which belong together, into a folder; make it if it is not there."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, (_, text) in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return [folder / name for name in self.files]

    def _repr_html_(self) -> str:
        return f"<p>To keep: {', '.join(self._link(name) for name in self.files)}.</p>"

    def _link(self, name: str) -> str:
        kind, text = self.files[name]
        held = base64.b64encode(text.encode()).decode()
        return f'<a download="{html.escape(name)}" href="data:{kind};base64,{held}">{name}</a>'

    def __repr__(self) -> str:
        return f"files of the audit: {', '.join(self.files)}"


def downloads(found: study.Audit) -> Downloads:
    """Return links to the scores, what they were made of, and the report to fill in."""
    return Downloads(found)


# The report


def write_up(found: study.Audit) -> str:
    """Return a report in Markdown: what the audit knows is filled in, what you know is asked for.

    Square brackets mark what a person has to write. A report with brackets left is not finished.
    """
    rows = one_page(found)
    results = "\n".join(
        f"| {row.study} | {row.part} | {row.measured} | {signed(row.value)} | {row[5]} | {row.n} |"
        for row in rows.itertuples(index=False)
    )
    left = "\n".join(
        f"- {row[1]} ({row[0]}): {row[2]}"
        for row in not_run_table(found).itertuples(index=False, name=None)
    )
    provenance = found.provenance
    planted = (
        "\n> **The stimuli are of a planted world: drawn scenes and invented captions. These "
        "numbers test the measuring. They say nothing about the model's treatment of photographs "
        "or of people, and must not be quoted as findings about it.**\n"
        if found.profile == "planted"
        else ""
    )
    name = in_code(found.own.given)
    return f"""# Association measures of {name}
{planted}
## What was measured, and why

Model: {name}, revision {in_code(found.own.model.revision)}, read as {found.own.registered}.
Data: {"; ".join(provenance["data"]) or "none"}. Profile: {found.profile}.
Software: biaslib {provenance["biaslib"]}. Finished: {found.finished}.

[Why this model, and for which use. Who decides what on the ground of this report.]
[Who are the people in the pictures, who gave them their labels, and did they agree?]
[Which groups do the tests have words for, and which people do they leave out?]

## Results

| Study | Part | Measured | Value | 95% interval | n |
|---|---|---|---|---|---|
{results}

[Say of each number: high or low against what? Name the scores of control words, or of models
trained without the association. Do not add the studies up: their units differ.]

## What was not run

{left}

[Whether this matters for the use above.]

## What this does not show

- A score describes the model with these words and pictures. It does not say how the model, or a
  system built on it, treats people; intrinsic measures have been found not to predict that.
- A small score, or a large p-value, is no proof that nothing is there: give the interval.
- Models in which nothing was planted give scores above zero as well. [How large are those of
  comparable models?]
- Two genders and a few race labels are the studies', not the world's.
- The words are English, and from the United States. [Where will the model be used?]

## Decisions and limits

[What changes because of this report, who was asked, and who can object.]
[What would have to be measured next, on the system as it is used.]

## Words to keep to

Say *measured*, *higher*, *lower*, *with these stimuli*. Do not say *unbiased*, *debiased*, *fair*,
*proved*, or that a model *is* sexist or racist. Cite the study whose measure a number is.
"""


def report_outline(found: study.Audit) -> pandas.DataFrame:
    """Return the headings of the report, with what a person has to write under each."""
    parts = re.split(r"^## ", write_up(found), flags=re.M)[1:]
    rows = [(part.splitlines()[0], " ".join(re.findall(r"\[([^\]]+)\]", part))) for part in parts]
    rows = [(heading, " ".join(asked.split()) or "nothing: filled in") for heading, asked in rows]
    return pandas.DataFrame(rows, columns=["section", "what only you can write"])


# Exercises


def check_count(count: Any) -> Check:
    """Check how many of 13 independent tests are expected to reject at .05 where nothing is.

    >>> check_count(13 * 0.05)
    Right: well over half a test on average, so that one rejection of 13 is no news.
    """
    right = "well over half a test on average, so that one rejection of 13 is no news."
    return judge(count, 13 * 0.05, "each test rejects with probability .05", 1e-9, right)


def check_reading(sentence: Any) -> Check:
    """Check that a function words an interval without words that a score cannot bear.

    >>> check_reading(lambda value, low, high: f"measured {value} ({low} to {high})")
    Right: value and interval are there, and no verdict on the model.
    """
    hint = "give value, low and high in the sentence, and leave out unbiased, fair and proves"
    try:
        text = str(sentence(0.12, -0.3, 0.54)).lower()
    except Exception:
        return Check(False, hint)
    numbers = all(number in text.replace("−", "-") for number in ("0.12", "-0.3", "0.54"))
    verdicts = any(word in text for word in ("unbiased", "fair", "prove", "free of", "debiased"))
    passed = numbers and not verdicts
    right = "value and interval are there, and no verdict on the model."
    return Check(passed, right if passed else hint)
