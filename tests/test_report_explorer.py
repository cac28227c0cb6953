"""The declarative panel: a description, and the page that draws it without a kernel."""

import json
import re

import numpy as np
import pandas
import pytest
from PIL import Image
from support.panels import assert_shows, choose, drawn, numbers, opened

from companion import _assets, _drawing, _explorer
from companion._drawing import round_ticks

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
    return _drawing.Drawing(
        sentence, MARKS, "log-odds", "score", **ends, alt="Dots and bars.", **settings
    )


@pytest.fixture(scope="module")
def panel():
    image = Image.new("RGB", (4, 4), "red")
    choices = {"Level": ["word", "sentence"], "Dose": [0, 3]}
    pictured = drawing("Pictured.", images=[_drawing.picture(image, "a red <square>")])
    cases = {("word", 0): drawing(), ("word", 3): [drawing("One."), pictured]}
    return _explorer.Panel("Tests & levels", choices, cases)


@pytest.fixture
def plotted(browser, tmp_path):
    """Return a function that gives the plot of a drawing as a browser draws it."""

    def plot(drawing):
        panel = _explorer.Panel("One", {"Only": ["one"]}, {("one",): drawing})
        with opened(panel, browser, tmp_path) as page:
            return drawn(page).select_one("svg.explorer-plot")

    return plot


@pytest.mark.site
def test_values_stand_where_the_axes_say(plotted):
    shown, plot = drawing().as_dict(), plotted(drawing())
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


@pytest.mark.site
def test_values_beyond_the_axes_stand_at_their_edge(plotted):
    beyond = {"kind": "dots", "x": [-9.0, 9.0, np.nan], "y": [-9.0, 9.0, 0.0]}
    shown = _drawing.Drawing("", [beyond], "", "", (0, 1), (0, 1), "")
    places = [numbers(each["transform"]) for each in plotted(shown).select("path")]
    assert places == [[shown.as_dict()["left"], 254], [466, 26]]


def test_ticks_are_round_or_named():
    assert list(round_ticks((0, 1))) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert list(round_ticks((-0.37, 0.21))) == pytest.approx([-0.2, 0, 0.2])
    assert list(round_ticks((0, 950)).values()) == ["0", "200", "400", "600", "800"]
    with pytest.raises(ValueError, match="two different numbers"):
        round_ticks((1, 1))


@pytest.mark.site
def test_names_of_ticks_get_the_place_they_need(plotted):
    named = drawing(y_ticks={0: "women", 1: "men"})
    texts = [each.get_text() for each in plotted(named).select("text")]
    assert texts[5:7] == ["women", "men"]
    assert named.as_dict()["left"] > drawing().as_dict()["left"]


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
        _drawing.Drawing("", [mark], "", "", (0, 1), (0, 1), "")


def test_what_cannot_be_chosen_is_refused(panel):
    with pytest.raises(ValueError, match=r"\('image',\) cannot be chosen in the panel 'Tests'"):
        _explorer.Panel("Tests", {"Level": ["word"]}, {("image",): drawing()})
    with pytest.raises(ValueError, match="cannot be chosen"):
        panel.sentence("word")


def test_the_page_carries_what_was_described(panel):
    page = panel.page()
    data = re.search(r'data-part="data">(.*?)</script>', page, re.S).group(1)
    assert json.loads(data) == json.loads(json.dumps(panel.data()))
    assert panel.data()["cases"].keys() == {"0,0", "0,1"}
    assert 'aria-label="Tests &amp; levels"' in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_a_notebook_shows_the_page(panel):
    assert panel._repr_html_() == panel.page()
    assert repr(panel) == "Tests & levels: Level (word, sentence); Dose (0, 3)"


@pytest.mark.site
def test_a_page_of_two_panels_draws_each_once(panel, browser, tmp_path):
    """As a notebook does that shows a panel again, each time with its script."""
    (tmp_path / "page.html").write_text(panel.page() * 2, encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator(".explorer[data-drawn]").count() == 2
    page.get_by_role("slider").first.fill("1")
    assert page.locator("[data-part=text]").all_inner_texts() == ["One. Pictured.", "Two words."]
    page.close()


def test_in_the_book_the_script_is_a_file_of_the_site(panel, monkeypatch):
    monkeypatch.setattr(_assets, "in_book", lambda: True)
    assert re.findall("<script.*?>", panel.page()) == [
        '<script type="application/json" data-part="data">'
    ]
    assert "<style" not in panel.page()


def test_what_cases_share_stands_once_on_the_page(panel):
    data = panel.data()
    assert len(data["marks"]) == len(MARKS)
    assert len(data["frames"]) == 2, "with pictures, and without"
    assert data["cases"]["0,0"][0]["marks"] == list(range(len(MARKS)))


@pytest.mark.site
def test_a_panel_begins_where_it_is_told_and_switches_switch(browser, tmp_path):
    choices = {"Dose": [0, 3], "Level": ["word", "sentence"], "Correct": [False, True]}
    cases = {(3, "sentence", on): drawing(f"Corrected: {on}.") for on in (False, True)}
    panel = _explorer.Panel("Start", choices, cases, start=(3, "sentence", True))
    with opened(panel, browser, tmp_path) as page:
        assert_shows(page, panel, 3, "sentence", True)
        assert page.get_by_role("slider").input_value() == "1"
        choose(page, panel, 3, "sentence", False)
        assert_shows(page, panel, 3, "sentence", False)
    with pytest.raises(ValueError, match="cannot be chosen"):
        _explorer.Panel("Start", choices, cases, start=(3, "image", True))


@pytest.mark.site
def test_dots_name_what_they_are(plotted):
    dots = {"kind": "dots", "x": [0.2, 0.8], "y": [0.5, 0.5], "names": ["purse", "suit & tie"]}
    shown = plotted(_drawing.Drawing("", [dots], "", "", (0, 1), (0, 1), ""))
    assert [each.get_text() for each in shown.select("path title")] == dots["names"]
    assert shown.select("text.explorer-word") == []


@pytest.mark.site
def test_choices_change_what_the_page_draws(panel, browser, tmp_path):
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
