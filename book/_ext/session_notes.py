"""Sphinx extension: speaker's notes of each session of a plan, with the minutes of the plan.

``teach/notes_half_day_1.html`` has the slots of a session as the plan's page shows them, and below
each slot what the speaker says to its slides. ``slides.js`` adds a clock and follows the deck.
"""

import html
from itertools import accumulate
from pathlib import Path
from urllib.parse import urljoin

import plans
import slides
import teaching
from bs4 import BeautifulSoup
from bs4.element import Tag
from sphinx.errors import ExtensionError


def setup(app):
    # After the other materials, before the policy is written into pages.
    app.connect("build-finished", write_notes, priority=710)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_notes(app, exception) -> None:
    """Write the notes of every session of every plan into the folder ``teach`` of the site."""
    if exception is not None or app.builder.format != "html":
        return
    site, root = Path(app.outdir), Path(app.srcdir)
    folder = site / teaching.FOLDER
    decks = {each.stem.removeprefix("slides_") for each in folder.glob("slides_*.html")}
    for old in folder.glob("notes_*.html"):
        if old.stem.removeprefix("notes_") not in decks:
            old.unlink()
    for path in (root / "book" / "plans").glob("*.yml"):
        if f"book/plan_{path.stem}" in app.env.all_docs:
            for number, page in enumerate(pages(site, root, path.stem), start=1):
                name = f"{path.stem}_{number}"
                if name in decks:
                    raise ExtensionError(
                        f"{name}.md: rename this deck: session {number} of the plan {path.stem!r} "
                        "has its name"
                    )
                teaching.write(folder / f"notes_{name}.html", page)


def pages(site: Path, root: Path, name: str) -> list[str]:
    """Return the notes of a plan, a page a session, made from the page that shows the plan."""
    plan, address = plans.read(root, name), f"book/plan_{name}.html"
    article = BeautifulSoup((site / address).read_text("utf-8"), "html.parser").find("article")
    for each in article.select("a[href]"):
        target = urljoin(address, each["href"])
        each["href"] = target if ":" in target else f"../{target}"
    found, tables = [], article.select("table.plan")
    for number, (session, table) in enumerate(zip(plan["sessions"], tables, strict=True), start=1):
        title = f"Speaker's notes: {html.escape(session['name'])}"
        body = (
            f'<main><h1>{title}</h1><p><a href="../{address}">{html.escape(plan["title"])}</a>, '
            f"{session['minutes']} minutes. Opened beside the slides, this page follows them; "
            "without them, press <em>Here</em> when a part begins.</p>"
            f"{''.join(slots(session, table, root, f'{name}_{number}'))}</main>"
        )
        page = {"title": title, "kind": "notes", "script": slides.NOTES_HEAD, "body": body}
        found.append(teaching.PAGE.format(**page))
    return found


def slots(session: dict, table: Tag, root: Path, notes: str) -> list[str]:
    """Return the slots of a session as the rows of its table show them, with their notes."""
    found, ends = [], accumulate(each["minutes"] for each in session["slots"])
    for slot, end, row in zip(session["slots"], ends, table.select("tbody tr")[:-1], strict=True):
        screen, students = row.find_all("td")
        for late in students.find_all("strong", string=plans.LABELS["late"].strip("* ")):
            late.parent["class"] = "late"
        if "do" in slot:
            students.p.insert(0, BeautifulSoup("<strong>Students.</strong> ", "html.parser"))
        shown = screen.find("p").extract().decode_contents()
        begin = end - slot["minutes"]
        found.append(
            f'<section class="slot" data-from="{begin}" data-to="{end}">'
            f"<h2>{begin}–{end}: {shown}</h2>"
            f'<div class="screen">{screen.decode_contents()}</div>{students.decode_contents()}'
            f"{''.join(spoken(slot, root, notes))}</section>"
        )
    return found


def spoken(slot: dict, root: Path, notes: str) -> list[str]:
    """Return what is said in a slot without slides, and to each slide below a link to it."""
    said = [slides.markdown(slot["say"])] if "say" in slot else []
    chapters = [each.stem for each in (root / "notebooks").glob("*.ipynb")]
    for text in slot.get("decks", []):
        stem, names = plans.deck(text, "")[0], plans.slides_of(text, root, "")
        deck = slides.read(plans.deck_file(root, stem), chapters)
        for each in (each for each in deck.slides if each.name in names):
            link = f'<a class="slide" href="slides_{stem}.html?notes={notes}#{each.name}">'
            said.append(
                f'<section lang="{deck.language}"{deck.direction}><h3>{link}{each.heading}</a></h3>'
                f"{each.notes}</section>"
            )
    return said
