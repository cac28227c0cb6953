"""Which score of a generative model finds what is planted: figures, tables and sentences."""

import numpy as np
import pandas

from biaslib.display import dots, interval_texts, marked, subplots
from companion._check import Check, judge_function
from plantedworld.models.prompts import ASKED
from plantedworld.studies import generative as study
from plantedworld.studies.measures import mean_over_seeds

SHARES = ("right is long", "right is short")


def finding_plot(found: pandas.DataFrame):
    """Draw slopes, ranks within signs and rises of all scores, with intervals over worlds."""
    figure, panels = subplots(1, 3, height=3.8, sharey=True)
    at = np.arange(len(found))[::-1]
    for axes, name, label in zip(
        panels,
        ("slope", "rank", "rise"),
        ("study 2: slope", "study 2: rank within signs", "study 4: rise, points"),
        strict=True,
    ):
        rows = found.rename(columns={name: "value", f"{name} low": "low", f"{name} high": "high"})
        axes.axvline(0, color="0.6", linewidth=1)
        dots(axes, at, rows, "C1")
        axes.set_title(label, fontsize=9.5)
    panels[0].scatter(found["slope at dose 0"], at, facecolors="none", edgecolors="0.4", zorder=2)
    panels[0].axvline(1, color="0.6", linewidth=1, linestyle=":")
    panels[0].set_yticks(at, [study.SCORES[score] for score in found["score"]])
    panels[1].set_xlim(-1, 1)
    return marked(figure)


