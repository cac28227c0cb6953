"""Runs of Ross et al. (2021) that equal the paper, on the pictures that are left, by simulation.

    python -m tools.decision_rule

writes how wide intervals over pictures are, the table of what a run can decide, and what the table
of levels has of such runs. What the rule
of :func:`biaslib.reproduction.judge_number` and the checks of whole tables say of such runs, and of
others, is in ``tools/levels/reruns.py``. Settings and seed are the constants below; margin (.05)
and widest interval (.5) were chosen with them, before any run with released models.

**What is simulated.** Sets, words, captions and pictures of each test in the numbers of the
authors' files (``ross_sets.csv``); embeddings are a common mean, and parts of the role (X, Y, A,
B), of the pictured group, of the word, the caption and the picture, independent and normal, scaled
to one. Half of the variance of each part is the same in all models and levels, so that they err
together where they lack the same pictures. The paper's value is that of all pictures, rounded; the
run's that of the pictures whose links are alive, with the interval of
:func:`biaslib.studies.study1_grounded.interval_of_pictures`.

**Where the shares come from.** Of four planted models' embeddings of all 13 tests (words, six
pictures a word): the squared mean is .45 to .77 of the squared length, sets vary by .06 to .22,
words within a set by .02 to .06, pictures by .12 to .27 (medians), in 7 to 10 dimensions (the
participation ratio). So pictures have .85 of the variance within a set.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas

from biaslib.studies import study1_grounded as study
from companion import what_holds_up as decidable
from companion.what_holds_up import RERUNS, decidable_table

HERE = Path(__file__).parent / "benchmarks"
DECIDABLE = decidable.WIDTHS.with_name("decidable.csv")
"""The table of :func:`companion.what_holds_up.decidable_table`, which book/colab.md shows."""
LEVELS = HERE / "results" / "levels.csv"

SEED, DRAWS, RESAMPLES = 20261126, 3, 200
EVEN, UNEVEN = "85% of the links, evenly", "85%: one set of six keeps 35%, the others 95%"
KEPT = {"every picture": (1.0, 1.0), EVEN: (0.85, 0.85), UNEVEN: (0.35, 0.95)}
"""Share of the links that are alive: in one set of each test, drawn anew, and in the others."""

MEAN, SETS, WITHIN, PICTURES, DIMENSIONS, SHARED = 0.5, 0.2, 0.3, 0.85, 8, 0.5
"""Squared length of an embedding: of the common mean, of role and group, and within a set; of that
the pictures' share; dimensions; share of the variance that models have in common."""

DESIGN = ["source", "test", "design"]


def cells() -> pandas.DataFrame:
    """Return the scores of a run that is equal to the paper, by design."""
    return decidable.equal_run("ross2021")[0].sort_values([*DESIGN, "experiment"])


