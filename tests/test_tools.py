"""Tools for readers' machines and for the book's links: what they say, and their exit status."""

import csv
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import changed_pages  # noqa: E402
import check  # noqa: E402
import links  # noqa: E402
import mutants  # noqa: E402
import prose  # noqa: E402


@pytest.mark.parametrize(
    ("found", "state", "words"),
    [
        (check.python((3, 6, 15)), "FAILS", "takes 3.11.5 to 3.14"),
        (check.python((3, 15, 0)), "FAILS", "takes 3.11.5 to 3.14"),
        (check.python((3, 11, 6), ["venv"]), "FAILS", "apt install python3.11-venv"),
        (check.python((3, 13, 0)), "ok", "Python 3.13.0"),
        (check.python((3, 14, 1)), "note", "not tested"),
        (check.disk(3 * 10**9, installed=False), "FAILS", "3.0 GB free"),
        (check.disk(3 * 10**9, installed=True), "ok", "to build takes about 2 GB"),
        (check.memory(10**9), "note", "1 GB of memory"),
        (check.memory(None), "note", "does not say"),
        (check.gpu("Tesla T4, 15360 MiB"), "ok", "Tesla T4"),
        (check.gpu(None), "note", "'planted' needs none"),
        (check.versions({}, {}), "note", "not installed: numpy"),
        (check.versions(dict.fromkeys(check.MAIN, "1"), {"numpy": "1"}), "ok", "all 1 packages"),
        (check.versions(dict.fromkeys(check.MAIN, "1+cpu"), {"torch": "1"}), "ok", "tested"),
        (
            check.versions(dict.fromkeys(check.MAIN, "1"), {"torch": "2"}),
            "note",
            "torch 1 (tested: 2)",
        ),
    ],
)
def test_what_is_found_is_said_in_words(found, state, words):
    assert found.state == state
    assert words in found.words


def test_a_machine_on_which_something_is_missing_fails(monkeypatch, capsys):
    monkeypatch.setattr(check, "findings", lambda: [check.python((3, 11, 5)), check.gpu(None)])
    assert check.main() == 0
    monkeypatch.setattr(check, "findings", lambda: [check.disk(0, installed=True)])
    assert check.main() == 1
    assert "FAILS  0.0 GB free" in capsys.readouterr().out


