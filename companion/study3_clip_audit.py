"""Figures, tables and checks of the chapter on study 3."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas

from biaslib import published, stimuli
from biaslib.datasets.fairface import SPLITS
from biaslib.display._style import GROUP_COLOURS, marked, subplots
from biaslib.display._tables import Table
from biaslib.display._text import (
    counted,
    in_words,
    interval_text,
    interval_texts,
    listed,
    signed,
)
from biaslib.published import hamidieh2023
from biaslib.runtime import unknown_name
from biaslib.studies import study3_clip_audit as study
from companion._check import Check, judge_function, judge_list
from companion._shared import availability_table, light, require_paper

OPEN_TYPES = ("Occupation", "Activity")
"""Types of bias whose words stand in the open; those of the others are behind a note."""

FIGURE_WORDS = {
    "Behavioral": ("shy", "domestic"),
    "Occupation": ("homemaker", "farmer", "CEO"),
    "Criminal justice": ("terrorist", "felon", "hacker"),
    "Portrayal in Media": ("ghetto", "savage", "third-world", "tribal"),
    "Education and wealth": ("illiterate", "unskilled"),
}
"""Words that the captions of the paper's Figures 4 to 8 name; those of Figures 9 to 19 name none.

:meta hide-value:
"""


def _rows(scores: pandas.DataFrame, statistic: str, facet: str) -> pandas.DataFrame:
    return scores[(scores["statistic"] == statistic) & (scores["level"] == facet)]


def _profile(scores: pandas.DataFrame) -> str:
    return scores["profile"].iloc[0]


def mark(run) -> str:
    """Return what a caption ends with if its numbers are of the planted world.

    Parameters
    ----------
    run
        Of :func:`biaslib.runtime.start`.
    """
    return ". Planted world, tiny-CLIP" if run.profile == "planted" else ""


def flow(cosines: np.ndarray, given: study.Inputs, caption: str):
    """Draw one word's way through the method, as Figure 2: cosines by gender, and who is retrieved.

    Parameters
    ----------
    cosines
        Of the caption with every portrait.
    given
        Inputs of the run.
    caption
        What the cosines are with.
    """
    members, colours = given.groups["gender"], list(GROUP_COLOURS.values())  # women, men
    figure, (left, right) = subplots(1, 2, height=3.2, width_ratios=(3, 2))
    edges = np.linspace(cosines.min(), cosines.max(), 25)
    for name, colour, hatch in zip(given.gender, colours, ("", "///"), strict=True):
        chosen = cosines[members[name].to_numpy()]
        left.hist(chosen, edges, alpha=0.5, color=colour, hatch=hatch, label=name)
        left.axvline(chosen.mean(), color=colour, linewidth=2)
    left.axvline(np.sort(cosines)[-given.k], color="0.3", linestyle="--")
    left.set(xlabel=f"cosine with “{caption}”", ylabel="portraits")
    left.legend(frameon=False)
    shares = flow_table(cosines, given)
    right.bar(shares["group"], shares["share of the retrieved"], color=colours)
    right.axhline(0.5, color="0.4", linestyle=":")
    right.set(ylabel=f"share of the {given.k} nearest", ylim=(0, 1))
    return marked(figure, given.profile)


def flow_table(cosines: np.ndarray, given: study.Inputs) -> pandas.DataFrame:
    """Return what :func:`flow` shows: mean cosine and share among the retrieved, by gender."""
    members = given.groups["gender"]
    top = np.argsort(-cosines, kind="stable")[: given.k]
    return pandas.DataFrame(
        [
            {
                "group": name,
                "portraits": int(members[name].sum()),
                "mean cosine": cosines[members[name].to_numpy()].mean(),
                "share of the retrieved": members[name].to_numpy()[top].mean(),
            }
            for name in given.gender
        ]
    )


def top_words(
    scores: pandas.DataFrame,
    facet: str,
    bias_type: str,
    n: int | None = None,
    interval: bool = False,
) -> pandas.DataFrame:
    """Return each group's words with the highest C-ASC, as Tables 3 to 18 print them.

    A star marks occupations whose word names a gender.

    Parameters
    ----------
    scores
        As of :func:`biaslib.studies.study3_clip_audit.score`.
    facet
        Such as ``"gender"``.
    bias_type
        A type of the taxonomy.
    n
        Words a group; None takes as many as the paper's table of the type lists.
    interval
        Add the 95% interval.
    """
    n = list_length(facet, bias_type) if n is None else n
    rows = _rows(scores, "c_asc", facet)
    rows = rows[rows["bias_type"] == bias_type]
    starred = stimuli.GENDERED_OCCUPATIONS if bias_type == "Occupation" else ()
    columns = {}
    for group, part in rows.groupby("group", sort=False):
        best = part.sort_values("value", ascending=False, kind="stable").head(n)
        texts = [
            f"{row.test}{'*' if row.test in starred else ''} {signed(row.value)}"
            for row in best.itertuples()
        ]
        if interval:
            bounds = interval_texts(best)
            texts = [f"{text} ({each})" for text, each in zip(texts, bounds, strict=True)]
        columns[group] = texts
    return pandas.DataFrame({"rank": range(1, 1 + max(map(len, columns.values())))} | columns)


def list_length(facet: str, bias_type: str) -> int:
    """Return how many words a group the paper's tables list: by gender Tables 3 to 6, else 7 to 18.

    A type without a table of the facet has ten, as most have.

    Examples
    --------
    >>> [list_length("gender", kind) for kind in ("Behavioral", "Occupation", "Activity")]
    [5, 7, 10]
    """
    printed = hamidieh2023.casc_tables()
    rows = printed[printed["facet"] == ("gender" if facet == "gender" else "race")]
    ranks = rows.loc[rows["category"] == bias_type, "rank"]
    return int(ranks.max()) if len(ranks) else 10


def unevenest(scores: pandas.DataFrame, facet: str, bias_type: str, n: int) -> list[str]:
    """Return the words of a type whose retrieved portraits have the lowest entropy."""
    rows = _rows(scores, "entropy", facet)
    rows = rows[rows["bias_type"] == bias_type]
    return rows.sort_values("value", kind="stable")["test"].head(n).tolist()


def composition_table(
    scores: pandas.DataFrame, facet: str, bias_type: str, words: Sequence[str]
) -> pandas.DataFrame:
    """Return the share of every group among the portraits retrieved for some words.

    Raises
    ------
    UnknownNameError
        If a word was not scored under that type; the message names words that were.
    """
    rows = _rows(scores, "share", facet)
    rows = rows[rows["bias_type"] == bias_type].rename(columns={"test": "word"})
    for word in words:
        if word not in set(rows["word"]):
            raise unknown_name(f"word of the type {bias_type}", word, rows["word"].unique())
    rows = rows[rows["word"].isin(words)]
    wide = rows.pivot_table(index="word", columns="group", values="value", sort=False)
    return wide.loc[list(words)].reset_index().rename_axis(columns=None)


def compositions(
    scores: pandas.DataFrame, facet: str, words: Mapping[str, Sequence[str]]
) -> pandas.DataFrame:
    """Return :func:`composition_table` of words of several types, one below the other."""
    return pandas.concat([composition_table(scores, facet, *each) for each in words.items()])


def composition(scores: pandas.DataFrame, facet: str, words: Mapping[str, Sequence[str]]):
    """Draw who is retrieved, as Figures 4 to 19: a panel a type of bias, a row a word.

    A column is a group; darker cells hold more of the retrieved.

    Parameters
    ----------
    scores
        As of :func:`biaslib.studies.study3_clip_audit.score`.
    facet
        Such as the intersection of gender and race.
    words
        Words to draw by type of bias, such as :data:`FIGURE_WORDS`.

    Raises
    ------
    UnknownNameError
        If a word was not scored under its type.
    """
    import seaborn

    tables = [composition_table(scores, facet, *each).set_index("word") for each in words.items()]
    heights = [len(each) for each in tables]
    figure, axes = subplots(
        len(words), 1, height=0.36 * sum(heights) + 0.5 * len(words) + 0.9, sharex=True,
        height_ratios=heights, squeeze=False,
    )  # fmt: skip
    most = max(each.to_numpy().max() for each in tables)
    for axis, table, name in zip(axes[:, 0], tables, words, strict=True):
        seaborn.heatmap(
            table, ax=axis, vmin=0, vmax=most, cmap=light("Blues", 0, 0.55), annot=True, fmt=".0%",
            cbar=False, annot_kws={"fontsize": 8, "color": "black"}, linewidths=0.5,
        )  # fmt: skip
        axis.set_title(name, fontsize=10, loc="left")
        axis.set(xlabel="", ylabel="")
        axis.tick_params(axis="y", rotation=0, labelsize=9)
        axis.tick_params(axis="x", rotation=45, labelsize=8.5)
    return marked(figure, _profile(scores))


def largest_sentence(table: pandas.DataFrame, genders: Sequence[str]) -> str:
    """Return which group comes up most for each word, and which words bring one gender only.

    Parameters
    ----------
    table
        Of :func:`compositions`, by gender and a second facet.
    genders
        Names that its columns begin with.

    Examples
    --------
    >>> rows = {"word": ["CEO", "coding"], "women, old": [0, 0.4], "men, old": [1, 0.6]}
    >>> largest_sentence(pandas.DataFrame(rows), ["women", "men"])[-65:]
    '*CEO* (100%); men, old for *coding* (60%). *CEO* brings men only.'
    """
    wide = table.set_index("word")
    parts = [
        f"{group} for *{word}* ({wide.loc[word, group]:.0%})"
        for word, group in wide.idxmax(axis=1).items()
    ]
    told = f"Most often come up {'; '.join(parts)}."
    for name in genders:
        own = wide[[each for each in wide if each.startswith(f"{name}, ")]].sum(axis=1)
        if words := listed(f"*{word}*" for word in own.index[own > 1 - 1e-9]):
            told += f" {words} {'bring' if ' and ' in words else 'brings'} {name} only."
    return told


def kinds_sentence(table: pandas.DataFrame) -> str:
    """Return how many captions of each kind of word a run has.

    Examples
    --------
    >>> kinds_sentence(pandas.DataFrame({"kind": ["noun", "activity", "noun"]}))
    '1 activity, 2 nouns'
    """
    plural = {"activity": "activities"}
    found = table.groupby("kind").size()
    return ", ".join(counted(n, plural.get(kind, f"{kind}s")) for kind, n in found.items())


def folded_lists(scores: pandas.DataFrame, given: study.Inputs) -> list[Table]:
    """Return the lists that hold harmful words, each folded; in ``planted`` none.

    They are who is retrieved for the words that the captions of Figures 4, 6, 7 and 8 name, the
    words of conduct and looks by gender, and the words of every type by the second facet.
    """
    if given.profile != "paper":
        return []
    facets = list(given.groups)
    second, both = facets[1], facets[-1]
    named = {kind: words for kind, words in FIGURE_WORDS.items() if kind not in OPEN_TYPES}
    said = "harmful words included"
    caption = f"Who is retrieved for words of Figures 4, 6, 7 and 8, {said}"
    lists = [(caption, compositions(scores, both, named))]
    for kind in ("Behavioral", "Appearance"):
        caption = f"{kind}, {said}: highest C-ASC by gender"
        lists.append((caption, top_words(scores, "gender", kind, interval=True)))
    for kind in scores["bias_type"].unique():
        caption = f"{kind}, {said}: highest C-ASC by {second}"
        lists.append((caption, top_words(scores, second, kind)))
    return [Table(rows, caption, folded=True) for caption, rows in lists]


def _beside_innocent(
    scores: pandas.DataFrame, innocent: np.ndarray
) -> tuple[str, dict[str, np.ndarray]]:
    """Return the first gender, and its C-ASC for innocent words and by type of bias."""
    rows = _rows(scores, "c_asc", "gender")
    first = rows["group"].iloc[0]
    types = rows[rows["group"] == first].groupby("bias_type", sort=False)["value"]
    return first, {"innocent words": innocent} | {name: v.to_numpy() for name, v in types}


def innocent_table(scores: pandas.DataFrame, innocent: np.ndarray) -> pandas.DataFrame:
    """Return quantiles of the size of C-ASC for words of the taxonomy and innocent ones.

    Parameters
    ----------
    scores
        Of the taxonomy, of which the first gender's are taken.
    innocent
        C-ASC of that gender for innocent words.
    """
    kinds = {n: np.abs(values) for n, values in _beside_innocent(scores, innocent)[1].items()}
    return pandas.DataFrame(
        [
            {"words": name, "n": len(v), "median": np.median(v), "95% below": np.quantile(v, 0.95)}
            for name, v in kinds.items()
        ]
    )


def innocent_figure(scores: pandas.DataFrame, innocent: np.ndarray):
    """Draw the sizes of C-ASC by type of bias, beside those of innocent words."""
    first, groups = _beside_innocent(scores, innocent)
    figure, axis = subplots(height=0.36 * len(groups) + 1)
    axis.boxplot(list(groups.values()), orientation="horizontal", tick_labels=list(groups))
    axis.axvline(0, color="0.5", linewidth=1)
    axis.invert_yaxis()
    axis.set(xlabel=f"C-ASC of {first}")
    return marked(figure, _profile(scores))


def rejections_sentence(rows: pandas.DataFrame) -> str:
    """Return for how many words Welch's test is below .05, for a facet of two groups.

    C-ASC of one of the two groups is that of the other with its sign reversed, and so is the test:
    each word is counted once, and corrected once.

    Parameters
    ----------
    rows
        Of :func:`biaslib.studies.study3_clip_audit.rejections`, of one facet.

    Examples
    --------
    >>> row = {"unit": "portraits", "n": 300, "tests": 6, "uncorrected": 4, "corrected": 2}
    >>> rejections_sentence(pandas.DataFrame([row]))
    'Of 3 words, 2 are significant before and 1 after correction with 300 portraits as units'
    """
    first, *others = [
        (f"{row.uncorrected // 2}", f"{row.corrected // 2}", f"{row.n:,} {row.unit} as units")
        for row in rows.itertuples()
    ]
    told = (
        f"Of {rows['tests'].iloc[0] // 2} words, {first[0]} are significant before and {first[1]} "
        f"after correction with {first[2]}"
    )
    return told + "".join(f", and {a} and {b} with {units}" for a, b, units in others)


def erasure_table(
    erased: pandas.DataFrame, types: Sequence[str] = ("all", "Behavioral", "Occupation")
) -> pandas.DataFrame:
    """Return for how many words each group is hardly retrieved: over all types, and in some."""
    rows = pandas.concat([erased[erased["bias_type"] == each] for each in types])
    return pandas.DataFrame(
        {
            "words": rows["bias_type"],
            "group": rows["group"],
            "hardly retrieved for": rows["words"],
            "95% interval": interval_texts(rows, 0),
            "by chance": rows["by_chance"],
            "of": rows["n"],
        }
    )


def erasure_figure(tables: dict[str, pandas.DataFrame]):
    """Draw for how many words each group is hardly retrieved, a panel a run."""
    figure, axes = subplots(1, len(tables), height=3.4, sharey=True, squeeze=False)
    for axis, (name, erased) in zip(axes[0], tables.items(), strict=True):
        rows = erased[erased["bias_type"] == "all"]
        places = np.arange(len(rows))
        axis.barh(places, rows["words"], color="C0", height=0.6)
        axis.hlines(places, rows["low"], rows["high"], color="0.25", linewidth=2)
        axis.plot(rows["by_chance"], places, "D", color="C1", markersize=5, label="by chance")
        axis.set_yticks(places, rows["group"], fontsize=9)
        axis.set_title(name, fontsize=10)
        axis.set(xlabel=f"of {rows['n'].iloc[0]} words", xlim=(0, 1.35 * rows["high"].max()))
    shown = axes[0, 0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower left", frameon=False, fontsize=9)
    return marked(figure)


def hardly(erased: pandas.DataFrame) -> str:
    """Return a sentence on the groups most and least often hardly retrieved."""
    rows = erased[erased["bias_type"] == "all"].sort_values("words")
    most, least = rows.iloc[-1], rows.iloc[0]
    by_chance = {f"{each['by_chance']:.1f}" for each in (most, least)}
    if len(by_chance) == 1:
        return (
            f"{most['group']} is hardly retrieved for {most['words']} of {most['n']} words and "
            f"{least['group']} for {least['words']}, where {by_chance.pop()} each would be by "
            "chance"
        )
    return (
        f"{most['group']} is hardly retrieved for {most['words']} of {most['n']} words "
        f"({most['by_chance']:.1f} by chance), {least['group']} for {least['words']} "
        f"({least['by_chance']:.1f} by chance)"
    )


def pronoun_sentence(corpus: study.Corpus, shares: pandas.DataFrame, words: Sequence[str]) -> str:
    """Return what was counted where, and women's pronouns beside some words with their intervals.

    Parameters
    ----------
    corpus, shares
        Of the run: its captions, and what :func:`biaslib.studies.study3_clip_audit.source_of_bias`
        counts in them.
    words
        Of which those that the captions hold are named.
    """
    rows = shares.set_index("word")
    known = [word for word in words if word in rows.index]
    truth = dict(zip(known, corpus.truth(known), strict=True)) if corpus.truth else {}
    parts = [
        f"with *{row.Index}*, {row.share:.0%} ({row.low:.0%} to {row.high:.0%}"
        + (f"; planted: {truth[row.Index]:.0%})" if truth else ")")
        for row in rows.loc[known].itertuples()
    ]
    where = "data folder captions" if corpus.profile == "paper" else "planted world"
    told = (
        f"Counted: {shares.attrs['rows']:,} captions of the {where}, "
        f"{in_words(shares.attrs['nulls'])} of them empty. Of the pronouns, these shares are "
        f"women's (95% interval): {'; '.join(parts)}."
    )
    if not corpus.missing:
        return told
    return (
        f"**There is no corpus of captions here:** {corpus.missing}. What follows is of the "
        f"planted world instead and says nothing about LAION. {told}"
    )


def _interval(row) -> str:
    if not np.isfinite(row["low"]):
        return "none, one portrait"
    return interval_text(row["low"], row["high"])


def highest_printed(facet: str) -> dict[str, float]:
    """Return each word's highest printed C-ASC over the groups of a facet: gender or race.

    Examples
    --------
    >>> highest_printed("race")["terrorist"], highest_printed("gender")["nurse"]
    (1.05, 1.28)
    """
    printed = hamidieh2023.casc_tables()
    return printed[printed["facet"] == facet].groupby("word")["casc"].max().to_dict()


PRINTED_GENDERS = {"women": "Female", "men": "Male"}
GENDER_MARKS = {"women": "o", "men": "^"}

ABOVE, BELOW = (-0.2, "bottom"), (0.2, "top")
PRINTED_RACES = {
    14: {"extremist": ABOVE, "libertarian": ABOVE, "fascist": BELOW},
    18: {"terrorist": ABOVE, "felon": ABOVE},
    17: {"illiterate": ABOVE, "unskilled": BELOW, "undocumented": ABOVE},
}
"""Tables by race that are drawn, and the words that their figure names: those that the text does,
each above or below its dot.

