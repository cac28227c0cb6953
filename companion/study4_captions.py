"""Tables of study 4's chapter, and the checks of its exercises."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib import display, published
from biaslib.display import interval_text, interval_texts, signed
from biaslib.metrics import caption_selection
from biaslib.runtime import TASTE
from biaslib.studies import study4_captions as study
from companion._check import Check, judge_function, judge_list
from companion._drawing import Drawing
from companion._explorer import Panel
from companion._shared import emoji_on_white, of_the_run, p_cells
from companion.published_numbers import paired_bounds, score_intervals

SHOWN_SUBSETS = {
    "paper": "the paper's subset",
    "gendered": "the same, with captions that say a gender",
    "chosen": "stereotype chosen, not balanced",
    "anti": "all anti-stereotypical",
    "all": "all of the category",
    "everything": "all images",
}
NO_MODEL = ("oracle", "(imaginary)")
"""What stands in a column of models and is none."""


MARKS = {"guessing, a third": "guessing", "never looks, takes no side": "half of vlrs"}
"""Marks of the panel, as they are offered, and in the legend."""


def printed_panel() -> Panel:
    """Return the panel of Tables 3 and 4: a category's printed vlbs beside one of two marks.

    Examples
    --------
    >>> printed_panel().sentence("gender", "never looks, takes no side")
    'gender: 1 of 6 intervals lies above its mark, 0 lie below.'
    """
    rows, cases = score_intervals(), {}
    for category, mark in itertools.product(dict.fromkeys(rows["category"]), MARKS):
        wide = rows[rows["category"] == category].set_index(["metric", "model"])
        picked = wide.loc["vlbs"].sort_values("percent")
        half = wide.loc["vlrs", "percent"].reindex(picked.index) / 2
        at = half if MARKS[mark] == "half of vlrs" else half * 0 + 100 / 3
        cases[category, mark] = _beside_mark(picked, at, category, MARKS[mark])
    categories = list(dict.fromkeys(category for category, _ in cases))
    choices = {"Pictures of": categories, "Beside": list(MARKS)}
    return Panel("Stereotypes picked, beside a mark", choices, cases)


def _beside_mark(picked: pandas.DataFrame, at: pandas.Series, category: str, mark: str) -> Drawing:
    above, below = (picked["low"] > at).sum(), (picked["high"] < at).sum()
    heights = list(range(len(picked)))
    dots = {"kind": "dots", "x": picked["percent"], "y": heights, "along": "x"}
    dots |= {"low": picked["low"], "high": picked["high"], "label": "vlbs, as printed"}
    marks = {"kind": "dots", "x": at, "y": heights, "group": 5, "label": mark}
    verbs = ["lies" if n == 1 else "lie" for n in (above, below)]
    return Drawing(
        f"{category}: {above} of {len(picked)} intervals {verbs[0]} above its mark, {below} "
        f"{verbs[1]} below.",
        [marks, dots],
        "stereotype picked, % of pictures",
        "",
        (0, 100),
        (-0.6, len(picked) - 0.4),
        "A row a model with a dot, its interval and a mark.",
        table=picked.assign(mark=at)[["percent", "low", "high", "n", "mark"]].reset_index(),
        y_ticks=dict(enumerate(picked.index)),
        height=260,
    )


def tiny(table: pandas.DataFrame, profile: str = "planted") -> pandas.DataFrame:
    """Return a table whose models have the names of what ran: in ``planted``, tiny ones.

    Examples
    --------
    >>> tiny(pandas.DataFrame({"model": ["oracle", "CLIP"]}))["model"].tolist()
    ['perfect model', 'tiny-CLIP']
    """
    if profile != "planted":
        return table
    columns = [name for name in ("model", "first", "second") if name in table]
    return table.assign(**{name: table[name].map(tiny_name) for name in columns})


def tiny_name(model: str) -> str:
    """Return what a tiny model is called.

    Examples
    --------
    >>> tiny_name("ALBEF, matching logit")
    'tiny-ALBEF, matching logit'
    """
    if any(each in model for each in NO_MODEL):
        return model.replace("oracle", "perfect model")
    return f"tiny-{model}"


OF_NO_PAPER = {"planted": " (planted world, tiny models)", "taste": f" ({TASTE})"}


def titled(caption: str, profile: str) -> str:
    """Return a table's caption, which says if its numbers are of tiny models, or of a taste.

    Examples
    --------
    >>> titled("Scores of six models", "planted")
    'Scores of six models (planted world, tiny models)'
    """
    return caption + OF_NO_PAPER.get(profile, "")


# The paper's own tables


IMAGINED = {"IDM": "ideal (IDM)", "RAM": "random (RAM)", "BIM": "biased (BIM)"}
"""What the paper's short names of imagined models stand for."""


