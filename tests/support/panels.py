"""What the tests of panels share: one as a page, as a notebook and the book show it."""

import contextlib

from bs4 import BeautifulSoup


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
        switch = page.get_by_role("switch", name=label, exact=True)
        if switch.count():
            switch.set_checked(value)
        elif slider.count():
            slider.fill(place)
        else:
            page.get_by_role("combobox", name=label, exact=True).select_option(place)


def assert_shows(page, panel, *chosen) -> None:
    """Compare sentences, plots, legends and tables of a page with what the panel holds."""
    assert page.inner_text("[data-part=text]") == panel.sentence(*chosen)
    wanted, views = panel.drawings(*chosen), drawn(page).select(".explorer-view")
    assert len(views) == len(wanted)
    for view, drawing in zip(views, wanted, strict=True):
        shown = drawing.as_dict()
        plot = view.select_one("svg.explorer-plot")
        assert plot["aria-label"] == f"{shown['alt']} {shown['sentence']}"
        legend = [each.get_text(strip=True) for each in view.select(".explorer-legend li")]
        assert legend == [mark["label"] for mark in shown["marks"] if mark.get("label")]
        dots = [mark for mark in shown["marks"] if mark["kind"] == "dots"]
        places = [pair for mark in dots for pair in zip(mark["x"], mark["y"], strict=True)]
        assert len(plot.select("path.explorer-dots")) == sum(None not in pair for pair in places)
        assert len(view.select("img")) == len(shown["images"])
        table = BeautifulSoup(shown["table"], "html.parser")
        told = [part.get_text() for part in view.select("details")]
        assert told == [part.get_text() for part in table.select("details")]


def drawn(page) -> BeautifulSoup:
    """Return what a page draws."""
    return BeautifulSoup(page.inner_html("[data-part=views]"), "html.parser")
