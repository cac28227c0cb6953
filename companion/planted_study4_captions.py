"""Study 4 where the answer is known: figures, tables and sentences of the verdict."""

import functools
from collections.abc import Sequence

import numpy as np
import pandas

import plantedworld
from biaslib.display import counted, dots, interval_text, marked, signed, subplots
from biaslib.metrics import caption_selection
from biaslib.studies import study4_captions as study
from companion._check import Check, judge, judge_list
from companion._drawing import Drawing, picture
from companion._explorer import Panel
from companion.study4_captions import score_cell, shift_cell, tiny_name
from plantedworld.inputs import study4_captions as planted
from plantedworld.studies import study4_captions as worlds

PLANTED = ("text", "images")

APART = "oracle, genders independent"

LOOKED_AT = {"both": "both", "gender": "an object", "profession": "a costume"}
"""What tells the right caption, by category."""

PLACES = {
    "nothing": "nothing (dose 0)",
    "both": "captions and pictures",
    "text": "captions alone",
    "images": "pictures alone",
}

OWN_WAYS = [way.label for way in study.MODEL_HEADS if way.as_in_paper]
"""How models are scored in the paper; other ways are in the tables alone."""

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


def grounded_sentence(look: pandas.DataFrame, dose: float = 3) -> str:
    """Return which models look at objects and at costumes, and which do not."""
    kept, parts = look[(look["dose"] == dose) & (look["model"] != "oracle")], []
    for category in worlds.ANSWERED:
        good = worlds.looking(look, category, dose)
        rows = kept[kept["category"] == category]
        listed = [
            "; ".join(f"{tiny_name(row.model)} {row.percent:.1f}%" for row in part.itertuples())
            or "none"
            for part in (rows[rows["model"].isin(good)], rows[~rows["model"].isin(good)])
        ]
        what = LOOKED_AT[category]
        parts.append(f"With {what}, these do: {listed[0]}; these do not: {listed[1]}.")
    return (
        f"A model is taken to read the picture if it is right in at least "
        f"{worlds.LEAST_GROUNDED:.0f}%, with an interval above the chance of 50%, at dose "
        f"{dose:g}. {' '.join(parts)} Where a model does not read the picture, whatever it scores "
        "below is about captions alone."
    )


