"""Sphinx extension: what a notebook's cells put on a page, besides what MyST-NB makes of them.

- What is open is the method. A cell with the captions and alt texts of a figure is folded, whole,
  and what opens it stands below what the cell puts out: the reader meets the figure first. A call
  of ``display.say`` is left out of open code, since its prose stands below. The cells that install,
  import and choose the profile stand folded before the first open one, behind the story.
- A cell tagged ``slide-figure`` draws for slides and paper alone: the page keeps its figure in a
  template, which browsers neither show nor load.
- Pictures that a figure holds become files of the site.
- The check of an exercise says nothing before somebody has tried: the hint is not shown.
- What has an id there can be linked to, as a heading can; a link to an id that is not there fails.
"""

import ast
import re

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms.post_transforms import SphinxPostTransform

PROSE = 32
"""A cell is folded if a text of a figure in it is longer than this."""

SHOW, HIDE = "Show the code", "Hide the code"
FIRST = "Show the notebook's first cells: imports and profile", "Hide the notebook's first cells"
SETS_UP = re.compile(r"(?s)import |from |try:\n    import biaslib\n|.*\bruntime\.start\(")
"""How the cells begin with which a notebook does, and what the last of them calls."""

IDENTIFIER = re.compile(r'<\w+[^<>]*\sid="([^"]+)"')


def setup(app):
    app.connect("builder-inited", keep_pictures_in_files)
    app.connect("doctree-read", keep_for_slides)
    app.connect("doctree-read", fold_figures)
    app.connect("doctree-read", set_up_behind_the_story)
    app.add_post_transform(CodeBelow)
    app.connect("doctree-read", silence_checks)
    app.connect("doctree-read", name_targets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def keep_pictures_in_files(app) -> None:
    """Let Sphinx write the pictures that come in an address into files."""
    app.builder.supported_data_uri_images = False


def keep_for_slides(app, doctree) -> None:
    """Leave of a cell that draws for slides its images alone, each in a template of its name."""
    for cell in list(doctree.findall(nodes.container)):
        if "tag_slide-figure" in cell["classes"]:
            kept = []
            for figure in cell.findall(nodes.figure):
                begin, end = f'<template id="{figure["ids"][0]}">', "</template>"
                image = next(figure.findall(nodes.image))
                kept += [nodes.raw("", begin, format="html"), image]
                kept.append(nodes.raw("", end, format="html"))
            place = cell.parent.index(cell)
            cell.parent[place : place + 1] = kept


def fold_figures(app, doctree) -> None:
    """Fold the cells of figures, and leave prose out of others; one without else shows no code."""
    for cell in [each for each in doctree.findall(nodes.container) if "cell" in each["classes"]]:
        cell["prompt_show"], cell["prompt_hide"] = SHOW, HIDE
        for block in list(cell.findall(nodes.literal_block))[:1]:
            code = block.astext()
            if has_captions(code):
                cell["hide_mode"] = cell.get("hide_mode") or "input"
            elif not unsaid(code):
                cell.remove(cell.children[0])
            elif unsaid(code) != code:
                block.children, block.rawsource = [], unsaid(code)
                block += nodes.Text(unsaid(code))


def set_up_behind_the_story(app, doctree) -> None:
    """Move the notebook's first cells, folded into one, before the first open cell of the page."""
    waiting = []
    for cell in [each for each in doctree.findall(nodes.container) if "cell" in each["classes"]]:
        block = next(cell.findall(nodes.literal_block), None)
        if block is not None and SETS_UP.match(block.astext()) and len(cell.children) == 1:
            waiting.append(cell)
        elif block is not None and not cell.get("hide_mode"):
            break
    else:
        return
    if waiting:
        folded = HideCodeCellNode(prompt_show=FIRST[0], prompt_hide=FIRST[1])
        folded["classes"].append("above-input")
        frame = nodes.container("", folded, classes=["cell", "first-cells"])
        cell.parent.insert(cell.parent.index(cell), frame)
        for each in waiting:
            each.parent.remove(each)
            each["hide_mode"] = None
            folded.append(each)


class CodeBelow(SphinxPostTransform):
    """Put the code that is folded below what it puts out."""

    default_priority = 200  # MyST-NB folds at 199
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for cell in self.document.findall(nodes.container):
            code = cell.get("nb_element") == "cell_code" and cell.children
            first = cell.children[0] if code else None
            if isinstance(first, HideCodeCellNode) and "above-input" in first["classes"]:
                cell.remove(first)
                cell.append(first)


def silence_checks(app, doctree) -> None:
    """Take out what the checks of exercises say of the blanks that the page has for answers."""
    for cell in list(doctree.findall(nodes.container)):
        if "tag_exercise-check" in cell["classes"]:
            for part in list(cell.findall(nodes.container)):
                if "cell_output" in part["classes"]:
                    part.parent.remove(part)


def name_targets(app, doctree) -> None:
    """Tell MyST of the ids in a page's outputs: it checks a link's target against its list."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for output in doctree.findall(nodes.raw):
        for name in IDENTIFIER.findall(output.astext()):
            slugs.setdefault(name, (output.line, name, name))


def has_captions(source: str) -> bool:
    """Tell whether a cell writes captions or alt texts of figures.

    >>> has_captions("mean = 2"), has_captions(f"display.figure(drawn, {'long ' * 9!r})")
    (False, True)
    """
    try:
        return bool(_texts(ast.parse(source)))
    except SyntaxError:  # a command of the notebook program
        return False


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
