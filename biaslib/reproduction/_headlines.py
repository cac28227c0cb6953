"""What a run says of the headline claims: those of the chapters' first screens, in plain code.

Three more are sentences of Ross et al. about numbers of which the paper has no table.

Each is a predicate on the run's tables that other tables fail: those of other models, groups or
tests, and those of noise. An answer is True, False, or None where intervals leave it open. The
printed tables of the same embeddings or picks are named beside: where the run's fail as a whole, as
those of random weights do, a claim is not met.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas

from biaslib import published
from biaslib.reproduction._printed import data_of

Tables = Mapping[str, pandas.DataFrame]
Span = tuple[float, float]
VERDICTS = {True: "met", False: "not met", None: "cannot be said"}
STAYS = 0.8
"""Share of the larger effects of Experiment 1 that stay above 0 in Experiment 2."""

LARGE = 0.5
"""From which C-ASC on, in standard deviations, a word is strongly tied to a group."""

BEYOND_CHANCE = 13 / 15
"""Share of the pairs of six models in one order that 3% of all orders reach."""

ALIKE = 0.75
"""Share of pairs in one order from which on effects of words and of sentences are similar."""

FIRST_FORM = {"ViLBERT": 0.42, "VisualBERT": 0.467}
"""The effect sizes that Ross et al. state of the first form of Experiment 3, in section 5."""

SIGNIFICANT = 12
"""The percentage of significant tests that they state beside."""

OFF = 0.05
"""How far a mean effect size may lie off, as a single one of the paper's tables may."""


class MissingError(LookupError):
    """A run lacks what a claim is about; the message names it."""


def spans(rows: pandas.DataFrame, column: str) -> list[Span]:
    """Return the ends of each row's interval; the number itself where rows have no intervals.

    Raises
    ------
    MissingError
        If there is no row.
    """
    if rows.empty:
        raise MissingError("not in the run")
    value = rows[column].astype(float)
    low, high = (rows.get(end, value).astype(float) for end in ("low", "high"))
    return list(zip(low, high, strict=True))


def above(one: Span, other: Span) -> bool | None:
    """Return whether one number lies above another; None where their intervals meet.

    Examples
    --------
    >>> above((2, 3), (0, 1)), above((0, 1), (2, 3)), above((0, 2), (1, 3))
    (True, False, None)
    """
    if one[0] > other[1]:
        return True
    if one[1] <= other[0]:
        return False
    return None


def near(one: Span, number: float, margin: float) -> bool | None:
    """Return whether an interval meets a stated number, as a printed one is judged.

    Examples
    --------
    >>> near((1, 2), 2.4, 0.5), near((1, 2.5), 2, 0.5), near((1, 2), 3, 0.5)
    (True, None, False)
    """
    if one[0] > number + margin or one[1] < number - margin:
        return False
    if one[1] - one[0] <= 2 * margin + 1e-9:
        return True
    return None


def most(share: float, parts: Iterable[bool | None]) -> bool | None:
    """Return whether at least a share of the parts hold, 1 for all; None where that is open.

    Examples
    --------
    >>> most(1, [True, None]), most(0.5, [True, None]), most(1, [False, None])
    (None, True, False)
    """
    known = list(parts)
    least = share * len(known) - 1e-9
    if sum(part is True for part in known) >= least:
        return True
    if sum(part is not False for part in known) < least:
        return False
    return None


def moved(one: Span, other: Span) -> Span:
    """Return between what the absolute difference of two numbers lies.

    Examples
    --------
    >>> moved((1, 2), (4, 4.5)), moved((0, 2), (1, 3)), moved((1, 1), (3, 3))
    ((2, 3.5), (0, 3), (2, 2))
    """
    ends = one[0] - other[1], one[1] - other[0]
    return max(0, ends[0], -ends[1]), max(abs(each) for each in ends)


def mean(parts: Sequence[Span]) -> Span:
    """Return the means of the ends, which enclose the mean however the numbers go together."""
    low, high = (sum(ends) / len(parts) for ends in zip(*parts, strict=True))
    return low, high


