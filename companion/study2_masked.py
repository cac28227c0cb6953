"""Tables of study 2's chapter, what its pictures show, and the checks of its exercises."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas

from biaslib import display, inference, published, stimuli
from biaslib.display import interval_text, interval_texts, listed, signed
from biaslib.metrics import masked_lm
from biaslib.runtime import TASTE
from biaslib.studies import study2_masked as study
from companion._check import Check, judge_function, judge_list
from companion._drawing import Drawing
from companion._explorer import Panel
from companion._shared import availability_table, emoji_on_white, of_the_run, p_cells

PAPER = "srinivasan2021"
WITH_IMAGES = ("S_L", "S_V")
THREE_SOURCES = ("S_PT", *WITH_IMAGES)
SHOWN_LEVELS = (*THREE_SOURCES, "S_L, no image")
"""The sources that are shown beside their truth."""

PROBABILITIES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""What the panel offers for each of its three probabilities."""


def score_panel() -> Panel:
    """Return the panel of the method: three probabilities of a word, and S and B of them.

    Examples
    --------
    >>> score_panel().sentence(0.2, 0.05, 0.1)
    'S(f) = ln(0.2 / 0.1) = 0.69, S(m) = ln(0.05 / 0.1) = −0.69, so B = 1.39: towards women.'
    """
    names = [f"P(thing | {agent})" for agent in ("woman", "man", "person")]
    cases = {case: _of_probabilities(*case) for case in itertools.product(PROBABILITIES, repeat=3)}
    choices = {name: list(PROBABILITIES) for name in names}
    return Panel("Three probabilities and a score", choices, cases, (0.2, 0.05, 0.1))


def _of_probabilities(woman: float, man: float, person: float) -> Drawing:
    of_women, of_men = np.log(woman / person), np.log(man / person)
    bias = of_women - of_men
    side = "towards women" if bias > 0 else "towards men" if bias < 0 else "neither way"
    values, names = [of_women, of_men, bias], ["S(f)", "S(m)", "B"]
    reach = np.log(PROBABILITIES[-1] / PROBABILITIES[0])
    return Drawing(
        f"S(f) = ln({woman:g} / {person:g}) = {signed(of_women)}, S(m) = ln({man:g} / {person:g}) "
        f"= {signed(of_men)}, so B = {signed(bias)}: {side}.",
        [{"kind": "bars", "x": [0, 1, 2], "y": values, "width": 0.6}, {"kind": "rule", "y": [0]}],
        "",
        "score, natural logarithm",
        (-0.6, 2.6),
        (-reach, reach),
        "Three bars, S of women, S of men, and B, their difference.",
        table=pandas.DataFrame({"score": names, "value": values}),
        x_ticks=dict(enumerate(names)),
    )


NAMES = {"vl-bert": "VL-BERT", "visualbert": "VisualBERT", "bert": "BERT"}
"""Models by their names in the registry; a planted one is called tiny."""


# What the paper says


TOWARDS = {("B", "+"): "women", ("B", "-"): "men", ("|B|", "-"): "differs less"}
"""Where a stated side of the bias score points, or that it is smaller than those of others."""


def stated() -> pandas.DataFrame:
    """Return what the paper's text states of the entities of its case study, a score a row.

    Returns
    -------
    pandas.DataFrame
        As of :func:`biaslib.published.stated`, by entity (*test*) and source (*level*), with the
        *direction* of the two together: ``women``, ``men``, ``differs less`` or ``not stated``.

    Examples
    --------
    >>> found = stated().drop_duplicates(["test", "level"]).set_index(["test", "level"])
    >>> found.loc["purse", "direction"].to_dict()
    {'S_PT': 'men', 'S_L': 'women', 'S_V': 'women'}
    """
    entities = _case_study()
    rows = published.stated(PAPER)
    rows = rows[rows["test"].isin(entities)]
    known = [TOWARDS.get(each) for each in zip(rows["statistic"], rows["sign"], strict=True)]
    cells = rows.assign(direction=known).groupby(["test", "level"])["direction"]
    rows = rows.assign(direction=cells.transform("first").fillna("not stated"))
    order = {name: at for at, name in enumerate([*entities, *THREE_SOURCES])}
    return rows.sort_values(["test", "level"], key=lambda names: names.map(order), kind="stable")


def _case_study() -> list[str]:
    return published.table(PAPER, 2)["entity"].tolist()


