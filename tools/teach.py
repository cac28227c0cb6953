"""Make what a lecturer needs besides the site: handouts as PDF, and the instructor's edition.

    python tools/teach.py

The site has to be built before (``make book``); slides, quizzes, handouts as pages and classroom
notebooks are made with it, in ``_build/html/teach``. The instructor's edition, which holds every
solution, goes to ``_build/instructor`` and never into the site.
"""

import html
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import teaching  # noqa: E402 - an extension of the book, which lies on no path

SITE = ROOT / "_build" / "html"
INSTRUCTOR = ROOT / "_build" / "instructor"
NOTES = ROOT / "book" / "instructor"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
KEYS = {"time", "wrong", "asked", "hard"}


def main() -> int:
    """Make both; return 1 if there is no site to make them from."""
    if not (SITE / teaching.FOLDER / "index.html").is_file():
        print("There is no site in _build/html: run 'make book' first.", file=sys.stderr)
        return 1
    made = pdfs(SITE / teaching.FOLDER, browser())
    print(f"{made} handouts as PDF in {SITE / teaching.FOLDER}")
    stems = chapters(SITE)
    INSTRUCTOR.mkdir(parents=True, exist_ok=True)
    page = edition(SITE, stems)
    (INSTRUCTOR / "index.html").write_text(page, encoding="utf-8")
    shutil.copy(ROOT / "book" / "static" / "teaching.css", INSTRUCTOR)
    print(f"the instructor's edition of {len(stems)} chapters: {INSTRUCTOR / 'index.html'}")
    return 0


def browser() -> str | None:
    """Return a Chromium or Chrome of this machine, or None."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def pdfs(folder: Path, program: str | None) -> int:
    """Print every handout to a PDF beside it; return how many.

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
        target = page.with_suffix(".pdf")
        command = [program, *options, f"--print-to-pdf={target}", page.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return len(pages)


def chapters(site: Path) -> list[str]:
    """Return the chapters in the order of the book, as the page of the materials lists them."""
    page = BeautifulSoup((site / teaching.FOLDER / "index.html").read_text("utf-8"), "html.parser")
    links = [each["href"] for each in page.select("td a[href^=classroom_]")]
    return [each.removeprefix("classroom_").removesuffix(".ipynb") for each in links]


def notes(stem: str, folder: Path = NOTES) -> dict:
    """Return what a lecturer should know of a chapter; empty if nothing is written.

    *time*: where minutes go; *wrong*: by exercise, answers that students give and what to say;
    *asked*: questions that students ask and answers; *hard*: where discussion gets hard, and how
    to hold it.

    Raises
    ------
    ValueError
        Naming the file, if it holds another key.
    """
    path = folder / f"{stem}.yml"
    found = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if unknown := set(found) - KEYS:
        raise ValueError(f"{path}: {', '.join(sorted(unknown))} is none of {sorted(KEYS)}")
    return found


def edition(site: Path, stems: list[str]) -> str:
    """Return the instructor's edition as one page."""
    parts = [chapter(site, stem) for stem in stems]
    body = f"<main><h1>Instructor's edition</h1>{''.join(parts)}</main>"
    page = teaching.PAGE.format(title="Instructor's edition", kind="overview", script="", body=body)
    return page.replace("../_static/vendor", "../html/_static/vendor").replace(
        "../_static/teaching.css", "teaching.css"
    )


def chapter(site: Path, stem: str) -> str:
    """Return one chapter: card, notes, exercises with solutions, quiz with answers."""
    text = (site / "notebooks" / f"{stem}.html").read_text(encoding="utf-8")
    article = BeautifulSoup(text, "html.parser").find("article")
    for each in article.select("a.headerlink"):
        each.decompose()
    for each in article.select("a[href]"):
        each["href"] = teaching.from_here(each["href"], stem).replace("../", "../html/", 1)
    known = notes(stem)
    card = article.find(class_="chapter-card")
    parts = [f"<h2>{article.find('h1').decode_contents()}</h2>", str(card or "")]
    if "time" in known:
        parts.append(f"<p><strong>Time.</strong> {teaching.inline(known['time'])}</p>")
    for each in article.select(".exercise, .solution"):
        parts.append(str(each))
        if "exercise" in each["class"]:
            parts += answers(known.get("wrong", {}).get(each.get("id"), []))
    parts += asked(known.get("asked", []))
    if "hard" in known:
        hard = teaching.inline(known["hard"])
        parts.append(f"<p><strong>Where it gets hard.</strong> {hard}</p>")
    return "".join(parts) + solved(stem)


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
