"""Tables, figures, sentences and panel of study 4's chapter."""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import published
from biaslib.datasets import vlstereoset
from biaslib.metrics import caption_selection
from biaslib.published.reexamination import zhou2022
from biaslib.report._check import Check
from biaslib.report._style import dots, marked, subplots, words_alone
from biaslib.report._tables import require_paper, there_table
from biaslib.report._text import interval_text, interval_texts, p_text, signed
from biaslib.studies import study4_captions as study

PRINTED = ("gender", "profession", "race", "religion")
SHOWN_SUBSETS = {
    "paper": "the paper's subset",
    "gendered": "the same, with captions that say a gender",
    "chosen": "stereotype chosen, not balanced",
    "anti": "all anti-stereotypical",
    "all": "all of the category",
    "everything": "all images",
}
LOOKED_AT = {"both": "both", "gender": "an object", "profession": "a costume"}
"""What tells the right caption, by category."""

PLACES = {
    "nothing": "nothing (dose 0)",
    "both": "captions and pictures",
    "text": "captions alone",
    "images": "pictures alone",
}


# Tables 1 and 2, Figures 1 and 2


def sizes(given: study.Inputs) -> pandas.DataFrame:
    """Return images by category: as printed, as Table 4's percentages give them, and here.

    The third column is what balancing the released table gives, the last what balancing the images
    of this run gives; in the planted world the categories are others.
    """
    released, printed = zhou2022.released_sizes(), zhou2022.printed_sizes()
    rows = [(name, printed[name], released[name]) for name in PRINTED]
    names = ["category", "Table 1 as printed", "released table, balanced"]
    table = pandas.DataFrame(rows, columns=names)
    cells = zhou2022.category_assignments().iloc[0]
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
                "why not": "" if ran else _short(why.get(way.label, "not asked for")),
            }
        )
    return pandas.DataFrame(rows)


def _short(reason: str, most: int = 90) -> str:
    """Return the beginning of a reason; :func:`skipped_table` has the whole of it."""
    return reason if len(reason) <= most else f"{reason[:most].rsplit(' ', 1)[0]} …"


def skipped_table(found: study.Run) -> pandas.DataFrame:
    """Return in full why models, or vlss of some, were not run, with what would mend it."""
    if found.skipped.empty:
        return pandas.DataFrame({"model": ["–"], "why not": ["everything was run"]})
    return found.skipped.rename(columns={"reason": "why not"})


def _examples(given: study.Inputs, n: int = 4) -> pandas.DataFrame:
    firsts = given.table[given.anti].groupby("category", sort=False).head(1)
    return firsts.head(n)


def example(given: study.Inputs):
    """Draw one anti-stereotypical image a category with its captions; pictures of emoji only.

    In ``paper`` no photograph is shown: the table behind the figure has counts.
    """
    if given.profile != "planted":
        return words_alone("No photograph is shown: images by category and label are below.")

    rows = _examples(given)
    figure, axes = subplots(1, len(rows), height=2.9)
    figure.set_facecolor("white")
    for axis, at, row in zip(axes, rows.index, rows.to_dict("records"), strict=True):
        axis.imshow(given.images[at], interpolation="lanczos")
        axis.axis("off")
        axis.set_title(row["category"], fontsize=10, color="0.1")
        text = "\n".join(_wrapped(row[name]) for name in study.CAPTIONS)
        axis.text(0.5, -0.06, text, transform=axis.transAxes, ha="center", va="top", fontsize=7.5)
    return marked(figure, given.profile)


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
        ("gender", "sister", "My sister says that she is tall."),
        ("profession", "engineer", "He met an engineer."),
        ("race", "Norway", "It snows in Norway."),
        ("religion", "Bible", "He read the Bible."),
    ]
    rows = [(*each, vlstereoset.neutral_caption(each[2], each[1])) for each in invented]
    return pandas.DataFrame(rows, columns=["category", "target", "caption", "neutral"])


def case_table(found: study.Run) -> pandas.DataFrame:
    """Return two anti-stereotypical images, one a category, and which models picked what.

    Of the first two categories, the image on which most models picked the stereotype, the first of
    several. In ``paper`` neither target nor captions are shown.
    """
    picks = {
        label: caption_selection.picks(each.original, "split", study.TOLERANCE)
        for label, each in found.scored.items()
    }
    given, rows = found.inputs, []
    biased = sum((each[:, 0] == 1).astype(int) for each in picks.values())
    for category in dict.fromkeys(given.table.loc[given.anti, "category"]):
        here = given.anti & (given.table["category"] == category).to_numpy()
        place = int(np.where(here, biased, -1).argmax())
        chosen = {
            f"picked the {name}": "; ".join(m for m, each in picks.items() if each[place, at] == 1)
            for at, name in enumerate(study.CAPTIONS)
        }
        said = given.table.iloc[place][["target", *study.CAPTIONS]].to_dict()
        shown = said if given.profile == "planted" else {}
        rows.append({"category": category} | shown | chosen)
    return pandas.DataFrame(rows[:2])


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


