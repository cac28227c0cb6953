"""Sphinx extension: what a lecturer hands out, made from the finished pages of the site.

For every chapter a quiz, where ``book/quizzes`` has one, and a classroom notebook
(:mod:`classroom`); for studies a handout, made from the page; and slides with speaker's notes,
where ``book/slides`` has a deck. All work from a folder on disk. ``tools/teach.py`` adds what
students do not get.
"""

import html
import re
import shutil
from pathlib import Path

import font_sizes
import needs
import slides
import yaml
from bs4 import BeautifulSoup
from bs4.element import Tag
from classroom import classroom
from slide_figures import Chapters, fill

FOLDER = "teach"
QUIZZES = Path(__file__).parents[1] / "quizzes"
CITATION = Path(__file__).parents[2] / "CITATION.cff"
SCROLLS = {"formula": "div.math", "table": ".pst-scrollable-table-container"}
"""What scrolls where it is wider than a phone, and is reached with the keyboard for that."""

COLUMNS = ("Chapter", "Slides", "Notes", "Handout", "Quiz", "Notebook")

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="../_static/teaching.css">
<script>window.MathJax = {{"options": {{"enableMenu": false}}}};</script>
<script defer src="../_static/vendor/mathjax/tex-mml-chtml.js"></script>
{script}</head>
<body class="{kind}">
{body}
</body>
</html>
"""


def setup(app):
    # After pages without a source have been removed, before the policy is written into pages.
    app.connect("build-finished", write_materials, priority=700)
    app.connect("build-finished", date_materials, priority=940)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_materials(app, exception) -> None:
    """Write slides, handouts, quizzes and notebooks into the folder ``teach`` of the site."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    if is_newest(folder / "index.html", sources(app)):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    names = [name for name in app.env.all_docs if name.startswith("notebooks/")]
    order = [name for name in contents(app.env) if name in names]
    stems = [Path(name).name for name in order]
    book = chapters(Path(app.outdir), stems)
    titles = []
    for stem in stems:
        titles.append((stem, book.article(stem).find("h1").decode_contents()))
        notebook = classroom(Path(app.srcdir) / "notebooks", stem, licence(stem))
        write(folder / f"classroom_{stem}.ipynb", notebook)
        if questions := quiz(stem):
            write(folder / f"quiz_{stem}.html", quiz_page(questions))
    for path in slides.files():
        deck = write_deck(path, book, folder)
        if slides.is_own(path):
            titles.append((deck.stem, html.escape(deck.title)))
    write_handouts(folder, book.pages)
    write(folder / "index.html", overview(folder, titles))


def chapters(site: Path, stems: list[str]) -> Chapters:
    """Return the built pages of chapters, for what slides take from them."""
    pages = {stem: site / "notebooks" / f"{stem}.html" for stem in stems}
    return Chapters({stem: page.read_text("utf-8") for stem, page in pages.items()}, article_of)


def write_deck(path: Path, book: Chapters, folder: Path) -> slides.Deck:
    """Write the pages of a deck, of its slides and of its notes, into a folder of the site."""
    deck = slides.read(path, list(book.pages))
    fill(deck, book, folder)
    font_sizes.check_deck(deck, folder)
    for kind, parts in slides.pages(deck).items():
        page = PAGE.format(**parts).replace('lang="en"', f'lang="{deck.language}"', 1)
        write(folder / f"{kind}_{deck.stem}.html", page)
    return deck


def date_materials(app, exception) -> None:
    """Date the materials after the pages into which the policy has just been written."""
    index = Path(app.outdir) / FOLDER / "index.html"
    if exception is None and index.is_file():
        index.touch()


