"""Decks of a lecturer's own: what the page on changing slides says is done, and what is refused."""

import os
import re
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import plan_zips
import plans
import pytest
import slides
import teaching
from support import decks
from support.browser import axe_violations

from tools import make_slides

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "change_slides.md").read_text("utf-8")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LABEL = re.compile(r"\b(?:fig|eq)-[a-z0-9-]+")
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="200"><rect width="9"/></svg>'


def chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data).to_bytes(4, "big")
    return len(data).to_bytes(4, "big") + kind + data + check


def png(width=300, height=200) -> bytes:
    rows = zlib.compress((b"\0" + b"\x55\xaa" * width) * height)
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x10\0\0\0\0"
    parts = chunk(b"IHDR", size), chunk(b"IDAT", rows), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def built(site: Path) -> None:
    """A site whose chapters have the labels of the notebooks, and nothing else."""
    for folder in ("notebooks", "teach", "_images"):
        (site / folder).mkdir(parents=True)
    shutil.copytree(ROOT / "book" / "static", site / "_static")
    (site / "_images" / "f.svg").write_text(DRAWING, "utf-8")
    (site / "teach" / "index.html").touch()
    for path in NOTEBOOKS:
        found = [
            f'<figure id="{each}"><img alt="English." src="../_images/f.svg"></figure>'
            if each.startswith("fig")
            else rf'<div class="math" id="equation-{each}">\[a\]</div>'
            for each in sorted(set(LABEL.findall(path.read_text("utf-8"))))
        ]
        page = f"<html><body><article><h1>A</h1>{''.join(found)}</article></body></html>"
        (site / "notebooks" / f"{path.stem}.html").write_text(page, "utf-8")


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """A clone with a built site, in which a lecturer changes what they like."""
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("_ext"))
    built(tmp_path / "_build" / "html")
    monkeypatch.setattr(slides, "SLIDES", tmp_path / "book" / "slides")
    return tmp_path


def blocks(heading: str) -> dict[str, list[str]]:
    """The fenced blocks of a section of the page, by what they are."""
    found, here = {}, ""
    for each in re.finditer(r"^(`{3,})(\w+)\n(.*?)^\1$|^## ([^\n]*)$", PAGE, re.M | re.S):
        here = each[4] or here
        if each[2] and here == heading:
            found.setdefault(each[2], []).append(each[3])
    return found


def run(commands: str, root: Path, capsys) -> str:
    """Do what a block of commands says in the clone, and return what is said."""
    for line in commands.splitlines():
        if copied := re.fullmatch(r"cp (\S+) (\S+)", line):
            shutil.copyfile(root / copied[1], root / copied[2])
        else:
            deck = re.fullmatch(r"make slides DECK=(\S+)", line)[1]
            assert make_slides.main(root / deck, root) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert "file://" in said.out
    return said.err


def says(expected: str, said: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in " ".join(expected.split()).split("…"))
    return re.search(pattern, said) is not None


def cut(text: str, start: str) -> tuple[str, str]:
    """A deck without the slide that begins so, and this slide with its line of dashes."""
    assert text.count(start) == 1
    first = text.index(start)
    last = text.index("\n---\n", first) + len("\n---\n\n")
    return text[:first] + text[last:], text[first:last]


def shown(root: Path, stem: str, kind="slides") -> str:
    return (root / "_build" / "html" / "teach" / f"{kind}_{stem}.html").read_text("utf-8")


@pytest.fixture
def copied(root, capsys) -> Path:
    """The copy with which the page begins, and the plan that uses it."""
    assert run(blocks("Begin with a copy")["sh"][0], root, capsys) == ""
    plan = plans.plan_file(root, "ninety_minutes")
    plan.write_text(plan.read_text("utf-8").replace("[study2_masked", "[my_study2"), "utf-8")
    plans.read(root, "ninety_minutes")
    return root / "book" / "slides" / "own" / "my_study2.md"


def amended(root: Path, said: str, new: str) -> dict:
    """The plan of ninety minutes with another line in the place that was named."""
    path = plans.plan_file(root, "ninety_minutes")
    lines = path.read_text("utf-8").splitlines()
    number = int(re.search(r"ninety_minutes.yml, line (\d+)", said)[1]) - 1
    assert "decks:" in lines[number]
    lines[number] = re.sub(r"decks:.*", lambda _: new.strip(), lines[number])
    path.write_text("\n".join(lines), "utf-8")
    return plans.read(root, "ninety_minutes")


