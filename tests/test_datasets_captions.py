"""Captions of a corpus: counts against a plain loop, and what is refused."""

import re
import shutil
import unicodedata

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from scipy import stats

from biaslib import stimuli
from biaslib.datasets import DataError, captions

WORDS = ["nurse", "CEO", "police officer", "low-income", "caring", "comic book writer", "naïve"]
TEXTS = [
    "The nurse and HER bag",
    "A nurse. His nurse; their nurse",
    "his nurse told her",
    "nurses of her ward, a wetnurse",
    "Nurse's day: she",
    "nurse-led (he)",
    "the police officer waves to him",
    "a police-officer herself",
    "police, officer! he",
    "officer police she",
    "LOW INCOME families and his",
    "a comic book writer, hers",
    "comic book and her writer",
    "na\u00efve NA\u00cfVE he",
    "the CEO\u2019s office, she\u2019ll be there",
    "ceo_he",
    "",
    "theirs, there, ushers, themes",
]


def write(path, texts, column="TEXT", **columns):
    pyarrow.parquet.write_table(pyarrow.table({column: texts, **columns}), path)
    return path


def plain(texts, words, groups=captions.PRONOUNS):
    """The same counts by a loop over captions, with other means."""
    a, b = groups
    table = pandas.DataFrame(0, index=words, columns=["captions", a, b, "both"])
    for text in filter(None, texts):
        tokens = re.findall(r"[^\W_]+", text.lower())
        line = " " + " ".join(tokens) + " "
        in_a, in_b = (bool(set(groups[name]) & set(tokens)) for name in (a, b))
        for word in words:
            entry = " ".join(re.findall(r"[^\W_]+", word.lower()))
            if f" {entry} " in line:
                table.loc[word, "captions"] += 1
                if in_a or in_b:
                    table.loc[word, "both" if in_a and in_b else a if in_a else b] += 1
    return table


def drawn(n, seed):
    """Captions of words from the whole taxonomy, pronouns and others."""
    rng = np.random.default_rng(seed)
    listed = stimuli.taxonomy("sobit")["word"].unique()
    common = ["she", "Her", "HE", "his", "the", "of", "police", "officer", "book", "herself's"]
    words = rng.choice([*listed, *common * 30], (n, 9))
    marks = rng.choice([" ", ", ", "-", "_", " \u2014 ", "/"], (n, 9))
    joined = np.char.add(words.astype(str), marks.astype(str))
    return ["".join(row) for row in joined]


def test_words_are_held_as_documented(tmp_path):
    counts = captions.group_counts(write(tmp_path / "a.parquet", TEXTS), WORDS).set_index("word")
    assert counts.loc["nurse"].tolist() == [5, 2, 2, 1]
    assert counts.loc["police officer"].tolist() == [3, 1, 2, 0]
    assert counts.loc["CEO"].tolist() == [2, 1, 1, 0]
    assert counts.loc["low-income"].tolist() == [1, 0, 1, 0]
    assert counts.loc["comic book writer"].tolist() == [1, 1, 0, 0]
    assert counts.loc["naïve"].tolist() == [1, 0, 1, 0]
    assert counts.loc["caring"].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("groups", [captions.PRONOUNS, captions.GENDER_WORDS])
def test_the_whole_taxonomy_is_counted_as_a_loop_counts_it(tmp_path, groups):
    texts, words = drawn(600, 0), stimuli.taxonomy("sobit")["word"].unique().tolist()
    for part in range(3):
        write(tmp_path / f"part-{part}.parquet", texts[part::3], "caption")
    counts = captions.group_counts(tmp_path, words, groups, threads=1)
    assert counts["word"].tolist() == words
    assert counts["captions"].sum() > 2_000
    expected = plain(texts, words, groups)
    pandas.testing.assert_frame_equal(counts.set_index("word"), expected, check_names=False)
    assert counts.attrs == {"rows": 600, "nulls": 0}


