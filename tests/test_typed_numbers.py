"""Every number that is typed into a page is what code derives.

``tests/typed`` has the words around them, in the form that :mod:`support.typed` reads, and below is
what these compute of the papers.
"""

import pandas
import pytest
from support import errata_numbers, typed, typed_values

from biaslib import published, reproduction
from companion import published_numbers as evidence


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


def vlrs(model):
    return one("zhou2022", 3, "value", metric="vlrs", category="overall", model=model)


def half_of_vlrs(*models):
    return tuple(f"{vlrs(model) / 2:.2f}" for model in models)


def mean_effect(experiment, test=None):
    rows = published.table("ross2021", {1: 3, 2: 4}[experiment])
    return f"{rows[rows['test'] == (test or rows['test'])]['effect_size'].mean():.2f}"


def both_experiments():
    """Effects of Experiments 1 and 2, but for C8, which both tables print alike."""
    first, second = (
        published.table("ross2021", number)
        .query("test != 'C8'")
        .set_index(["test", "level", "model"])["effect_size"]
        for number in (3, 4)
    )
    assert first.notna().all()
    return first, second.loc[first.index]


FAR = 0.5


def moved():
    """Results with both experiments, those that move by more than a half, changes of sign."""
    first, second = both_experiments()
    return len(first), int(((second - first).abs() > FAR).sum()), int((first * second < 0).sum())


def mean_move():
    first, second = both_experiments()
    return f"{(second - first).abs().mean():.2f}"


def falls_far():
    """The means of the one test that falls by more than two tenths."""
    first, second = (each.groupby("test").mean() for each in both_experiments())
    (test,) = first.index[second - first < -0.2]
    assert test == "occupation-gender"
    return mean_effect(1, test), mean_effect(2, test)


def in_domain():
    """How large effects of two tests are in domain, in Experiments 1 and 2, beside Google's."""
    found = []
    for experiment, number in ((1, 3), (2, 4)):
        there = published.table("ross2021", 6)
        there = there[there["experiment"] == experiment]
        google = published.table("ross2021", number)
        google = google[google["test"].isin(there["test"])]
        sizes = [each["effect_size"].abs().mean() for each in (there, google)]
        found.append("smaller" if sizes[0] < sizes[1] else "larger")
    return tuple(found)


def images(source):
    return int(cells("ross2021", 1, "images", source=source).sum())


def towards_the_stereotype():
    sizes = cells("ross2021", 3, "effect_size", source="google").dropna()
    return int((sizes > 0).sum()), len(sizes)


def first_form():
    """What section 5 states of Experiment 3, without a table."""
    said = published.errata("ross2021").set_index("id").at["A9", "printed"]
    return said["s, ViLBERT"], said["s, VisualBERT"], said["percent significant"]


def hidden(level):
    rows = published.table("ross2021", 7).query("experiment == 3 and level == @level")
    rows = rows[rows["model_inferred"] != "VisualBERT"]  # It is not asked with hidden inputs.
    return int(rows["significant"].sum()), int(rows["total"].sum())


def nothing_hidden():
    """Tests of the same three models, significant in Experiment 1 or 2, by word or sentence."""
    rows = published.table("ross2021", 7).query("experiment < 3 and level != 'C'")
    rows = rows[rows["model_inferred"] != "VisualBERT"]
    return tuple(sorted(set(rows.groupby(["experiment", "level"])["significant"].sum())))


def probability(entity, image):
    return f"{one('srinivasan2021', 3, 'probability', entity=entity, image=image):g}"


def listed(names):
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def beside_guessing(side):
    """Models whose printed vlbs has its interval above guessing, below it, or on both sides."""
    return listed(models_beside(side, lambda model: vlbs("RAM")))


def models_beside(side, mark):
    """Models whose interval of vlbs lies above a mark of the model, below it, or on both sides."""
    rows = typed_values.own_vlbs
    marks = rows["model"].map(mark).astype(float)
    above, below = rows["low"] > marks, rows["high"] < marks
    return rows.loc[{"above": above, "below": below}.get(side, ~(above | below)), "model"].tolist()


def beside_half(side):
    return models_beside(side, lambda model: vlrs(model) / 2)


def gender_leads(most=None):
    """For how many models vlbs is highest in gender, by at most so many points, in words."""
    rows = errata_numbers.category_order().query("highest == 'gender'")
    n = len(rows) if most is None else int((rows["gender_lead"] <= most).sum())
    return ["none", "one", "two", "three", "four", "five", "six"][n]


def gender_ends():
    """The least and the largest lead of gender, where vlbs is highest there."""
    leads = errata_numbers.category_order().query("highest == 'gender'")["gender_lead"]
    return f"{leads.min():.1f}", f"{leads.max():.1f}"


def stereotype_share(model):
    """Least and largest share of stereotypes among meaningful picks, as the tables allow."""
    row = evidence.stereotype_share().set_index("model").loc[model]
    return f"{row['low']:.0f}", f"{row['high']:.0f}"


