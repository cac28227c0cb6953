"""Numbers of the papers that are typed into a page are those of the carried tables."""

import re
from pathlib import Path

import pytest

from biaslib import published, reproduction

ROOT = Path(__file__).parents[1]


def cells(paper, number, column, **where):
    """The column of a printed table, in the rows of some values."""
    table = published.table(paper, number)
    for name, value in where.items():
        table = table[table[name] == value]
    return table[column]


def one(paper, number, column, **where):
    (value,) = cells(paper, number, column, **where).dropna().unique()
    return value


def significant(experiment, column="significant"):
    return int(cells("ross2021", 7, column, experiment=experiment).sum())


def answers(paper):
    found = reproduction.claims(paper)["answer"].value_counts().to_dict()
    return {"claims": sum(found.values()), **found}


def vlbs(model):
    return one("zhou2022", 3, "value", metric="vlbs", category="overall", model=model)


TYPED = {
    "book/index.md": [
        ("{} of {} tests", (significant(1), significant(1, "total"))),
        ("and {} with pictures", (significant(2),)),
        (
            "*briefcase* gets {}",
            (one("srinivasan2021", 3, "probability", entity="briefcase", image=1),),
        ),
        ("*purse*\n    {}", (one("srinivasan2021", 3, "probability", entity="purse", image=1),)),
        (
            "{} standard deviations",
            (one("hamidieh2023", 18, "casc", word="terrorist", group="Middle Eastern"),),
        ),
        ("*Maid* lies {} nearer", (one("hamidieh2023", 4, "casc", word="maid", group="Female"),)),
        ("FLAVA does for {}%", (vlbs("FLAVA"),)),
        ("CLIP for {}%", (vlbs("CLIP"),)),
        ("does for\n    {}%", (vlbs("RAM"),)),
        *(
            (text, tuple(answers(paper)[name] for name in names))
            for paper, text, names in (
                (
                    "ross2021",
                    "Of {} claims {} follow, {} in part, and {} do not",
                    ("claims", "follows", "in part", "does not follow"),
                ),
                ("srinivasan2021", "Of {} claims {} follow in part", ("claims", "in part")),
                (
                    "hamidieh2023",
                    "Of {} claims {} follow, {} in part, and {} do not",
                    ("claims", "follows", "in part", "does not follow"),
                ),
                (
                    "zhou2022",
                    "Of {} claims {} follow and {} in part",
                    ("claims", "follows", "in part"),
                ),
            )
        ),
    ],
    "README.md": [
        ("{} of {} tests", (significant(1), significant(1, "total"))),
        ("and {} with pictures", (significant(2),)),
        (
            "*briefcase* gets {} and",
            (one("srinivasan2021", 3, "probability", entity="briefcase", image=1),),
        ),
        ("*purse* {}", (one("srinivasan2021", 3, "probability", entity="purse", image=1),)),
        (
            "{} standard deviations",
            (one("hamidieh2023", 18, "casc", word="terrorist", group="Middle Eastern"),),
        ),
        ("FLAVA does for {}%", (vlbs("FLAVA"),)),
        ("CLIP for {}%", (vlbs("CLIP"),)),
        ("guesses does for {}%", (vlbs("RAM"),)),
    ],
}
"""Words of a page around a number, and the number that the tables have."""


@pytest.mark.parametrize(
    ("page", "words", "values"),
    [(page, words, values) for page, rows in TYPED.items() for words, values in rows],
)
def test_a_typed_number_is_the_printed_one(page, words, values):
    assert words.format(*values) in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in TYPED if page.startswith("book")])
def test_no_other_decimal_is_typed(page):
    """Numbers of a run are shown by its tables and figures."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for words, values in TYPED[page]:
        text = text.replace(words.format(*values), "")
    assert re.findall(r"\d*\.\d+", text) == []
