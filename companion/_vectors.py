"""Vectors that a reader drags; the page that shows them needs no kernel."""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from companion._assets import script_and_style


@dataclass(frozen=True)
class Vectors:
    """Embeddings in two dimensions, to be dragged, with the scores that follow from them.

    A script in the page computes the scores of the targets, the effect size with ``ddof=1`` and the
    share of deals that reach the difference of means, as :mod:`biaslib.metrics.association` and
    :func:`biaslib.inference.permutation_test` do.

    Attributes
    ----------
    name
        What is shown, for those who do not see it.
    sets
        Vectors of the sets X, Y, A and B, each a pair of numbers from −1.2 to 1.2.
    presets
        Other places to begin from, by what their button says.

    Examples
    --------
    >>> sets = {"X": [(1, 0)], "Y": [(0, 1)], "A": [(1, 0)], "B": [(0, 1)]}
    >>> 'aria-label="Four vectors"' in Vectors("Four vectors", sets).page()
    True
    """

    name: str
    sets: Mapping[str, Sequence[Sequence[float]]]
    presets: Mapping[str, Mapping[str, Sequence[Sequence[float]]]] | None = None

    def page(self) -> str:
        """Return the vectors as a piece of page; outside of the book with its script and style."""
        places = [_plain(each) for each in (self.sets, *(self.presets or {}).values())]
        data = json.dumps(places, separators=(",", ":")).replace("<", "\\u003c")
        buttons = "".join(
            f'<button type="button" data-preset="{number}">{html.escape(label)}</button>'
            for number, label in enumerate(["Back to the start", *(self.presets or {})])
        )
        return (
            f'<div class="vectors" role="group" aria-label="{html.escape(self.name)}">'
            f'<div class="vectors-buttons">{buttons}</div>'
            '<div data-part="plot"></div>'
            '<p class="explorer-text" data-part="text" aria-live="polite"></p>'
            "<noscript>To drag the vectors needs JavaScript; the cells below compute the same for "
            "those of the figure.</noscript>"
            f'<script type="application/json" data-part="data">{data}</script></div>'
            f"{script_and_style('vectors')}"
        )

    def _repr_html_(self) -> str:
        return self.page()

    def __repr__(self) -> str:
        return f"{self.name}: {', '.join(self.sets)}, to be dragged in a browser"


def _plain(sets: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, list[list[float]]]:
    return {
        name: [[float(number) for number in row] for row in rows] for name, rows in sets.items()
    }
