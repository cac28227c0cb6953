"""Sphinx extension: every page says that it runs scripts of this site only, and keeps to that.

The theme writes scripts and click handlers into its pages; they are moved into files. What stands
in the article is left where it is, so that a script which a name or a label of a data set brought
along stays inline, and no browser runs it.
"""

import hashlib
import re
from pathlib import Path

POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'self'; script-src 'self' file:; "
    "style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:; "
    "font-src 'self' file: data:; connect-src 'self'"
)
"""What a page may load: files of its site, from a server or a folder on the reader's disk. Styles
stand in drawings and formulas as well, and run nothing."""

META = '<meta http-equiv="Content-Security-Policy" content="{}">'
EARLIER = re.compile(META.format('[^"]*'))
CHARSET = re.compile(r"<meta charset=[^>]*>")
SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*\btype=)([^>]*)>(.*?)</script>", re.S)
CLICK = re.compile(r'\bonclick="([^"]*)"')
NEXT = re.compile(r'<link rel="next"[^>]*>\s*')
"""Where the next page is: Firefox would load it ahead, which the policy forbids, and say so."""
ARTICLE = re.compile(r"<article\b.*</article>", re.S)


def setup(app):
    # After the pages of sources that are gone have been removed.
    app.connect("build-finished", keep_to_policy, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def keep_to_policy(app, exception) -> None:
    """Write the policy into every page of the site, and move the theme's scripts into files."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    for path in folder.rglob("*.html"):
        if "_static" in path.parts:
            continue
        page = path.read_text(encoding="utf-8")
        if META.format(POLICY) not in page:
            up = "../" * (len(path.relative_to(folder).parts) - 1)
            path.write_text(kept(page, folder / "_static", up), encoding="utf-8")


def kept(page: str, static: Path, up: str = "") -> str:
    """Return a page with the policy, and with the scripts that stand outside its article in files.

    What is no whole page, as the one that leads from the site's address to its first, gets a head.

    Parameters
    ----------
    page
        The HTML.
    static
        Where the files go.
    up
        The way from the page to the folder that holds ``_static``.
    """

    def in_file(found: re.Match) -> str:
        name = f"inline-{hashlib.sha256(found[2].encode()).hexdigest()[:16]}.js"
        (static / name).write_text(found[2], encoding="utf-8")
        return f'<script{found[1]} src="{up}_static/{name}"></script>'

    def moved(part: str) -> str:
        return SCRIPT.sub(in_file, CLICK.sub(r'data-click="\1"', part))

    page = EARLIER.sub("", NEXT.sub("", page, count=1))
    if not CHARSET.search(page):
        page = f'<!DOCTYPE html>\n<meta charset="utf-8">\n{page}'
    article = ARTICLE.search(page)
    start, end = article.span() if article else (len(page), len(page))
    page = moved(page[:start]) + page[start:end] + moved(page[end:])
    return CHARSET.sub(lambda charset: charset[0] + META.format(POLICY), page, count=1)