def there(given: study.Inputs) -> pandas.DataFrame:
    """Return how many rows, images and neutral captions were asked for, and are there."""
    table, n = given.table, len(given.table)
    rows = []
    if given.links is not None:
        released = given.links.set_index("category").loc["all"]
        asked = int(sum(released[f"{label}, released"] for label in study.PAIR))
        rows.append(("rows with their image", asked, n, released["what came instead"].strip("–")))
    rows.append(
        ("rows with neutral captions", n, int(table[study.NEUTRAL].notna().all(axis=1).sum()), "")
    )
    gender = (table["category"] == "gender").to_numpy()
    told = int((gender & ~study.strict(given)).sum())
    note = f"{told} still say a gender" if told else ""
    rows.append(
        ("rows of gender whose neutral captions say none", gender.sum(), gender.sum() - told, note)
    )
    return there_table(rows)


# Tables 3 and 4


def selected_sentence(given: study.Inputs) -> str:
    """Return which images the scores below are computed of."""
    rows = study.selected(given)
    counted = f"{len(rows):,} images, {int(given.anti[rows].sum()):,} of them anti-stereotypical"
    if given.profile != "paper":
        return f"The scores below are of all images of this run: {counted}."
    return (
        f"The scores below are of a balanced selection, drawn by seed 0, as the paper scored one: "
        f"{counted}. The scores of all {len(given.table):,} images are folded below it."
    )


def scores_table(scores: pandas.DataFrame, test: str = "overall") -> pandas.DataFrame:
    """Return vlrs, vlbs and ivlas with intervals: a row a model, the paper's references below.

    In the profile ``paper`` the scores that the paper printed stand beside those of its ways.
    """
    table = _scores_and_references(scores, test)
    if scores["profile"].iloc[0] != "paper":
        return table
    printed = _printed_of_both(test)
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
    cells = {name: _cell(found.loc[name]) for name in ("ivlas", "vlrs", "vlbs")}
    n = {"images": int(found.loc["vlrs", "n"]), "anti-stereotypical": int(found.loc["vlbs", "n"])}
    return {"model": model} | cells | n


def _cell(row: pandas.Series) -> str:
    if pandas.isna(row["value"]):
        return "–"
    if pandas.isna(row["low"]):
        return f"{row['value']:.1f}"
    return f"{row['value']:.1f} ({interval_text(row['low'], row['high'], 0)})"


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


def _printed_of_both(test: str) -> pandas.DataFrame:
    """Return the scores of Tables 3 and 4 of one category, or of all images, by model."""
    both = pandas.concat([published.table("zhou2022", number) for number in (3, 4)])
    kept = both[both["category"] == test].drop_duplicates(["model", "metric"])
    return kept.pivot(index="model", columns="metric", values="value")


