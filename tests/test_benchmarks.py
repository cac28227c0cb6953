"""What a card is measured by, small on a processor: counts, digits, memory and records."""

import pathlib
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).parents[1]
sys.path.append(str(ROOT))

from tools.benchmarks import full_size_models  # noqa: E402
from tools.benchmarks.gpu import __main__ as command  # noqa: E402
from tools.benchmarks.gpu import _numerics, _speed  # noqa: E402

FEW = {
    "texts": 1,
    "entities": 2,
    "per_agent": 1,
    "n_per_cell": 12,
    "words": 20,
    "n_per_category": 4,
}


@pytest.mark.parametrize(
    ("name", "parameters"),
    # As the published files have them; ViT-H/14 of transformers has as many as OpenCLIP's.
    [
        ("visualbert", 112_074_812),
        ("vilt", 112_219_196),
        ("clip", 151_277_313),
        ("clip_h14", 986_109_441),
        ("vl_bert_base", 114_491_515),
        ("albef", 209_937_725),
    ],
)
def test_networks_of_published_sizes_have_their_parameters(name, parameters):
    network = getattr(full_size_models, name)().built("meta")
    assert sum(tensor.numel() for tensor in network.parameters()) == parameters


@pytest.mark.parametrize(("name", "billions"), [("clip", 8.82), ("clip_h14", 334.59)])
def test_operations_of_published_towers_are_those_that_openclip_lists(name, billions):
    """``docs/model_profile.csv`` of OpenCLIP, image_gflops of ViT-B-32 and ViT-H-14."""
    tower = getattr(full_size_models, name)().built("meta").vision_model.eval()
    pixels = torch.zeros(1, 3, 224, 224, device="meta")
    with torch.no_grad():
        operations = _speed.flop(lambda: tower(pixel_values=pixels))
    assert operations / 1e9 == pytest.approx(billions, abs=0.005)


def test_a_speed_is_a_share_of_the_measured_product():
    ceilings = {"float32": 1e-3}
    (record,) = _speed.measured("VisualBERT", "float32", "tiny", "cpu", ceilings)
    assert record["tflop_a_second"] / 1e-3 == pytest.approx(record["share_of_ceiling"], abs=0.06)
    by_hand = record["flop_an_item"] * record["network_a_second"] / 1e12
    assert record["tflop_a_second"] == pytest.approx(by_hand, rel=0.02, abs=1e-4)


def test_float32_is_close_to_float64_and_bfloat16_is_farther():
    rows = {}
    for row in _numerics.measured("vl-bert", "cpu", FEW):
        rows.setdefault(row["study"], {})[row["precision"]] = row
    assert rows.keys() == {"1", "2"}
    for by_precision in rows.values():
        exact, half = by_precision["float32"], by_precision["bfloat16"]
        for measure in {"outputs_error", "d_error", "s_error"} & exact.keys():
            assert 0 < exact[measure] < 1e-4 < half[measure] < 0.5, measure
        assert exact.get("sign_of_s_changed", 0) == 0


@pytest.mark.parametrize("name", ["CLIP ViT-B/32", "VisualBERT"])
def test_numbers_stay_when_memory_runs_out(name):
    (record,) = _speed.out_of_memory(name, "tiny", "cpu")
    assert record["same"]
    assert record["largest_difference"] < 1e-6
    assert record["limit"] == "3 rows"
    assert len(record["notes"]) == 1


def test_what_fails_or_has_no_time_says_so_and_the_others_have_their_turn():
    def fails():
        yield {"first": 1}
        raise ValueError("the network is damaged")

    planned = [({"task": "a"}, fails), ({"task": "b"}, lambda: [{"n": 2}]), ({"task": "c"}, fails)]
    ticks = iter([0, 1, 2, 4, 5, 100])
    first, failed, second, late = command.in_time(planned, 10, lambda: next(ticks))
    assert first == {"task": "a", "first": 1, "at_s": 2}
    assert failed["failed"][-1] == "ValueError: the network is damaged"
    assert second == {"task": "b", "n": 2, "at_s": 5}
    assert late.keys() == {"task", "skipped"}
