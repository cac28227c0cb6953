"""Pictures, tables and panel of the chapter about the planted world."""

import numpy as np
import pandas

import plantedworld
from biaslib.display import interval_text, interval_texts, marked, signed, subplots
from companion._check import Check, judge_function
from companion._drawing import Drawing
from companion._explorer import Panel
from companion._shared import DOSE_COLOURS
from plantedworld.studies import measures as study

MODELS = {
    "oracle": "oracle",
    "bert": "tiny-BERT",
    "clip": "tiny-CLIP",
    "count": "count of the corpus",
}
STYLES = {
    "": "no picture",
    "twemoji": "new looks",
    "seen": "looks of the training",
    "hatched": "new looks, hatched",
    "costumed": "new looks, in costume",
}
TRAINED = {"masked": "bert", "logit": "clip", "c_asc": "clip"}
"""The measures of the panel, and whom they ask beside the oracle."""

SHOWN_WORDS = ("nurse", "mechanic", "pilot", "necklace", "briefcase")
"""Words that are written beside their points: harmless ones."""


def contact_sheet(columns: list[dict], captions: list[str]):
    """Draw scenes in a row each with what they are: columns of six pictures.

    Parameters
    ----------
    columns
        Dictionaries of ``scenes`` and ``style``.
    captions
        One a row.
    """
    n = max(len(row["scenes"]) for row in columns)
    figure, axes = subplots(len(columns), n, height=1.12 * len(columns) + 0.3)
    figure.set_facecolor("white")
    for line, row, caption in zip(axes, columns, captions, strict=True):
        pictures = plantedworld.draw(row["scenes"], size=128, style=row["style"])
        for each in line:
            each.axis("off")
        for each, picture in zip(line, pictures, strict=False):
            each.imshow(picture)
        place = {"transform": line[0].transAxes, "va": "bottom", "in_layout": False}
        line[0].text(0, 1.04, caption, fontsize=8.5, color="0.15", **place)
    figure.set_layout_engine("constrained", h_pad=0.11)
    return marked(figure)


def contact_table(columns: list[dict], captions: list[str]) -> pandas.DataFrame:
    """Return what a contact sheet shows, one row a row of pictures; what all share is left out."""
    table = pandas.DataFrame([_of_row(*row) for row in zip(captions, columns, strict=True)])
    told = [name for name in table.columns[2:] if table[name].nunique() > 1]
    return table[["row", "pictures", *told]]


def _of_row(caption: str, row: dict) -> dict:
    scenes = row["scenes"]
    shown = {
        "gender": scenes["gender"],
        "tones": scenes["tone"].map("{:g}".format),
        "costume": scenes["role"].where(scenes["role_shown"], "none"),
        "object in the picture": scenes["object"].where(scenes["object"] != "", "none"),
        "how": scenes["object_view"].where(scenes["object"] != "", "–"),
    }
    told = {name: ", ".join(dict.fromkeys(values)) for name, values in shown.items()}
    return {"row": caption, "pictures": len(scenes), **told, "style": row["style"]}


def planted_words(dose: float, seed: int, chosen: list[str] | None = None) -> pandas.DataFrame:
    """Return what is planted on some words: log-odds, women against men."""
    chosen = chosen or [
        *plantedworld.PICTURED_ROLES,
        *study.words().query("slot == 'object'")["word"][:6],
    ]
    made = plantedworld.world(dose, seed)
    ratios = {
        "pictures": made.truth.log_ratio(chosen, given="picture"),
        "captions": made.truth.log_ratio(chosen, given="caption"),
        "text corpus": made.text_truth.log_ratio(chosen, given="caption"),
    }
    return pandas.DataFrame({"word": chosen} | ratios).sort_values("pictures", ignore_index=True)


def strengths(doses: list[float], seed: int):
    """Draw the planted log-odds of roles and objects, a mark a dose."""
    order = planted_words(max(doses), seed)["word"].tolist()
    figure, axes = subplots(height=6.2)
    for dose, mark in zip(doses, "oDs", strict=False):
        colour = DOSE_COLOURS[dose]
        values = planted_words(dose, seed, order).set_index("word").loc[order, "pictures"]
        axes.plot(values, np.arange(len(order)), mark, color=colour, label=f"dose {dose:g}", ms=5)
    axes.axvline(0, color="0.4", linewidth=1)
    axes.set_yticks(np.arange(len(order)), order, fontsize=8.5)
    axes.set(xlabel="log-odds: picture of a woman against picture of a man")
    axes.legend(frameon=False)
    return marked(figure)


