"""Study 4 where the answer is known: figures, tables and panel."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas

import plantedworld
from biaslib import models
from biaslib.display import dots, interval_text, marked, signed, subplots
from biaslib.metrics import caption_selection
from biaslib.studies import study4_captions as study
from companion._check import Check, judge, judge_list
from companion._drawing import Drawing, picture
from companion._explorer import Panel
from companion.study4_captions import score_cell, shift_cell, tiny_name
from plantedworld.inputs import study4_captions as planted
from plantedworld.studies import study4_captions as worlds

LOOKED_AT = {"both": "both", "gender": "an object", "profession": "a costume"}
"""What tells the right caption, by category."""

PLACES = {
    "nothing": "nothing (dose 0)",
    "both": "captions and pictures",
    "text": "captions alone",
    "images": "pictures alone",
}

EVIDENCE = {"visible": "in plain sight", "hidden": "not in the picture"}
STRENGTHS = ((0, "no bias", "o", "0.45"), (3, "planted bias of dose 3", "D", "C1"))
"""Doses, what they are called, and how they are drawn."""


def choice(given: study.Inputs, row: int, shares: np.ndarray):
    """Draw one scene, and the probabilities of its three captions as bars beside it."""
    figure, (left, right) = subplots(1, 2, height=2.5, width_ratios=[1, 1.1])
    figure.set_facecolor("white")
    left.imshow(given.images[row], interpolation="lanczos")
    left.axis("off")
    said = given.table.iloc[row]
    names = [f"{said[name]}\n({name})" for name in study.CAPTIONS]
    right.barh(names, shares, color=["C1", "C0", "0.6"], height=0.6)
    right.set(xlim=(0, 1), xlabel="probability of the three")
    right.tick_params(axis="y", labelsize=8.5, length=0)
    right.invert_yaxis()
    return marked(figure)


def choice_table(given: study.Inputs, row: int, logits: np.ndarray) -> pandas.DataFrame:
    """Return the captions of a scene with their scores and their probabilities."""
    said = given.table.iloc[row]
    return pandas.DataFrame(
        {
            "caption": [said[name] for name in study.CAPTIONS],
            "kind": study.CAPTIONS,
            "score": logits,
            "probability": caption_selection.caption_probabilities([logits])[0],
        }
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
        axis.plot(at, zero, "o-", color="0.45", markersize=4, label="without bias")
        axis.vlines(at, zero + rows["low"], zero + rows["high"], color=colour)
        axis.plot(at, rows["vlbs"], "D-", color=colour, markersize=4, label="planted bias")
        axis.axvline(worlds.TARGET_OPACITY, color="0.5", linewidth=1, linestyle=":")
        axis.set(ylim=(-4, 104), yticks=(0, 50, 100))
        if not rows["looks"].iloc[0]:
            axis.text(
                0.5, 0.05, "reads captions only", transform=axis.transAxes, ha="center", fontsize=8
            )
        axis.set_title(name.replace(", ", ",\n"), fontsize=8)
    for axis in list(axes.flat)[len(names) :]:
        axis.axis("off")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.supxlabel("opacity of the object", fontsize=10)
    figure.supylabel("vlbs, per cent", fontsize=10)
    return marked(figure)


def chosen_figure(summary: pandas.DataFrame):
    """Draw how often shifts are above 0 without bias: on all such images, and on the chosen."""
    rows = summary[(summary["statistic"] == "% positive") & (summary["dose"] == 0)]
    names = list(dict.fromkeys(rows["model"]))
    figure, axes = subplots(1, 2, height=1.1 + 0.34 * len(names), sharey=True)
    marks = (("anti", "all such images", "o", "0.45"), ("paper", "stereotype chosen", "D", "C1"))
    for axis, test in zip(axes, ("lmss", "vlss"), strict=True):
        for shift, (level, label, mark, colour) in zip((-0.13, 0.13), marks, strict=True):
            part = rows[(rows["test"] == test) & (rows["level"] == level)].set_index("model")
            dots(axis, np.arange(len(names)) + shift, part.reindex(names), colour, mark, label)
        axis.axvline(50, color="0.5", linewidth=1, linestyle=":")
        axis.set(xlim=(-4, 104), xticks=(0, 50, 100), title=f"{test} above 0")
        axis.set_xlabel("per cent of images", fontsize=10)
    return _with_names(figure, axes, names)


def _with_names(figure, axes, names: list[str]):
    """Name the rows of a figure from the top down, with one legend for all of its panels."""
    axes[0].set_yticks(range(len(names)), names, fontsize=8.5)
    axes[0].invert_yaxis()
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower right", ncols=2, frameon=False, fontsize=8.5)
    return marked(figure)


def truth_figure(table: pandas.DataFrame, scores: Sequence[str] = ("vlbs", "vlrs")):
    """Draw scores of oracle and checkpoints with the evidence in plain sight and without.

    A row a model, the oracle first: without bias and with a planted one, means over worlds, and
    small each world. Dotted, the random model.
    """
    names = list(dict.fromkeys(table["model"]))
    panels = [(score, view) for score in scores for view in EVIDENCE]
    figure, axes = subplots(1, len(panels), height=1.2 + 0.34 * len(names), sharey=True)
    chance = caption_selection.reference_scores("random")
    for axis, (score, view) in zip(axes, panels, strict=True):
        for dose, label, mark, colour in STRENGTHS:
            rows = table[table["view"].eq(view) & table["dose"].eq(dose)]
            means = rows.groupby("model")[score].mean().reindex(names)
            shift = -0.14 if dose == 0 else 0.14
            small = [names.index(name) + shift for name in rows["model"]]
            axis.plot(rows[score], small, mark, color=colour, ms=2, alpha=0.6)
            at = np.arange(len(names)) + shift
            axis.plot(means, at, mark, color=colour, ms=4.5, label=label)
        axis.axvline(getattr(chance, score), color="0.5", linewidth=1, linestyle=":")
        axis.axhline(0.5, color="0.8", linewidth=1)
        axis.set(xlim=(-6, 106), xticks=(0, 50, 100))
        axis.set_title(f"{score},\n{EVIDENCE[view]}", fontsize=9)
        axis.set_xlabel("per cent", fontsize=10)
    return _with_names(figure, axes, names)


def truth_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return means over worlds: a row a view, dose and model, the oracle first."""
    keys = ["view", "dose", "model"]
    means = table.groupby(keys, sort=False)[["vlrs", "vlbs", "lmss", "vlss"]].mean()
    means["worlds"] = table.groupby(keys, sort=False).size()
    means = means.round({"lmss": 2, "vlss": 2}).reset_index()
    means["view"] = means["view"].map(EVIDENCE)
    return means.sort_values(["view", "dose"], kind="stable").rename(columns={"view": "evidence"})


