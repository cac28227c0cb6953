"""A page shows what the present packages compute, and a notebook runs only if it has to."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from support import confined

from biaslib import runtime
from biaslib.runtime import _stamp

ROOT = Path(__file__).resolve().parent.parent
EXTENSIONS = ROOT / "book" / "_ext"
sys.path.insert(0, str(EXTENSIONS))
from freshness import is_current  # noqa: E402

CONFIG = """\
title: Fresh
exclude_patterns: [biaslib, plantedworld]
execute: {execute_notebooks: cache, timeout: 60}
sphinx:
  local_extensions: {freshness: book/_ext/, tables: book/_ext/}
  config: {nb_render_markdown_format: myst}
"""
TOC = "{format: jb-book, root: association, chapters: [{file: probability}]}"
NOTEBOOKS = {
    "association": """\
from biaslib.metrics.association import effect_size
value = effect_size([[1, 0], [1, 0.2]], [[0, 1], [0.1, 1]], [[1, 0.1]], [[0.1, 1]])""",
    "probability": """\
from biaslib.metrics.masked_lm import pretraining_shift
value = pretraining_shift(-1.0, -2.0).score""",
}
RUN = """\
import secrets
from IPython.display import HTML, display
from biaslib import runtime
run = runtime.start()
{}
print(f"value {{value:.6f}}; execution {{secrets.token_hex(8)}}")
display(HTML('<div class="table-scroll" aria-label="Words"><table class="bias-table">'
             '<caption>Words</caption></table></div>'))"""
DOUBLED = """
_before = effect_size
def effect_size(*arguments, **options):
    return 2 * _before(*arguments, **options)
"""
METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python"},
}


@pytest.fixture
def folder(tmp_path):
    """A book of two notebooks in a folder of its own, with its own copy of the packages."""
    skip = shutil.ignore_patterns("__pycache__", "checkpoints")
    for package in ("biaslib", "plantedworld"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=skip)
    shutil.copytree(EXTENSIONS, tmp_path / "book" / "_ext", ignore=skip)
    (tmp_path / "_config.yml").write_text(CONFIG)
    (tmp_path / "_toc.yml").write_text(TOC)
    for name, source in NOTEBOOKS.items():
        cells = [new_markdown_cell("# Notebook"), *map(new_code_cell, [RUN.format(source), "run"])]
        nbformat.write(new_notebook(cells=cells, metadata=METADATA), tmp_path / f"{name}.ipynb")
    return tmp_path


def page(folder, name):
    return folder / "_build" / "html" / f"{name}.html"


def built(folder):
    """Build as a user would; return what each page says: value, execution, source."""
    environment = {name: value for name, value in os.environ.items() if name != "BIASLIB_BOOK"}
    program = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", ".", "-W", "-n", "--keep-going"]
    environment["PYTHONPATH"] = str(folder)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    pages = {name: page(folder, name).read_text(encoding="utf-8") for name in NOTEBOOKS}
    parts = r'value (\S+); execution (\w+)[\s\S]*data-source="(\w+)"'
    return {name: re.search(parts, text).groups() for name, text in pages.items()}


def append(path, text):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.mark.slow
def test_a_change_runs_those_notebooks_again_that_used_what_changed_and_no_other(folder):
    first = built(folder)
    append(folder / "plantedworld" / "training" / "bert.py", "\nCHANGED = True\n")
    append(folder / "biaslib" / "metrics" / "association.py", '\n# A comment.\n"""And text."""\n')
    tables = folder / "book" / "_ext" / "tables.py"
    tables.write_text(tables.read_text("utf-8").replace("Link to this", "Cite this"), "utf-8")
    assert built(folder) == first, "no page used the recipe, and a comment computes nothing"
    assert all("Cite this table" in page(folder, name).read_text("utf-8") for name in NOTEBOOKS)

    append(folder / "biaslib" / "metrics" / "association.py", DOUBLED)
    stopped = page(folder, "probability").read_text(encoding="utf-8")
    stopped = re.sub(r'data-source="\w+"', 'data-source="older"', stopped)
    page(folder, "probability").write_text(stopped, encoding="utf-8")
    third = built(folder)
    assert third["probability"] == first["probability"], "it must be written anew, and not run"
    (value, execution, source), before = third["association"], first["association"]
    assert float(value) == pytest.approx(2 * float(before[0]), rel=1e-5)
    assert execution != before[1]
    assert source != before[2]

    for name, statement in (("probability", "undefined; "), ("association", "a = 1; ")):
        notebook = folder / f"{name}.ipynb"
        text = notebook.read_text(encoding="utf-8")
        notebook.write_text(text.replace("print(f", f"{statement}print(f"), encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"probability\.ipynb: WARNING: Executing"):
        built(folder)
    ran = page(folder, "association").read_text(encoding="utf-8")
    assert execution not in ran, "what went well is shown"


# What a page used


def files_used(*statements: str) -> set[str]:
    """Return what the stamp of a process of its own lists after some statements."""
    program = "\n".join((*statements, "import json", "from biaslib import runtime"))
    program += "\nprint(json.dumps(sorted(runtime.used()['files'])))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_modules_data_beside_them_and_checkpoints_are_listed_and_nothing_else():
    used = files_used(
        "from biaslib import models, published, stimuli",
        "import plantedworld",
        "models.load('bert', profile='planted', dose=1, seed=2)",
        "models.load('vilt', profile='planted')",
        "published.data_checksum(), stimuli.association_tests(), plantedworld.planted_sets()",
    )
    assert {"biaslib/models/text.py", "biaslib/stimuli/data", "plantedworld/data"} <= used
    checkpoints = {name for name in used if name.startswith("plantedworld/checkpoints/")}
    assert checkpoints == {
        "plantedworld/checkpoints/bert-dose1-seed2",
        "plantedworld/checkpoints/vilt-dose3-seed0",
    }
    assert not {name for name in used if "training" in name}
    assert "biaslib/metrics/masked_lm.py" not in used


def test_scripts_and_styles_that_the_site_loads_make_no_notebook_run_again():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
    chapters = [path.stem for path in (ROOT / "notebooks").glob("*.ipynb")]
    used = files_used(f"from companion import {', '.join(chapters)}")
    assert "companion/data" in used
    assert not used & set(config["html_static_path"])


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of ours in a folder of its own, long ago."""
    folder = tmp_path / "ours"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "words.txt").write_text("nurse\n")
    (folder / "module.py").write_text("a = 1\n")
    noted = {folder / "module.py", folder / "data", folder / "runs" / "*", tmp_path.parent}
    monkeypatch.setattr(_stamp, "ROOT", tmp_path)
    monkeypatch.setattr(_stamp, "PACKAGES", ())
    monkeypatch.setattr(_stamp, "_files", noted)
    monkeypatch.setattr(_stamp, "BEGUN", _stamp.time.time() + 10)
    return folder


