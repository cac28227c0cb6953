"""Print the lines of code of each layer, and of each of its folders.

Docstrings, comments and blank lines do not count. What maintainers run and the extensions of the
book count as well: what leaves a package may not come back there unseen.
"""

import io
import itertools
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("biaslib", "companion", "plantedworld", "tools", "book/_ext", "tests")


def code(text: str) -> str:
    r"""Return Python source without its comments, docstrings and blank lines.

    Lines within other strings stay as they are.

    Examples
    --------
    >>> code("'A docstring.'\n\na = 1  # one\nb = '''\n\n# in a string'''\n").splitlines()
    ['a = 1', "b = '''", '', "# in a string'''"]
    """
    lines = text.splitlines()
    inside, begins = set(), True
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    for token, following in itertools.pairwise(tokens):
        (row, column), (last, _) = token.start, token.end
        if token.type == tokenize.COMMENT:
            lines[row - 1] = lines[row - 1][:column]
        elif begins and (token.type, following.type) == (tokenize.STRING, tokenize.NEWLINE):
            lines[row - 1 : last] = [""] * (last + 1 - row)
        else:
            inside.update(range(row - 1, last - 1))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    kept = (
        line if row in inside else line.rstrip()
        for row, line in enumerate(lines)
        if row in inside or line.strip()
    )
    return "\n".join(kept)


def lines() -> dict[str, int]:
    """Return the lines of code of each folder directly below a package, and of each package."""
    found: dict[str, int] = {}
    for package in PACKAGES:
        paths = sorted((ROOT / package).rglob("*.py"))
        counts = {path: len(code(path.read_text(encoding="utf-8")).splitlines()) for path in paths}
        found[package] = sum(counts.values())
        for path, count in counts.items():
            inside = path.relative_to(ROOT / package).parts[:-1]
            layer = f"{package}/{inside[0]}" if inside else f"{package}, its own files"
            found[layer] = found.get(layer, 0) + count
    return found


def table(found: dict[str, int]) -> str:
    """Return the counts as a table in Markdown."""
    rows = (f"| {layer} | {count:,} |\n" for layer, count in found.items())
    return "| Layer | Lines of code |\n| --- | ---: |\n" + "".join(rows)


def main() -> None:
    """Print the table."""
    print(table(lines()), end="")


if __name__ == "__main__":
    main()
