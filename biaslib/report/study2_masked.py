"""Pictures, tables and panel of the chapter about study 2."""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import published
from biaslib.metrics import masked_lm
from biaslib.report._check import Check, judge
from biaslib.report._style import marked, subplots, words_alone
from biaslib.report._tables import there_table
from biaslib.report._text import interval_text, interval_texts, p_text
from biaslib.studies import study2_masked as study

WITH_IMAGES = ("S_L", "S_V")
AGENT_NAMES = {"f": "woman", "m": "man"}
SHOWN_LEVELS = ("S_PT", "S_L", "S_V", "S_L, no image")
"""The sources that are shown beside their truth."""


def entity_table(entities: pandas.DataFrame) -> pandas.DataFrame:
    """Return the entities with their captions."""
    captions = study.captions(entities)["caption"].str.replace("{agent}", "…", regex=False)
    return pandas.DataFrame(
        {
            "entity": entities["entity"].to_numpy(),
            "caption": captions,
            "label": entities["stereotype"].replace("", "none").to_numpy(),
            "set": entities["set"].to_numpy(),
        }
    )


def image_table(inputs: study.Inputs) -> pandas.DataFrame:
    """Return how many images show a woman, and a man, with how many entities."""
    from biaslib import datasets

    rows = pandas.DataFrame(columns=["entity", "gender"])
    rows = rows if inputs.images is None else inputs.images.rows
    counts = datasets.entity_balance(rows).set_index("entity")
    names = inputs.pictured or counts.index
    counts = counts.reindex(list(names), fill_value=0)
    sizes = counts.groupby(["woman", "man"]).size().rename("entities").reset_index()
    columns = {"woman": "images of women", "man": "images of men"}
    return sizes.rename(columns=columns)[["entities", *columns.values()]]


def there(inputs: study.Inputs) -> pandas.DataFrame:
    """Return how many models, entities and images were asked for, and are there."""
    errors = inputs.problems[inputs.problems["severity"] == "error"]
    why = "; ".join(f"{kind} ({n})" for kind, n in errors["kind"].value_counts(sort=False).items())
    wanted, n = len(inputs.pictured), len(inputs.entities)
    shown = inputs.images.rows if inputs.images else pandas.DataFrame(columns=["entity"])
    names = ", ".join(sorted(set(inputs.pictured) - set(shown["entity"])))
    lost = f"no {' and no '.join(WITH_IMAGES)} of {names}" if names else ""
    return there_table(
        [
            ("models", 2, 2, ""),
            ("entities, by captions alone", n, n, ""),
            ("entities with images", wanted, shown["entity"].nunique(), lost),
            ("images", 2 * wanted * inputs.per_agent, len(shown), why),
        ]
    )


def run_sentence(inputs: study.Inputs, results: study.Results) -> str:
    """Return which models were asked, and about what."""
    (model, revision), (text_model, before) = results.weights.items()
    shown = "none"
    if inputs.images:
        rows = inputs.images.rows
        shown = f"{inputs.dataset}, {len(rows)} of {rows['entity'].nunique()} entities"
    return (
        f"Model: {model} ({revision}); text-only model: {text_model} ({before}). "
        f"Images: {shown}. In captions alone: {results.scores['test'].nunique()} entities."
    )


# The structure of the paper's Table 1


def method_table() -> pandas.DataFrame:
    """Return the three scores as the paper's Table 1 lists them, with where this book has each.

    What the paper prints as a picture is words here; its ✗ is "none".
    """
    printed = published.table("srinivasan2021", 1)
    return pandas.DataFrame(
        {
            "source": printed["source_x"],
            "picture": printed["visual_input"].replace({"✗": "none", "": "shown"}),
            "caption": printed["language_input"],
            "exchanged": printed["modified_component"],
            "for": printed["new_value"].replace("✗", "none"),
            "score": printed["association_score"],
            "here": ["S_PT", "S_L", "S_V"],
        }
    )


# The structure of the paper's Figures 2 to 5


