"""Figures, tables, panel and checks of the chapter on study 3."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas

from biaslib import published, stimuli
from biaslib.datasets.fairface import SPLITS
from biaslib.report._check import Check, judge, judge_list
from biaslib.report._drawing import Drawing
from biaslib.report._explorer import Panel
from biaslib.report._style import COLOURS, dots, marked, subplots
from biaslib.report._tables import require_paper, there_table
from biaslib.report._text import interval_text, interval_texts, signed
from biaslib.runtime import unknown_name
from biaslib.studies import study3_clip_audit as study

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


def one_word(table: pandas.DataFrame, word: str) -> int:
    """Return the row of a word among the words of a run."""
    return int(np.flatnonzero(table["word"].to_numpy() == word)[0])


def flow(found, given, table: pandas.DataFrame, word: str):
    """Draw one word's way through the method, as Figure 2: cosines by gender, and who is retrieved.

    Parameters
    ----------
    found, given, table
        Of the run: :func:`biaslib.studies.study3_clip_audit.retrieve`, its inputs, its words.
    word
        A word of the table.
    """
    row, members = one_word(table, word), given.groups["gender"]
    figure, (left, right) = subplots(1, 2, height=3.2, width_ratios=(3, 2))
    cosines = found.similarities[row]
    edges = np.linspace(cosines.min(), cosines.max(), 25)
    for name, colour, hatch in zip(given.gender, COLOURS, ("", "///"), strict=False):
        chosen = cosines[members[name].to_numpy()]
        left.hist(chosen, edges, alpha=0.5, color=colour, hatch=hatch, label=name)
        left.axvline(chosen.mean(), color=colour, linewidth=2)
    left.axvline(cosines[found.ranking[row, found.k - 1]], color="0.3", linestyle="--")
    left.set(xlabel=f"cosine with “{table['caption'].iloc[row]}”", ylabel="portraits")
    left.legend(frameon=False)
    shares = flow_table(found, given, table, word)
    right.bar(shares["group"], shares["share of the retrieved"], color=COLOURS[: len(shares)])
    right.axhline(0.5, color="0.4", linestyle=":")
    right.set(ylabel=f"share of the {found.k} nearest", ylim=(0, 1))
    return marked(figure, given.profile)


def flow_table(found, given, table: pandas.DataFrame, word: str) -> pandas.DataFrame:
    """Return what :func:`flow` shows: mean cosine and share among the retrieved, by gender."""
    row, members = one_word(table, word), given.groups["gender"]
    top = found.ranking[row, : found.k]
    return pandas.DataFrame(
        [
            {
                "group": name,
                "portraits": int(members[name].sum()),
                "mean cosine": found.similarities[row][members[name].to_numpy()].mean(),
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
    leave_out: Sequence[str] = (),
) -> pandas.DataFrame:
    """Return each group's words with the highest C-ASC, as Tables 3 to 18 print them.

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
    leave_out
        Words to leave out, such as ``biaslib.stimuli.GENDERED_OCCUPATIONS``, which else have a
        star.
    """
    n = list_length(facet, bias_type) if n is None else n
    rows = _rows(scores, "c_asc", facet)
    rows = rows[(rows["bias_type"] == bias_type) & ~rows["test"].isin(leave_out)]
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
    tables = range(3, 7) if facet == "gender" else range(7, 19)
    rows = pandas.concat(published.table("hamidieh2023", number) for number in tables)
    ranks = rows.loc[rows["category"] == bias_type, "rank"]
    return int(ranks.max()) if len(ranks) else 10


def unevenest(scores: pandas.DataFrame, facet: str, bias_type: str, n: int = 6) -> list[str]:
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


def composition(
    scores: pandas.DataFrame,
    facet: str,
    types: Sequence[str],
    n: int = 6,
    words: Mapping[str, Sequence[str]] | None = None,
):
    """Draw who is retrieved, as Figures 4 to 19: a panel a type of bias, a row a word.

    A column is a group; darker cells hold more of the retrieved.

    Parameters
    ----------
    scores
        As of :func:`biaslib.studies.study3_clip_audit.score`.
    facet
        Such as the intersection of gender and race.
    types
        Of bias, a panel each.
    n
        Words a type: those with the lowest entropy.
    words
        Words to draw instead, by type, such as :data:`FIGURE_WORDS`.

    Raises
    ------
    UnknownNameError
        If a word was not scored under its type.
    """
    import seaborn

    chosen = {each: (words or {}).get(each) or unevenest(scores, facet, each, n) for each in types}
    tables = [
        composition_table(scores, facet, each, names).set_index("word")
        for each, names in chosen.items()
    ]
    heights = [len(each) for each in tables]
    figure, axes = subplots(
        len(types), 1, height=0.36 * sum(heights) + 0.5 * len(types) + 0.9, sharex=True,
        height_ratios=heights, squeeze=False,
    )  # fmt: skip
    most = max(each.to_numpy().max() for each in tables)
    for axis, table, name in zip(axes[:, 0], tables, types, strict=True):
        seaborn.heatmap(
            table, ax=axis, vmin=0, vmax=most, cmap="Blues", annot=True, fmt=".0%", cbar=False,
            annot_kws={"fontsize": 8}, linewidths=0.5,
        )  # fmt: skip
        axis.set_title(name, fontsize=10, loc="left")
        axis.set(xlabel="", ylabel="")
        axis.tick_params(axis="y", rotation=0, labelsize=9)
        axis.tick_params(axis="x", rotation=45, labelsize=8.5)
    return marked(figure, _profile(scores))


def innocent_table(scores: pandas.DataFrame, innocent: np.ndarray, facet: str = "gender"):
    """Return quantiles of the size of C-ASC for words of the taxonomy and innocent ones.

    Parameters
    ----------
    scores
        Of the taxonomy.
    innocent
        C-ASC of one group for innocent words.
    facet
        Whose first group's C-ASC is meant.
    """
    rows = _rows(scores, "c_asc", facet)
    rows = rows[rows["group"] == rows["group"].iloc[0]]
    kinds = {"innocent words": np.abs(innocent)}
    kinds |= {name: part["value"].abs() for name, part in rows.groupby("bias_type", sort=False)}
    return pandas.DataFrame(
        [
            {"words": name, "n": len(v), "median": np.median(v), "95% below": np.quantile(v, 0.95)}
            for name, v in kinds.items()
        ]
    )


def innocent_figure(scores: pandas.DataFrame, innocent: np.ndarray, facet: str = "gender"):
    """Draw the sizes of C-ASC by type of bias, beside those of innocent words."""
    rows = _rows(scores, "c_asc", facet)
    rows = rows[rows["group"] == rows["group"].iloc[0]]
    groups = {"innocent words": innocent}
    groups |= {
        name: part["value"].to_numpy() for name, part in rows.groupby("bias_type", sort=False)
    }
    figure, axis = subplots(height=0.36 * len(groups) + 1)
    axis.boxplot(list(groups.values()), orientation="horizontal", tick_labels=list(groups))
    axis.axvline(0, color="0.5", linewidth=1)
    axis.invert_yaxis()
    axis.set(xlabel=f"C-ASC of {rows['group'].iloc[0]}")
    return marked(figure, _profile(scores))


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


def erasure_figure(tables: dict[str, pandas.DataFrame], profile: str = "planted"):
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
    axes[0, 0].legend(frameon=False, fontsize=9, loc="lower right")
    return marked(figure, profile)


def hardly(erased: pandas.DataFrame, bias_type: str = "all") -> str:
    """Return a sentence on the groups most and least often hardly retrieved."""
    rows = erased[erased["bias_type"] == bias_type].sort_values("words")
    most, least = rows.iloc[-1], rows.iloc[0]
    return (
        f"{most['group']} is hardly retrieved for {most['words']} of {most['n']} words "
        f"({most['by_chance']:.1f} by chance), {least['group']} for {least['words']} "
        f"({least['by_chance']:.1f} by chance)"
    )


def most_moved(moved: pandas.DataFrame) -> str:
    """Return sentences on the choice that moves the order most, on ddof, and on lists."""
    least = moved.sort_values("rank correlation").iloc[0]
    kept, ranks = moved["top 10 kept"], moved["rank correlation"]
    ddof = moved.loc[moved["choice"] == "ddof", "largest change"].iloc[0]
    text = (
        f"The choice that moves the order most is {least['choice']} ({least['setting']}): the rank "
        f"correlation is {signed(least['rank correlation'])}, with {least['top 10 kept']} of the "
        f"first ten words kept. Dividing by n instead of n − 1 moves C-ASC by {ddof:.4f} at most. "
        f"Over all choices, {kept.min()} to {kept.max()} of the first ten words are kept, and the "
        f"rank correlation over all words is {interval_text(ranks.min(), ranks.max())}."
    )
    if ranks.min() > 0.9 and kept.min() < 8:
        return f"{text} Lists of a few top words are less stable than the scores behind them."
    return text


def sensitivity_table(moved: pandas.DataFrame) -> pandas.DataFrame:
    """Return the table of open choices as it is shown."""
    return moved.rename(columns={"n": "words"})


def pronoun_table(shares: pandas.DataFrame, truth: np.ndarray | None = None) -> pandas.DataFrame:
    """Return captions and shares of women's pronouns, word by word, as Table 1 has them."""
    table = pandas.DataFrame(
        {
            "word": shares["word"],
            "women's pronouns": shares["share"],
            "low": shares["low"],
            "high": shares["high"],
            "n": shares["n"].astype(int),
            "both, left out": shares["both"],
            "captions with the word": shares["captions"],
        }
    )
    return table if truth is None else table.assign(truth=truth)