def sets_of(sizes: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """Return the rows of a test's six sets: *word*, *caption* and *image* of each, as numbers."""
    found = {}
    for each in sizes.itertuples():
        row = np.arange(each.rows)
        caption = row % each.captions
        image, word = row * each.images // each.rows, caption * each.words // each.captions
        found[each.set] = pandas.DataFrame({"word": word, "caption": caption, "image": image})
    return found


def embedded(rows: dict, shared, own) -> dict[str, np.ndarray]:
    """Return embeddings of each set's rows, (n, dimensions)."""

    def normal(n: int, variance: float) -> np.ndarray:
        one, other = (rng.normal(size=(n, DIMENSIONS)) for rng in (shared, own))
        both = np.sqrt(SHARED) * one + np.sqrt(1 - SHARED) * other
        return np.sqrt(variance / DIMENSIONS) * both

    mean = np.sqrt(MEAN) * np.eye(1, DIMENSIONS)
    group = {"x": normal(1, SETS / 2), "y": normal(1, SETS / 2)}
    words, made = WITHIN * (1 - PICTURES), {}
    for role in "XYAB":
        of_role, names = normal(1, SETS / 2), [name for name in rows if name[0] == role]
        n_words, n_captions = (
            max(rows[name][column].max() for name in names) + 1 for column in ("word", "caption")
        )
        texts = n_captions > n_words
        of_word = normal(n_words, words / (1 + texts))
        of_caption = normal(n_captions, texts * words / 2)
        for name in names:
            row = rows[name]
            of_picture = normal(row["image"].max() + 1, WITHIN * PICTURES)[row["image"]]
            of_texts = of_word[row["word"]] + of_caption[row["caption"]]
            made[name] = mean + of_role + group[name[-1].lower()] + of_texts + of_picture
    return made


def links_alive(sizes: dict[str, int], condition: str, rng) -> dict[str, np.ndarray]:
    """Return which pictures of each set are left: one set, drawn anew, keeps its own share."""
    one_keeps, others_keep = KEPT[condition]
    worst = rng.choice(list(sizes))
    return {n: rng.random(k) < (one_keeps if n == worst else others_keep) for n, k in sizes.items()}


def left(whole: study.EmbeddedSets, alive: dict[str, np.ndarray]) -> study.EmbeddedSets:
    """Return what is left of a test: *alive* by set, in the order of the pictures' first rows."""
    kept = {name: alive[name][pandas.factorize(images)[0]] for name, images in whole.images.items()}
    parts = [
        {name: rows[kept[name]] for name, rows in each.items()}
        for each in (whole.embeddings, whole.words, whole.images)
    ]
    shares = {name: float(each.mean()) for name, each in alive.items()}
    return study.EmbeddedSets(whole.test, whole.level, whole.masking, *parts, shares)


def one_run(rows: dict, alive: dict, experiment: int, shared, own) -> tuple[float, ...]:
    """Return a run's value and the ends of its interval, off the paper's rounded value.

    And the least share of a set's pictures; NaN where a set has none left.
    """
    if not all(each.any() for each in alive.values()):
        return (np.nan,) * 4
    words, images = (
        {name: name + row[column].astype(str).to_numpy() for name, row in rows.items()}
        for column in ("word", "image")
    )
    whole = study.EmbeddedSets("", "", "none", embedded(rows, shared, own), words, images)
    some = left(whole, alive)
    printed = round(study.defined_result(whole, experiment).effect_size, 2)
    value = study.defined_result(some, experiment).effect_size
    ends = study.interval_of_pictures(some, experiment, RESAMPLES, int(own.integers(2**31)))
    away = np.array([value, ends["low_pictures"], ends["high_pictures"]]) - printed
    return *away, min(some.shares.values())


def simulated(condition: str, draws: int, seed: int = SEED) -> Iterator[pandas.DataFrame]:
    """Yield the scores of runs that equal the paper, but for links that are dead, draw by draw."""
    every, sizes = cells(), pandas.read_csv(HERE / "ross_sets.csv").groupby([*DESIGN[:2], "level"])
    for draw in range(draws):
        found, at = [], [seed, list(KEPT).index(condition), draw]
        for place, (key, part) in enumerate(every.groupby(DESIGN, sort=False)):
            rows = sets_of(sizes.get_group(key))
            pictures = {name: row["image"].max() + 1 for name, row in rows.items()}
            alive = links_alive(pictures, condition, np.random.default_rng([*at, place]))
            for number, experiment in enumerate(part["experiment"]):
                shared = np.random.default_rng([*at, place, 0])
                own = np.random.default_rng([*at, place, 1, number])
                found.append(one_run(rows, alive, experiment, shared, own))
        away = pandas.DataFrame(found, every.index, ["value", "low", "high", "share"])
        ends = {f"{end}_pictures": every["value"] + away[end] for end in ("low", "high")}
        yield every.assign(value=every["value"] + away["value"], share=away["share"], **ends)


def widths() -> pandas.DataFrame:
    """Return half the width of the interval over pictures, by design, were they a sample.

    The median over printed numbers and draws with 85% of the links; NaN where there is none.
    """
    every = pandas.concat(simulated(EVEN, DRAWS))
    half = (every["high_pictures"] - every["low_pictures"]) / 2 / np.sqrt(1 - 0.85)
    by = [*DESIGN, "experiment"]
    return (
        every.assign(half_width=half).groupby(by, sort=False, as_index=False)["half_width"].median()
    )


def reruns() -> pandas.DataFrame:
    """Return what the table of levels has of runs beside a paper: a row a case and condition."""
    rows = pandas.read_csv(LEVELS).query("of == 'compare'").reset_index(drop=True)
    cases = rows["condition"].str.partition(", ")
    short = {EVEN: "85%, evenly", UNEVEN: "85%, unevenly"}
    bound = rows["quantity"].map({"met": "at least ", "found": "at least ", "not met": "at most "})
    bound = bound.mask(cases[0] == "values are another's", "at most ")
    return pandas.DataFrame(
        {
            "numbers": rows["n"],
            "case": cases[0],
            "condition": cases[2].replace(short),
            "verdict": rows["quantity"],
            "share": rows["observed"],
            "asked": bound + (100 * rows["nominal"]).map("{:.0f}".format),
        }
    )


def main() -> None:
    """Write the widths, and then the tables of what a run can decide and of the simulated runs."""
    widths().round(4).to_csv(decidable.WIDTHS, index=False)
    decidable_table().to_csv(DECIDABLE, index=False)
    reruns().to_csv(RERUNS, index=False)


if __name__ == "__main__":
    main()