def printed_intervals() -> pandas.DataFrame:
    """Return Table 3 as printed, with exact 95% intervals from the counts of its images.

    *half of vlrs* is the vlbs to expect of a model that sees no picture and prefers neither
    meaningful caption, if a meaningful one wins as often on anti-stereotypical images as on all.
    """
    found = score_intervals().query("category == 'overall'")
    bounds = found.set_index(["model", "metric"])[["low", "high", "n", "percent"]]
    table = printed_scores(3)
    columns = {"model": table["model"].replace(IMAGINED)}
    for name, of in (("vlrs", "images"), ("vlbs", "anti-stereotypical images")):
        rows = bounds.xs(name, level="metric").reindex(table["model"])
        columns |= {name: table[name], f"{name}, 95% interval": interval_texts(rows, 1)}
        columns[of] = [None if pandas.isna(n) else int(n) for n in rows["n"]]
    half = bounds.xs("vlrs", level="metric")["percent"].reindex(table["model"]) / 2
    columns["half of vlrs"] = [None if pandas.isna(each) else f"{each:.2f}" for each in half]
    return pandas.DataFrame(columns | {"ivlas": table["ivlas"]}, dtype=object)


GIRL, TONGUE_OUT = "1f467", "1f61d"
"""Code points of the emoji that stand in for the paper's photograph."""


def drawn_example() -> np.ndarray:
    """Return the drawing of the running example: a girl who sticks out her tongue."""
    return np.concatenate([emoji_on_white(code) for code in (GIRL, TONGUE_OUT)], axis=1)


# The run


def results(found: study.Run, scores: pandas.DataFrame, *figures: display.Figure) -> display.Folded:
    """Return what a run has to show, tables and then figures, behind one line.

    Parameters
    ----------
    found
        What was run.
    scores
        Of :func:`biaslib.studies.study4_captions.selection_scores`, of the selected images.
    *figures
        Of the same scores.
    """
    profile = found.inputs.profile
    parts = [*_what_ran(found), *_selections(found, scores), *figures]
    if profile == "paper":
        parts.append(display.table(figure_3(found), "The two cases of Figure 3: printed, and here"))
    return of_the_run(profile, *parts)


def missing_tables(given: study.Inputs) -> list[display.Table]:
    """Return what is there of the images, and what cannot be computed; nothing if all are there."""
    parts = []
    if given.links is not None:
        parts.append(display.table(given.links, "Links that still lead to an image, by category"))
    if len(missing := study.missing_inputs(given)):
        parts.append(display.table(missing, "What cannot be computed of these images"))
    return parts


def _what_ran(found: study.Run) -> list[display.Table]:
    """Return tables of the models that ran, and of those that did not."""
    profile = found.inputs.profile
    caption = titled("The structure of Table 2: what scores captions", profile)
    parts = [display.table(tiny(models_table(found), profile), caption)]
    if len(found.skipped):
        reasons = found.skipped.rename(columns={"reason": "why not"})
        parts.append(display.table(reasons, "What was not run, and why"))
    return parts