def test_pins_are_read_from_the_requirements():
    pins = check.tested((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    assert len(pins) > 100
    assert {"numpy", "torch", "jupyter-book"} <= set(pins)


def test_links_are_found_where_they_stand(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text(
        "See <https://a.org/x>, and https://github.com/YOUR_ACCOUNT."
    )
    (tmp_path / "book" / "references.bib").write_text("@a{b,\n doi = {10.1/ab}\n}")
    cell = {"cell_type": "markdown", "source": ["[x](https://a.org/x#part)."]}
    (tmp_path / "notebooks" / "n.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert links.places(tmp_path) == {
        "https://a.org/x": ["README.md", "notebooks/n.ipynb"],
        "https://doi.org/10.1/ab": ["book/references.bib"],
    }


def test_what_is_gone_fails_and_what_refuses_is_left_to_a_person(tmp_path, monkeypatch, capsys):
    (tmp_path / "README.md").write_text("https://a.org/gone https://a.org/shy https://a.org/well")
    answers = {"gone": "404", "shy": "403", "well": ""}
    monkeypatch.setattr(
        links.addresses, "asked", lambda url, page: {"problem": answers[url.split("/")[-1]]}
    )
    assert links.main(tmp_path) == 1
    told = capsys.readouterr().out
    assert "gone: https://a.org/gone: 404 (README.md)" in told
    assert "not sure: https://a.org/shy: 403" in told
    assert "1 of 3 outside addresses answer" in told
    answers["gone"] = ""
    assert links.main(tmp_path) == 0


def test_pages_that_differ_are_listed_with_their_first_change(tmp_path, capsys):
    old, new = tmp_path / "old", tmp_path / "new"
    page = "<nav>{0}</nav><article>{1}<dl class='stamp'>{0}</dl>{2}</article>"
    pages = {
        old / "same.html": ("1", "Nothing new here", ""),
        new / "same.html": ("2", "Nothing new here", ""),
        old / "book/text.html": ("1", "Women and men were asked", "<img>"),
        new / "book/text.html": ("1", "Women and men answered", "<img><img>"),
        new / "added.html": ("1", "Words", ""),
    }
    for path, parts in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.format(*parts), encoding="utf-8")
    assert changed_pages.main([str(old), str(new)]) == 0
    told = capsys.readouterr().out
    assert "2 of 3 pages differ." in told
    assert "| added.html | new |" in told
    assert (
        "| book/text.html | 1 words more, 2 less: **answered** in place of **were asked**; "
        "2 pictures, before 1 |"
    ) in told
    assert changed_pages.main([str(old), str(tmp_path / "none")]) == 2
    assert "run 'make book' first" in capsys.readouterr().err


FUNCTION = '''
LEAST = 1


def share(k: int | None, n, axis=0):
    """Return k / n."""
    if k < n:  # é has two bytes
        raise ValueError(f"{k + 1} é")
    return axis or k / (
        n)
'''


def test_a_mutant_changes_one_expression_of_a_function_and_is_found_where_it_moves(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    places = [tmp_path / "biaslib" / layer / "shares.py" for layer in ("metrics", "models")]
    for place, text in zip(places, (FUNCTION, FUNCTION.replace("LEAST = 1", "")), strict=True):
        place.parent.mkdir(parents=True)
        place.write_text(text, encoding="utf-8")
    found, moved = (list(mutants.mutants_of(place)) for place in places)
    changed = [
        ("axis=0", "axis=1"),
        ("k < n", "(k <= n)"),
        ("k < n", "(k >= n)"),
        ("axis or k / (\n        n)", "k"),
        ("axis or k / (\n        n)", "(axis and k / n)"),
        ("k / (\n        n)", "(k * n)"),
    ]
    contents = [mutant.content.decode() for mutant in found]
    assert contents == [FUNCTION.replace(old, new) for old, new in changed]

    table = tmp_path / "mutants.csv"
    with table.open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, mutants.TOLD, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(mutant._asdict() for mutant in found)
    again = list(mutants.found_again(moved, table))
    assert [mutant.content for mutant in again] == [mutant.content for mutant in moved]
    assert {mutant.layer for mutant in again} == {"metrics"}


SMALL = {
    "markdown": [
        "# Is it so?\n\nIn study 2 it is: 3 of {term}`words` of 5. See [it](a/b_1.html).",
        "```{math}\n:label: eq-a\nx = 1\n```\n\n| a | 1 |\n\nOne " + "word " * 28 + "more.",
    ],
    "code": [
        "%pip install 1",
        'n = 1\ndisplay.say(\n    "There are {n}.", n=n\n)',
        'display.figure(\n    draw(), "A.",\n    table=display.table(rows, "B"),\n)',
    ],
}
"""Cells with 2 headings and sentences, then 1 of 30 words; 2 numbers, and 1 that is filled in."""


def test_prose_is_counted_without_code_equations_tables_and_names(tmp_path, capsys):
    cells = [{"cell_type": kind, "source": text} for kind, many in SMALL.items() for text in many]
    words, numbers, long_ones, figures, tables, built, minutes = prose.row({"cells": cells})
    assert words == sum(len(text.split()) for text in SMALL["markdown"]) + 3
    # "Is it so?", "In it it is:", "3 of of 5.", "See it.", the long one, "There are {n}."
    assert numbers == pytest.approx(100 * 3 / (3 + 4 + 4 + 2 + 30 + 3))
    assert long_ones == pytest.approx(100 / 6)
    assert (figures, tables, built) == (1, 1, 50)
    assert minutes == words / 200
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    prose.main([path])
    assert capsys.readouterr().out.splitlines()[2].startswith(f"| small | {words} | ")
