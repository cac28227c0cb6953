"""Resolve what pyproject.toml asks for: three files with hashes, and constraints.txt without.

``requirements.txt`` is what the book needs, ``requirements-test.txt`` what the tests need besides,
and ``requirements-teach.txt`` what ``make teach`` needs besides the book. What stands there is kept
where the bounds allow it; ``--upgrade`` or ``--upgrade-package NAME`` renews. All hold for Linux,
macOS and Windows.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOWEST = "3.11.5"
"""The first Python 3.11 that every package of the set runs on."""

HEADER = """\
# A complete, tested set for the default build (Python 3.11 to 3.13). Colab and other installs need
# only the lower bounds of pyproject.toml. requirements.txt and requirements-test.txt have the same
# versions with their hashes. Written by `make constraints`.
"""
LOCKED = re.compile(r"^\S+==(?:.*\\\n)*.*\n", re.MULTILINE)
"""A package's version, and the hashes of its files in the lines that follow."""


def resolve(extra: str, known: str, options: list[str]) -> list[str]:
    """Return what an extra brings, with hashes; versions that are known are kept."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "locked.txt"
        output.write_text(known, encoding="utf-8")
        compiled = ["compile", "pyproject.toml", "--extra", extra, "--universal"]
        settings = ["--generate-hashes", "--python-version", LOWEST, "--no-header", "--no-annotate"]
        settings += ["--quiet", "--output-file", str(output), *options]
        command = [sys.executable, "-m", "uv", "pip", *compiled, *settings]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return LOCKED.findall(output.read_text(encoding="utf-8"))


def main(options: list[str]) -> None:
    book, added = ROOT / "requirements.txt", ROOT / "requirements-test.txt"
    known = "".join(path.read_text(encoding="utf-8") for path in (book, added) if path.is_file())
    every = resolve("test", known, options)
    pins = [each.split()[0] for each in every]
    of_book = {each.split()[0] for each in resolve("book", "".join(every), [])}
    if other := of_book - set(pins):
        raise SystemExit(f"the book and its tests need different versions: {sorted(other)}")
    taught = ROOT / "requirements-teach.txt"
    kept = "" if options else taught.read_text(encoding="utf-8")
    found = resolve("teach", kept + "".join(every), [])
    lines = [each for each in found if each.split()[0] not in of_book]
    taught.write_text("".join(lines), encoding="utf-8")
    # With the tests' markers, which may be wider.
    for path, within in ((book, True), (added, False)):
        lines = [each for each, pin in zip(every, pins, strict=True) if (pin in of_book) == within]
        path.write_text("".join(lines), encoding="utf-8")
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(pins) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
