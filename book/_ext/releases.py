"""Sphinx extension: what a citation of the site can rely on from one release to the next.

Every page says its version. The page ``book/releases`` says which numbers of the chapters differ
from those of the last release, whose numbers and addresses are in ``book/releases/<version>.json``
(``tools/release.py`` writes them). An address that a release had stays: a build without it fails,
unless ``book/releases/aliases.json`` says what it is called there. A number that moved never fails
a build: the last digits of a tiny model may differ between processors.
"""

import csv
import html
import importlib
import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import yaml
from bs4 import BeautifulSoup
from packaging.version import Version
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[2]
RELEASES = ROOT / "book" / "releases"
ALIASES = "aliases.json"
PAGE = "book/releases.html"
CITABLE = "figure[id], table[id], div.math[id^=equation-], div.exercise[id], div.table-scroll[id]"
UNNAMED = re.compile(r"id\d+")
"""Addresses that Sphinx counts out where the source gives none."""

PRINTED = "notebooks/published_numbers.html#"
"""Where tables are the papers' own, which ``biaslib.published`` keeps: addresses are kept alone."""

NUMBER = re.compile(r"\b\d")
"""Not what a name such as C6 ends in."""

LONGEST = 60
"""Of words without a number, this many characters are kept."""

FILES = {
    "instructors_edition.zip": "the instructor's edition",
    "course_packages.zip": "the quizzes as packages",
    "pdfs.zip": "all PDFs",
    "SHA256SUMS": "the SHA-256 of each file",
}
"""What a release has for lecturers besides the plans' zips: ``tools/teach.py`` makes them."""

COLUMNS = ("address", "before", "after")
MOST_SHOWN = 200
CHANGED = "changed_numbers.csv"


