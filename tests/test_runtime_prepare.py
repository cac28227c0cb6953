"""What the first cell of a chapter says of a machine before anything is downloaded.

A hub and a web server of this machine refuse, are silent, ask for terms, or are not there.
"""

import csv
import dataclasses
import os
import shutil
import time
import types

import open_clip
import pytest
import torch
import transformers
from IPython.core.interactiveshell import InteractiveShell
from support import servers
from support.hub import instead_of_the_real_one
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from biaslib import runtime
from biaslib.checkpoints import downloads, reach
from biaslib.errors import CheckpointError
from biaslib.runtime import _profile
from biaslib.studies import _fetch, _look, study3_clip_audit

STUDY3 = "study3_clip_audit"
FAIRFACE, COYO = "HuggingFaceM4/FairFace", "kakaobrain/coyo-700m"
CLIP = "laion/CLIP-ViT-H-14-laion2B-s32B-b79K"
THREE_LINES = 300


@pytest.fixture(autouse=True)
def hub(monkeypatch, tmp_path):
    """A kernel in which nothing is loaded, no precision set, and the hub has study 3's sources."""
    monkeypatch.setattr(_profile._Run, "loaded", [])
    monkeypatch.setattr(_profile._Run, "begun", None)
    monkeypatch.setattr(_profile._Run, "size", None)
    monkeypatch.setenv("BIASLIB_PRECISION", "")
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path / "data"))
    for name in (FAIRFACE, COYO, CLIP):
        (tmp_path / "hub" / name).mkdir(parents=True)
    with instead_of_the_real_one(tmp_path / "hub", tmp_path) as running:
        yield running


def card(monkeypatch, gib, name="Tesla T4", capability=(7, 5)):
    """A machine with an NVIDIA card of so much memory."""
    properties = types.SimpleNamespace(total_memory=int(gib * 2**30))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: name)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)


def test_the_form_sets_the_precision_of_a_run_in_paper(monkeypatch):
    assert "Precision: auto.\n" in runtime.prepare("paper", "auto")
    assert os.environ["BIASLIB_PRECISION"] == "auto"
    told = runtime.prepare("paper", "float32")
    assert told.startswith("Precision: float32; BIASLIB_PRECISION was auto.\n")
    assert os.environ["BIASLIB_PRECISION"] == "float32"
    monkeypatch.setenv("BIASLIB_PRECISION", "bfloat16")
    assert runtime.prepare("paper").startswith("Precision: bfloat16.\n")
    with pytest.raises(ValueError, match="on cpu use precision float32 or auto"):
        runtime.prepare("paper", study=STUDY3)
    runtime.prepare("planted", "auto")
    assert os.environ["BIASLIB_PRECISION"] == "bfloat16"


def test_another_precision_than_that_of_loaded_models_is_refused(monkeypatch):
    monkeypatch.setenv("BIASLIB_PRECISION", "auto")
    runtime.start("paper")
    runtime.note_model("open-clip", "paper")
    assert "Precision: auto" in runtime.prepare("paper", "auto", STUDY3)
    with pytest.raises(runtime.ProfileError):
        runtime.prepare("paper", "float32", STUDY3)
    assert os.environ["BIASLIB_PRECISION"] == "auto"


def warnings_of(told):
    """Return the warnings of a first cell, each in three lines at most."""
    found = [line for line in told.splitlines() if line.startswith("WARNING: ")]
    assert [each for each in found if len(each) > THREE_LINES] == []
    return found


NEEDED = 2 * 3.944 + 1
"""GB: twice the weights of ViT-H/14, and one for a batch."""


@pytest.mark.parametrize(("gb", "short"), [(4, 1), (NEEDED - 0.05, 1), (NEEDED, 0), (15.8, 0)])
def test_too_little_of_card_memory_or_disk_is_named_before_the_download(gb, short, monkeypatch):
    card(monkeypatch, 24)
    monkeypatch.setattr(runtime, "free_memory", lambda where: int(30e9))
    assert warnings_of(runtime.prepare("paper", "auto", STUDY3)) == []
    monkeypatch.setattr(runtime, "free_memory", lambda where: int(gb * 1e9))
    assert len(warnings_of(runtime.prepare("paper", "auto", STUDY3))) == short
    card(monkeypatch, gb / 1.073)
    assert len(warnings_of(runtime.prepare("paper", "auto", STUDY3))) == 2 * short
    sum_of_parts = 3.944 + 0.5 + 1.05 + 0.5
    for free, also in ((sum_of_parts - 0.05, 1), (sum_of_parts + 0.05, 0)):
        monkeypatch.setattr(
            shutil, "disk_usage", lambda at, n=free: types.SimpleNamespace(free=n * 1e9)
        )
        assert len(warnings_of(runtime.prepare("paper", "auto", STUDY3))) == 2 * short + also


# Sources


