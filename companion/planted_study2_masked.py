"""Study 2 where the answer is known: figures and tables."""

import numpy as np
import pandas

from biaslib.display import interval_texts, marked, subplots
from companion.planted_world import NARROW
from companion.study2_masked import SHOWN_LEVELS, shown_model
from plantedworld.studies.measures import mean_over_seeds
from plantedworld.studies.recovery import partial_rank

SYMBOLS = {"S_PT": "$S_{PT}$", "S_L": "$S_L$", "S_V": "$S_V$"}
"""How prose and figures write the scores; what follows a comma stays as it is."""

PLACES = {"both": "text and images", "text": "text alone", "images": "images alone"}

GENDER_ALONE = float(np.sqrt(3) / 2)
"""Rank correlation, with many values, of which half they belong to: the upper one or the lower."""


def symbol(level: str) -> str:
    """Return a score as prose and figures write it.

    >>> symbol("S_PT"), symbol("S_L, no image")
    ('$S_{PT}$', '$S_L$, no image')
    """
    name, *rest = level.split(", ")
    return ", ".join([SYMBOLS.get(name, name), *rest])


def verdict_plot(recovered: pandas.DataFrame, apart: pandas.DataFrame, dose: float = 3):
    """Draw what the scores find of a planted bias: its order in part, and not where it was planted.

    The dashed line is :data:`GENDER_ALONE`.

    Parameters
    ----------
    recovered
        Of :func:`plantedworld.studies.study2_masked.recovery`.
    apart
        Of :func:`plantedworld.studies.study2_masked.kept_apart`.
    dose
        Of the rows of *recovered*.
    """
    figure, (left, right) = subplots(2, 1, height=6.2, width=3.4)
    whole = recovered.query("planted_in == 'both' and dose == @dose")
    for at, level in enumerate(SHOWN_LEVELS):
        ranks = whole.loc[whole["level"] == level, "rank"]
        left.plot([at] * len(ranks), ranks, "o", color="C0", alpha=0.6)
    left.axhline(GENDER_ALONE, color="0.5", linestyle="--", linewidth=1)
    sources = ["pre-\ntraining", "language", "vision", "no\npicture"]
    left.set_xticks(range(len(SHOWN_LEVELS)), sources)
    left.set(ylim=(0, 1.02), ylabel="rank correlation\nwith the truth")
    left.set_title("The three scores find hardly more\nthan the gender of a thing", fontsize=10)
    _draw_apart(right, apart, shown_model(recovered["model"].iloc[0], "planted"))
    places = [f"{score}\n{bias}" for bias in ("captions", "pictures") for score in sources[1:3]]
    right.set_xticks(range(len(places)), [f"{each}\nalone" for each in places])
    title = "Nor where it was learned: captions\nalone give a large visual score"
    right.set_title(title, fontsize=10)
    for axes in (left, right):
        axes.tick_params(axis="x", labelsize=9)
    return marked(figure)


def _draw_apart(axes, apart: pandas.DataFrame, model: str) -> None:
    """Draw the sizes of S_L and S_V in worlds planted in one place alone."""
    names = [(place, level) for place in ("text", "images") for level in ("S_L", "S_V")]
    for name, mark, colour, column in (
        ("perfect model", "D", "C1", "oracle spread"),
        (model, "o", "C0", "spread"),
    ):
        sizes = apart.groupby(["planted_in", "level"])[column].mean().reindex(names)
        axes.plot(range(len(names)), sizes, mark, color=colour, label=name)
    labels = {"text": "captions", "images": "pictures"}
    told = [f"{symbol(level)}\n{labels[place]}\nalone" for place, level in names]
    axes.set_xticks(range(len(names)), told, parse_math=True)
    axes.set(xlim=(-0.5, 3.5), ylabel="size of B (root mean square)")
    axes.set_ylim(bottom=-0.05)
    axes.set_title("Is the place found?", fontsize=10)
    axes.legend(frameon=False, fontsize=10)


def apart_figure(apart: pandas.DataFrame, recovered: pandas.DataFrame):
    """Draw the sizes of S_L and S_V in worlds planted in one place, and those without any bias.

    Parameters
    ----------
    apart
        Of :func:`plantedworld.studies.study2_masked.kept_apart`.
    recovered
        Of :func:`plantedworld.studies.study2_masked.recovery`.
    """
    figure, axes = subplots(height=3.6, width=NARROW)
    _draw_apart(axes, apart, shown_model(recovered["model"].iloc[0], "planted"))
    nothing = recovered[recovered["dose"] == 0].groupby("level")["spread"].mean()
    for at, level in enumerate(("S_L", "S_V", "S_L", "S_V")):
        axes.hlines(nothing[level], at - 0.3, at + 0.3, color="0.4", linestyle="--")
    axes.set_title("")
    axes.tick_params(axis="x", labelsize=11.5)
    axes.legend(frameon=False, fontsize=10, loc="upper center")
    return marked(figure)


