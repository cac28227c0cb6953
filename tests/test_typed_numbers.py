"""Every number that is typed into a page is what code derives.

``TYPED`` has numbers of the papers, ``tests/typed`` all others, in the form that
:mod:`support.typed` reads.
"""

import pandas
import pytest
from support import errata_numbers, typed, typed_values

from biaslib import published, reproduction
from biaslib.datasets.fairface import SPLITS
from companion import published_numbers as evidence
from companion import study2_masked as masked


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


def share(paper, *names):
    return tuple(answers(paper).get(name, 0) for name in names)


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


def moved():
    """Results with both experiments, those that move by more than a half, changes of sign."""
    first, second = both_experiments()
    return len(first), int(((second - first).abs() > 0.5).sum()), int((first * second < 0).sum())


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


def claim_links(page, paper, **words):
    """Counts of claims in the words of links to these claims; "_" stands for a space."""
    addresses = {name: name.replace("_", "-") for name in words}
    counts = {name: answers(paper).get(name.replace("_", " "), 0) for name in words}
    return [
        (f"[{text}]({page}#{paper}-{addresses[name]})", (counts[name],))
        for name, text in words.items()
    ]


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


ALL = ("claims", "follows", "in part", "does not follow", "cannot be said")
CLAIMS = "checked {} claims of the paper [against its own tables](what_holds_up.ipynb): "
CHECKED = CLAIMS + "{} follow, {} follow in part"
HOLDS_UP = "what_holds_up.ipynb"
JUDGED = {
    "claims": "{} claims",
    "follows": "{} follow",
    "in_part": "{} follow in part",
    "does_not_follow": "{} do not",
    "cannot_be_said": "{}",
}
"""What a study says of its claims."""

ENTITIES = ("briefcase", "purse")
HOLDS = "../notebooks/what_holds_up.ipynb"
COUNTED = {
    "ross2021": {
        "claims": "{} claims",
        "follows": "{} follow",
        "in_part": "{} in part",
        "does_not_follow": "{} do not",
    },
    "srinivasan2021": {
        "claims": "{} claims",
        "in_part": "{} follow in part",
        "cannot_be_said": "{}",
    },
    "zhou2022": {"claims": "{} claims", "follows": "{} follow", "in_part": "{} in part"},
}
COUNTED["hamidieh2023"] = COUNTED["ross2021"]
"""What the start page says of the claims."""

FIRST = [
    ("pictures of the people named {} of {} results change sign", (moved()[2], moved()[0])),
    (
        "test {} of {} are significant with any pictures and {} with these",
        (significant(1), significant(1, "total"), significant(2)),
    ),
    (
        "*{}*, {} ({}), *{}*, {}, and *{}*, {} ({})",
        by_race(1) + by_race(2)[:2] + by_race(3),
    ),
]
"""Of the start page and the README."""

