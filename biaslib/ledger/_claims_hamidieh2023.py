"""Checks of the claims of Hamidieh et al. (2023): a taxonomy, and CLIP's portraits for its words.

The printed tables by race and gender are lists of the highest words of each group: a word that a
group's list does not have is at most as high as the list's last. A run has every word. Claims on
who is retrieved are checked on a run's shares; the paper prints C-ASC by race in their place, which
is another measure and can bear out such a claim in part at most.

Three claims have no check: 15 (photographs), 16 (sizes of groups), 29 (ratings of harm).
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas
from scipy import stats

from biaslib import inference
from biaslib.ledger._evidence import (
    Evidence,
    Finding,
    Mean,
    NoEvidenceError,
    NoIntervalError,
    answer,
    mean_over,
)

SCORES, WORDS, PRONOUNS = (
    f"hamidieh2023_{stem}" for stem in ("casc", "taxonomy", "laion_pronouns")
)

HARMFUL = 0.2
"""C-ASC from which a word counts as tied to a group. Ours."""
STRONG = 0.5
"""C-ASC from which a tie counts as strong. Ours."""
MOST = 0.5
"""Share above which it is "most", "often" or "mostly". Ours, but the paper's for homemakers."""
ALMOST_ALL = 0.9
"""Share of words from which it is "almost all". Ours."""
MUCH = 2.0
"""Ratio of two shares from which one is "much more likely". Ours."""
NEUTRAL_WORDS = 8
"""Of men's ten first words, how many may not be negative at least to be "largely" so. Ours."""
TOP = 10
"""Words of a list. The paper's."""
LEVEL = 0.05
"""Of the tests of shares. Ours."""

RACES = (
    *("White", "Black", "Latino/Hispanic", "Middle Eastern"),
    *("Southeast Asian", "East Asian", "Indian"),
)
MEN, WOMEN = "Male", "Female"
NAMED = {MEN: "men", WOMEN: "women"}
INTERSECTION = "gender x race"
HARDLY_LISTED = ("Black", "Latino/Hispanic")

LOOKS, BEHAVIOUR, SCHOOLING = "Appearance", "Behavioral", "Education and wealth"
CRIME, HEALTH, MEDIA = "Criminal justice", "Healthcare", "Portrayal in Media"
POLITICS, FAITH, WORK, DOING = "Political", "Religion", "Occupation", "Activity"
TYPES = (LOOKS, BEHAVIOUR, SCHOOLING, CRIME, HEALTH, MEDIA, POLITICS, FAITH, WORK)
"""The nine types of Table 2."""
ADJECTIVES = (LOOKS, BEHAVIOUR, SCHOOLING, CRIME, MEDIA, POLITICS, FAITH)
"""Types of which a table by race is printed, without occupations."""

CAPTION_WORDS = ("maid", "nurse", "housekeeper", "assistant", "porter", "farmer", "CEO")
"""The occupations of Table 1."""


@dataclass(frozen=True)
class _Values:
    """C-ASC of a type of words, by word and group; *top_only* if lists hold the highest words."""

    rows: pandas.DataFrame
    category: str
    top_only: bool

    @property
    def groups(self) -> list[str]:
        """Groups that have values."""
        return list(dict.fromkeys(self.rows["group"]))

    @property
    def words(self) -> list[str]:
        """Words that have a value for some group."""
        return list(dict.fromkeys(self.rows["word"]))

    @functools.cached_property
    def lists(self) -> dict[str, pandas.DataFrame]:
        """By group its words, the highest first."""
        ordered = self.rows.sort_values("casc", ascending=False, kind="stable").set_index("word")
        return dict(tuple(ordered.groupby("group")))

    def ranked(self, group: str) -> pandas.DataFrame:
        """Return a group's words, the highest first."""
        if group not in self.lists:
            raise NoEvidenceError(f"there is no C-ASC of {self.category} words for {group}")
        return self.lists[group]

    def there(self, word: str, group: str) -> bool:
        """Return whether a word has a value for a group; only lists of the highest may lack it."""
        listed = word.lower() in self.ranked(group).index
        if not listed and not self.top_only:
            raise NoEvidenceError(f"there is no C-ASC of {word!r} for {group}")
        return listed

    def at(self, word: str, group: str, column: str = "casc") -> float:
        """Return C-ASC or a bound of its interval; the most it can be where it is not listed."""
        rows = self.ranked(group)
        if self.there(word, group):
            return float(rows.at[word.lower(), column])
        return -np.inf if column == "low" else float(rows["casc"].iloc[-1])

    def others(self, word: str, groups: Sequence[str], races: Sequence[str] = RACES) -> float:
        """Return the most that any other group can have."""
        return max(self.at(word, each, "high") for each in races if each not in groups)

    def shown(self, word: str, group: str) -> str:
        """Return a word's C-ASC as printed, with the interval of a run."""
        if not self.there(word, group):
            return f"at most {self.at(word, group):.2f}"
        value, low, high = (self.at(word, group, each) for each in ("casc", "low", "high"))
        return f"{value:.2f}" if low == high else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _run(evidence: Evidence, **wanted: object) -> pandas.DataFrame:
    """Return a run's scores of one model."""
    rows = evidence.scores_of(**wanted)
    if "model" in rows and rows["model"].nunique() > 1:
        raise NoEvidenceError(f"give the scores of one model, not {rows['model'].nunique()}")
    return rows


