"""Make what a lecturer needs besides the site: PDFs, packages of quizzes, the instructor's edition.

    python tools/teach.py

The site has to be built before (``make book``); slides, quizzes, handouts as pages and classroom
notebooks are made with it, in ``_build/html/teach``. All that is made here goes to
``_build/instructor``, which a build leaves as it is, and never into the site: the edition holds
every solution.
"""

import html
import shutil
import subprocess
import sys
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import Tag

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import needs  # noqa: E402 - an extension of the book, which lies on no path
import quiz_packages  # noqa: E402
import slides  # noqa: E402
import teaching  # noqa: E402

SITE = ROOT / "_build" / "html"
INSTRUCTOR = ROOT / "_build" / "instructor"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def main() -> int:
    """Make both; return 1 if there is no site to make them from."""
    if not (SITE / teaching.FOLDER / "index.html").is_file():
        print("There is no site in _build/html: run 'make book' first.", file=sys.stderr)
        return 1
    INSTRUCTOR.mkdir(parents=True, exist_ok=True)
    made = pdfs(SITE / teaching.FOLDER, INSTRUCTOR, browser())
    print(f"{made} handouts as PDF in {INSTRUCTOR}")
    stems = chapters(SITE)
    made = quiz_packages.write_packages(INSTRUCTOR, stems)
    print(f"{made} quizzes for course systems in {INSTRUCTOR}")
    try:
        page = edition(SITE, stems)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    (INSTRUCTOR / "index.html").write_text(page, encoding="utf-8")
    shutil.copy(ROOT / "book" / "static" / "teaching.css", INSTRUCTOR)
    print(f"the instructor's edition of {len(stems)} chapters: {INSTRUCTOR / 'index.html'}")
    return 0


def browser() -> str | None:
    """Return a Chromium or Chrome of this machine, or None."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def pdfs(folder: Path, target: Path, program: str | None) -> int:
    """Print every handout of a folder to a PDF in another; return how many.

    Without a browser none is made, and a line says so: the handouts are pages all the same. What
    is printed has the page's title and language, headings that can be listed, and tags by which
    software reads it aloud; formulas are drawn, and only the page has them as MathML.
    """
    if program is None:
        print("No Chromium or Chrome was found, so that handouts stay pages: print them there.")
        return 0
    pages = sorted(folder.glob("handout_*.html"))
    for page in pages:
        options = ["--headless", "--no-sandbox", "--no-pdf-header-footer", "--disable-gpu"]
        options += ["--virtual-time-budget=20000", "--allow-file-access-from-files"]
        options += ["--generate-pdf-document-outline"]  # tags, title and language need no option
        printed = target / f"{page.stem}.pdf"
        command = [program, *options, f"--print-to-pdf={printed}", page.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return len(pages)


def chapters(site: Path) -> list[str]:
    """Return the chapters in the order of the book, as the page of the materials lists them."""
    page = BeautifulSoup((site / teaching.FOLDER / "index.html").read_text("utf-8"), "html.parser")
    links = [each["href"] for each in page.select("td a[href^=classroom_]")]
    return [each.removeprefix("classroom_").removesuffix(".ipynb") for each in links]


def edition(site: Path, stems: list[str], folder: Path = needs.NOTES) -> str:
    """Return the instructor's edition as one page.

    Raises
    ------
    ValueError
        Naming chapter, exercise and id, if an exercise needs what no page has.
    """
    articles = {stem: article(site, stem) for stem in stems}
    parts = [chapter(articles, stem, folder) for stem in stems]
    links = [f'<li><a href="#{stem}">{title(articles[stem])}</a></li>' for stem in stems]
    terms = f'<p class="licence">{html.escape(teaching.licence())}</p>'
    body = (
        f"<main><h1>Instructor's edition</h1>{terms}<nav><ol>{''.join(links)}</ol></nav>"
        f"{''.join(parts)}</main>"
    )
    page = teaching.PAGE.format(
        title="Instructor's edition", kind="overview edition", script="", body=body
    )
    return page.replace("../_static/vendor", "../html/_static/vendor").replace(
        "../_static/teaching.css", "teaching.css"
    )


def article(site: Path, stem: str) -> Tag:
    """Return a chapter's article with addresses from the edition, nothing folded but claims."""
    text = (site / "notebooks" / f"{stem}.html").read_text(encoding="utf-8")
    found = BeautifulSoup(text, "html.parser").find("article")
    for each in found.select("a.headerlink, script"):
        each.decompose()
    for each in found.select("a[href]"):
        each["href"] = teaching.from_here(each["href"], stem).replace("../", "../html/", 1)
    for each in found.select("img[src]"):
        each["src"] = each["src"].replace("../", "../html/", 1)
    for each in found.select("details"):
        if not each.find_parent(class_="claims"):
            each["open"] = ""
    for each in found.select(".exercise section, .solution section"):
        del each["id"]  # every exercise of every chapter has the same
    return found


