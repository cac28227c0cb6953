"""VLStereoSet's table in the released format: what is read, refused, counted, drawn, made neutral.

The rows here are our own. The authors' file, where it lies beside the repository, is compared with
what the paper's tables imply.
"""

import csv
import os
import re
from pathlib import Path

import pandas
import pytest

from biaslib.datasets import vlstereoset
from biaslib.published import released_counts, released_sizes

HEADER = [
    "bias_type", "target", "context", "stereotype", "anti-stereotype", "unrelated", "label",
    "Imaeg URL", "",
]  # fmt: skip

SAMPLES = os.environ.get("BIASLIB_SAMPLES") or Path(__file__).parents[2] / "shared" / "data"
SAMPLE = Path(SAMPLES) / "vlstereoset" / vlstereoset.FILE
released = pytest.mark.skipif(
    not SAMPLE.is_file(), reason="the authors' table is not redistributed, and is not here"
)


def row(target="sister", label="1", url="https://example.org/1.jpg", category="gender", **changes):
    found = {
        "bias_type": category,
        "target": target,
        "context": f"My {target} is  today.",
        "stereotype": f"My {target} is tall today.",
        "anti-stereotype": f"My {target} is small today.",
        "unrelated": f"My {target} is soup today.",
        "label": label,
        "Imaeg URL": url,
        "": "",
    }
    return found | changes


def pair(target="sister", category="gender", n=1):
    return [
        row(target, label, f"https://example.org/{target}{label}{i}.jpg", category)
        for i in range(n)
        for label in "01"
    ]