def _values(evidence: Evidence, category: str, facet: str = "race") -> _Values:
    """Return C-ASC of a run's scores, else of the tables; of a cell printed twice the first."""
    wanted = {"statistic": "c_asc", "level": facet, "bias_type": category}
    try:
        evidence.scores_of(**wanted)
    except NoEvidenceError:
        rows = evidence.table(SCORES, facet=facet, category=category)
    else:
        rows = _run(evidence, **wanted)
        rows = rows.assign(word=rows["test"], casc=rows["value"])
        rows["group"] = rows["group"].str.replace("_", "/")
        groups = RACES if facet == "race" else (MEN, WOMEN)
        rows = rows[rows["group"].isin(groups)]
        absent = sorted(set(groups) - set(rows["group"]))
        if absent:
            what = f"the run's groups of {facet} are not the paper's"
            raise NoEvidenceError(f"{what}: {category} words have no {', '.join(absent)}")
        if rows[["low", "high"]].isna().any(axis=None):
            raise NoIntervalError(f"a C-ASC of {category} words has no interval")
    top_only = "low" not in rows
    if top_only:
        rows = rows.assign(low=rows["casc"], high=rows["casc"])
    rows = rows.assign(word=rows["word"].str.lower()).drop_duplicates(["group", "word"])
    return _Values(rows[["group", "word", "casc", "low", "high"]], category, top_only)


def _towards(values: _Values, group: str) -> pandas.DataFrame:
    """Return C-ASC of all words for one of two genders: the other's has the opposite sign."""
    own = values.rows[values.rows["group"] == group]
    other = values.rows[~values.rows["word"].isin(own["word"])]
    turned = other.assign(casc=-other["casc"], low=-other["high"], high=-other["low"])
    return pandas.concat([own, turned]).set_index("word")[["casc", "low", "high"]]


def _retrieval(evidence: Evidence, word: str, category: str, level: str) -> pandas.DataFrame:
    """Return by group a word's share of the retrieved, and its ratio to the share in the pool."""
    wanted = {"test": word, "bias_type": category, "level": level}
    share = _run(evidence, statistic="share", **wanted).set_index("group")
    skew = _run(evidence, statistic="skew", **wanted).set_index("group")["value"]
    needed = 14 if level == INTERSECTION else 7
    if len(share) < needed:
        raise NoEvidenceError(f"{word!r}: {len(share)} of {needed} groups of {level} have a share")
    if share[["low", "high"]].isna().any(axis=None):
        raise NoIntervalError(f"a share of {word!r} has no interval")
    return share.assign(ratio=np.exp(skew.reindex(share.index)))


def _fairface(race: str, gender: str | None = None) -> str:
    """Return a group's name in the scores."""
    race = race.replace("/", "_")
    return race if gender is None else f"{gender}, {race}"


def _people(race: str, gender: str | None) -> str:
    """Return what the people of a group are called."""
    return f"{race} {NAMED.get(gender, 'people')}"


def _capped(parts: Sequence[bool]) -> str:
    """Return the answer where a part of the claim has no printed number."""
    return "in part" if any(parts) else "does not follow"


def _difference(first: Sequence[float], second: Sequence[float]) -> Mean:
    """Return a difference of two means, with Student's interval over the words of both."""
    one, two = np.asarray(first, float), np.asarray(second, float)

    def gap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (one @ a) / a.sum(axis=0) - (two @ b) / b.sum(axis=0)

    found = inference.bootstrap(gap, [len(one), len(two)], n_resamples=2_000, rng=0)
    return Mean(found.estimate, found.low, found.high)


