"""What the tests of panels share: one as a page without a kernel, and one as a widget."""

import contextlib
import html
import re

import pytest
from bs4 import BeautifulSoup

from biaslib.report._svg import view


@contextlib.contextmanager
def opened(panel, browser, folder, width: int = 800):
    """Yield a panel as a page of its own, without a kernel; its script must not fail."""
    (folder / "page.html").write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8">{panel.page()}</html>',
        encoding="utf-8",
    )
    page = browser.new_page(viewport={"width": width, "height": 800})
    errors = []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto((folder / "page.html").as_uri())
    yield page
    assert errors == []
    page.close()


def choose(page, panel, *chosen) -> None:
    """Set the controls of a page, found by the names that a screen reader says."""
    for (label, values), value in zip(panel.choices.items(), chosen, strict=True):
        place = str(values.index(value))
        slider = page.get_by_role("slider", name=label, exact=True)
        if slider.count():
            slider.fill(place)
        else:
            page.get_by_role("combobox", name=label, exact=True).select_option(place)


def assert_shows(page, panel, *chosen) -> None:
    """Compare sentence and plots of a page with what the panel holds of chosen values."""
    assert page.inner_text("[data-part=text]") == panel.sentence(*chosen)
    wanted = "".join(view(each.as_dict()) for each in panel.drawings(*chosen))
    drawn = page.inner_html("[data-part=views]")
    assert elements(drawn) == [_near(each) for each in elements(wanted)]


def asked(widget, *chosen) -> str:
    """Set the controls of a widget and return what it then shows, as HTML without entities."""
    controls, shown = widget.children
    for control, value in zip(controls.children, chosen, strict=True):
        control.value = value
    return html.unescape(shown.value)


def elements(text: str) -> list[tuple]:
    """Return what is drawn, as tags, attributes and words."""
    return [
        (tag.name, {key: _value(key, value) for key, value in tag.attrs.items()}, tag.string)
        for tag in BeautifulSoup(text, "html.parser").find_all(True)
    ]


def numbers(text: str) -> list[float]:
    """Return the numbers in a text."""
    return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", text)]


def _value(key: str, value):
    """Return places as numbers, whatever their writing."""
    places = key in ("points", "transform") or re.fullmatch(r"-?[\d.]+", str(value))
    return numbers(value) if places else value


def _near(element: tuple) -> tuple:
    """Let places differ by the rounding of a hundredth."""
    name, attributes, words = element
    lists = {
        key: pytest.approx(value, abs=0.011)
        for key, value in attributes.items()
        if isinstance(value, list) and isinstance(value[0], float)
    }
    return name, attributes | lists, words
