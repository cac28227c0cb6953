"""A page never shows numbers of a package that is not there any more: book/_ext/freshness.py."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXTENSION = ROOT / "book" / "_ext" / "freshness.py"

CONFIG = """\
title: Fresh
exclude_patterns: [biaslib]
execute:
  execute_notebooks: cache
  timeout: 60
parse:
  myst_enable_extensions: [dollarmath]
sphinx:
  local_extensions:
    freshness: book/_ext/
  config:
    nb_render_markdown_format: myst
"""
TOC = "format: jb-book\nroot: index\nchapters:\n  - file: notebook\n"
CELLS = (
    """\
import secrets
from biaslib import runtime
from biaslib.metrics.association import effect_size
run = runtime.start()
d = effect_size([[1, 0], [1, 0.2]], [[0, 1], [0.1, 1]], [[1, 0.1]], [[0.1, 1]])
print(f"effect size {d:.6f}; execution {secrets.token_hex(8)}")""",
    "run",
)


class Book:
    """A book of two pages in a folder of its own, with its own copy of the package."""

    def __init__(self, folder: Path):
        self.folder = folder
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "biaslib", folder / "biaslib", ignore=skip)
        (folder / "book" / "_ext").mkdir(parents=True)
        shutil.copy(EXTENSION, folder / "book" / "_ext")
        (folder / "_config.yml").write_text(CONFIG)
        (folder / "_toc.yml").write_text(TOC)
        (folder / "index.md").write_text("# Fresh\n")
        (folder / "notebook.ipynb").write_text(json.dumps(notebook()))

    @property
    def metric(self) -> Path:
        return self.folder / "biaslib" / "metrics" / "association.py"

    @property
    def caches(self) -> list[Path]:
        return list((self.folder / "_build" / ".jupyter_cache").iterdir())

    def build(self) -> dict[str, str]:
        """Build as a user would; return what the page says."""
        environment = {name: value for name, value in os.environ.items() if name != "BIASLIB_BOOK"}
        environment["PYTHONPATH"] = str(self.folder)
        program = "from jupyter_book.cli.main import main; main()"
        command = [sys.executable, "-c", program, "build", ".", "-W", "-n", "--keep-going"]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        page = (self.folder / "_build" / "html" / "notebook.html").read_text(encoding="utf-8")
        found = re.search(r"effect size (\S+); execution (\w+)", page)
        assert found, "the page does not show the cell's output"
        source = re.search(r'data-source="(\w+)"', page)
        assert source, "the page has no stamp"
        return {"d": found[1], "execution": found[2], "source": source[1]}


def notebook() -> dict:
    cells = [{"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# Notebook"}]
    for number, source in enumerate(CELLS):
        cells.append(
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
        )
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


@pytest.mark.slow
def test_a_change_of_the_package_runs_every_notebook_again_and_nothing_else_does(tmp_path):
    book = Book(tmp_path)

    first = book.build()
    assert len(book.caches) == 1

    second = book.build()
    assert second == first, "an unchanged package must not run a notebook again"

    text = book.metric.read_text(encoding="utf-8")
    book.metric.write_text(
        text + "\n\n_before = effect_size\n\n\n"
        "def effect_size(*arguments, **options):\n"
        "    return 2 * _before(*arguments, **options)\n",
        encoding="utf-8",
    )
    third = book.build()
    assert float(third["d"]) == pytest.approx(2 * float(first["d"]), rel=1e-5)
    assert third["execution"] != first["execution"]
    assert third["source"] != first["source"]
    assert len(book.caches) == 1, "the cache of the old package must be gone"


def test_a_new_file_of_any_kind_changes_the_hash(tmp_path):
    from biaslib.runtime import source_hash

    shutil.copytree(
        ROOT / "biaslib", tmp_path / "biaslib", ignore=shutil.ignore_patterns("__pycache__")
    )
    assert source_hash(tmp_path / "biaslib") == source_hash(ROOT / "biaslib")
    (tmp_path / "biaslib" / "word_list.txt").write_text("one more word\n")
    assert source_hash(tmp_path / "biaslib") != source_hash(ROOT / "biaslib")


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(str(EXTENSION.parent))
    import freshness

    return freshness


def test_the_key_depends_on_source_profile_and_libraries(extension, monkeypatch):
    before = extension.key()
    assert re.fullmatch(r"[0-9a-f]{16}", before)
    assert extension.key() == before
    with monkeypatch.context() as patch:
        patch.setenv("BIASLIB_PROFILE", "paper")
        assert extension.key() != before
    with monkeypatch.context() as patch:
        patch.setattr(extension, "version", lambda library: "0")
        assert extension.key() != before
    with monkeypatch.context() as patch:
        patch.setattr("biaslib.runtime.source_hash", lambda: "0" * 12)
        assert extension.key() != before


def test_a_library_that_is_not_installed_has_a_version_of_its_own(extension):
    assert extension.version("a-package-that-does-not-exist") == "absent"
    assert extension.version("numpy") != "absent"
