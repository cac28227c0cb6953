"""Figures, tables and checks of the chapter on study 3."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas

from biaslib import published, reproduction, stimuli
from biaslib.display import Table, fold, interval_text, interval_texts, say, signed
from biaslib.metrics import caption_association
from biaslib.runtime import TASTE, unknown_name
from biaslib.studies import study3_clip_audit as study
from companion._check import Check, judge_function, judge_list
from companion._drawing import Drawing
from companion._explorer import Panel
from companion._shared import availability_table

PAPER = "hamidieh2023"

OPEN_TYPES = ("Occupation", "Activity")
"""Types of bias whose words stand in the open; those of the others are behind a note."""

# What the paper prints


def printed_panel() -> Panel:
    """Return the panel of Tables 3 to 6 and 11 to 18: a list of words, a row a group, on one axis.

    The words themselves show when a mark is asked for, since some of them are harmful.

    Examples
    --------
    >>> printed_panel().sentence("Religion, by race")
    'The highest of 70 printed scores is 1.62, for Indian faces.'
    """
    cases = {}
    for number in (*range(11, 19), *range(3, 7)):
        rows = published.table(PAPER, number)
        name = f"{rows['category'].iloc[0]}, by {rows['facet'].iloc[0]}"
        cases.setdefault((name,), _by_group(rows))
    return Panel("A list of words", {"List": [name for (name,) in cases]}, cases)


def _by_group(rows: pandas.DataFrame) -> Drawing:
    order = list(dict.fromkeys(rows["group"]))[::-1]
    top = rows.loc[rows["casc"].idxmax()]
    dots = {"kind": "dots", "x": rows["casc"], "y": rows["group"].map(order.index)}
    return Drawing(
        f"The highest of {len(rows)} printed scores is {top['casc']:.2f}, for {top['group']} "
        "faces.",
        [{"kind": "rule", "x": [0, 1], "thin": True}, dots | {"names": rows["word"]}],
        "C-ASC, as printed",
        "faces labelled",
        (-0.7, 1.8),
        (-0.6, len(order) - 0.4),
        "A row of dots for each group, a dot a word.",
        table=rows[["group", "rank", "word", "casc"]],
        y_ticks=dict(enumerate(order)),
        height=100 + 34 * len(order),
    )


def printed_first() -> pandas.DataFrame:
    """Return who comes up for a word, by the captions of Figures 4 to 8, and its printed C-ASC.

    Figure 7 names no gender for two of its words.

    Examples
    --------
    >>> printed_first().set_index("word").loc["homemaker", ["gender", "race"]].tolist()
    ['women', 'Indian']
    """
    rows = published.stated(PAPER)
    rows = rows.assign(figure=rows["place"].str.extract(r"^Figure (\d) caption$"))
    rows = rows[rows["figure"].notna() & (rows["sign"] == "+")].sort_values("figure", kind="stable")
    people = rows["group"].str.rpartition(", ")
    highest = published.casc_tables().groupby(["word", "group"])["casc"].max()
    columns = {"C-ASC by gender": people[0], "C-ASC by race": people[2]}
    table = pandas.DataFrame(
        {
            "word": rows["test"],
            "figure": rows["figure"].astype(int),
            "gender": people[0].replace({"Female": "women", "Male": "men", "": "not said"}),
            "race": people[2],
        }
    )
    for name, groups in columns.items():
        table[name] = [highest.get(key) for key in zip(rows["test"], groups, strict=True)]
    return table.reset_index(drop=True)


# What a run gives


def _rows(scores: pandas.DataFrame, statistic: str, facet: str) -> pandas.DataFrame:
    return scores[(scores["statistic"] == statistic) & (scores["level"] == facet)]


def top_words(
    scores: pandas.DataFrame,
    facet: str,
    bias_type: str,
    n: int = 10,
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
        Words a group.
    interval
        Add the 95% interval.
    """
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


