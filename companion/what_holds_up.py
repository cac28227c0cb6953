"""What holds up: tables, a figure and sentences about the claims of the four papers."""

import importlib.metadata
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas

from biaslib import published, reproduction
from biaslib.display import Table, counted, one_line, say, subplots
from biaslib.metrics.caption_selection import ivlas
from biaslib.runtime import TASTE
from biaslib.studies.scores import Recorded
from companion._check import Check, judge_choice, judge_list
from companion._shared import minus_signs

NAMES = {
    "ross2021": "Ross et al. 2021",
    "srinivasan2021": "Srinivasan and Bisk 2021",
    "hamidieh2023": "Hamidieh et al. 2023",
    "zhou2022": "Zhou et al. 2022",
}
# What is said of simulated runs, from tools/decision_rule.py.
RERUNS = Path(__file__).parent / "data" / "reruns.csv"

COLOURS = dict(zip(reproduction.ANSWERS, ("C2", "C8", "C3", "0.75"), strict=True))


def scoreboard() -> pandas.DataFrame:
    """Return one row a paper: its claims by what its own tables say of them.

    Examples
    --------
    >>> board = scoreboard().set_index("paper")
    >>> bool((board.drop(columns="claims").sum(axis=1) == board["claims"]).all())
    True
    """
    claims = reproduction.claims()
    found = pandas.crosstab(claims["paper"], claims["answer"])
    found = found.reindex(index=list(NAMES), columns=list(reproduction.ANSWERS), fill_value=0)
    found.insert(0, "claims", found.sum(axis=1))
    found.loc["all four"] = found.sum()
    return found.rename(index=NAMES).rename_axis("paper").reset_index()


FINDS = {
    "ross2021": "its sign",
    "srinivasan2021": "without a picture, yes",
    "hamidieh2023": "mostly its side",
    "zhou2022": "in five of six, half hidden",
}
"""What each measure finds of a bias that we put into small models, in words of the start page."""


def scoreboard_figure():
    """Draw which share of a paper's claims follows, and say what its measure finds."""
    figure, axes = subplots(height=4.4, width=4.3)
    board = scoreboard().iloc[-2::-1].assign(finds=list(FINDS.values())[::-1])
    for at, row in enumerate(board.to_dict("records")):
        left = 0.0
        for name, colour in COLOURS.items():
            width = 100 * row[name] / row["claims"]
            label = name if at == 0 else None
            axes.barh(at, width, 0.5, left=left, color=colour, edgecolor="white", label=label)
            if width > 7:
                axes.text(left + width / 2, at, row[name], ha="center", va="center", color="black")
            left += width
        axes.text(0, at + 0.3, row["paper"])
        axes.text(106, at, row["finds"].replace(", ", ",\n"), va="center")
    heads = {0: "Do the paper's own\ntables show it?", 106: "Does its measure\nfind a bias?"}
    for at, words in heads.items():
        axes.text(at, len(board) - 0.2, words, weight="bold")
    axes.set(xlim=(0, 100), ylim=(-0.4, len(board) - 0.3), yticks=[])
    axes.set_xlabel("% of its claims")
    axes.spines["left"].set_visible(False)
    title = "Few claims fail, and each measure\nfinds a part of a bias that we put in"
    figure.suptitle(title, x=0.02, ha="left", size=11)
    figure.legend(loc="outside lower left", frameon=False, ncols=2, fontsize=11)
    return figure


def numbers_text(numbers: Sequence[Mapping[str, object]]) -> str:
    """Return the numbers behind an answer as words of a table.

    Examples
    --------
    >>> numbers_text([{"what": "tests by kind", "value": {"gender": 6, "race": 7}}])
    'tests by kind: gender 6, race 7'
    """
    parts = []
    for each in numbers:
        value = each["value"]
        told = f"{value:,}" if not isinstance(value, Mapping) else None
        told = told or ", ".join(f"{name} {number:,}" for name, number in value.items())
        parts.append(f"{each['what']}: {told}")
    return minus_signs("; ".join(parts))


