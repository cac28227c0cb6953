"""Plans for teaching: their minutes add up, what they name is there, and their zips are whole."""

import hashlib
import re
import zipfile
from pathlib import Path

import nbformat
import plans
import pytest
import yaml
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[1]
NAMES = ["ninety_minutes", "half_day", "four_weeks", "semester"]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PLAN = {
    "title": "Two sessions",
    "weeks": {1: 95, 2: 25},
    "sessions": [
        {
            "name": "A",
            "week": 1,
            "minutes": 35,
            "read": [{"pages": ["notebooks/words"], "minutes": 40}],
            "write": {"minutes": 20, "what": "a page"},
            "slots": [
                {"minutes": 5, "show": "the start", "pages": ["book/start#first"], "do": "ask"},
                {"minutes": 12, "show": "a talk", "decks": ["words 2-4"], "late": "half of it"},
                {"minutes": 18, "show": "paper", "do": "write", "hand_in": "a slip"},
            ],
        },
        {"name": "B", "week": 2, "minutes": 25, "slots": [{"minutes": 25, "show": "reports"}]},
    ],
}


@pytest.fixture
def root(tmp_path):
    """A book of one chapter, one other page and a deck of five slides."""
    root = tmp_path / "source"
    for name in ("book/plans", "book/slides", "notebooks"):
        (root / name).mkdir(parents=True)
    slides = "\n---\n".join(f"## Heading {n}\n\nText.\n\nNotes:\nSay." for n in range(1, 6))
    head = "---\ntitle: Words\nchapter: words\nminutes: 10\n---\n"
    (root / "book" / "slides" / "words.md").write_text(head + slides, "utf-8")
    card = "# Words\n\n**Prerequisites.** 2 of them. **Minutes.** 40, and 20 for the exercises."
    cells = [nbformat.v4.new_markdown_cell(card, id="a")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), root / "notebooks" / "words.ipynb")
    for page in ("teaching", "for_students", "content_note"):
        (root / "book" / f"{page}.md").write_text(f"# {page}\n", "utf-8")
    start = "# Start\n\n(first)=\n## First\n\n[Words](../notebooks/words.ipynb)\n"
    (root / "book" / "start.md").write_text(start, "utf-8")
    text = "# The plan\n\n```{plan} two\n```\n\n[](start.md) and [](other.md)\n"
    (root / "book" / "plan_two.md").write_text(text, "utf-8")
    (root / "book" / "other.md").write_text("# Other\n", "utf-8")
    write(root, PLAN)
    return root


def write(root, plan):
    (root / "book" / "plans" / "two.yml").write_text(yaml.safe_dump(plan), "utf-8")


def own(name):
    """A plan of the book, as it is written."""
    return yaml.safe_load(plans.plan_file(ROOT, name).read_text("utf-8"))


def changed(**values):
    """The plan with other values in the second slot of its first session."""
    plan = yaml.safe_load(yaml.safe_dump(PLAN))
    plan["sessions"][0]["slots"][1] |= values
    return plan


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (changed(minutes=13), r"plan 'two', session 'A': .* 36 minutes, not to 35"),
        (changed(minutes=4), r"session 'A', slot 'a talk': 3 slides in 4 minutes"),
        (changed(decks=["wrds 1-2"]), r"plan 'two', session 'A'.* no deck .*wrds\.md"),
        (changed(decks=["words 3-6"]), r"session 'A'.*'words 3-6', but .* slides 1 to 5"),
        (changed(decks=["words 0-2"]), r"'words 0-2', but .* slides 1 to 5"),
        (changed(decks=["words 4-3"]), r"'words 4-3', but .* slides 1 to 5"),
        (changed(decks=["words one"]), r"'words one' is no deck with slides"),
        (changed(pages=["notebooks/wrds"]), r"session 'A', .* no page notebooks/wrds"),
        (changed(lte="less"), r"session 'A', slot 'a talk': lte"),
        (PLAN | {"weeks": {1: 96, 2: 25}}, r"plan 'two', week 1: .* 95 minutes, not to 96"),
        (PLAN | {"weeks": {1: 95}}, r"plan 'two', week 2: .* 25 minutes, not to None"),
        (PLAN | {"materials": ["book/none"]}, r"plan 'two', materials: .* no page book/none"),
    ],
)
def test_a_plan_that_does_not_add_up_or_names_what_is_not_there_is_refused(root, plan, told):
    write(root, plan)
    with pytest.raises(ExtensionError, match=told):
        plans.read(root, "two")