def _selections(found: study.Run, scores: pandas.DataFrame) -> list[display.Table]:
    """Return vlrs, vlbs and ivlas of the selection and of all images, and pairs of models."""
    profile = found.inputs.profile
    choices = tiny(choices_table(found, study.over_selections(found, range(6))), profile)
    pairs = tiny(study.paired_tests(found, "vlbs"), profile)
    captions = (
        "The structure of Table 3: per cent, 95% intervals over triplets",
        "vlbs, in per cent, under choices that the paper leaves open",
        "Differences in vlbs: 95% interval, p by exchange",
    )
    of_selection, of_choices, of_pairs = (titled(caption, profile) for caption in captions)
    parts = [display.table(scores_table(tiny(scores, profile)), of_selection)]
    if profile != "planted":
        every = scores_table(study.selection_scores(found))
        parts.append(display.table(every, titled("Table 3 once more, of all images", profile)))
    parts.append(display.table(choices, of_choices, decimals=1))
    return parts + ([display.table(paired_table(pairs), of_pairs)] if len(pairs) else [])


# Table 2 and Figure 3


def models_table(found: study.Run) -> pandas.DataFrame:
    """Return the paper's Table 2 with what each model was scored by here, or why it was not."""
    printed = published.table("zhou2022", 2).set_index("model")["pretraining_objectives"]
    why = dict(zip(found.skipped["model"], found.skipped["reason"], strict=True))
    rows = []
    for way in found.inputs.heads:
        objectives = printed.get(way.model, "–")
        scored_by = study.HEADS[way.head] + (" (as in the paper)" if way.as_in_paper else "")
        ran = "yes"
        if way.label not in found.scored:
            ran = f"no: {_short(why.get(way.label, 'not asked for'))}"
        rows.append((way.model, objectives, scored_by, ran))
    return pandas.DataFrame(rows, columns=["model", "objectives, Table 2", "scored by", "run"])


def _short(reason: str, most: int = 110) -> str:
    """Return the beginning of a reason."""
    return reason if len(reason) <= most else f"{reason[:most].rsplit(' ', 1)[0]} …"


FIGURE_3 = {
    722: ("sister", "empathy", "aggression", "CLIP, ALBEF"),
    1680: ("delivery man", "rushed", "thoughtful", "all but ViLT"),
}
"""The paper's two cases: line of the released table, target, stereotype, anti-stereotype, and which
models picked the stereotype by Section 4.2."""


def figure_3(found: study.Run) -> pandas.DataFrame:
    """Return the paper's two cases: who picked the stereotype by the paper, and in this run.

    Raises
    ------
    ValueError
        If the run is of the planted world, which has no lines of the released table.
    """
    if found.inputs.profile != "paper":
        raise ValueError("the cases of Figure 3 are in the released table; run the profile 'paper'")
    lines, rows = found.inputs.table["row"].tolist(), []
    for line, (target, one, other, printed) in FIGURE_3.items():
        here = "its image is not here"
        if line in lines:
            place = lines.index(line)
            picked = [
                label
                for label, each in found.scored.items()
                if caption_selection.picks(each.original, "split", study.TOLERANCE)[place, 0] == 1
            ]
            here = "; ".join(picked) or "none"
        rows.append((line, target, f"{one} or {other}", printed, here))
    names = ["line", "target", "stereotype or anti-stereotype"]
    return pandas.DataFrame(rows, columns=[*names, "picked the stereotype, printed", "this run"])


# Tables 3 and 4


def scores_table(scores: pandas.DataFrame, test: str = "overall") -> pandas.DataFrame:
    """Return vlrs, vlbs and ivlas with intervals: a row a model, the paper's references below.

    In the profile ``paper`` the scores that the paper printed stand beside those of its ways.
    """
    table = _scores_and_references(scores, test)
    if scores["profile"].iloc[0] != "paper":
        return table
    printed = _printed_of_both().query("test == @test")
    printed = printed.pivot(index="model", columns="statistic", values="printed")
    beside = {f"{name}, printed": table["model"].map(printed[name]) for name in ("vlrs", "vlbs")}
    return table.assign(**beside)


