"""Tables, panels and the check of the chapter on a text encoder."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas

from biaslib import inference, stimuli
from biaslib.display import interval_text, interval_texts, p_text, signed
from biaslib.runtime import progress
from biaslib.studies import text_encoders as study
from companion._check import Check, judge_function
from companion._drawing import Drawing, histogram
from companion._explorer import Panel
from companion._shared import LEVEL, ROWS, p_cells

LEVELS = {"word": (0, "o", 0.24), "sentence": (1, "s", 0.0), "contextual": (2, "^", -0.24)}
"""Colour, mark and vertical offset of each level."""

DIVISORS = {"n − 1 (ddof 1)": "value", "n (ddof 0)": "value_ddof0"}
"""Columns of the effect size, by what its standard deviation divides by."""

SWITCHES = (
    "Count words, not sentences",
    "Correct for 39 tests",
    "Compare with random words",
)
"""What can be asked of a test beyond p < .05, in the order in which the chapter teaches it."""

EDGES = np.linspace(-2, 2, 41)
"""Of the bins of effect sizes."""


SENTENCES = {
    "word": "the word alone",
    "sentence": "our sentences",
    "contextual": "its token in our sentences",
    "SEAT": "SEAT's sentences",
}
"""What carries a word, by level; SEAT's own sentences stand for a level of their own."""

CHOICES = {
    "What carries the word": tuple(SENTENCES.values()),
    "Unit": ("every sentence", "every word"),
    "Compared with": ("relabelled targets", "random words"),
    "Correction": ("none", "Benjamini and Hochberg", "Holm"),
    "Attribute words": ("all", "first half", "second half"),
    "Divide by": ("n − 1", "n"),
}
"""The choices and their values, in the order of :func:`all_analyses`' columns."""

METHODS = dict(zip(CHOICES["Correction"], (None, "bh", "holm"), strict=True))


def separability(embedded: study.EmbeddedTest) -> float:
    """Return how well X and Y are told apart by their embeddings alone, without any attribute.

    The share of target words that lie nearer (by cosine) to the mean direction of the other words
    of their own set than to that of the other set. Half is chance; 1 means that the two target
    sets are two separate clusters, so that almost any direction tells them apart.
    """
    units = embedded.targets / np.linalg.norm(embedded.targets, axis=1, keepdims=True)
    x, y = embedded.split(units.T)
    x_words, y_words = (
        pandas.DataFrame(vectors.T).groupby(list(words), sort=False).mean().to_numpy()
        for vectors, words in ((x, embedded.words["X"]), (y, embedded.words["Y"]))
    )
    shares = _share_nearer_own(x_words, y_words), _share_nearer_own(y_words, x_words)
    return float(np.mean(shares))


def _share_nearer_own(own: np.ndarray, other: np.ndarray) -> float:
    rest = (own.sum(axis=0) - own) / (len(own) - 1)
    to_own = (own * rest).sum(axis=1) / np.linalg.norm(rest, axis=1)
    to_other = own @ other.mean(axis=0) / np.linalg.norm(other.mean(axis=0))
    return float((to_own > to_other).mean())


def row_name(test: str) -> str:
    """Return a test in a few words, with its code where it has a short one.

    >>> row_name("C6"), row_name("occupation-race")
    ('gender: career, family (C6)', 'race: occupations')
    """
    return f"{ROWS[test]} ({test})" if test in ROWS and "-" not in test else ROWS.get(test, test)


