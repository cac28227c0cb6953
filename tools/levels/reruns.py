"""A run beside a paper: how often its interval holds the paper's number, and what is said of it.

Of Ross et al. the runs are those of :mod:`tools.decision_rule`. *Met*, *not met* and *found* (not
met, or named by the check of its table) are shares of the printed numbers; *nominal* is what was
asked for, with every picture and with 85% of the links.
"""

import numpy as np
import pandas

from biaslib import reproduction
from biaslib.reproduction import ninety
from biaslib.studies import study1_grounded as study
from companion import what_holds_up as decidable
from tools import decision_rule as simulation
from tools.levels import row

WORDS, PICTURES, DIMENSIONS, RESAMPLES, CHANGE = 8, 10, 40, 150, 0.2
MOST, RUNS_OF_A_DRAW = 1_000, 500
"""Most runs of one test, and for how many there is one run of all tests."""

PAPERS = {
    "ross2021": ("table[3-6]/", "effect sizes of Ross et al."),
    "hamidieh2023": (r"table(?!1/)\d+/[^/]+/(?!list)", "C-ASC of Hamidieh et al."),
    "zhou2022": ("table[34]/(?!reference)", "scores of Zhou et al."),
}
"""Which ids are those of the numbers, and what they are."""

CELL = ["test", "level", "experiment", "masking", "domain", "bias_type", "statistic"]
"""Columns in which the numbers of models or groups that could be exchanged agree."""


def rows(seed: int, runs: int) -> list[dict]:
    found = []
    for condition in (simulation.EVEN, simulation.UNEVEN):
        for experiment in (1, 2):
            found += _one_test(condition, experiment, min(runs, MOST), seed)
    for condition in simulation.KEPT:
        draws = simulation.simulated(condition, max(1, runs // RUNS_OF_A_DRAW), seed)
        counts = decidable.equal_run("ross2021")[1]
        found += _shares("ross2021", condition, [(each, counts) for each in draws], seed)
    for paper, alive in (("hamidieh2023", 1), ("zhou2022", 1), ("zhou2022", 0.85)):
        condition = "every picture" if alive == 1 else simulation.EVEN
        found += _shares(paper, condition, [decidable.equal_run(paper, alive)], seed)
    return found


# One test, of eight words a set and ten pictures a word


def _sets(rng) -> study.EmbeddedSets:
    """Return six sets of a common direction, one a role and a group, words and pictures."""

    def drawn(length: float, n: int) -> np.ndarray:
        return length * rng.normal(size=(n, DIMENSIONS)) / np.sqrt(DIMENSIONS)

    mean, groups, roles = drawn(1.0, 1), drawn(0.5, 2), drawn(0.3, 2)
    kinds = {"X": groups[0] + 0.3 * roles[0], "Y": groups[1] + 0.3 * roles[1]}
    kinds |= dict(zip("AB", roles, strict=True))
    of_word = {role: drawn(0.4, WORDS) for role in kinds}
    word = np.arange(WORDS).repeat(PICTURES)
    vectors = {
        name: mean + kinds[name[0]] + of_word[name[0]][word] + drawn(1.0, len(word))
        for name in study.SETS
    }
    words = {name: np.char.add(name[0], word.astype(str)) for name in vectors}
    images = {name: np.char.add(name, np.arange(len(word)).astype(str)) for name in vectors}
    return study.EmbeddedSets("test", "word", "none", vectors, words, images)


def _one_test(condition: str, experiment: int, runs: int, seed: int) -> list[dict]:
    rng = np.random.default_rng([seed, experiment, list(simulation.KEPT).index(condition)])
    scored, printed = [], []
    for _ in range(runs):
        whole = _sets(rng)
        printed.append(study.defined_result(whole, experiment).effect_size)
        alive = simulation.links_alive(
            {name: WORDS * PICTURES for name in study.SETS}, condition, rng
        )
        value = study.defined_result(some := simulation.left(whole, alive), experiment).effect_size
        ends = study.interval_of_pictures(some, experiment, RESAMPLES, int(rng.integers(2**31)))
        scored.append((value, ends["low_pictures"], ends["high_pictures"]))
    names = ["value", "low_pictures", "high_pictures"]
    found = ninety(pandas.DataFrame(scored, columns=names))
    low, high = found[["value", "low"]].min(axis=1), found[["value", "high"]].max(axis=1)
    verdicts = reproduction.judge_number(np.round(printed, 2), 0.05, low, high, 0.5)
    of = ("interval_of_pictures", f"Experiment {experiment}, {condition}", "8 words, 10 pictures")
    return [
        row(*of, "coverage", 0.9, (low <= printed) & (printed <= high), seed),
        row(*of, "not met", 0.1, verdicts == "not met", seed),
    ]


# Whole runs


def _shares(paper: str, condition: str, runs, seed: int) -> list[dict]:
    """Return shares of a paper's numbers over runs that equal it, and over the same changed."""
    pattern, numbers = PAPERS[paper]
    parts = {}
    for scores, counts in runs:
        printed = scores["effect_size"] if "effect_size" in scores else scores["value"]
        cell = [name for name in CELL if name in scores]
        of_another = printed.groupby([scores[name] for name in cell]).transform(np.roll, 1)
        for name, change in (("equal", 0), ("other", of_another - printed), ("changed", CHANGE)):
            columns = [c for c in scores if c.split("_")[0] in ("value", "low", "high")]
            moved = scores.assign(**{c: scores[c] + change for c in columns})
            found = reproduction.compare(moved, paper, counts)
            found = found[found["id"].str.match(f"{paper}/{pattern}")]
            parts.setdefault(name, []).append(found[found["verdict"] != "not run"])
    of = {name: pandas.concat(each) for name, each in parts.items()}
    widest = of["equal"]["id"].map(reproduction.printed(paper).set_index("id")["widest"])
    value, margin, *ends = (
        of["equal"][c].astype(float) for c in ("printed", "margin", "low", "high")
    )
    alone = reproduction.judge_number(value, margin, *(end + CHANGE for end in ends), widest)
    named = of["changed"]["reason"].str.contains(" as a whole: ")
    whole = condition == "every picture"
    cases = [
        ("the run equals the paper", "met", 0.9 if whole else 0.8, of["equal"]["verdict"] == "met"),
        ("the run equals the paper", "not met", 0.05, of["equal"]["verdict"] == "not met"),
        ("values are another's", "met", 0.15 if whole else 0.2, of["other"]["verdict"] == "met"),
        ("all are .2 higher", "found", 0.8, (of["changed"]["verdict"] == "not met") | named),
        ("one alone is .2 higher", "found", 0.8, alone == "not met"),
    ]
    return [
        row("compare", f"{case}, {condition}", numbers, quantity, nominal, held, seed)
        for case, quantity, nominal, held in cases[: 5 if paper == "ross2021" else 3]
    ]
