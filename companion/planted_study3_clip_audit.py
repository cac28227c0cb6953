"""Study 3 where the answer is known: figures and tables."""

import numpy as np
import pandas

from biaslib.display import interval_text, marked, subplots
from biaslib.inference import rank_correlation_interval
from companion._check import Check, judge_function
from companion.planted_world import NARROW


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
        for name, title in zip(("oracle", "model"), TITLES, strict=True):
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
                    "which exceeds": (planted[name].abs() < nothing[name].abs().max()).mean(),
                }
            )
    return pandas.DataFrame(rows)


def truth_figure(known: pandas.DataFrame):
    """Draw C-ASC against what is planted, a dot a word: the perfect model above tiny-CLIP."""
    facet, group = known[["facet", "group"]].iloc[0]
    side = {"gender": "woman to man", "tone": "tone 5 to tone 1"}[facet]
    figure, panels = subplots(2, 1, height=5.2, width=NARROW, sharex=True, sharey=True)
    planted, nothing = known[known["planted"]], known[~known["planted"]]
    crosses = {"marker": "x", "color": "C1", "s": 14, "linewidths": 0.9, "zorder": 3}
    for axes, name, title in zip(panels, ("oracle", "model"), TITLES, strict=True):
        axes.scatter(planted["truth"], planted[name], s=12, alpha=0.6, color="C0")
        axes.scatter(nothing["truth"], nothing[name], **crosses)
        axes.axhline(0, color="0.6", linewidth=1)
        axes.axvline(0, color="0.6", linewidth=1)
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_ylabel(f"C-ASC of {group}")
    panels[1].set_xlabel(f"planted log ratio, {side}")
    return marked(figure)


TITLES = ("perfect model", "tiny-CLIP")
MARKS = (("o", "0.45"), ("D", "C1"))


def units_figure(tables: dict[float, pandas.DataFrame]):
    """Draw how many words are significant after correction, by unit: a mark a dose.

    Parameters
    ----------
    tables
        By dose, as of :func:`plantedworld.studies.study3_clip_audit.by_unit`.
    """
    figure, axes = subplots(height=2.6, width=NARROW)
    for (dose, rows), (mark, colour) in zip(tables.items(), MARKS, strict=True):
        axes.plot(rows["corrected"], rows["unit"], mark, color=colour, ms=8, label=f"dose {dose:g}")
        for place, n in enumerate(rows["corrected"]):
            axes.annotate(f"{n}", (n, place), (0, 8), textcoords="offset points", ha="center")
    axes.set(xlabel="significant words", xlim=(-20, None), ylim=(2.4, -0.6))
    axes.legend(frameon=False, fontsize=9, loc="lower right")
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
    figure, panels = subplots(len(doses), 1, height=6.0, width=NARROW, sharex=True, sharey=True)
    for axes, dose in zip(panels, doses, strict=True):
        rows = table[(table["dose"] == dose) & (table["n"] > 0)]
        axes.scatter(_log_odds(rows["share"], rows["n"]), rows["c_asc"], s=9, alpha=0.5)
        axes.axhline(0, color="0.6", linewidth=1)
        axes.axvline(0, color="0.6", linewidth=1)
        axes.set_title(f"dose {dose:g}", fontsize=10, loc="left")
    panels[len(doses) // 2].set_ylabel("C-ASC of women")
    panels[-1].set_xlabel("log-odds of women's pronouns")
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
