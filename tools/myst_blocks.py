"""Markdown of the book, block by block: prose, code, equations and directives.

Only as much of MyST is read as the pages need; what stands in a fence is told from what stands
around it, and a fence within a directive is left to whoever reads the directive's body.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

FENCE = re.compile(r"^( *)(`{3,}|~{3,}|:{3,})[ \t]*(?:\{([^}\s]+)\}[ \t]*(.*?)|([^`]*?))[ \t]*$")
DOLLARS = re.compile(r"^( *)\$\$(.*)$")
DOLLARS_END = re.compile(r"^(.*?)\$\$[ \t]*(?:\(([^)]+)\))?[ \t]*$", re.S)
TARGET = re.compile(r"^ *\(([^)\s]+)\)= *$")
OPTION = re.compile(r"^:([\w-]+):[ \t]*(.*)$")


@dataclass(frozen=True)
class Block:
    """A piece of a page: *kind* is ``prose``, ``code``, ``math``, ``target`` or ``directive``."""

    kind: str
    text: str
    indent: str = ""
    name: str = ""
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page's Markdown in their order."""
    lines, prose = text.splitlines(), []
    while lines:
        found = _special(lines)
        if found is None:
            prose.append(lines.pop(0))
            continue
        if prose:
            yield Block("prose", "\n".join(prose))
            prose = []
        block, length = found
        del lines[:length]
        yield block
    if prose:
        yield Block("prose", "\n".join(prose))


def _special(lines: list[str]) -> tuple[Block, int] | None:
    """Return what begins at the first line, and its number of lines; nothing for prose."""
    first = lines[0]
    if target := TARGET.match(first):
        return Block("target", target[1]), 1
    if fence := FENCE.match(first):
        return _fenced(lines, fence)
    if dollars := DOLLARS.match(first):
        return _dollars(lines, dollars)
    return None


def _fenced(lines: list[str], fence: re.Match) -> tuple[Block, int]:
    indent, marks, name, argument, _ = fence.groups()
    closing = re.compile(rf"^ *{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$")
    ends = (at for at, line in enumerate(lines[1:], 1) if closing.match(line))
    end = next(ends, len(lines))
    inner = [line.removeprefix(indent) for line in lines[1:end]]
    if name:
        return _directive(name, argument, inner, indent), end + 1
    whole = "\n".join(line.removeprefix(indent) for line in lines[: end + 1])
    return Block("code", whole, indent), end + 1


def _directive(name: str, argument: str, lines: list[str], indent: str) -> Block:
    """Return a directive with its options taken from the head of its lines."""
    options = {}
    while lines and (option := OPTION.match(lines[0].strip())):
        options[option[1]] = option[2].strip()
        lines = lines[1:]
    body = textwrap.dedent("\n".join(lines)).strip("\n")
    if name == "math":
        tex = "\n".join(filter(None, [argument, body]))
        return Block("math", tex, indent, options=options)
    return Block("directive", body, indent, name, argument, options)


def _dollars(lines: list[str], dollars: re.Match) -> tuple[Block, int]:
    indent, rest = dollars.groups()
    for end in range(1, len(lines) + 1):
        inside = "\n".join([rest, *lines[1:end]])
        if found := DOLLARS_END.match(inside):
            label = {"label": found[2]} if found[2] else {}
            return Block("math", found[1].strip(), indent, options=label), end
    raise ValueError(f"an equation does not end: {lines[0]!r}")
