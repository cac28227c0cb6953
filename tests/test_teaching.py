"""Materials made from the pages say what these say, and give no solution away."""

import io
import json
import math
import os
import re
import zipfile
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import needs
import numpy as np
import pytest
import yaml
from classroom import classroom
from teaching import inline, is_newest, quiz

from biaslib import inference, published, reproduction
from biaslib.metrics import association, caption_selection, masked_lm
from biaslib.metrics.caption_association import c_asc, entropy
from biaslib.metrics.caption_selection import ivlas
from biaslib.metrics.grounded import grounded
from companion import published_numbers
from companion import what_is_measured as chapter

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUIZZES = sorted((ROOT / "book" / "quizzes").glob("*.yml"))
QTI = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"


def test_every_chapter_has_a_quiz():
    assert {path.stem for path in QUIZZES} == {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", QUIZZES, ids=lambda path: path.stem)
def test_every_quiz_has_ten_questions_each_with_one_right_option_and_reasons(path):
    found = quiz(path.stem)
    assert len(found["questions"]) == 10
    assert (ROOT / "notebooks" / f"{path.stem}.ipynb").is_file()
    for each in found["questions"]:
        assert len(each["options"]) >= 3
        assert len({option["text"] for option in each["options"]}) == len(each["options"])


def test_the_right_option_is_not_always_in_the_same_place():
    for path in QUIZZES:
        places = [
            [bool(option.get("right")) for option in each["options"]].index(True)
            for each in quiz(path.stem)["questions"]
        ]
        assert all(places.count(place) <= 5 for place in places), path.stem


PROOFS = [
    (path.stem, number, each["proof"])
    for path in QUIZZES
    for number, each in enumerate(yaml.safe_load(path.read_text())["questions"], start=1)
    if "proof" in each
]


@pytest.mark.parametrize(("stem", "number", "proof"), PROOFS)
def test_answers_that_can_be_computed_are_computed(stem, number, proof):
    rng = np.random.default_rng(5)
    X, Y, A, B = (rng.normal(size=(n, 6)) for n in (4, 4, 5, 3))
    names = {"X": X, "Y": Y, "A": A, "B": B, "np": np, "math": math, "chapter": chapter}
    names |= {"association": association, "inference": inference, "masked_lm": masked_lm}
    names |= {
        "reproduction": reproduction,
        "grounded": grounded,
        "c_asc": c_asc,
        "entropy": entropy,
        "ivlas": ivlas,
        "caption_selection": caption_selection,
        "computed": published.errata().set_index("id")["computed"],
        "numbers": published_numbers,
    }
    names |= {"S": rng.normal(size=(3, 8)), "G": np.arange(8)[:, None] % 2 == [0, 1]}
    printed = published.table("zhou2022", 3).query("category == 'overall'")
    printed = printed.pivot(index="metric", columns="model", values="value")
    names |= {f"{metric}_printed": printed.loc[metric] for metric in ("vlrs", "vlbs")}
    assert eval(proof, names) == True  # noqa: E712 - a NumPy bool, and no other truth


def answered(item, choice):
    """Score and feedback of an item of QTI 1.2 for a choice, by its conditions in their order."""
    score, feedback = 0.0, []
    for condition in item.iter(f"{QTI}respcondition"):
        if condition.find(f"{QTI}conditionvar/{QTI}varequal").text != choice:
            continue
        for each in condition.iter(f"{QTI}setvar"):
            score = float(each.text)
        feedback += [each.get("linkrefid") for each in condition.iter(f"{QTI}displayfeedback")]
        if condition.get("continue") == "No":
            break
    said = {each.get("ident"): each for each in item.iter(f"{QTI}itemfeedback")}
    return score, [next(said[each].iter(f"{QTI}mattext")).text for each in feedback]


@pytest.fixture
def packages(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import quiz_packages

    return quiz_packages


@pytest.mark.weekly
@pytest.mark.parametrize("path", QUIZZES, ids=lambda path: path.stem)
def test_a_package_scores_and_explains_every_option_as_the_quiz_does(path, packages):
    found = quiz(path.stem)
    given = packages.package(found)
    assert packages.package(found) == given
    files = zipfile.ZipFile(io.BytesIO(given))
    assert {each.date_time for each in files.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    manifest = files.read("imsmanifest.xml").decode()
    assert all(name in manifest for name in files.namelist() if name.count("/") and name[-1] != "/")
    assert f"Quiz: {escape(found['title'])}<" in manifest
    assert "CC BY 4.0: https://creativecommons.org/licenses/by/4.0/" in manifest
    assert not re.search("Copyrighted|[dD]ate", manifest)
    name = next(each for each in files.namelist() if re.fullmatch(r"(\w+)/\1\.xml", each))
    text = files.read(name).decode()
    assert "equation_image" not in text
    items = list(ElementTree.fromstring(text).iter(f"{QTI}item"))
    assert len(items) == len(found["questions"]) == 10
    titles = {item.get("title") for item in items}
    assert len(titles) == 10
    assert max(map(len, titles)) <= 60
    for item, question in zip(items, found["questions"], strict=True):
        asked = next(item.iter(f"{QTI}mattext")).text
        assert asked == f"<p>{inline(' '.join(question['ask'].split()))}</p>"
        labels = list(item.iter(f"{QTI}response_label"))
        for label, option in zip(labels, question["options"], strict=True):
            text, why = (f"<p>{inline(' '.join(option[k].split()))}</p>" for k in ("text", "why"))
            assert next(label.iter(f"{QTI}mattext")).text == text
            right = 100.0 if option.get("right") else 0.0
            assert answered(item, label.get("ident")) == (right, [why])


def everything(notebook):
    return "\n".join("".join(each["source"]) for each in json.loads(notebook)["cells"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_classroom_notebook_has_exercises_and_what_they_need_and_no_solution(path):
    text = path.read_text(encoding="utf-8")
    bare = json.loads(classroom(path.parent, path.stem, "Terms."))
    nbformat.validate(nbformat.from_dict(bare))
    prose = "\n".join("".join(c["source"]) for c in bare["cells"] if c["cell_type"] == "markdown")
    whole = "\n".join(
        "".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"
    )
    assert "{solution}" not in prose
    assert "```{" not in prose
    assert not re.search(r"\{\w+\}`", prose)
    assert not re.search(r"\b[a-z]+(?:19|20)\d\d[a-z]*\b", prose), "a key of the bibliography"
    assert len(re.findall(r"^\*\*Exercise", prose, re.M)) == len(
        re.findall(r"^[`:]{3,}\{exercise\}", whole, re.M)
    )
    assert ("**Content note.**" in prose) == ("class: content-note" in whole)
    assert prose.split("\n## ")[0].strip().endswith("Terms.")
    for block in re.findall(r"^(`{3,})\{solution\}[^\n]*\n(.*?)^\1", whole, re.M | re.S):
        for line in block[1].splitlines():
            assert len(line) < 40 or line not in prose
    code = "\n".join("".join(c["source"]) for c in bare["cells"] if c["cell_type"] == "code")
    for solved in re.findall(r"(?s)\{solution-start\}.*?\{solution-end\}", everything(text)):
        for line in solved.splitlines():
            assert len(line) < 40 or line not in code
    checks = [c for c in bare["cells"] if "exercise-check" in c["metadata"].get("tags", [])]
    given = json.loads(text)["cells"]
    assert len(checks) == sum("exercise-check" in c["metadata"].get("tags", []) for c in given)
    assert not any(cell.get("outputs") for cell in bare["cells"])
    assert "".join(bare["cells"][-1]["source"]).splitlines()[-1] == "run"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_classroom_notebook_begins_as_the_chapters_copy(path):
    """It installs from the zip, and offers profile and taste, which no later cell takes back."""
    bare = json.loads(classroom(path.parent, path.stem, "Terms."))
    copy = json.loads((ROOT / "colab" / path.name).read_text(encoding="utf-8"))
    code, theirs = (
        ["".join(c["source"]) for c in each["cells"] if c["cell_type"] == "code"]
        for each in (bare, copy)
    )
    assert code[0] == theirs[0]
    assert not re.search(r"^(PROFILE|SIZE) = ", "\n".join(code[1:]), re.M)
    study = path.stem.startswith("study")
    assert ('SIZE = "full"  # @param ["full", "taste"]' in code[0]) == study


def notebook_of(*cells):
    """A chapter of code cells and, as text, Markdown: imports, then an exercise."""
    made = [
        {"cell_type": "markdown" if text[0] in "#`" else "code", "id": f"c{n}", "metadata": {}}
        | {"source": text.splitlines(keepends=True), "outputs": [], "execution_count": None}
        for n, text in enumerate(cells)
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


ASKED = "```{exercise} Twice\n:label: ex-twice\nUse `sqrt` and `pi`.\n```"


def test_what_an_exercise_names_is_imported_also_where_only_its_solution_does(tmp_path):
    solved = "````{solution} ex-twice\n```python\nfrom math import pi, sqrt, tau\n```\n````"
    (tmp_path / "a.ipynb").write_text(notebook_of("# A", "x = 1", ASKED + "\n" + solved, "run = 2"))
    code = everything(classroom(tmp_path, "a", "Terms.", tmp_path))
    assert "from math import pi\nfrom math import sqrt" in code
    assert "tau" not in code


def test_a_name_that_no_cell_binds_stops_the_build_with_chapter_exercise_and_name(tmp_path):
    cells = ("# A", "x = 1", ASKED, "for y in range(x):\n    total = y\nprint(total, missing)")
    (tmp_path / "a.ipynb").write_text(notebook_of(*cells, "# B", "run = 2\nrun"))
    with pytest.raises(ValueError, match=r"a, Exercise: Twice: .* reads missing, which no cell"):
        classroom(tmp_path, "a", "Terms.", tmp_path)


def test_a_task_by_hand_needs_its_answer(tmp_path):
    path = tmp_path / "study2_masked.yml"
    path.write_text("hand:\n  task: What is B?\n  needs: []\n")
    with pytest.raises(ValueError, match=r"study2_masked.yml: hand has a task, .* and an answer"):
        needs.notes("study2_masked", tmp_path)


def test_materials_are_made_again_when_a_page_or_a_source_is_newer_or_they_are_gone(tmp_path):
    page, index = tmp_path / "page.html", tmp_path / "index.html"
    page.touch()
    assert not is_newest(index, [page])
    index.touch()
    for changed, kept in ((-1, True), (0, False), (1, False)):
        written = index.stat().st_mtime_ns + changed
        os.utime(page, ns=(written, written))
        assert is_newest(index, [page]) == kept