def test_what_was_used_is_current_until_a_file_changes(package):
    used = runtime.used()
    assert set(used["files"]) == {"ours/module.py", "ours/data", "ours/runs/*"}
    (package / "elsewhere.txt").write_text("another file")
    assert is_current(used)
    assert not is_current({})
    (package / "data" / "words.txt").write_text("nurse\njudge\n")
    assert not is_current(used)
    assert runtime.used()["source"] != used["source"]
    assert is_current(used := runtime.used())
    (package / "data" / "more.txt").write_text("judge\n")
    assert not is_current(used)
    used = runtime.used()
    (package / "module.py").unlink()
    assert not is_current(used)


def test_of_a_folders_list_the_names_count_alone(package):
    used = runtime.used()
    (package / "runs").mkdir()
    assert not is_current(used)
    (package / "runs" / "one").write_text("1")
    used = runtime.used()
    (package / "runs" / "one").write_text("2")
    assert is_current(used)
    (package / "runs" / "two").write_text("2")
    assert not is_current(used)


def test_a_file_that_was_edited_during_the_run_is_not_taken_for_what_ran(package, monkeypatch):
    used = runtime.used()
    monkeypatch.setattr(_stamp, "BEGUN", 0)
    assert not is_current(used)
    used = runtime.used()
    monkeypatch.undo()
    assert not is_current(used)


def test_libraries_and_profile_count(package, monkeypatch):
    used = runtime.used()
    assert used["settings"]["numpy"] not in ("", "absent")
    with monkeypatch.context() as patch:
        patch.setenv("BIASLIB_PROFILE", "paper")
        assert not is_current(used)
    with monkeypatch.context() as patch:
        patch.setattr(_stamp, "_settings", lambda: used["settings"] | {"numpy": "0"})
        assert not is_current(used)
    assert is_current(used)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a = 1", "a = 1  # one\n\n", True),
        ("def f():\n    return 1", 'def f():\n    r"""Say\n\n    more."""\n    return 1', True),
        ("a = '#1'", "a = '#2'", False),
        ("f(\n    'a')", "f(\n    'b')", False),
        ("if a:\n    b()\nc()", "if a:\n    b()\n    c()", False),
    ],
)
def test_comments_and_docstrings_change_nothing(package, one, other, same):
    (package / "module.py").write_text(one)
    used = runtime.used()
    (package / "module.py").write_text(other)
    assert is_current(used) is same


def test_a_file_that_is_dated_ahead_is_hashed(package):
    """As of a zip from another time zone: other bytes are another source."""
    ahead, path, found = time.time() + 7_200, package / "module.py", []
    for text in ("a = 1", "a = 2"):
        path.write_text(text)
        os.utime(path, (ahead, ahead))
        found.append(runtime.used())
    (name,) = [each for each in found[0]["files"] if each.endswith("module.py")]
    assert found[0]["files"][name] != found[1]["files"][name]
    assert runtime.EDITED not in (each["files"][name] for each in found)
    assert found[0]["source"] != found[1]["source"]


def test_the_profile_of_a_run_is_the_one_that_was_begun():
    code = "from biaslib import runtime; runtime.start('paper'); print(runtime.used()['settings'])"
    assert "'profile': 'paper'" in confined.run(code).stdout


def test_the_hash_of_a_folder_is_one_on_every_system(tmp_path):
    """By parts of its paths, upper case before lower, as they are written with slashes."""
    for name in ("a-c.csv", "B.csv", "a/b.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1\n")
    digest = hashlib.sha256(b"1\n").hexdigest()
    listed = "".join(f"{name}\0{digest}\n" for name in ("B.csv", "a/b.csv", "a-c.csv"))
    assert runtime.source_hash(tmp_path) == hashlib.sha256(listed.encode()).hexdigest()[:12]
    kept = subprocess.run(
        ["git", "check-attr", "eol", "biaslib/published/data/stated.csv"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert kept.stdout.strip().endswith("eol: lf")