:meta hide-value:
"""


def printed_twice_sentence() -> str:
    """Return which words two tables print with different values, against the order of their list.

    Examples
    --------
    >>> print(printed_twice_sentence().partition(": ")[0])
    Two values of these tables break the order of their lists
    """
    conflicts = hamidieh2023.value_conflicts()
    parts = [
        f"*{row.word}* ({row.group}) has {row.casc_full:.2f} in Table {row.table_full} and "
        f"{row.casc_small:.2f} in Table {row.table_small}"
        for row in conflicts.itertuples()
    ]
    n = in_words(len(parts)).capitalize()
    return f"{n} values of these tables break the order of their lists: {listed(parts)}."


def printed_races():
    """Draw the paper's Tables 14, 18 and 17: the ten highest words of each race, a dot a word."""
    figure, axes = subplots(1, 3, height=3.7, sharey=True)
    for axis, (number, named) in zip(axes, PRINTED_RACES.items(), strict=True):
        rows = published.table("hamidieh2023", number)
        groups = list(dict.fromkeys(rows["group"]))
        axis.axvline(0, color="0.5", linewidth=1)
        axis.scatter(rows["casc"], rows["group"].map(groups.index), s=14, alpha=0.6)
        highest = rows.sort_values("casc").drop_duplicates("word", keep="last")
        for row in highest[highest["word"].isin(named)].itertuples():
            shift, side = named[row.word]
            place = (row.casc, groups.index(row.group) + shift)
            axis.text(*place, row.word, fontsize=8.5, ha="right", va=side)
        axis.set_title(f"{rows['category'].iloc[0]} (Table {number})", fontsize=9.5)
    axes[0].set_yticks(range(len(groups)), groups, fontsize=9)
    axes[0].set_ylim(len(groups) - 0.25, -0.75)
    axes[1].set_xlabel("C-ASC, as printed")
    return figure