def scores_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return scores of all tests as the reader sees them: rounded, in words."""
    words, items = ((scores[f"p_low{of}"], scores[f"p_high{of}"]) for of in ("", "_paper"))
    return pandas.DataFrame(
        {
            "test": scores["test"],
            "level": scores["level"],
            "d": scores["value"],
            "95% interval": interval_texts(scores),
            "p, items": p_cells(scores["p_value_paper"], *items),
            "p, words": p_cells(scores["p_value"], *words),
            "p, Holm": p_cells(scores["p_holm"], *words, "holm"),
            "p, BH": p_cells(scores["p_bh"], *words, "bh"),
            "items": scores["n_texts"],
            "words": scores["n"],
        }
    )


def placed_table(placed: pandas.DataFrame, columns: list[str] | None = None) -> pandas.DataFrame:
    """Return the place of tests among random attribute sets, with headings for the reader."""
    headings = {
        "test": "test",
        "level": "level",
        "value": "d",
        "p_value": "permutation p",
        "p_bh": "permutation p, BH",
        "p_random": "p among random sets",
        "p_random_bh": "p among random sets, BH",
        "q95": "95th percentile of |d|",
        "rejected": "random sets rejected",
        "rejected_uniform": "rejected, unmatched",
        "rejected_two_sided": "rejected, two-sided 10%",
        "separability": "separability",
    }
    return placed[columns or list(headings)].rename(columns=headings)


def by_sentences(rows: Sequence[Mapping]) -> pandas.DataFrame:
    """Return scores of tests in several kinds of sentences, those of a test below each other."""
    frame = pandas.DataFrame(rows).sort_values("test", kind="stable").rename(columns={"value": "d"})
    return frame[["test", "sentences", "d", "low", "high"]]


def panel(
    scores: pandas.DataFrame, embedded, random, start: tuple[str, str] | None = None
) -> Panel:
    """Return the panel in which a reader chooses test, level and divisor.

    It shows a test's effect size beside those of relabelled targets and of random attribute words.

    Parameters
    ----------
    scores, embedded
        As :func:`biaslib.studies.text_encoders.run` gives them.
    random
        One :class:`biaslib.studies.text_encoders.RandomAttributes` a row of the scores.
    start
        Test and level that the panel begins with; the first ones where it is left out.
    """
    cases = {}
    for row, each, drawn in zip(scores.to_dict("records"), embedded, random, strict=True):
        _, relabelled = relabelled_effect_sizes(each, 2_000)
        for divisor, column in DIVISORS.items():
            case = row["test"], row["level"], divisor
            cases[case] = _drawing(row, row[column], relabelled, drawn)
    choices = {
        "Test": list(dict.fromkeys(scores["test"])),
        "Level": list(dict.fromkeys(scores["level"])),
        "Divide by": list(DIVISORS),
    }
    begin = None if start is None else (*start, next(iter(DIVISORS)))
    return Panel("One test, and what chance gives", choices, cases, begin)


def _drawing(row: dict, d: float, relabelled: np.ndarray, random) -> Drawing:
    """Draw both histograms and the test; another divisor stretches all effect sizes alike."""
    stretch = d / row["value"]
    marks = [
        histogram(stretch * relabelled, EDGES)
        | {"label": "targets relabelled: what the permutation test compares with", "group": 0},
        histogram(stretch * random.effect_sizes, EDGES)
        | {"label": "random words as attributes, targets as they are", "group": 1},
        {"kind": "rule", "x": [d], "y": [], "label": "this test", "group": 5},
    ]
    return Drawing(
        _panel_sentence(row, d, random),
        marks,
        "effect size d",
        "share",
        (-2, 2),
        (0, 1.05 * max(*marks[0]["y"], *marks[1]["y"])),
        "Two histograms of effect sizes and an upright line at this test.",
    )


def _panel_sentence(row: dict, d: float, random) -> str:
    test, stretch = stimuli.association_test(row["test"], row["level"]), d / row["value"]
    return (
        f"{test.title}, {row['level']} level; positive: {test.direction}. d = {signed(d)}, 95% "
        f"interval {interval_text(stretch * row['low'], stretch * row['high'])}, "
        f"{row['n']} target words. Relabelled targets reach this d or more in "
        f"{_share(row['p_value'])} of partitions (one-sided p). Random attribute words "
        f"reach this size in {_share(random.p_value(row['value']))} of "
        f"{len(random.effect_sizes):,} sets; 95% of them stay within "
        f"±{stretch * random.quantile():.2f}, and the permutation test "
        f"calls {_share(random.rejection_rate())} of them significant at 5%."
    )


def significant(
    scores: pandas.DataFrame, placed: pandas.DataFrame, words: bool, corrected: bool, random: bool
) -> np.ndarray:
    """Return which tests are called significant at 5%, by what is asked of them.

    Parameters
    ----------
    scores, placed
        As :func:`biaslib.studies.text_encoders.run` and
        :func:`biaslib.studies.text_encoders.against_random` give them, row by row.
    words
        Whether a word is one unit, and not each of its sentences.
    corrected
        Whether p-values are corrected for the number of rows, by Holm's method.
    random
        Whether the effect must also be rare among random attribute words.
    """
    asked = [scores["p_value" if words else "p_value_paper"]]
    asked += [placed["p_random"]] if random else []
    if corrected:
        asked = [inference.adjust(each, "holm") for each in asked]
    return np.all([np.asarray(each) < LEVEL for each in asked], axis=0)


def four_counts(scores: pandas.DataFrame, placed: pandas.DataFrame) -> list[int]:
    """Return how many tests are significant as the three :data:`SWITCHES` go on, one by one."""
    states = [[number < on for number in range(3)] for on in range(4)]
    return [int(significant(scores, placed, *state).sum()) for state in states]


def switches(scores: pandas.DataFrame, placed: pandas.DataFrame) -> Panel:
    """Return the panel in which a reader asks more and more of 39 significant tests.

    Parameters
    ----------
    scores, placed
        As for :func:`significant`.
    """
    states = list(itertools.product((False, True), repeat=len(SWITCHES)))
    cases = {state: _significant_tests(scores, placed, state) for state in states}
    return Panel("How many findings are left?", {name: [False, True] for name in SWITCHES}, cases)


def _significant_tests(scores, placed, state: tuple[bool, ...]) -> Drawing:
    found, rows = significant(scores, placed, *state), list(ROWS)[::-1]
    heights, names = [], []
    for test, level, d in scores[["test", "level", "value"]].itertuples(index=False):
        heights.append(rows.index(test) + 0.8 * LEVELS[level][2])
        names.append(f"{ROWS[test]}, {level} level: d = {signed(d)}")
    words, corrected, random = state
    are = "is" if found.sum() == 1 else "are"
    sentence = f"{found.sum()} of {len(found)} tests {are} significant at the 5% level"
    sentence += f" when {'a word' if words else 'every sentence'} counts as one unit"
    sentence += f", after Holm's correction for {len(found)} tests" if corrected else ""
    sentence += ", and rare among random attribute words" if random else ""
    parts = ((found, "significant", 0), (~found, "not significant", 5))
    return Drawing(
        f"{sentence}.",
        [_some(chosen, scores["value"], heights, names, *told) for chosen, *told in parts],
        "effect size d (right of 0: the stereotype)",
        "",
        (-2, 2),
        (-0.7, len(rows) - 0.3),
        "A row for each of 13 tests and three marks in each, one a level.",
        y_ticks={place: ROWS[test] for place, test in enumerate(rows)},
        height=430,
    )


def _some(chosen, x, y, names, label: str, group: int) -> dict:
    """Return the mark of the dots that were chosen."""
    at = np.flatnonzero(chosen)
    kept = {"x": np.asarray(x)[at], "y": np.asarray(y)[at], "names": [names[i] for i in at]}
    return {"kind": "dots", "label": f"{label}: {len(at)}", "group": group, **kept}


def half(embedded: study.EmbeddedTest, which: str) -> study.EmbeddedTest:
    """Return a test with all of its attribute words, or half of each list in its printed order.

    Parameters
    ----------
    embedded
        The test.
    which
        A value of the choice ``"Attribute words"``.
    """
    every, first, _ = CHOICES["Attribute words"]
    if which == every:
        return embedded
    parts = {name: dict(getattr(embedded, name)) for name in ("embeddings", "words", "kinds")}
    for role in "AB":
        words = list(dict.fromkeys(embedded.words[role]))
        middle = len(words) // 2
        chosen = set(words[:middle] if which == first else words[middle:])
        kept = [at for at, word in enumerate(embedded.words[role]) if word in chosen]
        parts["embeddings"][role] = embedded.embeddings[role][kept]
        for name in ("words", "kinds"):
            parts[name][role] = tuple(getattr(embedded, name)[role][at] for at in kept)
    return dataclasses.replace(embedded, **parts)


def p_values_by_choice(
    embedded: Mapping[str, Sequence[study.EmbeddedTest]],
    pools: Mapping[str, study.EmbeddedPool],
    n_sets: int = 2_000,
    seed: int = 0,
) -> pandas.DataFrame:
    """Return what all analyses of a test are made from, before any correction.

    Parameters
    ----------
    embedded
        Tests by a key of :data:`SENTENCES`; under ``"SEAT"`` those that have such sentences.
    pools
        Random words by level. Beside SEAT's sentences they stand in ours.
    n_sets
        Random pairs of attribute sets a row.
    seed
        Seed of their draws.

    Returns
    -------
    pandas.DataFrame
        One row a test, what carries the word and attribute words: *value* and *value_ddof0* (d with
        n − 1 and with n), *p_items*, *p_words* (permutation test, one-sided) and *p_random* (random
        attribute words, two-sided).
    """
    tests = [
        (name, half(each, which), which)
        for name, several in embedded.items()
        for each in several
        for which in CHOICES["Attribute words"]
    ]
    rows = [
        {"test": each.name, "sentences": SENTENCES[name], "words": which}
        | _p_values(each, pools[each.level], n_sets, seed)
        for name, each, which in progress(tests, "analyses")
    ]
    return pandas.DataFrame(rows)


def _p_values(
    embedded: study.EmbeddedTest, pool: study.EmbeddedPool, n_sets: int, seed: int
) -> dict:
    x, y = embedded.split(embedded.scores)
    by_word = inference.permutation_test(*embedded.word_scores(), rng=seed).p_value
    value = embedded.effect_size()
    null = study.random_null(embedded, pool, n_sets=n_sets, rng=seed)
    by_item = by_word
    if embedded.level != "word":
        by_item = inference.permutation_test(x, y, rng=seed).p_value
    return {
        "value": value,
        "value_ddof0": embedded.effect_size(ddof=0),
        "p_items": by_item,
        "p_words": by_word,
        "p_random": null.p_value(value),
    }


def all_analyses(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return every combination of :data:`CHOICES` for every test.

    A correction is over the tests that were treated alike. A test in SEAT's sentences takes the
    place of the same one in ours. A p-value against random attribute words does not depend on the
    unit, and none depends on the divisor.

    Parameters
    ----------
    found
        What :func:`p_values_by_choice` returns.

    Returns
    -------
    pandas.DataFrame
        *test*, a column a choice, *value* (d), *p* (after the correction) and *survives*
        (p below .05, and the direction that the source of the test expects).
    """
    units = dict(zip(CHOICES["Unit"], ("p_items", "p_words"), strict=True))
    divisors = dict(zip(CHOICES["Divide by"], ("value", "value_ddof0"), strict=True))
    relabelled, parts = CHOICES["Compared with"][0], []
    for (carrier, which), own in found.groupby(["sentences", "words"], sort=False):
        own = own.set_index("test")
        alike = found[(found["words"] == which) & (found["sentences"] == SENTENCES["sentence"])]
        family = alike.set_index("test") if len(own) < len(alike) else own
        for unit, null, correction, divisor in itertools.product(
            units, CHOICES["Compared with"], METHODS, divisors
        ):
            name = units[unit] if null == relabelled else "p_random"
            p = _adjusted(own[name], family[name], METHODS[correction])
            part = pandas.DataFrame({"test": own.index})
            part[list(CHOICES)] = carrier, unit, null, correction, which, divisor
            part["value"] = own[divisors[divisor]].to_numpy()
            parts.append(part.assign(p=p.to_numpy()))
    table = pandas.concat(parts, ignore_index=True)
    return table.assign(survives=(table["p"] < LEVEL) & (table["value"] > 0))