def printed_beside(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return scores of this run beside those printed in Tables 3 and 4: a row a cell.

    Only the ways in which the paper scored are in it.

    Raises
    ------
    ValueError
        If the scores are of the planted world: its numbers and printed ones share no table.
    """
    require_paper(scores)
    tables = [
        part.assign(printed=_looked_up(part, _printed_of_both(test)))
        for test, part in scores.groupby("test", sort=False)
    ]
    kept = pandas.concat(tables, ignore_index=True).dropna(subset="printed")
    return pandas.DataFrame(
        {
            "model": kept["model"],
            "category": kept["test"],
            "score": kept["statistic"],
            "printed": kept["printed"],
            "this run (95% interval)": kept.apply(_cell, axis=1),
            "n": kept["n"],
        }
    )


def _looked_up(part: pandas.DataFrame, printed: pandas.DataFrame) -> list[float]:
    known = printed.stack().to_dict()
    return [known.get(each, np.nan) for each in zip(part["model"], part["statistic"], strict=True)]


def intervals(scores: pandas.DataFrame, statistic: str = "vlbs"):
    """Draw one score of all models by category, with intervals; lines mark the random model."""
    kept = scores[scores["statistic"] == statistic]
    tests, names = list(dict.fromkeys(kept["test"])), list(dict.fromkeys(kept["model"]))
    height = 0.9 + 0.34 * len(names)
    figure, axes = subplots(1, len(tests), height=height, sharey=True)
    chance = caption_selection.reference_scores("random")
    for axis, test in zip(np.atleast_1d(axes), tests, strict=True):
        rows = kept[kept["test"] == test].set_index("model").loc[names]
        dots(axis, range(len(rows)), rows, "C0")
        axis.axvline(getattr(chance, statistic), color="0.5", linewidth=1, linestyle=":")
        axis.set(xlim=(-4, 104), title=test, xticks=(0, 50, 100))
        axis.title.set_fontsize(10)
    np.atleast_1d(axes)[0].set_yticks(range(len(names)), names, fontsize=8.5)
    np.atleast_1d(axes)[0].invert_yaxis()
    figure.supxlabel(f"{statistic}, per cent", fontsize=10)
    return marked(figure, kept["profile"].iloc[0])


def interval_table(scores: pandas.DataFrame, statistic: str = "vlbs") -> pandas.DataFrame:
    """Return what :func:`intervals` draws."""
    kept = scores[scores["statistic"] == statistic]
    kept = kept[["model", "test", "value", "low", "high", "n", "count", "method"]]
    return kept.rename(columns={"test": "category", "count": "images counted"})


def printed_sentence() -> str:
    """Return which models of the paper's Table 3 are above its imaginary random model."""
    printed, chance = printed_scores(3), caption_selection.reference_scores("random")
    printed, parts = printed[printed["model"].isin([way.model for way in study.WAYS])], []
    for name, what in (("vlrs", "a relevant caption"), ("vlbs", "the stereotype")):
        value = getattr(chance, name)
        above = printed.loc[printed[name] > value, "model"].tolist()
        below = printed.loc[printed[name] <= value, "model"].tolist()
        parts.append(
            f"{len(above)} of {len(printed)} models pick {what} more often than the random model's "
            f"{value:.1f}% (not: {', '.join(below) or 'none'})"
        )
    return f"In the paper's Table 3, {parts[0]}, and {parts[1]}."


def paired_table(tests: pandas.DataFrame) -> pandas.DataFrame:
    """Return paired differences for the reader, those with the smallest p first."""
    ordered = tests.sort_values("p_value")
    return pandas.DataFrame(
        {
            "models": ordered["first"] + " − " + ordered["second"],
            "difference in points": ordered["difference"].map(lambda value: signed(value, 1)),
            "95% interval": interval_texts(ordered, 0),
            "p": ordered["p_value"].map(_p_cell),
            "p, Holm": ordered["adjusted"].map(_p_cell),
            "images": ordered["n"],
            "triplets": ordered["triplets"],
        }
    )


def _p_cell(p_value: float) -> str:
    """Return a p-value for a column that says what it is."""
    text = p_text(p_value).removeprefix("p ").removeprefix("= ")
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def selection_spread(spread: pandas.DataFrame, scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how far vlrs and vlbs move with the selection's seed, beside half their interval."""
    keys, asked = ["statistic", "model"], "test == 'overall' and statistic != 'ivlas'"
    kept = spread.query(asked).sort_values("statistic", ascending=False, kind="stable")
    kept = kept.groupby(keys, sort=False)["value"]
    found = kept.agg(["min", "max", "std", "count"])
    wide = scores.query(asked).set_index(keys)
    found["half an interval's width"] = (wide["high"] - wide["low"]).reindex(found.index) / 2
    names = {"statistic": "score", "min": "lowest", "max": "highest"}
    return found.reset_index().rename(columns=names | {"std": "spread", "count": "selections"})


def spread_sentence(table: pandas.DataFrame) -> str:
    """Return how far the choice of images alone moves the scores, from :func:`selection_spread`."""
    parts = [_moved(name, table[table["score"] == name]) for name in ("vlrs", "vlbs")]
    return f"How far does the seed move a score? {' '.join(parts)}"


def _moved(name: str, rows: pandas.DataFrame) -> str:
    apart = rows["highest"] - rows["lowest"]
    most, half = apart.idxmax(), "half an interval's width"
    wider = int((apart > rows[half]).sum())
    where = f" ({rows.loc[most, 'model']})" if apart.max() else ""
    return (
        f"Over {rows['selections'].max()} selections {name} moves by {apart.median():.1f} points "
        f"in the median model, and at most by {apart.max():.1f}{where}; half an interval is "
        f"{rows[half].median():.1f} points wide in the median, and {wider} of {len(rows)} models "
        "move by more than half of their own."
    )


# lmss and vlss


def shift_figure(table: pandas.DataFrame, profile: str, category: str = "gender"):
    """Draw lmss and vlss of one category, a row a model: a dot an image, the paper's subset filled.

    Images whose neutral captions still say a gender are left out.
    """
    kept = table[(table["category"] == category) & table["anti"].astype(bool)]
    kept = kept[kept["strict"].astype(bool)]
    names = list(dict.fromkeys(kept["model"]))
    if not names:
        return words_alone("No anti-stereotypical image of this category has neutral captions.")
    rng = np.random.default_rng(0)
    figure, axes = subplots(1, 2, height=0.9 + 0.42 * len(names), sharey=True)
    for axis, score in zip(axes, ("lmss", "vlss"), strict=True):
        for place, name in enumerate(names):
            rows = kept[kept["model"] == name]
            height = place + rng.uniform(-0.22, 0.22, len(rows))
            for chosen, face in ((False, "none"), (True, "C1")):
                some = ((rows["chosen"] & rows["balanced"]) == chosen).to_numpy()
                axis.scatter(
                    rows[score][some], height[some], s=14, facecolors=face,
                    edgecolors="C1" if chosen else "0.45", linewidths=0.7,
                )  # fmt: skip
        axis.axvline(0, color="0.4", linewidth=1)
        axis.set(xlabel=f"{score}, natural logarithm")
    axes[0].set_yticks(range(len(names)), names, fontsize=8.5)
    axes[0].invert_yaxis()
    return marked(figure, profile)


def figure_4_sentence(moved: pandas.DataFrame) -> str:
    """Return of how many images the paper's Figure 4 is, by Table 4, and of how many this run's."""
    counts = zhou2022.reconstructed_counts().query("category == 'gender' and metric == 'vlbs'")
    counts = counts.set_index("model")["count"].astype(int)
    here = moved[moved["category"] == "gender"]
    here = here[here[["anti", "chosen", "balanced", "strict"]].all(axis=1)]["model"].value_counts()
    parts = [
        f"{counts[name]} images for {name} ({here.get(name, 0)} here)" for name in ("CLIP", "ALBEF")
    ]
    return f"By Table 4, the paper's Figure 4 has {parts[0]} and {parts[1]}."


MEAN_AND_SHARE = ("mean (95% interval)", "% above 0 (95% interval)")


def shift_table(summary: pandas.DataFrame) -> pandas.DataFrame:
    """Return mean and share of positive shifts, a row a model, dose, score and subset."""
    keys = ["model", "test", "level", "dose"]
    rows = []
    for (model, test, level, dose), part in summary.groupby(keys, sort=False, dropna=False):
        found = part.set_index("statistic")
        mean, share = found.loc["mean"], found.loc["% positive"]
        rows.append(
            {
                "model": model,
                "dose": dose,
                "score": test,
                "images": SHOWN_SUBSETS[level],
                MEAN_AND_SHARE[0]: _log_cell(mean),
                MEAN_AND_SHARE[1]: "–" if not mean["n"] else _cell(share),
                "n": int(mean["n"]),
            }
        )
    names = ["model", "dose", "score", "images", *MEAN_AND_SHARE, "n"]
    table = pandas.DataFrame(rows, columns=names)
    if table["dose"].isna().all():
        return table.drop(columns="dose")
    order = {name: at for at, name in enumerate(dict.fromkeys(table["model"]))}
    return table.sort_values("model", key=lambda names: names.map(order), kind="stable")


def _log_cell(row: pandas.Series) -> str:
    if not row["n"]:
        return "–"
    return f"{signed(row['value'])} ({interval_text(row['low'], row['high'])})"


# Worlds with a known answer

EVIDENCE = {"visible": "in plain sight", "hidden": "not in the picture"}


def truth_figure(table: pandas.DataFrame):
    """Draw vlbs and vlrs of oracle and checkpoints with the evidence in plain sight and without.

    A row a model, the oracle first: dose 0 and dose 3, means over worlds, and small each world.
    Dotted, the random model.
    """
    names = list(dict.fromkeys(table["model"]))
    panels = [(score, view) for score in ("vlbs", "vlrs") for view in EVIDENCE]
    figure, axes = subplots(1, 4, height=1.2 + 0.34 * len(names), sharey=True)
    doses = ((0, "o", "0.45"), (3, "D", "C1"))
    chance = caption_selection.reference_scores("random")
    for axis, (score, view) in zip(axes, panels, strict=True):
        for dose, mark, colour in doses:
            rows = table[table["view"].eq(view) & table["dose"].eq(dose)]
            means = rows.groupby("model")[score].mean().reindex(names)
            shift = -0.14 if dose == 0 else 0.14
            small = [names.index(name) + shift for name in rows["model"]]
            axis.plot(rows[score], small, mark, color=colour, ms=2, alpha=0.6)
            at = np.arange(len(names)) + shift
            axis.plot(means, at, mark, color=colour, ms=4.5, label=f"dose {dose}")
        axis.axvline(getattr(chance, score), color="0.5", linewidth=1, linestyle=":")
        axis.axhline(0.5, color="0.8", linewidth=1)
        axis.set(xlim=(-6, 106), xticks=(0, 50, 100))
        axis.set_title(f"{score},\n{EVIDENCE[view]}", fontsize=9)
    axes[0].set_yticks(range(len(names)), names, fontsize=8.5)
    axes[0].invert_yaxis()
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower right", ncols=2, frameon=False, fontsize=8.5)
    figure.supxlabel("per cent", fontsize=10)
    return marked(figure)


def truth_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return means over worlds: a row a view, dose and model, the oracle first."""
    keys = ["view", "dose", "model"]
    means = table.groupby(keys, sort=False)[["vlrs", "vlbs", "lmss", "vlss"]].mean()
    means["worlds"] = table.groupby(keys, sort=False).size()
    means = means.reset_index()
    means["view"] = means["view"].map(EVIDENCE)
    return means.sort_values(["view", "dose"], kind="stable").rename(columns={"view": "evidence"})


def hidden_sentence(table: pandas.DataFrame) -> str:
    """Return the oracle's vlbs by view and dose: what a perfect model scores."""
    means = table[table["model"] == "oracle"].groupby(["view", "dose"])["vlbs"].mean()
    visible, hidden = means["visible"], means["hidden"]
    seen = " and ".join(f"{value:.0f} at dose {dose:g}" for dose, value in visible.items())
    unseen = " and ".join(f"{value:.0f} at dose {dose:g}" for dose, value in hidden.items())
    chance = caption_selection.reference_scores("random").vlbs
    return (
        f"The truth of vlbs is {seen} with the answer in plain sight, and {unseen} where the "
        f"picture does not show it; {chance:.0f} is what picking one of three at random gives."
    )


def grounding_table(look: pandas.DataFrame) -> pandas.DataFrame:
    """Return the shares of right captions: a row a model and dose, a column a category."""
    shares = look.rename(columns={"percent": "value"})
    cells = look.assign(cell=[_cell(row) for _, row in shares.iterrows()])
    wide = cells.pivot(index=["dose", "model"], columns="category", values="cell")
    order = look.drop_duplicates(["dose", "model"]).set_index(["dose", "model"]).index
    wide = wide.loc[order, list(LOOKED_AT)].rename(columns=LOOKED_AT)
    n = look.query("category == 'gender'").set_index(["dose", "model"])["n"]
    table = wide.assign(**{"images a category": n.loc[order]}).reset_index()
    return table.rename_axis(columns=None)


def verdict_table(verdict: pandas.DataFrame) -> pandas.DataFrame:
    """Return the verdict for the reader."""
    table = verdict.assign(
        rise=[
            f"{signed(row['rise'], 1)} ({interval_text(row['low'], row['high'], 0)})"
            for _, row in verdict.iterrows()
        ]
    ).drop(columns=["low", "high"])
    names = {"vlbs": "vlbs at dose 3", "floor": "noise floor", "rise": "rise (95% interval)"}
    names |= {"n": "pictures"}
    return table.rename(columns=names | {"vlrs": "vlrs at dose 3"})


def leaning_sentence(leaning: pandas.DataFrame) -> str:
    """Return how much of a stereotype there is to find for either way of scoring."""
    means = leaning.groupby("head")["preference"].mean()
    return (
        "How much is there to find? Where the picture does not show the answer, the oracle prefers "
        f"the stereotype by {means['matching']:.2f} nats if it is asked what belongs together, and "
        f"by {means['contrastive']:.2f} by the score that a contrastive objective approaches, from "
        "which is taken how usual a caption is. A model scored by cosine has "
        f"{means['contrastive'] / means['matching']:.0%} as much to show."
    )


def modality_figure(table: pandas.DataFrame):
    """Draw lmss and vlss by where the stereotype was planted, a panel a model."""
    kept = table.groupby("model", sort=False).filter(lambda rows: len(rows) >= 2 * len(PLACES))
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


def names_modality(where: pandas.DataFrame, model: str, least: float = 0.05) -> bool:
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


# The panel


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