def numbers_of(claim: str) -> dict[str, object]:
    """Return the numbers behind the answer to a claim, by what they are.

    Examples
    --------
    >>> numbers_of("ross2021/claim/5")["significant tests of Experiment 2"]
    84
    """
    numbers = reproduction.claims().set_index("id").loc[claim, "numbers"]
    return {each["what"]: each["value"] for each in numbers}


HARMFUL = {("hamidieh2023", "follows"), ("hamidieh2023", "in part")}
"""Papers and answers whose folded claims quote harmful words: the line before them says so."""

CLAIMS_NAMED = re.compile(r"\b[Cc]laims? \d+(?:(?:, | and )\d+)*")
"""Where a remark names other claims of its paper."""


class ClaimCards:
    """The claims as cards, by paper and answer, each with an address: ``#ross2021-claim-5``.

    A group has one as well, ``#ross2021-follows``. Where ``custom.js`` of the site runs, buttons
    choose among the groups; elsewhere they are left out, and all groups stand below each other.

    Examples
    --------
    >>> 'id="ross2021-does-not-follow"' in ClaimCards()._repr_html_()
    True
    """

    def _repr_html_(self) -> str:
        rows = reproduction.claims()
        papers = "".join(_paper(paper, rows[rows["paper"] == paper]) for paper in NAMES)
        name = f"The {len(rows)} claims of the four papers"
        return (
            f'<div class="claims" role="group" aria-label="{name}" data-total="{len(rows)}">'
            f"{_filters()}{papers}</div>"
        )

    def __repr__(self) -> str:
        rows = reproduction.claims()
        return "\n".join(rows["id"] + ": " + rows["claim"] + " (" + rows["answer"] + ")")


def _filters() -> str:
    """Return the buttons, hidden until a script can answer them."""
    papers = {"all": "all four papers", **NAMES}
    answers = {_slug(name): name for name in reproduction.ANSWERS}
    answers = {"claims": "all answers"} | answers
    lines = []
    for kind, values in (("paper", papers), ("answer", answers)):
        buttons = "".join(
            f'<button type="button" data-{kind}="{value}" aria-pressed="false">{told}</button>'
            for value, told in values.items()
        )
        lines.append(f'<div role="group" aria-label="By {kind}">{buttons}</div>')
    return f'<div class="claims-filters" hidden>{"".join(lines)}<p role="status"></p></div>'


def _slug(answer: str) -> str:
    return answer.replace(" ", "-")


def _paper(paper: str, rows: pandas.DataFrame) -> str:
    groups = "".join(
        _group(paper, answer, rows[rows["answer"] == answer]) for answer in reproduction.ANSWERS
    )
    title = f'<h3 id="{paper}-claims">{NAMES[paper]}: {len(rows)} claims</h3>'
    return f'<div class="claims-paper" data-paper="{paper}">{title}{groups}</div>'


def _group(paper: str, answer: str, rows: pandas.DataFrame) -> str:
    """Return the claims of one answer: headlines in sight, the others behind a line."""
    chosen = rows["headline"]
    cards, others = (
        "".join(map(_card, rows[each].to_dict("records"))) for each in (chosen, ~chosen)
    )
    if others:
        note = ", harmful words among them" if (paper, answer) in HARMFUL else ""
        harmful = " data-harmful" if note else ""
        line = f"{counted((~chosen).sum(), 'more claims')}{note}"
        cards += (
            f'<details class="claims-more"{harmful}><summary>{line}</summary>{others}</details>'
        )
    title = f'<h4 id="{paper}-{_slug(answer)}">{answer.capitalize()}: {len(rows) or "none"}</h4>'
    return f'<div class="claims-group" data-answer="{_slug(answer)}">{title}{cards}</div>'


