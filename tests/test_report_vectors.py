"""Vectors that a reader drags: what the page computes is what the package computes."""

import re

import numpy as np
import pytest
from support.panels import opened

from biaslib import inference
from biaslib.metrics import association
from companion import foundations
from companion._vectors import Vectors

X = np.array([[1.0, 0.2], [0.9, 0.5]])
Y = np.array([[0.3, 1.0], [0.6, 0.8]])
A = np.array([[1.0, 0.0], [0.8, 0.1]])
B = np.array([[0.0, 1.0], [0.2, 0.9]])
SHOWN = re.compile(r"(?:X1|X2|Y1|Y2|means|size d) (\S+?)[,.;](?:\s|$)")


def said(page) -> tuple[list[float], int]:
    """Return the numbers of the page's sentence, and how many of its six deals reach."""
    text = page.inner_text("[data-part=text]").replace("\u2212", "-")
    return [float(each) for each in SHOWN.findall(text)], int(re.search(r"p (\d)/6", text)[1])


def expected(x, y):
    scores = association.association(x, A, B), association.association(y, A, B)
    difference = scores[0].mean() - scores[1].mean()
    effect = association.effect_size_of_scores(*scores)
    p_value = inference.permutation_test(*scores).p_value
    return [*scores[0], *scores[1], difference, effect], round(6 * p_value)


@pytest.mark.site
def test_the_page_computes_what_the_package_computes(browser, tmp_path):
    with opened(foundations.dragged(X, Y, A, B), browser, tmp_path) as page:
        found, reached = said(page)
        numbers, deals = expected(X, Y)
        np.testing.assert_allclose(found, numbers, atol=0.0051)
        assert reached == deals

        tip = page.get_by_role("slider", name="X1", exact=True)
        tip.focus()
        for _ in range(8):
            page.keyboard.press("ArrowLeft")
        angle = np.arctan2(0.2, 1.0) + np.radians(40)
        turned = np.array([[np.cos(angle), np.sin(angle)], X[1]])
        found, reached = said(page)
        numbers, deals = expected(turned, Y)
        np.testing.assert_allclose(found, numbers, atol=0.0051)
        assert reached == deals
        page.keyboard.press("ArrowUp")
        np.testing.assert_allclose(said(page)[0], found)
        assert "51 degrees" in tip.get_attribute("aria-valuetext")


def test_no_name_ends_the_script():
    sets = {"X": [(1, 0)], "</script>": [(0, 1)]}
    page = Vectors("<b>", sets, {"<i>": sets}).page()
    assert page.count("</script>") <= 2
    assert "<b>" not in page
    assert "<i>" not in page