def _adjusted(own: pandas.Series, family: pandas.Series, method: str | None) -> pandas.Series:
    """Return p-values corrected among a family, in which each takes the place of its own test."""
    if method is None:
        return own
    adjusted = {}
    for test, p in own.items():
        together = inference.adjust(family.where(family.index != test, p), method)
        adjusted[test] = together[family.index.get_loc(test)]
    return pandas.Series(adjusted)


def choices_panel(table: pandas.DataFrame, tests: Sequence[str], start: tuple) -> Panel:
    """Return the panel in which a reader is the analyst, over every analysis of some tests.

    Parameters
    ----------
    table
        What :func:`all_analyses` returns.
    tests
        Those to choose from.
    start
        The test and the choices that the panel begins with.
    """
    cases = {}
    for test in tests:
        rows = table[table["test"] == test].sort_values("p", kind="stable")
        curve = _curve(rows)
        for rank, row in enumerate(rows.to_dict("records")):
            chosen = tuple(row[name] for name in CHOICES)
            cases[(ROWS[test], *chosen)] = _analysis(row, rank, rows, curve)
    choices = {"Test": [ROWS[test] for test in tests], **CHOICES}
    return Panel("Be the analyst", choices, cases, (ROWS[start[0]], *start[1:]))


def _curve(rows: pandas.DataFrame) -> list[dict]:
    """Return all analyses of a test as marks, from the smallest p-value on."""
    ranks, heights = np.arange(len(rows)), np.log10(rows["p"].to_numpy())
    names = ["; ".join(told) for told in rows[list(CHOICES)].to_numpy()]
    survives = rows["survives"].to_numpy()
    return [
        {"kind": "rule", "y": [np.log10(LEVEL)], "group": 5, "thin": True},
        _some(survives, ranks, heights, names, "says yes", 0),
        _some(~survives, ranks, heights, names, "says no", 5),
    ]