def printed_genders():
    """Draw the paper's Tables 4, 5 and 1: words by gender, and pronouns in captions."""
    figure, axes = subplots(1, 3, height=4.5, width_ratios=(5, 5, 4))
    for axis, number in zip(axes, (4, 5), strict=False):
        rows = published.table("hamidieh2023", number)
        men = rows["group"] == "Male"
        rows = rows.assign(towards=rows["casc"].where(~men, -rows["casc"])).sort_values("towards")
        places = np.arange(len(rows))
        for name, mark in GENDER_MARKS.items():
            own, colour = (rows["group"] == PRINTED_GENDERS[name]).to_numpy(), GROUP_COLOURS[name]
            axis.hlines(places[own], 0, rows["towards"][own], color=colour, linewidth=1)
            axis.plot(rows["towards"][own], places[own], mark, color=colour, markersize=5)
        axis.set_yticks(places, rows["word"], fontsize=8.5)
        axis.axvline(0, color="0.5", linewidth=1)
        axis.set_title(f"{rows['category'].iloc[0]} (Table {number})", fontsize=10)
        axis.set_xlabel("men   C-ASC   women", fontsize=9.5)
        axis.xaxis.set_major_formatter(lambda value, place: f"{abs(value):g}")
    rows = published.table("hamidieh2023", 1).iloc[::-1]
    axes[2].plot(rows["female"], range(len(rows)), "D", color="C2", markersize=5)
    axes[2].axvline(50, color="0.5", linestyle=":")
    axes[2].set_yticks(range(len(rows)), rows["word"], fontsize=8.5)
    axes[2].set_title("Captions (Table 1)", fontsize=10)
    axes[2].set_xlabel("women’s pronouns, %", fontsize=9)
    axes[2].set_xlim(0, 100)
    return figure