def stated_entities(level: str, direction: str) -> str:
    """Return the entities of which the paper states a direction, as words of a sentence.

    Examples
    --------
    >>> stated_entities("S_V", "men")
    'briefcase and beer'
    """
    return listed(stated().query("level == @level and direction == @direction")["test"].unique())


def stated_table() -> pandas.DataFrame:
    """Return :func:`stated` for reading."""
    found = stated()
    sides = found["sign"].map({"+": "above ", "-": "below "})
    others = [listed(names.removeprefix("test=").split("|")) for names in found["than"]]
    marks = [f"that of {each}" if each else "0" for each in others]
    return pandas.DataFrame(
        {
            "entity": found["test"],
            "source": found["level"].map(study.SOURCES),
            "score": found["statistic"].replace("|B|", "size of B"),
            "stated": sides + marks,
            "in the paper": "“" + found["quotation"] + "”",
            "where": found["place"],
            "claims": found["claims"].str.replace(" ", ", "),
        }
    )


def printed_probabilities() -> pandas.DataFrame:
    """Return the four probabilities that the paper prints, an image of its Table 3 a row."""
    rows = published.table(PAPER, 3)
    names = {"✓": "shown", "✗": "not shown"}
    wide = rows.assign(there=rows["mark"].map(names)).pivot(
        index="image", columns="there", values=["entity", "probability"]
    )
    columns = [(what, name) for name in names.values() for what in ("entity", "probability")]
    found = wide[columns].set_axis(
        [name if what == "entity" else f"P, {name}" for what, name in columns], axis=1
    )
    found["ratio"] = found["P, not shown"] / found["P, shown"]
    return found.rename_axis(columns=None).reset_index()


# The running example

EMOJI = {"purse": "1f45c", "briefcase": "1f4bc", "woman": "1f469", "man": "1f468"}
"""Code points of the emoji that stand in for photographs."""

SHOWN = {
    "language": (("man", "purse"), "The [woman, man, person]\nis carrying a [MASK]"),
    "vision": (("woman", "purse", "man", "purse"), "The person\nis carrying a [MASK]"),
    "pre-training": ((), "The [woman, man]\nis carrying a [MASK]"),
}
"""What a model is shown for each score: emoji side by side, and a caption."""


def emoji(*things: str) -> np.ndarray:
    """Return drawings of things side by side, of which none is a white square."""
    drawn = [emoji_on_white(EMOJI[thing]) for thing in things]
    return np.concatenate(drawn or [np.full((72, 72, 3), 255)], axis=1)


# The run

WHOSE = {
    "planted": "Planted world: ",
    "paper": "This run: ",
    "taste": f"{TASTE[0].upper()}{TASTE[1:]}; ",
}
"""How captions of tables begin, by the profile of their scores."""


def results(
    inputs: study.Inputs,
    found: study.Results,
    shares: pandas.DataFrame,
    other: pandas.DataFrame,
    *figures: display.Figure,
) -> display.Folded:
    """Return what a run has to show, figures and tables, behind one line.

    Parameters
    ----------
    inputs
        What was asked for, and what is there.
    found
        What was run.
    shares
        Of :func:`biaslib.studies.study2_masked.shares`.
    other
        Of :func:`other_choices`.
    *figures
        Of the same scores.
    """
    where = WHOSE[inputs.profile]
    parts = [display.table(data_availability(inputs), "What is asked for, and what is there")]
    if len(found.problems):
        problems = display.problem_table(found.problems)
        parts.append(display.table(problems, "What was wrong, or should be known"))
    parts += [*figures, *_of_the_six(found, where)]
    columns = ["test", "level", "statistic", "value", "low", "high", "count", "n"]
    caption = "shares of entities, with 95% intervals (Section 5 of the paper)"
    parts.append(display.table(shares[columns], where + caption, decimals=3))
    caption = "B under each choice, against the run above: rank correlation, mean and largest "
    caption += "change, signs that change among n entities"
    parts.append(display.table(other, where + caption, decimals=3))
    return of_the_run(inputs.profile, *parts)


def _of_the_six(found: study.Results, where: str) -> list[display.Table]:
    scores = found.scores
    known = stimuli.entities()
    known = known[known["entity"].isin(scores["test"])]
    quoted = quoted_table(scores, study.picture_tests(found.log_probs))
    named = study.top_candidates(found.log_probs, known)
    parts = [display.table(quoted, f"{where}visual bias of each entity, to quote")]
    if len(named):
        caption = (
            "how often another entity is named (logic of the paper's Table 3; entities drawn anew)"
        )
        rates = study.misnaming_rates(named)
        parts.append(display.table(rates, where + caption, decimals=3))
    return parts


