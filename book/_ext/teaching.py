"""Sphinx extension: what a lecturer hands out, made from the finished pages of the site.

For every chapter a deck of slides with speaker's notes and, where ``book/quizzes`` has one, a quiz;
and classroom notebooks (:mod:`classroom`); for every study a handout. They are made from the pages
and notebooks themselves, so that they say what these say. All work from a
folder on disk. ``tools/teach.py`` adds what students do not get.
"""

import copy
import hashlib
import html
import re
from dataclasses import dataclass
from pathlib import Path

import needs
import yaml
from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag
from classroom import classroom

FOLDER = "teach"
QUIZZES = Path(__file__).parents[1] / "quizzes"
CITATION = Path(__file__).parents[2] / "CITATION.cff"
BULLETS = 4
WORDS = 7
SENTENCE_END = re.compile(r"(?<=[.?!…])[”\")]*(?=\s+[A-ZÄÖÜ\"“(]|\s*$)")
ASIDE = ("cell_input", "solution", "exercise", "chapter-card", "table-behind", "table-scroll")
"""Classes of what is no prose of the section: code, exercises, cards, tables."""

SCROLLS = {"formula": "div.math", "table": ".pst-scrollable-table-container"}
"""What scrolls where it is wider than a phone, and is reached with the keyboard for that."""

COLUMNS = ("Chapter", "Slides", "Handout", "Quiz", "Notebook")

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
    version = int(hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8], 16)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": version}


def write_materials(app, exception) -> None:
    """Write decks, quizzes and classroom notebooks into the folder ``teach`` of the site."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    names = [name for name in app.env.all_docs if name.startswith("notebooks/")]
    order = [name for name in contents(app.env) if name in names]
    for name in order:
        page = Path(app.outdir) / f"{name}.html"
        stem = Path(name).name
        write(folder / f"slides_{stem}.html", deck(page.read_text(encoding="utf-8"), stem))
        notebook = classroom(Path(app.srcdir) / "notebooks", stem, licence(stem))
        write(folder / f"classroom_{stem}.ipynb", notebook)
        if questions := quiz(stem):
            write(folder / f"quiz_{stem}.html", quiz_page(questions))
    write_handouts(Path(app.outdir), [Path(name).name for name in order])
    write(folder / "index.html", overview(folder, [Path(name).name for name in order]))


def write_handouts(site: Path, stems: list[str]) -> None:
    """Write a handout of each study into the site's folder of materials."""
    pages = {stem: site / "notebooks" / f"{stem}.html" for stem in stems}
    articles = {
        stem: article_of(page.read_text(encoding="utf-8"), stem, numbers=True)
        for stem, page in pages.items()
    }
    for stem in stems:
        if stem.startswith("study"):
            sheet = handout(articles, stem, needs.notes(stem).get("hand"))
            write(site / FOLDER / f"handout_{stem}.html", sheet)


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


# Slides


@dataclass
class Slide:
    """One slide: a heading, what is projected, and what the speaker may say.

    Attributes
    ----------
    heading
        In HTML.
    body
        In HTML.
    notes
        Paragraphs in HTML.
    """

    heading: str
    body: str
    notes: list[str]


def deck(page: str, stem: str) -> str:
    """Return a chapter's deck: an HTML page whose sections are its slides.

    Parameters
    ----------
    page
        The built page of the chapter.
    stem
        The chapter's name, for links back.
    """
    article = article_of(page, stem)
    chapter = article.find("section")
    title = chapter.find("h1")
    link = f'<p class="source"><a href="../notebooks/{stem}.html">The chapter</a></p>'
    found = [Slide(title.decode_contents(), opening(chapter) + link, [])]
    for section in chapter.find_all("section", recursive=False):
        found += slides(section)
    body = "\n".join(shown(number, slide) for number, slide in enumerate(found, start=1))
    toggle = (
        '<label class="toggle"><input type="checkbox" id="notes"> '
        "speaker's notes</label>\n<main>\n"
    )
    return PAGE.format(
        title=f"Slides: {html.escape(title.get_text())}",
        kind="deck",
        script="",
        body=toggle + body + "\n</main>",
    )


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