def sources(app) -> list[Path]:
    """Return what materials are made of: pages of chapters, notebooks, decks, quizzes, our code."""
    book = Path(app.srcdir) / "book"
    written = [book / name for name in ("slides", "quizzes", "instructor")]
    files = [path for folder in written for path in folder.rglob("*")]
    folders = [book / "_ext", Path(app.srcdir) / "notebooks", Path(app.outdir) / "notebooks"]
    files += [path for folder in folders for path in folder.glob("*.*")]
    tools = [CITATION.parent / "tools" / name for name in ("notebook_copies.py", "book_index.py")]
    # A folder is as new as what was last put into it, or taken out.
    return [*written, *files, *tools, CITATION, CITATION.with_name("pyproject.toml")]


def is_newest(path: Path, others: list[Path]) -> bool:
    """Tell whether a file is there and was written after all the others."""
    written = path.stat().st_mtime_ns if path.is_file() else 0
    return all(other.stat().st_mtime_ns < written for other in others)


def write_handouts(folder: Path, pages: dict[str, str]) -> None:
    """Write a handout of each study, of the chapters' pages, into the folder of materials."""
    articles = {stem: article_of(page, stem, numbers=True) for stem, page in pages.items()}
    for article in articles.values():
        font_sizes.widen(article)
    for stem in articles:
        if stem.startswith("study"):
            known = {key: needs.notes(stem).get(key) or "" for key in ("hand", "symbols")}
            sheet = handout(articles, stem, **known)
            font_sizes.check_handout(stem, sheet, folder)
            write(folder / f"handout_{stem}.html", sheet)
    write(folder / "handout_summaries.html", summaries(articles))


def contents(env) -> list[str]:
    """Return the names of the documents in the order of the book's contents."""
    found, waiting = [], [env.config.root_doc]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            waiting = [*env.toctree_includes.get(name, []), *waiting]
    return found


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def licence(stem: str = "") -> str:
    """Return what may be done with a material and what to cite; of a study, also its paper."""
    book = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    who = " and ".join(each["name"] for each in book["authors"])
    text = (
        f"From {book['title']}, version {book['version']}, by {who}. Text under CC BY 4.0 "
        "(https://creativecommons.org/licenses/by/4.0/), code under the MIT License. "
        f"{book['message']}"
    )
    if study := re.match(r"study(\d)_", stem):
        paper = book["references"][int(study[1]) - 1]
        people = ", ".join(each["family-names"] for each in paper["authors"])
        text += f" The paper of this study: {people} ({paper['year']}), {paper['title']}."
    return text


# What stands in a chapter


def article_of(page: str, stem: str, numbers: bool = False) -> Tag:
    """Return a chapter's article without anchors, with links from here.

    Without ``numbers``, captions have none.
    """
    article = BeautifulSoup(page, "html.parser").find("article")
    for each in article.select("a.headerlink" + ("" if numbers else ", .caption-number")):
        each.decompose()
    for each in article.select("a[href]"):
        each["href"] = from_here(each["href"], stem)
    for kind, place in SCROLLS.items():
        for each in article.select(place):
            each.attrs |= {"role": "group", "tabindex": "0", "aria-label": kind}
    return article


def from_here(address: str, stem: str) -> str:
    """Return an address of the chapter as the folder of the materials has it."""
    if address.startswith("#"):
        return f"../notebooks/{stem}.html{address}"
    return address if re.match(r"\.\./|[a-z]+:", address) else f"../notebooks/{address}"


def opening(chapter: Tag) -> str:
    """Return the question of the chapter's card, and its content note."""
    card = chapter.find(class_="chapter-card")
    note = chapter.find(class_="content-note")
    parts = [str(each) for each in card.find_all("p")[1:2]] if card else []
    return "".join(parts) + (str(note) if note else "")


# Handouts


