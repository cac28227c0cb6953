"""Tables that a screen reader, a phone and a spreadsheet can read."""

import html
import re
from dataclasses import dataclass, replace

import pandas

NOISE = 1e-12
"""A value below this size is what rounding left of sums and differences near 1: shown as 0."""

MAY_BE_TINY = re.compile(r"\bp(\b|_)|probabilit", re.IGNORECASE)
"""Names of columns of p-values and probabilities: products, which can truly be that small."""


LEFT = ' style="text-align:left"'
"""Of cells of text: notebook programs set cells to the right unless the cell itself says so."""


@dataclass(frozen=True)
class Table:
    """A table of a page: shown whole, or folded behind its caption where a figure shows it."""

    frame: pandas.DataFrame
    caption: str
    folded: bool = False
    decimals: int = 2

    def _repr_html_(self) -> str:
        head = "".join(self._heading(*column) for column in self.frame.items())
        rows = "".join(self._row(row) for row in self.frame.itertuples(index=False, name=None))
        caption = one_line(self.caption)
        inner = "" if self.folded else f"<caption>{caption}</caption>"
        body = (
            f'<div class="table-scroll" role="region" tabindex="0" aria-label="{caption}">'
            f'<table class="bias-table">{inner}<thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        )
        if not self.folded:
            return body
        return f'<details class="table-behind"><summary>{caption}</summary>{body}</details>'

    def behind(self) -> str:
        """Return the table folded, as it stands behind a figure."""
        return replace(self, folded=True)._repr_html_()

    def _heading(self, name, values) -> str:
        """Set a heading above numbers where they are: to the right."""
        numbers = [_is_number(each) for each in values if not _is_missing(each)]
        among = any(numbers) and all(numbers)
        kind = ' class="number"' if among else LEFT
        return f'<th scope="col"{kind}>{one_line(name)}</th>'

    def _row(self, row) -> str:
        """Set a row; where it begins with words, these are its heading."""
        first, *rest = list(map(_without_noise, self.frame.columns, row)) or [None]
        cells = [self._cell(value) for value in rest]
        head = self._cell(first)
        if isinstance(first, str):
            head = f'<th scope="row"{LEFT}>{one_line(first)}</th>'
        return f"<tr>{head}{''.join(cells)}</tr>"

    def _cell(self, value) -> str:
        if pandas.api.types.is_bool(value):
            return f"<td{LEFT}>{'yes' if value else 'no'}</td>"
        if _is_number(value) or value is pandas.NA:
            text = "–" if pandas.isna(value) else self._number(value)
            return f'<td class="number">{text}</td>'
        return f"<td{LEFT}>{'–' if value is None else one_line(value)}</td>"

    def _number(self, value) -> str:
        if pandas.api.types.is_integer(value):
            text = f"{value:,}"
        elif 0 < abs(value) < 0.5 * 10**-self.decimals:
            text = f"{value:.1e}"
        else:
            text = f"{value:,.{self.decimals}f}"
        return text.replace("-", "−")

    def __repr__(self) -> str:
        return f"{self.caption}\n{self.frame.to_string(index=False)}"


def one_line(value: object) -> str:
    """Return a value as HTML without line breaks, at which Markdown around it would begin again.

    >>> one_line("a <b>\\n\\n# c")
    'a &lt;b&gt; # c'
    """
    return html.escape(" ".join(str(value).split()))


def _without_noise(column, value):
    """Return a cell's value, 0 in place of what rounding left of it.

    >>> _without_noise("mean B", -7.0e-19), _without_noise("p, Holm", 7.0e-19)
    (0.0, 7e-19)
    """
    noise = _is_number(value) and abs(value) < NOISE and not MAY_BE_TINY.search(str(column))
    return type(value)(0) if noise else value


def _is_missing(value) -> bool:
    return value is None or value is pandas.NA


def _is_number(value) -> bool:
    return pandas.api.types.is_number(value) and not pandas.api.types.is_bool(value)


def table(
    frame: pandas.DataFrame, caption: str, *, folded: bool = False, decimals: int = 2
) -> Table:
    """Return a table to display.

    Parameters
    ----------
    frame
        The rows, as they shall be read; the index is not shown.
    caption
        What the table holds, n included.
    folded
        Show only the caption until the reader opens it: for the table behind a figure.
    decimals
        Decimals of numbers that are not whole.
    """
    return Table(frame, caption, folded, decimals)


def problem_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return problems of a data set counted by kind, with an example of each.

    Parameters
    ----------
    found
        *severity*, *kind*, *where*, *what*: one row a problem.

    Examples
    --------
    >>> row = {"severity": "error", "kind": "image is missing", "where": "X", "what": "1.jpg"}
    >>> problem_table(pandas.DataFrame([row, row])).values.tolist()
    [['image is missing', 'error', 2, 'X: 1.jpg']]
    """
    if found.empty:
        return pandas.DataFrame({"problem": ["none"], "count": [0], "example": ["–"]})
    rows = [
        {"problem": kind, "severity": severity, "count": len(group), "example": _first(group)}
        for (severity, kind), group in found.groupby(["severity", "kind"], sort=False)
    ]
    return pandas.DataFrame(rows)


def _first(group: pandas.DataFrame) -> str:
    row = group.iloc[0]
    return f"{row['where']}: {row['what']}"
