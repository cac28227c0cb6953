"""The taxonomy SO-B-IT and the C-ASC tables (Hamidieh et al. 2023) against one another."""

import itertools

import pandas

from biaslib.published._tables import table
from biaslib.published.reexamination.ross2021 import subsets_with_sum

PAPER = "hamidieh2023"
PRINTED_WORDS, PRINTED_TYPES = 374, 10
"""The size of the taxonomy that the text gives."""
SMALL_AND_FULL = {7: 14, 8: 18, 9: 17, 10: 12}
"""Tables of some groups, and the table of the same category with more groups or words."""
CELL = ["category", "group", "word"]


def casc_tables() -> pandas.DataFrame:
    """Return Tables 3 to 18 one below the other.

    >>> len(casc_tables())
    709
    """
    return pandas.concat([table(PAPER, number) for number in range(3, 19)], ignore_index=True)


def taxonomy_counts() -> pandas.DataFrame:
    """Return the number of entries by type of bias (B1, B2).

    >>> int(taxonomy_counts()["entries"].sum()), len(taxonomy_counts())
    (408, 9)
    """
    sizes = table(PAPER, 2).groupby("bias_type", sort=False).size()
    return sizes.rename("entries").reset_index()


def taxonomy_size() -> dict[str, int]:
    """Return the taxonomy's size and the subsets of types that make the text's number (B1).

    >>> taxonomy_size()
    {'entries': 408, 'distinct': 403, 'types': 9, 'subsets_entries': 0, 'subsets_distinct': 0}
    """
    words, counts = table(PAPER, 2), taxonomy_counts()["entries"].tolist()
    sets = [set(group["word"]) for _, group in words.groupby("bias_type")]
    distinct = sum(
        len(set().union(*chosen)) == PRINTED_WORDS
        for size in range(1, len(sets) + 1)
        for chosen in itertools.combinations(sets, size)
    )
    return {
        "entries": len(words),
        "distinct": words["word"].nunique(),
        "types": len(counts),
        "subsets_entries": subsets_with_sum(counts, PRINTED_WORDS),
        "subsets_distinct": distinct,
    }


def words_in_two_types() -> dict[str, list[str]]:
    """Return the words that the taxonomy lists under two types (B1).

    >>> list(words_in_two_types())
    ['aggressive', 'lazy', 'primitive', 'radical', 'savage']
    """
    types = table(PAPER, 2).groupby("word")["bias_type"].agg(list)
    return types[types.str.len() > 1].to_dict()


def alphabetical_breaks(bias_type: str) -> list[str]:
    """Return the words of a type that come before their predecessor in the alphabet (B1).

    >>> alphabetical_breaks("Healthcare")
    ['HIV positive', 'autistic', 'abortion seeking']
    """
    words = table(PAPER, 2).query("bias_type == @bias_type")["word"].tolist()
    pairs = itertools.pairwise(words)
    return [after for before, after in pairs if after.lower() < before.lower()]


def repeated_cells() -> pandas.DataFrame:
    """Return the cells that a smaller and a fuller table both print, with both values (B3).

    >>> frame = repeated_cells()
    >>> len(frame), int((frame["casc_small"] != frame["casc_full"]).sum())
    (112, 2)
    """
    pairs = [
        table(PAPER, small).merge(table(PAPER, full), on=CELL, suffixes=("_small", "_full"))
        for small, full in SMALL_AND_FULL.items()
    ]
    return pandas.concat(pairs, ignore_index=True).drop(columns=["facet_small", "facet_full"])


def value_conflicts() -> pandas.DataFrame:
    """Return the repeated cells whose two values differ (B3).

    >>> value_conflicts()[["word", "casc_small", "casc_full"]].values.tolist()
    [['militant', 0.7, 0.17], ['murderer', 0.4, 0.16]]
    """
    cells = repeated_cells()
    return cells[cells["casc_small"] != cells["casc_full"]].reset_index(drop=True)


def order_breaks() -> pandas.DataFrame:
    """Return the words whose C-ASC is below the next word's in a list ranked downwards (B3).

    Examples
    --------
    >>> order_breaks()["word"].tolist()
    ['militant', 'murderer']
    """
    casc = casc_tables()
    following = casc.groupby(["table", "group"])[["word", "casc"]].shift(-1)
    rows = casc.assign(next_word=following["word"], next_casc=following["casc"])
    return rows[rows["casc"] < rows["next_casc"]].reset_index(drop=True)


def ranked_lists() -> int:
    """Return how many ranked lists Tables 3 to 18 hold.

    >>> ranked_lists()
    74
    """
    return casc_tables().groupby(["table", "group"]).ngroups


def repeated_tables() -> pandas.DataFrame:
    """Return the pairs of small and full tables with the share of cells printed alike (B4).

    >>> repeated_tables().query("small == 10")[["alike", "cells"]].values.tolist()
    [[40, 40]]
    """
    cells = repeated_cells()
    cells["alike"] = cells["casc_small"] == cells["casc_full"]
    found = cells.groupby(["table_small", "table_full"])["alike"].agg(["sum", "size"])
    found = found.reset_index().set_axis(["small", "full", "alike", "repeated"], axis=1)
    found["cells"] = [len(table(PAPER, number)) for number in found["small"]]
    return found


