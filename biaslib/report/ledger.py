"""What holds up: tables, a figure and sentences about the contracts of the four papers."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas

from biaslib import ledger, published
from biaslib.report._check import Check, judge_list
from biaslib.report._listing import Listing
from biaslib.report._style import subplots
from biaslib.report._tables import Table
from biaslib.report._text import counted, minus_signs, say, signed
from biaslib.runtime import in_book

NAMES = {
    "ross2021": "Ross et al. 2021",
    "srinivasan2021": "Srinivasan and Bisk 2021",
    "hamidieh2023": "Hamidieh et al. 2023",
    "zhou2022": "Zhou et al. 2022",
}
ANSWERS = (*ledger.ANSWERS, "cannot be told")
COLOURS = {"follows": "C2", "in part": "C8", "does not follow": "C3", "cannot be told": "0.75"}
VERDICT_COLOURS = {"met": "C2", "cannot be said": "C8", "not met": "C3", "not run": "0.75"}
CODE = {
    "ross2021": "biaslib.metrics.grounded.grounded",
    "srinivasan2021": "biaslib.metrics.masked_lm.bias_score",
    "hamidieh2023": "biaslib.metrics.caption_association.c_asc",
    "zhou2022": "biaslib.metrics.caption_selection.selection_scores",
}
"""The function behind a paper's numbers."""

CHAPTERS = {
    "ross2021": "study1_grounded",
    "srinivasan2021": "study2_masked",
    "hamidieh2023": "study3_clip_audit",
    "zhou2022": "study4_captions",
}

CONTRACT = "numbers, lists and claims, each with what would count as keeping it"
"""What contracts are, for readers who have not met the word."""


def newest(records: Sequence[ledger.Record]) -> dict[str, ledger.Record]:
    """Return the newest record of each paper."""
    found: dict[str, ledger.Record] = {}
    for each in sorted(records, key=lambda each: each.header["made"]):
        found[each.paper] = each
    return found


def standing(records: Sequence[ledger.Record] = (), paper: str | None = None) -> pandas.DataFrame:
    """Return the contracts of a paper, or of all, with their evidence.

    Of several records of a paper the newest counts.
    """
    found = newest(records)
    wanted = {name: each.verdicts() for name, each in found.items() if paper in (None, name)}
    return ledger.standing(wanted, paper)


def told_answers(table: pandas.DataFrame) -> pandas.Series:
    """Return the answers about claims, with words for those that nobody can tell."""
    claims = table[table["kind"] == "claim"]
    return claims["answer"].replace("", "cannot be told")


def told_kinds(table: pandas.DataFrame) -> pandas.Series:
    """Return the kinds of contracts, with questions that are settled apart from the open ones."""
    settled = (table["kind"] == "open question") & table["answer"].isin(published.SETTLED)
    return table["kind"].mask(settled, "settled question")