def handout(
    articles: dict[str, Tag], stem: str, hand: dict | None = None, symbols: str = ""
) -> str:
    """Return a study on paper: question, measure, what to do by hand, exercises, their figures.

    Exercises that ask for a function are left out; the others come with what they refer to. What
    a chapter sums up answers some of them, and stands on a sheet apart (:func:`summaries`).

    Parameters
    ----------
    articles
        Every chapter's article (:func:`article_of`), with its numbers.
    stem
        The study's chapter.
    hand, symbols
        What is to be done by hand, and what letters of the measure mean, as in :mod:`needs`.

    Raises
    ------
    ValueError
        Naming the chapter, the exercise and what it refers to, if a page lacks that.
    """
    article = articles[stem]
    seen = article.select("div.math")[:2]
    parts = [f"<h1>{article.find('h1').decode_contents()}</h1>", opening(article.find("section"))]
    parts += ["<h2>The measure</h2>", *(needs.shown(each) for each in seen)]
    parts.append(slides.markdown(symbols))
    if hand:
        places = [needs.place(each, stem) for each in hand["needs"]]
        parts += ["<h2>By hand</h2>", slides.markdown(hand["task"])]
        parts += unseen(articles, places, f"{stem}, hand", seen)
    parts += ["<h2>Exercises</h2>", *paper_exercises(articles, stem, seen), *discussed(article)]
    parts += [needs.shown(each) for each in seen if each.name == "figure"]
    return printed(article.find("h1").get_text(), parts, stem)


def summaries(articles: dict[str, Tag]) -> str:
    """Return what to remember of every study, a sheet for the end of a class."""
    parts = ["<h1>What to remember</h1>", "<p>For after the exercises: it answers some.</p>"]
    for article in (articles[stem] for stem in articles if stem.startswith("study")):
        listed = article.find("section", id="summary").find("ul")
        parts += [f"<h2>{article.find('h1').decode_contents()}</h2>", str(listed)]
    return printed("What to remember of the four studies", parts)


def printed(title: str, parts: list[str], stem: str = "") -> str:
    """Return a page that is printed, which ends with what may be done with it."""
    terms = f'<p class="licence">{html.escape(licence(stem))}</p>'
    body = f"<main><article>{''.join(parts)}{terms}</article></main>"
    title = f"Handout: {html.escape(title)}"
    return PAGE.format(title=title, kind="handout", script="", body=body)


def paper_exercises(articles: dict[str, Tag], stem: str, seen: list[Tag]) -> list[str]:
    """Return the exercises that need no programming, each with what it refers to and is unseen."""
    parts, article = [], articles[stem]
    for label, places in needs.of_exercises(article, stem, needs.written(stem)).items():
        exercise = article.find(id=label)
        beside = needs.following(exercise)
        checks = [each for each in beside if "tag_exercise-check" in each.get("class", [])]
        if any("def " in needs.code(each) for each in checks):
            continue
        parts.append(needs.shown(exercise))
        parts += unseen(articles, places, f"{stem}, {label}", seen)
        tables = [each.find(class_="table-scroll") for each in beside if given(each)]
        parts += [needs.shown(each) for each in tables if each]
    return parts


def given(element: Tag) -> bool:
    """Tell whether an element is a cell that an exercise shows, and neither check nor answer."""
    kinds = set(element.get("class", []))
    return "cell" in kinds and not kinds & {"tag_exercise-check", "tag_hide-cell"}


def unseen(articles: dict, places: list[tuple], where: str, seen: list[Tag]) -> list[str]:
    """Return what stands at places of chapters as HTML, each once; ``seen`` grows by it.

    Figures come last on the paper, and are only added to ``seen``. Those that the book folds, which
    are lists of words about people, stay off it.
    """
    found = [needs.element(articles, place, where) for place in places]
    new = [each for each in found if not any(each is other for other in seen)]
    new = [each for each in new if each.name != "figure" or not each.find_parent("details")]
    seen += new
    return [needs.shown(each) for each in new if each.name != "figure"]


def discussed(article: Tag) -> list[str]:
    """Return what a chapter asks in one paragraph, *For discussion*, under a heading of its own."""
    asked = str(article.find("section", id="exercises") or "")
    found = re.search(r"<strong>For discussion\.</strong>\s*(\w.*?)</p>", asked, re.S)
    return [f"<h2>To discuss</h2><p>{found[1]}</p>"] if found else []


# Quizzes