def of_gender(model):
    rows = evidence.reconstructed_counts().query("category == 'gender' and metric == 'vlbs'")
    return int(rows.set_index("model").loc[model, "count"])


def against_a_stereotype(model=None):
    sizes = published.released_sizes() if model is None else evidence.sizes_of(model)
    return evidence.denominator("vlbs", sum(sizes.values()))


def casc(table, word, group):
    return f"{one('hamidieh2023', table, 'casc', word=word, group=group):.2f}"


def by_race(place):
    """The word at a place among those printed by race, highest C-ASC first, and its group."""
    rows = pandas.concat(published.table("hamidieh2023", number) for number in range(7, 19))
    assert (rows["facet"] == "race").all()
    rows = rows.sort_values("casc", ascending=False).drop_duplicates("word")
    row = rows.iloc[place]
    return row["word"], f"{row['casc']:.2f}", row["group"]


def conduct(group):
    return f"{cells('hamidieh2023', 12, 'casc', group=group).mean():.3f}"


VALUES = vars(typed_values) | {name: each for name, each in globals().items() if name[0] != "_"}
"""What expressions of rows may name."""


def test_no_model_lies_above_half_of_its_vlrs_but_one_in_one_category():
    """What the first screen of study 4 says, the start page and the decks."""
    assert beside_half("above") == []
    assert len(beside_half("on both sides")) == 5
    cells = typed_values.intervals.query("category != 'overall'")
    cells = cells.pivot(index=["category", "model"], columns="metric")
    above = cells["low", "vlbs"] > cells["percent", "vlrs"] / 2
    assert (len(cells), cells.index[above].tolist()) == (24, [("gender", "VisualBERT")])


def faults(page, text=None):
    return typed.faults(page, text or typed.source(page), VALUES)


@pytest.mark.parametrize("page", typed.pages())
def test_every_number_is_derived(page):
    assert faults(page) == []


def test_a_row_has_a_source():
    """An expression names something; what a row reads is used again."""
    assert {*typed.rows()} - {"*", "words"} <= {*typed.pages()}
    bare = {page: typed.without_a_source(page_rows) for page, page_rows in typed.rows().items()}
    assert {page: found for page, found in bare.items() if found} == {}


@pytest.mark.parametrize(
    ("page", "right", "wrong"),
    [
        ("notebooks/study2_masked.ipynb", "are 924 ways", "are 942 ways"),
        ("notebooks/study2_masked.ipynb", "about −0.94,", "about −0.49,"),
        ("notebooks/study2_masked.ipynb", "purse 0.0018", "purse 0.0081"),
        ("notebooks/study2_masked.ipynb", "at least 27 would", "at least 28 would"),
        ("notebooks/planted_world.ipynb", "Of 158 claims", "Of 185 claims"),
        ("notebooks/text_encoders.ipynb", "All 39 rows", "All 36 rows"),  # a caption
        ("book/slides/text_encoders.md", "the median is 18%", "the median is 81%"),
        ("book/quizzes/study4_captions.yml", "text: 12 to 54", "text: 12 to 45"),
        ("book/instructor/planted_study3_clip_audit.yml", "by 125", "by 152"),
        ("book/plan_ninety_minutes.md", "at minute 44", "at minute 47"),
        ("book/teaching.md", "encoder of 23 million", "encoder of 32 million"),
        ("README.md", "83 of 156", "83 of 165"),
        ("book/glossary.md", "uses one word", "uses 17 words"),
        ("notebooks/planted_study2_masked.ipynb", "over six entities", "over sixteen entities"),
        ("notebooks/planted_study2_masked.ipynb", "doses 0, 1 and 3", "doses 0, 2 and 3"),
        ("notebooks/planted_study2_masked.ipynb", "\\sqrt{3}/2", "\\sqrt{2}/3"),
        ("book/instructor/planted_study2_masked.yml", "thirty times", "thirteen times"),
    ],
)
def test_another_number_is_noticed(page, right, wrong):
    text = typed.source(page)
    assert right in text
    assert faults(page, text.replace(right, wrong))


def test_stored_results_of_the_text_encoder_are_those_found_in_other_ways():
    other = typed_values.csv("tests/golden/encoder_p_values.csv")
    other = other.pivot(index=["test", "level"], columns="units", values="p_value")
    both = typed_values.RESULTS.join(other, how="inner")
    assert len(both) == 26
    for ours, name in (("p_value_paper", "items"), ("p_value", "words")):
        assert (both[ours] / both[name] - 1).abs().max() < 0.003


@pytest.mark.weekly
def test_of_sixty_numbers_changed_at_random_fifty_nine_are_noticed():
    from tools import typed_numbers

    assert typed_numbers.NUMBER == 60
    assert typed_numbers.main(typed_numbers.NUMBER, typed_numbers.SEED) >= 59