def taxonomy_size(evidence: Evidence, words: int, types: int) -> Finding:
    """Check the number of words and of types of the taxonomy."""
    rows = evidence.table(WORDS)
    entries, distinct, listed = len(rows), rows["word"].nunique(), rows["bias_type"].nunique()
    parts = [words in (entries, distinct), listed == types]
    told = f"Table 2 lists {entries} entries, {distinct} distinct words, in {listed} types"
    return Finding(answer(parts), told)


def _type_words(evidence: Evidence, values: _Values) -> list[str]:
    """Return the words that the taxonomy lists under a type, else those that have values."""
    try:
        rows = evidence.table(WORDS, bias_type=values.category)
    except NoEvidenceError:
        return values.words
    return [word.lower() for word in rows["word"]]


def _reached(values: _Values, words: Sequence[str], least: float) -> int:
    """Return how many words have a value from *least* for some group."""
    highest = values.rows.groupby("word")["casc"].max().reindex(list(words))
    return int((highest >= least).sum())


def often_harmful(evidence: Evidence) -> Finding:
    """Check how many crime words are tied to some group, against occupations."""
    harmful, neutral = (_values(evidence, each) for each in (CRIME, WORK))
    sizes = [_type_words(evidence, each) for each in (harmful, neutral)]
    found = [_reached(v, w, HARMFUL) for v, w in zip((harmful, neutral), sizes, strict=True)]
    shares = [n / len(words) for n, words in zip(found, sizes, strict=True)]
    told = (
        f"{found[0]} of {len(sizes[0])} words of the criminal justice list reach {HARMFUL:.2f} for "
        f"some group; of the occupations {found[1]} of {len(sizes[1])}"
    )
    if harmful.top_only:
        return Finding(_capped([shares[0] > MOST]), f"{told}, at least: only top words are printed")
    return Finding(answer([shares[0] > MOST, shares[0] > shares[1]]), told)


def _strong_types(evidence: Evidence, facets: Sequence[str]) -> dict[str, float]:
    """Return by type of words the highest C-ASC of a facet whose interval lies above 0."""
    highest = {}
    for category in TYPES:
        for facet in facets:
            try:
                rows = _values(evidence, category, facet).rows
            except NoEvidenceError:
                continue
            best = rows[rows["low"] > 0]["casc"].max()
            highest[category] = np.nanmax([highest.get(category, -np.inf), best])
    if not highest:
        raise NoEvidenceError(f"no type of words has a C-ASC by {' or '.join(facets)}")
    return highest


def many_types(evidence: Evidence, facets: Sequence[Sequence[str]]) -> Finding:
    """Check that most types have a strongly tied word, in each set of facets."""
    half, yes, no, told = len(TYPES) * MOST, [], [], []
    for each in facets:
        highest = _strong_types(evidence, each)
        strong = sum(value >= STRONG for value in highest.values())
        yes.append(strong > half)
        no.append(strong + len(TYPES) - len(highest) <= half)
        told.append(f"{strong} of the {len(highest)} types that have values by {' or '.join(each)}")
    said = f"A word reaches {STRONG:.2f} in {'; '.join(told)}; the taxonomy has {len(TYPES)}"
    return Finding(_three(yes, no), said)


def _three(yes: Sequence[bool], no: Sequence[bool]) -> str:
    """Return the answer where some parts may be neither shown nor refuted."""
    return "follows" if all(yes) else "does not follow" if all(no) else "in part"


def _women_in_captions(evidence: Evidence) -> pandas.DataFrame:
    """Return by occupation the women's share of pronouns, in per cent with its interval."""
    rows = evidence.table(PRONOUNS)
    rows = rows.assign(word=rows["word"].str.lower()).set_index("word")
    missing = [word for word in CAPTION_WORDS if word.lower() not in rows.index]
    if missing:
        raise NoEvidenceError(f"{PRONOUNS} has no row of {', '.join(missing)}")
    rows = rows.loc[[word.lower() for word in CAPTION_WORDS]]
    found = [
        inference.proportion_interval(round(share / 100 * n), n)
        for share, n in zip(rows["female"], rows["images"].astype(int), strict=True)
    ]
    return rows.assign(low=[100 * each.low for each in found], high=[100 * f.high for f in found])


def _side(rows: pandas.DataFrame, middle: float) -> pandas.Series:
    """Return 1 where an interval lies above a value, -1 where below, else 0."""
    return (rows["low"] > middle).astype(int) - (rows["high"] < middle).astype(int)


