"""Tables, figures, sentences and panel of study 4's chapter."""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import planted, published
from biaslib.datasets import vlstereoset
from biaslib.metrics import caption_selection
from biaslib.published import reexamination
from biaslib.report._check import Check
from biaslib.report._drawing import Drawing, picture
from biaslib.report._explorer import Panel
from biaslib.report._style import marked
from biaslib.report._tables import Table
from biaslib.report._text import p_text, signed
from biaslib.studies import caption_worlds as worlds
from biaslib.studies import stereotype_selection as study

__all__ = [
    "check_ivlas",
    "check_lmss",
    "chooser",
    "example",
    "example_table",
    "grounded_sentence",
    "interval_table",
    "intervals",
    "make_up",
    "modality_figure",
    "modality_table",
    "models_table",
    "neutral_examples",
    "paired_table",
    "printed_scores",
    "scores_table",
    "selection_spread",
    "shift_figure",
    "shift_table",
    "sizes",
    "stated",
    "truth_table",
    "verdict_sentence",
    "verdict_table",
    "visibility_figure",
]

PRINTED = ("gender", "profession", "race", "religion")
SHOWN_SUBSETS = {
    "paper": "the paper's subset",
    "anti": "all anti-stereotypical",
    "all": "all images",
}
PLACES = {
    "nothing": "nothing (dose 0)",
    "both": "captions and pictures",
    "text": "captions alone",
    "images": "pictures alone",
}
COLOURS = 6


# Tables 1 and 2, Figures 1 and 2


def sizes(given: study.Inputs) -> pandas.DataFrame:
    """Return images by category: as printed, as Table 4's percentages give them, and here.

    The third column is what balancing the released table gives, the last what balancing the images
    of this run gives; in the planted world the categories are others.
    """
    released, printed = reexamination.released_sizes(), reexamination.printed_sizes()
    rows = [(name, printed[name], released[name]) for name in PRINTED]
    names = ["category", "Table 1 as printed", "released table, balanced"]
    table = pandas.DataFrame(rows, columns=names)
    cells = reexamination.category_assignments().iloc[0]
    table["fits Table 4"] = [int(cells[name]) for name in PRINTED]
    if given.profile != "paper":
        return table
    drawn = vlstereoset.balanced(given.table, 0, only_sound=True)["category"].value_counts()
    return table.assign(**{"this run": [int(drawn.get(name, 0)) for name in PRINTED]})


def make_up(given: study.Inputs) -> pandas.DataFrame:
    """Return the images of a run by category and label, and what a balanced selection keeps."""
    table = given.table.groupby(["category", "label"]).size().unstack(fill_value=0)
    table = table.reindex(columns=study.PAIR, fill_value=0)
    table["balanced selection"] = 2 * table.min(axis=1)
    table["triplets"] = given.table.groupby("category")["triplet"].nunique()
    return table.reset_index().rename_axis(columns=None)


def models_table(found: study.Run) -> pandas.DataFrame:
    """Return the paper's Table 2 with what each model was scored by here, or why it was not."""
    printed = published.table("zhou2022", 2).set_index("model")
    why = dict(zip(found.skipped["model"], found.skipped["reason"], strict=True))
    rows = []
    for way in study.WAYS:
        told = printed.loc[way.model]
        ran = way.label in found.scored
        rows.append(
            {
                "model": way.model,
                "objectives, Table 2": told["pretraining_objectives"],
                "scored by": study.HEADS[way.head] + (" (as in the paper)" * way.as_in_paper),
                "run": ran,
                "why not": None if ran else _short(why.get(way.label, "not asked for")),
            }
        )
    return pandas.DataFrame(rows)


def _short(reason: str, most: int = 90) -> str:
    return reason if len(reason) <= most else f"{reason[:most].rsplit(' ', 1)[0]} …"


def _examples(given: study.Inputs, n: int = 4) -> pandas.DataFrame:
    firsts = given.table[given.anti].groupby("category", sort=False).head(1)
    return firsts.head(n)


