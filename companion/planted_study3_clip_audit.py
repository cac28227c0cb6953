"""Study 3 where the answer is known: figures, tables and sentences of the verdict."""

import numpy as np
import pandas

from biaslib.display import interval_text, marked, signed, subplots
from biaslib.inference import rank_correlation_interval
from companion._check import Check, judge_function

NARROWLY = 0.05
"""A rank correlation that falls short of its target by less than this misses it narrowly."""


def sealed_verdict(judged: pandas.DataFrame) -> str:
    """Return the verdict on C-ASC by the sealed trial, at dose 3: side, place on a side, size.

    Parameters
    ----------
    judged
        The *verdicts* of :func:`plantedworld.trial.judged`.

    Examples
    --------
    >>> rows = {"measure": ["C-ASC", "difference"], "statistic": ["rank within signs", "slope"]}
    >>> rows |= {"least": [0.7, 0.75], "mean": [0.68, 0.3], "reached": [False, False], "dose": 3}
    >>> sealed_verdict(pandas.DataFrame(rows)).partition("; ")[2]
    'its place within that side only in part (target missed narrowly); its size not at all'
    """
    found = judged[judged["dose"] == 3].set_index(["measure", "statistic"])
    place, size = found.loc[("C-ASC", "rank within signs")], found.loc[("difference", "slope")]
    if place["reached"]:
        within = "is found, too"
    elif place["least"] - place["mean"] < NARROWLY:
        within = "only in part (target missed narrowly)"
    else:
        within = "is not (target missed)"
    scale = "by the scaled difference alone" if size["reached"] else "not at all"
    return f"the side of a word is found; its place within that side {within}; its size {scale}"


def truth_table(known: pandas.DataFrame) -> pandas.DataFrame:
    """Return how C-ASC of oracle and tiny-CLIP follows what is planted, a row a facet and model.

    Parameters
    ----------
    known
        As of :func:`plantedworld.studies.study3_clip_audit.beside_truth`.
    """
    rows = []
    for (facet, group), part in known.groupby(["facet", "group"], sort=False):
        planted, nothing = part[part["planted"]], part[~part["planted"]]
        for name, title in (("oracle", "oracle"), ("model", "tiny-CLIP")):
            rows.append(
                {
                    "facet": facet,
                    "C-ASC of": group,
                    "model": title,
                    "words with a planted association": len(planted),
                    "rank correlation with the truth": planted[name].corr(
                        planted["truth"], method="spearman"
                    ),
                    "share with the right sign": (planted[name] * planted["truth"] > 0).mean(),
                    "words without": len(nothing),
                    "largest size among those": nothing[name].abs().max(),
                }
            )
    return pandas.DataFrame(rows)


FEW = 30
FEW_CROSSES = {"color": "0.1", "s": 36, "linewidths": 1.3, "zorder": 3}
MANY_CROSSES = {"color": "C1", "s": 9, "linewidths": 0.6, "alpha": 0.6}
"""How words on which nothing is planted are drawn: so that few are seen, and many can be told
apart.

:meta hide-value:
"""


def truth_figure(known: pandas.DataFrame):
    """Draw C-ASC against what is planted, a dot a word: oracle and tiny-CLIP, a row a facet."""
    facets = list(dict.fromkeys(zip(known["facet"], known["group"], strict=True)))
    figure, axes = subplots(
        len(facets), 2, height=2.6 * len(facets), sharex="row", sharey="row", squeeze=False
    )
    for line, (facet, group) in zip(axes, facets, strict=True):
        rows = known[known["facet"] == facet]
        for axis, name in zip(line, ("oracle", "model"), strict=True):
            planted, nothing = rows[rows["planted"]], rows[~rows["planted"]]
            axis.scatter(planted["truth"], planted[name], s=12, alpha=0.6, color="C0")
            crosses = FEW_CROSSES if len(nothing) < FEW else MANY_CROSSES
            axis.scatter(nothing["truth"], nothing[name], marker="x", **crosses)
            axis.axhline(0, color="0.6", linewidth=1)
            axis.axvline(0, color="0.6", linewidth=1)
        line[0].set_ylabel(f"C-ASC of {group}")
        side = {"gender": "woman to man", "tone": "tone 5 to tone 1"}[facet]
        for axis in line:
            axis.set_xlabel(f"planted log ratio, {side}")
    axes[0, 0].set_title("oracle", fontsize=10)
    axes[0, 1].set_title("tiny-CLIP", fontsize=10)
    return marked(figure)


