"""Print, as a table in Markdown, how much each chapter asks of its reader.

``python tools/prose.py [notebooks/one.ipynb ...]``. Prose is the Markdown of a notebook and what
its cells ``say``, without code, equations and rows of tables. A number that is a name, as in
"study 2" or "Table 3", is none; a value that a sentence is given is one.
"""

import ast
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG_SENTENCE, WORDS_A_MINUTE = 28, 200
NAMES = r"\b(?:[Ss]tud(?:y|ies)|[Ee]xperiments?|[Tt]ables?|[Ff]igures?|[Ss]ections?) \d[\d.]*"
BUILDS_SENTENCES = ("display.say", "Markdown", "display.Markdown")
NO_PROSE = re.compile(
    r"(?ms)^(`{3,})(?:\{math\}|\w).*?^\1$|^(?:`{3,}|:{3,}).*?$|^:\w[\w-]*:.*?$|^\|.*?\|$|^\|"
    r"|\$\$?[^$]+\$|(?:\{[\w:]+\})?`[^`\n]*`|(?<=\])\([^)]*\)|^#+ "
)
HEADINGS = [
    "chapter", "words", "numbers in 100 words", "sentences over 28 words, %", "figures", "tables",
    "code lines that build sentences, %", "minutes",
]  # fmt: skip


def sentences(prose: str) -> list[str]:
    """Return the sentences and headings of prose.

    >>> sentences("It is so. Is it? Yes, 0.5 is.")
    ['It is so.', 'Is it?', 'Yes, 0.5 is.']
    """
    parts = re.split(r"(?<=[.?!:])[*_”\")]*\s+(?=[*_“\"(\[{]*[A-Z$0-9])|\n\s*\n|\n[-*] ", prose)
    return [" ".join(part.split()) for part in parts if part.split()]


def row(notebook: dict) -> list[float]:
    """Return what :data:`HEADINGS` name of a notebook, but for its name."""
    texts, code, built, figures, tables = [], 0, 0, 0, 0
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            texts.append(source)
            continue
        if "%pip" in source:  # what installs the package
            continue
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        names = [ast.unparse(call.func) for call in nodes]
        says = [call for call, name in zip(nodes, names, strict=True) if name in BUILDS_SENTENCES]
        n_lines = sum(bool(line.strip()) for line in source.splitlines())
        texts += [arg.value for call in says for arg in call.args if isinstance(arg, ast.Constant)]
        code, built = code + n_lines, built + n_lines * bool(says)
        figures += names.count("display.figure")
        tables += names.count("display.table")
    prose = "\n\n".join(NO_PROSE.sub("", re.sub(NAMES, "it", text)) for text in texts)
    lengths = [len(sentence.split()) for sentence in sentences(prose)]
    numbers = len(
        re.findall(r"(?<![\w{.])[\d,]*\.?\d+|(?<!\{)\{[a-z]\w*(?:[\[.:][^{}]*)?\}(?!`)", prose)
    )
    words, n_prose = sum(len(text.split()) for text in texts), max(sum(lengths), 1)
    long_ones = sum(length > LONG_SENTENCE for length in lengths) / max(len(lengths), 1)
    return [words, 100 * numbers / n_prose, 100 * long_ones, figures, tables,
            100 * built / max(code, 1), words / WORDS_A_MINUTE]  # fmt: skip


def main(paths: list[Path]) -> None:
    """Print a line a chapter."""
    print(f"| {' | '.join(HEADINGS)} |\n|---|{'---:|' * (len(HEADINGS) - 1)}")
    for path in paths:
        values = row(json.loads(path.read_text(encoding="utf-8")))
        shown = [
            f"{value:.1f}" if place == 1 else f"{value:.0f}" for place, value in enumerate(values)
        ]
        print(f"| {path.stem} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or sorted((ROOT / "notebooks").glob("*.ipynb")))
