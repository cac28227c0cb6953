"""Numbers that are typed into a page, and rows that say what each of them has to be.

A row is words of the page with holes. ``{expression}`` stands for a number that Python computes,
``{=expression}`` for a text that it gives. ``{?name}`` reads a number that was made up for an
exercise, so that what follows from it can be computed, or that it is the same elsewhere; ``{*}`` is
made up as well, and nothing follows from it; ``{@source number}`` is cited, or was measured, and
the package has no record of it. ``..`` skips words. A number is compared as far as it is written:
.63 with 0.6287. Digits need a row; a number word (two to a hundred) needs to be one that a row has,
where the words of a row of its page, or of the section *words*, stand around it.
"""

import ast
import functools
import json
import re
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "tests" / "typed"
CHANGED: dict[str, str] = {}
"""Texts of pages that are not as their files have them: ``tools/typed_numbers.py`` tries some."""
PAGES = ("README.md", "notebooks/*.ipynb", "book/*.md", "book/*/*.md", "book/*/*.yml")

UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
UNITS += " fifteen sixteen seventeen eighteen nineteen"
TENS = "ten twenty thirty forty fifty sixty seventy eighty ninety hundred"
WORDS = {word: n for n, word in enumerate(UNITS.split())} | {"none": 0}
WORDS |= {ten: 10 * n for n, ten in enumerate(TENS.split(), 1)}
UNIT, TEN = UNITS.replace(" ", "|"), TENS.replace(" ", "|")
DIGITS = (
    r"(?<![\w.,])(?<![A-Za-z]-)[−-]?(?:\d{1,3}(?:(?:,|\{,\})\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?!\w)"
)
NUMBER = re.compile(DIGITS)
HOLE = re.compile(r"(?<!\\)\{([?=*@]?)([^{}]*)\}")
GAP = r"(?:(?!\n\s*\n)[\s\S]){0,300}?"
CODE = re.compile(r"(?!\{)\S|\{(?:code|toctree|tableofcontents|plan|figure|include|eval|auto)")

KINDS = (
    "act|annex|appendix|article|caption|chapter|claim|col|doses?|equation|exercise|experiment|figure"
    "|group|law|layer|level|milestone|part|question|row|section|seeds?|sessions?|slide|stage|step"
    "|studies|study|table|task|tone|version|week"
)
NAMES = (
    r"<!-- from [\s\S]*?<!-- end -->",  # what a program wrote
    # study 2; Tables 3 and 4; dose 0, 1 or 3
    rf"\b(?!claims)(?:{KINDS})s?\*?\s+(?:[A-Z]?\d[\d.]*[a-z]?\b"
    r"(?:(?:, (?:and |or |not )?|,? and |,? or | to |[–/-])(?=[A-Z]?\d))?)+",
    r"\{term\}`dose` \d|^\| \d \||^\s*(?:\* )?- \d$|\(\d\)|^\s*\d+\. ",
    # years, dates, versions, licences, names of models
    r"\b(?:19|20)\d\d\b",
    r"(?<![.\d])\d{1,2} (?-i:Jan|Feb|March|April|May|June|July|Aug|Sep|Oct|Nov|Dec)",
    r"\b3\.1\d\b|\(0\..*?\)|\b\d+\.\d+\.\d+\b|Apache 2\.0|\bCC BY(?:-SA)? \d\.\d|\w-\w/\d+",
    r"\b(?:Firefox|QTI) [\d.]+",
    # minutes, which are advice or which plans add up
    r"\(?\b\d+ minutes?\b|\*\*(?:Minutes|Time).*|^time: .*$|\b(?:minutes|week): \d+|weeks: \{.*\}",
    r"^  \d+: \d+$|\b(?:decks|pages): \[[^]]*\]",
    # code, the proof of a quiz's answer, addresses, labels
    r"^  proof: (?:.*\n {4,})*.*$|(?:\{[\w:]+\})?`[^`\n]*`|(?<=\])\([^)\n]*\)|<[^<>\n]*>",
    r"https?://\S+|^\([\w-]+\)=$|^:[\w-]+:.*$",
    # indices, exponents, shapes
    r"[_^](?:\{[^{}.]*\}|\w)|\\frac\d\d|\b10(?=\^)|shape \(.*?\)|\(n, \d\)",
)
"""What is a name or a place and no number."""
NAME = re.compile("|".join(NAMES), re.IGNORECASE | re.MULTILINE)
MATHS = re.compile(r"(?m:^`{3}\{math\}[^`]*`{3}$)|\$\$[^$]+\$\$|\$[^$\n]+\$")
SYMBOL = re.compile(r"(?<![\\A-Za-z])[A-Za-z]\b")
BOUNDS = {"0", "1", "−1"}
"""Ends of scales, which need no source: no probability is above 1."""
OF_ENDS = re.compile(r"^text:|(?:above|below|from|between) \{")
"""Words for all pages that stand before ends of scales as well: above .05, above 0."""