def title(page: Tag) -> str:
    return page.find("h1").decode_contents()


def chapter(articles: dict[str, Tag], stem: str, folder: Path = needs.NOTES) -> str:
    """Return one chapter: card, notes, exercises with what they need and solutions, quiz."""
    page, known = articles[stem], needs.notes(stem, folder)
    parts = [f'<h2 id="{stem}">{title(page)}</h2>']
    parts += [str(each) for each in page.select(".chapter-card, .content-note")]
    if "time" in known:
        parts.append(f"<p><strong>Time.</strong> {teaching.inline(known['time'])}</p>")
    needs.check_labels(page, stem, known.get("wrong", {}))
    needed = needs.of_exercises(page, stem, known.get("needs", {}))
    parts += exercises(articles, stem, needed, known.get("wrong", {}))
    if "hand" in known:
        parts.append("<h3>By hand, on the handout</h3>")
        parts += [slides.markdown(known["hand"][part]) for part in ("task", "answer")]
    parts += asked(known.get("asked", []))
    if "hard" in known:
        hard = teaching.inline(known["hard"])
        parts.append(f"<p><strong>Where it gets hard.</strong> {hard}</p>")
    return "".join(parts) + solved(stem)


def exercises(articles: dict[str, Tag], stem: str, needed: dict, wrong: dict) -> list[str]:
    """Return each exercise, what it refers to, wrong answers, and its cells and solution."""
    parts = []
    for label, places in needed.items():
        exercise = articles[stem].find(id=label)
        parts.append(str(exercise))
        shown = [
            needs.shown(needs.element(articles, place, f"{stem}, {label}")) for place in places
        ]
        if shown:
            parts.append(
                f'<div class="needs"><p><strong>It refers to</strong></p>{"".join(shown)}</div>'
            )
        parts += answers(wrong.get(label, []))
        parts += [str(each) for each in needs.following(exercise)]
    return parts


def answers(wrong: list[dict]) -> list[str]:
    rows = "".join(
        f"<li>{teaching.inline(each['answer'])}. <em>Say:</em> {teaching.inline(each['say'])}</li>"
        for each in wrong
    )
    return [f"<p><strong>Expect</strong></p><ul>{rows}</ul>"] if rows else []


def asked(questions: list[dict]) -> list[str]:
    rows = "".join(
        f"<li><em>{teaching.inline(each['ask'])}</em> {teaching.inline(each['say'])}</li>"
        for each in questions
    )
    return [f"<p><strong>Students ask</strong></p><ul>{rows}</ul>"] if rows else []


def solved(stem: str) -> str:
    """Return a chapter's quiz with its right answers and their reasons."""
    questions = teaching.quiz(stem)
    if questions is None:
        return ""
    rows = []
    for each in questions["questions"]:
        right = next(option for option in each["options"] if option.get("right"))
        ask, text, why = (teaching.inline(t) for t in (each["ask"], right["text"], right["why"]))
        rows.append(f"<li>{ask}<br><strong>{text}</strong>: {why}</li>")
    return f"<h3>{html.escape('Quiz')}</h3><ol>{''.join(rows)}</ol>"


if __name__ == "__main__":
    sys.exit(main())
