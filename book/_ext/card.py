"""Sphinx extension: a page shows what was measured on cards, or says that nothing was.

```{card-results}
```

stands for the tables of the records below ``tools/benchmarks/results``.
"""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]


def setup(app):
    app.add_directive("card-results", CardResults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class CardResults(SphinxDirective):
    """The tables of all cards."""

    def run(self) -> list[nodes.Node]:
        if str(ROOT) not in sys.path:
            sys.path.append(str(ROOT))
        from tools.benchmarks.gpu import tables

        self.env.note_reread()
        return self.parse_text_to_nodes(tables.markdown())
