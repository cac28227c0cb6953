"""Study 3 where the answer is known: figures and tables."""

import numpy as np
import pandas

from biaslib.display import interval_text
from biaslib.inference import rank_correlation_interval
from companion._check import Check, judge_function


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
        for name, title in (("oracle", "perfect model"), ("model", "tiny-CLIP")):
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
