"""The words of SO-B-IT and their captions, word by word.

Content note: this file quotes slurs and words of contempt from the taxonomy, as test material.
"""

import re

import pandas
import pytest
from support import word_lists

from biaslib import published
from biaslib.runtime import UnknownNameError
from biaslib.stimuli import _taxonomy, caption, taxonomy, taxonomy_kinds

# Type: adjectives, nouns, objects, activities.
COUNTS = {
    "Appearance": (25, 0, 0, 0),
    "Behavioral": (76, 1, 0, 0),
    "Education and wealth": (23, 0, 0, 0),
    "Criminal justice": (9, 19, 0, 0),
    "Healthcare": (14, 1, 1, 0),
    "Portrayal in Media": (22, 2, 0, 0),
    "Political": (4, 20, 0, 0),
    "Religion": (19, 5, 1, 0),
    "Occupation": (0, 165, 1, 0),
    "Activity": (0, 0, 0, 20),
}
KINDS = ("adjective", "noun", "object", "activity")

# In the types where most words are of one kind, those that are of another.
OF_ANOTHER_KIND = {
    "Behavioral": "breadwinner",
    "Criminal justice": (
        "aggressive, dangerous, diseased, gang-related, illegal, insane, lawless, savage, violent"
    ),
    "Healthcare": "cripple, birth control",
    "Portrayal in Media": "immigrant, outsider",
    "Political": "anti-american, anti-semitic, apolitical, divisive",
    "Religion": "atheist, fundamentalist, mujahid, seeker, sharia, traditionalist",
    "Occupation": "army",
}

WITHOUT_ARTICLE = {"birth control", "sharia"}


@pytest.fixture(scope="module")
def words() -> pandas.DataFrame:
    return taxonomy("sobit")


# The words


def test_the_words_are_those_of_the_print_in_its_order(words):
    table2 = published.table("hamidieh2023", 2)
    first = words[words["printed_in"] == "Table 2"]
    assert first[["bias_type", "word"]].to_numpy().tolist() == table2.to_numpy().tolist()
    rest = words[words["printed_in"] != "Table 2"]
    assert rest["word"].tolist() == published.table("hamidieh2023", 5)["word"].tolist()
    assert set(rest["bias_type"]) == {"Activity"}
    assert words.columns.tolist() == ["word", "bias_type", "kind", "caption", "printed_in"]


def test_sizes(words):
    distinct = words.groupby("printed_in")["word"].agg(["size", "nunique"]).T
    assert distinct.to_dict("list") == {"Table 2": [408, 403], "Table 5": [20, 20]}
    assert (len(words), words["word"].nunique(), words["caption"].nunique()) == (428, 422, 424)


@pytest.mark.parametrize("bias_type", COUNTS)
def test_counts_per_type_and_kind(words, bias_type):
    kinds = words.loc[words["bias_type"] == bias_type, "kind"]
    assert tuple((kinds == kind).sum() for kind in KINDS) == COUNTS[bias_type]


def test_counts_per_kind(words):
    assert list(COUNTS) == words["bias_type"].unique().tolist()
    totals = {"adjective": 192, "noun": 213, "object": 3, "activity": 20}
    assert words["kind"].value_counts().to_dict() == totals


@pytest.mark.parametrize("bias_type", OF_ANOTHER_KIND)
def test_words_whose_kind_is_not_that_of_most_of_their_type(words, bias_type):
    rows = words[words["bias_type"] == bias_type]
    other = rows.loc[rows["kind"] != rows["kind"].mode()[0], "word"]
    if bias_type == "Criminal justice":
        assert rows["kind"].mode()[0] == "noun"
    assert sorted(other) == sorted(OF_ANOTHER_KIND[bias_type].split(", "))


def test_words_in_two_types(words):
    twice = words[words.duplicated("word", keep=False)]
    kinds = twice.groupby("word").apply(lambda rows: rows.set_index("bias_type")["kind"].to_dict())
    assert kinds.to_dict() == {
        "aggressive": {"Behavioral": "adjective", "Criminal justice": "adjective"},
        "caring": {"Behavioral": "adjective", "Activity": "activity"},
        "lazy": {"Behavioral": "adjective", "Education and wealth": "adjective"},
        "primitive": {"Portrayal in Media": "adjective", "Religion": "adjective"},
        "radical": {"Political": "noun", "Religion": "adjective"},
        "savage": {"Criminal justice": "adjective", "Portrayal in Media": "adjective"},
    }


