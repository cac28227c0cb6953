"""One report of an audit, written twice: as Markdown, and as HTML that holds everything itself.

What comes from outside (names of models, files, groups and words) is shown as it is, and read
neither as Markdown nor as HTML.
"""

import base64
import contextlib
import gzip
import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas

from biaslib.display import _own_tables as tables
from biaslib.display._text import counted, in_code
from biaslib.studies import own_model as study

Block = tuple[str, Any]
"""A kind (``title``, ``heading``, ``text``, ``ask``, ``note``, ``list``, ``table``, ``fold``,
``figure``) and what it holds."""

ALT = (
    "A column of panels, one for each part that ran: rows of dots with horizontal intervals, the "
    "questions of the part, over grey bars where the dots would lie if there were nothing."
)

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#111;
background:#fff}table{border-collapse:collapse;margin:1rem 0;font-size:.9rem}
th,td{border-bottom:1px solid #bbb;padding:.3rem .6rem;text-align:left;vertical-align:top}
.scroll{overflow-x:auto}.ask{background:#fff6d6;padding:.3rem .6rem}
.note{border-left:4px solid #a33;padding:.3rem .8rem;font-weight:600}img{min-width:36rem;
max-width:100%}body{overflow-wrap:anywhere}th,td{overflow-wrap:normal}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#161616}.ask{background:#3d3413}
th,td{border-color:#555}a{color:#8cf}}
"""


def blocks(
    found: study.Audit,
    compared: pandas.DataFrame | None = None,
    other: study.Audit | None = None,
) -> Iterator[Block]:
    """Yield the report of an audit, block by block.

    Parameters
    ----------
    found
        The audit.
    compared, other
        The comparison with another audit (:func:`biaslib.studies.own_model.compare`), and that.
    """
    yield "title", f"Association measures of {_name(found)}"
    if found.stimuli == "planted":
        yield (
            "note",
            "The stimuli are of a planted world: drawn scenes and invented captions. These numbers "
            "test the measuring. They say nothing about the model's treatment of photographs or of "
            "people, and must not be quoted as findings about it.",
        )
    yield from _asked(found)
    yield from _looked(found)
    yield from _results(found)
    if compared is not None and other is not None:
        yield from _compared(compared, other)
    yield "heading", "What was not run, and why"
    yield "table", tables.not_run_table(found)
    yield "ask", "Whether this matters for the use above."
    yield from _limits(found)
    yield "heading", "Decisions"
    yield "ask", "What changes because of this report, who was asked, and who can object."
    yield "ask", "What would have to be measured next, on the system as it is used."
    yield "heading", "Words to keep to"
    yield "text", "Examples of wording: the numbers in them are invented."
    yield "table", tables.wording_table()
    yield "text", "Cite the study whose measure a number is. The studies have no common unit."
    yield "heading", "What it was made of"
    yield "list", _stamp(found)


def _name(found: study.Audit) -> str:
    return " ".join(str(found.own.given).split())


def _asked(found: study.Audit) -> Iterator[Block]:
    yield "heading", "What was asked, and of whom"
    yield (
        "list",
        [
            f"Model: {_name(found)}, read as {found.own.registered}",
            f"Revision: {found.own.model.revision}",
            f"Pictures: {tables.SOURCES[found.stimuli]}",
            f"Data: {'; '.join(found.provenance['data']) or 'none'}",
            f"Questions: {len(found.asked):,}, written down before the run. Each has a null, and "
            "all p-values are corrected together (Holm): one wrong claim makes a wrong report, and "
            "Holm keeps the probability of any at 5%, however the questions depend on each other",
        ],
    )
    if found.folder is not None:
        yield "table", found.folder.counts()
        if found.folder.notes:
            yield "list", list(found.folder.notes)
    yield "ask", "Why this model, and for which use? Who decides what on the basis of this report?"
    yield "ask", "Who is in the pictures, who gave them their labels, and did they agree?"
    yield "ask", "Which groups do the questions have words for, and which do they leave out?"


def _looked(found: study.Audit) -> Iterator[Block]:
    yield "heading", "Does the model look at the pictures?"
    if found.looking:
        yield (
            "text",
            "Two pictures and their captions are swapped. A model that looks prefers them as they "
            "are; what it prefers to say, or to see, cancels.",
        )
        yield "table", tables.grounding_table(found.looking)
    if any(not each.looks for each in found.looking.values()):
        yield (
            "note",
            "Where the model was not seen to look, what it answers may have nothing to do with "
            "what the pictures show: choices between captions (vlbs and its companions) are left "
            "out, and no claim about portraits below may be told without this.",
        )
    if not found.looking:
        yield "text", "This was not checked."
    of_data = () if found.folder is None else found.folder.notes
    if notes := [each for each in found.notes if each not in of_data]:
        yield "list", notes


def _results(found: study.Audit) -> Iterator[Block]:
    yield "heading", "What is claimed after the correction"
    n = len(found.claims)
    if n:
        yield (
            "text",
            f"The null was rejected in {n:,} of {len(found.asked):,} questions; each is listed.",
        )
        yield "table", tables.claim_table(found)
    else:
        yield (
            "text",
            f"Nothing: the null was rejected in none of {len(found.asked):,} questions. That does "
            "not show that nothing is there; see the intervals.",
        )
    yield "heading", "Results"
    yield "table", tables.one_page(found)
    yield "figure", found
    yield "fold", ("Every question, whatever it gave", tables.question_table(found))
    yield (
        "ask",
        "Say of each number: high or low against what? Do not add the studies up: their units "
        "differ.",
    )


def _compared(compared: pandas.DataFrame, other: study.Audit) -> Iterator[Block]:
    yield "heading", "Beside another model"
    n = int((compared["p_holm"] < study.LEVEL).sum())
    yield (
        "text",
        f"Second model: {_name(other)}, revision {other.own.model.revision}. Both had the same "
        "words and pictures; intervals are of the difference, and draw the shared words or "
        f"triplets anew: the people in the pictures are held. The models differ in {n:,} of "
        f"{len(compared):,} rows after a correction "
        "over all of them (Holm). Effect sizes of study 1 are divided by each model's own spread, "
        "and are not compared.",
    )
    yield "table", tables.comparison_table(compared)


def _limits(found: study.Audit) -> Iterator[Block]:
    """Say what the numbers do not show, in words that fit them."""
    yield "heading", "What this does not show"
    said = []
    asked = found.asked
    if len(asked):
        across = int(((asked["low"] <= 0) & (asked["high"] >= 0)).sum())
        width = (asked["high"] - asked["low"]).groupby(asked["study"]).median().dropna()
        widths = ", ".join(
            f"{tables.STUDIES[name]} {each:.2f} wide" for name, each in width.items()
        )
        said.append(
            f"{across:,} of {len(asked):,} intervals include 0. The median interval, in the unit "
            f"of each study: {widths}. A small score is no proof that nothing is there"
        )
        said.append(
            f"The smallest question rests on {counted(asked['n'].min(), 'units')} (words, entities "
            "or triplets of captions). Intervals are about other words, and with portraits about "
            "other people too, not about other trainings of the model"
        )
    said += [
        "A score describes the model with these words and pictures. It does not say how the model, "
        "or a system built on it, treats people; intrinsic measures have been found not to predict "
        "that",
        "More than 5% of words lie outside the range of innocent words even in models in which "
        "nothing was planted. That count is a description and not a claim",
        "The words are English, and from the United States; two genders and a few race labels are "
        "the studies', not the world's",
    ]
    yield "list", said
    yield "ask", "Where will the model be used, and in which languages?"


def _stamp(found: study.Audit) -> list[str]:
    given = found.provenance
    packages = ", ".join(f"{name} {version}" for name, version in given["packages"].items())
    return [
        f"biaslib {given['biaslib']}",
        f"Python {given['python']}; {packages}",
        f"Profile {given['profile']}; finished {given['finished']}",
        "scores.csv holds every score, provenance.json what they were made of",
    ]


# Markdown

SPECIAL = re.compile(r"([\\`*_\[\]<>|!$~#{}])")


def _text(value: Any) -> str:
    """Return text of which nothing is read as Markdown."""
    line = " ".join(str(value).split())
    return SPECIAL.sub(r"\\\1", line).replace("&", "&amp;").replace("://", ":\\//")


def write_up(
    found: study.Audit,
    compared: pandas.DataFrame | None = None,
    other: study.Audit | None = None,
) -> str:
    """Return a report in Markdown: what the audit knows is filled in, what you know is asked for.

    Square brackets mark what a person has to write. A report with brackets left is not finished.
    The figure is in the HTML file. Parameters are as of :func:`blocks`.
    """
    every = blocks(found, compared, other)
    return "\n\n".join(_markdown(*block) for block in every if block[0] != "figure") + "\n"


def _markdown(kind: str, held: Any) -> str:
    if kind == "title":
        return f"# Association measures of {in_code(held.removeprefix('Association measures of '))}"
    if kind == "heading":
        return f"## {held}"
    if kind == "ask":
        return f"[{held}]"
    if kind == "note":
        return f"> **{_text(held)}**"
    if kind == "list":
        return "\n".join(f"- {_text(each)}" for each in held)
    if kind == "table":
        return _markdown_table(held)
    if kind == "fold":
        return f"{held[0]}:\n\n{_markdown_table(held[1])}"
    return _text(held)


def _markdown_table(frame: pandas.DataFrame) -> str:
    rows = [list(frame.columns), ["---"] * frame.shape[1]]
    body = [[_text(cell) for cell in row] for row in frame.itertuples(index=False, name=None)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [*rows, *body])


# HTML


def html_report(
    found: study.Audit,
    compared: pandas.DataFrame | None = None,
    other: study.Audit | None = None,
) -> str:
    """Return the report as one HTML file that loads nothing and runs nothing.

    Parameters are as of :func:`blocks`.
    """
    body = "\n".join(_html(*block) for block in blocks(found, compared, other))
    title = html.escape(f"Association measures of {_name(found)}")
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _html(kind: str, held: Any) -> str:
    if kind == "figure":
        return report_figure(held)
    if kind == "table":
        return _html_table(held)
    if kind == "fold":
        return f"<details><summary>{held[0]}</summary>{_html_table(held[1])}</details>"
    if kind == "list":
        return f"<ul>{''.join(f'<li>{html.escape(str(each))}</li>' for each in held)}</ul>"
    said = html.escape(str(held))
    forms = {
        "title": "<h1>{}</h1>",
        "heading": "<h2>{}</h2>",
        "ask": '<p class="ask">[{}]</p>',
        "note": '<p class="note">{}</p>',
        "text": "<p>{}</p>",
    }
    return forms[kind].replace("{}", said)


def _html_table(frame: pandas.DataFrame) -> str:
    head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in frame)
    rows = (
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def report_figure(found: study.Audit) -> str:
    """Return the figure of an audit as HTML that holds it."""
    from matplotlib import pyplot

    picture = tables.forest(found)
    drawn = io.BytesIO()
    picture.savefig(drawn, format="png", dpi=110, bbox_inches="tight", facecolor="white")
    pyplot.close(picture)
    held = base64.b64encode(drawn.getvalue()).decode()
    return (
        f'<figure class="scroll" tabindex="0"><img src="data:image/png;base64,{held}" '
        f'alt="{html.escape(ALT)}"><figcaption>The questions of each part with 95% intervals, of '
        "portraits those of the first group of the first column; grey: if there were nothing. "
        "Every panel has its own unit.</figcaption></figure>"
    )


# Files

PACKED = 500_000
"""A file of more bytes than this is packed in its link: the page that holds it stays light."""


@contextlib.contextmanager
def _written_into(folder: Path) -> Iterator[None]:
    """Make a folder; turn what goes wrong into advice, and leave nothing half written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        for left in folder.glob("*.part") if folder.is_dir() else ():
            with contextlib.suppress(OSError):
                left.unlink()
        raise OSError(
            f"{folder} cannot hold the report ({error.strerror}): free some space, or name another "
            "folder. What models answered is kept in the store"
        ) from error


def require_writable(folder: str | Path) -> None:
    """Refuse a folder into which no report could be written, before any work is done.

    Raises
    ------
    OSError
        With its name and what to do.
    """
    folder = Path(folder)
    with _written_into(folder):
        tried = folder / "report.part"
        tried.write_text("", encoding="utf-8")
        tried.unlink()


class Downloads:
    """Links that hold the files of an audit themselves, so that they work on a page too.

    Parameters are as of :func:`blocks`.

    Attributes
    ----------
    files
        Kind and text by name: the scores, what they were made of, and the report twice.
    """

    def __init__(
        self,
        found: study.Audit,
        compared: pandas.DataFrame | None = None,
        other: study.Audit | None = None,
    ):
        self.files = {
            "scores.csv": ("text/csv", found.scores.to_csv(index=False)),
            "provenance.json": ("application/json", json.dumps(found.provenance, indent=1) + "\n"),
            "report.md": ("text/markdown", write_up(found, compared, other)),
            "report.html": ("text/html", html_report(found, compared, other)),
        }
        if compared is not None and other is not None:
            second = json.dumps(other.provenance, indent=1) + "\n"
            self.files |= {
                "comparison.csv": ("text/csv", compared.to_csv(index=False)),
                "scores-second.csv": ("text/csv", other.scores.to_csv(index=False)),
                "provenance-second.json": ("application/json", second),
            }

    def save(self, folder: str | Path) -> list[Path]:
        """Write the files, which belong together, into a folder; make it if it is not there.

        All are written before the first takes its name, so that an earlier report stays whole.

        Raises
        ------
        OSError
            If they cannot be written; the message names the folder and says what to do.
        """
        folder = Path(folder)
        with _written_into(folder):
            for name, (_, text) in self.files.items():
                (folder / f"{name}.part").write_text(text, encoding="utf-8")
            for name in self.files:
                (folder / f"{name}.part").replace(folder / name)
        return [folder / name for name in self.files]

    def _repr_html_(self) -> str:
        return f"<p>To keep: {', '.join(self._link(name) for name in self.files)}.</p>"

    def _link(self, name: str) -> str:
        kind, text = self.files[name]
        content = text.encode()
        if len(content) > PACKED:
            kind, name = "application/gzip", f"{name}.gz"
            content = gzip.compress(content, mtime=0)
        held = base64.b64encode(content).decode()
        return f'<a download="{html.escape(name)}" href="data:{kind};base64,{held}">{name}</a>'

    def __repr__(self) -> str:
        return f"files of the audit: {', '.join(self.files)}"
