"""Materials made from the pages say what these say, and give no solution away."""

import io
import json
import math
import re
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import needs
import numpy as np
import policy
import pytest
import yaml
from bs4 import BeautifulSoup
from classroom import classroom
from nbclient import NotebookClient
from support.browser import require
from teaching import (
    FOLDER,
    article_of,
    handout,
    inline,
    overview,
    quiz,
    quiz_page,
)

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
assert FOLDER == "teach"
QTI = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"

PAGE = """<html><body><article><section id="a"><h1>Title<a class="headerlink">#</a></h1>
<div class="chapter-card admonition"><p class="admonition-title">This chapter</p>
<p><strong>Question.</strong> What is it?</p><p>Minutes.</p></div>
<section id="b"><h2>One<a class="headerlink">#</a></h2>
<p>First <em>point</em> that is made at some length. More of it, e.g. this.</p>
<p>Second point! And more.</p>
<div class="cell_input"><p>code</p></div>
<figure><img src="../_images/x.svg" alt="A line."><figcaption><p>C.</p></figcaption></figure>
<div class="exercise admonition" id="ex"><p class="admonition-title">Exercise (Count)</p>
<section id="exercise-content"><p>Count to two.</p></section></div>
<div class="solution admonition"><section id="solution-content"><p>The secret.</p>
<div class="table-scroll"><table><tr><td>A secret table.</td></tr></table></div>
<figure><img src="../_images/y.svg" alt="A secret figure."></figure></section></div>
<section id="c"><h3>Part</h3><p>A part. It ends.</p></section></section>
<section id="summary"><h2>Summary</h2><ul><li>It is so.</li></ul><p>Next.</p></section>
</section></article></body></html>"""

EXERCISES = """<section id="exercises"><h2>Exercises</h2>
<div class="solution admonition"><ol><li>The secret.</li></ol></div>
<div class="cell_output"><ol><li>Why?</li></ol></div></section>"""


def sheet(page, stem):
    return handout({stem: article_of(page, stem, numbers=True)}, stem)


def test_a_handout_has_the_summary_and_what_to_discuss_and_no_solution():
    page = PAGE.replace("<p>Next.</p></section>", "</section>" + EXERCISES)
    found = BeautifulSoup(sheet(page, "study1"), "html.parser")
    assert [each.get_text() for each in found.find_all("h2")] == [
        "Exercises", "What to remember", "To discuss",
    ]  # fmt: skip
    assert [each.get_text() for each in found.find_all("li")] == ["It is so.", "Why?"]
    assert found.find("img")["alt"] == "A line."


def test_a_script_that_a_figure_brought_along_is_not_run_from_a_handout(tmp_path):
    page = PAGE.replace("<p>C.</p>", "<p><script>window.hit = 1</script>C.</p>")
    shown = policy.kept(sheet(page, "x"), tmp_path)
    assert "<script>window.hit = 1</script>" in shown
    assert not [each for each in tmp_path.glob("*.js") if "window.hit" in each.read_text()]


def test_a_handout_has_what_a_chapter_asks_in_one_paragraph():
    asked = "<p><strong>For discussion.</strong> Is it <em>fair</em>? Who asks?</p>"
    exercises = f'<section id="exercises"><p>Before.</p>{asked}<p>After.</p></section>'
    page = PAGE.replace("<p>Next.</p></section>", "</section>" + exercises)
    found = BeautifulSoup(sheet(page, "study3"), "html.parser")
    assert found.find_all("h2")[-1].get_text() == "To discuss"
    assert found.find_all("p")[-2].decode_contents() == "Is it <em>fair</em>? Who asks?"


