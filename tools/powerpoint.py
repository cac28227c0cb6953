"""Write a deck of slides as a file for PowerPoint, Impress or Google Slides.

Text and tables stay text, what the speaker says becomes notes, and figures and formulas become
pictures that have their text: ``make slides DECK=x.md PPTX=yes``.
"""

import math
import tempfile
from pathlib import Path

import slides
import teach
import teaching
from bs4 import BeautifulSoup
from bs4.element import Tag

try:
    import pptx
    from playwright.sync_api import sync_playwright
    from pptx.util import Inches, Pt
except ImportError:  # few need it
    pptx = None

VERSION = "1.0.2"
WIDTH, HEIGHT, EDGE, TOP = 13.333, 7.5, 0.7, 1.5
INSIDE = WIDTH - 2 * EDGE
LARGEST, SMALLEST, IN_TABLE, ROW, FORMULA = 26, 12, 20, 0.45, 1.6
PAGE = """<!DOCTYPE html><meta charset="utf-8">
<script defer src="../_static/vendor/mathjax/tex-mml-chtml.js"></script>
<style>
body {{ background: #fff; font-size: 56px }} section {{ display: table }} img {{ height: 1000px }}
section > *, section mjx-container {{ margin: 0 !important }}
</style>{}"""


def write(deck: slides.Deck, site: Path, target: Path) -> str:
    """Write the file, from a deck whose figures have been filled in; return what to say."""
    if pptx is None:
        return f"No .pptx was made: pip install python-pptx=={VERSION} playwright"
    if teach.browser() is None:
        return "No .pptx was made: no Chromium or Chrome was found to draw its figures."
    made = pptx.Presentation()
    made.slide_width, made.slide_height = Inches(WIDTH), Inches(HEIGHT)
    made.core_properties.title, made.core_properties.language = deck.title, deck.language
    target.parent.mkdir(parents=True, exist_ok=True)
    parts = [part for each in deck.slides for part in each.body.find_all(recursive=False)]
    parts = [part for part in parts if kind(part) in ("figure", "formula")]
    with tempfile.TemporaryDirectory() as folder:
        pictures = drawn(parts, site, Path(folder))
        for each in deck.slides:
            add_slide(made, each, pictures, deck.language)
    terms = made.slides[0].shapes.add_textbox(*map(Inches, (EDGE, 6.8, INSIDE, 0.5)))
    fill(terms, paragraphs(teaching.licence(deck.chapter)), 10, "en")
    made.save(target)
    return f"For PowerPoint and others: {target}"


def add_slide(made, each: slides.Slide, pictures: dict[int, Path], language: str) -> None:
    page = made.slides.add_slide(made.slide_layouts[5])  # with a title alone
    title = page.shapes.title
    title.left, title.top, title.width, title.height = map(Inches, (EDGE, 0.35, INSIDE, 1))
    fill(title, paragraphs(each.heading), 34, language)
    lay_out(page, each.body, pictures, language)
    said = [plain(part) for part in paragraphs(each.notes)]
    page.notes_slide.notes_text_frame.text = "\n".join(said)
    for paragraph in page.notes_slide.notes_text_frame.paragraphs:
        to_the_left(paragraph, language)


def paragraphs(text: str) -> list[Tag]:
    found = BeautifulSoup(text, "html.parser").select("p:not(li p), li")
    return found or BeautifulSoup(f"<p>{text}</p>", "html.parser").find_all("p")


def plain(part: Tag) -> str:
    """Return a text as one line, formulas without what marks them for MathJax."""
    text = " ".join(part.get_text().split())
    for mark in (r"\(", r"\)", r"\[", r"\]"):
        text = text.replace(mark, "")
    return text.strip()


def lay_out(page, body: BeautifulSoup, pictures: dict[int, Path], language: str) -> None:
    """Put a slide's parts below one another; figures share what the others leave."""
    parts = []
    for each in body.find_all(recursive=False):
        if kind(each) != "text":
            parts.append((kind(each), each))
        elif parts and parts[-1][0] == "text":
            parts[-1][1].extend(each.find_all("li") or [each])
        else:
            parts.append(("text", each.find_all("li") or [each]))
    room, size = HEIGHT - TOP - EDGE, LARGEST
    figures = sum(name == "figure" for name, _ in parts)
    while size > SMALLEST and sum(tall(*part, size) for part in parts) > room - 2.5 * figures:
        size -= 2
    rest, top = room - sum(tall(*part, size) for part in parts), TOP
    for name, each in parts:
        height = max(rest / figures, 1) if name == "figure" else tall(name, each, size)
        box = map(Inches, (EDGE, top, INSIDE, height - 0.1))
        if name == "text":
            fill(page.shapes.add_textbox(*box), each, size, language)
        elif name == "table":
            add_table(page, each, box, min(size, IN_TABLE), language)
        else:
            add_picture(page, each, pictures[id(each)], top, height - 0.15)
        top += height


