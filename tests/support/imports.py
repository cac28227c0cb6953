"""What a program imports from outside, itself and through this repository, read and not run."""

import ast
import functools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("biaslib", "companion", "plantedworld")


def program(notebook: Path) -> ast.Module:
    """Return the code of a notebook, without its magic commands."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code").splitlines()
    magic = (line.lstrip().startswith("%") for line in lines)
    kept = [
        line.split("%")[0] + "pass" if m else line for m, line in zip(magic, lines, strict=True)
    ]
    return ast.parse("\n".join(kept))


def outside(tree: ast.Module, within_functions: bool) -> set[str]:
    """Return the packages that a program imports, without the standard library's and ours."""
    found, seen, left = set(), set(), list(_imported(tree, True))
    while left:
        name = left.pop()
        found.add(name.partition(".")[0])
        for path in _files(name) - seen:
            seen.add(path)
            left += _imports(path, within_functions)
    return found - set(OURS) - set(sys.stdlib_module_names)


def _imported(tree: ast.AST, within_functions: bool) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif not isinstance(node, ast.FunctionDef) or within_functions:
            yield from _imported(node, within_functions)


def _files(name: str) -> set[Path]:
    """Return the files of ours that an import of a dotted name runs."""
    words = name.split(".") if name.startswith(OURS) else []
    paths = [ROOT.joinpath(*words[: n + 1]) for n in range(len(words))]
    files = {each for path in paths for each in (path / "__init__.py", path.with_suffix(".py"))}
    return {each for each in files if each.is_file()}


@functools.cache
def _imports(path: Path, within_functions: bool) -> list[str]:
    return list(_imported(ast.parse(path.read_text(encoding="utf-8")), within_functions))