def test_recipe_drop_a_slide(root, copied, capsys):
    told = blocks("Drop a slide")
    copied.write_text(cut(copied.read_text("utf-8"), told["md"][0])[0], "utf-8")
    said = run(told["sh"][0], root, capsys)
    assert says(told["text"][0], said)
    amended(root, said, told["yaml"][0])
    assert run(told["sh"][0], root, capsys) == ""
    assert 'id="three-scores"' not in shown(root, "my_study2") + shown(root, "my_study2", "notes")


def test_recipe_add_a_slide(root, copied, capsys):
    told = blocks("Add a slide")
    before = copied.read_text("utf-8")
    copied.write_text(
        before.replace("(language)=", f"{told['md'][0]}\n---\n\n(language)="), "utf-8"
    )
    assert run(told["sh"][0], root, capsys) == ""
    page = shown(root, "my_study2")
    assert page.index('id="bias-score"') < page.index('id="same-ratio"') < page.index('"language"')
    assert "(3 min)" in shown(root, "my_study2", "notes")


def test_recipe_reorder(root, copied, capsys):
    told = blocks("Reorder")
    rest, moved = cut(copied.read_text("utf-8"), told["md"][0])
    copied.write_text(rest.replace(told["md"][1], moved + told["md"][1]), "utf-8")
    said = run(told["sh"][0], root, capsys)
    assert says(told["text"][0], said)
    amended(root, said, told["yaml"][0])
    page = shown(root, "my_study2")
    assert page.index('id="printed"') < page.index('id="six-things"')


def test_recipe_translate(root, capsys):
    told = blocks("Translate")
    path = root / "book" / "slides" / "own" / "my_study2_de.md"
    path.write_text(told["md"][0], "utf-8")
    assert make_slides.main(path, root) == 1
    said = capsys.readouterr().err
    assert says(told["text"][0], said)
    without = re.search(r"without: \[.*\]", said)[0]
    line = "translates: study2_masked\n"
    path.write_text(told["md"][0].replace(line, f"{line}{without}\n"), "utf-8")
    assert run(told["sh"][0], root, capsys) == ""
    page = shown(root, "my_study2_de")
    assert '<html lang="de">' in page
    assert 'alt="Vier Balken' in page
    assert "English." not in page
    assert "../notebooks/study2_masked.html" in page


def test_recipe_an_example_of_your_own(root, capsys):
    told = blocks("An example of your own")
    path = root / "book" / "slides" / "own" / "my_slips.md"
    path.write_text(told["md"][0], "utf-8")
    (path.parent / "board.png").write_bytes(png())
    assert run(told["sh"][0], root, capsys) == ""
    assert (root / "_build/html/teach/picture_my_slips_1.png").is_file()
    plan = plans.plan_file(root, "ninety_minutes")
    first, rest = plan.read_text("utf-8").split("    slots:\n")
    plan.write_text(f"{first}    slots:\n{told['yaml'][0]}{rest}", "utf-8")
    assert says(told["text"][0], run(told["sh"][0], root, capsys))
    longest = max(map(int, re.findall(r"minutes: (\d+)", rest)))
    fewer = rest.replace(f"minutes: {longest}", f"minutes: {longest - 10}", 1)
    plan.write_text(f"{first}    slots:\n{told['yaml'][0]}{fewer}", "utf-8")
    assert run(told["sh"][0], root, capsys) == ""
    assert list(slides.outline(path))[-1] in PAGE.split("my_slips ")[1]
    assert "teach/slides_my_slips.html?notes=ninety_minutes_1#what-our-slips-say" in plans.markdown(
        plans.read(root, "ninety_minutes"), root, "ninety_minutes"
    )


# What is refused