def bare_sentence(known: pandas.DataFrame) -> str:
    """Return why even a perfect model scores words that have no association of their own."""
    bare = known[~known["planted"]]
    largest = bare.groupby("facet", sort=False)["oracle"].apply(lambda each: each.abs().max())
    parts = [f"{size:.2f} by {facet}" for facet, size in largest.items()]
    kinds = bare.loc[bare["facet"] == "gender", "bias_type"].value_counts()
    listed = ", ".join(f"{n} of *{name}*" for name, n in kinds.items())
    return (
        f"By gender, nothing is planted on {kinds.sum()} of the words: by type, {listed}. The "
        "oracle does not give 0 to words without an association of their own: other words that go "
        "to the same place in a caption move theirs a little, and C-ASC makes that as large as "
        f"{' and '.join(parts)}."
    )


def bare_by_tone(known: pandas.DataFrame) -> str:
    """Return on how many words nothing is planted by tone, and of which type most of them are."""
    rows = known[known["facet"] == "tone"]
    bare = rows[~rows["planted"]]
    kinds = bare["bias_type"].value_counts()
    return (
        f"By tone, nothing is planted on {len(bare)} of the {len(rows)} words, {kinds.iloc[0]} of "
        f"them of the type *{kinds.index[0]}*"
    )


def on_truth(known: pandas.DataFrame, facet: str) -> str:
    """Return sentences on a facet: which types carry a planted association, and what C-ASC does."""
    rows = known[known["facet"] == facet]
    held = rows.groupby("bias_type", sort=False)["planted"].sum()
    none = [f"*{name}*" for name, n in held.items() if n == 0]
    of_model = truth_table(rows).set_index("model").loc["tiny-CLIP"]
    sizes, bare = (rows["model"][chosen].abs() for chosen in (rows["planted"], ~rows["planted"]))
    moved = rows.loc[~rows["planted"], "truth"].abs().max()
    where = f"; none on {', '.join(none)}" if none else ""
    return (
        f"By {facet}, an association is planted on {held.sum()} of {len(rows)} words{where}. Among "
        f"the words that have one, C-ASC of tiny-CLIP has a rank correlation of "
        f"{of_model['rank correlation with the truth']:.2f} with it; half of the sizes are beyond "
        f"{sizes.median():.2f}, the largest is {sizes.max():.2f}. On the {len(bare)} that have "
        f"none, and whose log ratio other words of the place move by up to {moved:.2f}, half are "
        f"beyond {bare.median():.2f}, and the largest, {bare.max():.2f}, exceeds "
        f"{(sizes < bare.max()).sum()} of the {len(sizes)} sizes of words with an association."
    )


def saturated(known: pandas.DataFrame, beyond: float = 1.9) -> str:
    """Return a sentence on the sizes that C-ASC by gender gives a model without any error."""
    rows = known[(known["facet"] == "gender") & (known["oracle"].abs() > beyond)]
    ratios = rows["truth"].abs()
    if len(rows) < 2:
        return f"The oracle's C-ASC by gender stays within ±{beyond} for all words but {len(rows)}."
    return (
        f"The oracle, which makes no error, gives {len(rows)} words a C-ASC by gender beyond "
        f"±{beyond}, on planted log ratios from ±{ratios.min():.2f} to ±{ratios.max():.2f}: "
        "divided by the spread of one caption's similarities, the score says whether portraits of "
        "two groups are told apart, but hardly by how much."
    )


def units_table(tables: dict[float, pandas.DataFrame]) -> pandas.DataFrame:
    """Return how many tests of gender reject, by dose and by unit.

    Parameters
    ----------
    tables
        By dose, as of :func:`plantedworld.studies.study3_clip_audit.by_unit`.
    """
    rows = pandas.concat(part.assign(dose=each) for each, part in tables.items())
    return pandas.DataFrame(
        {
            "dose": rows["dose"],
            "unit": rows["unit"],
            "units": rows["n"],
            "words": rows["tests"],
            "p below .05": rows["uncorrected"],
            "after correction (Benjamini–Yekutieli)": rows["corrected"],
        }
    )