TYPED = {
    "book/index.md": [
        *FIRST,
        ("*briefcase* {} where *purse*", (probability("briefcase", 1),)),
        ("gets {}, and", (probability("purse", 1),)),
        ("*purse* {} where", (probability("purse", 2),)),
        ("*briefcase* gets {}. Whom", (probability("briefcase", 2),)),
        ("*{}* stands first, {} standard deviations nearer to faces labelled {}", by_race(0)),
        ("*maid* and *nurse*, {}, lie", (casc(4, "maid", "Female"),)),
        ("*maid* and *nurse*, {}, lie", (casc(4, "nurse", "Female"),)),
        ("CLIP does for {}% of the pictures and", (vlbs("CLIP"),)),
        ("FLAVA for {}%.", (vlbs("FLAVA"),)),
        ("A guess does for {}%.", (vlbs("RAM"),)),
        ("takes no side, does for {}% and {}%.", half_of_vlrs("CLIP", "FLAVA")),
        *(row for paper, words in COUNTED.items() for row in claim_links(HOLDS, paper, **words)),
    ],
    "README.md": [
        *FIRST,
        (
            "*briefcase* gets {} where *purse* gets {}, and *purse* {} where *briefcase* gets {}.",
            (
                *(probability(each, 1) for each in ENTITIES),
                *(probability(each, 2) for each in ENTITIES[::-1]),
            ),
        ),
        (
            "*{}* has the highest score, {} standard deviations nearer to faces labelled {};",
            by_race(0),
        ),
        ("FLAVA does for {}%", (vlbs("FLAVA"),)),
        ("CLIP for {}%", (vlbs("CLIP"),)),
        ("guesses does for {}%", (vlbs("RAM"),)),
        ("takes no side does for {}% and {}%", half_of_vlrs("FLAVA", "CLIP")),
    ],
    "notebooks/study1_grounded.ipynb": [
        ("their test {} of {} are significant. Chance", (significant(1), significant(1, "total"))),
        ("paper's test {} are significant then, though", (significant(2),)),
        ("mean effect is {} against {}.", (mean_effect(2), mean_effect(1))),
        ("own members {2} of {0} results change sign", moved()),
        ("Of {1} tests, {2} in each of three models, {0} are", (*hidden("T"), hidden("T")[1] // 3)),
        ("{} with people hidden,", hidden("I")[:1]),
        ("{} or {} with nothing hidden", nothing_hidden()),
        *claim_links(HOLDS_UP, "ross2021", **JUDGED),
        ("Results move by {} on average;", (mean_move(),)),
        ("which this chapter follows, falls from {} to {}.", falls_far()),
        ("{} effects than on Google's in Experiment 1, and {} ones in", in_domain()),
        ("none of its {} printed", (len(reproduction.printed("ross2021")),)),
        ("tests only, {} and {} images", (images("coco"), images("conceptual_captions"))),
        ("Google Images for {:,} more", (images("google"),)),
        ("way: {} of {} printed effects", towards_the_stereotype()),
        ("effect sizes of {} for ViLBERT and {} for VisualBERT, and that {}% of", first_form()),
    ],
    "notebooks/study2_masked.ipynb": [
        (
            "gives briefcase {} and purse {}.",
            (probability("briefcase", 1), probability("purse", 1)),
        ),
        ("purse gets {} and briefcase {}.", (probability("purse", 2), probability("briefcase", 2))),
        ("five of six things towards men: {};", (masked.stated_entities("S_PT", "men"),)),
        ("pictures of women favour {}, and", (masked.stated_entities("S_V", "women"),)),
        ("pictures of men {}.", (masked.stated_entities("S_V", "men"),)),
        *claim_links(
            "what_holds_up.ipynb",
            "srinivasan2021",
            claims="{} claims",
            in_part="{} follow in part",
            cannot_be_said="{}",
        ),
        ("none of its {} printed", (len(reproduction.printed("srinivasan2021")),)),
    ],
    "book/slides/study2_masked.md": [
        ("five of six things towards men: {}.", (masked.stated_entities("S_PT", "men"),)),
        ("pictures of women favour {}, and", (masked.stated_entities("S_V", "women"),)),
        ("pictures of men {}.", (masked.stated_entities("S_V", "men"),)),
        (
            "We checked {} claims of the paper against its own tables: {} follow in part, "
            "and of {} nothing can be said",
            share("srinivasan2021", "claims", "in part", "cannot be said"),
        ),
    ],
    "notebooks/study3_clip_audit.ipynb": [
        ("Eastern lie {} standard deviations nearer", (casc(18, "terrorist", "Middle Eastern"),)),
        (
            "Indian faces, {}, *oriental* with East Asian ones, {}, and *jewish* with Middle "
            "Eastern ones, {}.",
            (
                casc(13, "hindu", "Indian"),
                casc(16, "oriental", "East Asian"),
                casc(13, "jewish", "Middle Eastern"),
            ),
        ),
        *(("go with women, {}, and", (casc(4, each, "Female"),)) for each in ("maid", "nurse")),
        ("with men, {}.", (casc(4, "miner", "Male"),)),
        ("the training, {}% of those", (one("hamidieh2023", 1, "female", word="nurse"),)),
        ("*Extremist*, {}, goes", (casc(14, "extremist", "Middle Eastern"),)),
        ("labelled Indian get *illiterate*, {},", (casc(17, "illiterate", "Indian"),)),
        ("Hispanic *undocumented*, {}.", (casc(17, "undocumented", "Latino/Hispanic"),)),
        ("only {}% of those with *CEO*", (one("hamidieh2023", 1, "female", word="ceo"),)),
        (
            "for Middle Eastern faces, {}, than for White ones, {}.",
            (casc(18, "hacker", "Middle Eastern"), casc(18, "hacker", "White")),
        ),
        (
            "{} for Black and {} for Latino or Hispanic faces",
            (conduct("Black"), conduct("Latino/Hispanic")),
        ),
        ("For East Asian ones it is {}.", (conduct("East Asian"),)),
        *claim_links(HOLDS_UP, "hamidieh2023", **JUDGED),
        ("none of its {} printed", (len(reproduction.printed("hamidieh2023")),)),
        ("*Rowdy*, {}, is second", (casc(3, "rowdy", "Male"),)),
        ("*nurturing*, {}, is in", (casc(3, "nurturing", "Female"),)),
        ("the printed list has {} entries", (len(published.table("hamidieh2023", 2)),)),
        ("as released has {:,} portraits", (SPLITS["train"],)),
    ],
    "notebooks/published_numbers.ipynb": [
        ("fits all of them: {:,} images in all", (sum(evidence.sizes_of("ViLT").values()),)),
        ("where the others have {:,}.", (sum(published.released_sizes().values()),)),
    ],
    "notebooks/study4_captions.ipynb": [
        (
            "six models {} (ViLT: {}) pictures that contradict",
            (against_a_stereotype(), against_a_stereotype("ViLT")),
        ),
        ("stereotype for {}% of these pictures", (vlbs("CLIP"),)),
        ("and FLAVA for {}%", (vlbs("FLAVA"),)),
        ("guesses picks it for {}%", (vlbs("RAM"),)),
        ("nonsense that is {}%, with FLAVA's {}%.", half_of_vlrs("CLIP", "FLAVA")),
        ("{} lies below its mark", (listed(beside_half("below")),)),
        ("on the {} pictures of vlbs", (against_a_stereotype(),)),
        ("as on the {:,} of vlrs", (sum(published.released_sizes().values()),)),
        ("Half of vlrs is {:g} for the first and {:g} for", (100 / 2, 45 / 2)),
        ("Gender is highest for {} of six, by {} to {} points", (gender_leads(), *gender_ends())),
        ("models, by {} to {} points.", gender_ends()),
        *claim_links(
            "what_holds_up.ipynb",
            "zhou2022",
            claims="{} claims",
            follows="{} follow",
            in_part="{} follow in part",
            cannot_be_said="{}",
        ),
        ("none of its {} printed", (len(reproduction.printed("zhou2022")),)),
        ("intervals {} lie above guessing", (beside_guessing("above"),)),
        ("and {} lies below it", (beside_guessing("below"),)),
        ("For {} the pictures are too few", (beside_guessing("open"),)),
        ("{} of six models have their highest vlbs", (gender_leads(),)),
        ("gender, {} of them by about three points", (gender_leads(3.1),)),
        ("between {} and {}% for CLIP", stereotype_share("CLIP")),
        ("between {} and {}% for FLAVA", stereotype_share("FLAVA")),
        ("shifts on {} pictures for CLIP", (of_gender("CLIP"),)),
        ("and {} for ALBEF", (of_gender("ALBEF"),)),
        (
            "{gender} pictures of gender, {profession} of profession, {race} of race, and "
            "{religion} of religion",
            published.released_sizes(),
        ),
        ("fit {} pictures against", (against_a_stereotype("ViLT"),)),
        ("and not {}. The paper", (against_a_stereotype(),)),
    ],
    "book/slides/study1_grounded.md": [
        ("their test: {} of {} (random", (significant(1), significant(1, "total"))),
        ("single results: {} of {}", (significant(2), significant(2, "total"))),
        ("with words hidden {} of {}", hidden("T")),
        ("with people hidden {},", hidden("I")[:1]),
        (", nothing hidden {} or {}", nothing_hidden()),
        ("of {0} results {2} change sign, and {1} move by more than 0.5.", moved()),
        ("the mean effect is {} and not {}.", (mean_effect(2), mean_effect(1))),
        ("{} tests are significant before, {} after", (significant(1), significant(2))),
        ("our lawyer: from {} to {}.", falls_far()),
        ("Yes; {} of {} effects go", towards_the_stereotype()),
        (
            "Of {} claims that we checked {} follow, {} follow in part, {} do not, "
            "and of {} nothing",
            share("ross2021", *ALL),
        ),
    ],
    "book/slides/study3_clip_audit.md": [
        ("than to all others, {}, and does", (casc(18, "terrorist", "Middle Eastern"),)),
        (
            "“hindu” has {} for faces labelled Indian, “oriental” {} for East Asian and “jewish” "
            "{} for Middle Eastern ones",
            (
                casc(13, "hindu", "Indian"),
                casc(16, "oriental", "East Asian"),
                casc(13, "jewish", "Middle Eastern"),
            ),
        ),
        ("| East Asian | {} |", (conduct("East Asian"),)),
        ("| Black | {} |", (conduct("Black"),)),
        ("| Latino or Hispanic | {} |", (conduct("Latino/Hispanic"),)),
        (
            "{} claims that we checked against the paper’s own tables: {} follow, {} in part, "
            "{} do not, and of {} nothing",
            share("hamidieh2023", *ALL),
        ),
    ],
    "book/slides/study4_captions.md": [
        ("{} pictures that contradict a stereotype. Three", (against_a_stereotype(),)),
        ("stereotype for {} per cent of the pictures", (vlbs("CLIP"),)),
        ("FLAVA for {}, and", (vlbs("FLAVA"),)),
        ("our intervals {} lie above guessing", (beside_guessing("above"),)),
        ("and {} lies below", (beside_guessing("below"),)),
        ("For {} the pictures are too few", (beside_guessing("open"),)),
        ("half of vlrs, which is {} for CLIP", half_of_vlrs("CLIP")),
        ("and {} lies below.\n\nStudents say", (listed(beside_half("below")),)),
        ("between {} and {} per cent for FLAVA", stereotype_share("FLAVA")),
        ("leads run from {} to {} points.", gender_ends()),
        ("had picked the stereotype, about {} for CLIP", (of_gender("CLIP"),)),
        ("and {} for ALBEF", (of_gender("ALBEF"),)),
        (
            "Of {} claims that we checked {} follow, {} in part, and of {} nothing",
            share("zhou2022", "claims", "follows", "in part", "cannot be said"),
        ),
    ],
}
"""Words of a page around a number, and the number that the tables have."""

VALUES = vars(typed_values) | {name: each for name, each in globals().items() if name[0] != "_"}
"""What expressions of rows may name."""


def words_with(words, values):
    return words.format(**values) if isinstance(values, dict) else words.format(*values)


@pytest.mark.parametrize(
    ("page", "words", "values"),
    [(page, words, values) for page, rows in TYPED.items() for words, values in rows],
)
def test_a_typed_number_is_the_printed_one(page, words, values):
    assert words_with(words, values) in typed.source(page)


def test_no_model_lies_above_half_of_its_vlrs_but_one_in_one_category():
    """What the first screen of study 4 says, the start page and the decks."""
    assert beside_half("above") == []
    assert len(beside_half("on both sides")) == 5
    cells = typed_values.intervals.query("category != 'overall'")
    cells = cells.pivot(index=["category", "model"], columns="metric")
    above = cells["low", "vlbs"] > cells["percent", "vlrs"] / 2
    assert (len(cells), cells.index[above].tolist()) == (24, [("gender", "VisualBERT")])


def typed_words(page):
    return [words_with(*row) for row in TYPED.get(page, [])]


def faults(page, text=None):
    return typed.faults(page, text or typed.source(page), VALUES, typed_words(page))


@pytest.mark.parametrize("page", typed.pages())
def test_every_other_number_is_derived(page):
    assert faults(page) == []


def test_a_row_has_a_source():
    """An expression names something; what a row reads is used again."""
    assert {*TYPED, *typed.rows()} - {"*"} <= {*typed.pages()}
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
        ("book/slides/text_encoders.md", "the median is 16%", "the median is 61%"),
        ("book/quizzes/study4_captions.yml", "text: 12 to 54", "text: 12 to 45"),
        ("book/instructor/planted_study3_clip_audit.yml", "by 125", "by 152"),
        ("book/plan_ninety_minutes.md", "at minute 47", "at minute 74"),
        ("book/teaching.md", "encoder of 23 million", "encoder of 32 million"),
        ("README.md", "83 of 156", "83 of 165"),
        ("book/glossary.md", "uses one word", "uses 17 words"),
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
    for ours, name in (("p_value", "items"), ("p_value_words", "words")):
        assert (both[ours] / both[name] - 1).abs().max() < 0.003


@pytest.mark.weekly
def test_of_sixty_numbers_changed_at_random_fifty_nine_are_noticed():
    from tools import typed_numbers

    assert typed_numbers.NUMBER == 60
    assert typed_numbers.main(typed_numbers.NUMBER, typed_numbers.SEED) >= 59