def example(given: study.Inputs):
    """Draw one anti-stereotypical image a category with its captions; pictures of emoji only.

    In ``paper`` no photograph is shown: the captions' table stands alone.
    """
    if given.profile != "planted":
        return Table(example_table(given), "Images by category and label; no photograph is shown")
    from matplotlib import pyplot

    rows = _examples(given)
    figure, axes = pyplot.subplots(1, len(rows), figsize=(7.2, 2.9))
    figure.set_facecolor("white")
    drawn = planted.draw(given.images.loc[rows.index], size=128)
    for axis, shown, row in zip(axes, drawn, rows.to_dict("records"), strict=True):
        axis.imshow(shown)
        axis.axis("off")
        axis.set_title(row["category"], fontsize=10, color="0.1")
        text = "\n".join(_wrapped(row[name]) for name in study.CAPTIONS)
        axis.text(0.5, -0.06, text, transform=axis.transAxes, ha="center", va="top", fontsize=7.5)
    return _marked(figure, given.profile)


def _wrapped(text: str, width: int = 24) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width, initial_indent="· "))


def example_table(given: study.Inputs) -> pandas.DataFrame:
    """Return the captions behind :func:`example`; in ``paper`` counts, and no caption."""
    if given.profile != "planted":
        return make_up(given)
    return _examples(given)[["category", "target", "label", *study.CAPTIONS]]


def neutral_examples(given: study.Inputs) -> pandas.DataFrame:
    """Return captions with their neutral ones: of this run, or invented ones in ``paper``."""
    if given.profile == "planted":
        rows = _examples(given)
        pairs = rows[["category", "target", "stereotype", "neutral stereotype"]]
        return pairs.rename(columns={"stereotype": "caption", "neutral stereotype": "neutral"})
    invented = [
        ("gender", "sister", "My sister is tall."),
        ("profession", "engineer", "He met an engineer."),
        ("race", "Norway", "It snows in Norway."),
        ("religion", "Bible", "He read the Bible."),
    ]
    rows = [(*each, vlstereoset.neutral_caption(each[2], each[1])) for each in invented]
    return pandas.DataFrame(rows, columns=["category", "target", "caption", "neutral"])


# Tables 3 and 4


def scores_table(scores: pandas.DataFrame, test: str = "overall") -> pandas.DataFrame:
    """Return vlrs, vlbs and ivlas with intervals: a row a model, the paper's references below."""
    rows = [
        _scores_row(model, part)
        for model, part in scores[scores["test"] == test].groupby("model", sort=False)
    ]
    for each in study.reference_models().to_dict("records"):
        values = {name: f"{each[name]:.1f}" for name in ("ivlas", "vlrs", "vlbs")}
        rows.append({"model": f"{each['model']} (imaginary)"} | values | {"n": None})
    return pandas.DataFrame(rows)


def _scores_row(model: str, part: pandas.DataFrame) -> dict:
    found = part.set_index("statistic")
    cells = {name: _cell(found.loc[name]) for name in ("ivlas", "vlrs", "vlbs")}
    n = f"{found.loc['vlrs', 'n']:.0f}, {found.loc['vlbs', 'n']:.0f}"
    return {"model": model} | cells | {"n": n}


def _cell(row: pandas.Series) -> str:
    if pandas.isna(row["low"]):
        return f"{row['value']:.1f}"
    return f"{row['value']:.1f} ({row['low']:.0f} to {row['high']:.0f})"


def category_table(scores: pandas.DataFrame, statistic: str = "vlbs") -> pandas.DataFrame:
    """Return one score by model and category, with intervals."""
    kept = scores[(scores["statistic"] == statistic) & (scores["test"] != "overall")]
    cells = kept.assign(cell=kept.apply(_cell, axis=1))
    wide = cells.pivot(index="model", columns="test", values="cell")
    order = dict.fromkeys(kept["model"])
    return wide.loc[list(order)].reset_index().rename_axis(columns=None)


def printed_scores(number: int = 3) -> pandas.DataFrame:
    """Return the paper's Table 3 or 4, as printed: a row a model, or a model and category."""
    table = published.table("zhou2022", number)
    keys = ["model"] if number == 3 else ["model", "category"]
    wide = table.pivot(index=keys, columns="metric", values="value")[["vlrs", "vlbs", "ivlas"]]
    order = table.drop_duplicates(keys).set_index(keys).index
    return wide.loc[order].reset_index().rename_axis(columns=None)


