"""Run every notebook as a Colab user would: no clone, and torch and NumPy left as they are.

For each notebook, installs a wheel of biaslib with the extras that its install cell names into
the environment that runs this script, and runs it top to bottom in an empty folder; then checks
that the versions of torch, torchvision and NumPy have not changed.
"""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ("torch", "torchvision", "numpy")


def versions() -> dict[str, str | None]:
    """Return the installed versions of the packages that must not change."""
    return {name: _version(name) for name in KEPT}


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def build_wheel(folder: Path) -> Path:
    """Build a wheel from a copy of the sources, so that the repository stays as it is."""
    copy = folder / "source"
    ignored = shutil.ignore_patterns(".venv", ".git", "_build", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, copy, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(copy)], check=True)
    return next(folder.glob("biaslib-*.whl"))


def install(requirement: str) -> None:
    """Install with pip; what is there already and fits stays."""
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", requirement], check=True)


def extras(notebook: Path) -> str:
    """Return the extras that a notebook's own install cell asks for, such as ``[models]``."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return re.search(r'"biaslib(\[[\w,]+\])? @ git\+', first).group(1) or ""


def run_notebook(notebook: Path, folder: Path) -> None:
    """Run a copy of a notebook in an empty folder, with no clone on the path."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "BIASLIB_BOOK")}
    copy = folder / notebook.name
    copy.write_bytes(notebook.read_bytes())
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute"]
    command += ["--ExecutePreprocessor.timeout=900", "--output", f"run-{copy.name}", str(copy)]
    subprocess.run(command, check=True, cwd=folder, env=environment)


def main() -> None:
    before = versions()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        wheel = build_wheel(Path(first))
        # Those that ask for least come first: what they need must come with what they ask for.
        for notebook in sorted((ROOT / "notebooks").glob("*.ipynb"), key=extras):
            print(f"running {notebook.name} with biaslib{extras(notebook)}", flush=True)
            install(f"{wheel}{extras(notebook)}")
            run_notebook(notebook, Path(second))
        after = versions()
    if before != after:
        raise SystemExit(f"installing biaslib changed {before} to {after}")
    print(f"all notebooks ran; {after} unchanged")


if __name__ == "__main__":
    main()
