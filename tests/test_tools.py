"""Tools for readers' machines and for maintainers: what they say, and their exit status."""

import csv
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import check  # noqa: E402
import mutants  # noqa: E402


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