FRONT = '---\ntitle: "A deck"\nminutes: 20\n---\n\n'
TWO = "(one)=\n# One\n\nText.\n\n---\n\n(two)=\n## Two (5 min)\n\nText.\n"
BAD = {
    "a translation without a slide": (
        FRONT.replace("minutes", "translates: study2_masked\nminutes") + TWO,
        r"line 3: .*'title' of study2_masked.md.* is missing: translate it, with \(title\)=",
    ),
    "without a slide that is not there": (
        FRONT.replace("minutes", "translates: study2_masked\nwithout: [gone]\nminutes") + TWO,
        r"line 4: study2_masked.md has no slide 'gone'; it has \['title'",
    ),
    "a translation of nothing": (
        FRONT.replace("minutes", "translates: study9\nminutes") + TWO,
        r"line 3: 'study9' is no deck in book/slides or its own/: \['foundations'",
    ),
    "no alternative text": (
        f"{FRONT}{TWO}\n![](here.png)\n",
        r"line 18: here.png has no alternative text: say what it shows, !\[",
    ),
    "no such picture": (f"{FRONT}{TWO}\n![a](gone.png)\n", "line 18: gone.png is not there: put"),
    "an unknown kind": (
        f"{FRONT}{TWO}\n![a](a.heic)\n",
        "line 18: a.heic is of an unknown kind: save it as one of .png",
    ),
    "another kind inside": (f"{FRONT}{TWO}\n![a](false.png)\n", "line 18: .* no .png inside: save"),
    "a picture of the web": (
        f"{FRONT}{TWO}\n![a](https://example.org/a.png)\n",
        "line 18: https://example.org/a.png is on the web: download it",
    ),
    "a label that changed": (
        f"{FRONT}{TWO}\n![](#fig-masked-cases)\n",
        "line 18: .*; the nearest label is #fig-masked-case, of study2_masked",
    ),
    "a picture whose name has a space": (
        f"{FRONT}{TWO}\n![a](my board.png)\n",
        "line 18: this is no picture: rename it so that its name has no spaces",
    ),
    "a picture within a text": (
        f"{FRONT}{TWO}\nLook: ![a](here.png)\n",
        "line 18: here.png stands in a text: leave empty lines around it",
    ),
    "two pictures on a slide": (
        f"{FRONT}{TWO}\n![a](here.png)\n\n![](#fig-masked-case)\n",
        "line 20: a second picture on one slide: give it a slide of its own",
    ),
    "two slides of one name": (
        FRONT + TWO.replace("two", "one"),
        r"line 13: a second slide has the name 'one': put another one, such as \(one-2\)=",
    ),
    "two headings of one name": (
        f"{FRONT}# A\n\n---\n\n## A\n",
        r"line 10: a second slide has the name 'a': put another one, such as \(a-2\)=",
    ),
    "a name with capitals": (FRONT + TWO.replace("(two)", "(Two)"), "line 13: .*small letters"),
    "minutes that are no number": (
        FRONT.replace("20", "twenty") + TWO,
        "line 3: minutes are a number, such as 35, and not 'twenty'",
    ),
    "too few minutes": (FRONT.replace("20", "4") + TWO, "tasks take 5 of 4 minutes: give it more"),
    "a colon without quotes": (
        FRONT.replace('"A deck"', "A deck: mine") + TWO,
        "line 2: put a text with a colon between quotation marks",
    ),
    "Norwegian": (
        FRONT.replace("minutes", "language: no\nminutes") + TWO,
        'line 3: the language is a code such as "de"',
    ),
    "first lines that are not closed": (
        FRONT.replace("20\n---", "20") + TWO,
        "line 5: close the first lines with a line of --- above this one",
    ),
    "a quotation mark that is not closed": (
        FRONT.replace('deck"', "deck") + TWO,
        "line 2: close the quotation mark that begins here",
    ),
    "stars between slides": (
        FRONT + TWO.replace("Text.\n\n---", "Notes:\n\nSay.\n\n***", 1),
        "line 13: between two slides stands a line of three dashes alone",
    ),
    "a line below the text": (f"{FRONT}{TWO}\n----\n", "line 18: between two slides stands a line"),
    "a heading in the notes": (
        f"{FRONT}{TWO}\nnotes:\n\n## Say\n",
        "line 20: .* and no other line; notes have no headings",
    ),
    "a formula that is not closed": (
        f"{FRONT}{TWO}\n$$\n\\frac{{a}}{{b\n$$\n",
        "line 19: a formula has 2 { and 1 }",
    ),
    "no front matter": (TWO, "line 1: it begins with minutes, title between lines of ---"),
    "no heading": (f"{FRONT}Text.\n", "line 6: 0 headings, not one: a slide has one line such as"),
    "a picture in the notes": (
        f"{FRONT}{TWO}\nNotes:\n\n![a](here.png)\n",
        "line 18: notes have no pictures: put it on the slide",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_deck_that_is_wrong_is_refused_with_file_line_and_what_to_do(name, root, capsys):
    text, expected = BAD[name]
    path = root / "my.md"
    path.write_text(text, "utf-8")
    (root / "here.png").write_bytes(png())
    (root / "false.png").write_text("heic", "utf-8")
    assert make_slides.main(path, root) == 1
    said = capsys.readouterr().err
    assert re.search(f"my.md.*{expected}", said, re.S), said


def test_an_own_deck_with_the_name_of_one_of_the_book_is_refused(root, capsys):
    path = root / "book" / "slides" / "own" / "foundations.md"
    path.write_text(FRONT + TWO, "utf-8")
    assert make_slides.main(path, root) == 1
    assert re.search("own/foundations.md, line 1: rename the file", capsys.readouterr().err)
    path = path.rename(path.with_name("Foundations.md"))
    assert make_slides.main(path, root) == 1


def test_without_a_site_or_a_deck_one_line_says_what_to_do(root, capsys):
    assert make_slides.main(root / "gone.md", root) == 1
    assert "gone.md" in capsys.readouterr().err
    shutil.rmtree(root / "_build")
    assert make_slides.main(root / "book" / "slides" / "foundations.md", root) == 1
    assert capsys.readouterr().err == "There is no site in _build/html: run 'make book' first.\n"


# What is shown


def test_the_title_of_an_own_deck_is_text_in_a_plan(root):
    path = root / "book" / "slides" / "own" / "mine.md"
    path.write_text(FRONT.replace("A deck", "Mice --- & <i>men") + TWO, "utf-8")
    page = plans._screen({"show": "x", "decks": ["mine"]}, root, "n")
    assert "Slides 1–2 of Mice --- &amp; &lt;i&gt;men</a>" in page


def test_a_deck_that_is_taken_out_or_put_in_is_seen(root):
    app = SimpleNamespace(srcdir=root, outdir=root / "_build" / "html")
    index, deck = app.outdir / "teach" / "index.html", root / "book" / "slides" / "own" / "m.md"
    deck.touch()
    for each in teaching.sources(app):
        os.utime(each, (1, 1))
    os.utime(index, (2, 2))
    assert teaching.is_newest(index, [*teaching.sources(app)])
    deck.unlink()
    assert not teaching.is_newest(index, [*teaching.sources(app)])


def test_notes_begin_in_any_case_and_an_own_deck_is_translated(root, capsys):
    own = root / "book" / "slides" / "own"
    (own / "mine.md").write_text(f"{FRONT}{TWO}\nnotes: Said.\n\n![](here.png)", "utf-8")
    assert make_slides.main(own / "mine.md", root) == 1
    assert "line 18: notes have no pictures" in capsys.readouterr().err
    (own / "mine.md").write_text(f"{FRONT}{TWO}\nnotes: Said.\n", "utf-8")
    assert make_slides.main(own / "mine.md", root) == 0
    assert "Said." not in shown(root, "mine")
    translated = FRONT.replace("minutes", "translates: mine\nlanguage: ar\nminutes") + TWO
    (own / "mine_ar.md").write_text(f"{translated}\n![a](big.png)\n", "utf-8")
    (own / "big.png").write_bytes(png() + bytes(5_000_000))
    assert make_slides.main(own / "mine_ar.md", root) == 0
    assert "line 20: big.png has 5 MB: make it smaller" in capsys.readouterr().out
    assert '../index.html">Book' in shown(root, "mine_ar")


@pytest.mark.parametrize(
    ("heading", "minutes"),
    [
        ("## Ihr Zug (im Paar, 5 Min.)", 5),
        ("## Your turn: 5 minutes, on paper", 5),
        ("## What 20 minutes of news say", 0),
        ("## Asked (12 minorities)", 0),
    ],
)
def test_minutes_of_a_heading_stand_in_brackets_or_behind_a_colon(heading, minutes):
    assert slides.task(heading) == minutes


def test_a_changed_word_of_a_deck_of_the_book_is_seen(root, capsys):
    path = root / "book" / "slides" / "foundations.md"
    path.write_text(path.read_text("utf-8").replace("# ", "# Zebra ", 1), "utf-8")
    assert make_slides.main(path, root) == 0
    assert "<h1>Zebra " in shown(root, "foundations")


def test_own_decks_are_made_with_the_book_and_in_the_zips(root):
    folder, site = root / "book" / "slides" / "own", root / "_build" / "html"
    (folder / "mine.md").write_text(f"{FRONT}{TWO}\n![a](p/here.png)\n", "utf-8")
    (folder / "p").mkdir()
    (folder / "p" / "here.png").write_bytes(png())
    book = teaching.chapters(site, [path.stem for path in NOTEBOOKS])
    made = [teaching.write_deck(path, book, site / "teach") for path in slides.files()]
    assert "mine" in [deck.stem for deck in made]
    row = teaching.overview(site / "teach", [("mine", "Mine")])
    assert 'href="slides_mine.html"' in row
    assert "classroom_mine" not in row
    assert "teach/picture_mine_1.png" in plan_zips.loaded(site, {"teach/slides_mine.html": None})


def test_without_its_library_no_file_for_powerpoint_is_made_and_a_line_says_how(
    root, capsys, monkeypatch
):
    monkeypatch.setattr(make_slides.powerpoint, "pptx", None)
    path = root / "book" / "slides" / "foundations.md"
    assert make_slides.main(path, root, as_file=True) == 0
    assert "No .pptx was made: pip install python-pptx==" in capsys.readouterr().out


def test_a_file_for_powerpoint_has_text_as_text_and_pictures_with_their_text(root):
    if make_slides.powerpoint.teach.browser() is None:
        pytest.skip("no Chromium or Chrome is on the path")
    pptx = pytest.importorskip("pptx", reason="an optional library: pip install python-pptx")
    path = root / "my_slips.md"
    path.write_text(f"{blocks('An example of your own')['md'][0]}\n---\n\n{TABLE}", "utf-8")
    (root / "board.png").write_bytes(png())
    with ThreadPoolExecutor() as beside_other_tests:  # which drive a browser in this thread
        made = beside_other_tests.submit(make_slides.main, path, root, as_file=True)
    assert made.result() == 0
    pages = list(pptx.Presentation(root / "_build" / "slides" / "my_slips.pptx").slides)
    assert [page.shapes.title.text for page in pages][1:] == [
        "Your turn: compute B (5 min)", "Is that a lot?", "A table",
    ]  # fmt: skip
    texts = ["\n".join(s.text_frame.text for s in p.shapes if s.has_text_frame) for p in pages]
    assert "CC BY 4.0" in texts[0]
    assert "• one\n• two" in texts[3]
    described = [s._element.xpath(".//p:cNvPr/@descr") for p in pages for s in p.shapes]
    assert [text for found in described for text in found if text] == [
        " ".join(re.search(r"!\[([^]]*)\]\(board", PAGE)[1].split()), "a", "English.",
    ]  # fmt: skip
    (table,) = [shape.table for shape in pages[3].shapes if shape.has_table]
    assert table.cell(1, 1).text == "7"
    assert "B is ln 1.8" in pages[1].notes_slide.notes_text_frame.text
    for shape in [shape for page in pages for shape in page.shapes]:
        assert 0 <= shape.left <= shape.left + shape.width <= pptx.util.Inches(13.34)
        assert 0 <= shape.top <= shape.top + shape.height <= pptx.util.Inches(7.5)


TABLE = "## A table\n\n- one\n- two\n\n| word | count |\n|---|---|\n| purse | 7 |\n"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_an_own_deck_and_its_notes_can_be_read_by_everybody(root, browser, capsys, mode):
    told = blocks("An example of your own")
    path = root / "anywhere" / "my_slips.md"
    path.parent.mkdir()
    text = told["md"][0].replace("minutes:", "language: de\nminutes:")
    path.write_text(f"{text}\n---\n\n## 赌注\n\n- {'many words ' * 60}\n", "utf-8")
    (path.parent / "board.png").write_bytes(png())
    assert make_slides.main(path, root) == 0
    line = path.read_text("utf-8").splitlines().index("## 赌注") + 1
    assert f"line {line}: 121 words" in capsys.readouterr().out
    teach = (root / "_build" / "html" / "teach").as_uri()
    page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme=mode)
    decks.opened(page, f"{teach}/slides_my_slips.html")
    for _ in range(4):
        assert axe_violations(page) == []
        page.keyboard.press("ArrowRight")
    page.goto(f"{teach}/notes_my_slips.html")
    assert axe_violations(page) == []
    assert page.locator("html").get_attribute("lang") == "de"
    page.context.close()
