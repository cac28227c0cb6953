"""From the scores of an audit to what a person reads: one page, its questions, and the figure."""

import math
import textwrap
from typing import Any

import numpy as np
import pandas
from numpy.typing import ArrayLike

from biaslib import display, stimuli
from biaslib.audit._grounding import GroundingCheck
from biaslib.audit._parts import PARTS
from biaslib.audit._run import LEVEL, Audit, out_of_reach
from biaslib.audit.nulls import outside_by_chance
from biaslib.display import in_code, p_cell

STUDIES = {
    "ross2021": "Study 1",
    "srinivasan2021": "Study 2",
    "hamidieh2023": "Study 3",
    "zhou2022": "Study 4",
}

FIGURES = {
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

UNTRAINED = "the same, untrained"
"""Heads the column of networks with random weights."""

CAPTION = (
    "The questions of each part with 95% intervals; grey bars: where 95 of 100 values lie if there "
    "is nothing to find. The same rows are shown whatever they give: for study 1 sentences in "
    "Experiment 1, for study 3 the first group of the first facet. Every panel has its own unit."
)
ALT = (
    "A column of panels, one for each part that ran. In each, a dot with a horizontal interval for "
    "every test, source, pair of word lists or category, over a grey bar around zero. A thin "
    "upright line marks zero."
)
CROSSES = " Crosses: the same network with random weights, drawn anew for each; they are no test."


def summary(result: Audit) -> pandas.DataFrame:
    """Return the results on one page: every family of questions, and what describes it.

    No row is chosen because it is large.

    Returns
    -------
    pandas.DataFrame
        *study*, *part*, *measured*, *value* (a whole number where it is a count), *low*, *high*,
        *if there were nothing* (in words), where there are networks with random weights their least
        and greatest value, *n*, *of* (what n counts).
    """
    columns = ["measured", "value", "low", "high", "if there were nothing", UNTRAINED, "n", "of"]
    rows = []
    for (study, part), scores in result.scores.groupby(["study", "part"], sort=False):
        rows += [(STUDIES[study], part, *row) for row in SUMMARIES[study](scores)]
    table = pandas.DataFrame(rows, columns=["study", "part", *columns], dtype=object)
    return table.drop(columns=[] if result.untrained.shape[1] else UNTRAINED)


Row = tuple[str, float, float, float, str, str, int, str]


def _count(measured: str, hits: pandas.Series, of: str, null: str) -> Row:
    """Return the row of a count, which has no interval."""
    return (measured, int(hits.sum()), np.nan, np.nan, null, "–", len(hits), of)


def _row(measured: str, row: Any, of: str, null: str) -> Row:
    (drawn,) = drawn_texts(pandas.DataFrame([row]))
    return (measured, row["value"], row["low"], row["high"], null, drawn, int(row["n"]), of)


def drawn_texts(scores: pandas.DataFrame) -> list[str]:
    """Return the least and the greatest value of networks with random weights of each row."""
    drawn = scores.filter(regex="^untrained ").astype(float)
    return display.interval_texts({"low": drawn.min(axis=1), "high": drawn.max(axis=1)})


def _claimed(scores: pandas.DataFrame, of: str, measured: str = "claimed after correction") -> Row:
    """Return how many questions of a part are claimed."""
    asked = scores[scores["p_value"].notna()]
    null = f"none; even one anywhere in at most {100 * LEVEL:.0f} of 100 reports"
    return _count(measured, asked["p_holm"] < LEVEL, of, null)


def _outside(scores: pandas.DataFrame) -> pandas.Series:
    return (scores["value"] < scores["null_low"]) | (scores["value"] > scores["null_high"])


def _outside_innocent(scores: pandas.DataFrame, measured: str, of: str) -> Row:
    """Count the rows outside of the range of innocent ones, and how many would be by chance."""
    expected = float(outside_by_chance(scores["null_n"]).sum())
    return _count(measured, _outside(scores), of, f"{expected:.1f} if they were innocent, too")


def _null(row: Any) -> str:
    return display.interval_text(row["null_low"], row["null_high"])


def _of_tests(scores: pandas.DataFrame) -> list[Row]:
    """Count the tests that are claimed, and those outside of random attribute words."""
    of = "tests, levels and experiments"
    beside = scores[scores["null_low"].notna() & scores["value"].notna()]
    what, null = "outside of 95% of random attribute words", f"{0.05 * len(beside):.1f} expected"
    outside = [_count(what, _outside(beside), of, null)] if len(beside) else []
    return [_claimed(scores, of), *outside]


def _of_entities(scores: pandas.DataFrame) -> list[Row]:
    """Return the difference of B, the shares that agree with the label, and B beside things."""
    rows = [_claimed(scores, "sources")]
    for row in scores[scores["statistic"] == "difference of B"].to_dict("records"):
        what = f"B of entities expected of women less of men ({row['level']})"
        rows.append(_row(what, row, "entities", f"{_null(row)} (entities dealt out anew)"))
    for row in scores[scores["statistic"] == "agrees with the label"].to_dict("records"):
        what = f"share of entities: {row['statistic']} ({row['level']})"
        rows.append(_row(what, row, "entities", "0.50"))
    beside = scores[(scores["statistic"] == "B") & scores["null_low"].notna()]
    if len(beside):
        what = "entities with B outside of 95% of innocent things"
        rows.append(_outside_innocent(beside, what, "entities and sources"))
    return rows


def _of_words(scores: pandas.DataFrame) -> list[Row]:
    """Return by facet what is claimed, and how many words lie outside of the innocent ones."""
    rows = []
    for facet, part in scores.groupby("level", sort=False):
        of = "pairs of word lists and groups"
        rows.append(_claimed(part, of, f"{facet}: claimed after correction"))
        words, what = part[part["statistic"] == "c_asc"], "C-ASC outside of 95% of innocent words"
        rows.append(_outside_innocent(words, f"{facet}: {what}", "words and groups"))
    return rows


def _of_choices(scores: pandas.DataFrame) -> list[Row]:
    """Return the scores overall and by category."""
    rows = [_claimed(scores, "categories and overall")]
    for row in scores.to_dict("records"):
        nulls = {
            "vlrs": "66.67 by guessing",
            "ivlas": "66.67 by guessing",
            "vlbs": f"the other way round: {row.get('mirrored', np.nan):.2f} ({_null(row)})",
            "preference": f"{_null(row)} (captions swapped)",
        }
        of = "triplets" if row["statistic"] == "preference" else "images"
        what = f"{row['test']}: {row['statistic']}"
        rows.append(_row(what, row, of, nulls.get(row["statistic"], "")))
    return rows


SUMMARIES = {
    "ross2021": _of_tests,
    "srinivasan2021": _of_entities,
    "hamidieh2023": _of_words,
    "zhou2022": _of_choices,
}


def grounding_table(checks: dict[str, GroundingCheck]) -> pandas.DataFrame:
    """Return whether the model was seen to look at pictures, in percent of swapped pairs."""
    columns = ["asked by", "right in %", "low", "high", "pairs", "without looking", "looks"]
    rows = [
        (c.head, 100 * c.share, 100 * c.low, 100 * c.high, c.n, 50, c.passed)
        for c in checks.values()
    ]
    return pandas.DataFrame(rows, columns=columns)


def question_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return questions with their numbers, in their order; a value above 0 is a yes.

    Parameters
    ----------
    scores
        ``asked`` or ``claims`` of an :class:`Audit`.
    """
    units = scores.get("n_units", pandas.Series(index=scores.index, dtype=float))
    there = "untrained 0" in scores
    table = pandas.DataFrame(
        {
            "study": scores["study"].map(STUDIES),
            "question": [question(row) for row in scores.to_dict("records")],
            "value": scores["value"],
            "low": scores["low"],
            "high": scores["high"],
            "low if nothing": scores["null_low"],
            "high if nothing": scores["null_high"],
            UNTRAINED: drawn_texts(scores) if there else "",
            "p, corrected": [p_cell(p_value) for p_value in scores["p_holm"]],
            "n": scores["n"],
            "people or drawings": units.astype("Int64"),
        }
    )
    return table.drop(columns=[] if there else UNTRAINED)


def comparison_table(compared: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows of a comparison of two models, and which of them differ."""
    return compared.drop(columns="p_least").assign(
        p_value=compared["p_value"].map(p_cell),
        p_holm=compared["p_holm"].map(p_cell),
        differ=(compared["p_holm"] < LEVEL).map({True: "yes", False: "no"}),
    )


def question(row: dict[str, Any]) -> str:
    """Return in words what a row asks: what is measured, and no more.

    Examples
    --------
    >>> question({"study": "zhou2022", "test": "tone"})
    'tone: does the stereotypical caption score higher, whatever the picture shows?'
    """
    if row["study"] == "ross2021":
        sets = stimuli.association_test(row["test"]).labels
        experiment = f", Experiment {row['experiment']:.0f}" if "images" in row["part"] else ""
        nearer = f"are {sets['X']} nearer to {sets['A']} than {sets['Y']} are?"
        return f"{row['test']}, {row['level']} level{experiment}: {nearer}"
    if row["study"] == "srinivasan2021":
        return f"{row['level']}: is B higher for entities expected of women than of men?"
    if row["study"] == "hamidieh2023":
        lists = row["test"].replace(" against ", " than with ")
        portraits = f"{row['level']}, {row['group']}: compared with the others, do these portraits"
        return f"{portraits} score higher with {lists}?"
    higher = "does the stereotypical caption score higher, whatever the picture shows?"
    return f"{row['test']}: {higher}"


def claim_counts(result: Audit) -> str:
    """Return how many questions of each study led to a claim, in words."""
    claimed = result.asked["p_holm"] < LEVEL
    counts = claimed.groupby(result.asked["study"], sort=False).agg(["sum", "size"])
    return "; ".join(
        f"{STUDIES[row.Index]}: {row.sum} of {row.size}" for row in counts.itertuples()
    )


def reach(least: ArrayLike, p_values: ArrayLike | None = None, asked: str = "questions") -> str:
    """Say how many questions can be claimed only after others, and whether they could have been.

    Parameters are as of :func:`biaslib.audit._run.out_of_reach`, and what is asked, in the plural.
    Before the run, the others are taken to come out as clearly as they can.

    Examples
    --------
    >>> eight_and_eight = [2 / 12_870] * 2
    >>> said = reach(eight_and_eight + [1e-9] * 341, [0.5] * 2 + [1e-8] * 341)
    >>> for sentence in said.split(". ")[1:]:
    ...     print(sentence)
    At least 22 others have to be claimed before the first of them (Holm's correction)
    In this run 0 of them cannot be claimed, whatever the model does in them.
    """
    least = np.asarray(least, dtype=float)
    beyond = least[out_of_reach(least)]
    if not len(beyond):
        return f"Each of {len(least):,} {asked} rests on enough words or people to be claimed."
    # Holm divides the level by the number of questions that are not claimed yet.
    others = len(least) - (math.ceil(LEVEL / beyond.min()) - 1)
    when = "Even if all others are clear," if p_values is None else "In this run"
    lost = out_of_reach(least, least if p_values is None else p_values).sum()
    return (
        f"{len(beyond):,} of {len(least):,} {asked} rest on so few words or people that even the "
        f"clearest answer gives no p below 1/{1 / beyond.min():,.0f}. At least {others:,} others "
        f"have to be claimed before the first of them (Holm's correction). {when} {lost:,} of them "
        "cannot be claimed, whatever the model does in them."
    )


def overview(result: Audit) -> str:
    """Return in a few sentences what was run on what, and what came of it, as Markdown."""
    names = {part.name for part in PARTS}
    run, left = result.scores["part"].nunique(), int(result.not_run["part"].isin(names).sum())
    model = result.audited.model
    return (
        f"**{in_code(result.audited.name)}**, read as {in_code(str(model.name))}, revision "
        f"{in_code(str(model.revision))}. {run} of {run + left} parts ran, {left} did "
        f"not. Stimuli: {SOURCES[result.stimuli]}. {len(result.asked):,} questions were asked, and "
        f"after one correction over all of them (Holm) {len(result.claims):,} are claimed: their "
        "answers are clearer than chance gives. "
        f"{reach(result.asked['p_least'], result.asked['p_value'])}"
    )


def figure(result: Audit) -> display.Figure:
    """Return the questions of each part with intervals and nulls, and the table behind them."""
    names = {"row": "question", "null_low": "low if nothing", "null_high": "high if nothing"}
    rows = forest_table(result).rename(columns=names)
    behind = display.table(rows, "Table behind the figure: values, intervals and nulls")
    caption = CAPTION + (CROSSES if result.untrained.shape[1] else "")
    return display.figure(forest(result), caption, name="fig-own-forest", alt=ALT, table=behind)


def forest_table(result: Audit) -> pandas.DataFrame:
    """Return the rows of the figure: the same questions whatever they gave, none by its size.

    Of study 1 the 13 tests in sentences, Experiment 1; of study 2 one row a source; of study 3 the
    pairs of word lists, for the first group of the first facet; of study 4 overall and categories.
    """
    columns = ["study", "part", "row", "statistic", "value", "low", "high"]
    columns += ["null_low", "null_high", *result.untrained, "n"]
    parts = []
    for (name, part), scores in result.scores.groupby(["study", "part"], sort=False):
        kept = scores[(scores["statistic"] == FIGURES[name][0]) & scores["value"].notna()]
        if name == "ross2021":
            kept = kept[(kept["level"] == "sentence") & (kept["experiment"] == 1)]
        if name == "hamidieh2023" and len(kept):
            kept = kept[(kept[["level", "group"]] == kept[["level", "group"]].iloc[0]).all(axis=1)]
        label = kept["level"] if name == "srinivasan2021" else kept["test"]
        parts.append(kept.assign(study=STUDIES[name], part=part, row=label)[columns])
    nothing = pandas.DataFrame(columns=columns)
    return pandas.concat(parts, ignore_index=True) if parts else nothing


def forest(result: Audit) -> Any:
    """Draw the questions of each part with intervals, a panel a part; grey bars are the nulls."""
    rows = forest_table(result)
    if rows.empty:
        ran = "No part that was run has a row here" if len(result.scores) else "No part was run"
        return display.words_alone(f"{ran}: see the tables.")
    rows["row"] = [textwrap.fill(row, 24) for row in rows["row"]]
    parts = list(rows.groupby(["study", "part"], sort=False))
    lines = [1 + 0.8 * part["row"].str.count("\n").max() for _, part in parts]
    heights = [3.3 + len(part) * tall for tall, (_, part) in zip(lines, parts, strict=True)]
    options = {
        "width": 3.42,
        "height": 0.24 * sum(heights),
        "height_ratios": heights,
        "squeeze": False,
    }
    drawing, axes = display.subplots(len(parts), **options)
    for panel, ((study, name), part) in zip(axes[:, 0], parts, strict=True):
        _panel(panel, part.iloc[::-1].reset_index(drop=True), f"{study}: {name}")
    return display.marked(drawing, result.stimuli)


def _panel(axes: Any, rows: pandas.DataFrame, title: str) -> None:
    null = {"color": "0.82", "linewidth": 7}
    axes.hlines(rows.index, rows["null_low"], rows["null_high"], **null, zorder=0)
    for _, drawn in rows.filter(regex="^untrained ").items():
        axes.scatter(drawn, rows.index, s=22, color="0.35", marker="x", linewidth=1, zorder=2)
    display.dots(axes, rows.index, rows, "C0")
    axes.set_yticks(rows.index, rows["row"], fontsize=9, linespacing=1.0)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    label = dict(FIGURES.values())[rows["statistic"].iloc[0]]
    axes.set_xlabel(textwrap.fill(label, 28), fontsize=9)
    axes.tick_params(axis="x", labelsize=9)
    axes.set_title(textwrap.fill(title, 26), loc="left", fontsize=10)
    axes.axvline(0, color="0.5", linewidth=0.8)
