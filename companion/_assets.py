"""The scripts and styles of interactive pieces of a page."""

import importlib.resources

from biaslib.runtime import in_book


def script_and_style(name: str) -> str:
    """Return what a piece brings along in a notebook; nothing in the book, which loads files."""
    if in_book():
        return ""
    folder = importlib.resources.files("companion") / "assets"
    style, script = (
        (folder / f"{name}.{kind}").read_text(encoding="utf-8").strip() for kind in ("css", "js")
    )
    return f"<style>{style}</style><script>{script}</script>"