def _card(claim: Mapping[str, object]) -> str:
    """Return a claim: its own words and its answer, and below them what the answer rests on."""
    name = claim["id"].replace("/", "-")
    numbers = [numbers_text([each]) for each in claim["numbers"]] or ["none printed"]
    counts = one_line(claim["counts"])
    if claim["numbers"] and claim["thresholds"] != "none needed":
        counts += f" The threshold is {claim['thresholds']}."
    parts = {
        "In their words": list(map(_quoted, claim["quotations"])),
        "What would count": [counts],
        "Numbers": map(one_line, numbers),
        "Remark": [_remark(claim)] if claim["remark"] else [],
        "Open question": [claim["erratum"]] if claim["erratum"] else [],
        "Address": [f'<a href="#{name}">{name}</a>'],
    }
    told = "".join(
        f"<dt>{part}</dt>{''.join(f'<dd>{each}</dd>' for each in lines)}"
        for part, lines in ((part, list(lines)) for part, lines in parts.items())
        if lines
    )
    answer = f'<strong data-answer="{_slug(claim["answer"])}">{claim["answer"]}</strong>'
    summary = f"<summary>{one_line(claim['claim'])} {answer}</summary>"
    return f'<details class="claim" id="{name}">{summary}<dl>{told}</dl></details>'


def _quoted(quotation: Mapping[str, object]) -> str:
    """Return a quotation, its place, and how it was judged where the three did not agree."""
    told = one_line(f"“{quotation['quotation']}” ({quotation['place']})")
    answers = quotation["answers"]
    return told + (f"; the three judgements: {', '.join(answers)}" if len(set(answers)) > 1 else "")


def _remark(claim: Mapping[str, object]) -> str:
    """Return a remark with links to the claims that it names."""
    link = rf'<a href="#{claim["paper"]}-claim-\g<0>">\g<0></a>'
    told = one_line(minus_signs(claim["remark"]))
    return CLAIMS_NAMED.sub(lambda named: re.sub(r"\d+", link, named[0]), told)


def limit_table() -> pandas.DataFrame:
    """Return what the authors say of their own limits: ours in short, and their words."""
    rows = reproduction.limits()
    return pandas.DataFrame(
        {
            "limit": rows["says"],
            "in their words": "“" + rows["quotation"] + "”",
            "where": rows["paper"].map(NAMES) + ", " + rows["place"],
        }
    )


def lacking(missing: pandas.DataFrame) -> list[Table]:
    """Return the table of what a study's ``fetch`` could not get; nothing where it got all."""
    caption = "What could not be had, and what the study leaves out without it"
    return [Table(missing, caption)] if len(missing) else []


def recorded(paper: str, run, found: Recorded):
    """Write the record of a run in ``paper``, and return it beside the printed numbers.

    The record goes where the environment variable ``BIASLIB_RUNS`` says, or beside the notebook.
    In ``planted`` nothing is written: its scores are of no released model. A taste is not the
    paper's study, and stands beside no printed number.

    Parameters
    ----------
    paper, run, found
        As of :func:`biaslib.reproduction.write_record`.
    """
    if run.profile != "paper":
        return say("Nothing to record: these scores are of the planted world.")
    folder, beside = reproduction.write_record(
        paper, run, found, os.environ.get("BIASLIB_RUNS", ".")
    )
    if run.size == "taste":
        return say(f"This was {TASTE}. Recorded in {folder}; no printed number is judged by it.")
    stated = beside["id"].str.contains("/stated/")
    met, signs = (beside.loc[each, "verdict"].value_counts() for each in (~stated, stated))
    parts = ", ".join(f"{int(met.get(each, 0)):,} {each}" for each in reproduction.VERDICTS)
    told = " ".join(f"{each}." for each in reproduction.findings(beside))
    caption = f"Ours beside the printed numbers: {parts}. {told}"
    parts = ", ".join(f"{n} {verdict}" for verdict, n in signs.items())
    caption += f" What is stated without a number: {parts}."
    caption += f" Recorded in {folder}: please send its two files, unchanged, to {first_run_page()}"
    return Table(beside[beside["verdict"] != "not run"], caption, folded=True)