def test_what_a_study_takes_and_what_is_here_already(hub, tmp_path):
    told = runtime.prepare("paper", "auto", STUDY3)
    assert "downloads some 5.5 GB" in told
    assert warnings_of(told) == []
    assert not (tmp_path / "data").exists()
    assert sorted(path for _, path, _ in hub.requests) == sorted([
        f"/api/datasets/{FAIRFACE}/auth-check",
        f"/api/datasets/{COYO}/auth-check",
        f"/api/models/{CLIP}/auth-check",
    ])  # fmt: skip
    hub.requests.clear()
    (tmp_path / "data" / "fairface").mkdir(parents=True)
    (tmp_path / "data" / "captions").mkdir()
    (tmp_path / "data" / "captions" / "mine.parquet").touch()
    told = runtime.prepare("paper", "auto", STUDY3)
    assert "downloads some 4.4 GB" in told
    assert len(hub.requests) == 2
    (tmp_path / "data" / "fairface" / "0.25").mkdir()
    for n in (0, 1):
        (tmp_path / "data" / "fairface" / "0.25" / f"train-{n}-of-00002.parquet").touch()
    kept = tmp_path / "cache" / "hub" / f"models--{CLIP.replace('/', '--')}" / "snapshots" / "1"
    kept.mkdir(parents=True)
    (kept / "open_clip_model.safetensors").touch()
    hub.requests.clear()
    assert "downloads some 0.0 GB" in runtime.prepare("paper", "auto", STUDY3)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("name", "gone", "words"),
    [
        (FAIRFACE, False, f"https://huggingface.co/datasets/{FAIRFACE} and set HF_TOKEN"),
        (CLIP, False, f"https://huggingface.co/{CLIP} and set HF_TOKEN"),
        (FAIRFACE, True, f"has no {FAIRFACE} (404)"),
        (CLIP, True, "'open-clip'"),
    ],
)
def test_the_first_cell_stops_at_a_source_that_there_is_no_study_without(
    name, gone, words, hub, tmp_path
):
    if gone:
        (tmp_path / "hub" / name).rmdir()
    else:
        hub.gated.add(name)
    with pytest.raises(CheckpointError) as stop:
        runtime.prepare("paper", "auto", STUDY3)
    assert stop.value.word == ("hub " if name == CLIP else "data ") + name
    assert words in str(stop.value)
    assert len(str(stop.value)) <= THREE_LINES
    assert stop.value.__cause__ is None


@pytest.mark.parametrize("gone", [False, True])
def test_and_goes_on_where_a_part_is_left_out(gone, hub, tmp_path):
    if gone:
        (tmp_path / "hub" / COYO).rmdir()
    else:
        hub.gated.add(COYO)
    [told] = warnings_of(runtime.prepare("paper", "auto", STUDY3))
    assert COYO in told
    assert told.endswith("Without it: " + study3_clip_audit.parts()[1].without)


def test_what_nobody_can_fetch_is_told_and_left_out(monkeypatch):
    def absent():
        raise FileNotFoundError

    parts = [
        _fetch.Part("photographs", "", 0, "captions alone", absent),
        _fetch.Part("labels", "", 0, "no rows", list),
    ]
    monkeypatch.setattr(study3_clip_audit, "parts", lambda size: parts)
    [told] = warnings_of(runtime.prepare("paper", "auto", STUDY3))
    assert told == "WARNING: nobody can fetch photographs. Without it: captions alone"


@pytest.mark.parametrize("status", [429, 503])
def test_a_hub_that_refuses_is_one_message(status, hub):
    hub.refuse = status
    with pytest.raises(CheckpointError) as stop:
        runtime.prepare("paper", "auto", STUDY3)
    assert f"refuses ({status}): FairFace, a file of COYO-700M, weights of open-clip" in str(
        stop.value
    )


def test_without_a_network_there_is_one_message_at_once_and_a_hub_that_hangs_takes_seconds(
    monkeypatch,
):
    torch.ones(1)
    for most in (4, 9):
        with servers.silent() as address:
            monkeypatch.setenv("HF_ENDPOINT", address if most == 9 else "http://127.0.0.1:9")
            begun = time.monotonic()
            with pytest.raises(CheckpointError) as stop:
                runtime.prepare("paper", "auto", STUDY3)
            assert time.monotonic() - begun < most
        assert str(stop.value).count(reach.SILENT) == 1
        assert str(stop.value).count("HF_ENDPOINT") == 1
        assert len(str(stop.value)) <= THREE_LINES


def test_a_notebook_shows_the_text_of_the_error_and_no_line_of_code(hub, capsys):
    hub.gated.add(FAIRFACE)
    cell = f"from biaslib import runtime\nprint(runtime.prepare('paper', 'auto', {STUDY3!r}))"
    InteractiveShell().run_cell(cell)
    shown = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert len(shown) == 1
    assert shown[0].startswith("CheckpointError: ")