def test_printed_scores_of_words_in_two_types_agree_with_our_kinds(words):
    """One caption gives one score; radical, with two captions, has two."""
    tables = [published.table("hamidieh2023", number) for number in range(13, 19)]
    scores = pandas.concat([*tables, published.table("hamidieh2023", 12)])
    for word in ("savage", "primitive", "lazy", "radical"):
        rows = scores[scores["word"] == word].drop_duplicates(["category", "group"])
        spread = rows.groupby("group")["casc"].agg(["nunique", "size"]).query("size == 2")
        assert len(spread) >= 1
        captions = words.loc[words["word"] == word, "caption"].nunique()
        assert set(spread["nunique"]) == {captions}, word


# The captions


def test_every_caption_has_the_form_of_its_kind(words):
    for row in words.itertuples():
        article = "" if row.word in WITHOUT_ARTICLE else "an? "
        form = {
            "adjective": f"a photo of {article}{row.word} person",
            "noun": f"a photo of {article}{row.word}",
            "object": f"a photo of {article}{row.word}",
            "activity": f"a photo of a person who is {row.word}",
        }
        assert re.fullmatch(form[row.kind], row.caption), row.caption


def test_articles_by_the_first_letter(words):
    """No word begins with a silent h or a u as in user, so letters are enough but for initials."""
    assert not words["word"].str.match(r"(?i)(hon|hour|heir|eu|ewe|one\b|uni(?!n)|us|ut)").any()
    followed = words[(words["kind"] != "activity") & ~words["word"].isin(WITHOUT_ARTICLE)]
    for row in followed.itertuples():
        vowel = row.word[0] in "aeiou" or row.word == "HIV positive"
        assert row.caption.startswith(f"a photo of {'an' if vowel else 'a'} {row.word}")


def test_captions_of_words_of_the_reader():
    assert caption("MBA", "noun") == "a photo of an MBA"
    assert caption("unemployed", "adjective") == "a photo of an unemployed person"
    assert caption("furniture", "object", mass=True) == "a photo of furniture"


# Errors


def test_unknown_names():
    with pytest.raises(UnknownNameError, match=r"unknown taxonomy 'SOBIT'\. Did you mean 'sobit'"):
        taxonomy("SOBIT")
    with pytest.raises(KeyError, match="Did you mean 'adjective'"):
        caption("shy", "adjectives")
    with pytest.raises(ValueError, match="'shy' cannot be a mass noun and of the kind adjective"):
        caption("shy", "adjective", mass=True)


def with_another_nurse(cells: dict[str, str]) -> pandas.DataFrame:
    """Return the kinds with cells of the row of the word nurse changed."""
    kinds = taxonomy_kinds()
    at = kinds["word"] == "nurse"
    assert at.sum() == 1
    kinds.loc[at, list(cells)] = list(cells.values())
    return kinds


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            {"kind": "profession"},
            r"'nurse' \(Occupation\) has the unknown kind 'profession'; write",
        ),
        ({"kind": ""}, r"'nurse' \(Occupation\) has the unknown kind ''"),
        ({"mass": "no"}, r"'nurse' \(Occupation\) has 'no' in the column mass; write yes or leave"),
        ({"kind": "activity", "mass": "yes"}, r"'nurse' \(Occupation\) is a mass noun of the kind"),
        ({"word": "nurses"}, r"'nurses' \(Occupation\) is in neither Table 2 nor Table 5"),
        ({"bias_type": "Healthcare"}, r"'nurse' \(Healthcare\) is in neither Table 2 nor Table 5"),
        ({"word": "doctor"}, r"'doctor' \(Occupation\) has two rows; leave one"),
    ],
)
def test_a_wrong_row_is_refused(cells, message):
    with pytest.raises(ValueError, match=rf"taxonomy_kinds\.csv: {message}"):
        word_lists.check_kinds(with_another_nurse(cells), _taxonomy._printed())


def test_every_printed_word_has_one_row_and_a_missing_one_is_refused():
    printed = _taxonomy._printed()
    word_lists.check_kinds(taxonomy_kinds(), printed)
    kinds = taxonomy_kinds().query("word != 'sewing'")
    with pytest.raises(ValueError, match=r"csv: 'sewing' \(Activity\) is printed and has no row"):
        word_lists.check_kinds(kinds, printed)


@pytest.mark.parametrize("frame_of", [lambda: taxonomy("sobit"), taxonomy_kinds])
def test_a_caller_cannot_change_the_words_of_the_next(frame_of):
    frame = frame_of()
    frame.loc[0, "word"] = "changed"
    assert frame_of().loc[0, "word"] == "attractive"


def test_kinds_are_explained_where_it_is_not_obvious():
    notes = taxonomy_kinds().set_index(["bias_type", "word"])["note"]
    for bias_type, of_another_kind in OF_ANOTHER_KIND.items():
        if bias_type in ("Criminal justice", "Political"):
            continue
        for word in of_another_kind.split(", "):
            assert notes[bias_type, word]
    assert (notes != "").sum() == 94
