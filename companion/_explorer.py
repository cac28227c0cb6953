"""A panel of choices over precomputed results; the page that shows it needs no kernel."""

import html
import json
import re
from collections.abc import Sequence
from numbers import Real
from typing import Any

from companion._assets import script_and_style
from companion._drawing import Drawing

WITHOUT_SCRIPT = "This panel needs JavaScript; the tables of this page hold the same numbers."
MISSING = "Nothing was run for this combination."


class Panel:
    """Choices over results: a piece of page, the same in a running notebook and in the built book.

    A script draws it from its description, :meth:`data`, and computes nothing.

    Parameters
    ----------
    name
        What is chosen from, for example ``"Tests of study 1"``.
    choices
        Values by the label of their control, in order. Several numbers become a slider, ``False``
        and ``True`` a switch, anything else a list.
    cases
        A drawing, or several to stand below each other, by the chosen values in the order of the
        controls. A combination may be missing; the panel says so.
    start
        What is chosen when the page opens; the first value of each control where it is left out.
    without_script
        What stands in the panel's place where no script runs.

    Raises
    ------
    ValueError
        If a case, or the start, is of values that cannot be chosen.

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
        start: tuple | None = None,
        without_script: str = WITHOUT_SCRIPT,
    ):
        self.name, self.without_script = name, without_script
        self.choices = {label: list(values) for label, values in choices.items()}
        self.cases = {
            key: [shown] if isinstance(shown, Drawing) else list(shown)
            for key, shown in cases.items()
        }
        for key in self.cases:
            self._place(key)
        self.start = tuple(values[0] for values in self.choices.values())
        if start is not None:
            self._place(start)
            self.start = tuple(start)

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
        """Return all that the page draws from; what several cases share stands once."""
        marks, frames = _Once(), _Once()
        cases = {
            self._place(key): [_case(drawing.as_dict(), marks, frames) for drawing in shown]
            for key, shown in self.cases.items()
        }
        return {
            "name": self.name,
            "controls": [[label, list(map(str, v))] for label, v in self.choices.items()],
            "missing": MISSING,
            "marks": marks.kept,
            "frames": frames.kept,
            "cases": cases,
        }

    def page(self) -> str:
        """Return the panel as a piece of page that works without a kernel.

        It brings its script and style along, except in the book, whose pages load them as files.
        """
        data = json.dumps(self.data(), separators=(",", ":"), ensure_ascii=False)
        data = data.replace("<", "\\u003c")  # No label ends this script, or begins another.
        return (
            f'<div class="explorer" id="{_address(self.name)}" role="group" '
            f'aria-label="{html.escape(self.name)}">'
            f'<div class="explorer-controls">{"".join(map(self._control, self.choices))}</div>'
            '<p class="explorer-text" data-part="text" aria-live="polite"></p>'
            '<div data-part="views"></div>'
            f"<noscript>{html.escape(self.without_script)}</noscript>"
            f'<script type="application/json" data-part="data">{data}</script></div>'
            f"{script_and_style('explorer')}"
        )

    def _control(self, label: str) -> str:
        values, name = self.choices[label], html.escape(label)
        begin = values.index(dict(zip(self.choices, self.start, strict=True))[label])
        if _switches(values):
            state = " checked" if begin else ""
            box = f'<input type="checkbox" role="switch" data-choice{state}>'
            return f'<label class="explorer-switch">{box} {name}</label>'
        if _slides(values):
            inner = f'<input type="range" min="0" max="{len(values) - 1}" step="1" value="{begin}"'
            shown = html.escape(str(values[begin]))
            inner = f'<span aria-hidden="true">{shown}</span>{inner} data-choice>'
        else:
            options = (
                f'<option value="{place}"{" selected" if place == begin else ""}>'
                f"{html.escape(str(value))}</option>"
                for place, value in enumerate(values)
            )
            inner = f"<select data-choice>{''.join(options)}</select>"
        return f"<label>{name} {inner}</label>"

    def _repr_html_(self) -> str:
        return self.page()

    def __repr__(self) -> str:
        choices = (f"{label} ({', '.join(map(str, v))})" for label, v in self.choices.items())
        return f"{self.name}: {'; '.join(choices)}"


class _Once:
    """A list of things, each kept once however often it is asked for."""

    def __init__(self):
        self.kept: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, thing: Any) -> int:
        key = json.dumps(thing)
        if key not in self._places:
            self._places[key] = len(self.kept)
            self.kept.append(thing)
        return self._places[key]


def _case(drawing: dict[str, Any], marks: _Once, frames: _Once) -> dict[str, Any]:
    """Return a drawing whose marks, and all but marks and sentence, are places in lists."""
    own = {"sentence": drawing["sentence"], "marks": [marks.place(m) for m in drawing["marks"]]}
    return own | {"frame": frames.place({k: v for k, v in drawing.items() if k not in own})}


def _address(name: str) -> str:
    """Return the id of a panel: what the page's address keeps of it begins so.

    >>> _address("One test, and what chance gives")
    'panel-one-test-and-what-chance-gives'
    """
    return "-".join(["panel", *re.findall(r"\w+", name.lower())])


def _switches(values: Sequence[Any]) -> bool:
    return values == [False, True] and all(isinstance(value, bool) for value in values)


def _slides(values: Sequence[Any]) -> bool:
    return (
        len(values) > 1
        and not isinstance(values[0], bool)
        and all(isinstance(v, Real) for v in values)
    )
