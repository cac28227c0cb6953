"""Study 4 where the answer is known: figures, tables and sentences of the verdict."""

import functools

import numpy as np
import pandas

import plantedworld
from biaslib.metrics import caption_selection
from biaslib.report import Drawing, Panel, interval_text, marked, picture, signed, subplots
from biaslib.report.study4_captions import LOOKED_AT, names_modality, stated
from biaslib.studies import study4_captions as study
from plantedworld.inputs import study4_captions as planted
from plantedworld.studies import study4_captions as worlds

PLANTED = ("text", "images")

APART = "oracle, genders independent"


def grounded_sentence(look: pandas.DataFrame, dose: float = 3) -> str:
    """Return which models look at objects and at costumes, and which do not."""
    kept, parts = look[(look["dose"] == dose) & (look["model"] != "oracle")], []
    for category in worlds.ANSWERED:
        good = worlds.looking(look, category, dose)
        rows = kept[kept["category"] == category]
        listed = [
            "; ".join(f"{row.model} {row.percent:.0f}%" for row in part.itertuples()) or "none"
            for part in (rows[rows["model"].isin(good)], rows[~rows["model"].isin(good)])
        ]
        parts.append(f"At {LOOKED_AT[category]} look: {listed[0]}; not: {listed[1]}.")
    return (
        f"Right in at least {worlds.LEAST_GROUNDED:.0f}%, with an interval above the chance of "
        f"50%, at dose {dose:g}. {' '.join(parts)} Where a model does not look, whatever it scores "
        "below is about captions and not about pictures."
    )


def frequency_sentence(often: pandas.DataFrame) -> str:
    """Return how frequent both kinds of irrelevant captions are against stereotypical ones."""
    table, parts = often.set_index("caption"), []
    for name in ("irrelevant", worlds.OTHER_IRRELEVANT):
        word, whole = (
            table.loc[name, column] / table.loc["stereotype", column]
            for column in ("word, per 1,000 captions", "caption, per 100,000")
        )
        parts.append((word, whole))
    (word, whole), (thing, photo) = parts
    return (
        f"Against a stereotypical caption, the irrelevant one of the same person in the same frame "
        f"is {whole:.1f} times as frequent in training, and its word {word:.1f} times. A photo of "
        f"a thing is {photo:.1f} times as frequent, its word {thing:.2f} times."
    )


def relevance_sentence(relevant: pandas.DataFrame) -> str:
    """Return which models have a vlrs of 80 against either kind of irrelevant caption."""
    rows = relevant[relevant["model"] != "oracle"]
    parts = []
    for kind, what in (("third word", "a third word"), ("thing", "a photo of a thing")):
        low = rows[rows[kind] < worlds.TARGET_VLRS]
        listed = "; ".join(f"{row['model']} {row[kind]:.0f}" for _, row in low.iterrows())
        parts.append(f"against {what} below {worlds.TARGET_VLRS:.0f}: {listed or 'none'}")
    chance = caption_selection.reference_scores("random").vlrs
    blind = rows["third word, white picture"]
    return (
        f"vlrs {parts[0]}; {parts[1]}. Of three alike captions {chance:.0f} is chance. With a "
        f"white picture, which rules nothing out, models have {blind.min():.0f} to "
        f"{blind.max():.0f} against a third word: that much needs no picture."
    )


