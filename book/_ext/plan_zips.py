"""Sphinx extension: a zip of what each plan for teaching needs, for a folder on a disk.

After the build, ``teach/plan_half_day.zip`` has the pages that the plan names, and their materials.
``tools/teach.py`` writes the same zips with PDFs.
"""

import posixpath
import re
import sys
import zipfile
from pathlib import Path
from urllib.parse import urldefrag

import plans

ROOT = Path(__file__).parents[2]

README = """{title}
{line}

Open book/plan_{name}.html in a browser; nothing else has to be installed, and no network is needed.
book/       the plan, what to say first, what the students get, and the method on things
teach/      slides, speaker's notes, handouts, quizzes, cards, and slips to print; classroom
            notebooks, which have no solutions; give out handout_summaries.html, what to
            remember, after the exercises, since it answers some
{pdf}
notebooks/  the chapters that the plan names, as pages
_static/    and the other folders: what the pages load
Copy the whole folder; links to pages that are not in it lead to the site, or are switched off.
{terms}
"""
PDF = "pdf/        slides, handouts and slips as PDF, to print or to show without a browser"
NO_PDF = "            There are no PDFs here: the zip of a release, or of `make teach`, has them."
TERMS = "Text: CC BY 4.0; code: MIT (LICENSE). How to cite: CITATION.cff."

LINK = re.compile(r'(<a\b[^>]*?\s)href="([^"]*)"')
LOADED = re.compile(r'<(?:script|img|source|link)\b[^>]*?\s(?:src|srcset|href)="([^"]*)"')
ELSEWHERE = re.compile(
    r'<link rel="(?:index|search|prev|next)"[^>]*>\s*|<form\b[^>]*\baction=.*?</form>', re.S
)
IN_STYLE = re.compile(r"""(?:url\(["']?|@import\s*["'])([^)"']+)""")
LOADED_LATER = {"tex-mml-chtml.js": "_static/vendor/mathjax"}
"""Folders that a script of this name reads when a page needs them."""


def setup(app):
    # After the policy has been written into the pages.
    app.connect("build-finished", write_zips, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_zips(app, exception) -> None:
    """Write a zip of every plan's pages and materials into the folder ``teach`` of the site."""
    if exception is not None or app.builder.format != "html":
        return
    site, root = Path(app.outdir), Path(app.srcdir)
    for old in (site / "teach").glob("plan_*.zip"):
        old.unlink()
    for path in sorted((root / "book" / "plans").glob("*.yml")):
        if f"book/plan_{path.stem}" in app.env.all_docs:
            write_zip(site, path.stem, plans.read(root, path.stem), site / "teach")


def address() -> str:
    """Return the address of the published book, or nothing where none is known."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from tools import repository

    return repository.site()


def write_zip(site: Path, name: str, plan: dict, target: Path, pdfs: Path | None = None) -> Path:
    """Write the zip of one plan, the same bytes for the same site; return its path.

    Parameters
    ----------
    site
        The folder of the built book.
    name, plan
        The plan and its name.
    target
        The folder that gets the zip.
    pdfs
        Where materials lie as PDF, under the names of their pages.
    """
    pages = {f"{each}.html" for each in pages_of(name, plan)}
    stems = {Path(each).stem for each in pages if each.startswith("notebooks/")}
    stems |= {plans.deck(each, "")[0] for each in _all(plan, "decks")}
    kinds = ("slides_{}.html", "notes_{}.html", "handout_{}.html", "quiz_{}.html")
    kinds += ("classroom_{}.ipynb",)
    teach = {f"teach/{kind.format(stem)}" for stem in stems for kind in kinds}
    teach |= {f"teach/print_{name}.html", "teach/handout_summaries.html"}
    teach |= {f"teach/notes_{name}_{n}.html" for n, _ in enumerate(plan["sessions"], start=1)}
    teach = {each for each in teach if (site / each).is_file()}
    teach |= {f"teach/{each.name}" for each in (site / "teach").glob("card_*.html")}
    found = held(site, dict.fromkeys(pages | teach), address())
    printed = [pdfs / f"{Path(each).stem}.pdf" for each in teach] if pdfs else []
    found |= {f"pdf/{each.name}": each.read_bytes() for each in printed if each.is_file()}
    title, pdf = plan["title"], PDF if any(map(Path.is_file, printed)) else NO_PDF
    text = README.format(title=title, line="=" * len(title), name=name, pdf=pdf, terms=TERMS)
    return pack(target / f"plan_{name}.zip", found, text)


def held(site: Path, pages: dict[str, str | None], home: str) -> dict[str, bytes]:
    """Return pages and all that they load, by their places in the site.

    Parameters
    ----------
    site
        The folder of the built book.
    pages
        The text of each page; of one of the site's pages nothing.
    home
        The address of the published book: where links to pages lead that are not among these. With
        none, such links are switched off.
    """
    found, files = {}, {*pages} | loaded(site, pages)
    for each in sorted(files):
        if each.endswith(".html"):
            text = pages.get(each) or (site / each).read_text(encoding="utf-8")
            found[each] = relinked(text, each, site, files, home).encode()
        else:
            found[each] = (site / each).read_bytes()
    return found


def pack(target: Path, files: dict[str, bytes], readme: str) -> Path:
    """Write files into a zip, with a text that says what they are, licence and citation."""
    both = {each: (ROOT / each).read_bytes() for each in ("LICENSE", "CITATION.cff")}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for each, data in sorted({**files, **both, "README.txt": readme.encode()}.items()):
            info = zipfile.ZipInfo(f"{target.stem}/{each}")
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(info, data)
    return target


def pages_of(name: str, plan: dict) -> set[str]:
    """Return the pages that a plan names, its own, and those that every class needs."""
    found = {
        f"book/plan_{name}",
        "book/teaching",
        "book/for_students",
        "book/things",
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


def loaded(site: Path, pages: dict[str, str | None]) -> set[str]:
    """Return the files that pages load or offer for download, and what those load in turn."""
    found, waiting = set(), sorted(pages)
    while waiting:
        here = waiting.pop()
        if not here.endswith((".html", ".css")):
            continue
        text = pages.get(here) or (site / here).read_text(encoding="utf-8")
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