def pronoun_figure(shares: pandas.DataFrame, words: Sequence[str], truth=None, profile="planted"):
    """Draw the share of women's pronouns of some words with intervals, and the truth if known."""
    rows = (
        shares.assign(truth=np.nan if truth is None else truth).set_index("word").loc[list(words)]
    )
    rows = rows.sort_values("share")
    places = np.arange(len(rows))
    figure, axis = subplots(height=0.3 * len(rows) + 1.1)
    dots(axis, places, rows.rename(columns={"share": "value"}), "C0", label="counted")
    if truth is not None:
        axis.plot(rows["truth"], places, "D", color="C1", markersize=5, label="planted")
    axis.axvline(0.5, color="0.5", linestyle=":")
    axis.set_yticks(places, rows.index, fontsize=9)
    axis.set(xlabel="share of women's pronouns", xlim=(-0.02, 1.02))
    axis.legend(frameon=False)
    return marked(figure, profile)


def explorer(
    scores: pandas.DataFrame,
    given,
    words: Sequence[str],
    types: Sequence[str] = OPEN_TYPES,
    facets: Sequence[str] | None = None,
) -> Panel:
    """Return a panel of words and facets: C-ASC of every group, and who is retrieved.

    Parameters
    ----------
    scores, given
        Of the run.
    words
        To choose from.
    types
        Of bias, from which the words are taken.
    facets
        To choose from; by default all.
    """
    facets = list(facets or given.groups)
    kept = _once(scores, words, types)
    note = "planted world" if given.profile == "planted" else "this run"
    cases = {}
    for (word, facet), rows in kept.groupby(["test", "level"], sort=False):
        if facet in facets:
            members = given.groups[facet]
            cases[word, facet] = _word_drawings(rows, word, facet, members, note)
    return Panel("Words and groups", {"Word": list(words), "Groups": facets}, cases)