def slides(section: Tag) -> list[Slide]:
    """Return the slides of a section: its points, its figures, its exercises, its parts."""
    heading = section.find(["h2", "h3"]).decode_contents()
    prose = [each for each in section.find_all("p") if belongs(each, section)]
    points = [point for each in prose if (point := first_sentence(each))]
    if listed := own_list(section):
        points = listed
    notes = [str(each) for each in prose]
    formulas = [str(each) for each in section.find_all(class_="math") if belongs(each, section)]
    formulas = [each for each in formulas if each.startswith("<div")]
    found = []
    size = -(-len(points) // -(-len(points) // BULLETS)) if points else BULLETS
    for at in range(0, len(points), size):
        items = "".join(f"<li>{each}</li>" for each in points[at : at + size])
        shown_formulas = "".join(formulas[:2]) if at == 0 else ""
        said = notes[at : at + size] if not listed else []
        found.append(Slide(heading, f"<ul>{items}</ul>{shown_formulas}", said))
    for table in section.find_all(class_="table-scroll"):
        if nearest(table) is section and not (table.find_parent("details") or aside(table)):
            found.append(Slide(heading, str(table), []))
    for figure in section.find_all("figure"):
        if nearest(figure) is section and not aside(figure):
            found.append(Slide(heading, str(figure), []))
    for exercise in section.find_all(class_="exercise"):
        if nearest(exercise) is section:
            found.append(exercise_slide(exercise))
    for part in section.find_all("section", recursive=False):
        found += slides(part)
    return found


def own_list(section: Tag) -> list[str]:
    """Return the items of a section that is a list, such as a summary."""
    lists = [each for each in section.find_all("ul", recursive=False)]
    return [each.decode_contents() for one in lists for each in one.find_all("li", recursive=False)]


def exercise_slide(exercise: Tag) -> Slide:
    title = exercise.find(class_="admonition-title").get_text(" ", strip=True).strip("()")
    body = exercise.find("section").decode_contents()
    return Slide(f"Exercise: {html.escape(title)}", f'<div class="task">{body}</div>', [])


def nearest(element: Tag) -> Tag:
    """Return the section that an element stands in; an exercise's own does not count."""
    for parent in element.parents:
        if parent.name == "section" and not parent.get("id", "").endswith("-content"):
            return parent
    raise ValueError("an element outside every section")


def belongs(element: Tag, section: Tag) -> bool:
    """Tell whether an element is prose of this very section."""
    if nearest(element) is not section or element.find_parent("figcaption"):
        return False
    if {"admonition-title", "check"} & set(element.get("class", [])):
        return False
    above = {name for parent in element.parents for name in parent.get("class", [])}
    inside = element.find_parent(["details", "table", "li"])
    return not inside and not above & {*ASIDE, "admonition"}


def first_sentence(paragraph: Tag) -> str:
    """Return a paragraph's first sentence, with its markup; two, if the first is short."""
    whole = copy.copy(paragraph)
    cut = False
    for child in list(whole.children):
        if cut:
            child.extract()
        elif isinstance(child, NavigableString):
            before = len(" ".join(each.get_text() for each in child.previous_siblings).split())
            for end in SENTENCE_END.finditer(str(child)):
                if before + len(str(child)[: end.end()].split()) >= WORDS:
                    child.replace_with(str(child)[: end.end()])
                    cut = True
                    break
        elif child.name in ("strong", "b") and child.get_text().rstrip().endswith((".", "?", ":")):
            cut = len(child.get_text().split()) > 3
    return whole.decode_contents().strip()


def shown(number: int, slide: Slide) -> str:
    notes = f'<aside class="notes">{"".join(slide.notes)}</aside>' if slide.notes else ""
    level = "h1" if number == 1 else "h2"
    heading = f"<{level}>{slide.heading}</{level}>"
    label = f'aria-label="slide {number}"'
    return f'<section id="slide-{number}" {label}>{heading}{slide.body}{notes}</section>'


# Handouts


def handout(articles: dict[str, Tag], stem: str, hand: dict | None = None) -> str:
    """Return a study on paper: question, measure, a figure, what to do by hand, exercises, summary.

    Exercises that ask for a function are left out; the others come with what they refer to.

    Parameters
    ----------
    articles
        Every chapter's article (:func:`article_of`), with its numbers.
    stem
        The study's chapter.
    hand
        What is to be done by hand: ``task``, and ``needs`` as in :mod:`needs`.

    Raises
    ------
    ValueError
        Naming the chapter, the exercise and what it refers to, if a page lacks that.
    """
    article = articles[stem]
    formulas = article.select("div.math")[:2]
    seen = [*formulas, *article.select("figure")[:1]]
    parts = [f"<h1>{article.find('h1').decode_contents()}</h1>", opening(article.find("section"))]
    parts += ["<h2>The measure</h2>"] if formulas else []
    parts += [needs.shown(each) for each in seen]
    if hand:
        places = [needs.place(each, stem) for each in hand["needs"]]
        parts += ["<h2>By hand</h2>", f"<p>{inline(hand['task'])}</p>"]
        parts += unseen(articles, places, f"{stem}, hand", seen)
    parts += paper_exercises(articles, stem, seen)
    parts += listed(article, "summary", "What to remember")
    parts += listed(article, "exercises", "To discuss", "ol") or discussed(article)
    parts.append(f'<p class="licence">{html.escape(licence(stem))}</p>')
    title = f"Handout: {html.escape(article.find('h1').get_text())}"
    body = f"<main>{''.join(parts)}</main>"
    return PAGE.format(title=title, kind="handout", script="", body=body)


def paper_exercises(articles: dict[str, Tag], stem: str, seen: list[Tag]) -> list[str]:
    """Return the exercises that need no programming, each with what it refers to and is unseen."""
    parts, article = [], articles[stem]
    for label, places in needs.of_exercises(article, stem, needs.written(stem)).items():
        exercise = article.find(id=label)
        beside = needs.following(exercise)
        if any("def " in needs.code(each) for each in beside if is_check(each)):
            continue
        parts.append(needs.shown(exercise))
        parts += unseen(articles, places, f"{stem}, {label}", seen)
        tables = [each.find(class_="table-scroll") for each in beside if given(each)]
        parts += [needs.shown(each) for each in tables if each]
    return ["<h2>Exercises</h2>", *parts] if parts else []


def is_check(element: Tag) -> bool:
    return "tag_exercise-check" in element.get("class", [])


def given(element: Tag) -> bool:
    """Tell whether an element is a cell that an exercise shows, and neither check nor answer."""
    kinds = set(element.get("class", []))
    return "cell" in kinds and not kinds & {"tag_exercise-check", "tag_hide-cell"}


def unseen(articles: dict, places: list[tuple], where: str, seen: list[Tag]) -> list[str]:
    """Return what stands at places of chapters as HTML, each once; ``seen`` grows by it.

    Figures that the book folds, which are lists of words about people, stay off the paper.
    """
    found = [needs.element(articles, place, where) for place in places]
    new = [each for each in found if not any(each is other for other in seen)]
    new = [each for each in new if each.name != "figure" or not each.find_parent("details")]
    seen += new
    return [needs.shown(each) for each in new]


def aside(element: Tag) -> bool:
    """Tell whether an element stands in an exercise, a solution or another note."""
    return element.find_parent(class_=["admonition", "solution", "exercise"]) is not None


def listed(article: Tag, section: str, heading: str, kind: str = "ul") -> list[str]:
    """Return the list that stands in a section of the chapter, under a heading of its own."""
    found = article.find("section", id=section)
    every = found.find_all(kind) if found else []
    lists = [each for each in every if not each.find_parent(["li", "details"]) and not aside(each)]
    return [f"<h2>{heading}</h2>", str(lists[-1])] if lists else []


def discussed(article: Tag) -> list[str]:
    """Return what a chapter asks in one paragraph, *For discussion*, under a heading of its own."""
    asked = str(article.find("section", id="exercises") or "")
    found = re.search(r"<strong>For discussion\.</strong>\s*(\w.*?)</p>", asked, re.S)
    return [f"<h2>To discuss</h2><p>{found[1]}</p>"] if found else []


# Quizzes


def quiz(stem: str, folder: Path = QUIZZES) -> dict | None:
    """Return a chapter's quiz, or None: a title and questions, each with options and the right one.

    Raises
    ------
    ValueError
        Naming file and question, if a question has no right option, or more than one, or no reason.
    """
    path = folder / f"{stem}.yml"
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


def overview(folder: Path, stems: list[str]) -> str:
    """Return the page that links to all materials, a row a chapter."""
    rows = []
    for stem in stems:
        text = (folder / f"slides_{stem}.html").read_text(encoding="utf-8")
        title = re.search(r"<title>Slides: (.*?)</title>", text)[1]
        quiz_link = f'<a href="quiz_{stem}.html">quiz</a>'
        quiz_link = quiz_link if (folder / f"quiz_{stem}.html").is_file() else "–"
        handout_link = f'<a href="handout_{stem}.html">handout</a>'
        handout_link = handout_link if (folder / f"handout_{stem}.html").is_file() else "–"
        links = [
            f'<a href="slides_{stem}.html">slides</a>',
            handout_link,
            quiz_link,
            f'<a href="classroom_{stem}.ipynb" download>notebook</a>',
        ]
        cells = "".join(f"<td>{each}</td>" for each in links)
        rows.append(f'<tr><th scope="row">{title}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{each}</th>' for each in COLUMNS)
    body = (
        '<main><h1>Materials for teaching</h1><p><a href="../book/teaching.html">How to teach with '
        "this book</a>. Slides: one below the other; space or Page Down moves on, the box at the "
        "top shows the speaker's notes, printing gives a page a slide. Notebooks have no prose and "
        'no solutions.</p><div class="table-scroll" role="group" tabindex="0" '
        f'aria-label="materials"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></main>"
    )
    return PAGE.format(title="Materials for teaching", kind="overview", script="", body=body)