def half_seen_sentence(risen: pandas.DataFrame) -> str:
    """Return for which models the sealed trial saw vlbs rise, where objects are half to be seen.

    Parameters
    ----------
    risen
        The *rises* of :func:`plantedworld.trial.judged`.

    Examples
    --------
    >>> names = ["ViLT, matching", "CLIP, contrastive", "ALBEF, contrastive"]
    >>> risen = pandas.DataFrame({"model": names, "reached": [True, True, False]})
    >>> half_seen_sentence(risen).partition(" do, in ")[2]
    'all tiny models but tiny-ALBEF.'
    >>> half_seen_sentence(risen.assign(reached=[True, False, False])).partition(" do, in ")[2]
    '1 of 3 tiny models (tiny-ViLT).'
    """
    names = risen["model"].map(_short_name)
    kept, missed = (names[risen["reached"] == each].tolist() for each in (True, False))
    which = f"{len(kept)} of {len(names)} tiny models ({', '.join(kept) or 'none'})"
    if len(kept) > len(missed):
        which = f"all tiny models{' but ' if missed else ''}{' and '.join(missed)}"
    return (
        "For objects drawn half transparent, in worlds and drawings not used for tuning (dose 3), "
        "vlbs rises with a planted bias by more than the errors on stereotypical pictures do, in "
        f"{which}."
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
        listed = "; ".join(
            f"{tiny_name(row['model'])} ({row[kind]:.1f})" for _, row in low.iterrows()
        )
        parts += [f"against {what} for {listed}"] if listed else []
    least = f"{worlds.TARGET_VLRS:.0f}"
    reached = f"vlrs is {least} or more in all rows, against either kind"
    if parts:
        reached = f"vlrs is below {least} {', and '.join(parts)}"
    chance = caption_selection.reference_scores("random").vlrs
    blind = rows["third word, white picture"]
    things = int((rows["thing, white picture"] == 0).sum())
    return (
        f"{reached}. With three captions, guessing gives {chance:.1f}. With a white picture, which "
        f"rules nothing out, models reach {blind.min():.1f} to {blind.max():.1f} against a third "
        f"word, so that much needs no picture. With a white picture {things} of {len(rows)} ways "
        "of scoring pick the photo of a thing every time: without a person in the picture that "
        "caption fits best. The oracle, to which a white picture says nothing, mostly picks the "
        "stereotype, whose word is the more usual one for the person named."
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


def floor_sentence(floor: pandas.DataFrame) -> str:
    """Return what the noise floor is made of, at the opacity of the target."""
    row = floor.set_index("opacity").loc[worlds.TARGET_OPACITY]
    return (
        f"The noise floor at opacity {worlds.TARGET_OPACITY:g} is {row['floor']:.1f} points: in "
        f"95% of {row['choices']} such pairings of {row['checkpoints']} checkpoints without bias, "
        f"of {row['models'].replace(', ', ' and ')}, the rise or fall stays within it. The other "
        "models have too few for such pairings, and are judged by the same floor."
    )


def verdict_sentence(verdict: pandas.DataFrame) -> str:
    """Return how many models reach the target at the opacity set for it, and why others do not.

    A model is judged in the way of the paper; other ways are in the table.
    """
    rows = _at_target(verdict)
    reached, missed = (rows[rows["reached"].eq(each)] for each in (True, False))
    met = "reached" if len(reached) >= worlds.LEAST_MODELS else "NOT reached"
    good = "; ".join(f"{tiny_name(each['model'])} {_risen(each)}" for _, each in reached.iterrows())
    poor = "; ".join(_shortfall(each) for _, each in missed.iterrows())
    unjudged = ", ".join(map(tiny_name, rows.loc[rows["reached"].isna(), "model"]))
    absent = f" Not judged, for want of a dose-0 checkpoint: {unjudged}." if unjudged else ""
    return (
        f"The target, at opacity {worlds.TARGET_OPACITY:g}, is that for at least "
        f"{worlds.LEAST_MODELS} of the six models, scored as in the paper, the model reads the "
        f"picture, vlrs is at least {worlds.TARGET_VLRS:.0f}, and vlbs rises above its value at "
        f"dose 0 by more than the noise floor. It holds for {counted(len(reached), 'models')}: "
        f"**{met}**. {interval_sentence(verdict)} Met, by the estimate, by: {good or 'none'}. "
        f"Missed by: {poor or 'none'}.{absent}"
    )


def _at_target(verdict: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows that are judged: at the opacity of the target, scored as in the paper."""
    at = verdict["opacity"].eq(worlds.TARGET_OPACITY)
    return verdict[at & verdict["model"].isin(OWN_WAYS)]


def _risen(row: pandas.Series) -> str:
    bounds = interval_text(row["low"], row["high"], 1)
    return f"rises by {row['rise']:.1f} ({bounds})"


def _shortfall(row: pandas.Series) -> str:
    name = tiny_name(row["model"])
    if not row["looks"]:
        return f"{name} (does not read the picture)"
    if row["vlrs"] < worlds.TARGET_VLRS:
        return f"{name} (vlrs {row['vlrs']:.0f})"
    return f"{name} ({_risen(row)})"


def interval_sentence(verdict: pandas.DataFrame) -> str:
    """Return how many models reach the target if the interval, and not the point, must do so."""
    rows = _at_target(verdict)
    reached = rows[rows["reached"].eq(True)]
    sure = reached["low"] > reached["floor"]
    lost = ", ".join(map(tiny_name, reached.loc[~sure, "model"]))
    left = f"{counted(sure.sum(), 'models')} {'remains' if sure.sum() == 1 else 'remain'}"
    return (
        f"This was judged on the estimate. If the lower end of the interval has to be above the "
        f"noise floor too, {left} (not: {lost or 'none'})."
    )


def plain_sentence(verdict: pandas.DataFrame) -> str:
    """Return how little vlbs has to show where the object is fully drawn, by way of scoring."""
    rows = verdict[verdict["opacity"].eq(1) & verdict["looks"]]
    own = rows["model"].isin(OWN_WAYS)
    paper = rows.loc[own, "vlbs"]
    other = [f"{tiny_name(row.model)} {row.vlbs:.1f}%" for row in rows[~own].itertuples()]
    beside = f"; of other ways that read the picture: {', '.join(other)}" if other else ""
    return (
        f"At opacity 1 little is left to find: vlbs at dose 3 of the models that read the picture, "
        f"scored as in the paper, is {paper.min():.1f}% to {paper.max():.1f}%{beside}."
    )


def unlike_trial_sentence(verdict: pandas.DataFrame, risen: pandas.DataFrame) -> str:
    """Return which models reach the page's target and not that of the sealed trial.

    Parameters
    ----------
    verdict
        Of :func:`plantedworld.studies.study4_captions.verdict`.
    risen
        The *rises* of :func:`plantedworld.trial.judged`.
    """
    rows = verdict[verdict["opacity"].eq(worlds.TARGET_OPACITY) & verdict["reached"].eq(True)]
    names = risen["model"].str.partition(", ")[0]
    unlike = risen[names.isin(rows["model"]) & ~risen["reached"]]
    told = "; ".join(
        f"{_short_name(row.model)}, whose rise less that of errors is {signed(row.mean, 1)} "
        f"({interval_text(row.low, row.high, 1)})"
        for row in unlike.itertuples()
    )
    return f"The target of this page is reached, and that of the trial is not, by: {told or 'none'}"


def _short_name(model: str) -> str:
    """Return the name of a tiny model without its way of scoring."""
    return tiny_name(model.partition(", ")[0])


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


def chosen_sentence(summary: pandas.DataFrame) -> str:
    """Return in how many models without bias the choice of images raises shares above 0."""
    ways, counts = _chosen_counts(summary)
    parts = [
        f"{test} is above 0 more often in {higher} and less often in {lower}"
        for test, (higher, lower) in counts.items()
    ]
    return (
        "On the images where the stereotype was chosen, compared with all anti-stereotypical ones, "
        f"{', and '.join(parts)} of {ways} ways of scoring models without bias (two models are "
        f"scored in two ways each). The rise that is expected of lmss is "
        f"{'seen' if counts['lmss'][0] > 0.75 * ways else 'not seen'}."
    )


def chosen_summary(summary: pandas.DataFrame) -> str:
    """Return what the choice of images does to vlss and to lmss, for the summary."""
    ways, counts = _chosen_counts(summary)
    seen = counts["lmss"][0] > 0.75 * ways
    return (
        "On the images where the stereotype was chosen, vlss is more often above 0 in models "
        f"without bias too ({counts['vlss'][0]} of {ways} ways of scoring); for lmss the expected "
        f"rise is {'seen' if seen else 'not seen'} ({counts['lmss'][0]} of {ways})."
    )


def _chosen_counts(summary: pandas.DataFrame) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return how many ways there are, and in how many a score is above 0 more and less often."""
    rows = summary[(summary["statistic"] == "% positive") & (summary["dose"] == 0)]
    counts = {}
    for test in ("lmss", "vlss"):
        wide = rows[rows["test"] == test].pivot(index="model", columns="level", values="value")
        higher, lower = wide["paper"] > wide["anti"], wide["paper"] < wide["anti"]
        counts[test] = (int(higher.sum()), int(lower.sum()))
    return len(wide), counts


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


def tiny_modality_sentence(where: pandas.DataFrame) -> str:
    """Return whether lmss and vlss name the modality for tiny models, and what they do instead."""
    kept = where[~where["model"].isin(["oracle", APART])]
    names = list(dict.fromkeys(_in_all_places(kept)["model"]))
    partly = [name for name in dict.fromkeys(kept["model"]) if name not in names]
    right = sum(names_modality(where, name) for name in names)
    value = kept.set_index(["model", "test", "planted in"])["value"]
    parts = []
    for test, side, what in (("lmss", 1, "above"), ("lmss", -1, "below"), ("vlss", 1, "above")):
        told = []
        for name in names:
            places = [value[name, test, place] for place in PLANTED]
            if min(side * each for each in places) > LEAST:
                told.append(f"{tiny_name(name)} ({' and '.join(map(signed, places))})")
        parts.append(f"{test} is {what} 0 in both for {', '.join(told) or 'none'}")
    only = " and ".join(map(tiny_name, partly))
    left = f" {only}, trained in some of the worlds only, is in the table alone." if only else ""
    return (
        f"The tiny models do no better: the scores name the modality for {right} of {len(names)} "
        "ways of scoring. Of the two places, captions alone and pictures alone, by means of more "
        f"than {LEAST:g} in size: {'; '.join(parts)}.{left}"
    )


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


def hidden_sentence(table: pandas.DataFrame) -> str:
    """Return the oracle's vlbs by view and dose: what a perfect model scores."""
    means = table[table["model"] == "oracle"].groupby(["view", "dose"])["vlbs"].mean()
    visible, hidden = means["visible"], means["hidden"]
    chance = caption_selection.reference_scores("random").vlbs
    return (
        f"With the answer in plain sight the oracle's vlbs is {visible[0]:.0f} without bias and "
        f"{visible[3]:.0f} with a planted bias of dose 3; where the picture does not show the "
        f"answer it is {hidden[0]:.0f} without bias, which is guessing ({chance:.0f}), and "
        f"{hidden[3]:.0f} with it."
    )


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


def leaning_sentence(leaning: pandas.DataFrame) -> str:
    """Return how much of a stereotype there is to find for either way of scoring."""
    means = leaning.groupby("head")["preference"].mean()
    share = means["contrastive"] / means["matching"]
    return (
        "Where the picture does not show the answer, the oracle prefers "
        f"the stereotype by {means['matching']:.2f} nats in a matching score, which asks whether "
        f"picture and caption belong together, and by {means['contrastive']:.2f} nats in the score "
        "that a contrastive objective approaches, which leaves out how frequent a caption is. A "
        f"model scored by cosine has {share:.0%} as much to show."
    )


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


LEAST = 0.05
"""Mean shifts up to this size, in nats, are read as none."""


def names_modality(where: pandas.DataFrame, model: str, least: float = LEAST) -> bool:
    """Return whether lmss and vlss are where they belong for a model.

    Above ``least``, in nats, where their own modality carries the stereotype, and within it where
    the other one does.
    """
    value = where[where["model"] == model].set_index(["test", "planted in"])["value"]
    own = [value["lmss", "text"], value["vlss", "images"]]
    other = [value["lmss", "images"], value["vlss", "text"]]
    return min(own) > least and max(map(abs, other)) <= least


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


def chooser(seed: int = 0, dose: float = 3, n: int = 4) -> Panel:
    """Return the panel: three captions and their probabilities, made neutral or not."""
    given = worlds.choices(seed, 8, "visible")
    rows = _chosen_scenes(given, n)
    ways = [*worlds.shipped_ways(dose, seed), planted.ORACLE]
    names = {row: f"{at + 1}: {_scene_name(given, row)}" for at, row in enumerate(rows)}
    found = {tiny_name(way.label): worlds.cases(way, given, rows, dose, seed) for way in ways}
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


AS_GOOD_AS_TIED = 0.01
"""Two probabilities that lie closer together are read as a tie."""


def _bars(given, row: int, words: str, look: str, label: str, of: dict, shown) -> Drawing:
    texts = worlds.captions_of(given, [row], words)[0]
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