def source(page: str) -> str:
    """Return a page's text; of a notebook, its cells, and after each cell of code what it says."""
    if page in CHANGED:
        return CHANGED[page]
    text = (ROOT / page).read_text(encoding="utf-8")
    if not page.endswith(".ipynb"):
        return text
    parts = []
    for cell in json.loads(text)["cells"]:
        written = "".join(cell["source"])
        parts += [written] if cell["cell_type"] == "markdown" else [f"```python\n{written}\n```"]
        parts += said_by(written) if cell["cell_type"] == "code" and "%pip" not in written else []
    return "\n\n".join(parts)


def said_by(code: str) -> list[str]:
    """Return captions and sentences of a cell: texts of five words or more, without their holes."""
    nodes = (node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant))
    texts = (node for node in nodes if isinstance(node, str) and " == " not in node)
    return [re.sub(r"\{[^{}]*\}", "…", text) for text in texts if len(text.split()) > 4]


def numbers(text: str) -> list[re.Match]:
    """Return the numbers of a page's prose: not those of code, of names and of scales."""
    lines, fences = [], []
    for line in text.splitlines(keepends=True):
        fence = re.match(r"\s*(`{3,}|:{3,}|~{3,})(.*)", line)
        inside = any(code for _, code in fences)
        if fence and fences and not fence[2].strip() and fence[1].startswith(fences[-1][0]):
            fences.pop()
        elif fence and not inside:
            fences.append((fence[1], bool(CODE.match(fence[2].strip() or "text"))))
        lines.append(re.sub(r"\d", "_", line) if fence or inside else line)
    prose = re.sub(r"\A---\n[\s\S]*?\n---\n", lambda m: re.sub(r"\d", "_", m[0]), "".join(lines))
    prose = NAME.sub(lambda match: re.sub(r"\d", "_", match[0]), MATHS.sub(_worked, prose))
    return list(NUMBER.finditer(prose))


def _worked(formula: re.Match) -> str:
    """Blank single digits of a formula with symbols, which no number of a page changes."""
    if SYMBOL.search(formula[0]) or "=" not in formula[0]:
        return re.sub(r"(?<![\d.])\d(?![\d.])", "_", formula[0])
    return formula[0]


