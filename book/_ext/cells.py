"""Sphinx extension: what a notebook's cells put on a page, besides what MyST-NB makes of them.

- Prose stands once on a page. A call of ``display.say`` is left out of the code that is shown, and
  so are the captions and alt texts of ``display.figure``: the reader meets them below the code.
- Pictures that a figure holds become files of the site.
- What has an id there can be linked to, as a heading can; a link to an id that is not there fails.
"""

import ast
import re

from docutils import nodes

PROSE = 32
"""Texts of a figure longer than this are left out of the code that is shown."""

IDENTIFIER = re.compile(r'<\w+[^<>]*\sid="([^"]+)"')


def setup(app):
    app.connect("builder-inited", keep_pictures_in_files)
    app.connect("doctree-read", shorten_cells)
    app.connect("doctree-read", name_targets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def keep_pictures_in_files(app) -> None:
    """Let Sphinx write the pictures that come in an address into files."""
    app.builder.supported_data_uri_images = False


def shorten_cells(app, doctree) -> None:
    """Leave prose out of the cells' code; a cell that holds nothing else shows no code."""
    inputs = [each for each in doctree.findall(nodes.container) if "cell_input" in each["classes"]]
    for cell in inputs:
        for block in list(cell.findall(nodes.literal_block)):
            code = shown(block.astext())
            if not code:
                cell.parent.remove(cell)
            elif code != block.astext():
                block.children, block.rawsource = [], code
                block += nodes.Text(code)


def name_targets(app, doctree) -> None:
    """Tell MyST of the ids in a page's outputs: it checks a link's target against its list."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for output in doctree.findall(nodes.raw):
        for name in IDENTIFIER.findall(output.astext()):
            slugs.setdefault(name, (output.line, name, name))


def shown(source: str) -> str:
    """Return a cell's code without its prose.

    >>> shown('mean = 2\\n\\ndisplay.say("The mean is {mean}.", mean=mean)')
    'mean = 2'
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a command of the notebook program
        return source
    lines = source.encode().splitlines()
    for text in sorted(_texts(tree), key=lambda text: text.lineno, reverse=True):
        first, last = text.lineno - 1, text.end_lineno - 1
        whole = lines[first][: text.col_offset], lines[last][text.end_col_offset :]
        lines[first : last + 1] = ['"…"'.encode().join(whole)]
    return unsaid(b"\n".join(lines).decode())


def unsaid(source: str) -> str:
    """Return a cell's code without its calls of ``display.say``.

    >>> unsaid('mean = 2\\ndisplay.say("The mean is {mean}.", mean=mean)')
    'mean = 2'
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a command of the notebook program
        return source
    lines = source.encode().splitlines()
    for said in reversed([each for each in tree.body if _says(each)]):
        del lines[said.lineno - 1 : said.end_lineno]
    return b"\n".join(lines).decode().strip()


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def _says(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and _called(statement.value) == "display.say"


def _texts(tree: ast.Module) -> list[ast.Constant]:
    """Return the captions and alt texts of figures, and templates that were given a name."""
    calls = [node for node in ast.walk(tree) if _called(node) == "display.figure"]
    of_figures = [
        each for call in calls for each in [*call.args, *(k.value for k in call.keywords)]
    ]
    named = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    texts = [each for each in of_figures + named if isinstance(each, ast.Constant)]
    return [each for each in texts if isinstance(each.value, str) and len(each.value) > PROSE]