@pytest.fixture
def write(tmp_path):
    def written(rows, header=HEADER):
        path = tmp_path / vlstereoset.FILE
        with open(path, "w", encoding="utf-8-sig", newline="") as stream:
            writer = csv.DictWriter(stream, header, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        return path

    return written


# Reading


def test_the_header_with_its_mark_misspelling_and_nameless_column_is_read(write):
    read = vlstereoset.read(write(pair()))
    assert read.table["category"].tolist() == ["gender"] * 2
    assert read.table["label"].tolist() == ["stereotype", "anti-stereotype"]
    assert read.table["irrelevant"].tolist() == ["My sister is soup today."] * 2
    assert read.table["row"].tolist() == [2, 3]


def test_rows_with_the_same_three_captions_are_one_triplet(write):
    table = vlstereoset.read(write(pair() + pair("mother", n=2))).table
    assert table["triplet"].tolist() == [0, 0, 1, 1, 1, 1]


def test_a_category_in_two_spellings_is_one_and_blanks_are_no_part_of_an_address(write):
    plain = vlstereoset.read(write(pair(n=2)))
    rows = pair(n=2)
    rows[0] |= {"bias_type": "gen\u00adder\u200b", "Imaeg URL": f" {rows[0]['Imaeg URL']}\ufeff"}
    rows[1] |= {"bias_type": "\u00a0gender", "label": " 1"}
    read = vlstereoset.read(write(rows))
    pandas.testing.assert_frame_equal(read.table, plain.table)
    pandas.testing.assert_frame_equal(vlstereoset.links(read.table), vlstereoset.links(plain.table))


# The selection


def test_a_selection_has_as_many_of_both_labels_and_follows_the_seed(write):
    rows = pair(n=2) + [row(label="0", url=f"https://example.org/x{i}.jpg") for i in range(20)]
    table = vlstereoset.read(write(rows)).table
    drawn = [vlstereoset.balanced(table, seed) for seed in (0, 0, 1)]
    assert drawn[0]["label"].value_counts().to_dict() == {"stereotype": 2, "anti-stereotype": 2}
    pandas.testing.assert_frame_equal(drawn[0], drawn[1])
    assert drawn[0].index.tolist() != drawn[2].index.tolist()


def test_a_category_with_one_label_only_is_left_out(write):
    rows = [*pair(), *(row("Bible", "0", f"https://example.org/b{i}", "religion") for i in "ab")]
    table = vlstereoset.read(write(rows)).table
    assert vlstereoset.balanced(table, 0)["category"].tolist() == ["gender"] * 2


# Images


def placed(links, folder, outcomes):
    """Record outcomes of links, and put a file where one says that the image is here."""
    folder.mkdir()
    links = links.assign(outcome=outcomes)
    links[["file", "url", "outcome"]].to_csv(folder / "downloads.csv", index=False)
    for file in links.loc[links["outcome"] == "here", "file"]:
        (folder / file).write_bytes(b"an image")


def test_links_are_listed_once_and_what_is_left_is_counted(write, tmp_path):
    table = vlstereoset.read(write([*pair(n=2), row(label="0", url="https://example.org/x")])).table
    again = pandas.concat([table, table.iloc[:1]], ignore_index=True)
    links = vlstereoset.links(again)
    assert len(links) == 5
    assert links["file"].is_unique
    placed(links, tmp_path / "images", ["here", "error 404", "here", "here", "here"])
    kept, coverage = vlstereoset.with_images(again, tmp_path)
    assert len(kept) == 5
    assert kept["path"].iloc[0] == str(tmp_path / "images" / links["file"].iloc[0])
    left = coverage.iloc[0]
    assert left[["balanced as released", "balanced now"]].tolist() == [4, 2]
    assert left["anti-stereotype, here"] == 1
    assert left["what came instead"] == "error 404 (1)"
    assert coverage.iloc[1].tolist() == ["all", *left.tolist()[1:]]


# Neutral captions


@pytest.mark.parametrize(
    ("caption", "target", "neutral"),
    [
        ("My sister is tall.", "sister", "My sibling is tall."),
        ("Sisters are tall.", "sister", "Siblings are tall."),
        ("A sister's car", "sister", "A sibling's car"),
        ("the engineer was tall", "engineer", "The person was tall"),
        ("He met an engineer.", "engineer", "He met a person."),
        ("He met a male engineer.", "male", "They met an engineer."),
        ("The male was tall.", "male", "The person was tall."),
        ("The arab man and an Arab, tall", "Arab", "The man and a person, tall"),
        ("Arabs are tall", "Arab", "People are tall"),
        ("Norway is tall.", "Norway", "The country is tall."),
        ("It snows in norway.", "Norway", "It snows in the country."),
        ("The Syrian man", "Syria", "The man"),
        ("The lebanon woman", "Lebanon", "The woman"),
        ("The country of yemen is rich.", "Yemen", "The country is rich."),
        ("In italy people are lively.", "Italy", "In the country people are lively."),
        ("When i lived in saudi arabia", "Arab", "When i lived in the country"),
        ("He was saudi arabian and tall.", "Saudi Arabian", "He was from the country and tall."),
        ("Brahmin is a foreign man.", "Brahmin", "A person is a foreign man."),
        ("Plumber are always clean.", "plumber", "People are always clean."),
        ("The type of guitarist who sings", "guitarist", "The type of person who sings"),
        ("There were gentlement here", "gentlemen", "There were people here"),
        ("She saw herself and her sister", "herself", "They saw themselves and their sister"),
        ("She sees herself as kind.", "herself", "They see themselves as kind."),
        ("It was he himself who won.", "himself", "It was they themselves who won."),
        (
            "He always does this because he is a strong male.",
            "male",
            "They always do this because they are a strong person.",
        ),
        (
            "Her mommy told her what she'd been told",
            "mommy",
            "Their parent told them what they'd been told",
        ),
        (
            "My sister is glad when I tell her about it.",
            "sister",
            "My sibling is glad when I tell them about it.",
        ),
        (
            "She's my sister and I think her was kind",
            "sister",
            "She's my sibling and I think her was kind",
        ),
        (
            "He thanked the nurse, and she smiled.",
            "nurse",
            "He thanked the person, and she smiled.",
        ),
    ],
)
def test_the_rule_of_neutral_captions(caption, target, neutral):
    assert vlstereoset.neutral_caption(caption, target) == neutral


def test_a_caption_without_its_target_has_no_neutral_one_and_an_unknown_target_is_named(write):
    assert vlstereoset.neutral_caption("My brother is tall.", "sister") is None
    with pytest.raises(KeyError):
        vlstereoset.neutral_caption("My cousin is tall.", "cousin")
    rows = [*pair(), row("mother") | {"stereotype": "She is tall", "context": "is "}]
    found = vlstereoset.neutralised(vlstereoset.read(write(rows)).table)
    assert found["neutral anti-stereotype"].tolist() == ["My sibling is small today."] * 2
    assert not found["gendered words left"].any()
    assert vlstereoset.neutralised(vlstereoset.read(write(rows)).table.iloc[2:]).empty


@pytest.mark.parametrize(
    ("owner", "target", "category", "left"),
    [
        ("Her", "sister", "gender", False),
        ("Jane's", "sister", "gender", True),
        ("The girl's", "sister", "gender", True),
        ("The feminine", "sister", "gender", False),
        ("Her", "nurse", "profession", False),
    ],
)
def test_a_noun_or_name_of_either_caption_that_says_a_gender_is_found(
    write, owner, target, category, left
):
    said = row(target, category=category)
    said |= {name: said[name].replace("My", owner) for name in HEADER[2:6]}
    found = vlstereoset.neutralised(vlstereoset.read(write([said])).table)
    assert found["gendered words left"].tolist() == [left]


# The released table


@released
def test_the_released_table_has_the_counts_that_the_books_tables_rest_on():
    read = vlstereoset.read(SAMPLE)
    assert read.sha256 == vlstereoset.SHA256
    assert len(read.table) == 1958
    assert read.table["url"].nunique() == 1934
    assert read.table["triplet"].nunique() == 883
    found = read.table.groupby(["category", "label"]).size()
    counts = released_counts().set_index("category")
    assert found.xs("stereotype", level=1).to_dict() == counts["label_0"].to_dict()
    assert found.xs("anti-stereotype", level=1).to_dict() == counts["label_1"].to_dict()


@released
def test_selections_of_the_released_table_have_the_sizes_that_table_4_implies():
    table = vlstereoset.read(SAMPLE).table
    for seed in range(3):
        drawn = vlstereoset.balanced(table, seed)
        assert len(drawn) == 1028
        sizes = drawn.groupby("category").size().to_dict()
        assert sizes == released_sizes()
    first, *others = (set(vlstereoset.balanced(table, seed).index) for seed in range(5))
    assert all(0.6 < len(first & other) / len(first) < 0.75 for other in others)


@released
def test_every_target_of_the_released_table_has_a_neutral_term():
    table = vlstereoset.read(SAMPLE).table
    terms = vlstereoset.neutral_terms().set_index("target")["category"]
    targets = table.drop_duplicates("target").set_index("target")["category"]
    assert targets.to_dict() == terms.to_dict()
    found = vlstereoset.neutralised(table)
    assert len(found) == 1958
    odd = r"\bthe the\b|\bsaudi people\b|^person\b|\b(?:are|is|was|from|in) person\b"
    said = found["neutral stereotype"] + "\n" + found["neutral anti-stereotype"]
    assert not said.str.contains(odd, flags=re.IGNORECASE | re.MULTILINE).any()
    for label in vlstereoset.LABELS:
        assert (found[f"neutral {label}"] != found[label]).all()


@released
def test_neutral_captions_of_the_released_table_say_no_gender_or_are_marked():
    """The numbers were counted by reading all 268 captions of gender."""
    found = vlstereoset.neutralised(vlstereoset.read(SAMPLE).table)
    gender = found[found["category"] == "gender"]
    anti = gender["label"] == "anti-stereotype"
    left = gender["gendered words left"]
    assert (len(gender), int(anti.sum())) == (323, 220)
    assert (int(left.sum()), int((left & anti).sum())) == (35, 24)
    assert gender.loc[left, "triplet"].nunique() == 18
    assert not found.loc[found["category"] != "gender", "gendered words left"].any()
    kept = gender.loc[~left, [f"neutral {name}" for name in vlstereoset.LABELS]]
    told = r"\b(he|him|his|himself|she|her|hers|herself|themself|girl|boy|men)\b"
    assert not re.search(told, " ".join(kept.to_numpy().ravel()).lower())
    said = set(kept.to_numpy().ravel())
    assert "They see themselves as kind." in said
    assert "The grandparent lifted their wrist to check their watch." in said
    assert not any("they is" in text or "they was" in text for text in map(str.lower, said))