@functools.cache
def rows() -> dict[str, list[str]]:
    """Return the rows of each page."""
    found = {}
    for path in sorted(ROWS.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("== "):
                page = found.setdefault(line[3:], [])
            elif line.strip() and not line.startswith("#"):
                page.append(line)
    return found


def pages() -> list[str]:
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    return sorted(str(path.relative_to(ROOT)) for path in found)


def agrees(written: str, value: float) -> bool:
    """Whether a number as it is written, in digits or as a word, is a value rounded so far."""
    places, value = len(written.partition(".")[2]), float(value)
    most = 0.5 * 10.0**-places if places else min(0.5, abs(value) / 7)  # 1 is not said of .7
    return not re.match(r"[−-]?0\d", written) and abs(read(written) - value) <= most + 1e-9


def read(written: str) -> float:
    if written[0].isalpha():
        return sum(WORDS[part] for part in written.lower().split("-"))
    return float(written.replace("−", "-").replace("{,}", "").replace(",", ""))


def pattern(row: str, values: dict) -> re.Pattern:
    """Return the row's words, with a group for each number."""
    number = rf"((?i:\b(?:(?:{TEN})(?:-(?:{UNIT}))?|{UNIT}|none)\b)|{DIGITS})"
    parts, at = [], 0
    for hole in [*HOLE.finditer(row), None]:
        words = row[at : hole.start() if hole else None].replace(r"\{", "{").replace(r"\}", "}")
        words = re.escape(words).replace(r"\ \.\.\ ", GAP)
        parts.append(re.sub(r"\\? ", r"\\s+", words))
        if hole:
            parts.append(re.escape(str(eval(hole[2], values))) if hole[1] == "=" else number)
            at = hole.end()
    return re.compile("".join(parts))


def check(row: str, text: str, values: dict) -> SimpleNamespace:
    """Return where a row's words have the right numbers, where made-up ones, and what is wrong.

    Numbers that the row reads are added to ``values``. Where the words stand with other numbers
    too, these are not the row's.
    """
    found = SimpleNamespace(wrong=[], at=set(), free=set(), others=set(), matched=False)
    holes = [hole for hole in HOLE.finditer(row) if hole[1] != "="]
    try:
        words = pattern(row, values)
    except NameError as error:
        found.wrong.append(f"{row!r}: {error}")
        return found
    for match in words.finditer(text):
        told, wrong = dict(values), []
        for n, hole in enumerate(holes, 1):
            try:
                right = holds(hole, match[n], told)
            except (NameError, ValueError, ArithmeticError, LookupError) as error:
                right = repr(error)
            if right is not True:
                wrong.append(f"{match[0]!r}: {match[n]} is not {hole[2]}, {right}")
                found.others.add(match.start(n))
        found.wrong += wrong
        if not wrong:
            values.update(told)
            found.matched = True
            for n, hole in enumerate(holes, 1):
                (found.free if hole[1] in ("*", "@") else found.at).add(match.start(n))
    return found


def holds(hole: re.Match, written: str, values: dict) -> bool | float:
    """Return whether a hole has the right number, or else which that is."""
    if hole[1] == "*":
        return True
    if hole[1] == "?":
        values.setdefault(hole[2], read(written))
    value = float(hole[2].split()[1]) if hole[1] == "@" else float(eval(hole[2], values))
    return agrees(written, value) or value


def without_a_source(page_rows: list[str]) -> list[str]:
    """Return expressions that name nothing, and numbers that are read and not used again."""
    holes = [(hole[1], hole[2]) for row in page_rows for hole in HOLE.finditer(row)]
    names = {
        expression: {each.id for each in ast.walk(ast.parse(expression)) if hasattr(each, "id")}
        for kind, expression in holes
        if kind in ("", "=")
    }
    used = set().union(*names.values())
    bare = [expression for expression, found in names.items() if not found]
    return bare + [name for kind, name in holes if kind == "?" and name not in used]


def known(page: str, text: str, values: dict) -> SimpleNamespace:
    """Return where a page's numbers are right, where made up, and which rows are wrong.

    ``values`` has what the rows' expressions name.
    """
    own, found = rows().get(page, []), SimpleNamespace(wrong=[], at=set(), free=set(), others=set())
    read_here = {hole[2] for row in own for hole in HOLE.finditer(row) if hole[1] == "?"}
    values = {name: value for name, value in values.items() if name not in read_here}
    for row in own:
        one = check(row, text, values)
        found.wrong += [] if one.matched else one.wrong or [f"no such words: {row!r}"]
        found.at |= one.at
        found.free |= one.free
        found.others |= one.others
    for row in rows()["words"]:
        one = check(row, text, values)
        found.at |= one.at | one.free
        found.others |= one.others
    found.words = {
        at for at in found.others if not re.match("[^a-z]|one|none|zero", text[at:], re.I)
    }
    for row in rows()["*"]:
        one = check(row, text, values)
        found.at |= one.at
        found.others |= set() if OF_ENDS.search(row) else one.others
    return found


def faults(page: str, text: str, values: dict) -> list[str]:
    """Return what is wrong with the numbers of a page: see :func:`known`."""
    found = known(page, text, values)
    for start in sorted(found.words - found.at - found.free):
        found.wrong.append(
            f"no row has this number: {' '.join(text[start : start + 40].split())!r}"
        )
    for match in numbers(text):
        anywhere = BOUNDS if match.start() not in found.others else ()
        if match.start() not in found.at | found.free and match[0] not in anywhere:
            near = " ".join(text[max(match.start() - 50, 0) : match.end() + 30].split())
            found.wrong.append(f"no row for {match[0]} in {near!r}")
    return found.wrong
