"""Sphinx extension: tables of a run have the number of their chapter, and an address of their own.

Figures and listed tables get these from Sphinx; what a cell puts out is HTML by then. A table that
is folded is numbered where it is opened, in the same sequence, which goes on from the page's last
table of Sphinx. Its address is made of the first words of its caption, so that it stays where
others are put before it; words with digits are left out, since they may be results. Below each is
a file of it, with its source and its licence.
"""

import csv
import html
import io
import itertools
import re
from collections import Counter
from pathlib import Path

CHAPTER = re.compile(r'<span class="section-number">(\d+)\. ?</span>')
LISTED = '<span class="caption-number">Table '
TABLE = re.compile(
    r'(?:(?P<folded><details class="table-behind"><summary>)(?P<words>[^<>]*</summary>))?'
    r'(?P<frame><div class="table-scroll[^"]*")'
    r'(?P<rest>[^>]* aria-label="(?P<title>[^"]*)"[^>]*>\s*<table class="bias-table">)'
    r"(?:<caption>(?P<caption>[^<>]*)</caption>)?"
)
BEHIND = "Table behind the figure: "
WORDS = 8
WHOLE = re.compile(
    r'<div class="table-scroll[^"]*" id="(?P<name>[^"]*)"[^>]* aria-label="(?P<title>[^"]*)"[^>]*>'
    r'\s*<table class="bias-table">(?P<inside>.*?)</table>\s*</div>',
    re.S,
)
ROW, CELL = re.compile(r"<tr>(.*?)</tr>", re.S), re.compile(r"<t[hd]([^>]*)>(.*?)</t[hd]>", re.S)
FILES = "_tables"
FILE = '<p class="table-file"><a href="{0}" download>CSV</a></p>'
LICENCE = "CC BY 4.0; what a paper printed is cited as that paper's"
LINK = '<a class="headerlink" href="#{0}" title="Link to this table">#</a>'


def setup(app):
    app.connect("html-page-context", number)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def number(app, pagename, templatename, context, doctree) -> None:
    """Number the tables of a page."""
    if "body" not in context:
        return
    body = numbered(context["body"])
    folder = f"{FILES}/{pagename.rpartition('/')[2]}"
    source = f"{html.unescape(plain(context.get('title', '')))}, {app.config.html_title}"
    for found in WHOLE.finditer(body):
        path = Path(app.outdir, folder, f"{found['name']}.csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_csv(found, source), encoding="utf-8")
    up = "../" * pagename.count("/")
    context["body"] = WHOLE.sub(
        lambda found: found[0] + FILE.format(f"{up}{folder}/{found['name']}.csv"), body
    )


def as_csv(found: re.Match, source: str) -> str:
    """Return a table as CSV: its source in a comment, then heading and rows, numbers as numbers.

    >>> frame = '<div class="table-scroll" id="table-n" aria-label="N"><table class="bias-table">'
    >>> rows = '<tr><th>word</th><th>n</th></tr><tr><th>a</th><td class="number">−1,2</td></tr>'
    >>> print(as_csv(WHOLE.search(f"{frame}{rows}</table></div>"), "A page").replace("\\r", ""))
    # N. From: A page. Licence: CC BY 4.0; what a paper printed is cited as that paper's
    word,n
    a,-12
    <BLANKLINE>
    """
    file = io.StringIO()
    told = f"{html.unescape(found['title']).rstrip('.')}. From: {source}. Licence: {LICENCE}"
    file.write(f"# {told}\n")
    rows = csv.writer(file, lineterminator="\n")
    for row in ROW.findall(found["inside"]):
        rows.writerow([_value(*cell) for cell in CELL.findall(row)])
    return file.getvalue()


def plain(text: str) -> str:
    """Return HTML without its tags."""
    return re.sub(r"<[^>]*>", "", text)


def _value(attributes: str, inside: str) -> str:
    text = html.unescape(plain(inside)).strip()
    if "number" not in attributes:
        return text
    return "" if text == "–" else text.replace(",", "").replace("−", "-")


def numbered(body: str) -> str:
    """Return a page's body with its tables numbered.

    >>> frame = '<div class="table-scroll" aria-label="Words"><table class="bias-table">'
    >>> frame += "<caption>Words</caption>"
    >>> body = '<h1><span class="section-number">4. </span>Words</h1>' + frame
    >>> found = numbered(body)
    >>> 'id="table-words"' in found, found.partition("<caption>")[2][:60]
    (True, '<span class="caption-number">Table 4.1 </span>Words<a class=')
    >>> listed = '<caption><span class="caption-number">Table 4.1 </span>Listed</caption>'
    >>> "Table 4.2 </span>Words" in numbered(listed + body)
    True
    """
    chapter, names = CHAPTER.search(body), Counter()
    counted = itertools.count(1 + body.count(LISTED))
    return TABLE.sub(lambda found: _named(found, next(counted), chapter, names), body)


def name_of(title: str) -> str:
    """Return the address of a table, from its caption.

    >>> name_of("Table behind the figure: what 20 models say of one&#x27;s work, dose 3")
    'table-what-models-say-of-one-s-work-dose'
    """
    plain = html.unescape(title).removeprefix(BEHIND).lower()
    words = [word for word in re.findall(r"\w+", plain) if not re.search(r"\d", word)]
    return "-".join(["table", *words[:WORDS]])


def _named(found: re.Match, place: int, chapter: re.Match | None, names: Counter) -> str:
    name, number = name_of(found["title"]), f"{chapter[1]}.{place}" if chapter else str(place)
    names[name] += 1
    if names[name] > 1:
        name = f"{name}-{names[name]}"
    number = f'<span class="caption-number">Table {number} </span>'
    folded, caption = found["folded"] or "", found["caption"]
    told = "" if caption is None else f"<caption>{number}{caption}{LINK.format(name)}</caption>"
    frame = f'{found["frame"]} id="{name}"{found["rest"]}'
    opened = f"{folded}{number}{found['words']}" if folded else ""
    return f"{opened}{frame}{told}"