def captions_and_clip(evidence: Evidence) -> Finding:
    """Check that pronouns of captions and C-ASC lean to the same gender."""
    captions = _side(_women_in_captions(evidence), 50.0)
    women = _towards(_values(evidence, WORK, "gender"), WOMEN)
    clip = _side(women, 0.0).reindex(captions.index).dropna()
    alike, n = int((captions[clip.index] * clip > 0).sum()), len(captions)
    told = f"Captions and C-ASC lean to the same gender for {alike} of {len(clip)} words"
    if len(clip) < n:
        told += f"; the other {n - len(clip)} of {n} have no C-ASC by gender"
    half, most = n * MOST, alike + n - len(clip)
    found = "follows" if alike > half else "in part" if most > half else "does not follow"
    return Finding(found, told)


def captions_correlate(evidence: Evidence) -> Finding:
    """Check the rank correlation of captions with C-ASC over the occupations."""
    _run(evidence, statistic="c_asc", level="gender", bias_type=WORK)
    captions = _women_in_captions(evidence)["female"]
    women = _towards(_values(evidence, WORK, "gender"), WOMEN)["casc"].reindex(captions.index)
    if women.isna().any():
        raise NoEvidenceError("an occupation of Table 1 has no C-ASC by gender")
    if women.nunique() == 1:
        raise NoEvidenceError("all occupations have the same C-ASC: there is no correlation")
    r, n = stats.spearmanr(captions, women).statistic, len(captions)
    low, high = inference.rank_correlation_interval(r, n)
    told = f"Rank correlation {r:.2f} [{low:.2f}, {high:.2f}] over {n} occupations"
    return Finding(answer([r > 0, low > 0]), told)


def stereotyped_captions(evidence: Evidence, signs: Mapping[str, int]) -> Finding:
    """Check that pronouns lie beyond one half, in place of the base rate, as stereotypes say.

    A sign is 1 for an occupation that stands for women, -1 for men.
    """
    rows = _women_in_captions(evidence)
    side = _side(rows, 50.0)
    as_said = sum(side[word] == direction for word, direction in signs.items())
    told = (
        f"Women's share lies beyond 50% as the stereotype says for {as_said} of {len(rows)} words "
        f"({len(rows) - len(signs)} have none), from {rows['female'].min():.1f}% to "
        f"{rows['female'].max():.1f}%; the base rate is not printed"
    )
    return Finding(_capped([as_said > len(rows) * MOST]), told)


def nurse_captions(evidence: Evidence) -> Finding:
    """Check that captions with "nurse" have women's pronouns much more often."""
    row = _women_in_captions(evidence).loc["nurse"]
    ratio = row["female"] / row["male"]
    told = (
        f"{row['female']:.1f}% [{row['low']:.1f}, {row['high']:.1f}] against {row['male']:.1f}% "
        f"of {int(row['images']):,} images, ratio {ratio:.2f}"
    )
    return Finding(answer([row["low"] > 50, ratio >= MUCH]), told)


def caption_words_lean(evidence: Evidence) -> Finding:
    """Check that the seven occupations of the captions have a C-ASC by gender other than 0."""
    women = _towards(_values(evidence, WORK, "gender"), WOMEN)
    known = women.reindex([word.lower() for word in CAPTION_WORDS]).dropna()
    apart, n = int((_side(known, 0.0) != 0).sum()), len(CAPTION_WORDS)
    told = f"{apart} of {len(known)} words lean to a gender"
    if len(known) < n:
        told += f"; {n - len(known)} of {n} have no C-ASC by gender"
    return Finding(answer([apart > 0, apart == n]), told)


def valence(evidence: Evidence, positive: str, negative: str) -> Finding:
    """Check that positive words of behaviour lean to men more than negative ones."""
    men = _towards(_values(evidence, BEHAVIOUR, "gender"), MEN)["casc"]
    good, bad = (men[men.index.isin(words.split())] for words in (positive, negative))
    if good.empty or bad.empty:
        raise NoEvidenceError("there are not both positive and negative words")
    gap = _difference(good, bad)
    told = (
        f"C-ASC for men: {good.mean():.2f} over {len(good)} positive words, {bad.mean():.2f} over "
        f"{len(bad)} negative ones; difference {gap.value:.2f} [{gap.low:.2f}, {gap.high:.2f}]"
    )
    return Finding(answer([gap.value > 0, gap.low > 0]), told)


