"""Materials made from the pages say what these say, and give no solution away."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from bs4 import BeautifulSoup
from support.browser import require
from teaching import (
    FOLDER,
    classroom,
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
from biaslib.published import counts
from companion import published_numbers
from companion import what_is_measured as chapter

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUIZZES = sorted((ROOT / "book" / "quizzes").glob("*.yml"))
assert FOLDER == "teach"

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


def test_a_handout_has_the_summary_and_what_to_discuss_and_no_solution():
    page = PAGE.replace("<p>Next.</p></section>", "</section>" + EXERCISES)
    found = BeautifulSoup(handout(page, "study1"), "html.parser")
    assert [each.get_text() for each in found.find_all("h2")] == ["What to remember", "To discuss"]
    assert [each.get_text() for each in found.find_all("li")] == ["It is so.", "Why?"]
    assert found.find("img")["alt"] == "A line."


def test_a_handout_has_what_a_chapter_asks_in_one_paragraph():
    asked = "<p><strong>For discussion.</strong> Is it <em>fair</em>? Who asks?</p>"
    exercises = f'<section id="exercises"><p>Before.</p>{asked}<p>After.</p></section>'
    page = PAGE.replace("<p>Next.</p></section>", "</section>" + exercises)
    found = BeautifulSoup(handout(page, "study3"), "html.parser")
    assert found.find_all("h2")[-1].get_text() == "To discuss"
    assert found.find_all("p")[-1].decode_contents() == "Is it <em>fair</em>? Who asks?"


def test_formulas_and_tables_scroll_on_a_phone_and_the_page_does_not(tmp_path, browser):
    wide = '<span style="display: inline-block; width: 700px; height: 1em">x</span>'
    parts = f'<div class="math">{wide}</div>'
    table = (
        f'<div class="pst-scrollable-table-container"><table><tr><td>{wide}</td></tr></table></div>'
    )
    exercise = PAGE.replace("<p>Count to two.</p>", f"<p>Count.</p>{table}")
    page = exercise.replace("<p>Second point", f"{parts}<p>Second point")
    (tmp_path / FOLDER).mkdir()
    shown = {"handout": handout(page, "x")}
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
            assert [held.nth(n).evaluate(scrolls) for n in range(held.count())] == [True], name
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
    page.write_text(handout(PAGE, "x"), encoding="utf-8")
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
    known = teach.notes(path.stem)
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
        "counts": counts,
        "computed": published.errata().set_index("id")["computed"],
        "numbers": published_numbers,
    }
    names |= {"S": rng.normal(size=(3, 8)), "G": np.arange(8)[:, None] % 2 == [0, 1]}
    printed = published.table("zhou2022", 3).query("metric == 'vlbs' and category == 'overall'")
    models = ["VisualBERT", "LXMERT", "ViLT", "CLIP", "ALBEF", "FLAVA"]
    names["vlbs_printed"] = printed.set_index("model")["value"][models]
    assert eval(proof, names) == True  # noqa: E712 - a NumPy bool, and no other truth


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
def test_a_classroom_notebook_has_exercises_and_code_and_no_solution(path):
    text = path.read_text(encoding="utf-8")
    bare = json.loads(classroom(text))
    prose = "\n".join("".join(c["source"]) for c in bare["cells"] if c["cell_type"] == "markdown")
    whole = "\n".join(
        "".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"
    )
    assert "{solution}" not in prose
    assert "```{" not in prose
    assert prose.count("**Exercise: ") == len(re.findall(r"^[`:]{3,}\{exercise\}", whole, re.M))
    for block in re.findall(r"^(`{3,})\{solution\}[^\n]*\n(.*?)^\1", whole, re.M | re.S):
        for line in block[1].splitlines():
            assert len(line) < 40 or line not in prose
    code = "\n".join("".join(c["source"]) for c in bare["cells"] if c["cell_type"] == "code")
    assert not re.search(r"^display\.say\(", code, re.M)
    for solved in re.findall(r"(?s)\{solution-start\}.*?\{solution-end\}", everything(text)):
        for line in solved.splitlines():
            assert len(line) < 40 or line not in code
    checks = [c for c in bare["cells"] if "exercise-check" in c["metadata"].get("tags", [])]
    given = json.loads(text)["cells"]
    assert len(checks) == sum("exercise-check" in c["metadata"].get("tags", []) for c in given)
    assert "".join(bare["cells"][-1]["source"]).splitlines()[-1] == "run"
