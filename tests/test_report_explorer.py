"""The declarative panel: one description, drawn alike with a kernel and without one."""

import json
import re

import numpy as np
import pandas
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from support.panels import assert_shows, choose, numbers, opened

from biaslib import report
from biaslib.report import _explorer
from biaslib.report._drawing import round_ticks
from biaslib.report._svg import view

MARKS = [
    {"kind": "dots", "x": [-1.0, 0.5], "y": [0.2, 1.4], "label": "words <W>", "group": 1,
     "text": ["purse", "briefcase"], "low": [0.1, 1.2], "high": [0.4, 1.5]},
    {"kind": "dots", "x": [0.2], "y": [0.6], "low": [-0.4], "high": [0.9], "along": "x"},
    {"kind": "bars", "x": [-1, 0, 1], "y": [0.5, -0.25, None], "label": "shares", "group": 2},
    {"kind": "line", "x": [-2, 0, 2], "y": [0, None, 1], "low": [-0.1, None, 0.9],
     "high": [0.1, None, 1.1], "label": "trend", "group": 3, "dashed": True},
    {"kind": "steps", "x": [-2, 0, 2], "y": [0.3, 0], "label": "null", "group": 4},
    {"kind": "rule", "x": [1.5], "y": [0.75], "label": "bound", "group": 5, "thin": True},
]  # fmt: skip


def drawing(sentence="Two words.", **changes):
    settings = {"note": "planted world", "table": pandas.DataFrame({"d": [0.5]}), **changes}
    ends = {"x_range": (-2, 2), "y_range": (-0.5, 1.5)}
    return report.Drawing(
        sentence, MARKS, "log-odds", "score", **ends, alt="Dots and bars.", **settings
    )


@pytest.fixture(scope="module")
def panel():
    image = Image.new("RGB", (4, 4), "red")
    choices = {"Level": ["word", "sentence"], "Dose": [0, 3]}
    pictured = drawing("Pictured.", images=[report.picture(image, "a red <square>")])
    cases = {("word", 0): drawing(), ("word", 3): [drawing("One."), pictured]}
    return report.Panel("Tests & levels", choices, cases)


def plotted(shown):
    return BeautifulSoup(view(shown), "html.parser").select_one("svg.explorer-plot")


def test_values_stand_where_the_axes_say():
    shown = drawing().as_dict()
    plot = plotted(shown)
    left, right, top, base = shown["left"], 466, 26, 254
    place = numbers(plot.select("path.explorer-dots")[0]["transform"])
    assert place == pytest.approx([left + (right - left) / 4, base - 0.35 * (base - top)], abs=0.01)
    upright, level = plot.select("line.explorer-interval")[0], plot.select(".explorer-interval")[2]
    assert float(upright["x1"]) == float(upright["x2"]) == pytest.approx(place[0])
    assert float(upright["y1"]) == pytest.approx(base - 0.3 * (base - top), abs=0.01)
    assert level["y1"] == level["y2"]
    assert float(level["x2"]) - float(level["x1"]) == pytest.approx(
        1.3 / 4 * (right - left), abs=0.02
    )
    bars = plot.select("rect.explorer-bars")
    assert [float(b["height"]) for b in bars] == pytest.approx([57, 28.5])
    assert float(bars[0]["y"]) + 57 == pytest.approx(float(bars[1]["y"]))
    assert float(bars[0]["width"]) == pytest.approx(0.8 / 4 * (right - left), abs=0.01)
    assert len(plot.select("rect.explorer-steps")) == 1
    rules = plot.select("line.explorer-rule")
    assert float(rules[0]["x1"]) == pytest.approx(left + 3.5 / 4 * (right - left), abs=0.01)
    assert float(rules[1]["y1"]) == pytest.approx(base - 1.25 / 2 * (base - top), abs=0.01)