def in_one_order(one: Sequence[Span], other: Sequence[Span]) -> list[bool | None]:
    """Return for each pair of items whether two lists of numbers have it in one order.

    Examples
    --------
    >>> in_one_order([(1, 1), (2, 2), (5, 7)], [(3, 4), (3, 5), (0, 1)])
    [None, False, False]
    """
    found = []
    for a, b in itertools.combinations(range(len(one)), 2):
        orders = above(one[a], one[b]), above(other[a], other[b])
        found.append(None if None in orders else orders[0] == orders[1])
    return found


def counted(parts: Sequence[bool | None]) -> str:
    """Return how many parts hold, and of how many intervals leave it open.

    Examples
    --------
    >>> counted([True, True, False]), counted([True, None])
    ('2 of 3', '1 of 2, 1 left open')
    """
    left = sum(part is None for part in parts)
    open_ = f", {left} left open" if left else ""
    return f"{sum(part is True for part in parts)} of {len(parts)}{open_}"


def judged_headlines(paper: str, tables: Tables, scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return *id*, *printed* (the quotation), *place*, *verdict* and *reason* of predicates."""
    claims = {each["id"]: each for each in data_of(paper)["claims"]}
    rows = []
    for name, (check, place) in HEADLINES.items():
        if not name.startswith(paper):
            continue
        try:
            found, reason = check(tables, scores)
            verdict = VERDICTS[found]
        except MissingError as error:
            verdict, reason = "not run", str(error)
        printed = claims[name]["quotations"][0]["quotation"]
        row = {"id": name, "printed": printed, "place": place}
        rows.append(row | {"verdict": verdict, "reason": reason})
    return pandas.DataFrame(rows, columns=["id", "printed", "place", "verdict", "reason"])


# Ross, Katz and Barbu (2021)


def _effects(tables: Tables, number: int) -> pandas.DataFrame:
    rows = tables.get("ross2021_effect_sizes", pandas.DataFrame({"table": []}))
    rows = rows[rows["table"] == number]
    if rows.empty:
        raise MissingError(f"no effect sizes of Table {number} in the run")
    return rows.set_index(["test", "level", "model"])


def effects_stay(tables: Tables, scores: pandas.DataFrame):
    """Effects of at least 0.5 stay above 0 with pictures of the group's own members."""
    first, second = _effects(tables, 3), _effects(tables, 4)
    large = first.index[first["effect_size"] >= 0.5]
    # C8 is printed alike in both tables: one computation, twice.
    large = [key for key in large if key[0] != "C8" and key in second.index]
    if len(large) < 10:
        raise MissingError("fewer than ten effects of 0.5 or more in the run")
    parts = [above(each, (0, 0)) for each in spans(second.loc[large], "effect_size")]
    return most(STAYS, parts), f"stay above 0: {counted(parts)}"


def words_dominate(tables: Tables, scores: pandas.DataFrame):
    """For some model hiding words moves d more than three times as far as hiding people does."""
    rows = pandas.concat([_effects(tables, 3), _effects(tables, 5)])
    found = dict(zip(rows.index, spans(rows, "effect_size"), strict=True))
    parts, told = [], []
    for model in sorted(set(rows.index.get_level_values("model"))):
        tests = [key[0] for key in found if key[1:] == ("S", model)]
        away = {
            mask: [
                moved(found[test, mask, model], found[test, "S", model])
                for test in tests
                if (test, mask, model) in found
            ]
            for mask in "TI"
        }
        if all(away.values()):
            words, people = mean(away["T"]), mean(away["I"])
            parts.append(above(words, (3 * people[0], 3 * people[1])))
            told.append(f"{model} {_ends(words)} and {_ends(people)}")
    if not parts:
        raise MissingError("one of the masks, or sentences without one, are not in the run")
    how = "d moves without words and without people by: "
    return most(1 / len(parts), parts), how + "; ".join(told)


def _ends(span: Span) -> str:
    low, high = (f"{end:.2f}" for end in span)
    return low if low == high else f"{low} to {high}"


def words_like_sentences(tables: Tables, scores: pandas.DataFrame):
    """With an input hidden, single words give effects in much the same order as sentences."""
    wanted = {"masking": ["words", "persons"], "variant": ["paper"], "domain": ["out of domain"]}
    if not {*wanted, "level", "value"} <= set(scores):
        raise MissingError("no effect sizes with an input hidden in the run")
    keys = ["test", "model", "masking"]
    rows = scores[scores[[*wanted]].isin(wanted).all(axis=1) & scores["value"].notna()]
    rows = rows.drop_duplicates([*keys, "level"])
    ends = {end: rows.get(f"{end}_pictures", np.nan) for end in ("low", "high")}
    rows = rows.assign(**ends).set_index(keys)
    words, sentences = (rows[rows["level"] == level] for level in ("word", "sentence"))
    both = words.index.intersection(sentences.index)
    if len(both) < 39:
        raise MissingError("fewer than 39 effects with an input hidden have both levels in the run")
    parts = in_one_order(*(spans(level.loc[both], "value") for level in (words, sentences)))
    told = f"pairs of {len(both)} effects in one order: {counted(parts)}"
    return most(ALIKE, parts), told


def _first_form(tables: Tables) -> pandas.DataFrame:
    rows = tables.get("ross2021_first_form", pandas.DataFrame({"model": []}))
    rows = rows[rows["model"].isin(FIRST_FORM)]
    if rows.empty or rows.groupby("model")["test"].nunique().reindex(list(FIRST_FORM)).min() != 13:
        raise MissingError("the first form of Experiment 3 on 13 tests is not in the run")
    return rows


def first_form_sizes(tables: Tables, scores: pandas.DataFrame):
    """The mean effect sizes of the first form of Experiment 3 are those that the paper states."""
    rows, parts, told = _first_form(tables), [], []
    for model, stated in FIRST_FORM.items():
        own = rows[rows["model"] == model]
        parts.append(near(mean(spans(own, "effect_size")), stated, OFF))
        told.append(f"{model} {own['effect_size'].mean():.3f}, stated {stated}")
    how = "mean over tests and levels, of our effect size"
    return most(1, parts), f"{'; '.join(told)}: {how}"


def first_form_significant(tables: Tables, scores: pandas.DataFrame):
    """In the first form of Experiment 3 as many tests of the two models are significant."""
    rows = _first_form(tables)
    rows = rows[rows["p_value"].notna()]
    if rows.empty:
        raise MissingError("no p-value of the first form of Experiment 3 in the run")
    bounds = (rows.get(end, rows["p_value"]) for end in ("p_high", "p_low"))
    low, high = (100 * float((p.fillna(rows["p_value"]) < 0.05).mean()) for p in bounds)
    part = near((low, high), SIGNIFICANT, 0.5)
    if (rows["share"] != 1).any():  # what p-values the other pictures would give is not known
        part = None
    n = int((rows["p_value"] < 0.05).sum())
    told = f"{n} of {len(rows)} tests of {' and '.join(FIRST_FORM)}, by our exchange test"
    return part, told


# Hamidieh et al. (2023)


def _nearest(words: Mapping[str, tuple[int, str]]):
    """Return a predicate: each word's C-ASC is highest for the group that is named, and large."""

    def check(tables: Tables, scores: pandas.DataFrame):
        every = tables.get("hamidieh2023_casc", pandas.DataFrame({"table": [], "word": []}))
        parts, told = [], []
        for word, (number, group) in words.items():
            rows = every[(every["word"] == word) & (every["table"] == number)]
            own = rows[rows["group"] == group] if len(rows) else rows
            if own.empty:
                raise MissingError(f"no C-ASC of {word!r} for {group} in the run")
            [span] = spans(own, "casc")
            others = rows[rows["group"] != group]
            parts.append(above(span, (LARGE, LARGE)))
            parts += [above(span, each) for each in spans(others, "casc")] if len(others) else []
            told.append(f"{word} {own['casc'].iloc[0]:.2f} ({group})")
        return most(1, parts), "; ".join(told)

    return check


# Zhou, Lai and Jiang (2022)


def _scores(tables: Tables, metric: str, number: int = 3) -> pandas.DataFrame:
    rows = tables.get("zhou2022_scores", pandas.DataFrame({"metric": [], "table": []}))
    rows = rows[(rows["metric"] == metric) & (rows["table"] == number)]
    six = published.table("zhou2022", 2)["model"]
    if missing := sorted(set(six) - set(rows.get("model", ()))):
        raise MissingError(f"{metric} of {', '.join(missing)} is not in the run")
    return rows[rows["model"].isin(six)]


def _first(model: str, metrics: Mapping[str, int]):
    """Return a predicate: a model has the highest (1) or lowest (-1) of each metric."""

    def check(tables: Tables, scores: pandas.DataFrame):
        parts, told = [], []
        for metric, sign in metrics.items():
            rows = _scores(tables, metric)
            at = (rows["model"] == model).to_numpy()
            [own], others = spans(rows[at], "value"), spans(rows[~at], "value")
            parts += [above(own, each) if sign > 0 else above(each, own) for each in others]
            told.append(f"{metric} of {model} {rows.loc[at, 'value'].iloc[0]:.2f}")
        return most(1, parts), "; ".join(told)

    return check


def gender_first(tables: Tables, scores: pandas.DataFrame):
    """At least five of six models have their highest vlbs in gender."""
    rows, parts = _scores(tables, "vlbs", 4), []
    for model, own in rows.groupby("model"):
        if missing := sorted(set(published.released_sizes()) - set(own["category"])):
            raise MissingError(f"vlbs of {model} in {', '.join(missing)} is not in the run")
        [gender] = spans(own[own["category"] == "gender"], "value")
        others = spans(own[own["category"] != "gender"], "value")
        parts.append(most(1, [above(gender, each) for each in others]))
    told = f"models whose vlbs is highest in gender: {counted(parts)}; five of six for most, ours"
    return most(5 / 6, parts), told


def rise_together(tables: Tables, scores: pandas.DataFrame):
    """Over the models vlrs and vlbs rise together, beyond what chance would do."""
    one, two = (_scores(tables, name).sort_values("model") for name in ("vlrs", "vlbs"))
    parts = in_one_order(spans(one, "value"), spans(two, "value"))
    return most(BEYOND_CHANCE, parts), f"pairs of models in one order: {counted(parts)}"


Check = Callable[[Tables, pandas.DataFrame], tuple[bool | None, str]]
OF_TYPES = {"extremist": (14, "Middle Eastern"), "terrorist": (18, "Middle Eastern")}
OF_POLITICS = {"libertarian": (14, "White"), "conservative": (14, "White")}
OF_ABILITY = {"illiterate": (17, "Indian"), "unskilled": (17, "Indian")}
HEADLINES: Mapping[str, tuple[Check, str]] = {
    "ross2021/claim/8": (words_dominate, "Table 3, Table 5"),
    "ross2021/claim/11": (effects_stay, "Table 3, Table 4"),
    "ross2021/claim/34": (words_like_sentences, "Table 5"),
    "ross2021/claim/37": (first_form_sizes, "Table 4"),
    "ross2021/claim/38": (first_form_significant, "Table 4"),
    "hamidieh2023/claim/24": (_nearest(OF_TYPES), "Table 14, Table 18"),
    "hamidieh2023/claim/25": (_nearest(OF_POLITICS), "Table 14"),
    "hamidieh2023/claim/36": (_nearest(OF_ABILITY), "Table 17"),
    "zhou2022/claim/2": (gender_first, "Table 4"),
    "zhou2022/claim/6": (rise_together, "Table 3"),
    "zhou2022/claim/19": (_first("CLIP", {"vlrs": 1, "vlbs": 1}), "Table 3"),
    "zhou2022/claim/20": (_first("FLAVA", {"vlrs": -1, "vlbs": -1}), "Table 3"),
}
"""The predicates and the printed tables of the same run, by the ids of the claims.

Four more (zhou2022/claim/12 and 22, hamidieh2023/claim/10 and 20) were written and left out after a
look at what shuffled and noisy tables met."""