def setup(app):
    # Before materials are made from the pages; addresses are checked when all is written.
    app.connect("build-finished", write_release, priority=650)
    app.connect("build-finished", check_addresses, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_release(app, exception) -> None:
    """Write the version into every page, and what changed into the page of releases."""
    if exception is None and app.builder.format == "html":
        site = Path(app.outdir)
        add_aliases(site, aliases())
        entry = f'<pre style="white-space: pre-wrap">{html.escape(bibtex(ROOT))}</pre>'
        fill(site / PAGE, "companion-bibtex", entry)
        before = [each for each in releases() if Version(each["version"]) <= Version(version())]
        last = before[-1] if before else None
        fill(site / PAGE, "changed-numbers", told(site, last))
        fill(site / "book" / "teaching.html", "release-files", offered(ROOT, last))
        line = f"<p>{version_line(ROOT)}</p>"
        for page in site.rglob("*.html"):
            fill(page, "site-version", line)


def check_addresses(app, exception) -> None:
    """Fail if an address of a release is gone."""
    # The other profile has captions of its own, and so other addresses.
    planted = (os.environ.get("BIASLIB_PROFILE") or "planted") == "planted"
    if exception is not None or app.builder.format != "html" or not (planted and releases()):
        return
    there = {address for page in pages(app.outdir) for address in named(page, app.outdir)}
    moved = aliases()
    lost = [
        f"{address} (release {release['version']})"
        for release in releases()
        for address in release["addresses"]
        if moved.get(address, address) not in there
    ]
    if lost:
        raise ExtensionError(
            f"These addresses are cited and lead nowhere: {'; '.join(lost)}. Keep the label or the "
            f"caption, or say in book/releases/{ALIASES} what it is called: "
            '{"old address": "new address"}.'
        )


def version() -> str:
    return importlib.import_module("biaslib").__version__


def version_line(root: Path) -> str:
    """Return the version, and the commit where there is a checkout; -dirty: files were changed."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    commit = ""
    if (root / ".git").exists() and shutil.which("git"):
        commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return f"Version {version()}" + (f", commit {commit}" if commit else "")


def bibtex(root: Path) -> str:
    """Return the BibTeX entry of the companion, from its CITATION.cff."""
    cff = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    fields = {
        "title": f"{{{cff['title']}}}",
        "author": " and ".join(map(author, cff["authors"])),
        "version": cff["version"],
        "url": cff["repository-code"],
    }
    if released := cff.get("date-released"):
        fields["date"] = str(released)
    rows = "".join(f"  {name:8}= {{{value}}},\n" for name, value in fields.items())
    return f"@software{{companion,\n{rows}}}"


def offered(root: Path, last: dict | None) -> str:
    """Return, as HTML, where the files of the last release are, or how to make them."""
    home = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))["repository-code"]
    if last is None or "YOUR_ACCOUNT" in home:
        return (
            "<p>No version has been released with them yet: in a clone, <code>make book</code> and "
            "then <code>make teach</code> write them into <code>_build/release</code>.</p>"
        )
    zips = {
        f"{path.stem}.zip": path.stem.replace("_", " ")
        for path in sorted((root / "book").glob("plan_*.md"))
    }
    at = f"{home}/releases/download/v{last['version']}"
    links = [f'<a href="{at}/{name}">{text}</a>' for name, text in {**zips, **FILES}.items()]
    return f"<p>Version {last['version']}: {', '.join(links)}.</p>"


def author(entry: dict) -> str:
    if "name" in entry:
        return f"{{{entry['name']}}}"
    return f"{entry['family-names']}, {entry['given-names']}"


# What a site has


def pages(site: str | Path) -> list[Path]:
    """Return the built pages of the chapters."""
    return sorted((Path(site) / "notebooks").glob("*.html"))


def article(page: Path):
    found = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    return found.find("article") or found


def named(page: Path, site: str | Path) -> dict:
    """Return what of a page can be cited, by address: *page.html#id*."""
    where = page.relative_to(site).as_posix()
    found = article(page).select(CITABLE)
    return {f"{where}#{each['id']}": each for each in found if not UNNAMED.fullmatch(each["id"])}


def manifest(site: str | Path) -> dict:
    """Return the addresses of a built site, and the text of its tables: header, then rows."""
    found = {at: each for page in pages(site) for at, each in named(page, site).items()}
    tables = {
        at: [list(map(kept, row.select("th, td"))) for row in each.select("tr")]
        for at, each in found.items()
        if "table-scroll" in each.get("class", ()) and not at.startswith(PRINTED)
    }
    return {"version": version(), "addresses": sorted(found), "tables": tables}


def kept(cell) -> str:
    text = cell.get_text()
    return text if NUMBER.search(text) else text[:LONGEST]


def releases() -> list[dict]:
    """Return the manifests of the releases, oldest first."""
    files = [each for each in RELEASES.glob("*.json") if each.name != ALIASES]
    found = [json.loads(each.read_text(encoding="utf-8")) for each in files]
    return sorted(found, key=lambda each: Version(each["version"]))


def aliases() -> dict[str, str]:
    path = RELEASES / ALIASES
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if wrong := [each for pair in found.items() for each in pair if each.count("#") != 1]:
        raise ExtensionError(f"{path}: write {wrong[0]!r} as notebooks/page.html#label")
    return found


# What changed


def changes(before: dict, after: dict, moved: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return the rows that differ, of tables that both sites have; – where one has none."""
    found = []
    for address, old in before["tables"].items():
        at = moved.get(address, address)
        new = after["tables"].get(at, old)
        gone, come = ([row for row in a if row not in b] for a, b in ((old, new), (new, old)))
        for pair in itertools.zip_longest(gone, come, fillvalue="–"):
            found.append((at, *(" · ".join(row) for row in pair)))
    return found


def told(site: Path, before: dict | None) -> str:
    """Return, as HTML, what changed since a release; all of it is written into a file beside."""
    if before is None:
        return "<p>No version has been released before this one.</p>"
    found = changes(before, manifest(site), aliases())
    with (site / "book" / CHANGED).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *found])
    if not found:
        return f"<p>All numbers are those of version {before['version']}.</p>"
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(f"<tr>{''.join(map(cell, each))}</tr>" for each in found[:MOST_SHOWN])
    return (
        f"<p>Rows that differ from version {before['version']}: {len(found)}. "
        f'<a href="{CHANGED}">All of them as CSV</a>; at most {MOST_SHOWN} stand here.</p>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def cell(text: str) -> str:
    link = f'<a href="../{html.escape(text)}">{html.escape(text)}</a>'
    return f"<td>{link if text.startswith('notebooks/') else html.escape(text)}</td>"


def fill(page: Path, name: str, content: str) -> None:
    """Put HTML that has no div into the div of an id, in place of what was there."""
    text = page.read_text(encoding="utf-8")
    place = re.compile(rf'(<div [^>]*\bid="{name}"[^>]*>).*?(</div>)', re.S)
    filled = place.sub(lambda found: found[1] + content + found[2], text)
    if filled != text:
        page.write_text(filled, encoding="utf-8")


def add_aliases(site: Path, moved: dict[str, str]) -> None:
    """Make old addresses work: an anchor at the new one, or a line that leads to another page."""
    for old, new in moved.items():
        name, anchor = old.split("#")
        page = site / name
        text = page.read_text(encoding="utf-8") if page.is_file() else "<html></html>"
        if f'id="{anchor}"' not in text:
            page.write_text(led(text, name, anchor, new), encoding="utf-8")


def led(text: str, name: str, anchor: str, new: str) -> str:
    """Return a page with an anchor that leads to an address."""
    target, place = new.split("#")
    if name == target:
        before = f'<span id="{anchor}"></span>'
        element = re.compile(rf'<\w+ [^>]*\bid="{re.escape(place)}"')
        return element.sub(lambda found: before + found[0], text, count=1)
    way = "../" * name.count("/") + new
    line = f'<p id="{anchor}">This has moved: <a href="{way}">{new}</a></p>'
    end = "</article>" if "</article>" in text else "</html>"
    return text.replace(end, line + end, 1)