def test_formulas_and_tables_scroll_on_a_phone_and_the_page_does_not(tmp_path, browser):
    wide = '<span style="display: inline-block; width: 700px; height: 1em">x</span>'
    parts = f'<div class="math">{wide}</div>'
    table = (
        f'<div class="pst-scrollable-table-container"><table><tr><td>{wide}</td></tr></table></div>'
    )
    exercise = PAGE.replace("<p>Count to two.</p>", f"<p>Count.</p>{table}")
    page = exercise.replace("<p>Second point", f"{parts}<p>Second point")
    (tmp_path / FOLDER).mkdir()
    shown = {"handout": sheet(page, "x")}
    shown["index"] = overview(tmp_path / FOLDER, {"x": "T" * 60})
    style = (ROOT / "book" / "static" / "teaching.css").read_text(encoding="utf-8")
    scrolls = "e => e.scrollWidth > e.clientWidth && e.tabIndex === 0"
    phone = browser.new_page(viewport={"width": 390, "height": 844})
    try:
        for name, text in shown.items():
            bare = re.sub(r"<(script|link)\b.*?>(</script>)?", "", text)
            phone.set_content(bare.replace("</head>", f"<style>{style}</style></head>"))
            assert phone.evaluate("document.documentElement.scrollWidth") <= 390, name
            held = phone.locator("[tabindex]")
            assert [held.nth(n).evaluate(scrolls) for n in range(held.count())] == {
                "handout": [True, True], "index": [True],
            }[name]  # fmt: skip
    finally:
        phone.close()