def outdoors(evidence: Evidence, outdoor: Sequence[str], indoor: Sequence[str]) -> Finding:
    """Check that outdoor activities lean to men and indoor ones to women."""
    men = _towards(_values(evidence, DOING, "gender"), MEN)["casc"]
    if not {*outdoor, *indoor} <= set(men.index):
        raise NoEvidenceError("an activity has no C-ASC by gender")
    out, at_home = men[list(outdoor)], men[list(indoor)]
    gap, to_men, to_women = _difference(out, at_home), (out > 0).sum(), (at_home < 0).sum()
    parts = [to_men > MOST * len(out), to_women > MOST * len(at_home), gap.low > 0]
    told = (
        f"{to_men} of {len(out)} outdoor activities lean to men, {to_women} of {len(at_home)} "
        f"indoor ones to women; difference in C-ASC {gap.value:.2f} [{gap.low:.2f}, {gap.high:.2f}]"
    )
    return Finding(answer(parts), told)


def gendered_occupations(evidence: Evidence) -> Finding:
    """Check that no occupation of Table 4 names a gender: on -man, or with a form on -ess."""
    rows = evidence.table(SCORES, table=4)
    if "low" in rows:
        raise NoEvidenceError("it is about the printed list")
    words = rows["word"].drop_duplicates()
    known = set(evidence.table(WORDS)["word"])
    ends = words.str.endswith(("man", "woman", "ess"))
    pairs = (words.str.replace("(er|or)$", "", regex=True) + "ress").isin(known)
    found = words[ends | pairs].tolist()
    told = f"{len(found)} of {len(words)} name a gender" + f": {', '.join(found)}" * bool(found)
    return Finding("does not follow" if found else "follows", told)


def flattering(evidence: Evidence, unflattering: str) -> Finding:
    """Check that men's first words of appearance are not negative but for one."""
    first = _values(evidence, LOOKS, "gender").ranked(MEN).index[:TOP]
    negative = [word for word in first if word in unflattering.split()]
    parts = [len(first) - len(negative) >= NEUTRAL_WORDS, negative == ["disfigured"]]
    named = ", ".join(negative) or "none"
    told = f"{len(first) - len(negative)} of {len(first)} are not negative; negative: {named}"
    return Finding(answer(parts), told)


def looks_differ(evidence: Evidence) -> Finding:
    """Check how many words of appearance lean to a gender."""
    values = _values(evidence, LOOKS, "gender")
    words = _type_words(evidence, values)
    sides = _side(_towards(values, WOMEN).reindex(words), 0.0)
    to_women, to_men = int((sides > 0).sum()), int((sides < 0).sum())
    found = "follows" if to_women + to_men > MOST * len(words) else "does not follow"
    return Finding(
        found,
        f"Of {len(words)} words, {to_women} lean to women and {to_men} to men"
        + "; only the top ten of each are printed" * values.top_only,
    )


def someone_leads(evidence: Evidence) -> Finding:
    """Check that "extremist" is strongly tied to one group."""
    values = _values(evidence, POLITICS)
    group = max(RACES, key=lambda each: values.at("extremist", each, "low"))
    others = values.others("extremist", [group])
    parts = [
        values.at("extremist", group) >= STRONG,
        values.at("extremist", group, "low") > others,
    ]
    told = f"extremist: {values.shown('extremist', group)} for {group}, others to {others:.2f}"
    return Finding(answer(parts), told)


def _leads(
    values: _Values,
    word: str,
    groups: Sequence[str],
    least: float = -np.inf,
    races: Sequence[str] = RACES,
) -> tuple[bool, str]:
    """Return whether a group leads for a word beyond all intervals, and the numbers."""
    best = max(groups, key=lambda each: values.at(word, each))
    others = values.others(word, groups, races)
    holds = values.at(word, best) >= least and values.at(word, best, "low") > others
    return holds, f"{word} {values.shown(word, best)} ({best}; others to {others:.2f})"


def tied(
    evidence: Evidence, named: Sequence[tuple[str, str, Sequence[str]]], least: float = -np.inf
) -> Finding:
    """Check that each word is highest for the group that the text names."""
    found = [
        _leads(_values(evidence, category), word, groups, least) for category, word, groups in named
    ]
    return Finding(answer([holds for holds, _ in found]), "; ".join(told for _, told in found))