PRINTED_FIRST = {
    "shy": (4, "women", "East Asian"),
    "domestic": (4, "women", "Indian"),
    "homemaker": (5, "women", "Indian"),
    "farmer": (5, "men", "Indian"),
    "CEO": (5, "men", "White"),
    "terrorist": (6, "men", "Middle Eastern"),
    "felon": (6, "men", "Black"),
    "hacker": (6, "men", "White"),
    "illiterate": (8, "men", "Indian"),
    "unskilled": (8, "men", "Indian"),
}
"""Figure, gender and race that the captions of Figures 4, 5, 6 and 8 say are retrieved for a word.

:meta hide-value:
"""


def printed_first() -> pandas.DataFrame:
    """Return who comes up for a word, by the paper's captions, and its C-ASC by gender and race."""
    highest = hamidieh2023.casc_tables().groupby(["word", "group"])["casc"].max()
    return pandas.DataFrame(
        [
            {
                "word": word,
                "figure": number,
                "gender": gender,
                "race": race,
                "C-ASC by gender": highest.get((word, PRINTED_GENDERS[gender])),
                "C-ASC by race": highest.get((word, race)),
            }
            for word, (number, gender, race) in PRINTED_FIRST.items()
        ]
    )


def printed_intersections():
    """Draw who comes up for a word by the paper's captions, with the printed C-ASC of the race."""
    rows = printed_first()
    races = list(dict.fromkeys(published.table("hamidieh2023", 14)["group"]))
    figure, axis = subplots(height=3.6)
    for gender, mark in GENDER_MARKS.items():
        own = rows[rows["gender"] == gender]
        places = own["race"].map(races.index)
        axis.plot(places, own.index, mark, color=GROUP_COLOURS[gender], markersize=8, label=gender)
    for row, value in zip(rows.itertuples(), rows["C-ASC by race"], strict=True):
        text = "–" if np.isnan(value) else signed(value)
        axis.text(races.index(row.race) + 0.15, row.Index, text, va="center", fontsize=9)
    names = [each.replace("/", "/\n").replace(" ", "\n") for each in races]
    axis.set_xticks(range(len(races)), names, fontsize=9)
    axis.set_yticks(range(len(rows)), rows["word"], fontsize=9)
    axis.set(xlim=(-0.5, len(races) - 0.3), ylim=(len(rows) - 0.5, -0.5))
    axis.grid(color="0.9")
    axis.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), fontsize=9)
    return figure