def grounding_table(look: pandas.DataFrame) -> pandas.DataFrame:
    """Return the shares of right captions: a row a model and dose, a column a category."""
    shares = look.rename(columns={"percent": "value"})
    cells = look.assign(cell=[score_cell(row) for _, row in shares.iterrows()])
    wide = cells.pivot(index=["dose", "model"], columns="category", values="cell")
    order = look.drop_duplicates(["dose", "model"]).set_index(["dose", "model"]).index
    wide = wide.loc[order, list(LOOKED_AT)].rename(columns=LOOKED_AT)
    n = look.query("category == 'gender'").set_index(["dose", "model"])["n"]
    table = wide.assign(**{"images per category": n.loc[order]}).reset_index()
    return table.rename_axis(columns=None)


def verdict_table(verdict: pandas.DataFrame) -> pandas.DataFrame:
    """Return the verdict for the reader, which is given at the opacity of the target only."""
    order = {name: at for at, name in enumerate(dict.fromkeys(verdict["model"]))}
    verdict = verdict.assign(at=verdict["model"].map(order)).sort_values(["opacity", "at"])
    table = verdict.drop(columns="at").rename(columns={"looks": "reads the picture"})
    table = table.assign(
        rise=[
            f"{signed(row['rise'], 1)} ({interval_text(row['low'], row['high'], 0)})"
            for _, row in verdict.iterrows()
        ],
        opacity=[f"{each:g}" for each in verdict["opacity"]],
        reached=[
            each if opacity == worlds.TARGET_OPACITY else None
            for each, opacity in zip(verdict["reached"], verdict["opacity"], strict=True)
        ],
    ).drop(columns=["low", "high"])
    names = {"vlbs": "vlbs at dose 3", "floor": "noise floor", "rise": "rise (95% interval)"}
    names |= {"n": "pictures"}
    return table.rename(columns=names | {"vlrs": "vlrs at dose 3"})


