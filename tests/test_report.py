"""Tables and sentences: what the reader is shown."""

import math

import pandas
import pytest

import biaslib
from biaslib import report, runtime


def test_tables_have_headings_captions_and_true_minus_signs():
    frame = pandas.DataFrame({"test": ["a<b"], "d": [-0.5], "n": [12_870], "yes": [True]})
    page = report.table(frame, "Two & two")._repr_html_()
    assert "<caption>Two &amp; two</caption>" in page
    above, number = '<th scope="col">', '<th scope="col" class="number">'
    heads = f"{above}test</th>{number}d</th>{number}n</th>{above}yes</th>"
    assert f"<thead><tr>{heads}</tr></thead>" in page
    assert '<td class="number">−0.50</td><td class="number">12,870</td><td>yes</td>' in page
    assert "a&lt;b" in page


def test_a_folded_table_is_one_click_away():
    page = report.table(pandas.DataFrame({"a": [math.nan]}), "Behind", folded=True)._repr_html_()
    assert page.startswith('<details class="table-behind"><summary>Behind</summary>')
    assert "–" in page


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0.00012, "1.2e−04"), (0.004, "4.0e−03"), (0.006, "0.01"), (0.0, "0.00"), (-0.5, "−0.50")],
)
def test_small_numbers_are_not_rounded_to_nothing(number, shown):
    page = report.table(pandas.DataFrame({"p": [number]}), "Small")._repr_html_()
    assert f'<td class="number">{shown}</td>' in page


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0499, "p = .050"), (0.0009, "p < .001"), (1.0, "p = 1.000"), (0.3, "p = .300")],
)
def test_p_values_in_sentences(p, text):
    assert report.p_text(p) == text


def test_the_stamp_says_what_ran():
    run = runtime.start("planted").record(weights={"m": "r1"}, data={"d": "c0ffee"})
    rows = run.as_dict()
    assert rows["Profile"] == "planted"
    assert rows["Weights"] == "m: r1"
    assert rows["Data"] == "d: c0ffee"
    used = runtime.used()
    assert rows["biaslib"] == f"{biaslib.__version__}, source {used['source']}"
    page, told = run._repr_mimebundle_()
    assert f'data-source="{used["source"]}"' in page["text/html"]
    assert told == {runtime.USED: used}


def test_the_stamp_does_not_claim_a_model_where_none_ran():
    assert runtime.start().as_dict()["Profile"] == "planted (no model on this page)"


def test_the_profile_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("BIASLIB_PROFILE", "paper")
    assert runtime.profile() == "paper"
    assert runtime.profile("planted") == "planted"


def test_a_device_that_is_named_is_taken():
    assert runtime.device("cpu") == "cpu"