def explorer_table(
    scores: pandas.DataFrame,
    given,
    words: Sequence[str],
    types: Sequence[str] = OPEN_TYPES,
    facets: Sequence[str] | None = None,
) -> pandas.DataFrame:
    """Return the numbers of :func:`explorer`, a row a word and group."""
    facets = list(facets or given.groups)
    kept = _once(scores, words, types)
    found = kept.set_index(["statistic", "test", "level", "group"])[["value", "low", "high"]]
    found, rows = found.to_dict("index"), []
    for word in words:
        for facet in facets:
            expected = given.groups[facet].mean()
            entropy = found["entropy", word, facet, "all"]["value"]
            for group, part in expected.items():
                c_asc, share = (found[name, word, facet, group] for name in ("c_asc", "share"))
                rows.append(
                    {"word": word, "groups": facet, "group": group,
                     "C-ASC": signed(c_asc["value"]), "95% interval": _interval(c_asc),
                     "share of the retrieved": f"{share['value']:.0%}",
                     "in the data": f"{part:.0%}", "entropy": f"{entropy:.2f}"}
                )  # fmt: skip
    return pandas.DataFrame(rows)


def _once(scores, words: Sequence[str], types: Sequence[str]) -> pandas.DataFrame:
    kept = scores[scores["bias_type"].isin(types) & scores["test"].isin(words)]
    return kept.drop_duplicates(["level", "statistic", "test", "group"])


