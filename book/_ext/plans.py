"""Sphinx extension: plans for teaching whose minutes add up, and a zip of what each plan needs.

```{plan} half_day
```

stands for the tables of ``book/plans/half_day.yml``: a table for each session, whose slots have to
add up to its minutes. The build stops where they do not, and where a plan names a deck, a slide
or a page that is not there. After the build, ``teach/plan_half_day.zip`` has the pages that the
plan names, and their materials, for a folder on a disk.
"""

import posixpath
import re
import sys
import textwrap
import zipfile
from itertools import accumulate
from pathlib import Path
from urllib.parse import urldefrag

import nbformat
import yaml
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
LEAST_MINUTES_A_SLIDE = 1.5
KEYS = {
    "plan": ({"title", "sessions"}, {"weeks", "materials"}),
    "session": ({"name", "minutes", "slots"}, {"week", "read", "write"}),
    "slot": ({"minutes", "show"}, {"decks", "pages", "do", "hand_in", "late"}),
    "reading": ({"pages", "minutes"}, {"part"}),
    "writing": ({"minutes", "what"}, set()),
}
"""Keys that each part of a plan must have, and those that it may have besides."""

CARD = re.compile(r"\*\*(?:Minutes\.|Time:)\*\*\D*(\d+)\D+(\d+)")
DECK = re.compile(r"(\w+)(?: (\d+)(?:-(\d*))?)?")
LABELS = {"do": "", "hand_in": "**Hand in.** ", "late": "**When late.** "}

README = """{title}
{line}

Open book/plan_{name}.html in a browser; nothing else has to be installed, and no network is needed.
book/       the plan, what to say first, and what the students get
teach/      slides, speaker's notes, handouts, quizzes; classroom notebooks, which have no solutions
notebooks/  the chapters that the plan names, as pages
_static/    and the other folders: what the pages load
Copy the whole folder; links to pages that are not in it lead to the site, or are switched off.
Text: CC BY 4.0; code: MIT (LICENSE). How to cite: CITATION.cff.
"""

LINK = re.compile(r'(<a\b[^>]*?\s)href="([^"]*)"')
LOADED = re.compile(r'<(?:script|img|source|link)\b[^>]*?\s(?:src|href)="([^"]*)"')
ELSEWHERE = re.compile(
    r'<link rel="(?:index|search|prev|next)"[^>]*>\s*|<form\b[^>]*\baction=.*?</form>', re.S
)
IN_STYLE = re.compile(r"""(?:url\(["']?|@import\s*["'])([^)"']+)""")
LOADED_LATER = {"tex-mml-chtml.js": "_static/vendor/mathjax"}
"""Folders that a script of this name reads when a page needs them."""


