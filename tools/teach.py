"""Make what a lecturer needs besides the site: PDFs, packages of quizzes, the instructor's edition.

    python tools/teach.py

The site has to be built before (``make book``); slides, quizzes, handouts as pages and classroom
notebooks are made with it, in ``_build/html/teach``. All that is made here goes to
``_build/instructor``, and as the files of a release to ``_build/release``, which a build leaves as
they are, and never into the site: the edition holds every solution, with wrong answers.
"""

import hashlib
import html
import re
import shutil
import sys
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import Tag

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import needs  # noqa: E402 - an extension of the book, which lies on no path
import plan_zips  # noqa: E402
import plans  # noqa: E402
import quiz_packages  # noqa: E402
import slides  # noqa: E402
import teaching  # noqa: E402

SITE = ROOT / "_build" / "html"
INSTRUCTOR = ROOT / "_build" / "instructor"
RELEASE = ROOT / "_build" / "release"
PRINTED = ("handout", "slides", "print")
FOR_PAPER = """async ([site, home]) => {
  await window.MathJax?.startup?.promise;
  await document.fonts.ready;
  for (const each of document.querySelectorAll(".slides section")) {
    each.removeAttribute("hidden");
    each.removeAttribute("aria-hidden");
  }
  for (const each of document.querySelectorAll("a[href]")) {
    if (!each.href.startsWith("file:")) continue;
    if (home) each.href = each.href.replace(site, home);
    else each.removeAttribute("href");
  }
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
"""Waits for formulas and fonts; shows every slide to what reads aloud, and links to the site."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def main() -> int:
    """Make all; return 1 if there is no site to make it from."""
    if not (SITE / teaching.FOLDER / "index.html").is_file():
        print("There is no site in _build/html: run 'make book' first.", file=sys.stderr)
        return 1
    for folder in (INSTRUCTOR, RELEASE):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    stems = chapters(SITE)
    try:
        page = edition(SITE, stems)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    (INSTRUCTOR / "index.html").write_text(beside(page, "../html/"), encoding="utf-8")
    print(f"the instructor's edition of {len(stems)} chapters: {INSTRUCTOR / 'index.html'}")
    made = pdfs(SITE / teaching.FOLDER, INSTRUCTOR, browser())
    print(f"{made} handouts, decks and sheets to print as PDF in {INSTRUCTOR}")
    made = quiz_packages.write_packages(INSTRUCTOR, stems)
    print(f"{made} quizzes for course systems in {INSTRUCTOR}")
    write_release(beside(page, ""))
    print(f"what a release has: {RELEASE}")
    return 0


def write_release(page: str) -> None:
    """Write the files that a release has, and the list of their SHA-256."""
    for path in sorted((ROOT / "book" / "plans").glob("*.yml")):
        if (SITE / "book" / f"plan_{path.stem}.html").is_file():
            plan_zips.write_zip(SITE, path.stem, plans.read(ROOT, path.stem), RELEASE, INSTRUCTOR)
    files = plan_zips.held(SITE, {"index.html": page}, plan_zips.address())
    about = "The instructor's edition. Open index.html in a browser; no network is needed.\n"
    plan_zips.pack(RELEASE / "instructors_edition.zip", files, about + plan_zips.TERMS)
    kinds = {
        "pdfs": ("*.pdf", "Slides, handouts, and what is to be printed, as PDF.\n"),
        "course_packages": ("quiz_*.zip", "Quizzes (QTI 1.2): import each zip as it is.\n"),
    }
    for name, (pattern, about) in kinds.items():
        if files := {each.name: each.read_bytes() for each in INSTRUCTOR.glob(pattern)}:
            plan_zips.pack(RELEASE / f"{name}.zip", files, about + plan_zips.TERMS)
    sums = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in RELEASE.iterdir()]
    (RELEASE / "SHA256SUMS").write_text("".join(sorted(sums, key=lambda each: each[64:])))


def browser() -> str | None:
    """Return a Chromium or Chrome of this machine, or None."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def pdfs(folder: Path, target: Path, program: str | None) -> int:
    """Print handouts, decks and sheets of a folder to PDFs in another; return how many.

    A deck has a page a slide. Without a browser, or Playwright to drive it, none is made, and a
    line says so. What is printed has the page's title and language, headings that can be listed,
    and tags by which software reads it aloud; formulas are drawn, and only the page has them as
    MathML.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        print("No PDFs: they need Chromium or Chrome, and 'pip install playwright'.")
        return 0
    pages = [page for kind in PRINTED for page in sorted(folder.glob(f"{kind}_*.html"))]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = running.new_page(viewport={"width": 1280, "height": 720})
        for page in pages:
            is_deck = page.name.startswith("slides_")
            tab.goto(page.resolve().as_uri() + ("?print-pdf" if is_deck else ""))
            if is_deck:
                tab.wait_for_selector(".pdf-page", state="attached")
            tab.evaluate(FOR_PAPER, [SITE.resolve().as_uri(), plan_zips.address()])
            kept = {"prefer_css_page_size": True, "outline": True, "tagged": True}
            tab.pdf(path=target / f"{page.stem}.pdf", **kept)
        running.close()
    return len(pages)


def chapters(site: Path) -> list[str]:
    """Return the chapters in the order of the book, as the page of the materials lists them."""
    page = BeautifulSoup((site / teaching.FOLDER / "index.html").read_text("utf-8"), "html.parser")
    links = [each["href"] for each in page.select("td a[href^=classroom_]")]
    return [each.removeprefix("classroom_").removesuffix(".ipynb") for each in links]


def edition(site: Path, stems: list[str], folder: Path = needs.NOTES) -> str:
    """Return the instructor's edition as one page, with addresses as the materials have them.

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
    return teaching.PAGE.format(
        title="Instructor's edition", kind="overview edition", script="", body=body
    )


def beside(page: str, site: str) -> str:
    """Return a page of the materials with the way from it to the site, or to what it loads."""
    return re.sub(r'\b(href|src)="\.\./', rf'\1="{site}', page)


def article(site: Path, stem: str) -> Tag:
    """Return a chapter's article with addresses of the materials, nothing folded but claims."""
    text = (site / "notebooks" / f"{stem}.html").read_text(encoding="utf-8")
    found = BeautifulSoup(text, "html.parser").find("article")
    for each in found.select("a.headerlink, script"):
        each.decompose()
    for each in found.select("a[href]"):
        each["href"] = teaching.from_here(each["href"], stem)
    for each in found.select("details"):
        if not each.find_parent(class_="claims"):
            each["open"] = ""
    for kind, place in {**teaching.SCROLLS, "code": "pre"}.items():
        for each in found.select(place):
            each.attrs |= {"role": "group", "tabindex": "0", "aria-label": kind}
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
    return f"<h3>Quiz</h3><ol>{''.join(rows)}</ol>"


if __name__ == "__main__":
    sys.exit(main())