def test_shares_are_those_of_table_1_in_both_readings():
    counts = pandas.DataFrame({"word": ["nurse"], "captions": [99], "female": [60], "male": [20]})
    found = captions.proportions(counts.assign(both=20))
    assert found[["share", "n"]].values.tolist() == [[0.75, 80]]
    bounds = [stats.beta.ppf(0.025, 60, 21), stats.beta.ppf(0.975, 61, 20)]
    assert found[["low", "high"]].values.ravel().tolist() == pytest.approx(bounds)
    twice = captions.proportions(counts.assign(both=20), both="counted twice")
    assert twice[["share", "n"]].values.tolist() == [[80 / 120, 120]]
    none = captions.proportions(counts.assign(both=0, female=0, male=0))
    assert none["n"].tolist() == [0]
    assert none["share"].isna().all()


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.binary()])
def test_nulls_are_counted_and_bytes_that_are_no_text_refused(tmp_path, kind):
    write(tmp_path / "a.parquet", ["her nurse", None, None, "his nurse"])
    assert captions.group_counts(tmp_path, ["nurse"]).attrs == {"rows": 4, "nulls": 2}
    values = pyarrow.array([b"her nurse", b"his nurse \xff", None, b"\xc3("])
    broken = pyarrow.Array.from_buffers(kind, 4, values.buffers())
    bad = write(tmp_path / "b.parquet", broken)
    with pytest.raises(DataError) as caught:
        captions.group_counts(bad, ["nurse"])
    assert caught.value.path == bad


