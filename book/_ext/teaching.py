"""Sphinx extension: what a lecturer hands out, made from the finished pages of the site.

For every chapter a quiz, where ``book/quizzes`` has one, and a classroom notebook, which has the
code and the exercises and neither prose nor solutions; for studies a handout, made from the page;
and slides with speaker's notes, where ``book/slides`` has a deck. All work from a folder on disk.
``tools/teach.py`` adds what students do not get.
"""

import hashlib
import html
import json
import re
from pathlib import Path

import slides
import yaml
from bs4 import BeautifulSoup
from bs4.element import Tag
from cells import unsaid

FOLDER = "teach"
QUIZZES = Path(__file__).parents[1] / "quizzes"
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
    version = int(hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8], 16)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": version}


def write_materials(app, exception) -> None:
    """Write slides, handouts, quizzes and notebooks into the folder ``teach`` of the site."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    names = [name for name in app.env.all_docs if name.startswith("notebooks/")]
    order = [name for name in contents(app.env) if name in names]
    stems = [Path(name).name for name in order]
    decks = {path.stem: slides.read(path, stems) for path in sorted(slides.SLIDES.glob("*.md"))}
    titles = {}
    for name, stem in zip(order, stems, strict=True):
        page = (Path(app.outdir) / f"{name}.html").read_text(encoding="utf-8")
        titles[stem] = article_of(page, stem).find("h1").decode_contents()
        source = Path(app.srcdir) / f"{name}.ipynb"
        write(folder / f"classroom_{stem}.ipynb", classroom(source.read_text(encoding="utf-8")))
        if stem.startswith("study"):
            write(folder / f"handout_{stem}.html", handout(page, stem))
        if questions := quiz(stem):
            write(folder / f"quiz_{stem}.html", quiz_page(questions))
        if stem in decks:
            slides.fill(decks[stem], article_of(page, stem))
            for kind, parts in slides.pages(decks[stem]).items():
                write(folder / f"{kind}_{stem}.html", PAGE.format(**parts))
    write(folder / "index.html", overview(folder, titles))


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


# What stands in a chapter


def article_of(page: str, stem: str) -> Tag:
    """Return a chapter's article without anchors and numbers of captions, with links from here."""
    article = BeautifulSoup(page, "html.parser").find("article")
    for each in article.select("a.headerlink, .caption-number"):
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


def handout(page: str, stem: str) -> str:
    """Return a study on one page of paper: question, formulas, a figure, summary, discussion.

    Parameters
    ----------
    page
        The built page of the chapter.
    stem
        The chapter's name, for links back.
    """
    article = article_of(page, stem)
    title = article.find("h1").decode_contents()
    formulas = [str(each) for each in article.select("div.math")[:2]]
    figure = article.find("figure")
    parts = [
        f"<h1>{title}</h1>",
        opening(article.find("section")),
        *(["<h2>The measure</h2>", *formulas] if formulas else []),
        str(figure) if figure else "",
        *listed(article, "summary", "What to remember"),
        *(listed(article, "exercises", "To discuss", "ol") or discussed(article)),
    ]
    title = f"Handout: {html.escape(article.find('h1').get_text())}"
    body = f"<main>{''.join(parts)}</main>"
    return PAGE.format(title=title, kind="handout", script="", body=body)


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


# Classroom notebooks

FENCE = r"^(?P<fence>`{{3,}}|:{{3,}})\{{{kind}\}}[^\n]*\n.*?^(?P=fence)[ \t]*$\n?"
SOLUTION = re.compile(FENCE.format(kind="solution"), re.M | re.S)
EXERCISE = re.compile(
    r"^(`{3,}|:{3,})\{exercise\} *([^\n]*)\n(?::[^\n]*\n)*(.*?)^\1[ \t]*$", re.M | re.S
)
HEADING = re.compile(r"^#+ .*$", re.M)


def classroom(notebook: str) -> str:
    """Return a notebook with its code, headings and exercises, and neither prose nor solutions.

    A cell that checks a written solution goes too, and so do cells that are one.
    """
    found = json.loads(notebook)
    cells = [bare(each) for each in outside_solutions(found["cells"])]
    found["cells"] = [each for each in cells if each is not None]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def outside_solutions(cells: list[dict]) -> list[dict]:
    """Return the cells that do not stand between a ``solution-start`` and its ``solution-end``."""
    kept, inside = [], False
    for cell in cells:
        source = "".join(cell["source"])
        begins, ends = "{solution-start}" in source, "{solution-end}" in source
        inside = (inside or begins) and not ends
        if not inside and not ends:
            kept.append(cell)
    return kept


def bare(cell: dict) -> dict | None:
    source = "".join(cell["source"])
    if cell["cell_type"] == "code":
        installs, stamp = "%pip" in source, source.strip() == "run"
        if installs or stamp:
            return cell
        hidden = "hide-cell" in cell["metadata"].get("tags", [])
        code = unsaid(source)
        return None if hidden or not code else cell | {"source": code.splitlines(keepends=True)}
    text = SOLUTION.sub("", source)
    pieces = [*HEADING.finditer(EXERCISE.sub("", text)), *EXERCISE.finditer(text)]
    lines = [
        each.group(0) if each.re is HEADING else f"**Exercise: {each[2]}**\n\n{each[3].strip()}"
        for each in sorted(pieces, key=lambda each: text.find(each.group(0)))
    ]
    if not lines:
        return None
    return cell | {"source": "\n\n".join(lines).splitlines(keepends=True)}


# The page that lists them


def overview(folder: Path, titles: dict[str, str]) -> str:
    """Return the page that links to all materials, a row a chapter; titles are in HTML."""
    rows = []
    for stem, title in titles.items():
        notebook = f'<a href="classroom_{stem}.ipynb" download>notebook</a>'
        kinds = ("slides", "notes", "handout", "quiz")
        links = [*(linked(folder, f"{kind}_{stem}.html", kind) for kind in kinds), notebook]
        cells = "".join(f"<td>{each}</td>" for each in links)
        rows.append(f'<tr><th scope="row">{title}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{each}</th>' for each in COLUMNS)
    body = (
        '<main><h1>Materials for teaching</h1><p><a href="../book/teaching.html">How to teach with '
        "this book</a>. Slides: space or Page Down moves on; their notes open in a second window "
        "and follow. Notebooks have no prose and no solutions.</p>"
        '<div class="table-scroll" role="group" tabindex="0" '
        f'aria-label="materials"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></main>"
    )
    return PAGE.format(title="Materials for teaching", kind="overview", script="", body=body)


def linked(folder: Path, name: str, text: str) -> str:
    """Return a link to a file of the folder, or a dash."""
    return f'<a href="{name}">{text}</a>' if (folder / name).is_file() else "–"
