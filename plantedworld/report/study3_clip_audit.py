"""Study 3 where the answer is known: figures, tables and sentences of the verdict."""

import pandas

from biaslib.report import interval_text, marked, signed, subplots
from biaslib.report.study3_clip_audit import significant
from biaslib.studies import study3_clip_audit as study


def truth_table(known: pandas.DataFrame) -> pandas.DataFrame:
    """Return how C-ASC of oracle and model follows what is planted, a row a facet and model.

    Parameters
    ----------
    known
        As of :func:`plantedworld.studies.study3_clip_audit.beside_truth`.
    """
    rows = []
    for (facet, group), part in known.groupby(["facet", "group"], sort=False):
        planted, nothing = part[part["truth"] != 0], part[part["truth"] == 0]
        for name, title in (("oracle", "oracle"), ("model", "trained on captions")):
            rows.append(
                {
                    "facet": facet,
                    "C-ASC of": group,
                    "model": title,
                    "words with a planted association": len(planted),
                    "rank correlation with the truth": planted[name].corr(
                        planted["truth"], method="spearman"
                    ),
                    "words without": len(nothing),
                    "largest size among those": nothing[name].abs().max(),
                }
            )
    return pandas.DataFrame(rows)


def truth_figure(known: pandas.DataFrame):
    """Draw C-ASC against what is planted, a dot a word: oracle and model, a row a facet."""
    facets = list(dict.fromkeys(zip(known["facet"], known["group"], strict=True)))
    figure, axes = subplots(
        len(facets), 2, height=2.6 * len(facets), sharex="row", sharey="row", squeeze=False
    )
    for line, (facet, group) in zip(axes, facets, strict=True):
        rows = known[known["facet"] == facet]
        for axis, name in zip(line, ("oracle", "model"), strict=True):
            for chosen, colour, mark in (
                (rows["truth"] != 0, "C0", "o"),
                (rows["truth"] == 0, "C1", "x"),
            ):
                part = rows[chosen]
                axis.scatter(part["truth"], part[name], s=12, alpha=0.6, color=colour, marker=mark)
            axis.axhline(0, color="0.6", linewidth=1)
            axis.axvline(0, color="0.6", linewidth=1)
        line[0].set_ylabel(f"C-ASC of {group}")
        side = {"gender": "woman to man", "tone": "tone 5 to tone 1"}[facet]
        for axis in line:
            axis.set_xlabel(f"planted log ratio, {side}")
    axes[0, 0].set_title("oracle", fontsize=10)
    axes[0, 1].set_title("trained on captions", fontsize=10)
    return marked(figure)


def on_truth(known: pandas.DataFrame, facet: str) -> str:
    """Return sentences on a facet: which types carry a planted association, and what C-ASC does."""
    rows = known[known["facet"] == facet]
    held = rows.assign(held=rows["truth"] != 0).groupby("bias_type", sort=False)["held"].sum()
    none = [f"*{name}*" for name, n in held.items() if n == 0]
    of_model = truth_table(rows).set_index("model").loc["trained on captions"]
    sizes, bare = (
        rows["model"][chosen].abs() for chosen in (rows["truth"] != 0, rows["truth"] == 0)
    )
    where = f"; none on {', '.join(none)}" if none else ""
    return (
        f"By {facet}, an association is planted on {held.sum()} of {len(rows)} words{where}. On "
        f"the words that have one, C-ASC of the trained model has a rank correlation of "
        f"{of_model['rank correlation with the truth']:.2f} with it; half of the sizes are beyond "
        f"{sizes.median():.2f}, the largest is {sizes.max():.2f}. On the {len(bare)} that have "
        f"none, half are beyond {bare.median():.2f}, and the largest, {bare.max():.2f}, exceeds "
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
        "two groups are told apart, and hardly how far."
    )


def unplanted(known: pandas.DataFrame | None, facet: str, bias_type: str) -> str:
    """Return words for a caption where nothing is planted on a type's words, else none."""
    if known is None:
        return ""
    rows = known[(known["facet"] == facet) & (known["bias_type"] == bias_type)]
    return "" if rows["truth"].any() else " (nothing is planted on these: the order is noise)"


def false_associations(clean: pandas.DataFrame) -> str:
    """Return a sentence on tests that reject where nothing is planted, by facet."""
    found = significant(clean)
    found = found[found["statistic"] == "C-ASC"]
    parts = [
        f"{row['after correction']:,} of {row['tests']:,} by {row['facet']}"
        for row in found.to_dict("records")
    ]
    share = found["after correction"].sum() / found["tests"].sum()
    counted = f"At dose 0, tests of C-ASC still reject after correction: {', '.join(parts)}."
    if share <= 0.05:
        return f"{counted} That is no more than the level allows."
    return (
        f"{counted} The tests are not wrong: this model does place these captions nearer to one "
        "group's portraits, and would with new portraits too. **It associates falsely**, as the "
        "models of [study 1](study1_grounded.ipynb) do where nothing is planted: a finite corpus "
        "and a random start leave every word somewhere. A test over portraits takes the training "
        "as given and asks whether *this model's* scores differ; a small p-value, corrected or "
        "not, is no sign that the corpus associated anything."
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
        f"{found['words']} words; in standard errors, the differences have a mean of "
        f"{signed(found['mean'])} and a spread of {found['spread']:.2f}"
    )
    if abs(found["mean"]) < found["limit"] and 0.8 < found["spread"] < 1.2:
        return f"{numbers}, where sampling error alone would give 0 and 1: the count is right."
    return f"{numbers}. Sampling error alone would give 0 and 1: **the count is off**."


def mechanism_figure(table: pandas.DataFrame):
    """Draw pronouns in the training captions against C-ASC, a panel a dose, a dot a word."""
    doses = table["dose"].unique()
    figure, axes = subplots(1, len(doses), height=3, sharex=True, sharey=True)
    for axis, dose in zip(axes, doses, strict=True):
        rows = table[(table["dose"] == dose) & (table["n"] > 0)]
        axis.scatter(study.log_odds(rows["share"], rows["n"]), rows["c_asc"], s=9, alpha=0.5)
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
        r, low, high = study.chance_correlation(
            study.log_odds(part["share"], part["n"]), part["c_asc"]
        )
        known = part.dropna(subset="truth")
        inside = known["truth"].between(known["low"] - 1e-12, known["high"] + 1e-12)
        rows.append(
            {
                "dose": dose,
                "words": len(part),
                "rank correlation": r,
                "95% interval": interval_text(low, high),
                "truth within the interval": inside.mean(),
            }
        )
    return pandas.DataFrame(rows)
