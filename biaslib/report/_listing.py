"""A long table with a search field and filters; the page that shows it needs no kernel."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas

from biaslib.report._assets import script_and_style
from biaslib.report._tables import one_line


@dataclass(frozen=True)
class Listing:
    """A table whose rows a reader searches and filters, in a notebook and in the built book.

    Every row stands in the page: without a script all are shown, and the browser's own search
    finds them.

    Attributes
    ----------
    frame
        The rows.
    caption
        What they are.
    filters
        Columns by which rows are chosen.
    links
        By column, the column that holds the address of its cell's link; it is not shown itself.

    Examples
    --------
    >>> rows = pandas.DataFrame({"word": ["nurse"], "kind": ["number"]})
    >>> '<option>number</option>' in Listing(rows, "One word", ["kind"]).page()
    True
    """

    frame: pandas.DataFrame
    caption: str
    filters: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)

    def page(self) -> str:
        """Return the table as a piece of page; outside of the book with its script and style."""
        caption = one_line(self.caption)
        shown = [column for column in self.frame if column not in self.links.values()]
        head = "".join(f'<th scope="col">{one_line(column)}' for column in shown)
        rows = "".join(self._row(row, shown) for row in self.frame.to_dict("records"))
        return (
            f'<div class="listing"><div class="listing-controls" hidden>'
            f'<label>Search <input type="search" data-search></label>'
            f"{''.join(self._filter(column, shown) for column in self.filters)}</div>"
            f'<p class="listing-count" aria-live="polite" data-count>{len(self.frame):,} rows</p>'
            f'<div class="table-scroll listing-rows" role="region" tabindex="0" '
            f'aria-label="{caption}"><table class="bias-table"><caption>{caption}</caption>'
            f"<thead><tr>{head}</thead><tbody>{rows}</tbody></table></div></div>"
            f"{script_and_style('listing')}"
        )

    def _filter(self, column: str, shown: Sequence[str]) -> str:
        values = [each for each in self.frame[column].astype(str).unique() if each]
        options = "".join(f"<option>{html.escape(value)}</option>" for value in values)
        return (
            f"<label>{one_line(column)} <select data-column={shown.index(column)}>"
            f'<option value="">all</option>{options}</select></label>'
        )

    def _row(self, row: Mapping[str, object], shown: Sequence[str]) -> str:
        """Return a row; end tags that HTML does not need are left out, since rows are many."""
        return "<tr>" + "".join(f"<td>{self._cell(row, column)}" for column in shown)

    def _cell(self, row: Mapping[str, object], column: str) -> str:
        text, address = one_line(row[column]), row.get(self.links.get(column))
        return f'<a href="{html.escape(address)}">{text}</a>' if address else text

    def _repr_html_(self) -> str:
        return self.page()

    def __repr__(self) -> str:
        return f"{self.caption}: {len(self.frame):,} rows"