def list_differences(small: int) -> pandas.DataFrame:
    """Return what a small table's lists skip and add, against the full table's top words (B5).

    >>> list_differences(9)["skips"].tolist()
    ['migrant', 'migrant', 'migrant']
    """
    full = table(PAPER, SMALL_AND_FULL[small])
    rows = []
    for group, listed in table(PAPER, small).groupby("group", sort=False):
        top = full.query("group == @group")
        reached = top["word"].isin(listed["word"])
        last = top["rank"][reached].max()
        skipped = top[~reached & (top["rank"] <= max(last, len(listed)))]["word"]
        added = listed[~listed["word"].isin(top["word"])]
        rows.append(
            {
                "group": group,
                "skips": ", ".join(skipped),
                "adds": ", ".join(
                    f"{w} {c:.2f}" for w, c in zip(added["word"], added["casc"], strict=True)
                ),
            }
        )
    return pandas.DataFrame(rows)


def swapped_ties(small: int = 9) -> list[tuple[str, str, str]]:
    """Return neighbours of a small table that the full table prints in the other order (B5).

    >>> swapped_ties()
    [('Southeast Asian', 'disadvantaged', 'undocumented')]
    """
    full = table(PAPER, SMALL_AND_FULL[small]).set_index(["group", "word"])["rank"]
    swapped = []
    for group, listed in table(PAPER, small).groupby("group", sort=False):
        words = [word for word in listed["word"] if (group, word) in full.index]
        for first, second in itertools.pairwise(words):
            if full[group, first] > full[group, second]:
                swapped.append((group, first, second))
    return swapped


def words_outside_taxonomy() -> dict[int, list[str]]:
    """Return, by table, the words that the taxonomy does not list anywhere (B2, B6).

    >>> {number: len(words) for number, words in words_outside_taxonomy().items()}
    {5: 19, 13: 1, 17: 1, 18: 3}
    """
    casc = casc_tables()
    outside = casc[~casc["word"].isin(table(PAPER, 2)["word"])]
    words = outside.groupby("table")["word"].agg(lambda s: list(dict.fromkeys(s)))
    return {int(number): listed for number, listed in words.items()}


def category_conflicts() -> pandas.DataFrame:
    """Return words of one group with different values under two categories (B7).

    The value of a word and a group depends on neither the list nor its category.

    >>> frame = category_conflicts()
    >>> sorted(set(frame["word"]))
    ['liberal', 'radical']
    """
    full = pandas.concat([table(PAPER, number) for number in (11, 12, *range(13, 19))])
    full = full.drop_duplicates(CELL)
    pairs = full.merge(full, on=["group", "word"], suffixes=("_first", "_second"))
    pairs = pairs[pairs["table_first"] < pairs["table_second"]]
    columns = ["word", "group", "table_first", "casc_first", "table_second", "casc_second"]
    return pairs[pairs["casc_first"] != pairs["casc_second"]][columns].reset_index(drop=True)


def absent_though_above(word: str, group: str, number: int) -> dict[str, float]:
    """Return a word's highest value elsewhere and the last value of a list without it (B7).

    >>> absent_though_above("radical", "Black", 14)
    {'elsewhere': -0.3, 'last_of_list': -0.35}
    """
    listed = table(PAPER, number).query("group == @group")
    if word in set(listed["word"]):
        raise ValueError(f"{word!r} is listed for {group} in Table {number}")
    elsewhere = casc_tables().query("group == @group and word == @word")["casc"]
    return {"elsewhere": float(elsewhere.max()), "last_of_list": float(listed["casc"].min())}


def gendered_occupations() -> list[str]:
    """Return the words of Table 4 that name a gender: on -man, or with a form on -ess (B10).

    >>> gendered_occupations()
    ['policeman', 'waiter']
    """
    known = set(table(PAPER, 2)["word"])
    words = table(PAPER, 4)["word"]
    feminine = [word.removesuffix("er").removesuffix("or") + "ress" for word in words]
    return [
        word
        for word, other in zip(words, feminine, strict=True)
        if word.endswith(("man", "woman")) or other in known
    ]


def pronoun_order_breaks() -> list[str]:
    """Return the words of Table 1 that break its rising order of men's pronouns (B10).

    >>> pronoun_order_breaks()
    ['porter']
    """
    rows = table(PAPER, 1)
    return rows["word"][rows["male"] > rows["male"].shift(-1)].tolist()


def coverage() -> pandas.DataFrame:
    """Return, by type of the taxonomy, its tables by gender and by race (B11).

    >>> coverage().query("gender == '' and race == ''")["bias_type"].tolist()
    ['Healthcare']
    """
    casc = casc_tables()

    def numbers(bias_type, facet):
        found = casc.query("category == @bias_type and facet == @facet")["table"]
        return ", ".join(str(each) for each in sorted(set(found)))

    types = taxonomy_counts()["bias_type"]
    return pandas.DataFrame(
        [
            {"bias_type": t, "gender": numbers(t, "gender"), "race": numbers(t, "race")}
            for t in types
        ]
    )


def word_by_group(word: str, number: int) -> dict[str, float]:
    """Return a word's printed values by group in one table, the highest first (B11).

    >>> word_by_group("uneducated", 17)
    {'Indian': 0.34, 'Southeast Asian': 0.32, 'East Asian': 0.3}
    """
    rows = table(PAPER, number).query("word == @word").sort_values("casc", ascending=False)
    return dict(zip(rows["group"], rows["casc"], strict=True))
