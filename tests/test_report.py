"""Tables and sentences: what the reader is shown."""

import base64
import math
import platform
import re

import numpy as np
import pandas
import pytest
from bs4 import BeautifulSoup
from matplotlib.figure import Figure

import biaslib
from biaslib import display, models, runtime
from biaslib.display import _figure
from companion._drawing import round_ticks
from companion._shared import p_cells


def test_a_table_escapes_words_and_has_true_minus_signs():
    frame = pandas.DataFrame({"test": ["a<b"], "d": [-0.5], "n": [12_870], "none": [math.nan]})
    page = BeautifulSoup(display.table(frame, "Two & two")._repr_html_(), "html.parser")
    assert page.caption.get_text() == "Two & two"
    assert [cell.get_text() for cell in page.select("tbody td")] == ["−0.50", "12,870", "–"]
    assert page.select_one("tbody th").get_text() == "a<b"


@pytest.fixture
def two_words():
    drawn = Figure()
    drawn.subplots().plot([0, 1])
    behind = display.table(pandas.DataFrame({"d": [0.5]}), "Behind")
    words = {"name": "fig-two", "alt": 'A line from "left" to right.', "table": behind}
    return display.figure(drawn, "Two <words>.", **words)


@pytest.fixture(params=[True, False], ids=["book", "notebook"])
def in_book(request, monkeypatch):
    monkeypatch.setattr(_figure, "in_book", lambda: request.param)
    return request.param


def test_a_figure_is_picture_caption_alt_text_and_folded_table(two_words, in_book):
    data = two_words._repr_mimebundle_()
    assert data["text/plain"] == 'Two <words>.\nA line from "left" to right.'
    shown = data["text/markdown" if in_book else "text/html"]
    assert len(data) == 2
    assert '<details class="table-behind"><summary>Behind</summary>' in shown
    address = re.search("data:image/svg[+]xml;base64,([A-Za-z0-9+/=]+)", shown)[1]
    assert base64.b64decode(address).startswith(b"<?xml")
    if in_book:
        words = 'A line from "left" to right.\n\nTwo &lt;words>.\n:::'
        assert f":name: fig-two\n:alt: {words}" in shown
    else:
        assert 'alt="A line from &quot;left&quot; to right."' in shown
        assert "<figcaption>Two &lt;words&gt;.</figcaption></figure>" in shown


def test_captions_of_a_marked_figure_name_the_planted_world_once(two_words):
    one = pandas.DataFrame({"d": [1]})
    tables = [display.table(one, each) for each in ("A", "B, planted world")]
    words = {"name": "fig-a", "alt": "Two.", "table": tables}
    for profile, end in (("planted", ". Planted world"), ("paper", "")):
        picture = display.marked(Figure(), profile)
        shown = display.figure(picture, "Two dots.", **words)
        assert shown.caption == f"Two dots{end}."
        assert [each.caption for each in shown.tables] == [f"A{end}", "B, planted world"]
        known = display.figure(picture, "Dots of the planted world.", **words)
        assert known.caption == "Dots of the planted world."


def test_a_saying_fills_its_template_and_loses_its_indentation():
    said = display.say(
        """
        Of {row[n words]} words {share:.0%} are *near*,

        - {first.real}.
        """,
        row={"n words": 4}, share=0.25, first=1,
    )  # fmt: skip
    assert said.data == "Of 4 words 25% are *near*,\n\n- 1."
    assert display.say("A set is {a, b}.").data == "A set is {a, b}."


@pytest.mark.parametrize(
    ("column", "number", "shown"),
    [
        ("mean B", 7.0e-19, "0.00"),
        ("mean B", np.float64(-9.9e-13), "0.00"),
        ("mean B", -1.1e-12, "−1.1e−12"),
        ("p, Holm", 7.0e-19, "7.0e−19"),
        ("p_holm", 7.0e-19, "7.0e−19"),
        ("P(named)", 7.0e-19, "7.0e−19"),
        ("probability of the three", 7.0e-19, "7.0e−19"),
        ("step", 7.0e-19, "0.00"),
    ],
)
def test_what_rounding_leaves_is_zero_and_p_values_and_probabilities_are_not(column, number, shown):
    frame = pandas.DataFrame({"word": ["a"], column: [number]})
    page = display.table(frame, "Small")._repr_html_()
    assert f'<td class="number">{shown}</td>' in page


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0499, "p = .050"), (0.0009, "p < .001"), (1.0, "p = 1.000"), (0.3, "p = .300")],
)
def test_p_values_in_sentences(p, text):
    assert display.p_text(p) == text


def test_p_values_in_columns_are_their_bounds_where_these_leave_the_level_open():
    p, lows, highs = [0.03, 0.048, 0.05, 0.06], [0.03, 0.0004, 0.05, 0.051], [0.04, 0.0501, 0.05, 1]
    assert p_cells(p, lows, highs) == [".030", ".000 to .051", ".050", ".060"]
    assert p_cells(p, p, p) == [".030", ".048", ".050", ".060"]
    assert p_cells([0.06, math.nan], [0.02, math.nan], [0.03, math.nan]) == [".060", "nan"]
    # Corrected for two tests: .04 to .06, and .03 and .04 by Benjamini and Hochberg.
    assert p_cells([0.04, 0.04], [0.02, 0.04], [0.03, 0.04], "holm") == [".040 to .060"] * 2
    assert p_cells([0.04, 0.04], [0.02, 0.04], [0.03, 0.04], "bh") == [".040"] * 2


def test_the_stamp_says_what_ran():
    run = runtime.start("planted").record(weights={"m": "m-dose3-seed0"}, data={"d": "c0ffee"})
    rows = run.as_dict()
    assert rows["Profile"] == "planted"
    assert rows["Weights"] == "m: m-dose3-seed0"
    assert rows["Data"] == "d: c0ffee"
    used = runtime.used()
    assert rows["biaslib"] == f"{biaslib.__version__}, source {used['source']}"
    assert rows["Versions"].startswith(
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )
    page, told = run._repr_mimebundle_()
    assert f'data-source="{used["source"]}"' in page["text/html"]
    assert told == {runtime.USED: used}


def test_the_stamp_claims_no_model_and_no_toy_where_none_ran():
    run = runtime.start()
    assert run.as_dict()["Profile"] == "planted (no model on this page)"
    run.record(weights={"all-MiniLM-L6-v2": models.load("all-MiniLM-L6-v2").revision})
    assert run.as_dict()["Profile"] == "planted (no model of the planted world on this page)"
    run.record(weights={"clip": models.load("clip", profile="planted").revision})
    assert run.as_dict()["Profile"] == "planted"


def test_ticks_are_round():
    assert list(round_ticks((0, 1))) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert list(round_ticks((-0.37, 0.21))) == pytest.approx([-0.2, 0, 0.2])
    assert list(round_ticks((0, 950)).values()) == ["0", "200", "400", "600", "800"]


def test_a_table_rounds_numbers_and_lets_none_that_is_small_look_like_nothing():
    numbers = [1234567.0, 0.126, -0.126, 0.005, 0.0049, -0.00012, 0.0, 12]
    frame = pandas.DataFrame({"number": pandas.Series(numbers, dtype=object)})
    soup = BeautifulSoup(display.table(frame, "Numbers")._repr_html_(), "html.parser")
    shown = [cell.text for cell in soup.select("td")]
    wanted = ["1,234,567.00", "0.13", "−0.13", "0.01", "4.9e−03", "−1.2e−04", "0.00", "12"]
    assert shown == wanted