def finding_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the numbers behind :func:`finding_plot`, and the verdicts."""
    table = pandas.DataFrame({"score": found["score"].map(study.SCORES)})
    table["slope, dose 3"] = found["slope"].round(2)
    table["slope, dose 0"] = found["slope at dose 0"].round(2)
    for name, label in (("more", "difference of slopes"), ("rank", "rank within signs")):
        table[label] = found[name].round(2)
        table[f"{label}, 95% interval"] = _intervals(found, name)
    points = [None if np.isnan(each) else f"{each:.0f}" for each in found["rise"]]
    table["rise less that of errors, points"] = points
    table["rise, 95% interval"] = _intervals(found, "rise", 0)
    table["finds it, study 2"] = found["finds"].map({True: "yes", False: "no"})
    table["finds it, study 4"] = found["finds, study 4"].map({True: "yes", False: "no"}).fillna("–")
    return table


def _intervals(found: pandas.DataFrame, name: str, decimals: int = 2) -> list[str]:
    return interval_texts({"low": found[f"{name} low"], "high": found[f"{name} high"]}, decimals)


def named(scores) -> str:
    """Return what scores are called, for a sentence.

    Examples
    --------
    >>> named(["yes", "cloze"]), named([])
    ('yes or no, completed sentence', 'none')
    """
    return ", ".join(study.SCORES[score] for score in scores) or "none"


def prompt_table(recorded: pandas.DataFrame) -> pandas.DataFrame:
    """Return the slope at dose 3 of every score by prompt, a mean over worlds."""
    asked = recorded[(recorded["question"] == "study 2") & (recorded["dose"] == 3)]
    slopes = study.recovery(asked).pivot_table(index="score", columns="prompt", values="slope")
    slopes = slopes.loc[list(study.SCORES), list(ASKED)].rename_axis(columns=None)
    slopes.insert(0, "score", list(study.SCORES.values()))
    return slopes.round(2).reset_index(drop=True)


def length_shares(recorded: pandas.DataFrame) -> pandas.DataFrame:
    """Return how often the right caption wins if it is the longer, and the shorter, by score.

    Means over worlds and doses with *low* and *high*, Student's interval over worlds.
    """
    asked = recorded[(recorded["question"] == "length") & recorded["item"].isin(SHARES)]
    worlds = asked.groupby(["score", "item", "seed"])["value"].mean()
    rows = [
        {"score": score, "item": item, **mean_over_seeds(worlds[score, item])}
        for score in study.SCORES
        for item in SHARES
        if (score, item) in worlds.index.droplevel("seed")
    ]
    return pandas.DataFrame(rows).rename(columns={"mean": "value"})


def length_plot(shares: pandas.DataFrame):
    """Draw both shares of every score, with chance; intervals are cut off at 0 and 100."""
    figure, axes = subplots(height=3.4)
    ends = ["low", "high"]
    shares = shares.assign(**shares[ends].clip(0, 100))
    scores = list(dict.fromkeys(shares["score"]))[::-1]
    axes.axvline(50, color="0.6", linewidth=1, linestyle=":")
    for item, colour, marker, shift in zip(
        SHARES, ("C0", "C1"), ("o", "D"), (0.12, -0.12), strict=True
    ):
        rows = shares[shares["item"] == item]
        at = [scores.index(score) + shift for score in rows["score"]]
        dots(axes, at, rows, colour, marker, item)
    axes.set(xlim=(-3, 103), xlabel="right caption has the higher score, per cent")
    axes.set_yticks(range(len(scores)), [study.SCORES[score] for score in scores])
    axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return marked(figure)


def length_table(shares: pandas.DataFrame) -> pandas.DataFrame:
    """Return the numbers behind :func:`length_plot`."""
    wide = shares.pivot(index="score", columns="item", values="value").loc[
        list(dict.fromkeys(shares["score"])), list(SHARES)
    ]
    wide = wide.rename_axis(columns=None).reset_index()
    return wide.assign(score=wide["score"].map(study.SCORES))


def order_shares(recorded: pandas.DataFrame) -> dict[str, float]:
    """Return what the order of options does, means over worlds and doses, in per cent.

    ``A``, ``B``, ``C``: shares of letters; ``changed``; ``lowest`` and ``highest``, the vlbs of
    the order that has least and most of it, over models on average; ``least`` and ``most``, the
    same of the model where it is least and most.
    """
    asked = recorded[recorded["question"] == "order"]
    means = asked.groupby("item")["value"].mean()
    found = {letter: 100 * means[f"share of {letter}"] for letter in "ABC"}
    alone = asked[asked["item"].str.startswith("vlbs")].groupby(["dose", "seed"])["value"]
    return found | {
        "changed": means["changed"],
        "lowest": alone.min().mean(),
        "highest": alone.max().mean(),
        "least": alone.min().min(),
        "most": alone.max().max(),
    }


def check_preference(answer) -> Check:
    """Check the exercise on the two orders of a choice."""
    first, second = np.array([0.9, 0.6, 0.5, 0.2]), np.array([0.8, 0.6, 0.1, 0.2])
    expected = (np.log(first / (1 - first)) - np.log(second / (1 - second))) / 2
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return judge_function(
        answer,
        list(zip(pairs, expected, strict=True)),
        "in the second order A stands for the other caption; average log-odds, not probabilities.",
        right="what the letter adds is in both log-odds alike and cancels in their difference.",
    )


def recovery_table(recovered: pandas.DataFrame) -> pandas.DataFrame:
    """Return slope and rank within signs of every score, dose 0 beside dose 3."""
    wide = recovered.pivot(index="score", columns="dose", values=["slope", "rank within signs"])
    wide = wide.loc[list(study.SCORES)]
    wide.columns = [f"{name}, dose {dose:g}" for name, dose in wide.columns]
    wide.insert(0, "score", list(study.SCORES.values()))
    return wide.round(2).reset_index(drop=True)


def answered_sentence(cards: pandas.DataFrame) -> str:
    """Return whether models answer yes or no, and know their captions, better than by chance.

    Parameters
    ----------
    cards
        Of the models, one row each: *yes to it rather*, *likelier than swapped*, *truth's match
        accuracy*, *match chance* and *pairs judged*.
    """
    n, chance = int(cards["pairs judged"].min()), cards["match chance"].iloc[0]
    margin = 1.96 * np.sqrt(chance * (1 - chance) / n)
    yes, own = cards["yes to it rather"], cards["likelier than swapped"]
    perfect = cards["truth's match accuracy"]
    level = "at" if ((yes - chance).abs() <= margin).all() else "not at"
    above = "above" if (own - chance > margin).all() else "not surely above"
    below = "below" if (own < perfect).all() else "not below"
    return (
        f"Yes or no is {level} chance ({n} pairs: ±{100 * margin:.0f} points); the likelihood is "
        f"{above} it and {below} a perfect model, which is right in a share of "
        f"{' and '.join(map('{:.2f}'.format, perfect))} of such pairs."
    )


def found_by(found: pandas.DataFrame) -> str:
    """Return which scores find what is planted in study 2, with their slopes."""
    rows = found[(found["score"] != "no picture") & found["finds"]]
    rows = rows.sort_values("slope", ascending=False)
    if rows.empty:
        return "no score finds what is planted in study 2"
    which = "one score finds" if len(rows) == 1 else f"{len(rows)} scores find"
    told = [f"{study.SCORES[row.score]} (slope {row.slope:.2f})" for row in rows.itertuples()]
    return f"{which} what is planted in study 2: {'; '.join(told)}"


def finding_sentence(found: pandas.DataFrame) -> str:
    """Return which scores find what is planted in study 2, and how steep the best one is."""
    rows = found[found["score"] != "no picture"]
    blind = found.set_index("score").loc["no picture"]
    others = named(rows.loc[~rows["finds"], "score"])
    best = blind["rank"] > rows["rank"].max()
    more = ", and no score with a picture has a higher rank correlation" if best else ""
    return (
        f"By the rule set before, {found_by(found)}. These do not: {others}. Without any picture "
        f"the slope is {blind['slope']:.2f} and the rank correlation within signs "
        f"{blind['rank']:.2f}: that much is in the words alone{more}. With three worlds, "
        "“no” is weak."
    )


def selection_sentence(found: pandas.DataFrame, recorded: pandas.DataFrame) -> str:
    """Return which scores find what is planted in study 4, and what models pick at both doses."""
    rows = found[found["rise"].notna() & (found["score"] != "no picture")]
    finders = [
        f"{study.SCORES[row.score]} {row.rise:.0f} points"
        for row in rows[rows["finds, study 4"].eq(True)].itertuples()
    ]
    others = named(rows.loc[rows["finds, study 4"].ne(True), "score"])
    four = recorded[(recorded["question"] == "study 4") & (recorded["score"] == "total")]
    means = four.groupby(["item", "dose"])["value"].mean()
    risen, fallen = (means[item, 3] - means[item, 0] for item in ("vlbs", "errors"))
    errors = "fall" if fallen < 0 else "rise"
    return (
        "These scores have a rise, less that of errors, whose interval lies above 0: "
        f"{'; '.join(finders) or 'none'}. The intervals of these reach below 0: {others}. By the "
        f"log-likelihood, vlbs "
        f"itself is {means['vlbs', 0]:.1f}% at dose 0 and {means['vlbs', 3]:.1f}% at dose 3, a "
        f"rise of {risen:.1f} points; errors on stereotypical pictures {errors} from "
        f"{means['errors', 0]:.1f}% to {means['errors', 3]:.1f}%, which makes "
        f"{risen - fallen:.1f}. vlrs is {means['vlrs', 0]:.0f}% and {means['vlrs', 3]:.0f}%."
    )


def prompt_sentence(recorded: pandas.DataFrame) -> str:
    """Return how far the slopes move with the prompt."""
    table = prompt_table(recorded).set_index("score")
    moved = (table["untrained"] - table["trained"]).drop(study.SCORES["no picture"]).dropna()
    score = moved.abs().idxmax()
    short = (table["trained, short"] - table["trained"]).abs().drop(study.SCORES["no picture"])
    before, after = (f"{table.at['log-likelihood', each]:.2f}" for each in ("trained", "untrained"))
    goes = f"stays at {before}" if before == after else f"goes from {before} to {after}"
    return (
        f"Between the two prompts of the training, no slope of a score with a picture moves by "
        f"more than {short.max():.2f}. With the untrained prompt the slope of {score} moves "
        f"furthest, from {table.at[score, 'trained']:.2f} to "
        f"{table.at[score, 'untrained']:.2f}; that of the log-likelihood {goes}."
    )


def order_sentence(recorded: pandas.DataFrame) -> str:
    """Return what the order of options does."""
    found = order_shares(recorded)
    same = 100 - found["changed"]
    how = f"In {same:.0f}% of the pictures" if same else "In no picture"
    return (
        f"On average A gets {found['A']:.0f}%, B {found['B']:.0f}% and C {found['C']:.0f}% of the "
        f"probability. {how} is the same caption picked in all six orders. With one order alone, "
        f"a model's vlbs would lie between {found['lowest']:.0f}% and {found['highest']:.0f}%, "
        f"depending on the order, on average over models, and between {found['least']:.0f}% and "
        f"{found['most']:.0f}% in the worst case."
    )


def length_sentence(shares: pandas.DataFrame) -> str:
    """Return what scores do with lengths: sum and mean, the evenest of all, and the baselines."""
    wide = shares.pivot(index="score", columns="item", values="value")
    total, mean = wide.loc["total"], wide.loc["mean"]
    gap = (wide[SHARES[0]] - wide[SHARES[1]]).abs().drop("no picture")
    even = wide.loc[gap.idxmin()]
    name = study.SCORES[even.name]
    others = [
        f"for {study.SCORES[score]} they are {row[SHARES[0]]:.0f}% and {row[SHARES[1]]:.0f}%"
        for score, row in wide.loc[["gain", "over white", "over grey"]].iterrows()
        if score != even.name
    ]
    return (
        f"By the log-likelihood the right caption wins in {total[SHARES[0]]:.0f}% of the pictures "
        f"if it is the longer one and in {total[SHARES[1]]:.0f}% if it is the shorter one; by "
        f"token in {mean[SHARES[0]]:.0f}% and {mean[SHARES[1]]:.0f}%. The two shares lie "
        f"closest together for {name}: {even[SHARES[0]]:.0f}% and {even[SHARES[1]]:.0f}%; "
        f"{'; '.join(others)}."
    )
