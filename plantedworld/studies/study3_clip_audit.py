"""Study 3 where the answer is known: C-ASC and counted pronouns beside what is planted."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas

from biaslib import inference
from biaslib.metrics import caption_association
from biaslib.studies import study3_clip_audit as study
from plantedworld import strengths, world
from plantedworld.corpus import expected_shares, planted_corpus
from plantedworld.inputs.study3_clip_audit import drawings
from plantedworld.models.perfect import PerfectModel

__all__ = [
    "beside_truth",
    "by_unit",
    "halves",
    "mechanism",
]

NOTHING = 1e-9
"""Log ratios and spreads below this are rounding, and count as 0."""


def beside_truth(run: study.Audit) -> pandas.DataFrame:
    """Return C-ASC of a run in the planted world beside what is planted, and that of the oracle.

    The oracle sees the same portraits and answers from the world's probabilities, so that its
    score shows what the measure makes of a perfect model.

    Returns
    -------
    pandas.DataFrame
        One row a facet, type and word: *facet* (gender, tone), *group* whose C-ASC it is, *word*,
        *bias_type*; *planted*, whether anything is planted on the word; *truth*, the log ratio of
        the word's probability (woman to man, tone 5 to tone 1), which other words of its place
        move a little from 0 where nothing is planted; *model* and *oracle*, C-ASC of either.
    """
    given = run.given
    entries = given.model_case(run.table["word"])
    made = world(given.model["dose"], given.model["seed"])
    oracle = PerfectModel(made, scenes=given.portraits.frame)
    captions = given.model_case(run.table["caption"])
    exact = oracle.encode_text(captions) @ oracle.encode_image(given.portraits).T
    truths = {
        ("gender", "women"): made.truth.log_ratio(entries),
        ("tone", "tone 5"): made.truth.tone_log_ratio(entries),
    }
    drawn = strengths(made.plan).loc[entries]
    tables = []
    for (facet, group), truth in truths.items():
        members = given.groups[facet][[group]].to_numpy()
        own = caption_association.c_asc(run.retrieval.similarities, members)[:, 0]
        known = run.table[["word", "bias_type"]].assign(facet=facet, group=group, truth=truth)
        known["planted"] = drawn[facet].to_numpy() != 0
        tables.append(known.assign(model=own, oracle=_where_spread(exact, members)))
    return pandas.concat(tables, ignore_index=True)


def by_unit(run: study.Audit, level: float = 0.05) -> pandas.DataFrame:
    """Return how many tests of C-ASC by gender reject, for three kinds of unit.

    The units are portraits; drawings, which are outlines in one tone; and outlines, of which there
    are six of women and six of men, each in five tones.

    Returns
    -------
    pandas.DataFrame
        One row a unit: *unit*, *n* units, *tests* (words), how many p-values of Welch's test are
        below the level, *uncorrected* and *corrected* (Benjamini and Yekutieli).
    """
    women = run.given.groups["gender"][[run.given.gender[0]]].to_numpy()
    ways = {
        "portraits": np.arange(len(women)),
        "drawings": run.given.units,
        "outlines": drawings(run.given.people.assign(tone=0)),
    }
    rows = []
    for name, units in ways.items():
        means, belongs = study.unit_means(run.retrieval.similarities, women, units)
        p_values = study.welch_p_values(means, belongs)
        adjusted = inference.adjust(p_values, "by")
        rows.append(
            {"unit": name, "n": len(belongs), "tests": p_values.size,
             "uncorrected": int((p_values < level).sum()),
             "corrected": int((adjusted < level).sum())}
        )  # fmt: skip
    return pandas.DataFrame(rows)


def halves(run: study.Audit) -> pandas.DataFrame:
    """Return C-ASC of women from two halves of the outlines of adults, a row a word.

    Two of the four outlines of adults of either gender make the *first* half, two the *second*: if
    a score comes from a few drawings, the other half does not have it.
    """
    people = run.given.people
    adults = (people["age"] == "adult").to_numpy()
    early = np.isin(people["look"], sorted(people.loc[adults, "look"].unique())[:2])
    women = run.given.groups["gender"][[run.given.gender[0]]].to_numpy()
    found = {}
    for name, chosen in (("first", adults & early), ("second", adults & ~early)):
        cosines = run.retrieval.similarities[:, chosen]
        found[name] = caption_association.c_asc(cosines, women[chosen])[:, 0]
    return run.table[["word", "bias_type"]].assign(**found)


def _where_spread(similarities: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return C-ASC of one group, (k,): 0 where all portraits are equally near."""
    found, spread = np.zeros(len(similarities)), np.ptp(similarities, axis=1) > NOTHING
    found[spread] = caption_association.c_asc(similarities[spread], members)[:, 0]
    return np.where(np.abs(found) < NOTHING, 0.0, found)


def mechanism(
    doses: Sequence[float], seed: int, folder: str | Path, table: pandas.DataFrame
) -> pandas.DataFrame:
    """Return pronouns in the training captions beside C-ASC of the CLIP trained on them, by dose.

    It shows that captions can be the way by which such scores come about: here nothing else
    differs. It does not show that LAION caused CLIP's.

    Returns
    -------
    pandas.DataFrame
        One row a dose and word: *dose*, *word*, *share* of women's pronouns with *low* and *high*,
        *n*, *truth*, and *c_asc* of women.
    """
    rows = []
    for dose in doses:
        given = study.inputs("planted", dose=dose, seed=seed, n_per_cell=12)
        model = study.load_model(given)
        image = study.embed_images(model, given.portraits)
        text = study.embed_texts(model, given.model_case(table["caption"]))
        women = given.groups["gender"][["women"]].to_numpy()
        counted = study.source_of_bias(planted_corpus(folder, dose, seed), table)
        truth = expected_shares(world(dose, seed), counted["word"])
        c_asc = caption_association.c_asc(text @ image.T, women)[:, 0]
        c_asc = pandas.Series(c_asc, index=table["word"]).groupby(level=0).first()
        part = counted[["word", "share", "low", "high", "n"]].assign(dose=dose, truth=truth)
        rows.append(part.assign(c_asc=part["word"].map(c_asc)))
    return pandas.concat(rows, ignore_index=True)