def test_values_beyond_the_axes_stand_at_their_edge():
    beyond = {"kind": "dots", "x": [-9.0, 9.0, np.nan], "y": [-9.0, 9.0, 0.0]}
    shown = report.Drawing("", [beyond], "", "", (0, 1), (0, 1), "").as_dict()
    places = [numbers(each["transform"]) for each in plotted(shown).select("path")]
    assert places == [[shown["left"], 254], [466, 26]]


def test_ticks_are_round_or_named():
    assert list(round_ticks((0, 1))) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert list(round_ticks((-0.37, 0.21))) == pytest.approx([-0.2, 0, 0.2])
    assert list(round_ticks((0, 950)).values()) == ["0", "200", "400", "600", "800"]
    named = drawing(y_ticks={0: "women", 1: "men"})
    texts = [each.get_text() for each in plotted(named.as_dict()).select("text")]
    assert texts[5:7] == ["women", "men"]
    assert named.as_dict()["left"] > drawing().as_dict()["left"]
    with pytest.raises(ValueError, match="two different numbers"):
        round_ticks((1, 1))


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ({"kind": "pie"}, "mark 0 .* kind 'pie'; known: dots"),
        ({"kind": "dots", "x": [1], "y": []}, "1 x and 0 y; dots have as many x as y"),
        ({"kind": "steps", "x": [1], "y": [1]}, "one x more than y"),
        ({"kind": "dots", "x": [1], "y": [1], "low": [0, 1]}, "2 values of 'low' for 1 of y"),
        ({"kind": "rule", "group": 6, "label": "zero"}, r"mark 0 \('zero'\) is of group 6"),
    ],
)
def test_marks_that_do_not_fit_are_named(mark, message):
    with pytest.raises(ValueError, match=message):
        report.Drawing("", [mark], "", "", (0, 1), (0, 1), "")


def test_what_cannot_be_chosen_is_refused(panel):
    with pytest.raises(ValueError, match=r"\('image',\) cannot be chosen in the panel 'Tests'"):
        report.Panel("Tests", {"Level": ["word"]}, {("image",): drawing()})
    with pytest.raises(ValueError, match="cannot be chosen"):
        panel.sentence("word")


def test_the_page_carries_what_was_described(panel):
    page = panel.page()
    data = re.search(r'data-part="data">(.*?)</script>', page, re.S).group(1)
    assert json.loads(data) == json.loads(json.dumps(panel.data()))
    assert panel.data()["cases"].keys() == {"0,0", "0,1"}
    assert 'aria-label="Tests &amp; levels"' in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_widget_shows_the_drawing_and_names_what_was_not_run(panel):
    widget = panel.widget()
    level, dose = widget.children[0].children
    assert [type(each).__name__ for each in (level, dose)] == ["Dropdown", "SelectionSlider"]
    dose.value = 3
    shown = widget.children[1].value
    assert "<p>One. Pictured.</p>" in shown
    assert shown.count('<svg class="explorer-plot"') == 2
    assert 'alt="a red &lt;square&gt;"' in shown
    level.value = "sentence"
    assert "<p>Nothing was run for this combination.</p>" in widget.children[1].value


def test_the_book_gets_the_page_and_a_notebook_the_widget(panel, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    for book in (True, False):
        monkeypatch.setattr(_explorer, "in_book", lambda book=book: book)
        panel._ipython_display_()
    assert [type(each).__name__ for each in shown] == ["HTML", "VBox"]


@pytest.mark.site
def test_the_page_draws_what_the_notebook_draws(panel, browser, tmp_path):
    with opened(panel, browser, tmp_path, width=390) as page:
        assert_shows(page, panel, "word", 0)
        page.get_by_role("slider", name="Dose").focus()
        page.keyboard.press("ArrowRight")
        assert page.inner_text("[data-part=text]") == "One. Pictured."
        assert page.inner_text("label span") == "3"
        assert_shows(page, panel, "word", 3)
        choose(page, panel, "sentence", 3)
        assert page.inner_text("[data-part=text]") == "Nothing was run for this combination."
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
