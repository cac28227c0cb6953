"""A process of its own that tries out what a folder brings: what it does not survive is refused.

It reads from its input the limits, and then what to try. It ends with 0 unless time or memory ran
out: what is wrong otherwise is told when the folder is read.
"""

import contextlib
import json
import string
import sys

MEMORY = 2 * 2**30
LONGEST = 1_000_000
WORDS = "The nurse, 25, isn't a WOMAN\n  of the man's 3.5 pictures of people: she said. " * 8


def limit(seconds: int) -> None:
    """End this process after some seconds of the processor; let it have little memory."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def tokenize(path: str) -> None:
    """Take a few words apart, and long runs of letters and blanks."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    for text in (WORDS, string.printable, "a" * 200, " " * 200, "x" * 200 + "!"):
        if len(tokenizer.encode(text)) > LONGEST / 10:
            raise MemoryError


def render(templates: list[str], conversations: list, words: dict[str, str]) -> None:
    """Render every conversation with every template, as transformers does."""
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tag of transformers around what a model writes: it changes no text."""

        tags = frozenset({"generation"})

        def parse(self, parser):
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    def refuse(told: str) -> None:
        raise ValueError(told)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = json.dumps
    environment.globals |= {"raise_exception": refuse, "strftime_now": str}
    more = {"tools": None, "documents": None, "add_generation_prompt": True, **words}
    for template in templates:
        for messages in conversations:
            found = environment.from_string(template).render(messages=messages, **more)
            if len(found) > LONGEST:
                raise MemoryError


def main() -> int:
    """Try what the input says; return 1 if memory ran out."""
    limits, asked = (json.loads(line) for line in sys.stdin.read().splitlines())
    sys.path[:] = limits["paths"]
    limit(limits["seconds"])
    try:
        if "tokenizer" in asked:
            tokenize(asked["tokenizer"])
        else:
            render(**asked)
    except (MemoryError, RecursionError):
        return 1
    except Exception as error:  # Whatever else is wrong is told where the folder is read.
        print(error, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
