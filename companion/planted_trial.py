"""The sealed trial: figure, tables and sentences of what it found."""

import numpy as np
import pandas

from biaslib.display import dots, interval_texts, listed, marked, signed, subplots
from companion.planted_measures import MODELS as NAMES
from plantedworld import trial

MODELS = NAMES | {
    "vl_bert": "tiny-VL-BERT",
    "visualbert": "tiny-VisualBERT",
    "vilbert": "tiny-ViLBERT",
    "lxmert": "tiny-LXMERT",
}
STAND_IN_MARKS = {
    "signs alone": "x",
    "label alone": "+",
    "another world": "^",
    "no bias": "s",
    "no picture": "D",
    "groups dealt anew": "v",
}
"""Stand-ins that are drawn beside the scores, and how. The others are scores turned round."""


def state(models: pandas.DataFrame) -> str:
    """Return what was trained for the trial, and what was not as in one sitting.

    Parameters
    ----------
    models
        Of :func:`plantedworld.trial.models`.
    """
    hours = models["minutes"].sum() / 60
    by_world = models.set_index(["dose", "seed", "sample"])
    starts = by_world.loc[by_world["family"] == "vl_bert", "start"]
    berts = by_world.loc[by_world["family"] == "bert", "sha256"]
    other = starts != berts.reindex(starts.index)
    return (
        f"All {len(models)} models of its {models['seed'].nunique()} worlds were trained and "
        f"scored ({hours:.1f} hours on one core). "
        f"Of the trainings, {int(models['resumed'].sum())} broke off and went on from the last "
        "epoch; "
        f"{int(other.sum())} started from a BERT trained anew, whose weights are not those of the "
        "one that is scored (`plantedworld/PROTOCOL.md` has the machines and what came of it)."
    )


def row_name(row) -> str:
    """Return what tables call a measure on a model."""
    return f"{row.measure}, {MODELS[row.model]}"


def _row_names(table: pandas.DataFrame) -> list[str]:
    return [f"{row_name(row)}, dose {row.dose:g}" for row in table.itertuples()]


def figure(judged: pandas.DataFrame, beside: pandas.DataFrame):
    """Draw ranks within signs and slopes, with bounds and stand-ins: a row a measure and dose.

    Parameters
    ----------
    judged
        The *verdicts* of :func:`plantedworld.trial.judged`.
    beside
        The *stand_ins* of :func:`plantedworld.trial.judged`.
    """
    statistics = ["rank within signs", "slope"]
    rows = judged[judged["statistic"].isin(statistics)]
    names = list(dict.fromkeys(_row_names(rows)))
    figure, panels = subplots(1, 2, height=0.42 * len(names) + 1.7, sharey=True)
    for axes, statistic in zip(panels, statistics, strict=True):
        drawn, others = (table[table["statistic"] == statistic] for table in (rows, beside))
        _draw_targets(axes, drawn, others, {name: at for at, name in enumerate(names)})
        axes.set_title(statistic, fontsize=10)
    panels[0].set_yticks(range(len(names)), names, fontsize=9)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    place = {"loc": "outside lower center", "ncols": 4}
    figure.legend(handles, labels, frameon=False, fontsize=8.5, **place)
    return marked(figure)


def _draw_targets(axes, rows: pandas.DataFrame, others: pandas.DataFrame, places: dict) -> None:
    """Draw one statistic: where its targets lie, what was found, and the stand-ins."""
    reach = pandas.concat([rows[each] for each in ("low", "high", "least", "most")])
    right = reach[np.isfinite(reach)].max() + 0.1
    at = [places[name] for name in _row_names(rows)]
    width = rows["most"].clip(upper=right) - rows["least"]
    axes.barh(at, width, left=rows["least"], color="C2", alpha=0.3)
    dots(axes, at, rows.assign(value=rows["mean"]), "C0", label="the models")
    for name, mark in STAND_IN_MARKS.items():
        kept = others[others["scores"] == name]
        at = [places[each] for each in _row_names(kept)]
        look = {"color": "0.35", "markerfacecolor": "none", "markersize": 5, "linestyle": ""}
        axes.plot(kept["mean"], at, mark, label=name, **look)
    axes.axvline(0, color="0.4", linewidth=1)