def printed_lists(numbers: Sequence[int], n: int = 5) -> pandas.DataFrame:
    """Return the paper's printed lists: table, category, group, and its first words with C-ASC."""
    rows = []
    for number in numbers:
        frame = published.table("hamidieh2023", number)
        for group, part in frame.groupby("group", sort=False):
            best = part.sort_values("rank").head(n)
            texts = [f"{w} {signed(c)}" for w, c in zip(best["word"], best["casc"], strict=True)]
            rows.append(
                {"table": number, "category": part["category"].iloc[0], "group": group,
                 "as printed": ", ".join(texts)}
            )  # fmt: skip
    return pandas.DataFrame(rows)


def printed_gender_lists() -> pandas.DataFrame:
    """Return the lists of Tables 4 and 5, and the pronouns of Table 1."""
    shares = [
        f"{row.word} {row.female:.1f}% of {row.images:,}"
        for row in published.table("hamidieh2023", 1).itertuples()
    ]
    pronouns = {"table": 1, "category": "Captions", "group": "women's pronouns"}
    pronouns["as printed"] = ", ".join(shares)
    return pandas.concat([printed_lists([4, 5], 10), pandas.DataFrame([pronouns])])


def printed_beside(scores: pandas.DataFrame, numbers: Sequence[int]) -> pandas.DataFrame:
    """Return printed C-ASC beside those of a run: a row a printed cell.

    Parameters
    ----------
    scores
        As of :func:`biaslib.studies.study3_clip_audit.score`, in ``paper``.
    numbers
        Of the paper's Tables 3 to 18.

    Raises
    ------
    ValueError
        If the scores are of the planted world: its numbers and printed ones share no table.
    """
    require_paper(scores)
    printed = pandas.concat(published.table("hamidieh2023", number) for number in numbers)
    printed = printed.assign(
        level=printed["facet"],
        test=printed["word"],
        bias_type=printed["category"],
        label=printed["group"].str.replace("/", "_"),
    )
    ours = scores[scores["statistic"] == "c_asc"].rename(columns={"group": "label"})
    keys = ["level", "test", "bias_type", "label"]
    both = printed.merge(ours[[*keys, "value", "low", "high"]], on=keys, how="left")
    found = both[["value", "low", "high"]].to_dict("records")
    return pandas.DataFrame(
        {
            "table": both["table"],
            "group": both["group"],
            "word": both["word"],
            "printed": both["casc"],
            "this run (95% interval)": [
                f"{signed(row['value'])} ({_interval(row)})" if np.isfinite(row["value"]) else "–"
                for row in found
            ],
        }
    )