def least_even(
    scores: pandas.DataFrame, facet: str, types: Sequence[str] | None = None, n: int = 3
) -> pandas.DataFrame:
    """Return by type of bias the words whose retrieved portraits have the lowest entropy.

    Parameters
    ----------
    scores
        As of :func:`biaslib.studies.study3_clip_audit.score`.
    facet
        Such as the intersection of gender and race.
    types
        Of words; None takes all.
    n
        Words a type.
    """
    rows = _rows(scores, "entropy", facet).sort_values("value", kind="stable")
    every = list(dict.fromkeys(scores["bias_type"])) if types is None else types
    columns = {}
    for kind in every:
        best = rows[rows["bias_type"] == kind].head(n)
        pairs = zip(best["test"], best["value"], strict=True)
        columns[kind] = [f"{word} {signed(value)}" for word, value in pairs]
    return pandas.DataFrame(
        [(kind, ", ".join(words)) for kind, words in columns.items()],
        columns=["type", "words with the lowest entropy"],
    )


def composition_table(
    scores: pandas.DataFrame, facet: str, words: Sequence[str]
) -> pandas.DataFrame:
    """Return the share of every group among the portraits retrieved for some words.

    Parameters
    ----------
    scores
        As of :func:`biaslib.studies.study3_clip_audit.score`.
    facet
        Such as the intersection of gender and race.
    words
        In their order; a word of two types has one row.

    Raises
    ------
    UnknownNameError
        If a word was not scored; the message names words that were.
    """
    rows = _rows(scores, "share", facet).rename(columns={"test": "word"})
    for word in words:
        if word not in set(rows["word"]):
            raise unknown_name("word", word, rows["word"].unique())
    rows = rows[rows["word"].isin(words)]
    wide = rows.pivot_table(index="word", columns="group", values="value", sort=False)
    return wide.loc[list(words)].reset_index().rename_axis(columns=None)


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


def innocent_table(audit: study.Audit) -> pandas.DataFrame:
    """Return how large C-ASC by gender is, for words without social meaning and for each type.

    Parameters
    ----------
    audit
        Of a run, whose model scores the innocent words as well.
    """
    rows = _rows(audit.scores, "c_asc", "gender")
    rows = rows[rows["group"] == audit.given.gender[0]]
    values = {"innocent words": audit.c_asc(audit.given.innocent["caption"])[:, 0]}
    types = rows.groupby("bias_type", sort=False)["value"]
    values |= {kind: part.to_numpy() for kind, part in types}
    limit = np.quantile(np.abs(values["innocent words"]), 0.95)
    beyond = rows[(rows["low"] > limit) | (rows["high"] < -limit)].groupby("bias_type").size()
    rows = [
        {
            "words": kind,
            "n": len(each),
            "half are above": np.median(np.abs(each)),
            "one in twenty is above": np.quantile(np.abs(each), 0.95),
            "intervals wholly beyond that": beyond.get(kind, 0) if at else np.nan,
        }
        for at, (kind, each) in enumerate(values.items())
    ]
    return pandas.DataFrame(rows, dtype=object)


def pronoun_table(shares: pandas.DataFrame, corpus: study.Corpus) -> pandas.DataFrame:
    """Return women's share of the pronouns beside the words of the paper's Table 1.

    Parameters
    ----------
    shares
        Of :func:`biaslib.studies.study3_clip_audit.source_of_bias`.
    corpus
        In which they were counted.
    """
    words = published.table(PAPER, 1)["word"].replace("ceo", "CEO")
    rows = shares[shares["word"].isin(words) & (shares["n"] > 0)]
    table = {
        "word": rows["word"],
        "captions": rows["n"],
        "women's pronouns, %": 100 * rows["share"],
        "95% interval": interval_texts(100 * rows[["low", "high"]], 1),
    }
    truth = {"put in, %": 100 * corpus.truth(rows["word"].tolist())} if corpus.truth else {}
    return pandas.DataFrame(table | truth)


