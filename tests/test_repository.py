"""The repository keeps its promises: one address, clean notebooks, fast import, a working set."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import repository  # noqa: E402

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(path, kind):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


# One setting for the web address


def test_every_github_address_is_the_one_setting():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert config["repository"]["url"] == repository.address()
    pair = repository.owner_and_name(repository.address())
    own = re.compile(
        r"(?:github\.com|colab\.research\.google\.com/github|mybinder\.org/v2/gh)/"
        r"([\w.-]+/vision-language-bias)"
    )
    found = {
        (path.name, match)
        for path in repository.followers()
        for match in own.findall(path.read_text(encoding="utf-8"))
    }
    assert {match for _, match in found} == {pair}
    assert {"README.md", "CITATION.cff", "_config.yml"} <= {name for name, _ in found}


# Notebooks


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks_are_committed_without_outputs(path):
    for cell in cells(path, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


def test_the_table_of_pages_with_difficult_material_is_of_those_with_a_content_note():
    page = (ROOT / "book" / "content_note.md").read_text(encoding="utf-8")
    rows = page.split(":name: difficult-pages")[1].split("```")[0]
    warned = [each for each in NOTEBOOKS if "} Content note" in each.read_text(encoding="utf-8")]
    assert len(warned) >= 10
    assert sorted(set(re.findall(r"notebooks/(\w+\.ipynb)\)", rows))) == [e.name for e in warned]


# The package


def test_import_is_instant_since_it_imports_the_standard_library_alone():
    code = (
        "import sys; before = set(sys.modules); import biaslib; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    outside = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    assert outside == {"biaslib"}
    assert len(modules) < 100, modules


def test_only_loading_a_model_imports_torch():
    code = (
        "import biaslib.models, biaslib.stimuli, biaslib.published, biaslib.studies.text_encoders, "
        "biaslib.display, sys; assert 'torch' not in sys.modules; biaslib.models.available()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# What reaches those who build, publish or install it


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda p: p.stem
)
def test_a_workflow_has_least_rights_and_names_actions_by_commit(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        extra = set(job.get("permissions", {})) - {"contents"}
        steps = job["steps"]
        used = [each["uses"] for each in steps if "uses" in each]
        assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []
        for each in steps:
            if each.get("uses", "").startswith("actions/checkout"):
                assert each["with"]["persist-credentials"] is False
        # The shell that GitHub takes where none is named does not see the first command fail.
        assert [s for s in steps if " | " in s.get("run", "") and s.get("shell") != "bash"] == []
        # A job with a right of its own runs nothing of ours, and so none of our requirements.
        assert not extra or not any("run" in each for each in steps), name


@pytest.mark.slow
def test_the_source_archive_holds_the_repository(tmp_path):
    """Tests, notebooks and the book run from it; the wheel does without the training."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is no clone: it was unpacked from such an archive")
    copy = tmp_path / "copy"
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, "--sdist"]
    subprocess.run([*build, "--wheel"], cwd=copy, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("biaslib-*.tar.gz"))) as archive:
        held = {each.name.partition("/")[2] for each in archive if each.isfile()}
    assert set(listed.stdout.splitlines()) - held == set()
    added = {each for each in held - set(listed.stdout.splitlines()) if "egg-info" not in each}
    assert added <= {"PKG-INFO", "setup.cfg"}
    with zipfile.ZipFile(next(tmp_path.glob("biaslib-*.whl"))) as wheel:
        packages = {name.rpartition("/")[0] for name in wheel.namelist()}
    assert "plantedworld/models" in packages
    assert "plantedworld/training" not in packages