def setup(app):
    app.add_directive("plan", Plan)
    # After the policy has been written into the pages.
    app.connect("build-finished", write_zips, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Plan(SphinxDirective):
    """The tables of one plan."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        name = self.arguments[0]
        for path in (plan_file(root, name), *deck_files(root)):
            self.env.note_dependency(str(path))
        return self.parse_text_to_nodes(markdown(read(root, name), root))


def plan_file(root: Path, name: str) -> Path:
    return root / "book" / "plans" / f"{name}.yml"


def deck_files(root: Path) -> list[Path]:
    return sorted((root / "book" / "slides").glob("*.md"))


# Reading and checking


def read(root: Path, name: str) -> dict:
    """Return a plan of the book below ``root``.

    Raises
    ------
    ExtensionError
        Naming the plan, the session and what is wrong: slots that do not add up to the session's
        minutes, weeks that are not what their sessions and readings come to, a reading whose
        minutes are not its chapter's, a page, a deck or a slide that is not there, or less than a
        minute and a half a slide.
    """
    if not plan_file(root, name).is_file():
        raise ExtensionError(f"plan {name!r}: there is no {plan_file(root, name)}")
    plan = yaml.safe_load(plan_file(root, name).read_text(encoding="utf-8"))
    _has_keys(plan, "plan", f"plan {name!r}")
    for session in plan["sessions"]:
        place = f"plan {name!r}, session {session.get('name')!r}"
        _has_keys(session, "session", place)
        for slot in session["slots"]:
            _check_slot(slot, root, f"{place}, slot {slot.get('show')!r}")
        for reading in session.get("read", []):
            _check_reading(reading, root, place)
        if "write" in session:
            _has_keys(session["write"], "writing", place)
        together = sum(slot["minutes"] for slot in session["slots"])
        if together != session["minutes"]:
            raise ExtensionError(
                f"{place}: its slots add up to {together} minutes, not to {session['minutes']}"
            )
    for page in plan.get("materials", []):
        _page(page, root, f"plan {name!r}, materials")
    told, counted = plan.get("weeks", {}), weeks(plan)
    for week in sorted({*told, *counted}):
        if told.get(week) != counted.get(week):
            raise ExtensionError(
                f"plan {name!r}, week {week}: class, reading and writing add up to "
                f"{counted.get(week)} minutes, not to {told.get(week)}"
            )
    return plan


def _has_keys(part: dict, kind: str, place: str) -> None:
    needed, allowed = KEYS[kind]
    if wrong := (needed - part.keys()) | (part.keys() - needed - allowed):
        raise ExtensionError(
            f"{place}: {', '.join(sorted(wrong))} missing in or no key of a {kind}"
        )


def _check_slot(slot: dict, root: Path, place: str) -> None:
    _has_keys(slot, "slot", place)
    slides = 0
    for text in slot.get("decks", []):
        stem, first, last = deck(text, place)
        path = root / "book" / "slides" / f"{stem}.md"
        if not path.is_file():
            raise ExtensionError(f"{place}: there is no deck {path}")
        number = len(headings(path))
        if not 1 <= first <= (last or number) <= number:
            raise ExtensionError(f"{place}: {text!r}, but the deck has slides 1 to {number}")
        slides += (last or number) - first + 1
    if slot["minutes"] < slides * LEAST_MINUTES_A_SLIDE:
        raise ExtensionError(f"{place}: {slides} slides in {slot['minutes']} minutes")
    for page in slot.get("pages", []):
        _page(page, root, place)


def _check_reading(reading: dict, root: Path, place: str) -> None:
    _has_keys(reading, "reading", place)
    cards = [card(_page(page, root, place)) for page in reading["pages"]]
    longest = max((each[0] for each in cards if each), default=None)
    minutes, pages = reading["minutes"], ", ".join(reading["pages"])
    if longest is not None and not (
        minutes == longest or ("part" in reading and minutes <= longest)
    ):
        raise ExtensionError(f"{place}: {minutes} minutes for {pages}, whose card says {longest}")


def _page(page: str, root: Path, place: str) -> Path:
    """Return the source of a page such as ``book/teaching#say-before``."""
    name = urldefrag(page).url
    for suffix in (".md", ".ipynb"):
        if (path := root / f"{name}{suffix}").is_file():
            return path
    raise ExtensionError(f"{place}: there is no page {name}")


def card(path: Path) -> tuple[int, int] | None:
    """Return the minutes that a chapter's card gives for reading, and for the exercises."""
    if path.suffix != ".ipynb":
        return None
    cells = nbformat.read(path, nbformat.NO_CONVERT).cells
    text = "\n".join(each.source for each in cells[:3])
    found = CARD.search(text)
    return (int(found[1]), int(found[2])) if found else None


def deck(text: str, place: str) -> tuple[str, int, int | None]:
    """Return the stem, the first and the last slide of ``study2_masked 1-6``.

    >>> deck("foundations 1-6", ""), deck("foundations 3", ""), deck("foundations 12-", "")
    (('foundations', 1, 6), ('foundations', 3, 3), ('foundations', 12, None))
    >>> deck("foundations", "")
    ('foundations', 1, None)
    """
    found = DECK.fullmatch(text)
    if found is None:
        raise ExtensionError(f"{place}: {text!r} is no deck with slides, such as 'foundations 1-6'")
    last = found[2] if found[3] is None else found[3]
    return found[1], int(found[2] or 1), int(last) if last else None


def headings(path: Path) -> list[str]:
    """Return the heading of each slide of a deck."""
    slides = re.split(r"^---[ \t]*$", path.read_text(encoding="utf-8"), flags=re.M)[2:]
    return [re.search(r"^#+ (.*)$", each, re.M)[1] for each in slides]


def weeks(plan: dict) -> dict[int, int]:
    """Return the minutes of class, reading and writing in each week of a course."""
    found = {}
    for session in plan["sessions"]:
        if "week" in session:
            found[session["week"]] = found.get(session["week"], 0) + sum(parts(session))
    return found


def parts(session: dict) -> tuple[int, int, int]:
    """Return a session's minutes in class, of reading before it, and of writing after it."""
    reading = sum(each["minutes"] for each in session.get("read", []))
    return session["minutes"], reading, session.get("write", {"minutes": 0})["minutes"]


# Showing


def markdown(plan: dict, root: Path) -> str:
    """Return the tables of a plan in Markdown."""
    summary = [_summary(plan)] if "weeks" in plan else []
    return "\n\n".join([*summary, *(_session(each, root) for each in plan["sessions"])])


def _summary(plan: dict) -> str:
    rows = [("Week", "Class", "Reading", "Writing", "Together")]
    for week, together in plan["weeks"].items():
        held = [parts(each) for each in plan["sessions"] if each.get("week") == week]
        rows.append(
            (str(week), *(str(sum(each)) for each in zip(*held, strict=True)), str(together))
        )
    columns = list(zip(*([int(cell) for cell in row[1:]] for row in rows[1:]), strict=True))
    rows.append(("all", *(str(sum(each)) for each in columns)))
    return _table("Minutes a week", rows, "plan-weeks")


def _session(session: dict, root: Path) -> str:
    ends = list(accumulate(slot["minutes"] for slot in session["slots"]))
    rows = [("Minutes", "Screen", "Students")]
    for slot, end in zip(session["slots"], ends, strict=True):
        begin = end - slot["minutes"]
        done = [label + slot[key] for key, label in LABELS.items() if key in slot]
        rows.append((f"{begin}–{end} ({slot['minutes']})", _screen(slot, root), "\n\n".join(done)))
    rows.append((f"{ends[-1]} together", "", ""))
    parts = [_before(each) for each in session.get("read", [])]
    before = [f"**Read before {session['name']}:** {'; '.join(parts)}."] if parts else []
    after = []
    if "write" in session:
        writing = session["write"]
        after = [f"**Hand in afterwards** ({writing['minutes']} minutes): {writing['what']}"]
    name = f"{session['name']}: {session['minutes']} minutes"
    return "\n\n".join([*before, _table(name, rows, "plan", "14 43 43"), *after])


def _before(reading: dict) -> str:
    pages = " or ".join(_link(each) for each in reading["pages"])
    what = ", ".join(filter(None, [pages, reading.get("part")]))
    return f"{what} ({reading['minutes']} minutes)"


def _screen(slot: dict, root: Path) -> str:
    shown = [slot["show"]]
    for text in slot.get("decks", []):
        stem, first, last = deck(text, "")
        path = root / "book" / "slides" / f"{stem}.md"
        about, titles = yaml.safe_load(path.read_text("utf-8").split("---")[1]), headings(path)
        last = last or len(titles)
        numbers = f"Slide {first}" if first == last else f"Slides {first}–{last}"
        ends = " to ".join(f"“{titles[each - 1]}”" for each in sorted({first, last}))
        address = f"../teach/slides_{stem}.html#slide-{first}"
        shown.append(f'<a href="{address}">{numbers} of {about["title"]}</a>: {ends}')
    shown += [_link(each) for each in slot.get("pages", [])]
    return "\n\n".join(shown)


def _link(page: str) -> str:
    name, place = urldefrag(page)
    suffix = ".ipynb" if name.startswith("notebooks/") else ".md"
    return f"[](#{place})" if place else f"[](/{name}{suffix})"


def _table(caption: str, rows: list[tuple[str, ...]], kind: str, widths: str = "auto") -> str:
    lines = [f"````{{list-table}} {caption}", ":header-rows: 1", ":stub-columns: 1"]
    lines += [f":class: {kind}", f":widths: {widths}", ""]
    for row in rows:
        for mark, cell in zip(["* - ", *["  - "] * (len(row) - 1)], row, strict=True):
            lines.append((mark + textwrap.indent(cell, "    ").strip()).rstrip())
    return "\n".join([*lines, "````"])


# The zips


def write_zips(app, exception) -> None:
    """Write a zip of every plan's pages and materials into the folder ``teach`` of the site."""
    if exception is not None or app.builder.format != "html":
        return
    site, root = Path(app.outdir), Path(app.srcdir)
    for path in sorted(plan_file(root, "x").parent.glob("*.yml")):
        if f"book/plan_{path.stem}" in app.env.all_docs:
            write_zip(site, path.stem, read(root, path.stem), address())


def address() -> str:
    """Return the address of the published book, or nothing where none is known."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from tools import repository

    return repository.site()


def write_zip(site: Path, name: str, plan: dict, home: str) -> Path:
    """Write the zip of one plan, the same bytes for the same site; return its path.

    Parameters
    ----------
    site
        The folder of the built book.
    name, plan
        The plan and its name.
    home
        The address of the published book: where links to pages lead that are not in the zip. With
        none, these are switched off.
    """
    pages = {f"{each}.html" for each in pages_of(name, plan)}
    stems = {Path(each).stem for each in pages if each.startswith("notebooks/")}
    stems |= {deck(each, "")[0] for each in _all(plan, "decks")}
    kinds = ("slides_{}.html", "notes_{}.html", "handout_{}.html", "quiz_{}.html")
    kinds += ("classroom_{}.ipynb",)
    teach = {f"teach/{kind.format(stem)}" for stem in stems for kind in kinds}
    chosen = pages | {each for each in teach if (site / each).is_file()}
    held, files = {}, chosen | loaded(site, chosen)
    for each in sorted(files):
        data = (site / each).read_bytes()
        if each.endswith(".html"):
            data = relinked(data.decode(), each, site, files, home).encode()
        held[each] = data
    for each in ("LICENSE", "CITATION.cff"):
        held[each] = (ROOT / each).read_bytes()
    held["README.txt"] = README.format(
        title=plan["title"], line="=" * len(plan["title"]), name=name
    ).encode()
    target = site / "teach" / f"plan_{name}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for each, data in sorted(held.items()):
            info = zipfile.ZipInfo(f"plan_{name}/{each}")
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(info, data)
    return target


def pages_of(name: str, plan: dict) -> set[str]:
    """Return the pages that a plan names, its own, and those that every class needs."""
    found = {
        f"book/plan_{name}",
        "book/teaching",
        "book/for_students",
        "book/content_note",
        *plan.get("materials", []),
    }
    found |= {urldefrag(each).url for each in _all(plan, "pages")}
    for session in plan["sessions"]:
        found |= {page for each in session.get("read", []) for page in each["pages"]}
    return found


def _all(plan: dict, key: str) -> list[str]:
    slots = [slot for session in plan["sessions"] for slot in session["slots"]]
    return [each for slot in slots for each in slot.get(key, [])]


def loaded(site: Path, pages: set[str]) -> set[str]:
    """Return the files that pages load or offer for download, and what those load in turn."""
    found, waiting = set(), sorted(pages)
    while waiting:
        here = waiting.pop()
        if not here.endswith((".html", ".css")):
            continue
        text = (site / here).read_text(encoding="utf-8")
        pattern = IN_STYLE if here.endswith(".css") else LOADED
        named = pattern.findall(ELSEWHERE.sub("", text))
        named += [each[1] for each in LINK.findall(text) if "_downloads/" in each[1]]
        for other in {inside(here, each, site) for each in named} - {None} - found:
            found.add(other)
            waiting.append(other)
            if folder := LOADED_LATER.get(Path(other).name):
                files = (each for each in (site / folder).rglob("*") if each.is_file())
                found |= {each.relative_to(site).as_posix() for each in files}
    return found


def inside(here: str, address: str, site: Path) -> str | None:
    """Return the file of the site that an address on a page means, or None if it means none."""
    path = re.sub(r"[?#].*", "", address)
    if not path or re.match(r"[a-z]+:|/", path):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    return target if not target.startswith("..") and (site / target).is_file() else None


def relinked(page: str, here: str, site: Path, files: set[str], home: str) -> str:
    """Return a page whose links lead to pages of the zip, to the published site, or nowhere."""

    def link(found: re.Match) -> str:
        start, address = found.groups()
        if not address or re.match(r"[a-z]+:|//|#", address):
            return found[0]
        target = inside(here, address, site)
        if target in files:
            return found[0]
        if not (home and target):
            return start.rstrip()  # a link without an address
        rest = re.search(r"([?#].*)?$", address)[0]
        return f'{start}href="{home}/{target}{rest}"'

    return LINK.sub(link, ELSEWHERE.sub("", page))