def rank_table(recovered: pandas.DataFrame, dose: float = 3) -> pandas.DataFrame:
    """Return the rank correlation with the truth of every source and world."""
    whole = recovered.query("planted_in == 'both' and dose == @dose")
    wide = whole.pivot(index="seed", columns="level", values="rank")
    return wide[list(SHOWN_LEVELS)].rename_axis(columns=None).reset_index()


def beside_table(beside: pandas.DataFrame, dose: float = 3, seed: int = 0) -> pandas.DataFrame:
    """Return each entity's planted values, the oracle's B and the model's: a row an entity.

    Values have two decimals. What is planted for ``S_L`` without an image is what is planted for
    ``S_L``, and stands once. Rows are in the order of the log-odds that captions have.
    """
    rows = beside[(beside["planted_in"] == "both") & (beside["dose"] == dose)]
    rows = rows[rows["seed"] == seed]
    wide = rows.pivot(index="test", columns="level", values=["planted", "oracle", "value"])
    names = {"oracle": "perfect model", "value": shown_model(rows["model"].iloc[0], "planted")}
    columns = {}
    for level in SHOWN_LEVELS:
        if level in PLANTED:
            columns[PLANTED[level]] = wide["planted", level]
        columns |= {f"{level}: {name}": wide[of, level] for of, name in names.items()}
    table = pandas.DataFrame(columns).sort_values(PLANTED["S_L"]).round(2) + 0.0
    return table.rename_axis("entity").reset_index()


PLANTED = {
    "S_PT": "planted shift",
    "S_L": "planted log-odds, captions",
    "S_V": "planted log-odds, pictures",
}
"""What is planted for each score, as columns name it."""


def recovery_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return :func:`plantedworld.studies.study2_masked.over_seeds` as readers see it."""
    slopes = found[["slope low", "slope high"]].set_axis(["low", "high"], axis=1)
    return pandas.DataFrame(
        {
            "score": found["level"],
            "rank correlation": found["mean"],
            "95% interval": interval_texts(found),
            "slope": found["slope"],
            "95% interval of the slope": interval_texts(slopes),
            "worlds": found["n"],
        }
    )


def apart_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return sizes of S_L and S_V in worlds planted in one place."""
    return pandas.DataFrame(
        {
            "planted in": found["planted_in"].map(PLACES),
            "score": found["level"],
            "size of the perfect model's B": found["oracle spread"].round(9),
            "size of the checkpoint's": found["spread"],
            "rank correlation": found["rank"],
            "slope": found["slope"],
            "seed": found["seed"],
            "n": found["n"],
        }
    )


def dose_table(recovered: pandas.DataFrame) -> pandas.DataFrame:
    """Return sizes, rank correlations and slopes by score and dose: means over seeds."""
    names = {
        "spread": "size of B",
        "oracle spread": "size of the perfect model's",
        "rank": "rank correlation",
        "slope": "slope",
        "signs": "sign right",
    }
    whole = recovered[recovered["planted_in"] == "both"]
    means = whole.groupby(["level", "dose"], sort=False)[list(names)].mean().reset_index()
    doses = means["dose"].map("{:g}".format)
    return means.assign(dose=doses).rename(columns={"level": "score"} | names)


def blind_table(beside: pandas.DataFrame, dose: float = 3) -> pandas.DataFrame:
    """Return how well the score without a picture, and S_V given that, rank the truth of S_V.

    Parameters
    ----------
    beside
        Of :func:`plantedworld.studies.study2_masked.over_worlds`.
    dose
        Of its rows.
    """
    whole = beside[(beside["planted_in"] == "both") & (beside["dose"] == dose)]
    without, partial = [], []
    for _, rows in whole.groupby("seed"):
        own = rows.pivot(index="test", columns="level", values="value")
        truth = rows[rows["level"] == "S_V"].set_index("test")["oracle"].loc[own.index]
        blind = own["S_L, no image"]
        without.append(blind.corr(truth, method="spearman"))
        partial.append(partial_rank(own["S_V"], truth, blind))
    means = pandas.DataFrame([mean_over_seeds(without), mean_over_seeds(partial)])
    scores = ["S_L, no image", "S_V, given S_L without an image"]
    columns = {"score": scores, "rank correlation": means["mean"]}
    return pandas.DataFrame(columns | {"95% interval": interval_texts(means), "worlds": means["n"]})