def data_availability(inputs: study.Inputs) -> pandas.DataFrame:
    """Return how many models, entities and images were asked for, and are there."""
    errors = inputs.problems[inputs.problems["severity"] == "error"]
    why = "; ".join(f"{kind} ({n})" for kind, n in errors["kind"].value_counts(sort=False).items())
    wanted, n = len(inputs.pictured), len(inputs.entities)
    shown = inputs.images.rows if inputs.images else pandas.DataFrame(columns=["entity"])
    names = ", ".join(sorted(set(inputs.pictured) - set(shown["entity"])))
    lost = f"no {' and no '.join(WITH_IMAGES)} of {names}" if names else ""
    return availability_table(
        [
            ("models", 2, 2, ""),
            ("entities, by captions alone", n, n, ""),
            ("entities with images", wanted, shown["entity"].nunique(), lost),
            ("images", 2 * wanted * inputs.per_agent, len(shown), why),
        ]
    )


def shown_model(name: str, profile: str) -> str:
    """Return what a model is called where its numbers stand: a planted one is tiny.

    Examples
    --------
    >>> shown_model("vl-bert", "planted"), shown_model("vl-bert-large", "paper")
    ('tiny-VL-BERT', 'vl-bert-large')
    """
    called = NAMES.get(name, name)
    return f"tiny-{called}" if profile == "planted" else called


# The structure of the paper's Table 1


def method_table() -> pandas.DataFrame:
    """Return the three scores as the paper's Table 1 lists them, with where this book has each.

    What the paper prints as a picture is words here; its ✗ is "none".
    """
    printed = published.table("srinivasan2021", 1)
    return pandas.DataFrame(
        {
            "source": printed["source_x"],
            "picture": printed["visual_input"].replace({"✗": "none", "": "shown"}),
            "caption": printed["language_input"],
            "exchanged": printed["modified_component"],
            "for": printed["new_value"].replace("✗", "none"),
            "score": printed["association_score"],
            "here": ["S_PT", "S_L", "S_V"],
        }
    )


# The structure of the paper's Figures 2 to 5


def association_table(scores: pandas.DataFrame, level: str, chosen: str = "case study"):
    """Return the scores of a source with their probabilities: one row an entity."""
    rows = scores[(scores["level"] == level) & (scores["set"] == chosen)]
    if rows.empty:
        return pandas.DataFrame({"entity": ["–"], level: ["no entity has images"]})
    f, m, bias = (
        rows[rows["statistic"] == name].set_index("test") for name in ("S(f)", "S(m)", "B")
    )
    table = pandas.DataFrame(
        {
            "S(f)": f["value"],
            "S(m)": m["value"],
            "B": bias["value"],
            "95% interval of B": interval_texts(bias),
            "P, woman": f["probability"].map(_probability),
            "P, man": m["probability"].map(_probability),
            "P without": list(map(_without, f["normaliser"], m["normaliser"])),
        }
    ).reset_index(names="entity")
    if level in WITH_IMAGES:
        return table.assign(images=bias["n"].astype(int).tolist())
    return table.drop(columns="95% interval of B")


def sources_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return the scores of the case study's entities, one row a source and entity.

    A source without an image has no interval.
    """
    there = [level for level in THREE_SOURCES if (scores["level"] == level).any()]
    parts = [association_table(scores, level).assign(source=level) for level in there]
    found = pandas.concat(parts, ignore_index=True)
    found = found[["source", *found.columns.drop("source")]]
    if "images" not in found:
        return found
    images = found["images"].fillna(0).astype(int)
    return found.assign(images=images).fillna({"95% interval of B": "–"})


def quoted_table(scores: pandas.DataFrame, tests: pandas.DataFrame) -> pandas.DataFrame:
    """Return what to quote of the visual scores: probabilities, B with its interval, and tests.

    Parameters
    ----------
    scores
        Of :func:`biaslib.studies.study2_masked.scores`.
    tests
        Of :func:`biaslib.studies.study2_masked.picture_tests`.
    """
    table = association_table(scores, "S_V")
    if tests.empty:
        return table
    shown = table[["entity", "P, woman", "P, man", "B", "95% interval of B", "images"]]
    bounds = tests["p_low"], tests["p_high"]
    p = p_cells(tests["p_value"], *bounds), p_cells(tests["p_holm"], *bounds, "holm")
    texts = pandas.DataFrame({"p": p[0], "p, Holm": p[1]}, index=tests["entity"])
    return shown.join(texts, on="entity")


def bias_table(scores: pandas.DataFrame, chosen: str = "gendered") -> pandas.DataFrame:
    """Return every entity's B in captions alone and B of S_PT, with its label and probabilities."""
    table = association_table(scores, "S_L, no image", chosen)
    shift = association_table(scores, "S_PT", chosen).set_index("entity")["B"]
    labels = scores.drop_duplicates("test").set_index("test")["stereotype"].replace("", "none")
    found = table[["entity", "P, woman", "P, man", "B"]].assign(
        label=table["entity"].map(labels), shift=table["entity"].map(shift)
    )
    names = {"shift": "B of S_PT"}
    order = ["entity", "label", "P, woman", "P, man", "B", "shift"]
    return found[order].rename(columns=names).sort_values("B", ignore_index=True)