@pytest.mark.parametrize(
    "name", ["a*.parquet", "[ab].parquet", "{a,b}.parquet", "'a.parquet", "TEXT=x/a.parquet"]
)
def test_the_name_of_a_file_is_no_pattern_and_that_of_a_folder_no_column(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    write(tmp_path / name, ["her nurse"] * 3)
    for other in ("a.parquet", "ab.parquet", "b.parquet"):
        write(tmp_path / other, [f"his nurse {other}"] * 5)
    found = captions.group_counts(tmp_path / name, ["nurse"])
    assert found.attrs["rows"] == found["captions"].item() == found["female"].item() == 3
    whole = captions.group_counts(tmp_path, ["nurse"])
    assert whole.attrs["rows"] == whole["captions"].item() == 18


# Corpora as they lie about


@pytest.mark.parametrize(
    ("word", "held", "not_held"),
    [
        ("\u00e9l\u00e8ve", ["une e\u0301le\u0300ve", "Une \u00c9L\u00c8VE"], ["une eleve"]),
        ("e\u0301le\u0300ve", ["une \u00e9l\u00e8ve"], []),
        ("nurse", ["a nur\u00adse", "\u00adnurse", "nurse\u00ad."], ["wet\u00adnurse"]),
        (
            "\u03b3\u03b9\u03b1\u03c4\u03c1\u03cc\u03c2",
            [
                "\u0393\u0399\u0391\u03a4\u03a1\u038c\u03a3",
                "\u03b3\u03b9\u03b1\u03c4\u03c1\u03cc\u03c2!",
            ],
            [],
        ),
        (
            "nurse",
            ["\u200bnurse", "nur\u200bse", "n\u200bu\u200br\u200bs\u200be\u200b", "nurse\ufeff"],
            [],
        ),
        (
            "nurse",
            ["\uff4e\uff55\uff52\uff53\uff45", "\uff2e\uff35\uff32\uff33\uff25\u3000x"],
            ["\U0001d527nurse"],
        ),
        ("4", ["\uff14 nurses"], []),
        ("nurse", ["\u2764\ufe0fnurse", "\U0001f469\u200d\u2695\ufe0fnurse"], []),
        ("nurse", ["\u200enurse\u200f", "a\u00a0nurse\u2009", "nurse\u2028x"], ["nurse\u0301"]),
        (
            "\u0e2b\u0e21\u0e2d",
            ["\u0e04\u0e38\u0e13\u200b\u0e2b\u0e21\u0e2d\u200b\u0e21\u0e32"],
            [],
        ),
        (
            "officer",
            ["o\ufb03cer", "\U0001d428\ufb03\u24d2\u1d49\u02b3", "officer\u02bcs", "Officer\u2122"],
            ["officer\u02b0"],
        ),
        ("\u0130stanbul", ["\u0130STANBUL", "I\u0307stanbul"], []),
        ("police officer", ["police\u00a0of\u00adfi\u200bcer", "\uff50olice officer"], []),
    ],
)
def test_a_word_is_held_in_every_spelling_of_unicode(tmp_path, word, held, not_held):
    path = write(tmp_path / "a.parquet", [*held, *not_held, "nothing"])
    assert captions.group_counts(path, [word])["captions"].item() == len(held)
    if " " not in word:
        found = captions.group_counts(path, [word], {"one": (word,), "two": ("nothing",)})
        assert found["one"].item() == len(held)
    for text in held:
        assert f" {captions.normalised(word)} " in f" {captions.normalised(text)} "
    for text in not_held:
        assert f" {captions.normalised(word)} " not in f" {captions.normalised(text)} "


def test_duckdb_and_python_read_every_letter_alike(tmp_path):
    """Each letter of the basic plane in a caption of its own, looked for as a word."""
    letters = [chr(code) for code in range(0x530) if unicodedata.category(chr(code))[0] in "LN"]
    path = write(tmp_path / "a.parquet", [f"x{letter}y her" for letter in letters])
    found = captions.group_counts(path, [f"x{letter}y" for letter in letters])
    alike = pandas.Series([captions.normalised(f"x{each}y") for each in letters])
    assert found["captions"].tolist() == alike.map(alike.value_counts()).tolist()


def test_a_letter_and_its_other_forms_are_one(tmp_path):
    """NFKC is Python's; U+02BC and its like are apostrophes, and part words."""
    codes = (chr(code) for code in range(0x20000) if not 0x2B0 <= code < 0x300)
    forms = {c: unicodedata.normalize("NFKC", c) for c in codes}
    forms = {c: f for c, f in forms.items() if unicodedata.category(c)[0] == "L" and c != f}
    forms = {c: f for c, f in forms.items() if f.isalpha()}
    path = write(tmp_path / "a.parquet", [f"x{form}y sheʼs" for form in forms.values()])
    write(tmp_path / "b.parquet", [f"x{letter}y \U0001d421\U0001d41e" for letter in forms])
    found = captions.group_counts(tmp_path, [f"x{form}y" for form in forms.values()])
    assert len(found) > 1000
    assert (found["female"] >= 1).all()
    assert found["female"].tolist() == found["male"].tolist()
    assert captions.group_counts(path, ["s"])["captions"].item() == len(forms)


def copied(folder, below):
    (folder / below).parent.mkdir(parents=True)
    shutil.copy(folder / "part-00000.parquet", folder / below)


def cached(folder):
    """Move the corpus into a cache of the hub, with two commits that hold the same."""
    (folder / "blobs").mkdir()
    shutil.move(folder / "part-00000.parquet", folder / "blobs" / "one")
    for commit in ("abc", "def"):
        (folder / "snapshots" / commit).mkdir(parents=True)
        (folder / "snapshots" / commit / "a.parquet").symlink_to(folder / "blobs" / "one")


def linked(folder):
    """Move the corpus to another disk, to which a folder is linked, and give it a loop."""
    disk = folder.parent / f"{folder.name}-disk"
    disk.mkdir()
    shutil.move(folder / "part-00000.parquet", disk / "0.PARQUET")
    (folder / "b").symlink_to(disk)
    (disk / "c").symlink_to(folder)


@pytest.mark.parametrize(
    "spread",
    [
        lambda folder: copied(folder, "_temporary/0/part-00000.parquet"),
        lambda folder: copied(folder, ".ipynb_checkpoints/part-00000-checkpoint.parquet"),
        lambda folder: (folder / "._part-00000.parquet").write_bytes(b"\0\5\x16\7 of a Mac"),
        lambda folder: (folder / "again.parquet").symlink_to(folder / "part-00000.parquet"),
        cached,
        linked,
    ],
)
def test_a_corpus_is_counted_once_whatever_lies_beside_it(tmp_path, spread):
    write(tmp_path / "part-00000.parquet", ["The nurse and her bag", "A nurse", "nurse"])
    spread(tmp_path)
    found = captions.group_counts(tmp_path, ["nurse"])
    assert (found["captions"].item(), found.attrs["rows"]) == (3, 3)


THREE = ["The nurse and her \u00e9l\u00e8ve", "A nurse with his cart", None, "nurse"]
BYTES = [text if text is None else text.encode() for text in THREE]


@pytest.mark.parametrize(
    "texts",
    [
        pyarrow.array(THREE).dictionary_encode(),
        pyarrow.array(BYTES, pyarrow.binary()),
        pyarrow.array(BYTES, pyarrow.large_binary()),
        pyarrow.array(BYTES, pyarrow.binary()).dictionary_encode(),
        pyarrow.array(THREE, pyarrow.large_string()),
    ],
)
def test_text_under_another_type_is_read(tmp_path, texts):
    write(tmp_path / "a.parquet", texts)
    write(tmp_path / "b.parquet", ["his nurse"])
    found = captions.group_counts(tmp_path, ["nurse", "\u00e9l\u00e8ve"])
    assert found["captions"].tolist() == [4, 1]
    assert found.attrs["nulls"] == 1