def association_bars(scores: pandas.DataFrame, level: str, chosen: str = "case study"):
    """Draw S(E, f) and S(E, m) of a source, two bars an entity: Figures 2, 3 and 4 in structure.

    Whiskers are 95% intervals over images, where there are images.
    """
    rows = _of(scores, level, chosen)
    names = rows["test"].drop_duplicates().tolist()
    if not names:
        return words_alone(f"No entity has images: there is no {level}.")
    figure, axes = subplots(height=3.4)
    for at, key in enumerate("fm"):
        colour, hatch = (("C1", ""), ("C0", "//"))[at]
        part = rows[rows["statistic"] == f"S({key})"].set_index("test").loc[names]
        place = np.arange(len(names)) + (at - 0.5) * 0.36
        axes.bar(
            place, part["value"], 0.34, color=colour, hatch=hatch, edgecolor="0.25", linewidth=0.6,
            label=AGENT_NAMES[key], yerr=_reach(part), error_kw={"elinewidth": 1, "capsize": 2},
        )  # fmt: skip
    axes.axhline(0, color="0.3", linewidth=0.9)
    axes.set_xticks(np.arange(len(names)), names, rotation=0 if len(names) < 9 else 60)
    axes.set_ylabel(f"{_symbol(level)}(E, g), natural logarithm", parse_math=True)
    axes.legend(frameon=False, ncols=2, title="agent")
    return _from(figure, scores)


def association_table(scores: pandas.DataFrame, level: str, chosen="case study"):
    """Return the scores of a source with their probabilities: one row an entity."""
    rows = _of(scores, level, chosen)
    table = []
    for entity, group in rows.groupby("test", sort=False):
        f, m, bias = (group[group["statistic"] == each].iloc[0] for each in ("S(f)", "S(m)", "B"))
        table.append(
            {
                "entity": entity,
                "S(f)": f["value"],
                "S(m)": m["value"],
                "B": bias["value"],
                "95% interval of B": interval_text(bias["low"], bias["high"]),
                "P, woman": _probability(f["probability"]),
                "P, man": _probability(m["probability"]),
                "P without": _without(f["normaliser"], m["normaliser"]),
                "images": int(bias["n"]) if level in WITH_IMAGES else 0,
            }
        )
    found = pandas.DataFrame(table)
    if found.empty:
        return pandas.DataFrame({"entity": ["–"], level: ["no entity has images"]})
    return found if found["images"].any() else found.drop(columns=["images", "95% interval of B"])


def leaning_sentence(scores: pandas.DataFrame, shares: pandas.DataFrame) -> str:
    """Return which way the entities of the case study lean, by source, and what six can say.

    Parameters
    ----------
    scores
        Of :func:`biaslib.studies.study2_masked.scores`.
    shares
        Of :func:`biaslib.studies.study2_masked.shares`.
    """
    chosen = "case study" if (scores["set"] == "case study").any() else "all"
    bias = scores[(scores["statistic"] == "B") & (scores["set"].eq(chosen) | (chosen == "all"))]
    asked = bias["test"].nunique()

    def signs(level: str) -> str:
        rows = bias[bias["level"] == level]
        if rows.empty:
            return "no entity has images"
        wide = ((rows["low"] > 0) | (rows["high"] < 0)).sum()
        return (
            f"{(rows['value'] > 0).sum()} of {len(rows)} entities lean to women and "
            f"{(rows['value'] < 0).sum()} to men; for {wide} the interval leaves out 0"
        )

    shift = (bias.loc[bias["level"] == "S_PT", "value"] < 0).sum()
    tossed = shares.set_index(["test", "level"]).loc[(chosen, "S_PT"), "p_value"]
    return (
        f"In this run: language, {signs('S_L')}; vision, {signs('S_V')}. Pre-training shifted "
        f"{shift} of {asked} entities towards men. Tossing a coin for each entity gives a split as "
        f"lopsided as {shift} to {asked - shift}, or more so, with a probability of {tossed:.2f}: "
        f"{'six' if asked == 6 else asked} entities cannot say much on such a question."
    )