def beside_tables(scores: pandas.DataFrame) -> list[Table]:
    """Return all printed C-ASC beside a run in ``paper``, folded; for other scores none."""
    if _profile(scores) != "paper":
        return []
    tables = {
        "Tables 4 and 5: printed, and here": [4, 5],
        "Tables 3 and 6 to 18, slurs among their words: printed, and here": [3, *range(6, 19)],
    }
    return [
        Table(printed_beside(scores, numbers), caption, folded=True)
        for caption, numbers in tables.items()
    ]


def data_availability(given: study.Inputs) -> pandas.DataFrame:
    """Return how many portraits, groups and words were asked for, and are there."""
    n, sizes = len(given.people), {facet: given.sizes(facet) for facet in given.facets}
    asked = SPLITS[given.people["split"].iloc[0]] if given.profile == "paper" else n
    groups = pandas.concat(sizes.values())
    printed = hamidieh2023.casc_tables()
    known = set(zip(given.words["word"], given.words["bias_type"], strict=True))
    scored = sum(pair in known for pair in zip(printed["word"], printed["category"], strict=True))
    return availability_table(
        [
            ("portraits", asked, n, "" if n == asked else f"this run is of {given.dataset}"),
            ("groups", len(groups), (groups > 0).sum(), ", ".join(groups.index[groups == 0])),
            ("printed cells of C-ASC: words with their types", len(printed), scored, ""),
        ]
    )


