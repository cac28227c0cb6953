"""Sphinx extension: the site keeps to itself, holds no stale page, and can be read by all.

- sphinx-thebe, which Jupyter Book 1 always loads, would write the address of another host into
  every page; it is disconnected.
- Pages whose source is gone are removed from the output, so that an old build cannot be published
  with a new one.
- In the API reference NumPy's ``ArrayLike`` stays one word.
- What the HTML writers get wrong for assistive software, and neither a template nor a style sheet
  can mend, is mended in the finished body.
"""

from pathlib import Path

from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

DOUBLED = (' id="exercise-content"', ' id="solution-content"')
"""Ids that every exercise of a page gets, and that nothing links to."""

KEPT = ("_modules/", "_sources/", "_static/", "teach/")
EXTRA_PAGES = {"genindex", "index", "py-modindex", "search"}


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("config-inited", disconnect_thebe)
    # After autodoc has noted the types of a signature's parameters.
    app.connect("autodoc-process-signature", shorten_array_like, priority=900)
    app.connect("html-page-context", mend_body)
    app.connect("build-finished", remove_stale_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def disconnect_thebe(app, config) -> None:
    """Undo what sphinx-thebe has registered."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)
    app.registry.css_files[:] = [
        entry for entry in app.registry.css_files if "thebe" not in entry[0]
    ]


def shorten_array_like(app, what, name, obj, options, signature, returned) -> None:
    """Write ``array_like`` where the union behind NumPy's ``ArrayLike`` would be written out."""
    union = stringify_annotation(ArrayLike, "smart")
    types = app.env.temp_data.get("annotations", {}).get(name, {})
    for parameter, text in types.items():
        types[parameter] = text.replace(union, "array_like")


def mend_body(app, pagename, templatename, context, doctree) -> None:
    """Take out what tells a screen reader something else than the page shows.

    The entries of a bibliography are not list items, so that it is no list; what opens a folded
    cell is named by its own words, which tell what is inside; and no id stands twice.
    """
    body = context.get("body")
    if body:
        for name in DOUBLED:
            body = body.replace(name, "")
        body = body.replace(' role="list" class="citation-list"', ' class="citation-list"')
        context["body"] = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")


def remove_stale_pages(app, exception) -> None:
    """Delete pages of the output folder that no document stands behind any more."""
    if exception or app.builder.format != "html":
        return
    output = Path(app.outdir)
    wanted = set(app.env.found_docs) | EXTRA_PAGES
    for page in output.rglob("*.html"):
        name = page.relative_to(output).with_suffix("").as_posix()
        if name not in wanted and not name.startswith(KEPT):
            page.unlink()
