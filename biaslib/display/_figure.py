"""A figure of a page: picture, caption, words for those who do not see it, and its table."""

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from biaslib.display._style import NOTES
from biaslib.display._tables import Table, one_line
from biaslib.display._text import plain
from biaslib.runtime import in_book


@dataclass(frozen=True)
class Figure:
    """A picture with its caption, alt text and table, as :func:`figure` returns it.

    A notebook program shows it as one piece of HTML. The book gets the same as MyST, so that the
    figure is numbered and ``{numref}`` finds it by its name.
    """

    picture: Any
    caption: str
    name: str
    alt: str
    tables: tuple[Table, ...] = ()
    invert: bool = True

    def _address(self) -> str:
        """Return the picture as an address that holds it."""
        drawn, ground = io.BytesIO(), self.picture.get_facecolor()
        self.picture.savefig(drawn, format="svg", bbox_inches="tight", facecolor=ground)
        return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"

    def _behind(self) -> str:
        return "".join(table.behind() for table in self.tables)

    def page(self) -> str:
        """Return the figure as MyST, for the book."""
        caption, alt = (" ".join(each.split()) for each in (self.caption, self.alt))
        options = f":name: {self.name}\n:alt: {alt}\n"
        options += "" if self.invert else ":class: no-invert\n"
        drawn = f":::{{figure}} {self._address()}\n{options}\n{plain(caption)}\n:::"
        return f"{drawn}\n\n{self._behind()}".strip()

    def html(self) -> str:
        """Return the figure as HTML, for a notebook program."""
        caption, alt = html.escape(self.caption), html.escape(self.alt)
        drawn = f'<img src="{self._address()}" alt="{alt}" style="max-width: 100%">'
        drawn += f"<figcaption>{caption}</figcaption>"
        return f'<figure style="margin: 1em 0">{drawn}</figure>{self._behind()}'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return _bundle(self)

    def __repr__(self) -> str:
        return f"{self.caption}\n{self.alt}"


@dataclass(frozen=True)
class Folded:
    """Figures and tables that are shown once the reader opens them, as :func:`fold` returns it."""

    summary: str
    parts: tuple[Any, ...]

    def _within(self, shown: str) -> str:
        summary = one_line(self.summary)
        head = f'<details class="table-behind"><summary>{summary}</summary>'
        return f'{head}<div class="folded">{shown}</div></details>'

    def page(self) -> str:
        """Return what is folded as MyST, for the book."""
        inner = [p.page() if isinstance(p, Figure) else p._repr_html_() for p in self.parts]
        return self._within("\n\n" + "\n\n".join(inner) + "\n\n")

    def html(self) -> str:
        """Return what is folded as HTML, for a notebook program."""
        inner = [p.html() if isinstance(p, Figure) else p._repr_html_() for p in self.parts]
        return self._within("".join(inner))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return _bundle(self)

    def __repr__(self) -> str:
        return "\n".join([self.summary, *map(repr, self.parts)])


def _bundle(shown: Figure | Folded) -> dict[str, str]:
    form = {"text/markdown": shown.page()} if in_book() else {"text/html": shown.html()}
    return {"text/plain": repr(shown), **form}


def figure(
    picture: Any,
    caption: str,
    *,
    name: str,
    alt: str,
    table: Table | Sequence[Table] = (),
    invert: bool = True,
) -> Figure:
    """Return a figure to display.

    Parameters
    ----------
    picture
        A Matplotlib figure. If it is marked as of the planted world (:func:`marked`), captions of
        figure and tables that do not name that world end with it.
    caption
        What it shows.
    name
        What ``{numref}`` calls it in the book, such as ``"fig-audit-effects"``.
    alt
        What it looks like, for those who do not see it.
    table
        The numbers behind it, folded below it; several where it has several parts.
    invert
        Whether a dark page turns the colours round; false for photographs and drawn scenes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure(Figure(), "Two words.", name="fig-two", alt="Two dots, the right one higher.")
    Two words.
    Two dots, the right one higher.
    """
    tables = (table,) if isinstance(table, Table) else tuple(table)
    note = picture.get_suptitle()
    if note in NOTES.values():
        caption = f"{_noted(caption.rstrip('.'), note)}."
        tables = tuple(replace(each, caption=_noted(each.caption, note)) for each in tables)
    return Figure(picture, caption, name, alt, tables, invert)


def _noted(caption: str, note: str) -> str:
    if note in caption.lower():
        return caption
    return f"{caption.rstrip('.')}. {note[0].upper()}{note[1:]}"


def fold(summary: str, *parts: Any) -> Folded:
    """Return figures, tables and panels behind a line that opens them, as harmful words ask for.

    Parameters
    ----------
    summary
        The line: what is inside, so that nobody opens it unawares.
    parts
        What is inside, in its order.

    Examples
    --------
    >>> import pandas
    >>> from biaslib.display import table
    >>> fold("Show the words", table(pandas.DataFrame({"n": [2]}), "Two"))
    Show the words
    Two
     n
     2
    """
    return Folded(summary, parts)
