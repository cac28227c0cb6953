"""Word lists, sentences and association tests."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from biaslib import stimuli
from biaslib.stimuli import (
    _data,
    association_test,
    association_tests,
    seat_test,
    sentences,
)
from biaslib.stimuli._sentences import indefinite_article

SHARED = Path(__file__).parents[2] / "shared"
RELEASED = SHARED / "data" / "ross2021" / "tests" / "grounded-tests"
needs_released = pytest.mark.skipif(
    not RELEASED.exists(), reason="the test files of Ross et al. (2021) are not in ../shared"
)
NAMES = association_tests()["name"].tolist()
STUDY1 = (
    "C3 C6 C8 C11 C12 C13 DB-competent-gender DB-likeable-gender occupation-gender "
    "DB-competent-race DB-likeable-race occupation-race ABW"
)

# SHA-256, first 12 digits, of X;Y;A;B with commas: compared once by hand with the supplement of
# Caliskan et al. (2017), the files of W4ngatang/sent-bias and those of Ross et al. (2021).
HASHES = {
    "C1": "8678460407b4",
    "C2": "6669b3e8fa22",
    "C3": "fd691f3f5855",
    "C4": "24b444903724",
    "C5": "54bc38314199",
    "C6": "a833d40100eb",
    "C7": "c5f877d64316",
    "C8": "b82c01a151c3",
    "C9": "8e7ac644aa30",
    "C10": "99c70f181648",
    "C11": "00787719e374",
    "C12": "a3e45ac14406",
    "C13": "02eb979cc8a4",
    "DB-competent-gender": "a42891b31ef5",
    "DB-likeable-gender": "c6cc44e08c92",
    "occupation-gender": "150d85acc633",
    "DB-competent-race": "a43a49c399b6",
    "DB-likeable-race": "548a2d445b98",
    "occupation-race": "e99796f72bfe",
    "ABW": "07edf5117c3a",
}


def of(test: stimuli.AssociationTest, role: str) -> tuple[str, ...]:
    return getattr(test, role)


def digest(test: stimuli.AssociationTest) -> str:
    text = ";".join(",".join(of(test, role)) for role in "XYAB")
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# Lists


def test_every_required_test_is_there():
    assert list(HASHES) == NAMES
    assert " ".join(association_tests(study1=True)["name"]) == STUDY1
    assert len(association_tests(study1=False)) == 7


@pytest.mark.parametrize("name", NAMES)
def test_lists_have_not_changed(name):
    assert digest(association_test(name)) == HASHES[name]


def test_direction_reads_the_sign():
    expected = {
        "C6": "names of men with career words, names of women with family words",
        "C8": "science words with words for men, arts words with words for women",
        "ABW": (
            "names of White women with near-antonyms of the stereotype, "
            "names of Black women with words of the 'angry Black woman' stereotype"
        ),
    }
    assert {name: association_test(name).direction for name in expected} == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_test_compares_proper_sets(name):
    test = association_test(name)
    for role in "XYAB":
        assert of(test, role)
        assert len(set(of(test, role))) == len(of(test, role))
    assert len(test.X) == len(test.Y)
    assert not set(test.X) & set(test.Y)
    assert not set(test.A) & set(test.B)


def test_a_word_has_one_kind():
    assert (_data.word_frame().groupby("word")["kind"].nunique() == 1).all()


def test_every_set_is_used_and_described():
    used = {row[role] for row in _data.catalogue().values() for role in "XYAB"}
    assert used == set(_data.set_frame().index) == set(_data.word_frame()["set"])


# Sentences


@pytest.mark.parametrize("name", NAMES)
def test_each_sentence_carries_its_word_once_as_a_whole_word(name):
    test = association_test(name, level="sentence")
    for role in "XYAB":
        assert len(of(test, role)) == len(test.words[role])
        for sentence, word in zip(of(test, role), test.words[role], strict=True):
            assert len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", sentence)) == 1
            assert sentence[0].isupper()
            assert sentence.endswith(".")
            assert "{" not in sentence


@pytest.mark.parametrize(
    ("word", "kind", "sentence"),
    [
        ("John", "name", "Someone mentioned John."),
        ("NASA", "proper noun", "Someone mentioned NASA."),
        ("uncle", "count noun", "Someone mentioned an uncle."),
        ("construction worker", "count noun", "Someone mentioned a construction worker."),
        ("CEO", "count noun", "Someone mentioned a CEO."),
        ("relatives", "plural noun", "Someone mentioned relatives."),
        ("physics", "mass noun", "Someone mentioned physics."),
        ("short-term", "adjective", "Someone mentioned being short-term."),
        ("pollute", "verb", "Someone mentioned things that pollute."),
        ("forever", "adverb", "Someone mentioned how it was forever there."),
        ("he", "subject pronoun", "Someone mentioned where he was."),
        ("her", "object pronoun", "Someone mentioned her."),
        ("hers", "possessive pronoun", "Someone mentioned hers."),
    ],
)
def test_first_sentence_of_each_kind(word, kind, sentence):
    assert sentences(word, kind)[0] == sentence


def test_article_of_every_count_noun():
    frame = _data.word_frame()
    nouns = frame.loc[frame["kind"] == "count noun", "word"].unique()
    with_an = sorted(word for word in nouns if indefinite_article(word) == "an")
    assert " ".join(with_an) == (
        "accident accountant analyst ant arrow assault assistant aster attendant auditor aunt axe "
        "azalea editor executive experiment illness iris oboe office orchid uncle"
    )


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("hour", "an"),
        ("honest man", "an"),
        ("heir", "an"),
        ("uninvited guest", "an"),
        ("house", "a"),
        ("university", "a"),
        ("European", "a"),
        ("one-off", "a"),
        ("onerous task", "an"),
        ("user", "a"),
        ("MP", "an"),
        ("MBA", "an"),
        ("X-ray", "an"),
        ("LGBT group", "an"),
        ("EU citizen", "an"),
        ("US citizen", "a"),
        ("UK resident", "a"),
        ("NASA engineer", "a"),
        ("Icelander", "an"),
        ("Maltese", "a"),
    ],
)
def test_article_of_words_of_the_reader(word, article):
    assert indefinite_article(word) == article


@needs_released
def test_sentences_are_not_those_of_seat():
    theirs = {
        caption
        for path in RELEASED.glob("*/sent-*.jsonl")
        for role in ("targ1", "targ2", "attr1", "attr2")
        for caption in json.loads(path.read_text())[role]["captions"].values()
    }
    tests = [association_test(name, level="sentence") for name in NAMES]
    ours = {sentence for test in tests for role in "XYAB" for sentence in of(test, role)}
    assert len(theirs) > 1000
    assert not ours & theirs


# The released files of study 1


@needs_released
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("C3", "google/weat3"),
        ("C6", "google/weat6"),
        ("C6", "coco/weat6"),
        ("C8", "concap/weat8"),
        ("DB-competent-gender", "google/heilman_gender_double_bind_competent_one_word"),
        ("occupation-gender", "google/occ_gender"),
        ("ABW", "google/angry_black_woman_stereotype"),
    ],
)
def test_lists_are_those_of_the_released_files(name, file):
    path = RELEASED / f"{file}.jsonl"
    if not path.exists():
        pytest.skip(f"{file}.jsonl is not in ../shared")
    released, test = json.loads(path.read_text()), association_test(name)
    for role, key in zip("XYAB", ("targ1", "targ2", "attr1", "attr2"), strict=True):
        captions = released[key]["captions"]
        assert of(test, role) == tuple(captions[number] for number in sorted(captions, key=int))


SEAT_RELEASED = {
    "C3": ["ebc7406b007323cb", "91457b21a62e58aa", "427d26bb5031720f", "850e0bd3fd8e7e73"],
    "C6": ["311dcaa77a9a3a70", "ab958554bdde130a", "3ba63aabced1a02b", "0d9f4662a0ed04ae"],
}
"""Beginnings of SHA-256 sums of the sorted sentences, one a line, of X, Y, A and B in the files
sent-weat3.jsonl and sent-weat6.jsonl of github.com/W4ngatang/sent-bias at e3559fb."""


@pytest.mark.parametrize(("name", "released"), SEAT_RELEASED.items())
def test_seat_sentences_are_those_of_the_released_files(name, released):
    test = seat_test(name)
    for role, expected in zip("XYAB", released, strict=True):
        lines = "\n".join(sorted(getattr(test, role))).encode()
        assert hashlib.sha256(lines).hexdigest()[:16] == expected
        assert dict.fromkeys(test.words[role]) == dict.fromkeys(
            getattr(association_test(name), role)
        )