# What a repetition has to choose

CHANGED = {
    "article as printed": {"article": "printed"},
    "empty picture for no image": {"no_image": "blank"},
    "pieces as a mean": {"pieces": "mean"},
    "shared among candidates": {"among": "candidates"},
}
"""What the paper leaves open, one choice at a time."""


# A real language model


def language_bias() -> pandas.DataFrame:
    r"""Return B of our entities for a real language model that has never seen a picture.

    SmolLM2-135M-Instruct, quantised to 4 bits. It reads from left to right and has no mask, so that
    whole sentences are compared: with c the words before an entity, one an agent g, and a full stop
    after it,

    .. math:: S(E, g) = \ln \frac{P(E \text{ .} \mid c_g)}{P(E \text{ .} \mid c_{person})},
              \qquad B(E) = S(E, f) - S(E, m).

    ``tools/language_model.py`` made the numbers, for six wordings of each template: *The*, *A* or
    *This*, with *is* or *was*.

    Returns
    -------
    pandas.DataFrame
        One row an entity: *entity*, *set*, *stereotype*; *S(f)*, *S(m)* and *B* in the paper's
        wording; *value*, the mean of B over the six wordings, with *low* and *high*, its 95%
        interval (Student's, over wordings).
    """
    table = pandas.read_csv(Path(__file__).parent / "data" / "language_entities.csv")
    log_p = table.pivot(index="wording", columns="entity", values=list(study.AGENTS))
    log_p = log_p.loc[list(table["wording"].unique())]
    f, m = (log_p[agent] - log_p["person"] for agent in study.GENDERS)
    bias = (f - m).to_numpy()
    over = inference.bootstrap(lambda weights: weights.T @ bias / len(bias), [len(bias)], rng=0)
    printed = {"S(f)": f.iloc[0], "S(m)": m.iloc[0], "B": (f - m).iloc[0]}
    means = {"value": over.estimate, "low": over.low, "high": over.high}
    found = pandas.DataFrame(printed | means, index=f.columns)
    labels = stimuli.entities()[["entity", "set", "stereotype"]]
    return labels.join(found, on="entity")


def language_shares(bias: pandas.DataFrame) -> dict[str, str]:
    """Return how many of the forty entities lean as labelled, and how many intervals exclude 0."""
    rows = bias[bias["set"] == "gendered"]
    sign = rows["stereotype"].map({"women": 1, "men": -1})
    agrees = int((sign * rows["value"] > 0).sum())
    found = inference.proportion_interval(agrees, len(rows))
    clear = (rows["low"] > 0) | (rows["high"] < 0)
    named = {
        row.entity: f"{signed(row.value)} ({interval_text(row.low, row.high)})"
        for row in rows.itertuples()
    }
    return {
        "agrees": f"{agrees} of {len(rows)} entities ({found.low:.0%} to {found.high:.0%})",
        "clear": f"{int((clear & (sign * rows['value'] > 0)).sum())} of {int(clear.sum())}",
        "cat": named["cat"],
        "cigar": named["cigar"],
    }


def other_choices(inputs: study.Inputs, model, text_model, choices: study.Choices):
    """Return :func:`choice_table` of runs in which one of :data:`CHANGED` differs."""
    chosen = {"as above": choices}
    chosen |= {name: replace(choices, **each) for name, each in CHANGED.items()}
    scores = {
        name: study.run(inputs, model, text_model, each, n_resamples=0).scores
        for name, each in chosen.items()
    }
    return choice_table(scores, "as above")


