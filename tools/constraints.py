"""Write constraints.txt from the packages of the environment that runs this script."""

import re
import subprocess
import sys
from pathlib import Path

HEADER = """\
# A complete, tested set for the default build (Python 3.11). Colab and other installs need only
# the lower bounds of pyproject.toml; this file is what `make book` and `make test` use.
# Written by `make constraints`.
"""


def main() -> None:
    frozen = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--exclude-editable", "--all"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    pins = sorted((line for line in frozen if re.match(r"(?!pip==)\S+==", line)), key=str.lower)
    Path(__file__).parents[1].joinpath("constraints.txt").write_text(
        HEADER + "\n".join(pins) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
