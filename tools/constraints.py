"""Resolve what pyproject.toml asks for: requirements.txt with hashes, constraints.txt without.

What stands in requirements.txt is kept where the bounds allow it; ``--upgrade`` or
``--upgrade-package NAME`` renews. Both files hold for Linux, macOS and Windows.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOWEST = "3.11.5"
"""The first Python 3.11 that every package of the set runs on."""

HEADER = """\
# A complete, tested set for the default build (Python 3.11). Colab and other installs need only
# the lower bounds of pyproject.toml. requirements.txt has the same versions with their hashes.
# Written by `make constraints`.
"""


def main(options: list[str]) -> None:
    compiled = ["compile", "pyproject.toml", "--extra", "dev", "--universal", "--generate-hashes"]
    settings = ["--python-version", LOWEST, "--no-header", "--no-annotate", "--quiet"]
    command = ["uv", "pip", *compiled, *settings, "--output-file", "requirements.txt", *options]
    subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    locked = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^\S+==\S+", locked, re.MULTILINE)
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(pins) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