def _interval(row) -> str:
    if not np.isfinite(row["low"]):
        return "none, one portrait"
    return interval_text(row["low"], row["high"])


def _word_drawings(rows, word: str, facet: str, members, note: str) -> list[Drawing]:
    parts = {name: part.set_index("group") for name, part in rows.groupby("statistic")}
    groups, expected = list(members), members.mean()
    places = list(range(len(groups)))
    ticks = dict(zip(map(float, places), groups, strict=True))
    c_asc, share = (parts[name].loc[groups] for name in ("c_asc", "share"))
    highest = c_asc["value"].idxmax()
    first = share["value"].idxmax()
    entropy = parts["entropy"].loc["all"]
    reach = max(0.5, float(np.nanmax(c_asc[["low", "high"]].abs().to_numpy())))
    common = {"note": note, "y_ticks": ticks, "height": 90 + 24 * len(groups)}
    dots = {
        "kind": "dots", "x": c_asc["value"].tolist(), "y": places, "label": "C-ASC", "group": 0,
        "low": c_asc["low"].tolist(), "high": c_asc["high"].tolist(), "along": "x",
    }  # fmt: skip
    found = {
        "kind": "dots", "x": share["value"].tolist(), "y": places, "label": "retrieved", "group": 1,
        "low": share["low"].tolist(), "high": share["high"].tolist(), "along": "x",
    }  # fmt: skip
    there = {
        "kind": "dots", "x": expected.loc[groups].tolist(), "y": places, "label": "in the data",
        "group": 2,
    }  # fmt: skip
    limits = (-0.6, len(groups) - 0.4)
    return [
        Drawing(
            f"“{word}”, {facet}: C-ASC is highest for {highest}, "
            f"{signed(c_asc['value'].max())}, 95% interval {_interval(c_asc.loc[highest])}.",
            [{"kind": "rule", "x": [0.0], "y": [], "label": "none"}, dots],
            "C-ASC", "", (-1.1 * reach, 1.1 * reach), limits,
            "A dot with an interval for each group, left and right of zero.",
            **common,
        ),
        Drawing(
            f"Of the portraits retrieved, {share['value'].max():.0%} are {first} "
            f"({expected[first]:.0%} of the data); entropy {entropy['value']:.2f}.",
            [there, found],
            "share", "", (0, 1), limits,
            "Two dots for each group: its share of the data, and of the retrieved.",
            **common,
        ),
    ]  # fmt: skip


def highest_printed(facet: str) -> dict[str, float]:
    """Return each word's highest printed C-ASC over the groups of a facet: gender or race.

    Examples
    --------
    >>> highest_printed("race")["terrorist"], highest_printed("gender")["nurse"]
    (1.05, 1.28)
    """
    printed = pandas.concat(published.table("hamidieh2023", number) for number in range(3, 19))
    return printed[printed["facet"] == facet].groupby("word")["casc"].max().to_dict()


PRINTED_RACES = {14: ("extremist",), 18: ("terrorist", "felon"), 17: ("illiterate", "undocumented")}
"""Tables by race that are drawn, and the words that their figure names: those that the text does.

:meta hide-value:
"""