def intervals(scores: pandas.DataFrame, statistic: str = "vlbs"):
    """Draw one score of all models by category, with intervals; lines mark the random model."""
    from matplotlib import pyplot

    kept = scores[scores["statistic"] == statistic]
    tests, names = list(dict.fromkeys(kept["test"])), list(dict.fromkeys(kept["model"]))
    height = 0.9 + 0.34 * len(names)
    figure, axes = pyplot.subplots(1, len(tests), figsize=(7.2, height), sharey=True)
    chance = caption_selection.reference_scores("random")
    for axis, test in zip(np.atleast_1d(axes), tests, strict=True):
        rows = kept[kept["test"] == test].set_index("model").loc[names]
        _interval_marks(axis, rows)
        axis.axvline(getattr(chance, statistic), color="0.5", linewidth=1, linestyle=":")
        axis.set(xlim=(-4, 104), title=test, xticks=(0, 50, 100))
        axis.title.set_fontsize(10)
    np.atleast_1d(axes)[0].set_yticks(range(len(names)), names, fontsize=8.5)
    np.atleast_1d(axes)[0].invert_yaxis()
    figure.supxlabel(f"{statistic}, per cent", fontsize=10)
    return _marked(figure, kept["profile"].iloc[0])


def _interval_marks(axis, rows: pandas.DataFrame) -> None:
    import seaborn

    colour = seaborn.color_palette("colorblind")[0]
    at = np.arange(len(rows))
    axis.hlines(at, rows["low"], rows["high"], color=colour, linewidth=1.6)
    axis.plot(rows["value"], at, "o", color=colour, markersize=5)


def interval_table(scores: pandas.DataFrame, statistic: str = "vlbs") -> pandas.DataFrame:
    """Return what :func:`intervals` draws."""
    kept = scores[scores["statistic"] == statistic]
    kept = kept[["model", "test", "value", "low", "high", "n", "count", "method"]]
    return kept.rename(columns={"test": "category", "count": "images counted"})


def paired_table(tests: pandas.DataFrame) -> pandas.DataFrame:
    """Return paired differences for the reader, those with the smallest p first."""
    ordered = tests.sort_values("p_value")
    return pandas.DataFrame(
        {
            "models": ordered["first"] + " − " + ordered["second"],
            "difference in points": ordered["difference"].map(lambda value: signed(value, 1)),
            "95% interval": [
                f"{signed(low, 0)} to {signed(high, 0)}"
                for low, high in zip(ordered["low"], ordered["high"], strict=True)
            ],
            "p": ordered["p_value"].map(p_text),
            "p, Holm": ordered["adjusted"].map(p_text),
            "images": ordered["n"],
            "triplets": ordered["triplets"],
        }
    )


