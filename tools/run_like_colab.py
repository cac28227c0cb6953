"""Run every notebook as a Colab user would: no clone, and torch and NumPy left as they are.

Installs a wheel of biaslib into the environment that runs this script, checks that the versions of
torch and NumPy have not changed, and runs each notebook top to bottom in an empty folder.
"""

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ("torch", "numpy")


def versions() -> dict[str, str | None]:
    """Return the installed versions of the packages that must not change."""
    return {name: _version(name) for name in KEPT}


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def install_wheel(folder: Path) -> None:
    """Build a wheel and install it with the encoders; what is there already stays."""
    pip = [sys.executable, "-m", "pip"]
    subprocess.run(
        [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], check=True
    )
    wheel = next(folder.glob("biaslib-*.whl"))
    subprocess.run([*pip, "install", "--quiet", f"{wheel}[models]"], check=True)


def run_notebooks(folder: Path) -> None:
    """Run copies of the notebooks in an empty folder, with no clone on the path."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "BIASLIB_BOOK")}
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute"]
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        copy = folder / notebook.name
        copy.write_bytes(notebook.read_bytes())
        print(f"running {notebook.name}", flush=True)
        subprocess.run(
            [*command, "--output", f"run-{notebook.name}", str(copy)],
            check=True,
            cwd=folder,
            env=environment,
        )


def main() -> None:
    before = versions()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        install_wheel(Path(first))
        after = versions()
        if before != after:
            raise SystemExit(f"installing biaslib changed {before} to {after}")
        run_notebooks(Path(second))
    print(f"all notebooks ran; {after} unchanged")


if __name__ == "__main__":
    main()
