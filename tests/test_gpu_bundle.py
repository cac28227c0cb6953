"""The archive of ``make gpu-bundle``, run to its end as on a machine that has little more than
PyTorch and transformers: other packages than those, and the project's own folders, are refused."""

import csv
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import gpu_bundle  # noqa: E402

THERE = "torch torchvision transformers scipy pandas pillow tqdm"
"""What the machine has, each with what it requires."""

FAMILIES = "clip visualbert vl-bert vilt flava albef lxmert vilbert bert llava"
PUBLISHED = "ViT-H/14 VisualBERT detector ViLT LLaVA VL-BERT ALBEF FLAVA BERT LXMERT ViLBERT"

REFUSING = """
import importlib.machinery, importlib.metadata as metadata, os, re, sys

allowed, left = set(), os.environ["THERE"].split()
plain = lambda name: re.sub("[-_.]+", "-", name).lower()
while left:
    name = plain(left.pop())
    if name not in allowed:
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        allowed.add(name)
        left += [re.match(r"[\\w.-]+", each)[0] for each in required if "extra ==" not in each]
owners = metadata.packages_distributions()
ours = ("biaslib", "companion", "plantedworld", "tools", "tests")

class There(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ours and owners.get(top) and not allowed & set(map(plain, owners[top])):
            return None
        return super().find_spec(name, [os.environ["UNPACKED"]] if name in ours else path, target)

kept = [each for each in sys.meta_path if each.__module__ == "_frozen_importlib"]
sys.meta_path[:] = [*kept, There]
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return gpu_bundle.write(tmp_path_factory.mktemp("bundle") / "biaslib_gpu.zip")


@pytest.fixture(scope="module")
def run(archive, tmp_path_factory):
    folder, out, hook = (tmp_path_factory.mktemp(name) for name in ("unpacked", "out", "hook"))
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    (hook / "sitecustomize.py").write_text(REFUSING)
    settings = {"THERE": THERE, "UNPACKED": str(folder), "PYTHONPATH": str(hook)}
    command = [sys.executable, "run_gpu.py", "--out", str(out), "--seconds", "3000"]
    done = subprocess.run(
        [*command, "--device", "cpu"],
        cwd=folder,
        env=os.environ | settings | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    paths = list(out.glob("gpu_cpu_*.csv"))
    assert len(paths) == 1, done.stderr
    with paths[0].open(encoding="utf-8", newline="") as stream:
        return done, list(csv.DictReader(stream))


def values(rows, quantity, **labels):
    return {
        tuple(row[name] for name in ("task", "study", "precision")): row["value"]
        for row in rows
        if row["quantity"] == quantity and labels.items() <= row.items()
    }


def test_the_archive_is_small_and_the_same_each_time(archive, tmp_path):
    assert archive.stat().st_size < 40 * 2**20
    assert gpu_bundle.write(tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_every_part_runs_to_its_end(run):
    done, rows = run
    assert done.returncode == 0, done.stdout + done.stderr
    assert not values(rows, "failed")
    assert not values(rows, "skipped")
    assert {row["measure"] for row in rows} == {"ceilings", "numerics", "memory", "study", "speed"}
    assert all("torch" in row["measured on"] and "CPU" in row["measured on"] for row in rows)


def test_every_family_has_its_digits_within_the_bound(run):
    within = values(run[1], "within", measure="numerics")
    assert {task for task, _, _ in within} == set(FAMILIES.split())
    assert {precision for _, _, precision in within} == {"bfloat16", "float32"}
    assert set(within.values()) == {"True"}
    errors = values(run[1], "outputs_error", measure="numerics")
    assert all(0 < float(value) < 1e-4 for key, value in errors.items() if key[2] == "float32")


def test_every_family_has_its_share_of_the_ceiling(run):
    shares = values(run[1], "share_of_ceiling", measure="speed")
    assert {task for task, _, _ in shares} >= set(PUBLISHED.split())
    assert all(float(value) > 0 for value in shares.values())


def test_numbers_stay_when_memory_runs_out(run):
    assert set(values(run[1], "same", measure="memory").values()) == {"True"}


def answering(asked, *_):
    """Answer parts by number: 0 well, 1 not in time, 2 by the end of the process."""
    while True:
        number, _ = asked.recv()
        asked.send({"pid": os.getpid()})
        if number == 1:
            time.sleep(600)
        if number == 2:
            os._exit(1)
        asked.send(None)


def test_what_ends_or_hangs_costs_a_part_and_no_other(monkeypatch):
    from tools.benchmarks.gpu import _parts

    monkeypatch.setattr(_parts, "BOX", 10)
    planned = [(number, {"measure": "numerics", "task": str(number)}) for number in (0, 1, 0, 2, 0)]
    found = list(_parts.in_time(planned, 300, _parts.Apart("", "", answering)))
    pids = [record["pid"] for record in found if "pid" in record]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
    failed = [(record["task"], record["failed"]) for record in found if "failed" in record]
    assert failed == [("1", "it took more than 10 s"), ("2", "its process ended")]


def test_a_part_has_only_the_time_that_is_left():
    from tools.benchmarks.gpu import _parts

    planned = [(0, {"measure": "numerics", "task": "clip"})]
    (found,) = _parts.in_time(planned, _parts.LEAST / 2, _parts.Apart("", "", answering))
    assert found["skipped"] == "no time was left"


def test_a_part_that_fails_says_why_and_the_next_one_has_its_turn(monkeypatch):
    from tools.benchmarks.gpu import _parts

    class Asked:
        numbers, sent = [0, 1], []

        def recv(self):
            return self.numbers.pop(0), {"float32": 2.0}

        def send(self, record):
            self.sent.append(record)

    def parts(size, device, ceilings):
        return [({}, lambda: 1 / 0), ({}, lambda: [dict(ceilings)])]

    monkeypatch.setattr(_parts, "steps", parts)
    with pytest.raises(IndexError):  # no third number
        _parts.serve(Asked(), "tiny", "cpu")
    failed, end, *rest = Asked.sent
    assert "ZeroDivisionError" in failed["failed"]
    assert [end, *rest] == [None, {"float32": 2.0}, None]


OPENCLIPS, TINY_LLAMAS, VISION = 986_109_441, 1_100_048_384, 303_507_456
"""Parameters that the publishers give: of ViT-H/14, of TinyLlama, of CLIP ViT-L/14's vision."""


def test_networks_have_their_published_sizes():
    import torch

    from biaslib.models import REGISTRY
    from biaslib.pictures.faster_rcnn import FasterRcnn, FasterRcnnConfig
    from tools.benchmarks.gpu._speed import TASKS

    def count(network):
        return sum(each.numel() for each in network.parameters())

    built = {name: task.builder() for name, task in TASKS.items() if name != "FLAVA"}
    with torch.device("meta"):
        detector = FasterRcnn(FasterRcnnConfig(built.pop("detector").settings))
    networks = {name: parts.built("meta") for name, parts in built.items()} | {"detector": detector}
    assert count(networks.pop("ViT-H/14")) == OPENCLIPS
    llava = networks.pop("LLaVA")
    assert count(llava.model.language_model) + llava.lm_head.weight.numel() == TINY_LLAMAS
    assert count(llava.model.vision_tower) == VISION
    for name, network in networks.items():
        registered = REGISTRY[TASKS[name].family].parameters
        assert count(network) == pytest.approx(registered, rel=2e-4), name
