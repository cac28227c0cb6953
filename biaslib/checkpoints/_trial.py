"""What a folder brings is tried out in a process of its own: what that does not survive is refused.

This file is the program of that process, too. It reads from its input the limits, and then what to
try; it ends with 0 unless time or memory ran out. What is wrong otherwise is told when the folder
is read.
"""

import contextlib
import json
import string
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

OF_TEMPLATE, OF_TOKENIZER, WAITED = 4, 8, 60
"""Seconds of a processor that a trial may take, and by the clock where those are not counted."""

LONGEST_TEMPLATE = 2**18
OF_ITS_OWN = {"Regex", "content", "prepend"}
"""What a tokenizer replaces, cuts at or adds, as it likes."""

MEMORY = 2 * 2**30
LONGEST = 1_000_000
WORDS = "The nurse, 25, isn't a WOMAN\n  of the man's 3.5 pictures of people: she said. " * 8

_survived: set[str] = set()


def require_quick_tokenizer(steps: Iterable[str], path: Path) -> None:
    """Refuse a tokenizer whose own replacements and patterns explode for a few words.

    Parameters
    ----------
    steps
        The names of settings in its steps.
    path
        Its file.

    Raises
    ------
    CheckpointError
        If a process of its own does not end within :data:`OF_TOKENIZER` seconds, or memory grows
        too large.
    """
    from biaslib.runtime import file_sha256

    if OF_ITS_OWN & {*steps}:
        asked = {"tokenizer": str(path.resolve())}
        _try(asked, file_sha256(path), OF_TOKENIZER, "tokenizer", path.parent)


def require_quick_template(template: Any, conversations: list, words: dict, folder: Path) -> None:
    """Refuse a chat template that takes too long, or writes too much, for a prompt.

    Parameters
    ----------
    template
        Of a processor: a text, or texts by name.
    conversations
        What it is given.
    words
        The tokenizer's special tokens, which templates name.
    folder
        It came from.

    Raises
    ------
    CheckpointError
        If a process of its own does not end within :data:`OF_TEMPLATE` seconds, or memory or text
        grow too large.
    """
    texts = list(template.values()) if isinstance(template, dict) else [template]
    if any(len(text) > LONGEST_TEMPLATE for text in texts):
        raise _refusal(folder, f"has a chat template of more than {LONGEST_TEMPLATE:,} characters")
    asked = {"templates": texts, "conversations": conversations, "words": words}
    _try(asked, json.dumps(asked), OF_TEMPLATE, "chat template", folder)


def _try(asked: dict, content: str, seconds: int, what: str, folder: Path) -> None:
    """Have a process of its own do what a folder asks for, once, and refuse what it dies of."""
    if content in _survived:
        return
    limits = {"paths": sys.path, "seconds": seconds}
    given = {"input": "\n".join(map(json.dumps, (limits, asked))), "encoding": "utf-8"}
    command = [sys.executable, "-I", __file__]
    try:
        died = subprocess.run(
            command, **given, capture_output=True, timeout=WAITED, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        died = True
    if died:
        limits = f"{seconds} seconds and 2 GB of memory for a few words"
        raise _refusal(folder, f"has a {what} that takes more than {limits}; download it again")
    _survived.add(content)


def _refusal(folder: Path, problem: str) -> Exception:
    from biaslib.errors import refusal  # not in the process that tries

    return refusal(folder, problem)


def _limit(seconds: int) -> None:
    """End this process after some seconds of the processor; let it have little memory."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _tokenize(path: str) -> None:
    """Take a few words apart, and long runs of letters and blanks."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    for text in (WORDS, string.printable, "a" * 200, " " * 200, "x" * 200 + "!"):
        if len(tokenizer.encode(text)) > LONGEST / 10:
            raise MemoryError


def _render(templates: list[str], conversations: list, words: dict[str, str]) -> None:
    """Render every conversation with every template, as transformers does."""
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tag of transformers around what a model writes: it changes no text."""

        tags = frozenset({"generation"})

        def parse(self, parser):
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    def refuse(message: str) -> None:
        raise ValueError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = json.dumps
    environment.globals |= {"raise_exception": refuse, "strftime_now": str}
    more = {"tools": None, "documents": None, "add_generation_prompt": True, **words}
    for template in templates:
        for messages in conversations:
            text = environment.from_string(template).render(messages=messages, **more)
            if len(text) > LONGEST:
                raise MemoryError


def main() -> int:
    """Try what the input says; return 1 if memory ran out."""
    limits, asked = (json.loads(line) for line in sys.stdin.read().splitlines())
    sys.path[:] = limits["paths"]
    _limit(limits["seconds"])
    try:
        if "tokenizer" in asked:
            _tokenize(asked["tokenizer"])
        else:
            _render(**asked)
    except (MemoryError, RecursionError):
        return 1
    except Exception as error:  # Whatever else is wrong is told where the folder is read.
        print(error, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