@pytest.fixture
def teach(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import teach

    return teach


def test_a_printed_handout_can_be_read_aloud(teach, tmp_path):
    (tmp_path / FOLDER).mkdir()
    (tmp_path / "_images").mkdir()
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">'
    drawing = f'{svg}<rect width="9" height="9"/></svg>'
    (tmp_path / "_images" / "x.svg").write_text(drawing, encoding="utf-8")
    page = tmp_path / FOLDER / "handout_x.html"
    page.write_text(sheet(PAGE, "x"), encoding="utf-8")
    assert teach.pdfs(page.parent, require()) == 1
    printed = page.with_suffix(".pdf").read_bytes()
    catalog = re.search(rb"/Type /Catalog\b.*?endobj", printed, re.S)[0]
    assert b"/Marked true" in catalog
    assert b"/StructTreeRoot" in catalog
    assert b"/Outlines" in catalog
    assert b"/Lang (en)" in catalog
    assert b"/Title (Handout: Title)" in printed
    assert b"/DisplayDocTitle true" in catalog
    assert b"/Alt (A line.)" in printed
    kinds = set(re.findall(rb"/S /(\w+)", printed))
    assert {b"H1", b"H2", b"L", b"LI", b"Figure"} <= kinds


def test_text_of_a_quiz_is_escaped():
    assert inline("<b>x</b> & `a<b`") == "&lt;b&gt;x&lt;/b&gt; &amp; <code>a&lt;b</code>"


def test_every_chapter_has_a_quiz():
    assert {path.stem for path in QUIZZES} == {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lecturer_is_told_about_every_chapter_and_about_exercises_that_it_has(path, teach):
    known = needs.notes(path.stem)
    assert {"time", "asked", "hard"} <= set(known)
    labels = re.findall(r":label: (ex-[\w-]+)", path.read_text(encoding="utf-8"))
    assert set(known.get("wrong", {})) <= set(labels)
    page = "".join(str(teach.answers(each)) for each in known.get("wrong", {}).values())
    assert page.count("Say:") == sum(map(len, known.get("wrong", {}).values()))
    assert "".join(teach.asked(known["asked"])).count("<li>") == len(known["asked"])


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
def packages(teach):
    return teach.quiz_packages


@pytest.mark.parametrize("path", QUIZZES, ids=lambda path: path.stem)
def test_a_package_scores_and_explains_every_option_as_the_quiz_does(path, packages):
    pytest.importorskip("text2qti", reason="text2qti, of the extra 'teach', is not installed")
    found = quiz(path.stem)
    given = packages.package(found)
    assert packages.package(found) == given
    files = zipfile.ZipFile(io.BytesIO(given))
    assert {each.date_time for each in files.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    manifest = files.read("imsmanifest.xml").decode()
    assert all(name in manifest for name in files.namelist() if name.count("/") and name[-1] != "/")
    name = next(each for each in files.namelist() if re.fullmatch(r"(\w+)/\1\.xml", each))
    text = files.read(name).decode()
    assert "equation_image" not in text
    items = list(ElementTree.fromstring(text).iter(f"{QTI}item"))
    assert len(items) == len(found["questions"]) == 10
    for item, question in zip(items, found["questions"], strict=True):
        asked = next(item.iter(f"{QTI}mattext")).text
        assert asked == f"<p>{inline(' '.join(question['ask'].split()))}</p>"
        labels = list(item.iter(f"{QTI}response_label"))
        for label, option in zip(labels, question["options"], strict=True):
            text, why = (f"<p>{inline(' '.join(option[k].split()))}</p>" for k in ("text", "why"))
            assert next(label.iter(f"{QTI}mattext")).text == text
            right = 100.0 if option.get("right") else 0.0
            assert answered(item, label.get("ident")) == (right, [why])


def test_without_text2qti_no_package_is_written_and_a_line_says_so(
    packages, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "text2qti", None)
    assert packages.write_packages(tmp_path, ["foundations"]) == 0
    assert "pip install text2qti==0.8.0" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'teach = ["text2qti=={packages.VERSION}"]' in declared


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([{"text": "a", "why": "b"}, {"text": "c", "why": "d"}], "question 1: one right option"),
        ([{"text": "a", "why": "b", "right": True}] * 2, "question 1: one right option"),
        ([{"text": "a", "right": True}, {"text": "c", "why": "d"}], "a why for each"),
    ],
)
def test_a_quiz_that_cannot_be_answered_is_refused(tmp_path, options, message):
    questions = {"title": "x", "questions": [{"ask": "?", "options": options}]}
    (tmp_path / "x.yml").write_text(yaml.safe_dump(questions), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        quiz("x", tmp_path)


def test_a_quiz_page_names_reasons_and_is_a_form_that_can_be_used_by_keyboard():
    page = BeautifulSoup(quiz_page(quiz("foundations")), "html.parser")
    assert len(page.find_all("fieldset")) == len(page.find_all("legend")) == 10
    for each in page.find_all("input"):
        assert each.find_parent("label")
    assert page.find(role="status").get_text() == "0 of 10 answered right."


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


@pytest.fixture
def notebook(tmp_path):
    """A chapter whose one exercise needs a table, a formula of its own and one of another."""
    other = ["# The other", "```{math}\n:label: eq-two\n2\n```"]
    chapter = [
        "# One\n\n:::{admonition} Content note\n:class: content-note\nHarsh words.\n:::",
        "#from biaslib import display",
        "#x, unused = 3, 4\nrows = []",
        "Prose.\n\n```{math}\n:label: eq-one\n1\n```",
        "#rng = default_rng(1)\ny = rng.normal()",
        "#z = rng.normal()",
        "#w = rng.normal()",
        "#rows.append(x)",
        "#x = 5",
        "#for x in range(3):\n    print(x, y)",
        '#display.table(rows, "Rows, "\n    "counted")',
        "## Exercises\n\n```{exercise} Count\n:label: ex-one\nBy {eq}`eq-one`, see `w`.\n```",
        "#def count(x):\n    return unused_too",
        "```{solution} ex-one\n:class: dropdown\nThe `z` is needed.\n```",
        "#after = 1",
        "#run",
    ]
    for name, texts in (("other", other), ("one", chapter)):
        cells = [
            {"cell_type": "code", "source": [text[1:]], "outputs": [], "execution_count": None}
            if text[0] == "#" and text[1] not in " #"
            else {"cell_type": "markdown", "source": [text]}
            for text in texts
        ]
        cells = [cell | {"metadata": {}, "id": f"c{n}"} for n, cell in enumerate(cells)]
        (tmp_path / f"{name}.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return tmp_path


def test_a_classroom_notebook_keeps_the_cells_on_which_exercises_depend(notebook):
    needed = {"needs": {"ex-one": ["Rows, counted", "other#equation-eq-two"]}}
    (notebook / "one.yml").write_text(yaml.safe_dump(needed), encoding="utf-8")
    cells = json.loads(classroom(notebook, "one", "Terms.", notebook))["cells"]
    texts = ["".join(each["source"]) for each in cells]
    assert texts[0].startswith("# Classroom notebook: One\n")
    assert texts[0].endswith("**Content note.** Harsh words.\n\nTerms.")
    assert texts[1:] == [
        "## What the exercises need",
        "from biaslib import display",
        "x, unused = 3, 4\nrows = []",
        "rng = default_rng(1)\ny = rng.normal()",
        "z = rng.normal()",  # both, since what is drawn depends on what was drawn before
        "w = rng.normal()",
        "rows.append(x)",  # and not the x of later cells
        "## Exercises",
        "$$\n1\n\\tag{one}\n$$",
        'display.table(rows, "Rows, "\n    "counted")',
        "$$\n2\n\\tag{two}\n$$",
        "**Exercise: Count**\n\nBy (one), see `w`.",
        "def count(x):\n    return unused_too",
        "run",
    ]
    assert len({each["id"] for each in cells}) == len(cells)


def test_a_classroom_notebook_is_refused_what_no_notebook_has(notebook):
    (notebook / "one.yml").write_text("needs: {ex-one: [fig-none]}", encoding="utf-8")
    message = "one, ex-one: notebooks/one.ipynb has no 'fig-none'"
    with pytest.raises(ValueError, match=message):
        classroom(notebook, "one", "Terms.", notebook)


@pytest.mark.parametrize("stem", ["what_is_measured", "study2_masked"])
def test_a_classroom_notebook_runs_with_its_exercises_unanswered(stem):
    given = nbformat.reads(classroom(ROOT / "notebooks", stem, "Terms."), 4)
    done = NotebookClient(given, resources={"metadata": {"path": ROOT / "notebooks"}}).execute()
    checks = [each for each in done.cells if "exercise-check" in each.metadata.get("tags", [])]
    assert len(checks) == 3
    for each in checks:
        assert json.dumps(each.outputs).count("Not yet") >= 1


@pytest.fixture
def chapters(tmp_path):
    """Two chapters of a site, as built: the second links to the first, and needs more in words."""
    folder = tmp_path / "html" / "notebooks"
    folder.mkdir(parents=True)
    figure = '<figure id="fig-one"><img src="../_images/x.svg" alt="A line."></figure>'
    formula = '<div class="math" id="equation-eq-one">1 + 1</div>'
    other = PAGE.replace("<figure>", f"{formula}{figure}<figure>")
    (folder / "other.html").write_text(other, encoding="utf-8")
    table = (
        '<div class="table-scroll" id="table-{0}"><table class="bias-table"><caption>'
        '<span class="caption-number">Table 2.{0} </span>{1}</caption><tr><td>{2}</td></tr>'
        "</table></div>"
    )
    cell = (
        '<div class="cell"><div class="cell_input"><pre><span>x</span> <span>= 4</span></pre></div>'
        '<div class="cell_output">four</div></div>'
    )
    own = [table.format(1, "Six words, counted", "seven"), cell, '<figure id="fig-two">2</figure>']
    shown = f'<div class="cell">{table.format(2, "To judge", "eight")}</div>'
    link = '<a href="other.html#equation-eq-one">(1)</a> and <a href="#table-2">Table 2.2</a>'
    answer = '<div class="solution admonition"><a href="#fig-two">Fig. 2</a></div>'
    page = PAGE.replace('<div class="cell_input">', "".join(own) + '<div class="cell_input">')
    page = page.replace("<p>Count to two.</p>", f"<p>Count {link}.</p>")
    exercise, solution = page.split('<div class="solution')
    page = f'{exercise}{shown}{answer}<div class="solution{solution}'
    (folder / "x.html").write_text(page, encoding="utf-8")
    return folder.parent


def test_the_edition_shows_all_that_an_exercise_refers_to(teach, chapters, tmp_path):
    needs = ["Six words", "code: x = 4", "other#fig-one", "c"]
    written = {"needs": {"ex": needs}, "wrong": {"ex": [{"answer": "3", "say": "count"}]}}
    (tmp_path / "x.yml").write_text(yaml.safe_dump(written), encoding="utf-8")
    page = teach.edition(chapters, ["other", "x"], tmp_path)
    found = BeautifulSoup(page, "html.parser")
    needed = found.select_one(".needs")
    assert [each.name for each in needed.find_all(True, recursive=False)] == [
        "p", "div", "figure", "div", "div", "figure", "section",
    ]  # fmt: skip
    texts = [each.get_text() for each in needed.find_all(True, recursive=False)]
    assert texts[1:4] == ["1 + 1", "2", "Table 2.1 Six words, countedseven"]
    assert texts[4] == "x = 4four"
    assert needed.find("img")["src"] == "../html/_images/x.svg"
    assert not needed.select("[id]")
    assert "eight" not in needed.get_text()  # it stands beside the exercise
    below = [each.get_text() for each in needed.find_next_siblings()]
    assert below[:4] == ["Expect", "3. Say: count", "Table 2.2 To judgeeight", "Fig. 2"]
    assert found.select_one("nav a[href='#x']").get_text() == "Title"
    assert "CC BY 4.0" in found.select_one(".licence").get_text()


def test_a_handout_has_what_is_done_by_hand_and_exercises_without_programming(chapters):
    texts = {stem: (chapters / "notebooks" / f"{stem}.html").read_text() for stem in ("x", "other")}
    check = '<div class="cell tag_exercise-check"><div class="cell_input"><pre>{}</pre></div></div>'
    coded = texts["x"].replace('id="ex"', 'id="ex-two"').partition('<div class="exercise')
    coded = coded[1] + coded[2].partition('<div class="solution')[0].replace("Count", "Program")
    judged = f"{check.format('x = ...')}{coded}{check.format('def f(): ...')}"
    texts["x"] = texts["x"].replace('<div class="solution', judged + '<div class="solution', 1)
    folded = '<details><figure id="fig-folded">words</figure></details>'
    texts["other"] = texts["other"].replace("<figure>", folded + "<figure>", 1)
    articles = {stem: article_of(text, stem, numbers=True) for stem, text in texts.items()}
    hand = {"task": "Add $1$.", "needs": ["output: x = 4", "other#fig-one", "other#fig-folded"]}
    found = BeautifulSoup(handout(articles, "x", hand), "html.parser")
    assert [each.get_text() for each in found.find_all("h2")] == [
        "By hand", "Exercises", "What to remember",
    ]  # fmt: skip
    body = " ".join(found.get_text(" ").split())
    assert "Add \\(1\\). four Exercises Exercise (Count) Count (1)" in body
    assert "1 + 1" in body  # the formula of the other chapter
    assert body.count("eight") == 1
    for unwanted in ("x = 4", "Program", "secret", "words", "def f"):
        assert unwanted not in body, unwanted
    assert [each["src"] for each in found.select("img")] == ["../_images/x.svg"]
    hand["needs"].append("fig-none")
    with pytest.raises(ValueError, match="x, hand: the built page has no 'fig-none'"):
        handout(articles, "x", hand)


def test_what_is_done_by_hand_has_the_values_that_the_chapters_give():
    seen = {"woman": 0.60, "man": 0.15, "person": 0.30}
    scores = [math.log(seen[who] / seen["person"]) for who in ("woman", "man")]
    assert np.allclose([*scores, scores[0] - scores[1]], [0.693147, -0.693147, 1.386294])
    vlrs, vlbs = 100 * 5 / 6, 100 * 2 / 4  # picks 0, 1, 1, 0 of the four, then 0 and 2
    assert math.isclose(caption_selection.ivlas(vlrs, vlbs), 62.5)


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"ex": ["fig-none"]}, "x, ex: the built page has no 'fig-none'"),
        ({"ex": ["other#Six words"]}, "x, ex: the built page has no 'Six words'"),
        ({"ex": ["code: x = 5"]}, "x, ex: the built page has no 'code: x = 5'"),
        ({"ex": ["nowhere#fig-one"]}, "x, ex: there is no chapter 'nowhere'"),
        ({"ex-none": ["fig-two"]}, "x.yml: the chapter has no exercise ex-none; it has ex"),
    ],
)
def test_what_no_page_has_stops_the_edition(teach, chapters, tmp_path, needs, message):
    (tmp_path / "x.yml").write_text(yaml.safe_dump({"needs": needs}), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        teach.edition(chapters, ["other", "x"], tmp_path)