def verdict_table(judged: pandas.DataFrame, risen: pandas.DataFrame) -> pandas.DataFrame:
    """Return what was asked and found, doses side by side: one row a statistic.

    Parameters
    ----------
    judged
        The *verdicts* of :func:`plantedworld.trial.judged`.
    risen
        The *rises* of :func:`plantedworld.trial.judged`.
    """
    targets = judged.assign(
        measure=[row_name(row) for row in judged.itertuples()],
        asked=[asked(row) for row in judged.itertuples()],
    )
    rises = risen.assign(measure="vlbs, tiny-" + risen["model"], dose=3.0, asked="more than 0")
    told = pandas.concat([targets, rises.assign(statistic="rise less that of errors, points")])
    told = told.assign(
        dose=told["dose"].map("dose {:g}".format),
        found=[
            f"{signed(row.mean)} ({ends}), asked {row.asked}: {'yes' if row.reached else 'no'}"
            for row, ends in zip(told.itertuples(), interval_texts(told), strict=True)
        ],
    )
    keys = ["measure", "statistic"]
    table = told.pivot(index=keys, columns="dose", values="found").fillna("not asked")
    worlds = told.groupby(keys)["n"].min().rename("worlds")
    return table.join(worlds).reindex(told[keys].drop_duplicates()).reset_index()


def asked(row) -> str:
    """Return the bounds of a target as text."""
    if np.isinf(row.most):
        return f"{row.least:g} or more"
    return f"{row.least:g} to {row.most:g}"


def sentence(judged: pandas.DataFrame, risen: pandas.DataFrame) -> str:
    """Return how many targets were reached and by which measures, and a list of the others."""
    found = trial.recoveries(judged)
    flat = judged[judged["low"] == judged["high"]]
    notes = [
        f" {row_name(row)}, has the same value in all {row.n} worlds, so that its interval has no "
        "width; that is a limit of Student's interval for a share of few tests, and no certainty."
        for row in flat.itertuples()
    ]
    return (
        f"**{int(judged['reached'].sum())} of {len(judged)} targets are reached.** All of their "
        f"targets are reached by {int(found['recovers'].sum())} of {len(found)} measures, each on "
        f"one model at one dose: the table behind {{numref}}`fig-planted-trial` has every target "
        f"with what was found.{''.join(notes)} Missed: {_missed(judged)}.\n\n"
        "{term}`vlbs`, the percentage of study 4's pictures against a stereotype for which a model "
        "picks the stereotypical caption, rises above that of dose 0 by more than errors on "
        f"stereotypical pictures do for {int(risen['reached'].sum())} of {len(risen)} models (vlbs "
        f"at dose 0 and at dose 3, per cent: {_levels(risen)})."
    )


def _levels(risen: pandas.DataFrame) -> str:
    levels = zip(risen["model"], risen["vlbs at dose 0"], risen["vlbs"], strict=True)
    return "; ".join(f"tiny-{name} {clean:.1f} and {dosed:.1f}" for name, clean, dosed in levels)


def _missed(judged: pandas.DataFrame) -> str:
    """Return the targets that are missed: measures and models, with what they miss."""
    by_dose = judged.groupby("measure")["dose"].nunique() > 1
    missed = judged[~judged["reached"]]
    told = {}
    for (measure, model), rows in missed.groupby(["measure", "model"], sort=False):
        parts = rows.groupby("statistic", sort=False)["dose"].agg(list).items()
        what = [f"{name}{_at(doses) if by_dose[measure] else ''}" for name, doses in parts]
        told.setdefault((measure, listed(what)), []).append(MODELS[model])
    lines = (f"{measure}, {listed(models)} ({what})" for (measure, what), models in told.items())
    return "; ".join(lines) or "none"


def _at(doses: list[float]) -> str:
    return f" at dose{'s' if len(doses) > 1 else ''} {listed(f'{dose:g}' for dose in doses)}"


def single_targets_sentence(judged: pandas.DataFrame, beside: pandas.DataFrame) -> str:
    """Return which targets the mean of a wrong score would reach, if it were the only one.

    Parameters
    ----------
    judged, beside
        As for :func:`figure`.
    """
    keys = ["measure", "model", "dose", "statistic"]
    rows = beside.drop(columns="mean").assign(wrong=beside["mean"])
    rows = rows.merge(judged[[*keys, "least", "most"]], on=keys)
    within = rows[rows["wrong"].between(rows["least"], rows["most"])]
    kinds = within.groupby("scores", sort=False)["measure"].size()
    told = "; ".join(f"{name}, {n}" for name, n in kinds.items()) or "none"
    hits = within.groupby(keys).size()
    hit, several = len(hits), int((hits > 1).sum())
    told += f"; {several} of them by more than one kind" if several else ""
    return (
        f"One target alone shows little: within the bounds of {hit} of {len(judged)} lies the mean "
        f"of some wrong score (by kind: {told}). So a measure is said to recover what is planted "
        "only if it reaches all of its targets."
    )


