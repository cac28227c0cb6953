"""Make an environment that the package promises to work in, and check the package there.

``python tools/environments.py lowest`` takes the lowest version of each package that pyproject.toml
declares, on the lowest Python; ``colab`` takes the versions of Colab's runtime in
tools/colab_pins.txt, on its Python. Both then run tools/check_environment.py.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "tools" / "colab_pins.txt"
PYTHONS = {"lowest": "python3.10", "colab": "python3.13"}
RUNNERS = ["ipykernel", "nbconvert"]
"""What runs notebooks: no requirement of ours, and there on Colab."""


def extras() -> dict[str, list[str]]:
    """Return the requirements that users install: the base, and every extra with packages of its
    own but our tools.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    users = {
        name: optional[name] for name in optional if name not in ("audit", "book", "teach", "test")
    }
    return {"": project["dependencies"], **users}


def lowest() -> list[str]:
    """Return each requirement at its lowest version: ``numpy>=1.26`` -> ``numpy==1.26``."""
    every = sorted({each for requirements in extras().values() for each in requirements})
    return [each.replace(">=", "==") for each in every]


def pins() -> list[str]:
    """Return the versions of Colab."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def requirements(name: str) -> list[str]:
    """Return what is in an environment before the package is installed."""
    return [*lowest(), *RUNNERS] if name == "lowest" else pins()


def make(name: str, python: str, folder: Path) -> Path:
    """Make an environment and return its Python."""
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    inside = folder / "bin" / "python"
    install = [str(inside), "-m", "pip", "install", "--progress-bar", "off", "--quiet"]
    subprocess.run([*install, "--upgrade", "pip"], check=True)
    subprocess.run([*install, *requirements(name)], check=True)
    return inside


def main() -> None:
    """Make an environment and check the package in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(PYTHONS))
    parser.add_argument("--python", help="the interpreter; by default the promised version's")
    given = parser.parse_args()
    python = given.python or PYTHONS[given.name]
    if shutil.which(python) is None:
        raise SystemExit(
            f"the environment {given.name!r} needs {PYTHONS[given.name]}, and {python!r} is not "
            f"there: install it, or name it: {sys.argv[0]} {given.name} --python /path/to/python"
        )
    inside = make(given.name, python, ROOT / "build" / "environments" / given.name)
    subprocess.run([str(inside), str(ROOT / "tools" / "check_environment.py")], check=True)


if __name__ == "__main__":
    main()
