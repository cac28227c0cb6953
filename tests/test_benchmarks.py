"""The benchmark of cards runs small on any device, and refuses a bare loop that says otherwise."""

import importlib
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

ROOT = pathlib.Path(__file__).parents[1]
COLUMNS = ["measure", "device", "size", "task", "precision", "items", "passes", "items_a_second"]
COLUMNS += ["bare_loop_a_second", "ratio", "median_ratio", "peak_gb"]


@pytest.fixture
def loops(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("tools.benchmarks.loops")


@pytest.mark.slow
def test_what_a_card_is_asked_for_runs_small_on_a_processor():
    command = [sys.executable, "-m", "tools.benchmarks.gpu", "--size", "tiny", "--device", "cpu"]
    command += ["--items", "3", "--repeats", "1"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    found = [(row["task"], row["precision"]) for row in rows]
    others = [(each, "float32") for each in ("ViT-H/14", "ViLT matching", "study 1")]
    assert found == [("detector", "float32"), *others]
    for row in rows:
        assert list(row) == COLUMNS
        assert row["items"] == 3
        for name in ("items_a_second", "bare_loop_a_second", "ratio", "median_ratio", "peak_gb"):
            assert math.isfinite(row[name]), row
            assert row[name] > 0, row


class Doubling:
    """A model whose forward pass doubles, in batches of two, and whose public call may not."""

    def __init__(self, factor):
        self.factor = factor

    def forward(self, row):
        return 2 * row

    def public(self):
        rows = torch.arange(6.0).reshape(6, 1)
        found = torch.cat([self.forward(part) for part in rows.split(2)])
        return (found * self.factor).flip(0).numpy()


def test_the_bare_loop_must_say_what_the_public_call_says(loops):
    right, wrong = Doubling(1), Doubling(1.5)
    ask = (lambda output: output, torch.inference_mode)
    both = loops.loops(right, "forward", right.public, *ask)
    assert both.passes == 3
    assert np.concatenate([each.numpy() for each in both.bare()]).ravel().tolist() == [
        *range(0, 12, 2)
    ]
    assert both.public().ravel().tolist() == [*range(10, -1, -2)]
    with pytest.raises(ArithmeticError, match="something else: 3"):
        loops.loops(wrong, "forward", wrong.public, *ask)


def test_seconds_are_the_least_of_turns_after_the_first(loops):
    ticks = iter([0, 9, 9, 18, *(0, 2, 2, 3), *(3, 7, 7, 9), *(9, 12, 12, 13)])
    found = loops.in_turns(lambda: None, lambda: None, lambda: next(ticks), repeats=3)
    assert found == {"public_s": 2, "bare_loop_s": 1, "ratio": 2.0, "median_ratio": 2.0}