def scoreboard(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row a paper: contracts, answers about its claims, and verdicts of runs.

    Parameters
    ----------
    table
        Of :func:`standing`.
    """
    papers = table["paper"].unique()

    def counted_in(values: pandas.Series, names: Sequence[str]) -> pandas.DataFrame:
        found = pandas.crosstab(table["paper"], values)
        return found.reindex(index=papers, columns=list(names), fill_value=0)

    kinds = told_kinds(table).replace("count", "number")
    questions = {"open question": "questions: open", "settled question": "questions: settled"}
    parts = [
        counted_in(kinds, ("number", "list", "claim")).add_suffix("s"),
        counted_in(told_answers(table), ANSWERS).add_prefix("claims: "),
        counted_in(kinds, questions).rename(columns=questions),
        counted_in(table["verdict"], ledger.VERDICTS).add_prefix("run: "),
    ]
    found = pandas.concat(parts, axis=1).reset_index(drop=True)
    found.insert(0, "paper", [NAMES[paper] for paper in papers])
    total = found.drop(columns="paper").sum().to_dict()
    return pandas.concat([found, pandas.DataFrame([{"paper": "all four"} | total])])


def scoreboard_figure(table: pandas.DataFrame):
    """Draw, by paper, which share of its claims follows from its own tables.

    Where runs are recorded, a second panel has what they say of all contracts.
    """
    ran = bool(table["verdict"].isin(ledger.VERDICTS[:3]).any())
    figure, panels = subplots(1, 1 + ran, height=3.2, sharey=True, squeeze=False)
    panels = panels[0]
    papers = list(NAMES)[::-1]
    answers = {paper: told_answers(table[table["paper"] == paper]) for paper in papers}
    runs = {
        paper: table.loc[(table["paper"] == paper) & (table["verdict"] != ""), "verdict"]
        for paper in papers
    }
    _bars(panels[0], answers, COLOURS, "Claims, by the paper's own tables")
    if ran:
        _bars(panels[1], runs, VERDICT_COLOURS, "All contracts, by a recorded run")
    panels[0].set_yticks(range(len(papers)), [NAMES[paper] for paper in papers])
    return figure


def _bars(axes, parts: Mapping[str, pandas.Series], colours: Mapping[str, str], label: str):
    """Draw stacked shares, a bar a paper, with their counts inside."""
    for at, values in enumerate(parts.values()):
        counts, left = values.value_counts(), 0.0
        for name, colour in colours.items():
            n = int(counts.get(name, 0))
            width = 100 * n / max(len(values), 1)
            axes.barh(at, width, left=left, color=colour, edgecolor="white", height=0.7)
            if width > 7:
                axes.text(left + width / 2, at, str(n), ha="center", va="center", color="black")
            left += width
    for name, colour in colours.items():
        axes.barh(0, 0, color=colour, label=name)
    axes.set(xlim=(0, 100), xlabel="%")
    axes.set_title(label, fontsize=11)
    axes.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.25), fontsize=9)


def claim_table(table: pandas.DataFrame, answer: str | None = None, headline: bool | None = None):
    """Return claims with what their papers' tables say of them.

    Parameters
    ----------
    table
        Of :func:`standing`.
    answer, headline
        Which of them; None for all.
    """
    rows = table[table["kind"] == "claim"]
    if headline is not None:
        rows = rows[rows["headline"] == headline]
    if answer is not None:
        rows = rows[rows["answer"] == answer]
    return pandas.DataFrame(
        {
            "claim": rows["claim"],
            "where": rows["paper"].map(NAMES) + ", " + rows["place"],
            "by its tables": rows["answer"].replace("", "cannot be told"),
            "because": rows["from_printed"].map(minus_signs),
            "random weights": rows["id"].map(_random_verdicts()).fillna("–"),
            "thresholds": rows["thresholds"],
        }
    )


def _random_verdicts() -> dict[str, str]:
    """Return what models of random weights say of each claim."""
    rows = ledger.random_weights()
    rows = rows[rows["value"].isna()]
    return dict(zip(rows["id"], rows["verdict"], strict=True))


def random_sentence(table: pandas.DataFrame) -> str:
    """Return how many claims models without training meet, by paper, and how many headlines."""
    claims = table[table["kind"] == "claim"]
    found = claims["id"].map(_random_verdicts())
    parts = []
    for paper, name in NAMES.items():
        rows = found[(claims["paper"] == paper) & found.notna()]
        if len(rows):
            parts.append(f"{name} {int((rows == 'met').sum())} of {len(rows)}")
    headline = int(((found == "met") & claims["headline"]).sum())
    return (
        f"Of the claims in words, models with random weights meet {'; '.join(parts)}. Of all "
        f"that they meet, {headline} are headline claims. A run that meets such a claim "
        "has not shown it to be about what the model has learned."
    )


def share_sentences(paper: str, records: Sequence[ledger.Record]) -> str:
    """Return three sentences about what of a paper holds up, by the ledger."""
    table = standing(records, paper)
    answers = told_answers(table).value_counts()
    n, told = len(told_answers(table)), {name: int(answers.get(name, 0)) for name in ANSWERS}
    first = (
        f"The [ledger](what_holds_up.ipynb) has {counted(n, 'claims')} of the paper: "
        f"{told['follows']} {'follows' if told['follows'] == 1 else 'follow'} from what the paper "
        f"itself prints, {told['in part']} in part, {told['does not follow']} not, and "
        f"{told['cannot be told']} cannot be told from it."
    )
    found = newest(records).get(paper)
    contracts = table[table["verdict"] != ""]
    n_run = f"{len(contracts):,} contracts for this paper ({CONTRACT})"
    if found is None:
        second = (
            "No run of the paper's study with the released models has been recorded, so none of "
            f"the {n_run} has been tested."
        )
    else:
        runs = contracts["verdict"].value_counts()
        parts = ", ".join(f"{int(runs.get(name, 0)):,} {name}" for name in ledger.VERDICTS)
        second = f"A recorded run ({found.label}) says of the {n_run}: {parts}."
    kinds = told_kinds(table)
    n_open, settled = (int((kinds == f"{how} question").sum()) for how in ("open", "settled"))
    third = (
        f"All {n_open} questions about its tables are open."
        if n_open > 1 and not settled
        else f"Of {counted(n_open + settled, 'questions')} about its tables, {n_open or 'none'} "
        f"{'are' if n_open > 1 else 'is'} open, and {settled or 'none'} "
        f"{'are' if settled > 1 else 'is'} settled by released files or by the tables themselves."
    )
    return f"{first} {second} {third}"


def discrimination_table() -> pandas.DataFrame:
    """Return how many contracts wrong scores meet, by table, in per cent."""
    found = pandas.concat(map(ledger.discrimination, NAMES), ignore_index=True)
    rows = {"paper": found["paper"].map(NAMES), "place": found["place"]}
    for name in ("another column", "random weights"):
        rows[f"met by {name}, %"] = 100 * found[name]
        rows[f"n, {name}"] = found[f"{name}, n"].astype("Int64")
    return pandas.DataFrame(rows | {"discriminates": found["discriminates"]})


def paper_shares(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the shares of :func:`discrimination_table` over all tables of each paper."""
    found, columns = found[found["place"] != "claims"], {}
    for name in ("another column", "random weights"):
        n = found[f"n, {name}"].fillna(0).astype(int)
        met = found[f"met by {name}, %"].fillna(0) * n
        met, n = (each.groupby(found["paper"], sort=False).sum() for each in (met, n))
        columns |= {f"met by {name}, %": met / n.where(n > 0), f"n, {name}": n}
    return pandas.DataFrame(columns).reset_index()


def exchange_sentence() -> str:
    """Return how many claims still follow when two columns of a table are exchanged."""
    parts = []
    for paper, name in NAMES.items():
        found = ledger.claims_after_exchange(paper)
        if len(found) and (found["followed"] > 0).any():
            share = 100 * found["still"].sum() / found["followed"].sum()
            parts.append(f"{name} {share:.0f}% ({len(found)} exchanges)")
    return (
        "Of the claims that followed, these shares still follow if two columns of a table are "
        f"exchanged: {'; '.join(parts)}. A claim about all models at once cannot notice that."
    )


def listing(table: pandas.DataFrame, records: Sequence[ledger.Record] = ()) -> Listing:
    """Return the table of all contracts, to search and filter."""
    ending = "html" if in_book() else "ipynb"
    pages = "../book/api/{}.html#{}" if in_book() else "../book/api/{}.md#{}"
    claim = table["kind"] == "claim"
    shown = table["printed"].where(~claim, "“" + table["printed"] + "”")
    limit = table["margin"].map(lambda margin: f"± {margin:g}", na_action="ignore").fillna("")
    limit = limit.where(table["kind"] != "list", "4 of 5 words, τ ≥ .5")
    kinds = told_kinds(table)
    own = table["answer"].where(table["kind"] != "open question", kinds)
    rows = pandas.DataFrame(
        {
            "contract": table["id"],
            "printed": shown,
            "from the paper": own.where(~claim | (own != ""), "cannot be told"),
            "verdict": table["verdict"],
            "run": _run_column(table),
            "tolerance": limit.where(~claim, "by its predicate"),
            "kind": kinds,
            "measure": table["measure"],
            "paper": table["paper"].map(NAMES),
            "open question": table["erratum"],
            "chapter": [
                f"{(each.rpartition('/')[2]) or CHAPTERS[paper]}.{ending}"
                for each, paper in zip(table["chapter"], table["paper"], strict=True)
            ],
            "code": [
                pages.format("ledger", "biaslib.ledger.reexamined")
                if is_claim
                else pages.format("metrics", CODE[paper])
                for paper, is_claim in zip(table["paper"], claim, strict=True)
            ],
        }
    )
    links = {"contract": "chapter", "tolerance": "code"}
    filters = ["paper", "kind", "from the paper", "verdict"]
    return Listing(rows, f"All {len(rows):,} contracts and questions", filters, links)


def _run_column(table: pandas.DataFrame) -> list[str]:
    texts = []
    for row in table.itertuples():
        text = "" if pandas.isna(row.run) else signed(row.run)
        if text and not pandas.isna(row.run_low):
            text += f" [{signed(row.run_low)}, {signed(row.run_high)}]"
        texts.append(": ".join(filter(None, (text, row.run_told))))
    return texts


def need_table() -> pandas.DataFrame:
    """Return what re-runs of each paper take, and how many contracts need it."""
    every, rows = ledger.contracts(), []
    for paper, name in NAMES.items():
        asked = every.loc[every["paper"] == paper, "needs"].explode().value_counts()
        for key, told in ledger.needs(paper).items():
            rows.append({"paper": name, "need": key, "what it is": told, "contracts": asked[key]})
    return pandas.DataFrame(rows)


def limit_table() -> pandas.DataFrame:
    """Return what the authors say of their own limits: ours in short, and their words."""
    rows = ledger.limits()
    return pandas.DataFrame(
        {
            "limit": rows["says"],
            "in their words": "“" + rows["quotation"] + "”",
            "where": rows["paper"].map(NAMES) + ", " + rows["place"],
        }
    )


def record_table(records: Sequence[ledger.Record]) -> pandas.DataFrame:
    """Return the recorded runs: paper, date, device, minutes, version, scores and weights."""
    rows = [
        {
            "paper": NAMES[each.paper],
            "run": each.label,
            "minutes": each.header["minutes"],
            "biaslib": each.header["biaslib"],
            "scores": len(each.scores),
            "weights": ", ".join(each.header["weights"]),
            "file": f"{each.name}.parquet",
        }
        for each in records
    ]
    return pandas.DataFrame(rows)


def beside(paper: str, record: ledger.Record) -> pandas.DataFrame:
    """Return a paper's printed numbers beside those of a recorded run, with the verdicts."""
    table = standing([record], paper)
    rows = table[table["run"].notna()]
    return pandas.DataFrame(
        {
            "contract": rows["id"].str.removeprefix(f"{paper}/"),
            "printed": rows["printed"],
            "recorded run": _run_column(rows),
            "verdict": rows["verdict"],
        }
    )


def beside_recorded(paper: str, records: Sequence[ledger.Record]):
    """Return what a chapter shows of recorded runs: the newest one beside the printed numbers.

    Where there is none, a sentence says how to make one.
    """
    found = newest(records).get(paper)
    if found is None:
        return say(
            "**No recorded run yet.** Whoever runs this page in the profile `paper` gets one at "
            "its end, as a file; [the ledger](what_holds_up.ipynb) says how to send it."
        )
    caption = f"Printed numbers beside a recorded run: {found.label}"
    return Table(beside(paper, found), caption, folded=True)


def recorded(paper: str, scores, run, counts=None):
    """Write the record of a run in ``paper``, and return a sentence that says where.

    It goes where the environment variable ``BIASLIB_RUNS`` says, or beside the notebook. In
    ``planted`` nothing is written: its scores are of no released model.

    Parameters
    ----------
    paper, scores, run, counts
        As of :func:`biaslib.ledger.record`.
    """
    if run.profile != "paper":
        return say("Nothing to record: these scores are of the planted world.")
    found = ledger.record(paper, scores, run, counts)
    name = f"{paper}-{found.header['made'][:10]}-{found.header['content'][:8]}.parquet"
    path = found.write(Path(os.environ.get("BIASLIB_RUNS", ".")) / name)
    met = found.verdicts()["verdict"].value_counts()
    parts = ", ".join(f"{int(met.get(each, 0)):,} {each}" for each in ledger.VERDICTS)
    return say(
        f"Recorded: `{path}` ({len(found.scores):,} scores). Of the paper's contracts: {parts}. "
        f"`python -m biaslib.ledger check {path}` verifies it; CONTRIBUTING.md says how to send it."
    )


# The exercise


def ten_contracts() -> pandas.DataFrame:
    """Return ten contracts with numbers of an invented run, for the reader to judge."""
    rows = [
        ("zhou2022/table3/overall/clip/vlbs", 45.60, 45.40, 45.90),
        ("zhou2022/table3/overall/flava/vlrs", 61.90, 61.60, 62.20),
        ("zhou2022/table3/overall/albef/ivlas", 75.70, 74.10, 76.90),
        ("ross2021/table3/C6/vl-bert/W", 1.60, 1.58, 1.63),
        ("ross2021/table3/C6/vilbert/W", 1.04, 0.61, 1.38),
        ("ross2021/table4/C8/visualbert/W", 0.77, np.nan, np.nan),
        ("hamidieh2023/table4/women/nurse", 1.27, 1.265, 1.285),
        ("hamidieh2023/table4/men/miner", 0.91, 0.88, 0.94),
        ("ross2021/table1/google/C6", 780, 780, 780),
        ("zhou2022/table1/gender", 206, 206, 206),
    ]
    printed = ledger.contracts().set_index("id")
    return pandas.DataFrame(
        [
            {
                "contract": name,
                "printed": printed.loc[name, "value"],
                "margin": printed.loc[name, "margin"],
                "run": value,
                "low": low,
                "high": high,
            }
            for name, value, low, high in rows
        ]
    )


def whole_counts(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return contracts with counts as whole numbers, to read.

    Examples
    --------
    >>> whole_counts(ten_contracts())["printed"].tolist()[-3:]
    [0.99, 780, 486]
    """
    columns = ["printed", "margin", "run", "low", "high"]
    counts = table["margin"] == 0
    shown = {
        name: table[name].astype(object).mask(counts, table[name].fillna(0).round().astype(int))
        for name in columns
    }
    return table.assign(**shown)


def check_verdicts(answer) -> Check:
    """Check a reader's ten verdicts, in the order of :func:`ten_contracts`.

    Examples
    --------
    >>> check_verdicts(["met"] * 10)
    Not yet: 4 of 10 are right; look at row 2 again
    """
    rows = ten_contracts()
    names = ("printed", "margin", "low", "high")
    expected = ledger.judge_number(*(rows[name].to_numpy() for name in names))
    form = f"return ten of {', '.join(ledger.VERDICTS[:3])}, in the table's order"
    hints = [f"look at row {number} again" for number in range(1, 11)]
    learned = "an interval partly outside the tolerance decides nothing, nor does a missing one."
    return judge_list(answer, expected, form, hints, learned)
