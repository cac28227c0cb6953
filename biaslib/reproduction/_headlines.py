"""What a run says of the headline claims: those of the chapters' first screens, in plain code.

Three more are sentences of Ross et al. about numbers of which the paper has no table.

Each is a predicate on the run's tables that other tables fail: those of other models, groups or
tests, and those of noise. An answer is True, False, or None where intervals leave it open.
"""

from collections.abc import Callable, Iterable, Mapping

import pandas

from biaslib.reproduction._printed import data_of

Tables = Mapping[str, pandas.DataFrame]
Span = tuple[float, float]
VERDICTS = {True: "met", False: "not met", None: "cannot be said"}
STAYS = 0.8
"""Share of the larger effects of Experiment 1 that stay above 0 in Experiment 2."""

LARGE = 0.5
"""From which C-ASC on, in standard deviations, a word is strongly tied to a group."""

BEYOND_CHANCE = 0.8
"""Spearman's correlation of six models that fewer than 5% of their orders exceed."""


ALIKE = 0.7
"""Spearman's correlation from which on effects of words and of sentences are similar."""

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
    return False if one[1] <= other[0] else None


def near(one: Span, number: float, margin: float) -> bool | None:
    """Return whether an interval meets a stated number, as a printed one is judged.

    Examples
    --------
    >>> near((1, 2), 2.4, 0.5), near((1, 2.5), 2, 0.5), near((1, 2), 3, 0.5)
    (True, None, False)
    """
    if one[0] > number + margin or one[1] < number - margin:
        return False
    return True if one[1] - one[0] <= 2 * margin + 1e-9 else None


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
    return None if sum(part is not False for part in known) >= least else False


def judged_headlines(paper: str, tables: Tables, scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return *id*, *printed* (the quotation), *verdict* and *reason* of a paper's predicates."""
    claims = {each["id"]: each for each in data_of(paper)["claims"]}
    rows = []
    for name, check in HEADLINES.items():
        if not name.startswith(paper):
            continue
        try:
            found, reason = check(tables, scores)
            verdict = VERDICTS[found]
        except MissingError as error:
            verdict, reason = "not run", str(error)
        printed = claims[name]["quotations"][0]["quotation"]
        rows.append({"id": name, "printed": printed, "verdict": verdict, "reason": reason})
    return pandas.DataFrame(rows, columns=["id", "printed", "verdict", "reason"])


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
    told = f"{sum(part is True for part in parts)} of {len(parts)} stay above 0"
    return most(STAYS, parts), told


def words_dominate(tables: Tables, scores: pandas.DataFrame):
    """For some model hiding words moves d more than three times as far as hiding people does."""
    sight = _effects(tables, 3)["effect_size"].unstack("level")
    hidden = _effects(tables, 5)["effect_size"].unstack("level")
    if not {"T", "I"} <= set(hidden) or "S" not in sight:
        raise MissingError("one of the masks, or sentences without one, are not in the run")
    moved = hidden[["T", "I"]].sub(sight["S"], axis=0).abs().groupby("model").mean().dropna()
    apart = moved[moved["T"] > 3 * moved["I"]]
    pairs = [f"{name} {row['T']:.2f} and {row['I']:.2f}" for name, row in moved.iterrows()]
    return bool(len(apart)), f"d moves without words and without people by: {'; '.join(pairs)}"


def words_like_sentences(tables: Tables, scores: pandas.DataFrame):
    """With an input hidden, single words give effects in much the same order as sentences."""
    wanted = {"masking": ["words", "persons"], "variant": ["paper"], "domain": ["out of domain"]}
    if not {*wanted, "level", "value"} <= set(scores):
        raise MissingError("no effect sizes with an input hidden in the run")
    rows = scores[[*wanted]].isin(wanted).all(axis=1)
    keys = ["test", "model", "masking"]
    wide = scores[rows].pivot_table(index=keys, columns="level", values="value")
    both = wide.reindex(columns=["word", "sentence"]).dropna()
    if len(both) < 39:
        raise MissingError("fewer than 39 effects with an input hidden have both levels in the run")
    one, two = both["word"], both["sentence"]
    alike, apart = one.rank().corr(two.rank()), (one - two).abs().mean()
    told = f"Spearman {alike:.2f} over {len(both)} effects, which differ by {apart:.2f} on average"
    return bool(alike >= ALIKE), told


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
        # The mean of the ends encloses the mean, however the numbers of a model go together.
        low, high = (sum(ends) / len(own) for ends in zip(*spans(own, "effect_size"), strict=True))
        parts.append(near((low, high), stated, OFF))
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
    if rows.empty or rows["model"].nunique() != 6:
        raise MissingError(f"{metric} of the six models is not in the run")
    return rows


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
    """Most models have their highest vlbs in gender."""
    wide = _scores(tables, "vlbs", 4).pivot_table(index="model", columns="category", values="value")
    if wide.shape[1] < 4:
        raise MissingError("vlbs of the four categories is not in the run")
    highest = wide.idxmax(axis=1) == "gender"
    return bool(highest.sum() > 4), f"vlbs is highest in gender for {highest.sum()} of {len(wide)}"


def rise_together(tables: Tables, scores: pandas.DataFrame):
    """Over the models vlrs and vlbs rise together, beyond what chance would do."""
    one, two = (_scores(tables, name).set_index("model")["value"] for name in ("vlrs", "vlbs"))
    pearson, spearman = one.corr(two), one.rank().corr(two.rank())
    told = f"Pearson {pearson:.2f}, Spearman {spearman:.2f} over {len(one)} models"
    return bool(pearson > 0 and spearman > BEYOND_CHANCE), told


Check = Callable[[Tables, pandas.DataFrame], tuple[bool | None, str]]
HEADLINES: Mapping[str, Check] = {
    "ross2021/claim/8": words_dominate,
    "ross2021/claim/11": effects_stay,
    "ross2021/claim/34": words_like_sentences,
    "ross2021/claim/37": first_form_sizes,
    "ross2021/claim/38": first_form_significant,
    "hamidieh2023/claim/24": _nearest(
        {"extremist": (14, "Middle Eastern"), "terrorist": (18, "Middle Eastern")}
    ),
    "hamidieh2023/claim/25": _nearest(
        {"libertarian": (14, "White"), "conservative": (14, "White")}
    ),
    "hamidieh2023/claim/36": _nearest({"illiterate": (17, "Indian"), "unskilled": (17, "Indian")}),
    "zhou2022/claim/2": gender_first,
    "zhou2022/claim/6": rise_together,
    "zhou2022/claim/19": _first("CLIP", {"vlrs": 1, "vlbs": 1}),
    "zhou2022/claim/20": _first("FLAVA", {"vlrs": -1, "vlbs": -1}),
}
"""The predicates, by the ids of the claims.

Four more (zhou2022/claim/12 and 22, hamidieh2023/claim/10 and 20) were written and left out after a
look at what shuffled and noisy tables met."""