def _scores_and_references(scores: pandas.DataFrame, test: str) -> pandas.DataFrame:
    rows = [
        _scores_row(model, part)
        for model, part in scores[scores["test"] == test].groupby("model", sort=False)
    ]
    for each in study.reference_models().to_dict("records"):
        values = {name: f"{each[name]:.1f}" for name in ("ivlas", "vlrs", "vlbs")}
        rows.append({"model": f"{each['model']} (imaginary)"} | values)
    return pandas.DataFrame(rows, dtype=object)  # counts stay whole where references have none


def _scores_row(model: str, part: pandas.DataFrame) -> dict:
    found = part.set_index("statistic")
    cells = {name: score_cell(found.loc[name]) for name in ("ivlas", "vlrs", "vlbs")}
    n = {"images": int(found.loc["vlrs", "n"]), "anti-stereotypical": int(found.loc["vlbs", "n"])}
    return {"model": model} | cells | n


def score_cell(row: pandas.Series) -> str:
    """Return a value in per cent with its interval."""
    if pandas.isna(row["value"]):
        return "–"
    if pandas.isna(row["low"]):
        return f"{row['value']:.1f}"
    return f"{row['value']:.1f} ({interval_text(row['low'], row['high'], 0)})"


def printed_scores(number: int = 3) -> pandas.DataFrame:
    """Return the paper's Table 3 or 4, as printed: a row a model, or a model and category."""
    table = published.table("zhou2022", number)
    keys = ["model"] if number == 3 else ["model", "category"]
    wide = table.pivot(index=keys, columns="metric", values="value")[["vlrs", "vlbs", "ivlas"]]
    order = table.drop_duplicates(keys).set_index(keys).index
    return wide.loc[order].reset_index().rename_axis(columns=None)


def _printed_of_both() -> pandas.DataFrame:
    """Return Tables 3 and 4 by *model*, *test* and *statistic*, with what is *printed*."""
    both = pandas.concat([published.table("zhou2022", number) for number in (3, 4)])
    named = both.rename(columns={"category": "test", "metric": "statistic", "value": "printed"})
    return named.drop_duplicates(["model", "test", "statistic"])


def interval_table(scores: pandas.DataFrame, statistic: str = "vlbs") -> pandas.DataFrame:
    """Return one score of all models by category, with its interval and its counts."""
    kept = scores[scores["statistic"] == statistic]
    kept = kept[["model", "test", "value", "low", "high", "n", "count", "method"]]
    if (kept["count"] % 1 == 0).all():  # A tie counts by halves.
        kept = kept.astype({"count": int})
    return kept.rename(columns={"test": "category", "count": "images counted"})


def paired_table(tests: pandas.DataFrame) -> pandas.DataFrame:
    """Return paired differences for the reader, those with the smallest p first."""
    ordered = tests.sort_values("p_value")
    bounds = ordered["p_low"], ordered["p_high"]
    return pandas.DataFrame(
        {
            "models": ordered["first"] + " − " + ordered["second"],
            "difference in points": ordered["difference"].map(lambda value: signed(value, 1)),
            "95% interval": interval_texts(ordered, 0),
            "p": _in_one_piece(p_cells(ordered["p_value"], *bounds)),
            "p, Holm": _in_one_piece(p_cells(ordered["adjusted"], *bounds, "holm")),
            "images": ordered["n"],
            "triplets": ordered["triplets"],
        }
    )


def _in_one_piece(cells: Sequence[str]) -> list[str]:
    return [each.replace(" ", "\N{NO-BREAK SPACE}") for each in cells]