@pytest.mark.parametrize(
    ("reading", "right"),
    [
        ({"minutes": 40}, True),
        ({"minutes": 39}, False),
        ({"minutes": 39, "part": "to the table"}, True),
        ({"minutes": 41, "part": "to the table"}, False),
    ],
)
def test_a_reading_takes_the_minutes_of_its_chapter_s_card(root, reading, right):
    plan = yaml.safe_load(yaml.safe_dump(PLAN))
    plan["sessions"][0]["read"] = [{"pages": ["notebooks/words"]} | reading]
    plan["weeks"][1] += reading["minutes"] - 40
    write(root, plan)
    if right:
        assert plans.parts(plans.read(root, "two")["sessions"][0]) == (35, reading["minutes"], 20)
    else:
        with pytest.raises(ExtensionError, match=rf"{reading['minutes']} minutes for .* says 40"):
            plans.read(root, "two")


@pytest.fixture
def built(root):
    site = root.with_name("site")
    settings = {
        "extensions": ["myst_nb", "plans"],
        "nb_execution_mode": "off",
        "root_doc": "book/start",
        "myst_heading_anchors": 3,
    }
    (site / "teach").mkdir(parents=True)
    quiz = '<link href="a.css"><form class="bd-search x" action="x"></form><form id="quiz"></form>'
    made = {"slides_words.html": "", "classroom_words.ipynb": "", "quiz_words.html": quiz}
    made |= {"a.css": '@import"b.css"; p { background: url(c.svg) }', "b.css": "", "c.svg": ""}
    for name, text in made.items():
        (site / "teach" / name).write_text(text, "utf-8")
    Sphinx(
        root, None, site, root.with_name("doctrees"), "html", settings, status=None, warning=None
    ).build()
    return site


def test_a_session_is_a_table_with_the_clock_and_the_sums(built):
    page = BeautifulSoup((built / "book" / "plan_two.html").read_text("utf-8"), "html.parser")
    week, first, second = page.find_all("table")
    cells = [[each.get_text() for each in row.find_all(["th", "td"])] for row in week("tr")[1:]]
    assert [each[1:] for each in cells] == [
        ["35", "40", "20", "95"], ["25", "0", "0", "25"], ["60", "40", "20", "120"],
    ]  # fmt: skip
    clock = [re.findall(r"\d+", row.find("th").get_text()) for row in first("tr")[1:]]
    assert clock == [["0", "5", "5"], ["5", "17", "12"], ["17", "35", "18"], ["35"]]
    links = [each["href"] for each in first.find_all("a", href=re.compile("html"))]
    assert links == ["start.html#first", "../teach/slides_words.html#slide-2"]
    assert re.findall(r"Heading \d", first("tr")[2].get_text()) == ["Heading 2", "Heading 4"]
    assert "a slip" in first("tr")[3].get_text()
    assert second("tr")[-1].find("th").get_text().split()[0] == "25"


def unzipped(path, folder):
    with zipfile.ZipFile(path) as file:
        file.extractall(folder)
        return {each.partition("/")[2] for each in file.namelist()}


def leading_nowhere(folder):
    """Addresses on pages of a folder that are neither files of it nor absolute."""
    found = []
    for page in folder.rglob("*.html"):
        soup = BeautifulSoup(page.read_text("utf-8"), "html.parser")
        for tag in soup.find_all(["a", "img", "script", "link", "form"]):
            path = tag.get("href") or tag.get("src") or tag.get("action") or "#"
            bare = re.sub(r"[?#].*", "", path)
            if bare and ":" not in bare and not (page.parent / bare).is_file():
                found.append((page.name, path))
    return found


