"""What the tests of panels share: one as a page, as a notebook and the book show it."""

import contextlib


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