def choices_table(found: study.Run, spread: pandas.DataFrame) -> pandas.DataFrame:
    """Return vlbs under the choices that the paper leaves to the reader: a row a model.

    Parameters
    ----------
    found
        What was run; its ties, and its averages over target terms, are of all of its images.
    spread
        Of :func:`biaslib.studies.study4_captions.over_selections`.
    """
    asked = "test == 'overall' and statistic == 'vlbs'"

    def vlbs(**choice: Any) -> pandas.DataFrame:
        scores = study.selection_scores(found, n_resamples=0, **choice)
        return scores.query(asked).set_index("model")

    drawn = spread.query(asked).groupby("model")["value"].agg(["min", "max"])
    columns = {
        "vlbs, all images": vlbs()["value"],
        "tied images": vlbs()["tied"],
        "ties to the anti-stereotype": vlbs(policy="anti-stereotype")["value"],
        "over target terms": vlbs(per_target=True)["value"],
    }
    table = pandas.DataFrame(columns).rename_axis("model")
    table[["lowest of the selections", "highest"]] = drawn.reindex(table.index)
    return table.reset_index()


# A real language model


LANGUAGE_MODEL = "SmolLM2, no picture"
LANGUAGE_CHOICES = {
    "as above": {},
    "by the whole caption": {"per_token": False},
    "StereoSet's start token": {"column": "log_p_endoftext"},
    "both": {"per_token": False, "column": "log_p_endoftext"},
    "all 1,958 images": {"images": "images"},
}
"""How a caption can be scored by its words alone, and on which images: see :func:`language_run`."""


def language_run(images: str = "drawn", column: str = "log_p", per_token: bool = True) -> study.Run:
    r"""Return the choices among VLStereoSet's captions of a language model that sees no picture.

    SmolLM2-135M-Instruct, quantised to 4 bits: a real model, and none of the paper's. The score of
    a caption of n tokens is that of StereoSet's program for such models,

    .. math:: \frac{1}{n} \sum_t \log P(w_t \mid \text{start}, w_{<t}),

    and the same for all images of a triplet. ``tools/language_model.py`` made the numbers.

    Parameters
    ----------
    images
        ``drawn``: the balanced selection by seed 0; ``images``: all that were released.
    column
        ``log_p``, after the start token that the model's file names; ``log_p_endoftext``, after
        the one that StereoSet's program uses.
    per_token
        False takes the sum, which prefers short captions.

    Examples
    --------
    >>> len(language_run().inputs.table), len(language_run("images").inputs.table)
    (1028, 1958)
    """
    table = pandas.read_csv(Path(__file__).parent / "data" / "language_captions.csv")
    rows = [
        table.loc[table.index.repeat(table[f"{images} {label}"])].assign(label=label)
        for label in study.PAIR
    ]
    rows = pandas.concat(rows, ignore_index=True)
    scores, tokens = (
        rows[[f"{name} {kind}" for kind in study.CAPTIONS]].to_numpy(float)
        for name in (column, "tokens")
    )
    given = study.Inputs(rows, [], [], "paper", "VLStereoSet")
    none = np.full((len(rows), 2), np.nan)
    head = study.ModelHead(LANGUAGE_MODEL, "matching", True, "", "")
    scored = study.Scored(head, "", scores / tokens if per_token else scores, none, none)
    return study.Run(given, {LANGUAGE_MODEL: scored}, pandas.DataFrame())


def language_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return the language model's scores by category, beside the range of the six printed vlbs."""
    cells = scores.assign(cell=scores.apply(score_cell, axis=1))
    table = cells.pivot(index="test", columns="statistic", values="cell")
    printed = _printed_of_both().query("statistic == 'vlbs'")
    six = printed[printed["model"].isin([head.model for head in study.MODEL_HEADS])]
    ends = six.groupby("test")["printed"].agg(["min", "max"])
    table["six models, vlbs printed"] = ends.apply(
        lambda row: "{:.1f} to {:.1f}".format(*row), axis=1
    )
    counts = scores[scores["statistic"] == "vlbs"].set_index("test")["n"]
    table["anti-stereotypical images"] = counts
    names = ["vlrs", "vlbs", "ivlas", *table.columns[-2:]]
    return table.loc[counts.index, names].reset_index(names="category")