@pytest.mark.parametrize("home", ["", "https://book.example"])
def test_a_zip_is_whole_and_its_other_links_lead_to_the_site(home, built, root, tmp_path):
    (built / "teach" / "slides_words.html").write_text(
        '<a href="../notebooks/words.html#a">in</a> <a href="../book/other.html#b">out</a>', "utf-8"
    )
    first = plans.write_zip(built, "two", plans.read(root, "two"), home)
    digest = hashlib.sha256(first.read_bytes()).hexdigest()
    again = plans.write_zip(built, "two", plans.read(root, "two"), home)
    assert hashlib.sha256(again.read_bytes()).hexdigest() == digest
    names = unzipped(again, tmp_path / "out")
    assert {
        "README.txt", "LICENSE", "CITATION.cff", "book/plan_two.html", "book/teaching.html",
        "book/content_note.html", "book/for_students.html", "book/start.html",
        "notebooks/words.html",
        "teach/slides_words.html", "teach/classroom_words.ipynb", "teach/quiz_words.html",
        "teach/a.css", "teach/b.css", "teach/c.svg",
    } <= names  # fmt: skip
    assert "book/other.html" not in names
    assert not [each for each in names if "instructor" in each]
    assert leading_nowhere(tmp_path / "out") == []
    teach = tmp_path / "out" / "plan_two" / "teach"
    assert '<form id="quiz">' in (teach / "quiz_words.html").read_text("utf-8")
    slides = (teach / "slides_words.html").read_text("utf-8")
    links = [each.get("href") for each in BeautifulSoup(slides, "html.parser").find_all("a")]
    assert links == ["../notebooks/words.html#a", f"{home}/book/other.html#b" if home else None]


@pytest.mark.parametrize("name", NAMES)
def test_the_zip_of_the_built_site_is_whole(name, tmp_path):
    made = ROOT / "_build" / "html" / "teach" / f"plan_{name}.zip"
    if not made.is_file():
        pytest.skip("the site is not built: make book")
    names = unzipped(made, tmp_path)
    assert {f"book/plan_{name}.html", "_static/custom.css", "_static/basic.css"} <= names
    assert leading_nowhere(tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
def test_each_plan_of_the_book_adds_up(name):
    plan = own(name)
    assert [sum(s["minutes"] for s in each["slots"]) for each in plan["sessions"]] == [
        {"ninety_minutes": 90, "half_day": 240}.get(name, 90)
    ] * {"ninety_minutes": 1, "half_day": 1, "four_weeks": 8, "semester": 12}[name]
    assert plans.weeks(plan) == plan.get("weeks", {})


@pytest.mark.skipif(not plans.deck_files(ROOT), reason="no deck is in book/slides")
@pytest.mark.parametrize("name", NAMES)
def test_what_each_plan_of_the_book_names_is_there(name):
    assert plans.read(ROOT, name)["sessions"]


def test_the_table_for_teachers_has_every_chapter_with_its_own_minutes():
    text = (ROOT / "book" / "teaching.md").read_text("utf-8")
    table = text.split(":name: teaching-chapters")[1].split("```")[0]
    rows = dict(re.findall(r"\* - \[\]\(\.\./notebooks/(\S+)\)\n  - (.+)", table))
    cards = {path.name: plans.card(path) for path in NOTEBOOKS}
    assert rows == {name: f"{card[0]} + {card[1]}" for name, card in cards.items()}


def test_the_course_has_every_chapter_in_a_session():
    named = plans.pages_of("four_weeks", own("four_weeks"))
    stems = {each.partition("/")[2] for each in named if each.startswith("notebooks/")}
    assert stems == {path.stem for path in NOTEBOOKS}


ANSWERED = {
    "bet-tests": {"notebooks/text_encoders", "book/index"},
    "bet-purse": {"notebooks/study2_masked"},
}
"""What prints the answers of a bet."""


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_sent_to_the_answers_of_a_bet_before_it(name):
    plan = own(name)
    for bet, answers in ANSWERED.items():
        seen = []
        for session in plan["sessions"]:
            seen += [page for each in session.get("read", []) for page in each["pages"]]
            seen += [page for slot in session["slots"] for page in slot.get("pages", [])]
        if f"book/for_students#{bet}" in seen:
            assert not answers & set(seen[: seen.index(f"book/for_students#{bet}")]), bet
