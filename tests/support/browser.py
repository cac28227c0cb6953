"""Find a Chromium, serve a folder, and watch what a page asks for."""

import contextlib
import functools
import http.server
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from support.servers import answering

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE = Path(__file__).parent / "axe.min.js"
HOW_TO_INSTALL = (
    "no Chromium found. Install one (apt install chromium, or: python -m playwright install "
    "chromium), or set CHROMIUM to the path of its program."
)


def executable() -> str | None:
    """Return the path of a Chromium: $CHROMIUM, then PATH, then Playwright's own, else None."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or _playwrights_own()


def _playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def require() -> str:
    """Return the path of a Chromium; without one fail in CI, and skip elsewhere saying why."""
    import pytest

    path = executable()
    if path:
        return path
    if os.environ.get("CI") == "true":
        pytest.fail(HOW_TO_INSTALL)
    pytest.skip(HOW_TO_INSTALL)


@contextlib.contextmanager
def launched():
    """Yield a running headless Chromium."""
    from playwright.sync_api import sync_playwright

    path = require()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(folder: Path):
    """Serve a folder on a free local port; yield its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with answering(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as address:
        yield address


@dataclass
class Visit:
    """What a browser's page complained of, and whom it asked, since it was opened."""

    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def watch(self, page, origin: str) -> None:
        """Note console errors, page errors, failed requests; refuse and note other hosts."""
        host = urlsplit(origin).netloc

        def decide(route):
            if urlsplit(route.request.url).netloc in ("", host):
                route.continue_()
            else:
                self.foreign.append(route.request.url)
                route.abort()

        page.route("**/*", decide)
        page.on("console", lambda message: self._console(message))
        page.on("pageerror", lambda error: self.errors.append(f"page error: {error}"))
        page.on("response", lambda answer: self._answer(answer))

    def _console(self, message) -> None:
        if message.type == "error":
            self.errors.append(f"console: {message.text}")

    def _answer(self, answer) -> None:
        if answer.status >= 400:
            self.errors.append(f"{answer.status}: {answer.url}")


COLOUR_RULES = ["color-contrast", "link-in-text-block"]
"""The rules of axe-core's category of colours that are on by default."""


def axe_violations(page, impacts=("serious", "critical"), only_colours: bool = False) -> list[str]:
    """Run axe-core on a page; return the violations of the given impacts, one line each."""
    if not page.evaluate("() => typeof window.axe === 'object' && !!window.axe.run"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    options = {"resultTypes": ["violations"]}
    if only_colours:
        options["runOnly"] = {"type": "rule", "values": COLOUR_RULES}
    result = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node['html'][:160]}"
        for each in result["violations"]
        if each["impact"] in impacts
        for node in each["nodes"]
    ]