def halves_figure(tables: dict[float, pandas.DataFrame]):
    """Draw C-ASC from one half of the outlines against the other, a panel a dose."""
    figure, axes = subplots(1, len(tables), height=3.1, sharex=True, sharey=True)
    for axis, (dose, rows) in zip(axes, tables.items(), strict=True):
        axis.scatter(rows["first"], rows["second"], s=9, alpha=0.5)
        axis.axhline(0, color="0.6", linewidth=1)
        axis.axvline(0, color="0.6", linewidth=1)
        axis.set_title(f"dose {dose:g}", fontsize=10)
        axis.set_xlabel("C-ASC of women, two outlines")
    axes[0].set_ylabel("two other outlines")
    return marked(figure)


def halves_table(tables: dict[float, pandas.DataFrame]) -> pandas.DataFrame:
    """Return how C-ASC from two halves of the outlines agree, a row a dose."""
    return pandas.DataFrame(
        [
            {
                "dose": dose,
                "words": len(rows),
                "rank correlation": rows["first"].corr(rows["second"], method="spearman"),
                "same sign": (rows["first"] * rows["second"] > 0).mean(),
                "median size": rows["first"].abs().median(),
            }
            for dose, rows in tables.items()
        ]
    )


def recovered(found: dict[str, float]) -> str:
    """Return a sentence on counted and planted shares.

    Parameters
    ----------
    found
        As of :func:`plantedworld.studies.study3_clip_audit.against_truth`.
    """
    numbers = (
        f"The planted share lies within the 95% interval for {found['inside']:.1%} of "
        f"{found['words']} words with at least one pronoun (95% or more is what exact intervals of "
        "small counts give); in standard errors, the differences have a "
        f"mean of {signed(found['mean'])} and a spread of {found['spread']:.2f}"
    )
    if abs(found["mean"]) < found["limit"] and 0.8 < found["spread"] < 1.2:
        return f"{numbers}, where sampling error alone would give 0 and 1: the count is right."
    return f"{numbers}. Sampling error alone would give 0 and 1: **the count is off**."


def check_within(answer) -> Check:
    """Check a reader's function from C-ASC to the difference in deviations within two equal groups.

    Examples
    --------
    >>> check_within(lambda c_asc: c_asc)
    Not yet: write the variance of all as that within plus a quarter of the squared difference
    """
    scores = np.array([-1.9, -0.5, 0.0, 1.0, 1.5])
    expected = scores / np.sqrt(1 - scores**2 / 4)
    hint = "write the variance of all as that within plus a quarter of the squared difference"
    right = "a C-ASC of 1.9 is six deviations, one of 1.0 little more than one."
    cases = [((each,), right_one) for each, right_one in zip(scores, expected, strict=True)]
    return judge_function(answer, cases, hint, right=right)


def _log_odds(shares: pandas.Series, n: pandas.Series) -> pandas.Series:
    """Return log-odds of shares of n, half a count added to either side: 0 and 1 have one, too."""
    return np.log((shares * n + 0.5) / (n - shares * n + 0.5))


def mechanism_figure(table: pandas.DataFrame):
    """Draw pronouns in the training captions against C-ASC, a panel a dose, a dot a word."""
    doses = table["dose"].unique()
    figure, axes = subplots(1, len(doses), height=3, sharex=True, sharey=True)
    for axis, dose in zip(axes, doses, strict=True):
        rows = table[(table["dose"] == dose) & (table["n"] > 0)]
        axis.scatter(_log_odds(rows["share"], rows["n"]), rows["c_asc"], s=9, alpha=0.5)
        axis.axhline(0, color="0.6", linewidth=1)
        axis.axvline(0, color="0.6", linewidth=1)
        axis.set_title(f"dose {dose:g}", fontsize=10)
    axes[0].set_ylabel("C-ASC of women")
    axes[len(doses) // 2].set_xlabel("log-odds of women's pronouns in the training captions")
    return marked(figure)


def mechanism_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return rank correlations of pronouns and C-ASC by dose, and how counts meet the truth."""
    rows = []
    for dose, part in table[table["n"] > 0].groupby("dose"):
        r = _log_odds(part["share"], part["n"]).corr(part["c_asc"], method="spearman")
        low, high = rank_correlation_interval(r, len(part))
        known = part.dropna(subset="truth")
        inside = known["truth"].between(known["low"] - 1e-12, known["high"] + 1e-12)
        rows.append(
            {
                "dose": dose,
                "words with a pronoun": len(part),
                "rank correlation": r,
                "95% interval": interval_text(low, high),
                "truth within the interval": inside.mean(),
            }
        )
    return pandas.DataFrame(rows)