def recovery(scores: pandas.DataFrame, measures: list[str], models: list[str], doses=(1, 3)):
    """Draw scores against the truth, a panel a measure and dose, a dot a word and seed.

    The line is where scores in log-odds shall lie; C-ASC and shares have other units, and no line.
    """

    from matplotlib.artist import setp

    figure, axes = subplots(len(measures), len(doses), height=3.1 * len(measures), squeeze=False)
    for line, measure in zip(axes, measures, strict=True):
        for each, dose in zip(line, doses, strict=True):
            for model, colour in zip(models, ("C2", "C5"), strict=False):
                rows = _rows(scores, measure, model, dose)
                each.scatter(
                    rows["truth"], rows["value"], s=9, alpha=0.45, linewidths=0, color=colour,
                    label=MODELS[model], rasterized=True,
                )  # fmt: skip
            _ideal(each, measure)
            each.set_title(f"{study.MEASURES[measure]}, dose {dose:g}", fontsize=9.5)
    setp(axes[-1], xlabel="planted log-odds")
    setp(axes[:, 0], ylabel="score")
    handles = axes[0, 0].legend(frameon=False, fontsize=8.5, markerscale=2)
    for handle in handles.legend_handles:
        handle.set_alpha(1)
    return marked(figure)


def recovery_table(summary: pandas.DataFrame, models: list[str]) -> pandas.DataFrame:
    """Return rank correlation and slope over seeds: one row a measure, model, style and dose.

    The oracle has no score of its own at dose 0, where all are alike: its row has dashes.
    """
    kept = summary[summary["model"].isin(models)]
    ranks, slopes, signs = (study.over_seeds(kept, column) for column in ("rank", "slope", "signs"))
    defined = ranks["n"] > 0
    return pandas.DataFrame(
        {
            "measure": ranks["measure"].map(study.MEASURES),
            "model": ranks["model"].map(MODELS),
            "pictures": ranks["style"].map(STYLES),
            "dose": ranks["dose"],
            "rank correlation": ranks["mean"],
            "95% interval": interval_texts(ranks, 3),
            "slope": slopes["mean"].where(defined),
            "95% interval of the slope": interval_texts(slopes.where(defined), 3),
            "sign right": signs["mean"].where(defined),
            "seeds": pandas.Series([int(n) or None for n in ranks["n"]], dtype=object),
        }
    )


def control_table(controls: pandas.DataFrame) -> pandas.DataFrame:
    """Return the sizes of scores on the pair of sets left out and on the others, at doses 1 and 3.

    Parameters
    ----------
    controls
        Of :func:`plantedworld.studies.measures.control_scores`.
    """
    rows = controls[controls["dose"].gt(0) & controls["model"].ne("count")]
    rows = rows.assign(
        measure=rows["measure"].map(study.MEASURES),
        model=rows["model"].map(MODELS),
        column=[f"dose {row.dose:g}, {row.words}" for row in rows.itertuples()],
        size=_with_intervals(rows.assign(low=rows["low"].clip(lower=0))),
    )
    table = rows.pivot(index=["measure", "model"], columns="column", values="size")
    return table.fillna("undefined").rename_axis(columns=None).reset_index()


def _with_intervals(rows: pandas.DataFrame, decimals: int = 2) -> list[str]:
    """Return means with their intervals in brackets."""
    means = [signed(mean, decimals) for mean in rows["mean"]]
    ends = interval_texts(rows, decimals)
    return [f"{mean} ({end})" for mean, end in zip(means, ends, strict=True)]


def sheet(seed: int = 0) -> tuple[list[dict], list[str]]:
    """Return rows of scenes for a contact sheet, and what they show."""
    rng = np.random.default_rng(seed)
    people = plantedworld.faces(3, rng)
    adults = people[people["age"] == "adult"]
    held = plantedworld.agents_with_entities(rng, ["briefcase"], n_per_agent=2)
    hidden, half = (held.assign(object_view=view) for view in ("hidden", "ambiguous"))
    everybody = [adults.query("gender == @name") for name in plantedworld.GENDERS]
    views = pandas.concat([held.iloc[[0, 2]], half.iloc[[0, 2]], hidden.iloc[[0, 2]]])
    rows = {
        "women, tones 1 to 5: looks that no training shows": everybody[0],
        "men, tones 1 to 5": everybody[1],
        "in costume": study.in_costume(plantedworld.faces(1, rng)).iloc[[0, 1, 2, 5, 6]],
        "a briefcase in sight, half hidden, and hidden": views,
        "the women once more, hatched": everybody[0],
    }
    styles = ["twemoji"] * 4 + ["hatched"]
    frames = [{"scenes": s, "style": k} for s, k in zip(rows.values(), styles, strict=True)]
    return frames, list(rows)


