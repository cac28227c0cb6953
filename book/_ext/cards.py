"""Sphinx extension: cards for phones, and sheets of slips and cards for a printer.

``book/cards/purse.md`` becomes ``teach/card_purse.html``, which loads nothing and links to nothing:
a phone has it at once, and no answer is near. Each heading ``##`` begins a part, which can be
printed by itself. ``book/cards/ninety_minutes.yml`` says what the plan of this name prints, a list
of sheets of A4; ``teach/print_ninety_minutes.html`` has them.
"""

import re
from itertools import cycle, islice
from pathlib import Path

import plans
import slides
import yaml
from sphinx.errors import ExtensionError

STATIC = Path(__file__).parents[1] / "static"
GRID = re.compile(r"(\d+)x(\d+)")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body><main>
{body}</main></body>
</html>
"""


def setup(app):
    # After the folder of the materials has been made, before the policy is written into pages.
    app.connect("build-finished", write_cards, priority=710)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_cards(app, exception) -> None:
    """Write the page of every card, and the sheets of every plan that has some."""
    if exception is None and app.builder.format == "html":
        write_all(Path(app.srcdir) / "book" / "cards", Path(app.outdir) / "teach")


def write_all(folder: Path, target: Path) -> None:
    for old in [*target.glob("card_*.html"), *target.glob("print_*.html")]:
        old.unlink()
    for path in sorted(folder.glob("*.md")):
        body = slides.markdown(path.read_text(encoding="utf-8"))
        page = PAGE.format(title=plans.titled(path), style=style("card"), body=body)
        (target / f"card_{path.stem}.html").write_text(page, encoding="utf-8")
    for path in sorted(folder.glob("*.yml")):
        (target / f"print_{path.stem}.html").write_text(printed(path), encoding="utf-8")


def style(name: str) -> str:
    return (STATIC / f"{name}.css").read_text(encoding="utf-8")


def parts_of(path: Path) -> dict[str, str]:
    """Return the parts of a card in HTML, by the letter or word with which their heading begins."""
    texts = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.M)
    names = [each.split()[1].strip(":") if each.startswith("## ") else "" for each in texts]
    return {name: slides.markdown(each) for name, each in zip(names, texts, strict=True)}


def printed(path: Path) -> str:
    """Return the sheets of a plan as a page.

    Raises
    ------
    ExtensionError
        Naming file and sheet, if it lacks a key, or a card or its part is not there.
    """
    body = ["<h1>To print, and to cut along the lines</h1>\n"]
    for number, sheet in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")), start=1):
        place = f"{path.name}, sheet {number}"
        found = GRID.fullmatch(str(sheet.get("grid")))
        if not found or "say" not in sheet or len(sheet.keys() & {"card", "pieces"}) != 1:
            raise ExtensionError(f"{place}: a sheet has say, grid such as 2x4, and card or pieces")
        pieces = [piece(each) for each in sheet.get("pieces", [])] or [card(path, sheet, place)]
        across, down = int(found[1]), int(found[2])
        grid = f"grid-template:repeat({down},1fr)/repeat({across},1fr)"
        cells = "\n".join(islice(cycle(pieces), across * down))
        say = f'<p class="say">{sheet["say"]}</p>\n'
        body.append(f'{say}<div class="sheet" style="{grid}">\n{cells}\n</div>\n')
    title = f"To print: {path.stem.replace('_', ' ')}"
    return PAGE.format(title=title, style=style("print"), body="".join(body))


def piece(text: str) -> str:
    """Return a slip, whose halves a bar divides, or a card with a few words."""
    halves = [slides.markdown(each) for each in text.split(" | ")]
    if len(halves) == 1:
        return f'<div class="few">{halves[0]}</div>'
    return f'<div class="halves">{"".join(f"<div>{each}</div>" for each in halves)}</div>'


def card(path: Path, sheet: dict, place: str) -> str:
    """Return the part of a card that a sheet names as ``purse A``."""
    name, _, part = sheet["card"].partition(" ")
    parts = parts_of(plans.card_file(path.parents[2], name, place))
    if part not in parts:
        raise ExtensionError(f"{place}: the card {name} has no part {part!r}; it has {[*parts]}")
    return f"<div>{parts[part]}</div>"