def visibility_figure(verdict: pandas.DataFrame):
    """Draw vlbs against how opaque the object is, a panel a model, dose 0 and dose 3.

    Around dose 0 the noise floor; at dose 3 the interval of the rise; dotted, the opacity of the
    target.
    """
    names = list(dict.fromkeys(verdict["model"]))
    n_rows = -(-len(names) // 4)
    figure, axes = subplots(
        n_rows, 4, height=0.5 + 2.1 * n_rows, sharex=True, sharey=True, squeeze=False
    )
    colour = "C1"
    for axis, name in zip(axes.flat, names, strict=False):
        rows = verdict[verdict["model"] == name].sort_values("opacity")
        at, zero, floor = (rows[each] for each in ("opacity", "vlbs at dose 0", "floor"))
        axis.fill_between(at, zero - floor, zero + floor, color="0.85", label="noise floor")
        axis.plot(at, zero, "o-", color="0.45", markersize=4, label="dose 0")
        axis.vlines(at, zero + rows["low"], zero + rows["high"], color=colour)
        axis.plot(at, rows["vlbs"], "D-", color=colour, markersize=4, label="dose 3")
        axis.axvline(worlds.TARGET_OPACITY, color="0.5", linewidth=1, linestyle=":")
        axis.set(ylim=(-4, 104), yticks=(0, 50, 100))
        if not rows["looks"].iloc[0]:
            axis.text(0.5, 0.05, "does not look", transform=axis.transAxes, ha="center", fontsize=8)
        axis.set_title(name.replace(", ", ",\n"), fontsize=8)
    for axis in list(axes.flat)[len(names) :]:
        axis.axis("off")
    axes[0, 0].legend(frameon=False, fontsize=7)
    figure.supxlabel("opacity of the object", fontsize=10)
    figure.supylabel("vlbs, per cent", fontsize=10)
    return marked(figure)


def floor_sentence(floor: pandas.DataFrame) -> str:
    """Return what the noise floor is made of, at the opacity of the target."""
    row = floor.set_index("opacity").loc[worlds.TARGET_OPACITY]
    return (
        f"The noise floor at opacity {worlds.TARGET_OPACITY:g} is {row['floor']:.1f} points: 95% "
        f"of {row['choices']} choices among {row['checkpoints']} checkpoints without bias, of "
        f"{row['models'].replace(', ', ' and ')}, stay within it. The other models have too few "
        "for such choices, and are judged by the same floor."
    )


def verdict_sentence(verdict: pandas.DataFrame) -> str:
    """Return how many models reach the target at the opacity set for it, and why others do not.

    A model is judged in the way of the paper; other ways are in the table.
    """
    own = [way.label for way in study.WAYS if way.as_in_paper]
    rows = verdict[verdict["opacity"].eq(worlds.TARGET_OPACITY) & verdict["model"].isin(own)]
    judged = rows[rows["reached"].notna()]
    reached = judged[judged["reached"].eq(True)]
    met = "reached" if len(reached) >= worlds.LEAST_MODELS else "NOT reached"
    good = "; ".join(f"{each['model']} {_risen(each)}" for _, each in reached.iterrows())
    poor = "; ".join(_shortfall(each) for _, each in judged[judged["reached"].eq(False)].iterrows())
    unjudged = ", ".join(rows.loc[rows["reached"].isna(), "model"])
    absent = f" Not judged, for want of a dose-0 checkpoint: {unjudged}." if unjudged else ""
    return (
        f"Target, at opacity {worlds.TARGET_OPACITY:g}, for {worlds.LEAST_MODELS} of the six "
        "models as the paper scores them: the model looks, vlrs is at least "
        f"{worlds.TARGET_VLRS:.0f}, and vlbs rises above its value at dose 0 by more than the "
        f"noise floor. {len(reached)} models: **{met}**. They are: {good or 'none'}. "
        f"Missed by: {poor or 'none'}.{absent}"
    )


def _risen(row: pandas.Series) -> str:
    bounds = interval_text(row["low"], row["high"], 1)
    return f"rises by {row['rise']:.1f} ({bounds}; floor {row['floor']:.1f})"


def _shortfall(row: pandas.Series) -> str:
    if not row["looks"]:
        return f"{row['model']} (does not look)"
    if row["vlrs"] < worlds.TARGET_VLRS:
        return f"{row['model']} (vlrs {row['vlrs']:.0f})"
    return f"{row['model']} ({_risen(row)})"


def modality_sentence(where: pandas.DataFrame) -> str:
    """Return whether lmss and vlss name the modality, for both oracles, with their values."""
    parts = []
    for model in ("oracle", APART):
        of_model = functools.partial(stated, where, "value", 2, model=model)
        lmss, vlss = (
            [of_model(test=test, planted_in=place) for place in PLANTED]
            for test in ("lmss", "vlss")
        )
        verdict = "name" if names_modality(where, model) else "do **not** name"
        parts.append(
            f"the scores {verdict} the modality: lmss is {lmss[0]} where captions alone carry the "
            f"stereotype and {lmss[1]} where pictures alone do, vlss is {vlss[0]} and {vlss[1]}"
        )
    wrong = plantedworld.world(3, 0).wrong_gender
    return (
        f"For a perfect model of these worlds, {parts[0]}. Captions and pictures agree about "
        f"gender in {100 * (1 - wrong):.0f}% of the scenes there, so that the picture tells who "
        f"the caption is about. Where the two are independent, {parts[1]}."
    )


def chooser(seed: int = 0, dose: float = 3, n: int = 4) -> Panel:
    """Return the panel: three captions' probabilities as caption and picture are made neutral."""
    given = worlds.choices(seed, 8, "visible")
    rows = _chosen_scenes(given, n)
    ways = [planted.ORACLE, *worlds.shipped_ways(dose, seed)]
    names = {row: f"{at + 1}: {_scene_name(given, row)}" for at, row in enumerate(rows)}
    found = {way.label: worlds.cases(way, given, rows, dose, seed) for way in ways}
    drawn = plantedworld.draw(given.images.frame.iloc[list(rows)])
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
    image = shown if look == "shown" else plantedworld.white()
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