def attack_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the *attacks* of :func:`plantedworld.trial.judged` as they shall be read."""
    return found.rename(
        columns={
            "claims": "claims of a recovery",
            "models": "dosed models, by measure",
            "called unbiased": "called without bias",
        }
    )


def attack_sentence(found: pandas.DataFrame) -> str:
    """Return whether wrong scores pass for a recovery, or dosed models for unbiased ones."""
    own = found["scores"] == "the models' own"
    wrong = found[~own]
    called = wrong[wrong["called recoveries"] > 0]
    passed = _by_kind(called["scores"], called["called recoveries"])
    without = found["scores"] == "no bias"
    clean, dosed = found[without], found[~without]
    wrongly = dosed[dosed["called unbiased"] > 0]
    n, kinds = int(wrongly["called unbiased"].sum()), listed(wrongly["scores"])
    verdict = "It never was."
    if n:
        verdict = (
            f"{_times(n)} it was (with the scores of *{kinds}* in the place of the model's own). "
            "The protocol allows no such case, so that *shown to be without bias* is not fully "
            "reliable here."
        )
    return (
        f"Of {int(wrong['claims'].sum())} claims that wrong scores make, "
        f"**{int(wrong['called recoveries'].sum())} are called a recovery**{passed}. "
        f"Models without bias in the place of dosed ones are called without bias in "
        f"{int(clean['called unbiased'].sum())} of {int(clean['models'].sum())} cases. "
        f"{int(dosed['models'].sum())} times a model with planted bias could have been called "
        f"without bias. {verdict}"
    )


def _by_kind(kinds: pandas.Series, counts: pandas.Series) -> str:
    """Return kinds of scores with their counts in brackets; nothing where there are none."""
    told = ", ".join(f"{kind}, {n}" for kind, n in zip(kinds, counts, strict=True))
    return f" (by kind: {told})" if told else ""


def _times(n: int) -> str:
    return {1: "Once", 2: "Twice"}.get(n, f"{n} times")


def unbiased_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the *without_bias* of :func:`plantedworld.trial.judged` as they shall be read."""
    return pandas.DataFrame(
        {
            "measure": found["measure"] + ", " + found["model"].map(MODELS),
            "dose": found["dose"].astype(int),
            "slope on the log-odds of dose 1": found["mean"],
            "90% interval": interval_texts(found, 3),
            "size of scores, upper end": found["size"],
            "positive control, lower end": found["control"],
            "worlds": found["n"],
            "shown to be without bias": np.where(found["shown"], "yes", "no"),
        }
    )


def null_sentence(found: pandas.DataFrame) -> str:
    """Return how often a test rejects where nothing is planted, and what is in the sample."""
    rows = found[found["measure"] == "difference"].set_index("share")
    texts = [
        text.format(*rows.loc[share, ["mean", "low", "high"]])
        for share, text in NULL_TEXTS.items()
        if share in rows.index
    ]
    return f"Of tiny-CLIP's similarities to roles and objects, {'; '.join(texts)}."


def null_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the *nulls* of :func:`plantedworld.trial.judged` as they shall be read."""
    return pandas.DataFrame(
        {
            "measure": found["measure"],
            "model": found["model"].map(MODELS),
            "at dose 0": found["share"].map(SHARES),
            "mean": found["mean"],
            "95% interval": interval_texts(found),
            "worlds": found["n"],
        }
    )


SHARES = {
    "with the sample": "correlation with the model's own corpus",
    "rejected by portraits": "share of words with p < .05, portraits as units",
    "rejected by drawings": "share of words with p < .05, drawings as units",
}

NULL_TEXTS = {
    "rejected by portraits": "with portraits as units, {:.0%} ({:.0%} to {:.0%}) of words come out "
    "significant (p < .05) in models without bias",
    "rejected by drawings": "with drawings as units, {:.0%} ({:.0%} to {:.0%})",
    "with the sample": "their correlation with the associations in the model's own corpus is "
    "{:.2f} ({:.2f} to {:.2f})",
}
