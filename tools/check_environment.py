"""Check this package in the environment that runs this script, as a Colab user would use it.

No clone, and what is there stays as it is. For each copy of a notebook in colab/, installs a wheel
of biaslib with the extras that its first cell names, and runs it top to bottom in an empty folder.
Then imports every module, runs every doctest, and compares numbers of every tiny checkpoint with
those of the tested set. It fails at an error, at a warning that our code causes, and if installing
has changed a package that was there before.
"""

import functools
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "[audit,language,captions]"
OURS = re.compile(
    r"^\S*(?:/biaslib/|/companion/|/plantedworld/|ipykernel_)\S*: \w*Warning: .*", re.MULTILINE
)
"""A warning that Python attributes to a line of the package or of a notebook's cell."""

DOCTESTS = """
import doctest, importlib, pkgutil, sys, warnings
warnings.filterwarnings("error", module="biaslib|companion|plantedworld")
import biaslib, plantedworld
modules = [each.name for each in pkgutil.walk_packages(biaslib.__path__, "biaslib.")]
modules += [each.name for each in pkgutil.walk_packages(plantedworld.__path__, "plantedworld.")]
FLAGS = doctest.ELLIPSIS  # what pytest takes, too
modules = [name for name in modules if not name.endswith("__main__")]
found = [(n, doctest.testmod(importlib.import_module(n), optionflags=FLAGS)) for n in modules]
failed = [name for name, result in found if result.failed]
print(f"{len(modules)} modules imported, {sum(r.attempted for _, r in found)} examples run")
sys.exit(f"doctests failed in {', '.join(failed)}" if failed else 0)
"""

NUMBERS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import checkpoint_numbers as table
found = table.numbers()
wrong = table.differences(found, json.loads(table.TABLE.read_text()))
print(f"{len(found)} checkpoints gave {sum(map(len, found.values()))} numbers")
sys.exit("\\n".join(wrong) or 0)
"""


class CheckError(Exception):
    """A check that failed; the others run."""


def versions() -> dict[str, str]:
    """Return the version of every package that is installed."""
    return {each.name: each.version for each in importlib.metadata.distributions()}


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
    return re.search(r'"biaslib(\[[\w,]+\])? @ ', first).group(1) or ""


def run_notebook(notebook: Path, folder: Path) -> None:
    """Run a copy of a notebook in an empty folder, with no clone on the path."""
    copy = folder / notebook.name
    copy.write_bytes(notebook.read_bytes())
    command = ["-m", "jupyter", "nbconvert", "--to", "notebook", "--execute"]
    command += ["--ExecutePreprocessor.timeout=900", "--output", f"run-{copy.name}", str(copy)]
    run(command, folder)
    done = json.loads((folder / f"run-{copy.name}").read_text(encoding="utf-8"))
    outputs = [each for cell in done["cells"] for each in cell.get("outputs", [])]
    printed = "".join("".join(each.get("text", [])) for each in outputs)
    if warned := OURS.findall(printed):
        raise CheckError("warns: " + "; ".join(dict.fromkeys(warned)))


def run(arguments: list[str], folder: Path) -> None:
    """Run this environment's Python away from the clone, with every warning shown once."""
    left_out = ("PYTHONPATH", "BIASLIB_BOOK", "BIASLIB_PROFILE")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"PYTHONWARNINGS": "default", "BIASLIB_STORE": str(folder / "store")}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment)
    if done.returncode:
        raise CheckError("failed, as printed above")


def checks(wheel: Path, notebooks: list[Path], away: Path):
    """Yield what is checked, and how: each installs what it needs first."""
    for notebook in notebooks:
        wanted = f"{wheel}{extras(notebook)}"
        yield notebook.name, wanted, functools.partial(run_notebook, notebook, away)
    everything = f"{wheel}{EXTRAS}"
    yield "doctests", everything, functools.partial(run, ["-c", DOCTESTS], away)
    tools = str(ROOT / "tools")
    yield "checkpoints", everything, functools.partial(run, ["-c", NUMBERS, tools], away)


def main() -> None:
    """Run all checks, or only those of the notebooks that are named, and the last two."""
    before, failed = versions(), {}
    # Those that ask for least come first: what they need must come with what they ask for.
    every = sorted((ROOT / "colab").glob("*.ipynb"), key=extras)
    chosen = [path for path in every if path.stem in sys.argv[1:]] or every
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for name, wanted, check in checks(build_wheel(Path(first)), chosen, Path(second)):
            print(f"== {name} with {wanted.rpartition('.whl')[2] or 'no extra'}", flush=True)
            install(wanted)
            try:
                check()
            except CheckError as error:
                failed[name] = str(error)
    after = versions()
    for name in before:
        if name != "biaslib" and after.get(name) != before[name]:
            failed[name] = f"was {before[name]}, and installing biaslib made it {after.get(name)}"
    if failed:
        raise SystemExit("\n".join(f"{name}: {told}" for name, told in failed.items()))
    kept = ", ".join(f"{name} {before.get(name)}" for name in ("torch", "torchvision", "numpy"))
    print(f"== {len(chosen)} notebooks ran; {len(before)} packages unchanged, {kept}")


if __name__ == "__main__":
    main()