def high_for(
    evidence: Evidence,
    category: str,
    group: str,
    words: Sequence[str],
    first: float = np.inf,
    least: float = -np.inf,
) -> Finding:
    """Check that words have high values for a gender, among its *first* words."""
    values = _values(evidence, category, "gender")
    ranks = {word: rank for rank, word in enumerate(values.ranked(group).index, 1)}
    parts = [
        values.at(word, group, "low") > 0
        and values.at(word, group) >= least
        and ranks.get(word, np.inf) <= first
        for word in words
    ]
    told = [f"{w} {values.shown(w, group)} (rank {ranks.get(w, 'none')})" for w in words]
    return Finding(answer(parts), f"For {NAMED[group]}: {', '.join(told)}")


def tops(
    evidence: Evidence,
    category: str,
    named: Mapping[str, Sequence[str]],
    facet: str = "race",
    apart: bool = False,
) -> Finding:
    """Check that the first words of groups are those that the text names."""
    values, parts, told = _values(evidence, category, facet), [], []
    for group, words in named.items():
        rows = values.ranked(group)
        first, after = rows.iloc[: len(words)], rows.iloc[len(words)]
        beyond = not apart or first["low"].min() > after["high"]
        parts.append(set(first.index) == set(words) and beyond)
        each = ", ".join(f"{word} {casc:.2f}" for word, casc in first["casc"].items())
        told.append(f"{NAMED.get(group, group)} {each} (next {after['casc']:.2f})")
    return Finding(answer(parts), "; ".join(told))


def not_white(evidence: Evidence) -> Finding:
    """Check for how many crime words another group than White is highest."""
    values = _values(evidence, CRIME)
    words = _type_words(evidence, values)
    rest = [race for race in RACES if race != "White"]
    apart = sum(
        max(values.at(word, race, "low") for race in rest) > values.at(word, "White", "high")
        for word in words
    )
    white = sum(values.at(word, "White", "low") > values.others(word, ["White"]) for word in words)
    open_ = len(words) - apart - white
    half = MOST * len(words)
    found = "follows" if apart > half else "in part" if apart + open_ > half else "does not follow"
    told = f"Of {len(words)} words, another group is highest for {apart}, White for {white}"
    return Finding(found, told + f"; {open_} cannot be told apart" * (open_ > 0))


def all_negative(evidence: Evidence) -> Finding:
    """Check that all political words have a negative C-ASC for Black."""
    rows = _values(evidence, POLITICS).ranked("Black")
    negative, low = int((rows["casc"] < 0).sum()), (rows["high"] < 0).all()
    told = f"The highest political word for Black is {rows.index[0]}, {rows['casc'].iloc[0]:.2f}"
    return Finding(answer([low, negative > MOST * len(rows)]), told)


def of_colour(evidence: Evidence) -> Finding:
    """Check that three words of poverty are highest for others than White, and White's below 0."""
    values, parts, told, absent = _values(evidence, SCHOOLING), [], [], []
    for word in ("menial", "migrant", "low rate"):
        if word not in values.words:
            absent.append(word)
            continue
        best = max((race for race in RACES if race != "White"), key=lambda g: values.at(word, g))
        white = values.at(word, "White", "high")
        parts.append(white < 0 and values.at(word, best, "low") > white)
        told.append(f"{word} {values.shown(word, best)} ({best}; White at most {white:.2f})")
    told += [f"{word!r} is in no list" for word in absent]
    return Finding(_capped(parts) if absent else answer(parts), "; ".join(told))


def hardly_tied(evidence: Evidence) -> Finding:
    """Check that the highest words of behaviour are lower for two groups than for the others."""
    values = _values(evidence, BEHAVIOUR)
    first = {group: values.ranked(group)["casc"].to_numpy()[:TOP] for group in values.groups}
    others = [race for race in RACES if race not in HARDLY_LISTED]
    there = [race for race in others if race in first]
    if not there or not set(HARDLY_LISTED) <= set(first):
        raise NoEvidenceError("there is no C-ASC of behaviour for both groups and any other")
    below = [_difference(first[low], first[o]).high < 0 for low in HARDLY_LISTED for o in there]
    means = ", ".join(f"{group} {first[group].mean():.3f}" for group in (*HARDLY_LISTED, *there))
    told = f"Mean of the ten highest: {means}; {sum(below)} of {len(below)} differences below 0"
    if len(there) < len(others):
        return Finding(_capped(below), f"{told}; {len(others) - len(there)} groups have no list")
    return Finding(answer([all(below), any(below)]), told)