def language_choices() -> pandas.DataFrame:
    """Return the language model's overall scores under :data:`LANGUAGE_CHOICES`."""
    rows = []
    for name, choice in LANGUAGE_CHOICES.items():
        found = study.selection_scores(language_run(**choice)).query("test == 'overall'")
        cells = found.set_index("statistic").apply(score_cell, axis=1)
        rows.append({"scored": name, **cells[["vlrs", "vlbs", "ivlas"]]})
    return pandas.DataFrame(rows)


# lmss and vlss

MEAN_AND_SHARE = ("mean (95% interval)", "% above 0 (95% interval)")


def shift_table(summary: pandas.DataFrame) -> pandas.DataFrame:
    """Return mean and share of positive shifts, a row a model, dose, score and subset."""
    keys = ["model", "test", "level", "dose"]
    rows = []
    summary = summary if "dose" in summary else summary.assign(dose=np.nan)
    for (model, test, level, dose), part in summary.groupby(keys, sort=False, dropna=False):
        found = part.set_index("statistic")
        mean, share = found.loc["mean"], found.loc["% positive"]
        of_share = (score_cell(share), share["method"]) if mean["n"] else ("–", "–")
        key = model, dose, test, SHOWN_SUBSETS[level]
        rows.append((*key, shift_cell(mean), *of_share, int(mean["n"])))
    names = ["model", "dose", "score", "images", *MEAN_AND_SHARE, "interval of the share", "n"]
    table = pandas.DataFrame(rows, columns=names)
    if table["dose"].isna().all():
        return table.drop(columns="dose")
    order = {name: at for at, name in enumerate(dict.fromkeys(table["model"]))}
    return table.sort_values("model", key=lambda names: names.map(order), kind="stable")


def shift_cell(row: pandas.Series) -> str:
    """Return a mean shift with its interval; that of one triplet has none."""
    if not row["n"]:
        return "–"
    if pandas.isna(row["low"]):
        return signed(row["value"])
    return f"{signed(row['value'])} ({interval_text(row['low'], row['high'])})"


# Exercises


def check_ivlas(function) -> Check:
    """Check the reader's harmonic mean on values of the paper's Table 3 and on its corners."""
    hint = "look up the harmonic mean of two numbers; one of the two is 100 − vlbs; take 0/0 as 0"
    pairs = [(85.2140, 32.2957), (60.7004, 28.7938), (100.0, 0.0), (0.0, 100.0)]
    cases = [(pair, float(caption_selection.ivlas(*pair))) for pair in pairs]
    faults = {
        "this is the mean of vlrs and vlbs: a high vlbs must lower it, so take 100 − vlbs": (
            lambda vlrs, vlbs: 2 * vlrs * vlbs / (vlrs + vlbs)
        ),
        "this is the arithmetic mean; the harmonic one lies nearer to the smaller part": (
            lambda vlrs, vlbs: (vlrs + 100 - vlbs) / 2
        ),
    }
    return judge_function(function, cases, hint, right=AGREES, faults=faults)


def check_vlbs(function) -> Check:
    """Check the reader's vlbs from logits and the labels of the images."""
    hint = "of which images is it a share, and against how many captions must the stereotype win?"
    logits = [[3, 2, 1], [1, 3, 2], [2, 1, 3], [3, 1, 2], [2, 3, 1], [3, 2, 1], [1, 2, 3]]
    anti = ([True, True, True, True, False, False, False], [True, False, True, False] + [True] * 3)
    given = zip((logits, logits[::-1]), anti, strict=True)
    pairs = [(np.array(scores, float), np.array(labels)) for scores, labels in given]
    cases = [(pair, float(caption_selection.vlbs(*pair).value)) for pair in pairs]
    faults = {
        "this is a share, from 0 to 1; vlbs is in per cent": (
            lambda scores, anti: np.mean(scores[anti].argmax(axis=1) == 0)
        ),
        "you divide by all images; vlbs is a share of the anti-stereotypical ones": (
            lambda scores, anti: 100 * np.mean(anti & (scores.argmax(axis=1) == 0))
        ),
        "you count stereotypes on all images; on some of them the stereotype is right": (
            lambda scores, anti: 100 * np.mean(scores.argmax(axis=1) == 0)
        ),
        "the stereotype must beat the meaningless caption, too": (
            lambda scores, anti: 100 * np.mean(scores[anti, 0] > scores[anti, 1])
        ),
    }
    return judge_function(function, cases, hint, right=AGREES, faults=faults)


