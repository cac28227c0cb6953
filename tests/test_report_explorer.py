"""The declarative panel: a description, and the page that draws it without a kernel."""

import pandas
import pytest
from PIL import Image

from companion import _drawing, _explorer
from companion._drawing import round_ticks

MARKS = [
    {"kind": "dots", "x": [-1.0, 0.5], "y": [0.2, 1.4], "label": "words <W>", "group": 1,
     "text": ["purse", "briefcase"], "low": [0.1, 1.2], "high": [0.4, 1.5]},
    {"kind": "dots", "x": [0.2], "y": [0.6], "low": [-0.4], "high": [0.9], "along": "x"},
    {"kind": "bars", "x": [-1, 0, 1], "y": [0.5, -0.25, None], "label": "shares", "group": 2},
    {"kind": "line", "x": [-2, 0, 2], "y": [0, None, 1], "low": [-0.1, None, 0.9],
     "high": [0.1, None, 1.1], "label": "trend", "group": 3, "dashed": True},
    {"kind": "steps", "x": [-2, 0, 2], "y": [0.3, 0], "label": "null", "group": 4},
    {"kind": "rule", "x": [1.5], "y": [0.75], "label": "bound", "group": 5, "thin": True},
]  # fmt: skip


def drawing(sentence="Two words.", **changes):
    settings = {"note": "planted world", "table": pandas.DataFrame({"d": [0.5]}), **changes}
    ends = {"x_range": (-2, 2), "y_range": (-0.5, 1.5)}
    return _drawing.Drawing(
        sentence, MARKS, "log-odds", "score", **ends, alt="Dots and bars.", **settings
    )


@pytest.fixture(scope="module")
def panel():
    image = Image.new("RGB", (4, 4), "red")
    choices = {"Level": ["word", "sentence"], "Dose": [0, 3]}
    pictured = drawing("Pictured.", images=[_drawing.picture(image, "a red <square>")])
    cases = {("word", 0): drawing(), ("word", 3): [drawing("One."), pictured]}
    return _explorer.Panel("Tests & levels", choices, cases)


def test_ticks_are_round_or_named():
    assert list(round_ticks((0, 1))) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert list(round_ticks((-0.37, 0.21))) == pytest.approx([-0.2, 0, 0.2])
    assert list(round_ticks((0, 950)).values()) == ["0", "200", "400", "600", "800"]
    with pytest.raises(ValueError, match="two different numbers"):
        round_ticks((1, 1))


def test_what_cases_share_stands_once_on_the_page(panel):
    data = panel.data()
    assert len(data["marks"]) == len(MARKS)
    assert len(data["frames"]) == 2, "with pictures, and without"
    assert data["cases"]["0,0"][0]["marks"] == list(range(len(MARKS)))