def first_run_page() -> str:
    """Return the address of the page on which a recorded run is sent to the repository.

    Examples
    --------
    >>> first_run_page().endswith("/issues/new?title=First+run")
    True
    """
    urls = importlib.metadata.metadata("biaslib").get_all("Project-URL")
    return f"{dict(each.split(', ') for each in urls)['Repository']}/issues/new?title=First+run"


def reruns() -> pandas.DataFrame:
    """Return what is said of simulated runs that equal a paper, and of others.

    By *numbers*, *case* and *condition*: *verdict*, the *share* of numbers that have it, and what
    was *asked* for.

    Examples
    --------
    >>> reruns()["condition"].unique().tolist()
    ['every picture', '85%, evenly', '85%, unevenly']
    """
    return pandas.read_csv(RERUNS)


def reruns_table() -> pandas.DataFrame:
    """Return :func:`reruns` in percent, a column a condition, with what was asked for."""
    rows = reruns()
    keys = ["numbers", "case", "verdict"]
    percent = (100 * rows["share"]).round().astype(int).astype(str)
    wide = rows.assign(percent=percent).pivot(index=keys, columns="condition", values="percent")
    wide = wide[rows["condition"].unique()].fillna("").reset_index()
    asked = rows.groupby(keys)["asked"].agg(_asked)
    return wide.merge(asked.rename("asked for, %"), on=keys)


def _asked(each: pandas.Series) -> str:
    """Return what was asked for, with every picture and with dead links.

    >>> _asked(pandas.Series(["at least 90", "at least 80", "at least 80"]))
    'at least 90 and 80'
    """
    first, *others = dict.fromkeys(each)
    return " and ".join([first, *(other.split()[-1] for other in others)])


def decidable_table() -> pandas.DataFrame:
    """Return how many printed numbers a run that is equal to its paper meets, for reading."""
    table = decidable().assign(paper=lambda rows: rows["paper"].map(NAMES))
    others = "others: with every picture, and with 85% of the links"
    return table.rename(columns={"numbers": "printed numbers", "others": others})


# The exercise


def ten_numbers() -> pandas.DataFrame:
    """Return ten printed numbers with those of an invented run, for the reader to judge."""
    rows = [
        ("zhou2022/table3/overall/clip/vlbs", 45.72, 0.5, 5, 47.10, 45.90, 48.30),
        ("zhou2022/table3/overall/flava/vlrs", 60.70, 0.5, 5, 62.60, 61.40, 63.80),
        ("zhou2022/table3/overall/albef/ivlas", 75.46, 0.5, 5, 75.70, 72.10, 78.90),
        ("ross2021/table3/C6/vl-bert/W", 1.61, 0.05, 0.5, 1.60, 1.45, 1.72),
        ("ross2021/table3/C6/vilbert/W", 1.04, 0.05, 0.5, 1.04, 0.61, 1.38),
        ("ross2021/table4/C8/visualbert/W", 0.77, 0.05, 0.5, 0.77, np.nan, np.nan),
        ("hamidieh2023/table4/women/nurse", 1.28, 0.02, 0.04, 1.27, 1.265, 1.285),
        ("hamidieh2023/table4/men/miner", 0.99, 0.02, 0.04, 0.91, 0.89, 0.925),
        ("ross2021/table1/google/C6", 780, 0, 0, 780, 780, 780),
        ("zhou2022/table1/gender", 486, 0, 0, 206, 206, 206),
    ]
    names = ["number", "printed", "margin", "widest", "run", "low", "high"]
    return pandas.DataFrame(rows, columns=names)


