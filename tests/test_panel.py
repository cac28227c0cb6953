"""The panel: one set of results, the same with a kernel and without one."""

import html
import json
import re

import numpy as np
import pytest

from biaslib import inference, report
from biaslib.report import _panel
from biaslib.report import association as plots
from biaslib.studies import association as study


@pytest.fixture(scope="module")
def panel(encoder):
    scores, embedded = study.run(encoder, ["C6", "C8"], ["word", "contextual"], n_bootstrap=200)
    empty = np.empty((101, 0))
    null = inference.RandomAttributeNull(empty, empty, np.linspace(-1.5, 1.5, 101))
    random = [study.RandomAttributes(e.name, e.level, True, null, np.ones(101)) for e in embedded]
    return plots.panel(scores, embedded, random), scores


def test_the_page_carries_the_scores(panel):
    page, scores = panel
    data = json.loads(re.search(r'data-part="data">(.*?)</script>', page.page(), re.S).group(1))
    assert data == page.cases
    for case, row in zip(data, scores.to_dict("records"), strict=True):
        assert (case["test"], case["level"]) == (row["test"], row["level"])
        assert case["d"] == pytest.approx(row["value"], abs=5e-4)
        assert case["d0"] == pytest.approx(row["value_ddof0"], abs=5e-4)
        assert case["p"] == pytest.approx(row["p_value_words"], rel=5e-3)
        assert sum(case["random"]) == pytest.approx(1000, abs=2)
        assert sum(case["relabelled"]) == pytest.approx(1000, abs=2)


def test_the_histogram_puts_effects_where_they_are():
    shares = plots._histogram(np.array([-1.95, 0.05, 0.05, 1.95]))
    assert (shares[0], shares[20], shares[39]) == (250, 500, 250)


def test_the_widget_says_what_the_page_says(panel):
    page, _ = panel
    widget = page.widget()
    test, level, ddof = widget.children[0].children
    assert list(test.options) == ["C6", "C8"]
    test.value, level.value, ddof.value = "C8", "contextual", 0
    case = page.case("C8", "contextual")
    sentence = page.sentence(case, ddof=0)
    assert f"d = {report.signed(case['d0'])}" in sentence
    assert f"{case['n_words']} words a side" in sentence
    assert f"{case['p']:.1%}" in sentence
    assert f"±{case['d0'] / case['d'] * case['q95']:.2f}" in sentence
    assert sentence in html.unescape(widget.children[1].value)
    assert "<svg" in widget.children[1].value


def test_the_book_gets_the_page_and_a_notebook_the_widget(panel, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    monkeypatch.setattr(_panel, "in_book", lambda: True)
    panel[0]._ipython_display_()
    monkeypatch.setattr(_panel, "in_book", lambda: False)
    panel[0]._ipython_display_()
    assert [type(each).__name__ for each in shown] == ["HTML", "VBox"]


@pytest.mark.site
def test_choices_change_the_page_without_a_kernel(panel, browser, tmp_path):
    page_object, _ = panel
    (tmp_path / "page.html").write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8">{page_object.page()}</html>',
        encoding="utf-8",
    )
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    for test, level in (("C6", "word"), ("C8", "contextual")):
        page.select_option("[data-choice=test]", test)
        page.select_option("[data-choice=level]", level)
        case = page_object.case(test, level)
        text = page.inner_text("[data-part=text]")
        assert f"d = {report.signed(case['d'])}" in text
        assert f"{100 * case['p_random']:.1f}%" in text
        assert page.locator("[data-part=plot] rect").count() == sum(
            v > 0 for v in case["random"] + case["relabelled"]
        )
    page.select_option("[data-choice=ddof]", "0")
    text = page.inner_text("[data-part=text]")
    assert f"d = {report.signed(case['d0'])}" in text
    assert f"±{case['ratio'] * case['q95']:.2f}" in text
    page.close()