def check_lmss(function) -> Check:
    """Check the reader's lmss from logits: two-way softmax with the target term and without."""
    hint = "which two captions share the probability, and what is divided by what?"
    cases = []
    for pair in [((2.0, 1.0), (1.0, 1.0)), ((0.3, 0.9), (0.1, -0.4))]:
        shares = [caption_selection.two_way([logits]) for logits in pair]
        cases.append((pair, float(caption_selection.lmss(*shares).values[0])))

    def ratio(named, neutral):
        first, second = (np.exp(pair) / np.exp(pair).sum() for pair in (named, neutral))
        return first[0] / second[0]

    faults = {
        "this is log10; lmss is the natural logarithm": lambda *pair: np.log10(ratio(*pair)),
        "this is the ratio; take its logarithm": ratio,
        "this is the shift with its sign turned: divide named by neutral": (
            lambda *pair: -np.log(ratio(*pair))
        ),
        "this subtracts logits; make probabilities of the two captions first": (
            lambda named, neutral: named[0] - neutral[0]
        ),
    }
    return judge_function(function, cases, hint, right=AGREES, faults=faults)


AGREES = "it agrees with the package on every case."

STATEMENTS = (
    "CLIP picks the stereotype more often than FLAVA does.",
    "VisualBERT picks the stereotype more often than guessing would.",
    "LXMERT picks the stereotype more often than guessing would.",
    "ALBEF picks the stereotype less often than guessing would.",
    "CLIP picks the stereotype more often for gender than for profession.",
    "FLAVA, which picks the stereotype least often, has learned the fewest stereotypes.",
)
"""What somebody might read from Tables 3 and 4: the exercise asks which of it they show."""


def statements_shown() -> list[bool]:
    """Return which of :data:`STATEMENTS` the printed tables show, at 95%.

    The last is no statement about a share: a model that picks meaningless captions picks few
    stereotypes too.
    """
    found = score_intervals().query("metric == 'vlbs'").set_index(["model", "category"])
    chance = caption_selection.reference_scores("random").vlbs
    low, high = found["low"], found["high"]
    pair = paired_bounds("vlbs").set_index(["first", "second"]).loc[("CLIP", "FLAVA")]
    apart = low["CLIP", "gender"] > high["CLIP", "profession"]
    above = [bool(low[name, "overall"] > chance) for name in ("VisualBERT", "LXMERT")]
    below = bool(high["ALBEF", "overall"] < chance)
    return [bool(pair["p_high"] < 0.05), *above, below, bool(apart), False]


WHY = (
    "the two saw the same images; how large can the p-value of their difference be at most?",
    "compare the interval with the line of guessing",
    "compare the interval with the line of guessing, to the digit",
    "the point is on one side of guessing; is the interval?",
    "each share is of about a hundred images: look at the intervals by category",
    "what does a model pick that picks no stereotype? Look at its vlrs",
)


def check_statements(answer) -> Check:
    """Check which of :data:`STATEMENTS` the reader takes to be shown.

    Examples
    --------
    >>> check_statements([True, True, False, True, False, False])
    Not yet: 5 of 6 are right; statement 4: the point is on one side of guessing; is the interval?
    """
    form = f"give {len(STATEMENTS)} of True and False, in the order of the list"
    hints = [f"statement {at}: {why}" for at, why in enumerate(WHY, 1)]
    learned = "a share has an interval, and a low share has more than one cause."
    return judge_list(answer, statements_shown(), form, hints, learned)