def quiz(stem: str) -> dict | None:
    """Return a chapter's quiz, or None: a title and questions, each with options and the right one.

    Raises
    ------
    ValueError
        Naming file and question, if a question has no right option, or more than one, or no reason.
    """
    path = QUIZZES / f"{stem}.yml"
    if not path.is_file():
        return None
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    for number, each in enumerate(found["questions"], start=1):
        right = [option for option in each["options"] if option.get("right")]
        if len(right) != 1 or not all(sound(option) for option in each["options"]):
            raise ValueError(
                f"{path.name}, question {number}: one right option, and a why for each"
            )
    return found | {"chapter": stem}


def sound(option: dict) -> bool:
    """Tell whether an option has a text and a reason, and nothing that a slip of YAML made."""
    texts = [option.get("text"), option.get("why")]
    return all(isinstance(each, str) for each in texts) and set(option) <= {"text", "why", "right"}


def quiz_page(questions: dict) -> str:
    """Return a quiz as a page: an answer shows its reason, a line below counts the right ones."""
    fields = "\n".join(
        field(number, each) for number, each in enumerate(questions["questions"], start=1)
    )
    n = len(questions["questions"])
    link = f'<p><a href="../notebooks/{questions["chapter"]}.html">The chapter</a></p>'
    score = f'<p class="score" role="status">0 of {n} answered right.</p>'
    body = (
        f"<main><h1>{html.escape(questions['title'])}</h1>{link}<form>{fields}</form>{score}</main>"
    )
    script = '<script defer src="../_static/quiz.js"></script>\n'
    title = f"Quiz: {html.escape(questions['title'])}"
    return PAGE.format(title=title, kind="quiz", script=script, body=body)


def field(number: int, question: dict) -> str:
    options = "\n".join(
        f'<div class="option"><label><input type="radio" name="q{number}" '
        f'data-right="{str(bool(each.get("right"))).lower()}"> {inline(each["text"])}</label>'
        f'<p class="why">{"Right" if each.get("right") else "No"}: {inline(each["why"])}</p></div>'
        for each in question["options"]
    )
    return f"<fieldset><legend>{number}. {inline(question['ask'])}</legend>{options}</fieldset>"


def inline(text: str) -> str:
    """Return text as HTML: emphasis by asterisks, code by backticks, formulas by dollars.

    >>> inline("Is $d$ *large*? See `x < 1`.")
    'Is \\\\(d\\\\) <em>large</em>? See <code>x &lt; 1</code>.'
    """
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"\$([^$]+)\$", r"\\(\1\\)", escaped)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escaped)


# The page that lists them


def overview(folder: Path, titles: list[tuple[str, str]]) -> str:
    """Return the page that links to all materials, a row a chapter or own deck; titles in HTML."""
    rows = []
    for stem, title in titles:
        kinds = ("slides", "notes", "handout", "quiz")
        links = [linked(folder, f"{kind}_{stem}.html", kind) for kind in kinds]
        notebook = linked(folder, f"classroom_{stem}.ipynb", "notebook")
        links.append(notebook.replace("<a ", "<a download "))
        cells = "".join(f"<td>{each}</td>" for each in links)
        rows.append(f'<tr><th scope="row">{title}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{each}</th>' for each in COLUMNS)
    body = (
        '<main><h1>Materials for teaching</h1><p><a href="../book/teaching.html">How to teach with '
        "this book</a>. Slides: space or Page Down moves on; their notes open in a second window "
        "and follow. Notebooks have no prose and no solutions. What to remember of the studies is "
        'on <a href="handout_summaries.html">a sheet of its own</a>, for the end.</p>'
        '<div class="table-scroll" role="group" tabindex="0" '
        f'aria-label="materials"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></main>"
    )
    return PAGE.format(title="Materials for teaching", kind="overview", script="", body=body)


def linked(folder: Path, name: str, text: str) -> str:
    """Return a link to a file of the folder, or a dash."""
    return f'<a href="{name}">{text}</a>' if (folder / name).is_file() else "–"