def kind(part: Tag) -> str:
    """Tell whether a part of a slide becomes text, a table, a figure or a formula."""
    math = part.find(class_="math") if part.name == "p" else None
    if "math" in part.get("class", []) or (
        math and "\\" in plain(math) and plain(math) == plain(part)
    ):
        return "formula"
    return part.name if part.name in ("table", "figure") else "text"


def tall(name: str, part: Tag | list[Tag], size: float) -> float:
    """Return the inches that a part takes; a figure takes what is left."""
    if name == "text":
        line = INSIDE * 72 / size / 0.5
        return sum(math.ceil(len(plain(each)) / line) * size / 58 + 0.12 for each in part)
    if name == "table":
        return sum(rows(part, min(size, IN_TABLE)))
    return FORMULA if name == "formula" else 0


def rows(table: Tag, size: float) -> list[float]:
    """Return the inches that each row of a table takes, whose cells may have several lines."""
    cells = [row.find_all(["th", "td"]) for row in table.find_all("tr")]
    line = (INSIDE / max(map(len, cells)) - 0.2) * 72 / size / 0.5
    lines = [max(math.ceil(len(plain(each)) / line) for each in row) for row in cells]
    return [max(ROW, each * size / 58 + 0.2) for each in lines]


def to_the_left(paragraph, language: str) -> None:
    """Begin a paragraph on the right, in languages that are read from there."""
    if language.split("-")[0] in slides.TO_THE_LEFT:
        for key, value in {"rtl": "1", "algn": "r"}.items():
            paragraph._p.get_or_add_pPr().set(key, value)


def fill(shape, parts: list[Tag], size: float, language: str) -> None:
    """Put paragraphs into a shape: an item of a list has its sign, emphasis is kept."""
    shape.text_frame.word_wrap = True
    for number, part in enumerate(parts):
        frame = shape.text_frame
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        paragraph.alignment, paragraph.space_after = 1, Pt(6)
        to_the_left(paragraph, language)
        texts = [(text, text.parent.name) for text in part.find_all(string=True)]
        if part.name == "li":
            order = len(part.find_previous_siblings("li")) + 1
            sign = f"{order}. " if part.parent.name == "ol" else "• "
            texts = [(sign, ""), *(each for each in texts if each[0].find_parent("li") is part)]
        for text, inside in texts:
            run = paragraph.add_run()
            run.text = text.replace("\n", " ").replace(r"\(", "").replace(r"\)", "")
            run.font.size, run.font.italic = Pt(size), inside == "em" or None
            run.font.bold = inside in ("strong", "th") or None
            run._r.get_or_add_rPr().set("lang", language)


def add_table(page, table: Tag, box, size: float, language: str) -> None:
    found = [row.find_all(["th", "td"]) for row in table.find_all("tr")]
    shape = page.shapes.add_table(len(found), max(map(len, found)), *box)
    if language.split("-")[0] in slides.TO_THE_LEFT:
        shape.table._tbl.tblPr.set("rtl", "1")
    for cells, row, height in zip(shape.table.rows, found, rows(table, size), strict=True):
        cells.height = Inches(height)
        for cell, part in zip(cells.cells, row, strict=False):
            fill(cell, [part], size, language)


def add_picture(page, part: Tag, path: Path, top: float, height: float) -> None:
    """Put a figure or a formula into the middle of its place, with its text."""
    picture = page.shapes.add_picture(str(path), 0, Inches(top))
    image = part.find("img")
    picture._element.nvPicPr.cNvPr.set("descr", image["alt"] if image else plain(part))
    scale = min(Inches(height) / picture.height, Inches(INSIDE) / picture.width)
    scale = scale if image else min(scale, 0.6)
    picture.width, picture.height = int(picture.width * scale), int(picture.height * scale)
    picture.left = (Inches(WIDTH) - picture.width) // 2


def drawn(parts: list[Tag], site: Path, folder: Path) -> dict[int, Path]:
    """Return pictures of parts of slides, by the parts' ids, as a browser draws them."""
    page, found = site / teaching.FOLDER / "drawn.html", {}
    sections = "".join(f"<section>{part}</section>" for part in parts)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=teach.browser(), args=["--no-sandbox"])
        tab = running.new_page(viewport={"width": 1920, "height": 1080})
        page.write_text(PAGE.format(sections), encoding="utf-8")
        try:
            tab.goto(page.resolve().as_uri())
        finally:
            page.unlink()
        tab.evaluate("() => MathJax.startup.promise")
        for number, part in enumerate(parts):
            found[id(part)] = folder / f"{number}.png"
            tab.locator("section").nth(number).screenshot(path=found[id(part)])
        running.close()
    return found