def printed_races():
    """Draw the paper's Tables 14, 18 and 17: the ten highest words of each race, a dot a word."""
    figure, axes = subplots(1, 3, height=3.3, sharey=True)
    for axis, (number, named) in zip(axes, PRINTED_RACES.items(), strict=True):
        rows = published.table("hamidieh2023", number)
        groups = list(dict.fromkeys(rows["group"]))
        axis.axvline(0, color="0.5", linewidth=1)
        axis.scatter(rows["casc"], rows["group"].map(groups.index), s=14, alpha=0.6)
        highest = rows.sort_values("casc").drop_duplicates("word", keep="last")
        for row in highest[highest["word"].isin(named)].itertuples():
            place = (row.casc, groups.index(row.group) - 0.22)
            axis.text(*place, row.word, fontsize=8.5, ha="right")
        axis.set_title(f"{rows['category'].iloc[0]} (Table {number})", fontsize=9.5)
    axes[0].set_yticks(range(len(groups)), groups, fontsize=9)
    axes[0].invert_yaxis()
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
        for name, colour, mark in (("Female", "C0", "o"), ("Male", "C1", "^")):
            own = (rows["group"] == name).to_numpy()
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
                 "highest C-ASC, as printed": ", ".join(texts)}
            )  # fmt: skip
    return pandas.DataFrame(rows)


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


def there(given: study.Inputs) -> pandas.DataFrame:
    """Return how many portraits, groups, words and captions were asked for, and are there."""
    n, sizes = len(given.people), {facet: given.sizes(facet) for facet in given.facets}
    asked = SPLITS[given.people["split"].iloc[0]] if given.profile == "paper" else n
    groups = pandas.concat(sizes.values())
    printed = pandas.concat(published.table("hamidieh2023", number) for number in range(3, 19))
    known = set(zip(given.words["word"], given.words["bias_type"], strict=True))
    scored = sum(pair in known for pair in zip(printed["word"], printed["category"], strict=True))
    none = bool(given.no_captions)
    return there_table(
        [
            ("portraits", asked, n, "" if n == asked else f"this run is of {given.dataset}"),
            ("groups", len(groups), (groups > 0).sum(), ", ".join(groups.index[groups == 0])),
            ("printed cells of C-ASC: words with their types", len(printed), scored, ""),
            ("corpora of captions", 1, 1 - none, "no folder of captions" if none else ""),
        ]
    )


def printed_pronouns() -> pandas.DataFrame:
    """Return the paper's Table 1, with the intervals that its counts allow."""
    from biaslib.inference import proportion_interval

    rows = published.table("hamidieh2023", 1)
    found = [
        proportion_interval(round(f * n / 100), n)
        for f, n in zip(rows["female"], rows["images"], strict=True)
    ]
    return pandas.DataFrame(
        {
            "word": rows["word"],
            "female, %": rows["female"],
            "images": rows["images"],
            "95% interval, %": [interval_text(100 * i.low, 100 * i.high, 1) for i in found],
        }
    )


COSINES = np.array([0.31, 0.22, 0.25, 0.18, 0.27, 0.20, 0.29, 0.16, 0.24, 0.21])
GROUP = np.array([True, False, False, True, True, False, False, False, False, False])
"""Of the exercises' checks: three portraits of a group and seven of others."""


def check_c_asc(answer) -> Check:
    """Check a reader's function of cosines (n,) and group (n,) against C-ASC with ddof 1.

    Examples
    --------
    >>> check_c_asc(lambda cosines, group: None)
    Not yet: return one number: the difference of two means, in standard deviations of all cosines
    """
    expected = (COSINES[GROUP].mean() - COSINES[~GROUP].mean()) / COSINES.std(ddof=1)
    hint = "return one number: the difference of two means, in standard deviations of all cosines"
    right = "one mean for the group, one for everybody else, and the spread of all."
    return judge(answer(COSINES.copy(), GROUP.copy()), expected, hint, 1e-6, right)


def check_composition(answer) -> Check:
    """Check a reader's function of cosines (n,), group (n,) and k: the ratio of two shares.

    Examples
    --------
    >>> check_composition(lambda cosines, group, k: group[np.argsort(-cosines)[:k]].mean())
    Not yet: compare two shares of the group: one among the k nearest, one in the whole data set
    """
    hint = "compare two shares of the group: one among the k nearest, one in the whole data set"
    found = [answer(COSINES.copy(), GROUP.copy(), k) for k in (4, 5)]
    return judge(found, [(2 / 4) / 0.3, (2 / 5) / 0.3], hint, 1e-6, "1 means: as in the data.")


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