def modality_figure(table: pandas.DataFrame):
    """Draw lmss and vlss by where the stereotype was planted, a panel a model."""
    kept = _in_all_places(table)
    names = list(dict.fromkeys(kept["model"]))
    n_rows = -(-len(names) // 3)
    figure, axes = subplots(n_rows, 3, height=0.7 + 1.9 * n_rows, sharey=True, squeeze=False)
    for axis, name in zip(axes.flat, names, strict=False):
        for shift, test, colour in ((-0.12, "lmss", "C0"), (0.12, "vlss", "C1")):
            rows = kept[(kept["model"] == name) & (kept["test"] == test)].set_index("planted in")
            rows = rows.loc[list(PLACES)]
            at = np.arange(len(PLACES)) + shift
            dots(axis, at, rows, colour, "oD"[test == "vlss"], test, upright=True)
        axis.axhline(0, color="0.5", linewidth=1)
        axis.set_xticks(range(4), ["nothing", "both", "captions", "pictures"], fontsize=8)
        axis.set_title(name, fontsize=8.5)
    for axis in list(axes.flat)[len(names) :]:
        axis.axis("off")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.supylabel("mean shift, natural logarithm", fontsize=10)
    return marked(figure)


def _in_all_places(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows of models that were trained in all of the worlds."""
    return table.groupby("model", sort=False).filter(lambda rows: len(rows) >= 2 * len(PLACES))


def modality_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return what :func:`modality_figure` draws, and the models with some worlds only."""
    return pandas.DataFrame(
        {
            "model": table["model"],
            "planted in": table["planted in"].map(PLACES),
            "score": table["test"],
            "mean (95% interval)": [shift_cell(row) for _, row in table.iterrows()],
            "n": table["n"],
        }
    )


def chooser(seed: int = 0, dose: float = 3, n: int = 4) -> Panel:
    """Return the panel: three captions and their probabilities, made neutral or not."""
    given = worlds.choices(seed, 8, "visible")
    rows = _chosen_scenes(given, n)
    ways = [*worlds.shipped_ways(dose, seed), planted.ORACLE]
    names = {row: f"{at + 1}: {_scene_name(given, row)}" for at, row in enumerate(rows)}
    found = {tiny_name(way.label): cases(way, given, rows, dose, seed) for way in ways}
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


def cases(
    way: study.ModelHead, given: study.Inputs, rows: Sequence[int], dose: float, seed: int
) -> dict[tuple[int, str, str], np.ndarray]:
    """Return three probabilities by scene, captions (named, neutral) and picture (shown, white).

    The softmax of all three captions; beside neutral ones the irrelevant one is neutral too.
    """
    part = given.part(rows)
    model = models.load(way.planted, profile="planted", dose=dose, seed=seed)
    scale = getattr(model, "scale", 1.0) if way.head != "matching" else 1.0
    pictures = {"shown": part.images, "white": given.white.part([0] * len(rows))}
    shares = {}
    for said, (seen, images) in itertools.product(("named", "neutral"), pictures.items()):
        scores = study.caption_scores(model, way.head, images, captions_of(given, rows, said))
        probabilities = caption_selection.caption_probabilities(scores, scale)
        shares |= {(row, said, seen): p for row, p in zip(rows, probabilities, strict=True)}
    return shares


def captions_of(given: study.Inputs, rows: Sequence[int], said: str = "named") -> list[list[str]]:
    """Return the three captions of scenes: as they are, or ``neutral``, which name no group.

    Examples
    --------
    >>> captions_of(worlds.choices(0, 2), [0], "neutral")[0][2].startswith("the person is")
    True
    """
    table = given.table.iloc[list(rows)]
    if said == "named":
        return table[study.CAPTIONS].to_numpy().tolist()
    irrelevant = table["irrelevant"].map(_neutral)
    return table[study.NEUTRAL].assign(irrelevant=irrelevant).to_numpy().tolist()


def _neutral(caption: str) -> str:
    """Return a caption about a person without the group; about a thing, as it is."""
    reading = plantedworld.read(caption)[0]
    if not reading.agent:
        return caption
    return plantedworld.frames()[reading.frame].write(reading.content, "person")


def _chosen_scenes(given: study.Inputs, n: int) -> list[int]:
    """Return anti-stereotypical scenes, taking the categories in turn."""
    places = pandas.Series(np.flatnonzero(given.anti))
    category = given.table["category"].to_numpy()[places]
    turn = places.groupby(category).cumcount()
    return places.iloc[np.lexsort((category, turn))].head(n).tolist()


def _scene_name(given: study.Inputs, row: int) -> str:
    found = given.table.iloc[row]
    return f"{found['target']}, {found['anti-stereotype word']}"


AS_GOOD_AS_TIED = 0.01
"""Two probabilities that lie closer together are read as a tie."""


def _bars(given, row: int, words: str, look: str, label: str, of: dict, shown) -> Drawing:
    texts = captions_of(given, [row], words)[0]
    now, start = of[row, words, look], of[row, "named", "shown"]
    parts = [
        f"“{text}” ({kind}) {share:.2f}"
        for text, kind, share in zip(texts, study.CAPTIONS, now, strict=True)
    ]
    who = "The oracle" if label == "oracle" else label
    sentence = f"{who} gives {', '.join(parts)}; {_picked(now)}."
    if now is not start:
        sentence += (
            " Compared with captions that name the group and with the picture shown, the "
            f"stereotype's probability has moved by {signed(now[0] - start[0])}."
        )
    bars = {"kind": "bars", "x": [0, 1, 2], "y": now, "label": "now", "group": 0, "width": 0.5}
    before = {"kind": "dots", "x": [0, 1, 2], "y": start, "label": "named, with picture"}
    image = shown if look == "shown" else plantedworld.white()
    seen = "the picture" if look == "shown" else "a white one"
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
        ).round(2),
        images=[picture(image, f"Planted world, {seen}")],
        note="planted world",
        x_ticks={0.0: "stereotype", 1.0: "anti-stereotype", 2.0: "irrelevant"},
    )