def zero_table(zero: pandas.DataFrame, floor: pandas.DataFrame) -> pandas.DataFrame:
    """Return what models without bias score: one row a measure and model, and within what bound.

    Parameters
    ----------
    zero
        Of :func:`plantedworld.studies.measures.dose_zero`.
    floor
        Of :func:`plantedworld.studies.measures.noise_floor`.
    """
    keys = ["measure", "model", "style"]
    words = {True: ": within", False: ": not within"}
    judged = zero["within"].where(zero["statistic"] != "rms").map(words).fillna("")
    told = zero.assign(told=_with_intervals(zero, 3) + judged)
    cells = told.set_index([*keys, "statistic"])["told"].unstack("statistic")
    cells = cells.reindex(zero.set_index(keys).index.unique())
    floors = floor.groupby(keys)["floor"].mean()
    return pandas.DataFrame(
        {
            "measure": cells.index.get_level_values("measure").map(study.MEASURES),
            "model": cells.index.get_level_values("model").map(MODELS),
            "slope (90% interval)": cells["slope"].tolist(),
            "mean of the scores (90% interval)": cells["mean"].tolist(),
            "root mean square (90% interval)": cells["rms"].tolist(),
            "noise floor": floors.loc[cells.index].tolist(),
        }
    )


def stated(
    summary: pandas.DataFrame,
    measure: str,
    model: str,
    dose: float,
    statistic: str,
    style: str | None = None,
) -> str:
    """Return a mean over seeds for a sentence, with its 95% interval in brackets."""
    found = study.mean_over_seeds(_rows(summary, measure, model, dose, style)[statistic])
    if not found["n"]:
        return "(no checkpoint shipped)"
    ends = "one seed" if np.isnan(found["low"]) else interval_text(found["low"], found["high"])
    return f"{signed(found['mean'])} ({ends})"


def floor_stated(floor: pandas.DataFrame, measure: str, model: str) -> str:
    """Return a noise floor for a sentence: its mean over seeds."""
    values = _rows(floor, measure, model)["floor"].dropna()
    return f"{values.mean():.2f}" if len(values) else "(no checkpoint shipped)"


def plain_verdicts(summary: pandas.DataFrame, dose: float = 3) -> pandas.DataFrame:
    """Return what each measure gives back if the model is perfect: sign, order, size.

    Sign: at least 95% of the words with a planted log-odds above the bound have it. Order: rank
    correlation at least .9. Size: slope between .75 and 1.25, in log-odds alone.
    """
    exact = {measure: _rows(summary, measure, "oracle", dose) for measure in study.MEASURES}
    return pandas.DataFrame([_plain(measure, found) for measure, found in exact.items()])


def _plain(measure: str, found: pandas.DataFrame) -> dict:
    signs, rank, slope = (found[column].mean() for column in ("signs", "rank", "slope"))
    in_log_odds = measure in ("masked", "logit")
    sized = (0.75 <= slope <= 1.25) if in_log_odds else None
    return {
        "measure": study.MEASURES[measure],
        "signs right": f"{signs:.0%}",
        "sign": signs >= 0.95,
        "rank correlation, all words": rank,
        "order, all words": rank >= 0.9,
        "slope": slope if in_log_odds else None,
        "size": "no unit" if sized is None else ("yes" if sized else "no"),
        "seeds": len(found),
    }


def panel(scores: pandas.DataFrame) -> Panel:
    """Return the panel in which the reader turns the dose: roles and objects, by measure and seed.

    Parameters
    ----------
    scores
        Those of :func:`plantedworld.studies.measures.run_masked` and
        :func:`plantedworld.studies.measures.run_similarity`.
    """
    kept = study.of_words(scores, "roles and objects")
    kept = kept[kept["style"].isin(["", "twemoji"]) & kept["seed"].isin(study.VERDICT_SEEDS)]
    cases = {
        (study.MEASURES[measure], str(seed), dose): _drawing(rows, measure, seed, dose)
        for (measure, seed, dose), rows in kept.groupby(["measure", "seed", "dose"])
        if measure in TRAINED
    }
    choices = {
        "Measure": [study.MEASURES[measure] for measure in TRAINED],
        "World (seed)": sorted({seed for _, seed, _ in cases}),
        "Dose": list(study.DOSES),
    }
    measure, seed, _ = (values[0] for values in choices.values())
    return Panel("Scores beside the truth", choices, cases, (measure, seed, study.DOSES[-1]))


