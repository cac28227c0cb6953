"""A panel of choices over precomputed results; the page that shows it needs no kernel."""

import html
import importlib.resources
import json
from collections.abc import Sequence
from numbers import Real
from typing import Any

from biaslib.report._drawing import Drawing
from biaslib.runtime import in_book

MISSING = "Nothing was run for this combination."


class Panel:
    """Choices over results: a piece of page, the same in a running notebook and in the built book.

    A script draws it from its description, :meth:`data`, and computes nothing.

    Parameters
    ----------
    name
        What is chosen from, for example ``"Tests of study 1"``.
    choices
        Values by the label of their control, in order. Several numbers become a slider, anything
        else a list.
    cases
        A drawing, or several to stand below each other, by the chosen values in the order of the
        controls. A combination may be missing; the panel says so.

    Raises
    ------
    ValueError
        If a case is of values that cannot be chosen.

    Examples
    --------
    >>> dots = {"kind": "dots", "x": [0, 1], "y": [0, 1], "label": "words", "group": 0}
    >>> shown = Drawing("Two words.", [dots], "dose", "score", (0, 1), (0, 1), "Two dots.")
    >>> panel = Panel("Example", {"Level": ["word", "sentence"]}, {("word",): shown})
    >>> panel.sentence("word"), panel.sentence("sentence")
    ('Two words.', 'Nothing was run for this combination.')
    """

    def __init__(
        self,
        name: str,
        choices: dict[str, Sequence[Any]],
        cases: dict[tuple, Drawing | Sequence[Drawing]],
    ):
        self.name = name
        self.choices = {label: list(values) for label, values in choices.items()}
        self.cases = {
            key: [shown] if isinstance(shown, Drawing) else list(shown)
            for key, shown in cases.items()
        }
        for key in self.cases:
            self._place(key)

    def _place(self, chosen: tuple) -> str:
        """Return the positions of chosen values among the choices, as the script writes them."""
        try:
            pairs = zip(self.choices.values(), chosen, strict=True)
            return ",".join(str(values.index(value)) for values, value in pairs)
        except ValueError:
            raise ValueError(
                f"{chosen} cannot be chosen in the panel {self.name!r}, which has {self.choices}"
            ) from None

    def drawings(self, *chosen: Any) -> list[Drawing]:
        """Return what is shown for chosen values; nothing where nothing was run."""
        self._place(chosen)
        return self.cases.get(chosen, [])

    def sentence(self, *chosen: Any) -> str:
        """Return the sentences shown for chosen values."""
        return " ".join(each.sentence for each in self.drawings(*chosen)) or MISSING

    def data(self) -> dict[str, Any]:
        """Return all that the page draws from."""
        return {
            "name": self.name,
            "controls": [[label, list(map(str, v))] for label, v in self.choices.items()],
            "missing": MISSING,
            "cases": {
                self._place(key): [drawing.as_dict() for drawing in shown]
                for key, shown in self.cases.items()
            },
        }

    def page(self) -> str:
        """Return the panel as a piece of page that works without a kernel.

        It brings its script and style along, except in the book, whose pages load them as files.
        """
        data = json.dumps(self.data(), separators=(",", ":"), ensure_ascii=False)
        data = data.replace("<", "\\u003c")  # No label ends this script, or begins another.
        return (
            f'<div class="explorer" role="group" aria-label="{html.escape(self.name)}">'
            f'<div class="explorer-controls">{"".join(map(self._control, self.choices))}</div>'
            '<p class="explorer-text" data-part="text" aria-live="polite"></p>'
            '<div data-part="views"></div>'
            "<noscript>This panel needs JavaScript; the tables of this page hold the same "
            "numbers.</noscript>"
            f'<script type="application/json" data-part="data">{data}</script></div>'
            f"{'' if in_book() else _script_and_style()}"
        )

    def _control(self, label: str) -> str:
        values = self.choices[label]
        if _slides(values):
            inner = f'<input type="range" min="0" max="{len(values) - 1}" step="1" value="0"'
            inner = (
                f'<span aria-hidden="true">{html.escape(str(values[0]))}</span>{inner} data-choice>'
            )
        else:
            options = (
                f'<option value="{place}">{html.escape(str(value))}</option>'
                for place, value in enumerate(values)
            )
            inner = f"<select data-choice>{''.join(options)}</select>"
        return f"<label>{html.escape(label)} {inner}</label>"

    def _repr_html_(self) -> str:
        return self.page()

    def __repr__(self) -> str:
        choices = (f"{label} ({', '.join(map(str, v))})" for label, v in self.choices.items())
        return f"{self.name}: {'; '.join(choices)}"


def _slides(values: Sequence[Any]) -> bool:
    return (
        len(values) > 1
        and not isinstance(values[0], bool)
        and all(isinstance(v, Real) for v in values)
    )


def _script_and_style() -> str:
    return f"<style>{_file('explorer.css')}</style><script>{_file('explorer.js')}</script>"


def _file(name: str) -> str:
    folder = importlib.resources.files("biaslib.report") / "data"
    return (folder / name).read_text(encoding="utf-8").strip()