def bias_bars(scores: pandas.DataFrame, level: str, chosen: str = "gendered"):
    """Draw the bias score of every entity, sorted: Figure 5 in structure."""
    rows = _of(scores, level, chosen).query("statistic == 'B'").sort_values("value")
    looks = {"women": ("C1", ""), "men": ("C0", "//"), "": ("0.6", "")}
    figure, axes = subplots(height=0.18 * len(rows) + 1.0)
    place = pandas.Series(np.arange(len(rows)), index=rows["test"])
    for label, (colour, hatch) in looks.items():
        part = rows[rows["stereotype"] == label]
        if len(part):
            axes.barh(
                place[part["test"]], part["value"], color=colour, hatch=hatch, edgecolor="0.25",
                linewidth=0.5, label=f"label: {label or 'none'}",
            )  # fmt: skip
    axes.axvline(0, color="0.3", linewidth=0.9)
    axes.set_yticks(place, place.index, fontsize=8.5)
    axes.set_xlabel(_bias_axis(level), parse_math=True)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.legend(frameon=False, loc="lower right")
    return _from(figure, scores)


def bias_table(scores: pandas.DataFrame, level: str, chosen: str = "gendered"):
    """Return the bias score of every entity, sorted, with its label and probabilities."""
    table = association_table(scores, level, chosen)
    labels = scores.drop_duplicates("test").set_index("test")["stereotype"]
    table.insert(1, "label", table["entity"].map(labels).replace("", "none"))
    return table.sort_values("B", ignore_index=True)