def choices_table(audit: study.Audit) -> pandas.DataFrame:
    """Return how C-ASC by gender changes with choices that the paper leaves open.

    Parameters
    ----------
    audit
        Of a run: its words are scored again with one choice changed at a time.
    """
    given, found = audit.given, audit.retrieval
    women = given.groups["gender"][[given.gender[0]]].to_numpy()
    nouns = [stimuli.caption(word, "noun") for word in audit.table["word"]]
    first, other = (caption_association.c_asc(found.similarities, women, d)[:, 0] for d in (1, 0))
    halves = [found.ranking[:, :n] for n in (given.k, given.k // 2)]
    shares = [caption_association.top_k_composition(top, women).shares[:, 0] for top in halves]
    pairs = {
        "divide by n, not by n − 1": (first, other),
        "the template of nouns for all words": (first, audit.c_asc(nouns)[:, 0]),
        "retrieve half as many (shares of women)": shares,
    }
    return pandas.DataFrame(
        [
            {"what is changed": name, "largest change": np.abs(a - b).max(),
             "rank correlation": pandas.Series(a).corr(pandas.Series(b), method="spearman")}
            for name, (a, b) in pairs.items()
        ]
    )  # fmt: skip


def data_availability(given: study.Inputs, no_captions: str = "") -> pandas.DataFrame:
    """Return what was asked for, and is there: portraits, groups, words and captions.

    Parameters
    ----------
    given
        Inputs of the run.
    no_captions
        Why there are no captions.
    """
    n, sizes = len(given.people), {facet: given.sizes(facet) for facet in given.facets}
    asked, _ = given.asked_and_there
    groups = pandas.concat(sizes.values())
    rows = [
        ("portraits", asked, n, "" if n == asked else f"{asked - n:,} of {given.dataset}"),
        ("groups", len(groups), (groups > 0).sum(), ", ".join(groups.index[groups == 0])),
    ]
    if given.profile == "paper":
        printed = published.casc_tables()
        known = set(zip(given.words["word"], given.words["bias_type"], strict=True))
        pairs = zip(printed["word"], printed["category"], strict=True)
        scored = sum(pair in known for pair in pairs)
        rows.append(("printed cells of C-ASC: words with their types", len(printed), scored, ""))
    rows.append(("captions", 1, int(not no_captions), no_captions))
    return availability_table(rows)


TOY = (
    "A toy's numbers, to show the form of the tables. They are of tiny-CLIP and drawn faces, and "
    "say nothing about CLIP"
)


def results(done: study.Whole) -> list[Any]:
    """Return what the full run shows: in ``planted`` folded under one line, as it is of a toy.

    Else: what is there, the words of each gender, and folded all else, as it has harmful words; in
    ``paper`` the run stands beside everything that the paper prints. Every table of a taste says
    that it is one. What was not run is not shown.

    Parameters
    ----------
    done
        Of :func:`biaslib.studies.study3_clip_audit.whole`.
    """
    audit, given = done.audit, done.audit.given
    pronouns = [] if done.shares is None else [_pronouns(done)]
    if given.profile == "planted":
        return [fold(TOY, *_noted([*_of_run(audit, False), *pronouns], "Planted world"))]
    note = TASTE.capitalize() if given.profile == "taste" else ""
    there = Table(
        data_availability(given, done.corpus.missing), "What this page asks for, and what is there"
    )
    tables, harmful = _noted(_of_run(audit, True), note), _noted(_harmful(audit), note)
    shown = _noted([there], note)
    shown += [say("**Note:** {notes}.", notes="; ".join(given.notes))] if given.notes else []
    shown += tables[: len(OPEN_TYPES)]
    shown += [] if note else _beside(audit, done.counts)
    caption = "All else that the run gives: harmful words by gender, by race and by both"
    return [*shown, fold(caption, *tables[len(OPEN_TYPES) :], *harmful), *pronouns]


def _noted(tables: Sequence[Table], note: str) -> list[Table]:
    """Return tables whose captions end with a note, if there is one."""
    return [replace(each, caption=f"{each.caption}. {note}" if note else each.caption)
            for each in tables]  # fmt: skip


def _pronouns(done: study.Whole) -> Table:
    rows = pronoun_table(done.shares, done.corpus)
    return Table(rows, "Pronouns beside a word in captions, as in Table 1")


def _of_run(audit: study.Audit, paper: bool) -> list[Table]:
    """Return the tables of a run that hold no harmful word, those of its top words first."""
    given, scores = audit.given, audit.scores
    second, both = list(given.groups)[1], list(given.groups)[-1]
    kinds = OPEN_TYPES if paper else OPEN_TYPES[:1]
    members = given.groups[second]
    erased = study.erasure(audit.retrieval, members, audit.table, units=given.units)
    tables = {
        f"{kind}: highest C-ASC by gender, 95% intervals resample {given.unit_name}": top_words(
            scores, "gender", kind, interval=True
        )
        for kind in kinds
    }
    tables |= {
        f"Shares of the {given.k} nearest, by {both}": composition_table(
            scores, both, ("homemaker", "farmer", "CEO")
        ),
        f"Entropy of the {given.k} nearest, by {both}": least_even(scores, both, OPEN_TYPES),
        f"For how many words each {second} is hardly retrieved": erasure_table(erased),
        "Size of C-ASC by gender, beside words without social meaning": innocent_table(audit),
        "Tests of C-ASC that reject at 5%, by what counts as a unit": study.rejections(
            audit.retrieval, given
        ),
        "What other choices change": choices_table(audit),
    }
    return [Table(rows, caption) for caption, rows in tables.items()]


def _beside(audit: study.Audit, counts: Mapping[str, pandas.DataFrame]) -> list[Table]:
    """Return the run beside what the paper prints: how many numbers are met, and all of them."""
    found = reproduction.compare(audit.scores, PAPER, counts)
    stated = found["id"].str.contains("/stated/")
    signs, found = found[stated], found[~stated]
    met = found["verdict"].value_counts().reindex(reproduction.VERDICTS, fill_value=0)
    counted = met.rename_axis("verdict").rename("printed numbers and lists").reset_index()
    ran = found[found["verdict"] != "not run"]
    told = "".join(f". {each}" for each in reproduction.findings(found))
    how_many = f"This run beside the paper: how many printed numbers and lists are met{told}"
    return [
        Table(counted, how_many),
        Table(ran, "Printed numbers and lists, harmful words among them, and this run", True),
        Table(signs, "What is stated without a number, harmful words included, and this run", True),
    ]


def _harmful(audit: study.Audit) -> list[Table]:
    """Return the lists of words that do harm, as Tables 3 to 18 and Figures 4 to 8 have them."""
    scores, facets = audit.scores, list(audit.given.groups)
    second, both = facets[1], facets[-1]
    tables = {
        "Who is retrieved for words of Figures 4 to 8": composition_table(
            scores, both, printed_first()["word"].tolist()
        ),
        "Words with the lowest entropy, by type": least_even(scores, both),
    }
    for kind in ("Behavioral", "Appearance"):
        rows = top_words(scores, "gender", kind, interval=True)
        tables[f"{kind}: highest C-ASC by gender"] = rows
    for kind in scores["bias_type"].unique():
        tables[f"{kind}: highest C-ASC by {second}"] = top_words(scores, second, kind)
    return [Table(rows, caption, folded=True) for caption, rows in tables.items()]


# Checks of the exercises

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

    def gap(cosines, group):
        return cosines[group].mean() - cosines[~group].mean()

    faults = {
        "this is ddof 0: NumPy divides by n; give std the argument ddof=1": (
            lambda cosines, group: gap(cosines, group) / cosines.std()
        ),
        "this is the spread within the group; C-ASC takes that of all portraits": (
            lambda cosines, group: gap(cosines, group) / cosines[group].std(ddof=1)
        ),
        "this is the difference of the means; divide it by the spread": gap,
        "this is the group's sum divided by all portraits; divide each sum by its own group": (
            lambda cosines, group: np.mean(np.where(group, cosines, -cosines)) / spread
        ),
    }
    return judge_function(answer, cases, hint, right=right, faults=faults)


def check_composition(answer) -> Check:
    """Check a reader's function of cosines (n,), group (n,) and k: the ratio of two shares.

    Examples
    --------
    >>> check_composition(lambda cosines, group, k: group[np.argsort(-cosines)[:k]].mean())
    Not yet: compare two shares of the group: one among the k nearest, one in the whole data set
    """
    hint = "compare two shares of the group: one among the k nearest, one in the whole data set"
    cases = [((COSINES.copy(), GROUP.copy(), k), (2 / k) / 0.3) for k in (4, 5)]
    faults = {
        "these are the lowest cosines: argsort puts them first": (
            lambda cosines, group, k: group[np.argsort(cosines)[:k]].mean() / group.mean()
        ),
    }
    return judge_function(answer, cases, hint, right="1 means: as in the data.", faults=faults)


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