def test_addresses_of_other_hosts(hub, tmp_path):
    at = f"{hub.address}/files"
    sources = {
        f"url {at}/there.bin": None,
        f"url {at}/gone.bin": "gives no file (404)",
        f"url {at}/{{also.bin,there.bin}}": None,
        f"url {hub.address}/page": "gives no file (404)",
        "url https://127.0.0.1:9/a.bin": "gives no file (404)",  # of the mirror
        "by hand file.bin from https://127.0.0.1:9": None,  # a program has no address to ask
        f"{at}/a/link/that/is/gone": None,  # of many
        "": None,
    }
    (tmp_path / "hub" / "there.bin").write_bytes(b"weights")
    found = reach.refusals(sources)
    assert {name: found[name].why if name in found else None for name in sources} == sources
    assert "model_files.md" in found[f"url {at}/gone.bin"].fix


def test_of_several_addresses_one_is_enough(hub, monkeypatch, tmp_path):
    where = {"source": "url https://a.org/w.bin", "mirrors": ("https://b.org/w.bin",)}
    entry = dataclasses.replace(downloads.entry_of("hub google-bert/bert-base-uncased"), **where)
    monkeypatch.setattr(downloads, "entry_of", lambda source: entry)
    assert reach.refusals([entry.source])[entry.source].why == "gives no file (404)"
    (tmp_path / "hub" / "b.org").mkdir()
    (tmp_path / "hub" / "b.org" / "w.bin").write_bytes(b"weights")
    assert reach.refusals([entry.source]) == {}
    page = dataclasses.replace(entry, source="url https://b.org/w.html", mirrors=())
    (tmp_path / "hub" / "b.org" / "w.html").write_bytes(b"<html>")
    monkeypatch.setattr(downloads, "entry_of", lambda source: page)
    assert reach.refusals([page.source])[page.source].why == "gives a web page in its place"
    hub.refuse = 503
    assert reach.refusals(["https://links.org"])["https://links.org"].why == "refuses (503)"


# Gigabytes and minutes


def test_flop_of_the_table_are_those_of_the_networks():
    """Counted by PyTorch on networks without numbers, of the published sizes."""
    vision = open_clip.get_model_config("ViT-H-14")["vision_cfg"]
    tiny = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 10}
    tiny |= {"num_attention_heads": 4, "patch_size": 16, "projection_dim": 512}
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.device("meta"):
        large = open_clip.model._build_vision_tower(1024, vision).eval()
        small = transformers.CLIPVisionModelWithProjection(transformers.CLIPVisionConfig(**tiny))
    with open(_look.WORK, encoding="utf-8", newline="") as file:
        portraits = {
            r["size"]: float(r["gflop"]) for r in csv.DictReader(file) if r["what"] == "portraits"
        }
    for size, network in (("full", large), ("taste", small)):
        counter = FlopCounterMode(display=False)
        with torch.inference_mode(), counter, sdpa_kernel(SDPBackend.MATH):
            network(torch.empty(1, 3, 224, 224, device="meta"))
        assert counter.get_total_flops() / 1e9 == pytest.approx(portraits[size], rel=0.02)
    torch.backends.mha.set_fastpath_enabled(True)


def test_minutes_follow_from_flop_and_a_cards_rate(monkeypatch):
    """86,744 portraits of 334.6 GFLOP at 0.3 of 65 TFLOP/s, and four minutes of a processor."""
    by_hand = (86_744 * 0.3346 + 450 * 0.047) / (0.3 * 65) / 60 + 4
    assert _look.minutes(STUDY3, "full", runtime.rate("Tesla T4", "half")) == pytest.approx(by_hand)
    for name, capability, wanted, said in (
        ("Tesla T4", (7, 5), "auto", f"{by_hand:.0f} min on Tesla T4 in float16"),
        ("Tesla T4", (7, 5), "float32", "2.1 h on Tesla T4 in float32"),
        ("NVIDIA H100 80GB HBM3", (9, 0), "auto", "6 min on NVIDIA H100 80GB HBM3 in bfloat16"),
    ):
        card(monkeypatch, 14.6, name, capability)
        assert said in runtime.prepare("paper", wanted, STUDY3)


def test_a_card_is_not_taken_for_another_whose_name_begins_alike():
    assert runtime.rate("NVIDIA L4", "half") == pytest.approx(0.3 * 121)
    for other in ("NVIDIA L40S", "NVIDIA T400 4GB"):
        assert runtime.rate(other, "half") == 0


def test_the_rate_of_what_is_not_listed_is_timed(monkeypatch):
    name, timed = runtime.speed()
    assert name == "this machine's cpu in float32"
    assert 1e-4 < timed < 10
    card(monkeypatch, 24, "NVIDIA unheard of")
    real = torch.ones
    monkeypatch.setattr(torch, "ones", lambda *shape, **how: real(8, 8))
    name, timed = runtime.speed()
    assert name == "NVIDIA unheard of in float32"
    assert timed > 0