def _analysis(row: dict, rank: int, rows: pandas.DataFrame, curve: list[dict]) -> Drawing:
    n, total = rows["survives"].sum(), len(rows)
    told = "it survives" if row["survives"] else "it does not survive"
    yours = {"kind": "rule", "x": [rank], "y": [], "label": "your choices", "group": 1}
    return Drawing(
        f"d = {signed(row['value'])}, {p_text(row['p'])}: {told}.",
        [*curve, yours],
        f"{total} analyses, the smallest p first; {n} say yes",
        "p, corrected",
        (-2, total + 1),
        (-4, 0),
        "Dots that rise from left to right, one an analysis, and a level line at .05.",
        x_ticks={},
        y_ticks={0: "1", np.log10(LEVEL): ".05", -2: ".01", -3: ".001", -4: "≤ .0001"},
    )


def analyses_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return how many analyses of each test say yes."""
    counts = table.groupby("test")["survives"].agg(["sum", "size", "mean"])
    counts = counts.sort_values("mean", ascending=False, kind="stable").reset_index()
    counts.insert(1, "about", counts["test"].map(ROWS))
    counts["mean"] = counts["mean"].map("{:.0%}".format)
    return counts.rename(columns={"sum": "say yes", "size": "of", "mean": "share"})


def check_p_random(answer) -> Check:
    """Judge the p-value among random attribute sets: two-sided, and never 0."""
    random = np.array([-1.5, -0.5, 0.5, 1.0])
    cases = [(0.9, 3 / 5), (-0.9, 3 / 5), (1.0, 3 / 5), (1.9, 1 / 5)]
    cases = [((d, random), p) for d, p in cases]
    hint = "count sizes and not signs, ties included, and the test itself as one more draw"
    right = "random words have no direction, and no p-value is 0."
    return judge_function(answer, cases, hint, right=right)


def _share(value: float) -> str:
    return "less than 0.1%" if value < 0.001 else f"{value:.1%}"


def relabelled_effect_sizes(embedded, n: int) -> tuple[float, np.ndarray]:
    """Return the effect size, and n effect sizes when target words change sides.

    A word takes its sentences along, and every word has equally many; so relabelling changes the
    difference of means and leaves the spread as it is.
    """
    x, y = embedded.word_scores()
    observed = embedded.effect_size()
    scale = observed / (x.mean() - y.mean())
    return observed, scale * inference.relabelled_differences(x, y, n, rng=0)