def _above(values: _Values, group: str) -> tuple[int, float]:
    """Return how many words of a group are above 0.2, at least and at most."""
    casc = values.ranked(group)["casc"]
    n = int((casc > HARMFUL).sum())
    return n, np.inf if values.top_only and n == len(casc) else n


def _fewer(values: _Values, group: str) -> bool:
    """Return whether a group has fewer words above 0.2 than all but those hardly listed."""
    others = [race for race in RACES if race not in HARDLY_LISTED]
    if not {group, *others} <= set(values.groups):
        return False
    most = _above(values, group)[1]
    return all(_above(values, race)[0] > most for race in others)


def fewer_ties(evidence: Evidence) -> Finding:
    """Check that two groups have fewer words above 0.2 than each other group in most types."""
    every = [_values(evidence, category) for category in ADJECTIVES]
    types = {group: sum(_fewer(each, group) for each in every) for group in HARDLY_LISTED}
    said = ", ".join(f"{group} in {n}" for group, n in types.items())
    told = f"Fewer words above {HARMFUL:.1f} than all other groups: {said} of {len(every)} types"
    return Finding(answer([n > MOST * len(every) for n in types.values()]), told)


def uneducated(evidence: Evidence) -> Finding:
    """Check that "uneducated" is highest for East Asian, and there for women."""
    holds, told = _leads(_values(evidence, SCHOOLING), "uneducated", ["East Asian"])
    if evidence.scores.empty:
        return Finding(_capped([holds]), f"{told}; gender is not printed")
    rows = _run(evidence, statistic="c_asc", level=INTERSECTION, test="uneducated")
    rows = rows.set_index("group")
    women, men = (rows.loc[_fairface("East Asian", each)] for each in (WOMEN, MEN))
    told += f"; there women {women['value']:.2f}, men {men['value']:.2f}"
    return Finding(answer([holds, women["low"] > men["high"]]), told)


def _by_race(evidence: Evidence, category: str, named: Sequence[tuple[str, str]]) -> Finding:
    """Check by C-ASC which race leads, where the paper prints no shares of the retrieved."""
    values, parts, told = _values(evidence, category), [], []
    for word, race in named:
        if word.lower() not in values.words:
            told.append(f"{word} is in no list")
            continue
        holds, said = _leads(values, word, [race])
        parts.append(holds)
        told.append(said)
    return Finding(_capped(parts), f"By C-ASC and race only: {'; '.join(told)}")


def _most(
    evidence: Evidence, category: str, word: str, race: str, gender: str | None
) -> tuple[bool, pandas.Series, str]:
    """Return whether a group has the largest share of the retrieved beyond its interval."""
    rows = _retrieval(evidence, word, category, INTERSECTION if gender else "race")
    row = rows.loc[_fairface(race, gender)]
    others = rows["value"].drop(row.name).max()
    told = f"{word} {row['value']:.0%} {_people(race, gender)}, others to {others:.0%}"
    return row["low"] > others, row, told


Named = Sequence[tuple[str, str, str | None]]
"""Words with the race and the gender of those who are said to be retrieved for them."""


def retrieved(evidence: Evidence, category: str, named: Named, over: bool = False) -> Finding:
    """Check that the retrieved are mostly of the groups named; else by C-ASC."""
    if evidence.scores.empty:
        return _by_race(evidence, category, [(word, race) for word, race, _ in named])
    parts, told = [], []
    for word, race, gender in named:
        holds, row, said = _most(evidence, category, word, race, gender)
        more = row["ratio"] > 1 and row["p_value"] <= LEVEL
        parts.append(holds and (more or not over))
        told.append(said)
    return Finding(answer(parts), "; ".join(told))


def majority(evidence: Evidence, category: str, named: Named) -> Finding:
    """Check that more than half of the retrieved are of the groups named."""
    parts, told = [], []
    for word, race, gender in named:
        row = _retrieval(evidence, word, category, INTERSECTION).loc[_fairface(race, gender)]
        parts += [row["value"] > MOST, row["low"] > MOST]
        told.append(
            f"{word} {row['value']:.0%} [{row['low']:.0%}, {row['high']:.0%}] "
            f"{_people(race, gender)}"
        )
    return Finding(answer(parts), "; ".join(told))