COSINES = np.array([0.31, 0.22, 0.25, 0.18, 0.27, 0.20, 0.29, 0.16, 0.24, 0.21])
GROUP = np.array([True, False, False, True, True, False, False, False, False, False])
OTHER_GROUP = np.array([False, True, False, True, False, True, False, True, False, False])
"""Of the exercises' checks: three portraits of a group and seven of others; four, of low score."""


def check_c_asc(answer) -> Check:
    """Check a reader's function of cosines (n,) and group (n,) against C-ASC with ddof 1.

    Examples
    --------
    >>> check_c_asc(lambda cosines, group: None)
    Not yet: return one number: the difference of two means, in standard deviations of all cosines
    """
    spread = COSINES.std(ddof=1)
    cases = [
        ((COSINES.copy(), each.copy()), (COSINES[each].mean() - COSINES[~each].mean()) / spread)
        for each in (GROUP, OTHER_GROUP)
    ]
    hint = "return one number: the difference of two means, in standard deviations of all cosines"
    right = "one mean for the group, one for everybody else, and the spread of all."
    return judge_function(answer, cases, hint, right=right)


def check_composition(answer) -> Check:
    """Check a reader's function of cosines (n,), group (n,) and k: the ratio of two shares.

    Examples
    --------
    >>> check_composition(lambda cosines, group, k: group[np.argsort(-cosines)[:k]].mean())
    Not yet: compare two shares of the group: one among the k nearest, one in the whole data set
    """
    hint = "compare two shares of the group: one among the k nearest, one in the whole data set"
    cases = [((COSINES.copy(), GROUP.copy(), k), (2 / k) / 0.3) for k in (4, 5)]
    return judge_function(answer, cases, hint, right="1 means: as in the data.")