def choice_table(found: dict[str, pandas.DataFrame], against: str) -> pandas.DataFrame:
    """Return what each choice changes in B, against one of them.

    Its rank correlation, the mean and the largest absolute change, how many signs change, and of
    how many entities.

    Parameters
    ----------
    found
        Scores by the name of the choice.
    against
        The choice that the others are compared with.
    """
    from scipy import stats

    biases = {name: _wide(scores) for name, scores in found.items()}
    first, rows = biases.pop(against), []
    for name, other in biases.items():
        for level in [level for level in SHOWN_LEVELS if level in other]:
            kept = other[level].reindex(first.index).notna()
            one, two = first.loc[kept, level], other[level].reindex(first.index)[kept]
            change, turned = (two - one).abs(), np.sign(one) != np.sign(two)
            rank = stats.spearmanr(one, two).statistic if np.ptp(first[level]) else np.nan
            sums = change.mean(), change.max(), int(turned.sum()), int(kept.sum())
            rows.append((name, level, rank, *sums))
    names = ["choice", "score", "rank", "mean change", "largest", "signs", "n"]
    return pandas.DataFrame(rows, columns=names)


def _wide(scores: pandas.DataFrame) -> pandas.DataFrame:
    bias = scores[scores["statistic"] == "B"]
    return bias.pivot(index="test", columns="level", values="value")


# Checks of exercises


def check_order(answer) -> Check:
    """Judge a function that returns S_V, on two sets of pictures."""
    cases = [(np.array([0.3, 0.1, 0.002]), 0.1), (np.array([0.04, 0.25]), 0.2)]
    cases = [(case, masked_lm.visual_association(*map(np.log, case)).score) for case in cases]
    hint = "the mean is over probabilities; its logarithm comes afterwards"
    told = "with the other order, one image that the model misreads would weigh far more."
    faults = {
        "this is log10; the scores take the natural logarithm": (
            lambda p, without: np.log10(np.mean(p) / without)
        ),
        "this is log2; the scores take the natural logarithm": (
            lambda p, without: np.log2(np.mean(p) / without)
        ),
        "this is the ratio; take its logarithm": lambda p, without: np.mean(p) / without,
        "this is the mean of the logarithms: take the mean of the probabilities first": (
            lambda p, without: np.mean(np.log(p / without))
        ),
    }
    return judge_function(answer, cases, hint, right=told, faults=faults)


def check_shift(answer) -> Check:
    """Judge a function that returns B of S_PT, on the probabilities of two entities."""
    cases = [((0.02, 0.04), (0.03, 0.02)), ((0.3, 0.1), (0.05, 0.2))]
    given = [[dict(zip("fm", np.log(each), strict=True)) for each in case] for case in cases]
    cases = [((vl, text), (vl["f"] - vl["m"]) - (text["f"] - text["m"])) for vl, text in given]
    hint = "compute each agent's score, model against model, and then subtract men from women"
    told = "it is the difference of the models' bias scores, either way you add up."
    faults = {
        "this is B with its sign turned: subtract men from women": (
            lambda vl, text: (vl["m"] - vl["f"]) - (text["m"] - text["f"])
        ),
        "these are log probabilities already; take no logarithm of their ratio": (
            lambda vl, text: np.log(vl["f"] / text["f"]) - np.log(vl["m"] / text["m"])
        ),
        "this is B of the vision-language model; take away that of the text-only one": (
            lambda vl, text: vl["f"] - vl["m"]
        ),
    }
    return judge_function(answer, cases, hint, right=told, faults=faults)


READINGS = (False, True, False, False, False, True)
"""Whether each sentence of the exercise on a report follows from the report's scores."""


def check_readings(answer) -> Check:
    """Judge which of six sentences about a report of scores follow from it.

    Examples
    --------
    >>> check_readings([True] * 6)
    Not yet: 2 of 6 are right; sentence 1: which score is each row, and how likely are its words?
    """
    form = "give True or False six times, in the order of the sentences"
    learned = "a score says what changed and by how much, not why, and not that nothing did."
    why = (
        "which score is each row, and how likely are its words?",
        "divide the two probabilities",
        "which effects does the interval hold?",
        "in this picture the suit is seen; what was asked where it is not?",
        "could a model that knows captions alone have this score?",
        "take e to the power of each end of the interval",
    )
    hints = [f"sentence {at}: {each}" for at, each in enumerate(why, 1)]
    return judge_list(answer, READINGS, form, hints, learned)


# Small parts


def _probability(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else f"{value:.0e}"


def _without(f: float, m: float) -> str:
    one, other = _probability(f), _probability(m)
    return one if one == other else f"{one} and {other}"