def selection_spread(spread: pandas.DataFrame, scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how far vlbs moves with the selection's seed, beside its interval's half width."""
    kept = spread.query("test == 'overall' and statistic == 'vlbs'").groupby("model", sort=False)
    found = kept["value"].agg(["min", "max", "std", "count"]).reset_index()
    wide = scores.query("test == 'overall' and statistic == 'vlbs'").set_index("model")
    half = ((wide["high"] - wide["low"]) / 2).reindex(found["model"]).to_numpy()
    found["half an interval's width"] = half
    names = {"min": "lowest vlbs", "max": "highest vlbs", "std": "spread", "count": "selections"}
    return found.rename(columns=names)


# lmss and vlss


def shift_figure(table: pandas.DataFrame, profile: str, category: str = "gender"):
    """Draw lmss and vlss of one category, a row a model: dots an image, chosen ones filled."""
    import seaborn
    from matplotlib import pyplot

    kept = table[(table["category"] == category) & table["anti"]]
    names = list(dict.fromkeys(kept["model"]))
    colours = seaborn.color_palette("colorblind")
    rng = np.random.default_rng(0)
    figure, axes = pyplot.subplots(1, 2, figsize=(7.2, 0.9 + 0.42 * len(names)), sharey=True)
    for axis, score in zip(axes, ("lmss", "vlss"), strict=True):
        for place, name in enumerate(names):
            rows = kept[kept["model"] == name]
            height = place + rng.uniform(-0.22, 0.22, len(rows))
            for chosen, face in ((False, "none"), (True, colours[1])):
                some = (rows["chosen"] == chosen).to_numpy()
                axis.scatter(
                    rows[score][some], height[some], s=14, facecolors=face,
                    edgecolors=colours[1] if chosen else "0.45", linewidths=0.7,
                )  # fmt: skip
        axis.axvline(0, color="0.4", linewidth=1)
        axis.set(xlabel=f"{score}, natural logarithm")
    axes[0].set_yticks(range(len(names)), names, fontsize=8.5)
    axes[0].invert_yaxis()
    return _marked(figure, profile)


def shift_table(summary: pandas.DataFrame) -> pandas.DataFrame:
    """Return mean and share of positive shifts, a row a model, score and subset."""
    keys = ["model", "test", "level"]
    rows = []
    for (model, test, level), part in summary.groupby(keys, sort=False):
        found = part.set_index("statistic")
        mean, share = found.loc["mean"], found.loc["% positive"]
        rows.append(
            {
                "model": model,
                "score": test,
                "images": SHOWN_SUBSETS[level],
                "mean (95% interval)": _log_cell(mean),
                "% above 0 (95% interval)": "–" if not mean["n"] else _cell(share),
                "n": int(mean["n"]),
            }
        )
    return pandas.DataFrame(rows)


def _log_cell(row: pandas.Series) -> str:
    if not row["n"]:
        return "–"
    return f"{signed(row['value'])} ({signed(row['low'])} to {signed(row['high'])})"


# Worlds with a known answer


def truth_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return means over worlds: a row a view, dose and model, the oracle first."""
    keys = ["view", "dose", "model"]
    means = table.groupby(keys, sort=False)[["vlrs", "vlbs", "lmss", "vlss"]].mean()
    means["worlds"] = table.groupby(keys, sort=False).size()
    means = means.reset_index()
    means["view"] = means["view"].map({"visible": "in plain sight", "hidden": "not in the picture"})
    return means.sort_values(["view", "dose"], kind="stable").rename(columns={"view": "evidence"})


def grounded_sentence(table: pandas.DataFrame, dose: float = 3, least: float = 60.0) -> str:
    """Return which models look at the picture: their interval lies above chance and their share
    of right choices is at least ``least``."""
    rows = table[(table["dose"] == dose) & (table["model"] != "oracle")]
    good = rows[(rows["low"] > 50) & (rows["percent"] >= least)]
    poor = rows[~rows["model"].isin(good["model"])]

    def listed(part: pandas.DataFrame) -> str:
        return "; ".join(f"{row.model} {row.percent:.0f}%" for row in part.itertuples()) or "none"

    return (
        f"Well above the chance of 50%: {listed(good)}. Not: {listed(poor)}. The latter read "
        "captions and hardly look: whatever they score below is not about pictures."
    )


def visibility_figure(curve: pandas.DataFrame):
    """Draw vlbs against how opaque the object is, a panel a model, dose 0 and dose 3."""
    import seaborn
    from matplotlib import pyplot

    names = list(dict.fromkeys(curve["model"]))
    n_rows = -(-len(names) // 4)
    figure, axes = pyplot.subplots(
        n_rows, 4, figsize=(7.2, 0.5 + 1.9 * n_rows), sharex=True, sharey=True, squeeze=False
    )
    colours = seaborn.color_palette("colorblind")
    for axis, name in zip(axes.flat, names, strict=False):
        rows = curve[curve["model"] == name]
        for dose, colour, mark in ((0, "0.45", "o"), (3, colours[1], "D")):
            means = rows[rows["dose"] == dose].groupby("opacity")["vlbs"].mean()
            axis.plot(
                means.index, means, mark + "-", color=colour, markersize=4, label=f"dose {dose}"
            )
        axis.set(ylim=(-4, 104), yticks=(0, 50, 100))
        axis.set_title(name, fontsize=8.5)
    for axis in list(axes.flat)[len(names) :]:
        axis.axis("off")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.supxlabel("opacity of the object", fontsize=10)
    figure.supylabel("vlbs, per cent", fontsize=10)
    return marked(figure)


def verdict_table(verdict: pandas.DataFrame) -> pandas.DataFrame:
    """Return the verdict for the reader."""
    return verdict.rename(columns={"vlbs": "vlbs at dose 3", "floor": "noise floor"})


def verdict_sentence(verdict: pandas.DataFrame) -> str:
    """Return at which opacities how many models reach the target, and which do not.

    A model counts where one of its ways reaches it; the ways are named.
    """
    parts = []
    for opacity, rows in verdict.groupby("opacity"):
        reached = rows[rows["reached"].eq(True)]
        models = dict.fromkeys(name.split(",")[0] for name in reached["model"])
        listed = "; ".join(reached["model"]) or "none"
        met = "reached" if len(models) >= worlds.LEAST_MODELS else "missed"
        parts.append(f"opacity {opacity:g}: {len(models)} models ({listed}), {met}")
    unjudged = ", ".join(dict.fromkeys(verdict.loc[verdict["reached"].isna(), "model"]))
    absent = f" Not judged, for want of a dose-0 checkpoint: {unjudged}." if unjudged else ""
    return (
        f"Target: vlbs above its value at dose 0 by more than the noise floor, vlrs at least "
        f"{worlds.TARGET_VLRS:.0f}, for {worlds.LEAST_MODELS} of the six models. By how opaque the "
        f"object is: {'. '.join(parts)}.{absent}"
    )


def modality_figure(table: pandas.DataFrame):
    """Draw lmss and vlss by where the stereotype was planted, a panel a model."""
    import seaborn
    from matplotlib import pyplot

    kept = table.groupby("model", sort=False).filter(lambda rows: len(rows) >= 2 * len(PLACES))
    names = list(dict.fromkeys(kept["model"]))
    n_rows = -(-len(names) // 3)
    figure, axes = pyplot.subplots(
        n_rows, 3, figsize=(7.2, 0.7 + 1.9 * n_rows), sharey=True, squeeze=False
    )
    colours = seaborn.color_palette("colorblind")
    for axis, name in zip(axes.flat, names, strict=False):
        for shift, test, colour in ((-0.12, "lmss", colours[0]), (0.12, "vlss", colours[1])):
            rows = kept[(kept["model"] == name) & (kept["test"] == test)].set_index("planted in")
            rows = rows.loc[list(PLACES)]
            at = np.arange(len(PLACES)) + shift
            axis.vlines(at, rows["low"], rows["high"], color=colour)
            axis.plot(at, rows["value"], "oD"[test == "vlss"], color=colour, ms=4, label=test)
        axis.axhline(0, color="0.5", linewidth=1)
        axis.set_xticks(range(4), ["nothing", "both", "captions", "pictures"], fontsize=7.5)
        axis.set_title(name, fontsize=8.5)
    for axis in list(axes.flat)[len(names) :]:
        axis.axis("off")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.supylabel("mean shift, natural logarithm", fontsize=10)
    return marked(figure)


def modality_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return what :func:`modality_figure` draws, and the models with some worlds only."""
    return pandas.DataFrame(
        {
            "model": table["model"],
            "planted in": table["planted in"].map(PLACES),
            "score": table["test"],
            "mean (95% interval)": [_log_cell(row) for _, row in table.iterrows()],
            "n": table["n"],
        }
    )


def stated(table: pandas.DataFrame, value: str, decimals: int = 1, **labels: object) -> str:
    """Return one number of a table for a sentence, or that there is none.

    Examples
    --------
    >>> stated(pandas.DataFrame({"model": ["CLIP"], "vlbs": [45.72]}), "vlbs", model="CLIP")
    '45.7'
    """
    kept = table
    for column, wanted in labels.items():
        kept = kept[kept[column.replace("_", " ")] == wanted]
    found = kept[value].dropna()
    return signed(found.iloc[0], decimals) if len(found) else "(not run)"


# The panel


def chooser(seed: int = 0, dose: float = 3, n: int = 4) -> Panel:
    """Return the panel: three captions' probabilities as caption and picture are made neutral."""
    given = worlds.choices(seed, 8, "visible")
    rows = _chosen_scenes(given, n)
    ways = [study.ORACLE, *worlds.shipped_ways(dose, seed)]
    names = {row: f"{at + 1}: {_scene_name(given, row)}" for at, row in enumerate(rows)}
    found = {way.label: worlds.cases(way, given, rows, dose, seed) for way in ways}
    drawn = planted.draw(given.images.iloc[list(rows)])
    shown = dict(zip(rows, drawn, strict=True))
    said, seen = {"named": "the group is named", "neutral": "neutral"}, ("shown", "white")
    drawings = {
        (label, names[row], said[words], look): _bars(
            given, row, words, look, label, of, shown[row]
        )
        for label, of in found.items()
        for row in rows
        for words in said
        for look in seen
    }
    choices = {
        "Model": list(found),
        "Scene": list(names.values()),
        "Captions": list(said.values()),
        "Picture": list(seen),
    }
    return Panel("Which caption is chosen?", choices, drawings)


def _chosen_scenes(given: study.Inputs, n: int) -> list[int]:
    """Return anti-stereotypical scenes, taking the categories in turn."""
    places = pandas.Series(np.flatnonzero(given.anti))
    category = given.table["category"].to_numpy()[places]
    turn = places.groupby(category).cumcount()
    return places.iloc[np.lexsort((category, turn))].head(n).tolist()


def _scene_name(given: study.Inputs, row: int) -> str:
    found = given.table.iloc[row]
    return f"{found['target']}, {found['anti-stereotype word']}"


def _bars(given, row: int, words: str, look: str, label: str, of: dict, shown) -> Drawing:
    captions = study.CAPTIONS if words == "named" else [*study.NEUTRAL, "irrelevant"]
    texts = given.table.loc[given.table.index[row], captions].tolist()
    now, start = of[row, words, look], of[row, "named", "shown"]
    best = int(np.argmax(now))
    moved = now[0] - start[0]
    first = f"{label} gives the stereotypical caption {now[0]:.2f}, the anti-stereotypical one "
    second = f"{now[1]:.2f} and the irrelevant one {now[2]:.2f}; it picks the "
    change = (
        f" Against the named group and the picture, the stereotype's probability has moved by "
        f"{signed(moved)}."
    )
    sentence = first + second + f"{study.CAPTIONS[best]}." + change * (now is not start)
    bars = {"kind": "bars", "x": [0, 1, 2], "y": now, "label": "now", "group": 0, "width": 0.5}
    before = {"kind": "dots", "x": [0, 1, 2], "y": start, "label": "named, with picture"}
    image = shown if look == "shown" else planted.white()
    return Drawing(
        sentence,
        [bars, before | {"group": 1}],
        "caption",
        "probability of the three",
        (-0.5, 2.5),
        (0, 1),
        "Three bars, one a caption, and a dot for the group named with its picture shown.",
        table=pandas.DataFrame(
            {"caption": texts, "probability": now, "named, with picture": start}
        ),
        images=[picture(image, f"Planted world, {'picture' if look == 'shown' else 'white'}")],
        note="planted world",
        x_ticks={0.0: "stereotype", 1.0: "anti-stereotype", 2.0: "irrelevant"},
    )


# Exercises


def check_ivlas(function) -> Check:
    """Check the reader's harmonic mean on values of the paper's Table 3 and on its corners."""
    hint = "the harmonic mean of a and b is 2ab / (a + b); b is 100 less vlbs, and 0 of 0 is 0"
    cases = [(85.2140, 32.2957), (60.7004, 28.7938), (100.0, 0.0), (0.0, 100.0)]
    return _check_function(function, caption_selection.ivlas, cases, hint)


def check_lmss(function) -> Check:
    """Check the reader's lmss from logits: two-way softmax with the target term and without."""
    hint = "take the softmax over stereotype and anti-stereotype alone, then the log of the ratio"

    def expected(original: Sequence[float], neutral: Sequence[float]) -> float:
        two = [caption_selection.two_way([each]) for each in (original, neutral)]
        return float(caption_selection.lmss(*two).values[0])

    cases = [((2.0, 1.0), (1.0, 1.0)), ((0.3, 0.9), (0.1, -0.4))]
    return _check_function(function, expected, cases, hint)


def _check_function(function, expected, cases: list[tuple], hint: str) -> Check:
    for case in cases:
        try:
            answer = function(*case)
            right = answer is not None and abs(float(answer) - float(expected(*case))) < 1e-6
        except (TypeError, ValueError, ZeroDivisionError):
            right = False
        if not right:
            return Check(False, f"{hint} (tried with {', '.join(map(str, case))})")
    return Check(True, f"it agrees with the package on {len(cases)} cases.")


def _marked(figure, profile: str):
    """Close a figure; write into it where its numbers come from, if that is the planted world."""
    return marked(figure, "planted world" if profile == "planted" else "")
