"""The words of SO-B-IT and their captions, word by word.

Content note: this file quotes slurs and words of contempt from the taxonomy, as test material.
"""

import re

import pandas
import pytest

from biaslib import published
from biaslib.stimuli import _taxonomy, taxonomy, taxonomy_kinds

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


@pytest.mark.parametrize("bias_type", OF_ANOTHER_KIND)
def test_words_whose_kind_is_not_that_of_most_of_their_type(words, bias_type):
    rows = words[words["bias_type"] == bias_type]
    other = rows.loc[rows["kind"] != rows["kind"].mode()[0], "word"]
    if bias_type == "Criminal justice":
        assert rows["kind"].mode()[0] == "noun"
    assert sorted(other) == sorted(OF_ANOTHER_KIND[bias_type].split(", "))


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


def test_every_printed_word_has_one_proper_row():
    kinds, printed, key = taxonomy_kinds(), _taxonomy._printed(), ["word", "bias_type"]
    assert not kinds.duplicated(key).any()
    assert set(kinds[key].itertuples(index=False)) == set(printed[key].itertuples(index=False))
    assert set(kinds["kind"]) == set(KINDS)
    assert set(kinds["mass"]) == {"", "yes"}
    assert set(kinds.loc[kinds["mass"] == "yes", "kind"]) <= {"noun", "object"}
