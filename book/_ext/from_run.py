"""Sphinx extension: a page shows what a chapter's notebook put out when it ran for this build.

```{from-run} notebooks/text_encoders
:tag: start-page
```

stands for the outputs of the notebook's cells with that tag, in their order. Without a tag it is
the picture of the notebook's first figure. Nothing is typed twice, and nothing is shown that the
present code did not compute: pages with such a block are read after all others, when every notebook
has run, and at every build.
"""

import re
from pathlib import Path
from typing import ClassVar

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)
FIGURE = re.compile(r"^:{3,}\{figure\} (?P<address>\S+)\n(?:.*\n)*?:alt: (?P<alt>.*)$", re.M)
CLASS = re.compile(r"^:class: (.*)$", re.M)
NAME = re.compile(r"^:name: .*\n", re.M)


def setup(app):
    app.add_directive("from-run", FromRun)
    app.connect("env-before-read-docs", read_last)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def read_last(app, env, docnames: list[str]) -> None:
    """Read pages with such a block after those whose notebooks may still have to run."""
    late = {name for name in docnames if "{from-run}" in text_of(env.doc2path(name))}
    docnames.sort(key=lambda name: name in late)


def text_of(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if str(path).endswith(".md") else ""


class FromRun(SphinxDirective):
    """The outputs of a notebook's cells with a tag."""

    required_arguments = 1
    option_spec: ClassVar = {"tag": str}

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        path = self.env.doc2path(self.arguments[0])
        notebook = executed(path, self.env)
        if "tag" not in self.options:
            return first_picture(notebook)
        outputs = tagged_outputs(notebook, self.options["tag"])
        if not outputs:
            LOGGER.warning("no output of %s has the tag", path, location=self.get_location())
        return [node for output in outputs for node in self._shown(output["data"])]

    def _shown(self, data: dict) -> list[nodes.Node]:
        if "text/markdown" in data:
            # A name leads to the chapter.
            return self.parse_text_to_nodes(NAME.sub("", data["text/markdown"]))
        return [nodes.raw("", data["text/html"], format="html")]


def executed(path: str, env):
    """Return the notebook with the outputs that are kept for it; None if it has not been run."""
    cache = get_cache(env.mystnb_config.execution_cache_path)
    try:
        record = cache.match_cache_notebook(nbformat.read(path, nbformat.NO_CONVERT))
    except KeyError:
        return None
    return cache.get_cache_bundle(record.pk).nb


def first_picture(notebook) -> list[nodes.Node]:
    """Return the picture of a notebook's first figure; nothing if it was not run."""
    outputs = [
        out for cell in (notebook.cells if notebook else ()) for out in cell.get("outputs", ())
    ]
    texts = [each.get("data", {}).get("text/markdown", "") for each in outputs]
    found = next(filter(None, map(FIGURE.search, texts)), None)
    if found is None:
        return []
    classes = CLASS.search(found.string)
    looks = ["first-figure", *(classes[1].split() if classes else ())]
    return [nodes.image("", uri=found["address"], alt=found["alt"], classes=looks)]


def tagged_outputs(notebook, tag: str) -> list:
    """Return the outputs of the cells with a tag."""
    return [
        output
        for cell in (notebook.cells if notebook else ())
        if tag in cell.metadata.get("tags", ())
        for output in cell.get("outputs", ())
    ]
