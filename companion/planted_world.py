"""The planted world: pictures, tables and panel, the held-out test, and what each measure finds."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas

import plantedworld
from biaslib.display import dots, interval_texts, marked, signed, subplots
from companion._check import Check, judge_function
from companion._drawing import Drawing
from companion._explorer import Panel
from plantedworld.studies import held_out
from plantedworld.studies import measures as study

MODELS = {
    "oracle": "perfect model",
    "bert": "tiny-BERT",
    "clip": "tiny-CLIP",
    "count": "count of the corpus",
    "vl_bert": "tiny-VL-BERT",
    "visualbert": "tiny-VisualBERT",
    "vilbert": "tiny-ViLBERT",
    "lxmert": "tiny-LXMERT",
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


NARROW = 3.42
"""Inches across of a figure that a phone shows whole."""


def name_rows(axes, at: Iterable[float], names: Iterable[str]) -> None:
    """Write the names of rows in lines of 17 letters, the first row on top."""
    lines = (textwrap.wrap(name, 17, break_on_hyphens=False) for name in names)
    axes.set_yticks(at, ["\n".join(each) for each in lines], fontsize=9)
    axes.invert_yaxis()


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
    figure, axes = subplots(len(columns), n, height=0.78 * len(columns) + 0.2, width=NARROW)
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


def planted_words(dose: float, seed: int) -> pandas.DataFrame:
    """Return what is planted on some words: log-odds, women against men."""
    chosen = [
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


def recovery(scores: pandas.DataFrame, dose: float = 3):
    """Draw the scaled difference and C-ASC against the truth: the perfect model, and tiny-CLIP."""
    figure, panels = subplots(2, 1, height=6.2, width=NARROW, sharex=True)
    for axes, measure in zip(panels, ("logit", "c_asc"), strict=True):
        for model, colour in (("clip", "C2"), ("oracle", "C5")):
            rows = _rows(scores, measure, model, dose)
            axes.scatter(
                rows["truth"], rows["value"], s=8, alpha=0.4, lw=0, c=colour, rasterized=True
            )
            axes.scatter([], [], color=colour, label=MODELS[model])
        axes.axhline(0, color="0.75", linewidth=0.8, zorder=0)
        axes.set_title(study.MEASURES[measure], fontsize=10)
        axes.set_ylabel("score")
    panels[0].axline((0, 0), slope=1, color="0.3", linestyle="--", linewidth=1.1)
    panels[1].set_xlabel("planted log-odds")
    panels[0].legend(frameon=False, fontsize=9)
    return marked(figure)


def _rows(table: pandas.DataFrame, measure: str, model: str, dose: float) -> pandas.DataFrame:
    asked = table["measure"].eq(measure) & table["model"].eq(model) & table["dose"].eq(dose)
    return table[asked & table["style"].isin(["", "twemoji"])]


def bound_table(zero: pandas.DataFrame, floor: pandas.DataFrame) -> pandas.DataFrame:
    """Return what models without bias score, and the mean noise floor of each measure and model.

    Parameters
    ----------
    zero
        Of :func:`plantedworld.studies.measures.dose_zero`.
    floor
        Of :func:`plantedworld.studies.measures.noise_floor`.
    """
    floors = floor.groupby(["measure", "model"])["floor"].mean().rename("noise floor")
    table = zero.join(floors, on=["measure", "model"])
    table["measure"] = table["measure"].map(study.MEASURES)
    table["model"] = table["model"].map(MODELS)
    table["90% interval"] = interval_texts(table, 3)
    return table[["measure", "model", "statistic", "mean", "90% interval", "within", "noise floor"]]


def recovery_table(
    summary: pandas.DataFrame, measures: list[str], models: list[str]
) -> pandas.DataFrame:
    """Return rank correlation and slope over seeds: one row a measure, model, style and dose.

    The oracle has no score of its own at dose 0, where all are alike: its row has dashes.
    """
    kept = summary[summary["measure"].isin(measures) & summary["model"].isin(models)]
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


def panel(scores: pandas.DataFrame) -> Panel:
    """Return the panel in which the reader turns the dose: roles and objects of one world.

    Parameters
    ----------
    scores
        Those of :func:`plantedworld.studies.measures.run_masked` and
        :func:`plantedworld.studies.measures.run_similarity`.
    """
    kept = study.of_words(scores, "roles and objects").query("seed == 0").dropna(subset="value")
    cases = {
        (study.MEASURES[measure], dose): _drawing(kept, measure, dose)
        for measure in TRAINED
        for dose in study.DOSES
    }
    choices = {"Measure": [study.MEASURES[each] for each in TRAINED], "Dose": list(study.DOSES)}
    start = (study.MEASURES["masked"], study.DOSES[-1])
    return Panel("Scores beside the truth", choices, cases, start)


def _drawing(scores: pandas.DataFrame, measure: str, dose: float) -> Drawing:
    """Draw the perfect model's scores and a trained model's against the truth."""
    every = scores.loc[scores["measure"] == measure, ["truth", "value"]]  # doses share their axes
    (across, up), marks, told = np.ceil(every.abs().max()), [], []
    for model, group in (("oracle", 4), (TRAINED[measure], 2)):
        rows = _rows(scores, measure, model, dose)
        x, y = (rows[column].round(2).tolist() for column in ("truth", "value"))
        label = {"label": f"{MODELS[model]}: one dot a word", "names": rows["word"].tolist()}
        marks.append({"kind": "dots", "x": x, "y": y, "group": group} | label)
        told.append(
            f"{MODELS[model]}, {len(rows)} words, largest score {np.abs(y).max(initial=0):g}"
        )
    if measure != "c_asc":
        ends = [-min(across, up), min(across, up)]
        equal = {"kind": "line", "x": ends, "y": ends, "dashed": True, "group": 5}
        marks.append(equal | {"label": "score equal to the truth"})
    return Drawing(
        f"Dose {dose:g}: {'; '.join(told)}.",
        [mark for mark in marks if mark["x"]],
        "planted log-odds: women against men",
        "C-ASC" if measure == "c_asc" else "score in log-odds",
        (-across, across),
        (-up, up),
        "Scatter plot of scores against planted log-odds.",
        note="planted world",
        height=400,
    )


# The held-out test


def row_names(targets: pandas.DataFrame) -> pandas.Series:
    """Return what tables call the measures of targets on their models."""
    return targets["measure"] + ", " + targets["model"].map(MODELS)


def bounds(targets: pandas.DataFrame) -> list[str]:
    """Return the bounds of targets as texts."""
    return [
        f"{least:g} or more" if np.isinf(most) else f"{least:g} to {most:g}"
        for least, most in zip(targets["least"], targets["most"], strict=True)
    ]


def held_out_figure(targets: pandas.DataFrame, dose: float = 3):
    """Draw what was found of order and of size, and where the whole interval has to lie.

    Parameters
    ----------
    targets
        The *verdicts* of :func:`plantedworld.studies.held_out.results`.
    dose
        Of its rows.
    """
    titles = {"rank within signs": "Order within words of one sign", "slope": "Size (slope)"}
    drawn = targets[targets["dose"] == dose].assign(value=lambda rows: rows["mean"])
    sizes = [(drawn["statistic"] == name).sum() for name in titles]
    figure, panels = subplots(2, 1, height=6.4, width=NARROW, height_ratios=sizes)
    for axes, (statistic, title) in zip(panels, titles.items(), strict=True):
        rows = drawn[drawn["statistic"] == statistic]
        at, right = np.arange(len(rows)), rows["most"].where(np.isfinite(rows["most"]), 1.0)
        axes.barh(at, right - rows["least"], left=rows["least"], color="C2", alpha=0.3)
        dots(axes, at, rows, "C0", filled=rows["reached"])
        name_rows(axes, at, row_names(rows))
        axes.set(xlim=(0, None))
        axes.set_title(title, fontsize=10, loc="left")
    return marked(figure)


def held_out_table(targets: pandas.DataFrame, rises: pandas.DataFrame) -> pandas.DataFrame:
    """Return what was asked and found, doses side by side: one row a statistic.

    Parameters
    ----------
    targets
        The *verdicts* of :func:`plantedworld.studies.held_out.results`.
    rises
        The *rises* of :func:`plantedworld.studies.held_out.results`.
    """
    rises = rises.assign(
        measure="vlbs, tiny-" + rises["model"],
        statistic="rise less that of errors, points",
        dose=3.0,
        asked="more than 0",
    )
    targets = targets.assign(measure=row_names(targets), asked=bounds(targets))
    table = pandas.concat([targets, rises])
    table["dose"] = table["dose"].map("dose {:g}".format)
    table["cell"] = [
        f"{signed(row.mean)} ({ends}), asked {row.asked}: {'yes' if row.reached else 'no'}"
        for row, ends in zip(table.itertuples(), interval_texts(table), strict=True)
    ]
    keys = ["measure", "statistic"]
    wide = table.pivot(index=keys, columns="dose", values="cell").fillna("not asked")
    worlds = table.groupby(keys)["n"].min().rename("worlds")
    return wide.join(worlds).reindex(table[keys].drop_duplicates()).reset_index()


def of_study(number: str) -> pandas.DataFrame:
    """Return what the held-out test found of the measures of one study, at dose 3.

    Examples
    --------
    >>> of_study("3")["measure"].unique().tolist()
    ['difference, tiny-CLIP', 'C-ASC, tiny-CLIP', 'top k, tiny-CLIP']
    """
    results = held_out.results()
    table = held_out_table(results["verdicts"], results["rises"])
    kept = table["measure"].str.partition(", tiny-")[0].isin(OF_STUDY[number])
    return table.loc[kept, ["measure", "statistic", "dose 3", "worlds"]].reset_index(drop=True)


# Checked results: what the planted world says of each measure

CHECKED = Path(plantedworld.__file__).parent / "data" / "measure_verdicts.csv"

OF_STUDY = {
    "1": ("d, word", "d, sentence", "d, contextual"),
    "2": ("B(E)", "S_PT", "S_L", "S_V"),
    "3": ("difference", "C-ASC", "top k"),
    "4": ("vlbs",),
}
"""What the held-out test calls the measures of each study."""

CALLED = dict.fromkeys(OF_STUDY["1"], "d, Experiment 1") | {
    "difference": "scaled difference",
    "top k": "retrieval, top k",
}
"""What printed numbers call them."""

TITLES = {
    "planted_world": "A world with a known answer",
    "planted_study1_grounded": "Study 1 in the planted world",
}
"""Headings of the pages that show the results."""

QUESTIONS = {
    "signs": "sign",
    "rank within signs": "order within words of one sign",
    "partial rank": "order beyond what the same model says without a picture",
    "slope": "size (slope)",
}
"""What each statistic of the held-out test asks of a measure."""


def measures() -> pandas.DataFrame:
    """Return what the planted world says of each measure: one row a measure.

    Returns
    -------
    pandas.DataFrame
        *measure* and the *study* that uses it; *what it finds*, of which *scope*; *page*, where it
        is shown, with numbers. First those of the held-out test, at dose 3: which of their targets
        were reached and which were missed.

    Examples
    --------
    >>> measures().set_index("measure").loc["C-ASC", "what it finds"]
    'Missed: order within words of one sign.'
    """
    targets = held_out.results()["verdicts"].query("dose == 3")
    rows = []
    for number, names in OF_STUDY.items():
        own = targets[targets["measure"].isin(names)]
        for measure, part in own.groupby(own["measure"].replace(CALLED), sort=False):
            models = ", ".join(part["model"].map(MODELS).unique())
            rows.append((measure, number, _outcomes(part), models, TITLES["planted_world"]))
    others = pandas.read_csv(CHECKED, dtype=str)
    others["page"] = others["page"].map(TITLES)
    return pandas.concat([pandas.DataFrame(rows, columns=others.columns), others])


def _outcomes(targets: pandas.DataFrame) -> str:
    """Return which targets of a measure were reached, and which not, with models if they differ."""
    level = targets["measure"].str.partition(", ")[2]
    question = _questions(targets)
    question = question.where(level == "", question + ", " + level)
    models, sentences = targets["model"].map(MODELS), []
    for reached, word in ((True, "Reached"), (False, "Missed")):
        parts = []
        for name, of_models in models[targets["reached"] == reached].groupby(question, sort=False):
            some = len(of_models) < (question == name).sum()
            parts.append(f"{name} ({', '.join(of_models)})" if some else name)
        sentences += [f"{word}: {'; '.join(parts)}."] if parts else []
    return " ".join(sentences)


def _questions(targets: pandas.DataFrame) -> pandas.Series:
    """Return what each target asks of its measure."""
    # S_PT has no picture: the text-only model takes its place.
    blind = (targets["measure"] == "S_PT") & (targets["statistic"] == "partial rank")
    asked = targets["statistic"].map(QUESTIONS)
    return asked.mask(blind, "order beyond what the text-only model says")


def questions() -> pandas.DataFrame:
    """Return what the held-out test asked of each measure, with its answers and baselines.

    Returns
    -------
    pandas.DataFrame
        *measure*, *model*, *dose*; *question*, of ``QUESTIONS``; *verdict*, yes or no; *mean* over
        *worlds* with its *95% interval*; what was *asked*; *best wrong score*, the kind of stand-in
        that comes highest, or nearest to the middle of two bounds, and *its mean*.
    """
    results, keys = held_out.results(), ["measure", "model", "dose", "statistic"]
    targets = results["verdicts"]
    wrong = results["stand_ins"].merge(targets[[*keys, "least", "most"]], on=keys)
    middle = (wrong["least"] + wrong["most"]) / 2
    wrong["away"] = (wrong["mean"] - middle).abs().mask(np.isinf(middle), -wrong["mean"])
    nearest = wrong.sort_values("away").drop_duplicates(keys)[[*keys, "scores", "mean"]]
    table = targets.merge(nearest, on=keys, how="left", suffixes=("", " of wrong"))
    shares = table["statistic"] == "signs"  # an interval of Student can reach beyond 1
    table["high"] = table["high"].mask(shares, table["high"].clip(upper=1))
    return pandas.DataFrame(
        {
            "measure": table["measure"],
            "model": table["model"].map(MODELS),
            "dose": table["dose"],
            "question": _questions(table),
            "verdict": table["reached"].map({True: "yes", False: "no"}),
            "mean": table["mean"],
            "95% interval": interval_texts(table),
            "worlds": table["n"],
            "asked": bounds(table),
            "best wrong score": table["scores"].fillna("none asked"),
            "its mean": table["mean of wrong"],
        }
    )


# Exercises


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