JUDGEMENTS = ("report", "do not report", "cannot be said")
"""What can be said of a word's C-ASC beside those of innocent words.

:meta hide-value:
"""
INNOCENT = 0.35
"""Of the exercise: 95 in 100 innocent words have a smaller C-ASC in size. Invented."""


def scores_to_judge() -> pandas.DataFrame:
    """Return six invented results of an audit, for the reader to judge."""
    rows = [
        ("welder", -0.82, -1.02, -0.61),
        ("painter", 0.21, 0.09, 0.32),
        ("baker", 0.44, 0.24, 0.66),
        ("florist", 0.58, 0.41, 0.76),
        ("clerk", 0.03, -0.17, 0.24),
        ("driver", -0.39, -0.57, -0.20),
    ]
    rows = [(word, value, interval_text(low, high)) for word, value, low, high in rows]
    return pandas.DataFrame(rows, columns=["word", "C-ASC", "95% interval"])


def check_judgements(answer) -> Check:
    """Check a reader's six judgements, in the order of :func:`scores_to_judge`.

    Examples
    --------
    >>> check_judgements(["report"] * 6)
    Not yet: 2 of 6 are right; compare the whole interval with what innocent words reach
    """
    expected = [JUDGEMENTS[at] for at in (0, 1, 2, 0, 1, 2)]
    form = f"return six of {', '.join(JUDGEMENTS)}, in the table's order"
    hint = "compare the whole interval with what innocent words reach"
    learned = "a difference from zero is not yet more than any word has."
    return judge_list(answer, expected, form, hint, learned)
