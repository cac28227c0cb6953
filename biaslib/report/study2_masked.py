"""Pictures, tables and panel of the chapter about study 2."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas

from biaslib import published
from biaslib.metrics import masked_lm
from biaslib.report._check import Check, judge
from biaslib.report._drawing import Drawing
from biaslib.report._explorer import Panel
from biaslib.report._style import marked, subplots, words_alone
from biaslib.report._tables import there_table
from biaslib.report._text import interval_text, interval_texts, p_text, signed
from biaslib.studies import study2_masked as study

__all__ = [
    "SHOWN_LEVELS",
    "apart_table",
    "association_bars",
    "association_table",
    "beside_plot",
    "beside_table",
    "bias_bars",
    "bias_table",
    "check_order",
    "check_shift",
    "choice_table",
    "dose_plot",
    "dose_table",
    "entity_table",
    "image_table",
    "leaning_sentence",
    "method_table",
    "named_examples",
    "named_table",
    "panel",
    "run_sentence",
    "share_sentence",
    "share_table",
    "target_sentence",
    "target_table",
    "there",
]

WITH_IMAGES = ("S_L", "S_V")
AGENT_NAMES = {"f": "woman", "m": "man"}
PLACES = {"both": "text and images", "text": "text alone", "images": "images alone"}
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
    axes.set_ylabel(f"{_symbol(level)}(E, g), natural logarithm")
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
    axes.set(xlabel=_bias_axis(level), ylim=(-0.7, len(rows) - 0.3))
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


def beside_plot(beside: pandas.DataFrame, dose: float = 3, levels: Iterable[str] = SHOWN_LEVELS):
    """Draw the checkpoints' bias scores against the oracle's, a dot an entity and seed."""

    from matplotlib.artist import setp

    levels = list(levels)
    figure, panels = subplots(2, 2, height=6.4)
    whole = beside[(beside["planted_in"] == "both") & (beside["dose"] == dose)]
    for axes, level in zip(panels.flat, levels, strict=True):
        rows = whole[whole["level"] == level]
        for odd, (colour, mark, name) in enumerate(
            (("C0", "o", "even seeds"), ("C1", "^", "odd seeds, exchanged"))
        ):
            part = rows[rows["seed"] % 2 == odd]
            axes.plot(
                part["oracle"], part["value"], mark, color=colour, ms=3.5, alpha=0.5, label=name
            )
        reach = 1.08 * max(rows[["oracle", "value"]].abs().max().max(), 0.1)
        axes.plot([-reach, reach], [-reach, reach], color="0.3", linestyle="--", linewidth=1)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
        axes.set_title(f"B of {level}", fontsize=10)
    setp(panels[-1], xlabel="oracle")
    setp(panels[:, 0], ylabel="checkpoint")
    panels[0, 0].legend(frameon=False, fontsize=8.5)
    return marked(figure)


def beside_table(beside: pandas.DataFrame, level: str, dose: float = 3, seed: int = 0):
    """Return each entity's planted log-odds, the oracle's B and the checkpoint's."""
    rows = beside[(beside["planted_in"] == "both") & (beside["dose"] == dose)]
    rows = rows[(rows["seed"] == seed) & (rows["level"] == level)].sort_values("oracle")
    return pandas.DataFrame(
        {
            "entity": rows["test"],
            "planted log-odds": rows["planted"],
            "oracle": rows["oracle"],
            "checkpoint": rows["value"],
            "difference": rows["value"] - rows["oracle"],
        }
    )


def target_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the targets with what was reached."""
    slopes = found[["slope low", "slope high"]].set_axis(["low", "high"], axis=1)
    return pandas.DataFrame(
        {
            "score": found["level"],
            "asked for": found["least"],
            "rank correlation": found["mean"],
            "95% interval": interval_texts(found),
            "slope": found["slope"],
            "95% interval of the slope": interval_texts(slopes),
            "seeds": found["n"],
            "verdict": found["reached"].map(_verdict),
        }
    )


def target_sentence(found: pandas.DataFrame) -> str:
    """Return the verdict in words."""
    judged = found[found["n"] > 0]
    if judged.empty:
        return "No checkpoint is shipped for the worlds of the verdict; nothing is judged."
    missed = judged.loc[~judged["reached"].astype(bool), ["level", "least", "mean"]]
    if missed.empty:
        return f"All {len(judged)} targets are reached."
    listed = "; ".join(
        f"{row.level}: {row.mean:.4f} where {row.least:g} was asked for"
        for row in missed.itertuples()
    )
    return f"{len(judged) - len(missed)} of {len(judged)} targets are reached. Missed: {listed}."


def _verdict(reached: bool | None) -> str:
    return "not run" if reached is None else ("reached" if reached else "missed")


def dose_plot(recovered: pandas.DataFrame, levels: Iterable[str] = SHOWN_LEVELS):
    """Draw how large the bias scores are at each dose: checkpoints, and the oracle's line."""
    levels, whole = list(levels), recovered[recovered["planted_in"] == "both"]
    figure, panels = subplots(1, len(levels), height=3.1, sharey=True)
    for axes, level in zip(panels, levels, strict=True):
        rows = whole[whole["level"] == level]
        exact = rows.groupby("dose")["oracle spread"].mean()
        axes.plot(exact.index, exact, "D-", color="C1", mfc="none", label="oracle")
        axes.plot(rows["dose"], rows["spread"], "o", color="C0", alpha=0.7, label="models")
        axes.set_title(level, fontsize=9.5)
        axes.set(xlabel="dose", xticks=sorted(whole["dose"].unique()))
    panels[0].set_ylabel("root mean square of B")
    panels[0].legend(frameon=False, fontsize=9)
    return marked(figure)


