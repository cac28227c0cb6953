"""A panel with one set of precomputed results behind it, with a kernel and without one."""

import html
import importlib.resources
import io
import itertools
import json

from biaslib.report._text import signed
from biaslib.runtime import in_book

BINS = 40
_numbers = itertools.count(1)


class Panel:
    """Choices of test and level over precomputed results.

    ``cases`` holds one dictionary of numbers and texts a test and level; it is all that both
    views draw from.
    """

    def __init__(self, cases: list[dict]):
        self.cases = cases

    def case(self, test: str, level: str) -> dict:
        """Return the results of one test at one level."""
        return next(c for c in self.cases if (c["test"], c["level"]) == (test, level))

    def choices(self, key: str) -> list[str]:
        """Return the choices for ``test`` or ``level``, in the order of the cases."""
        return list(dict.fromkeys(case[key] for case in self.cases))

    def page(self) -> str:
        """Return the panel as a piece of page that works without a kernel."""
        identifier = f"association-panel-{next(_numbers)}"
        data = json.dumps(self.cases, separators=(",", ":")).replace("</", "<\\/")
        options = {
            key: "".join(f"<option>{choice}</option>" for choice in self.choices(key))
            for key in ("test", "level")
        }
        page = (importlib.resources.files("biaslib.report") / "data" / "panel.html").read_text(
            encoding="utf-8"
        )
        script = (importlib.resources.files("biaslib.report") / "data" / "panel.js").read_text(
            encoding="utf-8"
        )
        for mark, text in {
            "@ID@": identifier,
            "@TESTS@": options["test"],
            "@LEVELS@": options["level"],
            "@DATA@": data,
            "@SCRIPT@": script,
        }.items():
            page = page.replace(mark, text)
        return page

    def widget(self):
        """Return the panel as ipywidgets, for a running notebook."""
        import ipywidgets

        test = ipywidgets.Dropdown(options=self.choices("test"), description="Test")
        level = ipywidgets.Dropdown(options=self.choices("level"), description="Level")
        ddof = ipywidgets.Dropdown(
            options=[("n − 1 (ddof 1)", 1), ("n (ddof 0)", 0)], description="Divide by"
        )
        view = ipywidgets.HTML()

        def draw(_change=None) -> None:
            view.value = self._view(self.case(test.value, level.value), ddof.value)

        for choice in (test, level, ddof):
            choice.observe(draw, names="value")
        draw()
        return ipywidgets.VBox([ipywidgets.HBox([test, level, ddof]), view])

    def _view(self, case: dict, ddof: int) -> str:
        """Return sentence and picture of a case as HTML.

        Not drawn through an Output widget: executing such a notebook without a front end can
        wait for ever.
        """
        return f"<p>{html.escape(self.sentence(case, ddof))}</p>{self._picture(case, ddof)}"

    @staticmethod
    def _picture(case: dict, ddof: int) -> str:
        from matplotlib import pyplot

        stretch = 1.0 if ddof else case["ratio"]
        edges = [stretch * (-2 + 4 * i / BINS) for i in range(BINS)]
        figure, axes = pyplot.subplots(figsize=(7.2, 3))
        for key, label in (("relabelled", "targets relabelled"), ("random", "random attributes")):
            axes.bar(edges, case[key], stretch * 4 / BINS, align="edge", alpha=0.5, label=label)
        axes.axvline(case["d" if ddof else "d0"], color="0.2", linestyle="--", label="this test")
        axes.set(xlabel="effect size d", yticks=[], xlim=(-2, 2))
        axes.legend(frameon=False)
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
        pyplot.close(figure)
        return drawing.getvalue()[drawing.getvalue().index("<svg") :]

    @staticmethod
    def sentence(case: dict, ddof: int = 1) -> str:
        """Return the results of a case in words."""
        d, stretch = (case["d"], 1.0) if ddof else (case["d0"], case["ratio"])
        return (
            f"{case['title']} ({case['level']} level): d = {signed(d)}, 95% interval "
            f"{signed(stretch * case['low'])} to {signed(stretch * case['high'])}, "
            f"{case['n_words']} words a side. Relabelled targets reach this d or more in "
            f"{case['p']:.1%} of partitions (one-sided p). Random attribute words reach its size "
            f"in {case['p_random']:.1%} of {case['sets']:,} sets; 95% of them stay within "
            f"±{stretch * case['q95']:.2f}, and the permutation test calls "
            f"{case['rejected']:.1%} of them significant at 5%."
        )

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(HTML(self.page()) if in_book() else self.widget())