def _drawing(rows: pandas.DataFrame, measure: str, seed: int, dose: float) -> Drawing:
    """Draw the oracle's scores and a trained model's against the truth."""
    exact, trained = (rows[rows["model"] == name] for name in ("oracle", TRAINED[measure]))
    model = MODELS[TRAINED[measure]]
    reach = 2.2 if measure == "c_asc" else 4.0
    marks = [
        *_guides(measure),
        _dots(exact, 4) | {"label": "oracle: exact inference"},
        _dots(trained, 2) | {"label": f"{model}, a trained model: one dot a word"},
    ]
    if dose > 0:
        marks.append(_named(exact, 4, reach) if trained.empty else _named(trained, 2, reach))
    return Drawing(
        _panel_sentence(exact, trained, model, seed, dose),
        [mark for mark in marks if mark["x"]],
        "planted log-odds: women against men",
        "C-ASC" if measure == "c_asc" else "score in log-odds",
        (-4, 4),
        (-reach, reach),
        "Scatter plot of scores against planted log-odds.",
        note="planted world",
        height=400,
    )


def _guides(measure: str) -> list[dict]:
    """Return the marks of no association and, for scores in log-odds, of the truth."""
    zero = {"kind": "rule", "x": [0], "y": [0], "group": 5, "thin": True}
    equal = {"kind": "line", "x": [-4, 4], "y": [-4, 4], "dashed": True, "group": 5}
    return [zero] if measure == "c_asc" else [zero, equal | {"label": "score equal to the truth"}]


def _dots(rows: pandas.DataFrame, group: int) -> dict:
    scored = rows.dropna(subset="value")
    x, y = (scored[column].round(2).tolist() for column in ("truth", "value"))
    names = scored["word"].tolist() if "word" in scored else scored.index.tolist()
    return {"kind": "dots", "x": x, "y": y, "group": group, "names": names}


def _named(rows: pandas.DataFrame, group: int, reach: float) -> dict:
    """Return the dots of some words once more, with their names, where these stand clear."""
    places = rows.dropna(subset="value").set_index("word")[["truth", "value"]]
    clear = []
    for word in pandas.Index(SHOWN_WORDS).intersection(places.index):
        gaps = (places.loc[clear] - places.loc[word]).abs()
        if ((gaps["truth"] > 2.5) | (gaps["value"] > 0.08 * reach)).all():
            clear.append(word)
    return _dots(places.loc[clear], group) | {"text": clear}


def _panel_sentence(
    exact: pandas.DataFrame, trained: pandas.DataFrame, model: str, seed: int, dose: float
) -> str:
    start = f"Dose {dose:g}, world {seed}, {len(exact)} words. "
    undefined = exact["value"].isna().sum()
    if undefined:
        start += f"The oracle has no score for {undefined} of them: 0 divided by 0. "
    if trained.empty:
        return f"{start}No {model} is shipped for this world; the oracle alone is shown."
    found = study.summarise(trained).iloc[0]
    slope, rank = signed(found["slope"]), signed(found["rank"])
    if dose == 0:
        return (
            f"{start}Nothing is planted: every truth is 0. {model} follows the directions of the "
            f"other doses with a slope of {slope} and a rank correlation of {rank}."
        )
    return f"{start}{model} against the truth: rank correlation {rank}, slope {slope}."


def _rows(table, measure, model, dose=None, style=None):
    kept = table[(table["measure"] == measure) & (table["model"] == model)]
    kept = kept if dose is None else kept[kept["dose"] == dose]
    styles = ("", "twemoji") if style is None else (style,)
    return kept[kept["style"].isin(styles)]


def _ideal(axes, measure: str) -> None:
    axes.axhline(0, color="0.75", linewidth=0.8, zorder=0)
    if measure in ("masked", "logit"):
        low, high = axes.get_xlim()
        axes.plot([low, high], [low, high], color="0.3", linestyle="--", linewidth=1.1)
        axes.set_xlim(low, high)


def check_within(answer) -> Check:
    """Judge two one-sided t tests: is a mean shown to lie within a bound?"""
    cases = [
        [0.05, -0.02, 0.10, 0.01, 0.04],  # near 0, and shown to be
        [-0.9, 0.8, 0.4, -0.6, 0.5],  # near 0, not significant, and not shown
        [0.10, 0.11, 0.12, 0.10, 0.11],  # surely not 0, and surely small
        [0.02, 0.16, -0.08, 0.13, 0.02],  # within by a 90% interval, not by one of 95%
        [0.065, 0.185, -0.035, 0.135, 0.075],  # within by the normal quantile, not by Student's
        [-0.065, -0.185, 0.035, -0.135, -0.075],
    ]
    cases = [((values,), bool(_within(values))) for values in map(np.array, cases)]
    hint = "the whole 90% interval, by the t distribution, must lie within, at both ends"
    right = "an interval shows it; a large p-value would not."
    return judge_function(answer, cases, hint, right=right)


def _within(values: np.ndarray) -> bool:
    found = study.mean_over_seeds(values, confidence=0.9)
    return found["low"] >= -0.15 and found["high"] <= 0.15