def share_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the shares with their intervals."""
    return pandas.DataFrame(
        {
            "entities": found["test"],
            "source": found["level"].map(study.SOURCES),
            "share": found["statistic"],
            "count": [f"{c} of {n}" for c, n in zip(found["count"], found["n"], strict=True)],
            "value": found["value"],
            "95% interval": interval_texts(found),
            "p against one half": [p_text(p) if p == p else "–" for p in found["p_value"]],
        }
    )


def share_sentence(found: pandas.DataFrame, chosen: str = "gendered") -> str:
    """Return the two shares of a set in words."""
    kept = found[found["test"] == chosen].set_index(["level", "statistic"])
    agrees = kept.loc[("S_L, no image", "agrees with the label")]
    shifted = kept.loc[("S_PT", "towards men")]
    return (
        f"The sign of B agrees with the label for {_counted(agrees)}; the bias score is lower than "
        f"the text-only model's, that is, shifted towards men, for {_counted(shifted)}."
    )


def _counted(row: pandas.Series) -> str:
    if not row["n"]:
        return "none, as no entity has one"
    return (
        f"{row['count']} of {row['n']} entities ({row['value']:.0%}, 95% interval "
        f"{row['low']:.0%} to {row['high']:.0%}, {p_text(row['p_value'])})"
    )


# The logic of the paper's Table 3


def named_examples(named: pandas.DataFrame, entities: Sequence[str], n: int = 6):
    """Return images where the model names another entity: the most lopsided of each."""
    kept = named[named["wrong"] & named["entity"].isin(list(entities))]
    ratio = kept["named probability"] / kept["shown probability"]
    kept = kept.assign(ratio=ratio).sort_values("ratio", ascending=False)
    kept = kept.groupby(["entity", "gender"], sort=False).head(1).head(n)
    return pandas.DataFrame(
        {
            "the picture shows": kept["gender"] + ", " + kept["entity"],
            "P(shown)": kept["shown probability"].map(_probability),
            "the model names": kept["named"],
            "P(named)": kept["named probability"].map(_probability),
            "ratio": kept["ratio"],
            "name fits the gender": kept["fits the gender"],
        }
    )


def named_table(found: dict[str, pandas.DataFrame]) -> pandas.DataFrame:
    """Return how often another entity is named, by what was asked: one row a share."""
    rows = [table.assign(asked=name) for name, table in found.items()]
    table = pandas.concat(rows, ignore_index=True)
    return pandas.DataFrame(
        {
            "asked": table["asked"],
            "share": table["statistic"],
            "count": [f"{c} of {n}" for c, n in zip(table["count"], table["n"], strict=True)],
            "value": table["value"],
            "95% interval": interval_texts(table),
        }
    )


def choice_table(found: dict[str, pandas.DataFrame], against: str) -> pandas.DataFrame:
    """Return what each choice changes in B, against one of them.

    Its rank correlation, the mean and the largest absolute change, how many signs change, and of
    how many entities.

    Parameters
    ----------
    found
        Scores by the name of the choice.
    against
        The choice that the others are compared with.
    """
    from scipy import stats

    first, rows = _wide(found[against]), []
    for name, scores in found.items():
        if name == against:
            continue
        other = _wide(scores)
        for level in [each for each in SHOWN_LEVELS if each in other]:
            one, two = first[level], other[level].reindex(first.index)
            kept = two.notna()
            rank = stats.spearmanr(one[kept], two[kept]).statistic if np.ptp(one) else np.nan
            rows.append(
                {
                    "choice": name,
                    "score": level,
                    "rank": rank,
                    "mean change": (two - one)[kept].abs().mean(),
                    "largest": (two - one)[kept].abs().max(),
                    "signs": int((np.sign(one[kept]) != np.sign(two[kept])).sum()),
                    "n": int(kept.sum()),
                }
            )
    return pandas.DataFrame(rows)


def _wide(scores: pandas.DataFrame) -> pandas.DataFrame:
    bias = scores[scores["statistic"] == "B"]
    return bias.pivot(index="test", columns="level", values="value")


# Beside the truth


# Checks of exercises


def check_order(answer) -> Check:
    """Judge a function that returns S_V, on two sets of pictures."""
    cases = [([0.3, 0.1, 0.002], 0.1), ([0.04, 0.25], 0.2)]
    expected = [
        masked_lm.visual_association(np.log(seen), np.log(unseen)).score for seen, unseen in cases
    ]
    hint = "the mean is over probabilities; its logarithm comes afterwards"
    told = "with the other order, one image that the model misreads would weigh far more."
    return judge([answer(*case) for case in cases], expected, hint, right=told)


def check_shift(answer) -> Check:
    """Judge a function that returns B of S_PT, on the probabilities of two entities."""
    cases = [((0.02, 0.04), (0.03, 0.02)), ((0.3, 0.1), (0.05, 0.2))]
    given = [[dict(zip("fm", np.log(each), strict=True)) for each in case] for case in cases]
    expected = [(vl["f"] - vl["m"]) - (text["f"] - text["m"]) for vl, text in given]
    hint = "take each agent's score, model against model, and then women less men"
    told = "it is the difference of the models' bias scores, either way you add up."
    return judge([answer(*case) for case in given], expected, hint, right=told)


# Small parts


def _of(scores: pandas.DataFrame, level: str, chosen: str) -> pandas.DataFrame:
    rows = scores[scores["level"] == level]
    return rows[rows["set"] == chosen] if (rows["set"] == chosen).any() else rows


def _from(figure, scores: pandas.DataFrame):
    """Close a figure; write into it where it is from, if that is the planted world."""
    return marked(figure, scores["profile"].iloc[0])


def _symbol(level: str) -> str:
    return {"S_PT": "$S_{PT}$", "S_V": "$S_V$"}.get(level, "$S_L$")


def _bias_axis(level: str) -> str:
    if level == "S_PT":
        return "B of the vision-language model less B of the text-only one (B of $S_{PT}$)"
    return "bias score B: to the right women, to the left men"


def _reach(part: pandas.DataFrame) -> np.ndarray | None:
    if part["low"].isna().all():
        return None
    return np.clip([part["value"] - part["low"], part["high"] - part["value"]], 0, None)


def _probability(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else f"{value:.0e}"


def _without(f: float, m: float) -> str:
    one, other = _probability(f), _probability(m)
    return one if one == other else f"{one} and {other}"