def whole_counts(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return numbers with counts as whole ones, to read.

    Examples
    --------
    >>> whole_counts(ten_numbers())["printed"].tolist()[-3:]
    [0.99, 780, 486]
    """
    columns = ["printed", "margin", "widest", "run", "low", "high"]
    counts = table["margin"] == 0
    shown = {
        name: table[name].astype(object).mask(counts, table[name].fillna(0).round().astype(int))
        for name in columns
    }
    return table.assign(**shown)


def check_verdicts(answer) -> Check:
    """Check a reader's ten results, in the order of :func:`ten_numbers`.

    Examples
    --------
    >>> check_verdicts(["met"] * 10)
    Not yet: 4 of 10 are right; look at row 2 again
    """
    rows = ten_numbers()
    names = ("printed", "margin", "low", "high", "widest")
    expected = reproduction.judge_number(*(rows[name].to_numpy() for name in names))
    form = f"return ten of {', '.join(reproduction.VERDICTS[:3])}, in the table's order"
    hints = [f"look at row {number} again" for number in range(1, 11)]
    learned = "an interval that is too wide decides nothing, nor does a missing one."
    return judge_list(answer, expected, form, hints, learned)


KINDS = ("tables", "run", "planted", "tables", "planted")
"""What each of five sentences rests on.

:meta hide-value:
"""


def check_kinds(answer) -> Check:
    """Check which kind of evidence each of five sentences rests on.

    Examples
    --------
    >>> check_kinds(["tables", "tables", "planted", "tables", "planted"])
    Not yet: 4 of 5 are right; (b) with which pictures was it computed, and by whom?
    """
    hints = (
        "(a) is anything needed but what the paper prints?",
        "(b) with which pictures was it computed, and by whom?",
        "(c) where does one know that no bias was put in?",
        "(d) is anything needed but what the paper prints?",
        "(e) beside what can one see that a size is wrong?",
    )
    form = "give five of tables, run, planted, in the order of the sentences"
    right = "what follows, what can be repeated and what is found are three questions."
    return judge_list(answer, KINDS, form, hints, right)


def check_can_fail(chosen) -> Check:
    """Check which of five checks a wrong run, or a wrong claim, would fail.

    Examples
    --------
    >>> check_can_fail("abd")
    Not yet: (a) ten pictures give a wide interval: which number lies outside?
    """
    hints = {
        "a": "ten pictures give a wide interval: which number lies outside?",
        "c": "when is a list of the ten highest not full?",
        "e": "of many hundred values, can all stay as they were in every decimal?",
    }
    right = "each says beforehand which value would not do."
    missing = "for each check, think of a run or a claim that is wrong: does it pass?"
    return judge_choice(chosen, "bd", hints, missing, right)


# Which printed numbers a run can decide: runs equal to the papers, and what is said of them

# Half the width of a simulated interval over pictures, from tools/decision_rule.py.
WIDTHS = Path(__file__).parent / "data" / "picture_widths.csv"

DRAWS, SEED = 1_000, 0
ALIVE = 0.85

EqualRun = tuple[pandas.DataFrame, dict[str, pandas.DataFrame]]
"""Scores and counts."""


def equal_run(paper: str, alive: float = 1.0) -> EqualRun:
    """Return scores and counts of a run whose every number is the printed one.

    Parameters
    ----------
    paper
        One of the four.
    alive
        Share of the pictures behind links that are there.

    Notes
    -----
    Intervals over pictures are simulated for Ross et al. (``tools/decision_rule.py``), with links
    that die evenly, and those of a binomial for Zhou et al.; there the range over balanced
    selections is that of draws from the released table. FairFace is one file, and has no links.

    Examples
    --------
    >>> scores, counts = equal_run("hamidieh2023")
    >>> len(scores), counts
    (597, {})
    """
    made = {"ross2021": _grounded, "hamidieh2023": _clip_audit, "zhou2022": _captions}
    if paper not in made:
        return pandas.DataFrame(), {}
    rows, counts = made[paper](alive)
    labels = {"study": paper, "profile": "paper", "revision": "as printed", "seed": SEED}
    return rows.assign(**labels), counts


def decided(alive: float = 1.0) -> pandas.DataFrame:
    """Return what is said of each printed number by a run that is equal to its paper.

    Columns are those of :func:`biaslib.reproduction.compare`, and *paper*, *place*, *barrier* and
    *erratum*.
    """
    parts = []
    for paper in published.PAPERS:
        scores, counts = equal_run(paper, alive)
        found = reproduction.compare(scores, paper, counts)
        known = reproduction.printed(paper).query("kind != 'list'")
        about = known[["id", "paper", "place", "barrier", "erratum"]]
        parts.append(about.merge(found, on="id"))
    return pandas.concat(parts, ignore_index=True)


def decidable() -> pandas.DataFrame:
    """Return by paper how many of its numbers a run that is equal to it can meet, and why not all.

    Returns
    -------
    pandas.DataFrame
        *paper*, its printed *numbers*, how many are met with *every picture* and with *85% of the
        links*, and of how many of the *others*, in the two runs, what stands in the way.

    Examples
    --------
    >>> decidable().set_index("paper")["numbers"].to_dict()["srinivasan2021"]
    4
    """
    runs = {"every picture": decided(), "85% of the links": decided(ALIVE)}
    rows = []
    for paper in published.PAPERS:
        found = [run[run["paper"] == paper] for run in runs.values()]
        met = [int((run["verdict"] == "met").sum()) for run in found]
        left = [Counter(map(_way, run[run["verdict"] != "met"].itertuples())) for run in found]
        others = [f"{left[0][way]} and {left[1][way]}: {way}" for way in left[0] | left[1]]
        numbers = {"paper": paper, "numbers": len(found[0])}
        rows.append(numbers | dict(zip(runs, met, strict=True)) | {"others": "; ".join(others)})
    return pandas.DataFrame(rows)


def _way(number) -> str:
    """Return what stands in the way of a number."""
    if number.verdict == "not met":
        return f"printed twice with two values, or under another heading ({number.erratum})"
    return number.barrier


# The three papers with data that can be had


def _grounded(alive: float) -> EqualRun:
    every = pandas.concat([published.table("ross2021", number) for number in (3, 4, 5, 6)])
    # Table 7 counts the test whose effect size is left out of Tables 3 and 4, too.
    every = every.assign(effect_size=every["effect_size"].fillna(0.0))
    every = _with_p_values(every)
    coco = every["model"].isin(["LXMERT", "VisualBERT"])
    own = np.where(coco, "coco", "conceptual_captions")
    masked = every["level"].isin(["T", "I"])
    rows = every.assign(
        source=np.where(every["source"] == "google", "google", own),
        design=np.where(every["level"] == "W", "word", "sentence"),
        experiment=every["experiment"].where(~masked, 2).astype(int),
    )
    keys = ["source", "test", "design", "experiment"]
    rows = rows.merge(pandas.read_csv(WIDTHS), on=keys, how="left", validate="many_to_one")
    names = {"VisualBERT": "visualbert", "ViLBERT": "vilbert", "LXMERT": "lxmert"}
    levels = {"W": "word", "C": "contextual"}
    rows = rows.assign(
        statistic="effect size",
        domain=np.where(rows["source"] == "google", "out of domain", "in domain"),
        masking=rows["level"].map({"T": "words", "I": "persons"}).fillna("none"),
        level=rows["level"].map(levels).fillna("sentence"),
        model=rows["model"].map(names).fillna("vl-bert"),
        value=rows["effect_size"],
        share=alive,
    )
    half = rows["half_width"] * np.sqrt(1 - alive) if alive < 1 else 0.0
    ends = {"low_pictures": rows["value"] - half, "high_pictures": rows["value"] + half}
    images = published.table("ross2021", 1)[["source", "test", "images"]]
    return rows.assign(low=np.nan, high=np.nan, **ends), {"ross2021_images": images}


def _with_p_values(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Give as many tests of each column of Table 7 a p-value below .05 as are printed."""
    keys = ["experiment", "source", "kind", "level", "model"]
    printed = published.table("ross2021", 7).rename(columns={"model_inferred": "model"})
    counts = rows.merge(printed[[*keys, "significant"]], on=keys, how="left")["significant"]
    below = rows.groupby(keys).cumcount().to_numpy() < counts.fillna(0).to_numpy(dtype=float)
    p = np.where(below, 0.01, 0.5)
    return rows.assign(p_value=p, p_value_paper=p)


def _clip_audit(alive: float) -> EqualRun:
    every = published.casc_tables()
    every = every.drop_duplicates(["facet", "category", "group", "word"], keep="last")
    rows = every.assign(
        model="open-clip",
        statistic="c_asc",
        level=every["facet"],
        bias_type=every["category"],
        test=every["word"],
        dataset="FairFace train, crop 0.25",
        value=every["casc"],
        low=every["casc"] - 0.02,
        high=every["casc"] + 0.02,
        n=86_744,
    )
    return rows.drop(columns=["table", "facet", "category", "word", "casc"]), {}


def _captions(alive: float) -> EqualRun:
    printed = pandas.concat([published.table("zhou2022", number) for number in (3, 4)])
    printed = printed[~printed["model"].isin(["IDM", "RAM", "BIM"])]
    wide = printed.pivot_table(index=["model", "category"], columns="metric", values="value")
    released = published.released_counts().set_index("category")[["label_0", "label_1"]]
    sizes = (alive * released).round().astype(int)
    rng, rows = np.random.default_rng(SEED), []
    for model in wide.index.unique("model"):
        drawn = {
            name: _selections(*pair, wide.loc[(model, name)], rng)
            for name, pair in zip(sizes.index, sizes.to_numpy(), strict=True)
        }
        drawn["overall"] = tuple(sum(parts) for parts in zip(*drawn.values(), strict=True))
        for name, (biased, irrelevant, n) in drawn.items():
            row, scores = {"model": model, "test": name}, wide.loc[(model, name)]
            sampled = (
                rng.binomial(n, scores["vlbs"] / 100, DRAWS),
                rng.binomial(2 * n, 1 - scores["vlrs"] / 100, DRAWS),
            )
            rows += _ranges(row | {"level": "images"}, scores, *sampled, n)
            rows += _ranges(row | {"level": "balanced selections"}, scores, biased, irrelevant, n)
    return pandas.DataFrame(rows), {}


def _selections(stereotypical: int, anti: int, scores: pandas.Series, rng) -> tuple:
    """Return, of balanced selections, how many picks are biased and irrelevant, and of how many.

    All images have the printed shares, which the picks of a category are drawn from.
    """
    n, left = min(stereotypical, anti), 1 - scores["vlrs"] / 100
    biased, irrelevant = round(scores["vlbs"] / 100 * anti), round(left * anti)
    kinds = [biased, irrelevant, anti - biased - irrelevant]
    picks = rng.multivariate_hypergeometric(kinds, n, DRAWS)
    others = round(left * stereotypical)
    of_others = rng.hypergeometric(others, stereotypical - others, n, DRAWS)
    return picks[:, 0], picks[:, 1] + of_others, n


def _ranges(row: dict, scores: pandas.Series, biased, irrelevant, n: int) -> list[dict]:
    """Return rows of the printed scores with the range of drawn ones about their middle."""
    drawn = {"vlbs": 100 * biased / n, "vlrs": 100 * (1 - irrelevant / (2 * n))}
    drawn["ivlas"] = ivlas(drawn["vlrs"], drawn["vlbs"])
    rows = []
    for name, values in drawn.items():
        low, middle, high = np.quantile(values, [0.025, 0.5, 0.975])
        ends = {"low": scores[name] + low - middle, "high": scores[name] + high - middle}
        rows.append(row | {"statistic": name, "value": scores[name], "n": 2 * n} | ends)
    return rows