def dose_table(recovered: pandas.DataFrame) -> pandas.DataFrame:
    """Return sizes, rank correlations and slopes by score and dose: means over seeds."""
    whole = recovered[recovered["planted_in"] == "both"]
    columns = ["spread", "oracle spread", "rank", "slope", "planted rank", "signs"]
    means = whole.groupby(["level", "dose"], sort=False)[columns].mean()
    seeds = whole.groupby(["level", "dose"], sort=False).size().rename("seeds")
    names = {
        "level": "score",
        "spread": "size of B",
        "oracle spread": "size of the oracle's",
        "rank": "rank correlation",
        "planted rank": "rank correlation with the planted log-odds",
        "signs": "sign right",
    }
    return means.join(seeds).reset_index().rename(columns=names)


def apart_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return sizes of S_L and S_V in worlds planted in one place."""
    return pandas.DataFrame(
        {
            "planted in": found["planted_in"].map(PLACES),
            "score": found["level"],
            "size of the oracle's B": found["oracle spread"].round(9),
            "size of the checkpoint's": found["spread"],
            "rank correlation": found["rank"],
            "slope": found["slope"],
            "seed": found["seed"],
            "n": found["n"],
        }
    )


def panel(beside: pandas.DataFrame, entities: Sequence[str]) -> Panel:
    """Return a panel: for an entity and a score, the truth and the models at every dose."""
    whole = beside[(beside["planted_in"] == "both") & beside["test"].isin(list(entities))]
    reach = float(np.ceil(whole[["value", "oracle", "planted"]].abs().max().max()))
    cases = {
        (entity, level): _drawing(
            whole[(whole["test"] == entity) & (whole["level"] == level)], entity, level, reach
        )
        for entity in entities
        for level in SHOWN_LEVELS
    }
    choices = {"Entity": list(entities), "Score": list(SHOWN_LEVELS)}
    return Panel("An entity beside its truth", choices, cases)


def _drawing(rows: pandas.DataFrame, entity: str, level: str, reach: float) -> Drawing:
    marks, ways = [], {0: "as given", 1: "exchanged"}
    for odd, way in ways.items():
        part = rows[rows["seed"] % 2 == odd].sort_values("dose")
        exact = part.groupby("dose")[["oracle", "planted"]].mean()
        if part.empty:
            continue
        x = exact.index.tolist()
        marks += [
            {"kind": "line", "x": x, "y": _round(exact["planted"]), "dashed": True,
             "label": f"planted log-odds, {way}", "group": 2 + odd},
            {"kind": "line", "x": x, "y": _round(exact["oracle"]),
             "label": f"oracle, {way}", "group": odd},
            {"kind": "dots", "x": (part["dose"] + 0.06 * (odd - 0.5)).tolist(),
             "y": _round(part["value"]), "label": f"models, {way}", "group": odd},
        ]  # fmt: skip
    table = pandas.DataFrame(
        {
            "dose": rows["dose"],
            "seed": rows["seed"],
            "planted": rows["planted"].round(2),
            "oracle": rows["oracle"].round(2),
            "model": rows["value"].round(2),
        }
    ).sort_values(["dose", "seed"], ignore_index=True)
    return Drawing(
        _panel_sentence(rows, entity, level),
        marks,
        "dose",
        f"B of {level}",
        (-0.2, float(rows["dose"].max()) + 0.2),
        (-reach, reach),
        f"Lines of the oracle's B and of the planted log-odds of {entity} by dose, with a dot for "
        "each trained model.",
        table,
        note="planted world",
        x_ticks={float(dose): f"{dose:g}" for dose in sorted(rows["dose"].unique())},
    )


def _panel_sentence(rows: pandas.DataFrame, entity: str, level: str) -> str:
    top = rows[rows["dose"] == rows["dose"].max()]
    first = top.sort_values("seed").iloc[0]
    zero = rows.loc[rows["dose"] == 0, "value"].abs()
    floor = f" Without any bias, up to {zero.max():.2f} in size." if len(zero) else ""
    return (
        f"{entity}, B of {level} at dose {first['dose']:g}, seed {first['seed']}: planted "
        f"{signed(first['planted'])}, oracle {signed(first['oracle'])}, model "
        f"{signed(first['value'])}.{floor}"
    )


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


def _round(values: pandas.Series) -> list[float]:
    return [round(float(value), 3) + 0.0 for value in values]


def _probability(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else f"{value:.0e}"


def _without(f: float, m: float) -> str:
    one, other = _probability(f), _probability(m)
    return one if one == other else f"{one} and {other}"
