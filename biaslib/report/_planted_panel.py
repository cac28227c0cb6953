"""A panel in which the reader turns the dose: one set of results, with a kernel and without."""

import html
import importlib.resources
import io
import itertools
import json

from biaslib.report._text import signed
from biaslib.runtime import in_book

_numbers = itertools.count(1)


class PlantedPanel:
    """Choices of measure, seed and dose over precomputed scores.

    ``cases`` holds one dictionary a measure and seed, with what belongs to each dose; it is all
    that both views draw from.
    """

    def __init__(self, cases: list[dict]):
        self.cases = cases

    def case(self, measure: str, seed: int) -> dict:
        """Return the results of one measure in the worlds of one seed."""
        return next(c for c in self.cases if (c["measure"], c["seed"]) == (measure, seed))

    def choices(self, key: str) -> list:
        """Return the choices for ``measure`` or ``seed``, in the order of the cases."""
        return list(dict.fromkeys(case[key] for case in self.cases))

    def doses(self) -> list[float]:
        """Return the doses, in their order."""
        return [found["dose"] for found in self.cases[0]["doses"]]

    def page(self) -> str:
        """Return the panel as a piece of page that works without a kernel."""
        data = json.dumps(self.cases, separators=(",", ":")).replace("</", "<\\/")
        options = {
            key: "".join(f"<option>{html.escape(str(c))}</option>" for c in self.choices(key))
            for key in ("measure", "seed")
        }
        page = _text("planted_panel.html")
        for mark, text in {
            "@ID@": f"planted-panel-{next(_numbers)}",
            "@MEASURES@": options["measure"],
            "@SEEDS@": options["seed"],
            "@LAST@": str(len(self.doses()) - 1),
            "@DATA@": data,
            "@SCRIPT@": _text("planted_panel.js"),
        }.items():
            page = page.replace(mark, text)
        return page

    def widget(self):
        """Return the panel as ipywidgets, for a running notebook."""
        import ipywidgets

        measure = ipywidgets.Dropdown(options=self.choices("measure"), description="Measure")
        seed = ipywidgets.Dropdown(options=self.choices("seed"), description="World")
        dose = ipywidgets.SelectionSlider(options=self.doses(), description="Dose")
        view = ipywidgets.HTML()

        def draw(_change=None) -> None:
            case = self.case(measure.value, seed.value)
            found = next(each for each in case["doses"] if each["dose"] == dose.value)
            sentence = html.escape(self.sentence(case, found))
            view.value = f"<p>{sentence}</p>{self._picture(case, found)}"

        for choice in (measure, seed, dose):
            choice.observe(draw, names="value")
        draw()
        return ipywidgets.VBox([ipywidgets.HBox([measure, seed, dose]), view])

    @staticmethod
    def _picture(case: dict, found: dict) -> str:
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7.2, 4))
        axes.plot(found["truth"], found["oracle"], "D", mfc="none", ms=4, label="oracle")
        if "model" in found:
            axes.plot(found["truth"], found["model"], "o", ms=3, alpha=0.6, label=case["model"])
        if case["line"]:
            axes.plot([-4, 4], [-4, 4], color="0.4", linestyle="--", linewidth=1)
        reach = case["reach"]
        axes.set(xlim=(-4, 4), ylim=(-reach, reach), xlabel="planted log-odds")
        axes.set(ylabel=case["units"], title="planted world")
        axes.legend(frameon=False)
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
        pyplot.close(figure)
        return drawing.getvalue()[drawing.getvalue().index("<svg") :]

    @staticmethod
    def sentence(case: dict, found: dict) -> str:
        """Return the results of a case at a dose in words."""
        start = f"Dose {found['dose']:g}, world {case['seed']}, {len(case['words'])} words. "
        if "model" not in found:
            return (
                f"{start}No {case['model']} is shipped for this world; the oracle alone is shown."
            )
        if found["dose"] == 0:
            return (
                f"{start}Nothing is planted: every truth is 0. {case['model']} follows the "
                f"directions of the other doses with a slope of {signed(found['slope'])} and a "
                f"rank correlation of {signed(found['rank'])}."
            )
        return (
            f"{start}{case['model']} against the truth: rank correlation {signed(found['rank'])}, "
            f"slope {signed(found['slope'])}."
        )

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(HTML(self.page()) if in_book() else self.widget())


def _text(name: str) -> str:
    folder = importlib.resources.files("biaslib.report") / "data"
    return (folder / name).read_text(encoding="utf-8")
