"""What the first figures of studies 1 and 3 draw is what the papers print."""

import json
from pathlib import Path

import pandas
import pytest

from biaslib import display, published

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def drawn(monkeypatch, chapter, *cells):
    """The picture that a chapter's cells, by id, give to :func:`biaslib.display.figure`."""
    pictures = []
    monkeypatch.setattr(display, "figure", lambda picture, *_, **__: pictures.append(picture))
    text = (NOTEBOOKS / f"{chapter}.ipynb").read_text(encoding="utf-8")
    code = {cell["id"]: "".join(cell["source"]) for cell in json.loads(text)["cells"]}
    space = {}
    for cell in cells:
        exec(code[cell], space)
    return pictures[0]


def test_of_144_lines_of_study_1_those_that_change_sign_are_orange(monkeypatch):
    figure = drawn(monkeypatch, "study1_grounded", "177fcb42", "moves")
    cells = {
        (number, row.test, row.level, row.model): row.effect_size
        for number in (3, 4)
        for row in published.table("ross2021", number).itertuples()
        if row.test != "C8"
    }
    orange = 0
    for letter, axis in zip("WSC", figure.axes, strict=True):
        pairs = [
            (cells[3, *keys], cells[4, *keys])
            for number, *keys in cells
            if number == 3 and keys[1] == letter
        ]
        *lines, _ = axis.lines  # The last is zero.
        assert sorted(tuple(line.get_ydata()) for line in lines) == sorted(pairs)
        turned = [line for line in lines if line.get_color() == "C1"]
        assert {tuple(line.get_ydata()) for line in turned} == {
            (one, two) for one, two in pairs if min(one, two) < 0 < max(one, two)
        }
        assert axis.get_title().endswith(f"\n{len(turned)} of 48")
        orange += len(turned)
    assert orange == 34
    counts = published.table("ross2021", 7).query("level in ['W', 'S', 'C']")
    before, after = counts.groupby("experiment")["significant"].sum()
    assert figure.axes[1].get_xlabel().endswith(f"{before}, then {after}")


def test_study_3_draws_the_first_word_of_each_list_and_names_all_above_one(monkeypatch):
    axis = drawn(monkeypatch, "study3_clip_audit", "aae63b6e", "c61986e2").axes[0]
    lists = pandas.concat(published.table("hamidieh2023", number) for number in range(7, 19))
    highest = lists.groupby(["category", "group"])["casc"].max()
    marks = axis.collections[0].get_offsets()
    assert sorted(marks[:, 0].tolist()) == pytest.approx(sorted(highest))
    above = lists[lists["casc"] > 1]
    assert set(above["category"]) == {"Religion", "Portrayal in Media", "Criminal justice"}
    leaders = lists.sort_values("casc").drop_duplicates("category", keep="last")
    assert axis.get_title(loc="left").startswith("By race, four words pass\n")
    assert above["word"].nunique() == 4
    named = {each.get_text() for each in axis.texts} - set(lists["category"])
    assert named == {*leaders["word"], *above["word"]}