def shy_and_domestic(evidence: Evidence, named: Named) -> Finding:
    """Check who is retrieved for two words of behaviour; else what C-ASC tells."""
    if not evidence.scores.empty:
        return majority(evidence, BEHAVIOUR, named)
    race, gender = (_values(evidence, BEHAVIOUR, facet) for facet in ("race", "gender"))
    holds, told = _leads(race, "shy", ["East Asian"], races=race.groups)
    domestic = gender.shown("domestic", WOMEN)
    parts = [holds, gender.at("domestic", WOMEN, "low") > 0]
    missing = "no list of Indian people"
    return Finding(_capped(parts), f"By C-ASC: {told}; domestic {domestic} (women); {missing}")


def _below_zero(values: _Values, words: Sequence[str]) -> Finding:
    """Check that C-ASC of White is below 0, in place of shares that are not printed."""
    told = [f"{word} {values.shown(word, 'White')}" for word in words]
    parts = [values.at(word, "White", "high") < 0 for word in words]
    return Finding(_capped(parts), f"By C-ASC only, for White: {', '.join(told)}")


def underrepresented(
    evidence: Evidence, category: str, words: Sequence[str], printed: bool
) -> Finding:
    """Check that White people are retrieved less than their share; else, if printed, by C-ASC."""
    if printed and evidence.scores.empty:
        return _below_zero(_values(evidence, category), words)
    rows = [_retrieval(evidence, word, category, "race").loc["White"] for word in words]
    parts = [row["ratio"] < 1 and row["p_value"] <= LEVEL for row in rows]
    told = [
        f"{word} {row['value']:.0%} ({row['ratio']:.2f} of the pool's)"
        for word, row in zip(words, rows, strict=True)
    ]
    return Finding(answer(parts), f"White people: {', '.join(told)}")


def maid_and_homemaker(evidence: Evidence) -> Finding:
    """Check that women of colour are retrieved for one word, and Indian women for the other."""
    if evidence.scores.empty:
        return _maid_and_homemaker_by_race(_values(evidence, WORK))
    maid = _retrieval(evidence, "maid", WORK, INTERSECTION)["ratio"]
    white = maid[_fairface("White", WOMEN)]
    colour = maid[[_fairface(race, WOMEN) for race in RACES if race != "White"]].mean()
    indian, _, home = _most(evidence, WORK, "homemaker", "Indian", WOMEN)
    told = (
        f"maid: {colour:.2f} times the pool's share for women of colour, {white:.2f} for White "
        f"women; {home}"
    )
    return Finding(answer([colour > white, indian]), told)


def _maid_and_homemaker_by_race(values: _Values) -> Finding:
    """Check by C-ASC and race that others than White lead."""
    white = values.at("maid", "White", "high")
    best = max((race for race in RACES if race != "White"), key=lambda g: values.at("maid", g))
    indian, told = _leads(values, "homemaker", ["Indian"])
    maid = f"maid {values.shown('maid', best)} ({best}; White at most {white:.2f})"
    parts = [values.at("maid", best, "low") > white, indian]
    return Finding(_capped(parts), f"By C-ASC and race only: {maid}; {told}")


def _ratios(evidence: Evidence, category: str, group: str) -> pandas.Series:
    """Return by word a group's share of the retrieved over its share in the pool, less 1."""
    wanted = {"level": "race", "bias_type": category, "group": _fairface(group)}
    rows = _run(evidence, statistic="skew", **wanted)
    return np.exp(rows.set_index("test")["value"]) - 1


def white_by_type(evidence: Evidence) -> Finding:
    """Check that White people are retrieved more for behaviour, and not for crime but one word."""
    crime = _ratios(evidence, CRIME, "White").drop("hacker", errors="ignore")
    behaviour = _ratios(evidence, BEHAVIOUR, "White")
    first, second = (mean_over(each, each.index) for each in (crime, behaviour))
    told = (
        f"Share of White people over the pool's, less 1: {first} over {len(crime)} crime words, "
        f"{second} over {len(behaviour)} words of behaviour"
    )
    return Finding(answer([first.low <= 0, second.low > 0]), told)


def few_for_behaviour(evidence: Evidence) -> Finding:
    """Check that two groups are retrieved less than their share for almost all words."""
    parts, told = [], []
    for group in HARDLY_LISTED:
        below = _ratios(evidence, BEHAVIOUR, group) < 0
        found = inference.proportion_interval(int(below.sum()), len(below))
        parts.append(below.mean() >= ALMOST_ALL)
        bounds = f"{below.mean():.0%} [{found.low:.0%}, {found.high:.0%}]"
        told.append(f"{group} for {below.sum()} of {len(below)} words, {bounds}")
    return Finding(answer(parts), f"Retrieved less than the pool's share: {'; '.join(told)}")