def _picked(shares: np.ndarray) -> str:
    """Return what was picked, or that the two highest are as good as tied."""
    second, first = np.argsort(shares)[-2:]
    if shares[first] - shares[second] < AS_GOOD_AS_TIED:
        names = sorted((first, second))
        tied = " and the ".join(study.CAPTIONS[each] for each in names)
        return f"the {tied} are as good as tied, which is no pick"
    return f"it picks the {study.CAPTIONS[first]}"


# Exercises

FOUR_MODELS = {
    "A": ("yes", "all that is asked for is met, by the interval too"),
    "B": ("no", "what does a model read that is right as often as chance?"),
    "C": ("open", "compare both ends of the interval with the noise floor"),
    "D": ("no", "is the rise above what models without bias have among themselves?"),
}
"""The exercise's four invented models: whether vlbs has found a bias, and a hint."""


def check_blind(answer) -> Check:
    """Judge vlrs, vlbs and the share of right captions of a model that ignores pictures.

    Examples
    --------
    >>> check_blind([100, 70, 70])
    Not yet: which caption does it pick for the two images of one triplet?
    """
    hint = "which caption does it pick for the two images of one triplet?"
    return judge(answer, [100, 70, 50], hint)


def check_four(answer) -> Check:
    """Check for which of :data:`FOUR_MODELS` the reader says that vlbs has found a bias.

    Examples
    --------
    >>> check_four(["yes", "yes", "yes", "no"])
    Not yet: 2 of 4 are right; model B: what does a model read that is right as often as chance?
    """
    form = "give four of 'yes', 'no' and 'open', in the order of the models"
    expected, hints = zip(*FOUR_MODELS.values(), strict=True)
    hints = [f"model {model}: {hint}" for model, hint in zip(FOUR_MODELS, hints, strict=True)]
    learned = "a rise counts only in a model that reads pictures, and beyond the noise."
    return judge_list(answer, expected, form, hints, learned)
