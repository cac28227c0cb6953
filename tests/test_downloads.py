"""Downloads: resumed, verified, cached and recorded; what goes wrong is named with what to do."""

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace
from urllib.request import build_opener

import httpx
import huggingface_hub
import pytest
from support import hostile, repositories
from support.hub import instead_of_the_real_one, serving

from biaslib import models, runtime
from biaslib.models import downloads
from biaslib.models.downloads import fetch
from biaslib.runtime import ChecksumError, DownloadError, Lock, _lock, _transfer, file_sha256

BERT = models.REGISTRY["bert"]
REPOSITORY = "google-bert/bert-base-uncased"
LXMERT = models.REGISTRY["lxmert"]
VISUALBERT = models.REGISTRY["visualbert"]


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    """Tiny repositories of three models."""
    folder = tmp_path_factory.mktemp("official")
    for name in ("bert", "lxmert", "visualbert"):
        repositories.build(name, folder)
    return folder


@pytest.fixture
def hub(official, tmp_path):
    """A hub on the loopback, of a copy that a test may change; nothing else answers."""
    shutil.copytree(official, tmp_path / "served")
    with instead_of_the_real_one(tmp_path / "served", tmp_path) as running:
        yield running


# What is downloaded


def test_only_settings_and_the_safest_weights_are_downloaded(hub):
    folder = fetch(BERT)
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "downloaded.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    for path in folder.glob("[!d]*"):
        assert path.read_bytes() == (hub.folder / REPOSITORY / path.name).read_bytes()


def test_pickled_weights_are_taken_where_there_are_no_others(hub):
    names = {path.name for path in fetch(LXMERT).iterdir()}
    assert "pytorch_model.bin" in names
    assert LXMERT.revision == Lock().revision(LXMERT.source)
    assert not {"tf_model.h5", "modeling_custom.py", "README.md"} & names


def test_weights_in_several_files_and_a_choice_between_two_layouts():
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    there = ["config.json", "model.safetensors.index.json", *shards, "pytorch_model.bin"]
    chosen = downloads._Repository("owner/name", downloads.WEIGHTS).wanted(there)
    assert chosen == ["config.json", *shards, "model.safetensors.index.json"]
    both = ["open_clip_pytorch_model.bin", "model.safetensors", "open_clip_config.json"]
    weights = (*downloads.OPEN_CLIP_WEIGHTS, *downloads.WEIGHTS)
    chosen = downloads._Repository("owner/name", weights).wanted(both)
    assert chosen == ["open_clip_config.json", "open_clip_pytorch_model.bin"]


def test_a_repository_without_a_tokenizer_gets_its_companions(hub):
    folder = fetch(VISUALBERT)
    own = json.loads((folder / "config.json").read_text())
    assert own["model_type"] == "visual_bert"
    companion = hub.folder / REPOSITORY
    assert (folder / "vocab.txt").read_bytes() == (companion / "vocab.txt").read_bytes()
    assert not (folder / "model.safetensors").exists()
    assert set(Lock().entries()) == {VISUALBERT.source, BERT.source}


OUTSIDE = [
    "model-/../../../../../outside.safetensors",
    "../../outside.model",
    "/tmp/outside.model",
    "..\\..\\outside.model",
    "C:outside.model",
    ".outside.model",
    "folder/outside.model",
]


def listed(names):
    return [{"rfilename": name, "size": 1, "blobId": "0" * 40} for name in names]


def test_names_that_lead_out_of_the_folder_are_not_taken(hub, tmp_path):
    """The shell's star stands for slashes too, and a mirror can list what it likes."""
    hub.also_listed = listed(OUTSIDE)
    folder = fetch(BERT)
    assert file_sha256(folder / "model.safetensors")
    assert not [path for path in tmp_path.rglob("*outside*")]
    assert not [asked for asked in hub.requests if "outside" in asked[1]]
    recorded = Lock().entries()[BERT.source]["files"]
    assert not [name for name in recorded if "outside" in name]


def test_a_repository_whose_only_weights_lead_out_of_the_folder_has_none(hub):
    (hub.folder / REPOSITORY / "model.safetensors").unlink()
    (hub.folder / REPOSITORY / "pytorch_model.bin").unlink(missing_ok=True)
    hub.also_listed = listed(["model.safetensors.index.json/../x", OUTSIDE[0]])
    with pytest.raises(DownloadError, match="holds no weights under a name that is known here"):
        fetch(BERT)


@pytest.mark.parametrize("commit", ["../../../outside", "main", None])
def test_a_commit_that_is_none_is_refused(hub, tmp_path, commit):
    hub.false_commit = commit
    with pytest.raises(DownloadError, match=rf"gives {commit!r} as the commit .* no hub: check HF"):
        fetch(BERT)
    assert not (tmp_path / "outside").exists()


# The lock file


def test_the_lock_file_records_what_was_seen_first(hub):
    folder = fetch(BERT)
    entry = json.loads(Lock().path.read_text())[BERT.source]
    assert entry["revision"] == folder.name == hub.commit(REPOSITORY)
    weights = entry["files"]["model.safetensors"]
    assert weights == {
        "sha256": file_sha256(folder / "model.safetensors"),
        "bytes": (folder / "model.safetensors").stat().st_size,
    }
    assert len(entry["date"]) == 10


def test_the_second_time_nothing_is_asked_of_the_network(hub):
    folder = fetch(BERT)
    hub.requests.clear()
    assert fetch(BERT) == folder
    assert hub.requests == []


def test_a_lock_file_pins_the_revision_when_the_repository_moves_on(hub):
    folder = fetch(BERT)
    config = hub.folder / REPOSITORY / "config.json"
    config.write_text(config.read_text().replace("0.02", "0.03"))
    assert fetch(BERT) == folder
    now = hub.commit(REPOSITORY)
    with pytest.raises(ChecksumError, match=rf"records revision {folder.name} .* and {now} was"):
        fetch(BERT, revision="main")
    Lock().path.unlink()
    assert fetch(BERT, revision="main") != folder


def test_another_file_than_the_recorded_one_is_refused_and_both_are_named(hub):
    folder = fetch(BERT)
    lock = Lock()
    text, found = lock.path.read_text(), file_sha256(folder / "model.safetensors")
    lock.path.write_text(text.replace(found, "0" * 64))
    with pytest.raises(ChecksumError) as refusal:
        fetch(BERT)
    for part in ("model.safetensors", "0" * 64, found, "delete the entry", lock.path.name):
        assert part in str(refusal.value)


def test_a_lock_file_that_is_none(hub):
    Lock().path.parent.mkdir()
    Lock().path.write_text("<<<<<<< HEAD")
    with pytest.raises(DownloadError, match=r"biaslib-lock.json is not a lock file .* Restore it"):
        fetch(BERT)


# Interrupted, corrupted, unreachable


def test_an_interrupted_download_goes_on_where_it_stopped(hub):
    hub.interrupt_after, hub.interruptions = 1_000, 1
    with pytest.raises(DownloadError, match=r"broke after 1,000 of .* bytes.* goes on from there"):
        fetch(BERT)
    hub.requests.clear()
    folder = fetch(BERT)
    ranges = [asked for _, path, asked in hub.requests if asked]
    assert ranges == ["bytes=1000-"]
    for path in folder.glob("[!d]*"):
        assert path.read_bytes() == (hub.folder / REPOSITORY / path.name).read_bytes()
    assert not list(folder.glob("*.part*"))


def test_a_download_that_is_interrupted_again_and_again_ends(hub):
    hub.interrupt_after = 8_000
    for _ in range(100):
        try:
            folder = fetch(BERT)
        except DownloadError:
            continue
        break
    name = "model.safetensors"
    assert file_sha256(folder / name) == file_sha256(hub.folder / REPOSITORY / name)


def test_what_was_begun_is_not_joined_to_another_version(hub):
    served = hub.folder / "a.ckpt"
    served.write_bytes(b"\x80" * 5_000)
    hub.interrupt_after, hub.interruptions = 1_000, 1
    with pytest.raises(DownloadError, match="1,000 bytes are kept"):
        fetch(f"url {hub.address}/files/a.ckpt")
    served.write_bytes(b"PK" * 2_500)
    assert fetch(f"url {hub.address}/files/a.ckpt").read_bytes() == b"PK" * 2_500


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_corrupted_download_is_named_and_removed(hub, name):
    hub.corrupt = name
    with pytest.raises(
        ChecksumError, match=rf"{name} arrived damaged.* the hub declares .* is not used"
    ):
        fetch(BERT)
    assert not list(downloads.cache_folder().rglob(f"{name}*"))
    hub.corrupt = ""
    assert (fetch(BERT) / name).is_file()


def test_a_file_that_changed_on_the_disk_is_named_removed_and_downloaded_again(hub):
    path = fetch(BERT) / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    with pytest.raises(
        ChecksumError, match=r"model.safetensors was damaged .* was removed; the same"
    ):
        fetch(BERT)
    assert fetch(BERT).joinpath(path.name).read_bytes() == whole


def test_no_network(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match=r"could not reach the hub for google-bert.*connection"):
        fetch(BERT)
    with pytest.raises(
        DownloadError, match=r"could not download http://127.0.0.1:9/a.bin: .*refused"
    ):
        fetch("url http://127.0.0.1:9/a.bin")


def test_what_was_downloaded_before_is_used_without_a_network(hub, monkeypatch):
    folder = fetch(BERT)
    Lock().path.unlink()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert fetch(BERT) == folder


def asked_by_huggingface(address):
    huggingface_hub.get_session().head(address)


def asked_by_urllib(address):
    build_opener().open(address)


@pytest.mark.parametrize("address", ["http://example.org/a.bin", "https://example.org/a.bin"])
@pytest.mark.parametrize("ask", [httpx.head, asked_by_huggingface, asked_by_urllib])
def test_the_hub_of_the_tests_refuses_and_reports_what_is_asked_of_others(tmp_path, ask, address):
    (tmp_path / "served").mkdir()
    with (
        pytest.raises(AssertionError, match=r"example\.org"),
        instead_of_the_real_one(tmp_path / "served", tmp_path),
        contextlib.suppress(Exception),
    ):
        ask(address)


def test_a_disk_that_is_too_small(hub, monkeypatch):
    full = SimpleNamespace(disk_usage=lambda folder: SimpleNamespace(free=0))
    monkeypatch.setattr("biaslib.runtime._transfer.shutil", full)
    with pytest.raises(
        DownloadError, match=r"has 0.0 GB free. Make room there, or set BIASLIB_CACHE"
    ):
        fetch(BERT)


FETCH = """
import sys
from biaslib.models.downloads import fetch
print(fetch(sys.argv[1]).read_bytes().count(bytes([128])))
"""


def test_processes_that_want_the_same_file_at_once_get_it(hub):
    """One downloads it, the others wait for it; the lock file has every source."""
    sources = [f"url {hub.address}/files/{name}.ckpt" for name in "ab"]
    for name in "ab":
        (hub.folder / f"{name}.ckpt").write_bytes(b"\x80" * 3_000_000)
    commands = [[sys.executable, "-c", FETCH, source] for source in sources * 2]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
    assert [process.communicate()[0].strip() for process in running] == ["3000000"] * 4
    assert set(Lock().entries()) == set(sources)
    assert sorted(path for _, path, _ in hub.requests) == ["/files/a.ckpt", "/files/b.ckpt"]


# Hosts that need a person


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_gives_the_steps_to_place_the_files_by_hand(hub, status, tmp_path):
    hub.refuse = status
    with pytest.raises(DownloadError) as refusal:
        fetch(BERT)
    told = str(refusal.value)
    place = tmp_path / "cache" / "hub" / "google-bert" / "bert-base-uncased" / "by-hand"
    assert f"1. Open https://huggingface.co/{BERT.source.removeprefix('hub ')}" in told
    assert f"2. Put it, under its own name, into {place}" in told
    assert f"3. Run the same call again. It checks the SHA-256 against {Lock().path}" in told
    assert "HF_TOKEN" in told
    shutil.copytree(hub.folder / "google-bert" / "bert-base-uncased", place)
    assert fetch(BERT) == place
    (place / "model.safetensors").write_bytes(b"another")
    with pytest.raises(ChecksumError, match=r"model.safetensors: expected SHA-256"):
        fetch(BERT)


def test_another_revision_than_the_files_placed_by_hand_is_not_taken_for_theirs(hub, tmp_path):
    place = tmp_path / "cache" / "hub" / REPOSITORY / "by-hand"
    shutil.copytree(hub.folder / REPOSITORY, place)
    with pytest.raises(DownloadError, match=r"revision main of google-bert.*Leave the revision ou"):
        fetch(BERT, revision="main")
    assert fetch(BERT) == place


def test_a_file_placed_by_hand_is_not_replaced_by_a_companions(hub, tmp_path):
    """Weights that are placed by hand get a tokenizer beside them; whose is there is kept."""
    place = tmp_path / "cache" / "by-hand"
    place.mkdir(parents=True)
    (place / "weights.model").write_bytes(b"\x80weights")
    source = "by hand weights.model from https://drive.google.com/file"
    chosen = dataclasses.replace(BERT, source=source, revision="", sha256="", companion=BERT.source)
    (place / "vocab.txt").write_text("my own words")
    with pytest.raises(ChecksumError, match=r"vocab.txt is another file than vocab.txt of hub goo"):
        fetch(chosen)
    assert (place / "vocab.txt").read_text() == "my own words"
    served = hub.folder / REPOSITORY / "vocab.txt"
    shutil.copyfile(served, place / "vocab.txt")
    for _ in range(2):
        assert fetch(chosen) == place / "weights.model"
        assert (place / "vocab.txt").read_bytes() == served.read_bytes()
        assert not list(place.glob(".*"))


def test_an_incomplete_folder_placed_by_hand(hub, tmp_path):
    place = tmp_path / "cache" / "hub" / "google-bert" / "bert-base-uncased" / "by-hand"
    place.mkdir(parents=True)
    (place / "config.json").write_text("{}")
    with pytest.raises(DownloadError, match=r"holds no weights .* only config.json"):
        fetch(BERT)


def test_a_server_in_trouble(hub):
    hub.refuse = 500
    with pytest.raises(DownloadError, match=r"hub refuses google-bert/bert-base-uncased: .*500"):
        fetch(BERT)
    with pytest.raises(DownloadError, match="answered with the error 500; try again later"):
        fetch(f"url {hub.address}/files/a.bin")


def test_a_revision_that_does_not_exist(hub):
    with pytest.raises(DownloadError, match="hub refuses google-bert/bert-base-uncased"):
        fetch(BERT, revision="v9")


def test_a_page_that_only_a_person_can_click_through(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_CACHE", str(tmp_path))
    monkeypatch.setenv("BIASLIB_LOCK", str(tmp_path / "lock.json"))
    source = "by hand vl-bert-base-prec.model from https://drive.google.com/file"
    with pytest.raises(DownloadError) as refusal:
        fetch(source)
    assert "1. Open https://drive.google.com/file" in str(refusal.value)
    assert f"2. Put it, under its own name, into {tmp_path / 'by-hand'}" in str(refusal.value)
    placed = tmp_path / "by-hand" / "vl-bert-base-prec.model"
    placed.parent.mkdir()
    placed.write_bytes(b"\x80weights")
    assert fetch(source) == placed
    assert Lock().sha256(source, placed.name) == hashlib.sha256(b"\x80weights").hexdigest()
    placed.write_bytes(b"other weights")
    with pytest.raises(ChecksumError, match=r"vl-bert-base-prec.model: expected SHA-256"):
        fetch(source)


# Files of other hosts


def test_a_file_of_another_host_is_downloaded_once_and_checked_ever_after(hub):
    (hub.folder / "release.ckpt").write_bytes(b"\x80weights" * 1_000)
    source = f"url {hub.address}/files/release.ckpt"
    path = fetch(source)
    assert path.read_bytes() == b"\x80weights" * 1_000
    asked = len(hub.requests)
    assert fetch(source) == path
    assert len(hub.requests) == asked
    path.write_bytes(b"changed")
    with pytest.raises(ChecksumError, match=r"release.ckpt: expected SHA-256"):
        fetch(source)


def test_a_file_that_is_pinned_in_the_registry(hub):
    (hub.folder / "release.ckpt").write_bytes(b"\x80weights")
    source = f"url {hub.address}/files/release.ckpt"
    right = hashlib.sha256(b"\x80weights").hexdigest()
    pinned = dataclasses.replace(BERT, source=source, sha256="0" * 64, companion="")
    with pytest.raises(ChecksumError, match=rf"release.ckpt arrived damaged.*{right}"):
        fetch(pinned)
    assert fetch(dataclasses.replace(pinned, sha256=right)).read_bytes() == b"\x80weights"


def test_a_dead_link_gives_the_steps(hub):
    with pytest.raises(
        DownloadError, match=r"gone.ckpt is not there\nTo place it by hand:\n1. Open"
    ):
        fetch(f"url {hub.address}/files/gone.ckpt")


PAGE = b"  \n<!DOCTYPE html><html><body>Sign in to continue</body></html>"


@pytest.fixture
def several(hub):
    """An entry of two files in a folder with three addresses, and the three folders."""
    names = ("first", "second", "third")
    places = [hub.folder / name for name in names]
    for place in places:
        place.mkdir()
    address, *mirrors = (
        f"{hub.address}/files/{name}/{{config.yaml,weights.bin}}" for name in names
    )
    source = f"url {address}"
    entry = dataclasses.replace(BERT, source=source, mirrors=tuple(mirrors), companion="")
    return entry, places


def put(place, config=b"anchors: 12", weights=b"\x80weights"):
    (place / "config.yaml").write_bytes(config)
    (place / "weights.bin").write_bytes(weights)


def test_single_files_make_a_folder(hub, several):
    entry, (first, *_) = several
    put(first)
    folder = fetch(entry)
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {"config.yaml": b"anchors: 12", "weights.bin": b"\x80weights"}
    assert set(Lock().entries()[entry.source]["files"]) == {"config.yaml", "weights.bin"}
    asked = len(hub.requests)
    assert fetch(entry) == folder
    assert len(hub.requests) == asked
    (folder / "weights.bin").write_bytes(b"changed")
    with pytest.raises(ChecksumError, match=r"weights.bin: expected SHA-256"):
        fetch(entry)


def test_the_next_address_is_tried_and_what_was_wrong_with_those_before_is_said(hub, several):
    entry, (_, second, third) = several
    put(second, weights=PAGE)
    put(third)
    with pytest.warns(UserWarning, match="was taken from") as told:
        folder = fetch(entry)
    config, weights = (str(each.message) for each in told)
    assert "config.yaml was taken from" in config
    assert "first/config.yaml is not there" in config
    assert "weights.bin was taken from" in weights
    assert "second/weights.bin answers with a web page in place of weights.bin" in weights
    assert (folder / "weights.bin").read_bytes() == b"\x80weights"
    assert not list(folder.glob("*.part"))


def test_other_addresses_are_held_to_the_same_checksum(several):
    entry, (first, second, _) = several
    put(first)
    folder = fetch(entry)
    shutil.rmtree(folder)
    put(second, weights=b"\x80others")
    (first / "weights.bin").unlink()
    with pytest.raises(
        DownloadError,
        match=r"(?s)none of 3 addresses has weights.bin: .*not there"
        r".*arrived damaged, or is another file.*third/weights.bin is not there",
    ):
        fetch(entry)
    assert not (folder / "weights.bin").exists()
    pinned = dataclasses.replace(entry, sha256=hashlib.sha256(b"\x80others").hexdigest())
    lock = Lock()
    lock.path.unlink()
    with pytest.warns(UserWarning, match="weights.bin was taken from"):
        assert fetch(pinned, lock=lock.path) == folder


def test_no_address_left_gives_the_steps_and_one_command(several):
    entry, _ = several
    with pytest.raises(DownloadError) as refusal:
        fetch(entry)
    told = str(refusal.value)
    assert "none of 3 addresses has config.yaml" in told
    assert "1. Open http://127.0.0.1" in told
    assert downloads.by_hand(entry) in told
    assert '-O "http://127.0.0.1' in downloads.by_hand(entry)


def test_a_connection_that_breaks_is_not_gone_on_with_elsewhere(hub, several):
    entry, (first, second, _) = several
    put(first, weights=b"\x80" * 9_000_000)
    put(second, weights=b"PK" * 4_500_000)
    hub.interrupt_after, hub.interruptions = 5_000_000, 1
    with pytest.raises(DownloadError, match="bytes are kept and it goes on from there"):
        fetch(entry)
    assert (fetch(entry) / "weights.bin").read_bytes() == b"\x80" * 9_000_000


def test_a_part_of_an_earlier_run_keeps_no_address_from_being_asked(hub, several):
    entry, (first, second, _) = several
    put(first, weights=b"\x80" * 9_000_000)
    hub.interrupt_after, hub.interruptions = 5_000_000, 1
    with pytest.raises(DownloadError, match="goes on from there"):
        fetch(entry)
    (first / "weights.bin").unlink()
    with pytest.raises(DownloadError, match=r"none of 3 addresses has weights.bin"):
        fetch(entry)
    put(second, weights=b"PK" * 4_500_000)
    with pytest.warns(UserWarning, match="weights.bin was taken from"):
        folder = fetch(entry)
    assert (folder / "weights.bin").read_bytes() == b"PK" * 4_500_000
    assert sorted(each.name for each in folder.iterdir()) == ["config.yaml", "weights.bin"]


def test_a_page_in_place_of_weights_is_named_and_not_kept(hub):
    (hub.folder / "a.ckpt").write_bytes(PAGE)
    source = f"url {hub.address}/files/a.ckpt"
    with pytest.raises(
        DownloadError, match=r"answers with a web page in place of a.ckpt\nTo place"
    ):
        fetch(source)
    assert source not in Lock().entries()
    (hub.folder / "a.ckpt").write_bytes(b"\x80weights")
    path = fetch(source)
    assert path.read_bytes() == b"\x80weights"
    Lock().path.unlink()
    path.write_bytes(PAGE)
    with pytest.raises(DownloadError, match=r"a.ckpt holds a web page in place of a.ckpt"):
        fetch(source)


def test_what_a_person_may_place_is_tried_first(hub, tmp_path):
    address = f"{hub.address}/files/drive/a.model?id=1YB&confirm=t"
    entry = dataclasses.replace(
        models.REGISTRY["vl-bert"], mirrors=(address,), companion=BERT.source
    )
    place = tmp_path / "cache" / "by-hand"
    (hub.folder / "drive").mkdir()
    (hub.folder / "drive" / "a.model").write_bytes(PAGE)
    with pytest.raises(DownloadError) as refusal:
        fetch(entry)
    told = str(refusal.value)
    assert "a web page in place of vl-bert-base-prec.model" in told
    assert "gdown 1YBFsyoWwz83VPzbimKymSBxE37gYtfgh" in told
    assert f'-O "{place}/vl-bert-base-prec.model"' in told
    (hub.folder / "drive" / "a.model").write_bytes(b"\x80weights")
    assert fetch(entry) == place / "vl-bert-base-prec.model"
    assert (place / "vocab.txt").is_file()
    (place / "vl-bert-base-prec.model").write_bytes(PAGE)
    with pytest.raises(DownloadError, match=r"holds a web page in place of vl-bert"):
        fetch(entry)


def test_every_registered_checkpoint_has_a_command_or_needs_none():
    for entry in models.REGISTRY.values():
        command = downloads.by_hand(entry, "folder")
        needs_none = entry.source.startswith(("package ", "planted "))
        assert bool(command) != needs_none, entry.name
        assert "PLACE" not in command


def test_open_connections_are_refused():
    with pytest.raises(DownloadError, match="not an https address"):
        fetch("url http://example.org/a.ckpt")


def test_a_redirect_to_an_open_connection_is_refused(hub):
    (hub.folder / "a.ckpt").write_bytes(b"\x80weights")
    hub.redirect_files_to = "http://example.org/a.ckpt"
    with pytest.raises(DownloadError, match=r"http://example.org/a.ckpt is not an https address"):
        fetch(f"url {hub.address}/files/a.ckpt")


def test_a_token_stays_with_the_hub(hub, official, monkeypatch):
    """It is sent to the hub and to no other host that the hub redirects to."""
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    with serving(official) as elsewhere:
        name = "google-bert/bert-base-uncased"
        there = f"/{name}/resolve/{elsewhere.commit(name)}/config.json"
        hub.redirect_files_to = elsewhere.address + there
        with pytest.raises(ChecksumError):
            fetch(BERT)
        assert hub.tokens == {"Bearer hf_of_a_test"}
        assert elsewhere.tokens == {""}


def test_a_source_of_no_known_kind():
    with pytest.raises(ValueError, match="'package x 1' is not a source that can be fetched"):
        fetch("package x 1")


def test_downloads_are_kept_at_home_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("BIASLIB_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert downloads.cache_folder() == tmp_path / ".cache" / "biaslib" / "checkpoints"


def test_a_mirror_stands_for_other_hosts_and_their_files_are_checked_all_the_same(hub, monkeypatch):
    path = hub.folder / "example.org" / "models" / "a.ckpt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x80" * 50)
    source = "url https://example.org/models/a.ckpt"
    monkeypatch.setenv("BIASLIB_MIRROR", f"{hub.address}/files/")
    found = fetch(source)
    assert found.read_bytes() == b"\x80" * 50
    assert found.parts[-4:] == ("url", "example.org", "models", "a.ckpt")
    assert Lock().sha256(source, "a.ckpt") == file_sha256(path)
    found.unlink()
    path.write_bytes(b"PK" * 25)
    with pytest.raises(ChecksumError, match=r"a\.ckpt arrived damaged, or is another file"):
        fetch(source)
    with pytest.raises(
        DownloadError, match=r"Open https://example\.org/models/b\.ckpt in a browser"
    ):
        fetch("url https://example.org/models/b.ckpt")


# A hostile server

PICKLED = b"\x80\x02" + bytes(range(256)) * 20
"""What begins like weights that PyTorch saved."""


@pytest.fixture
def bad(tmp_path, monkeypatch):
    """A server that answers badly, of a file that begins like weights."""
    monkeypatch.setenv("BIASLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BIASLIB_LOCK", str(tmp_path / "lock.json"))
    with hostile.serving(PICKLED) as running:
        yield running


ANSWERS = {
    "status/204": "error 204",
    "status_without_body/204": "error 204",
    "unasked_part": "error 206",
    "unasked_part_of": "error 206",
    "login_page": "answers with a web page in place of a.bin",
    "redirect_to_login": "answers with a web page in place of a.bin",
    "gzipped": "encoded as gzip, which was not asked for",
    "gzip_bomb": "encoded as gzip, gzip, which was not asked for",
    "truncated": r"broke after 5,122 of 5,222 bytes",
    "truncated_without_length": "gives no length",
    "without_length": "gives no length",
    "huge": "has .* GB free. Make room",
    "endless": "larger than 2 MB",
    "two_lengths": "Content-Length",
    "length_in_words": "Content-Length",
    "negative_length": "Content-Length",
    "bad_chunk": "broke after 0 bytes",
    "cut_chunk": "broke after [0-9,]+ bytes",
    "hang_up": "disconnected",
    "reset": "reset by peer",
    "not_http": "RemoteProtocolError",
    "long_head": "RemoteProtocolError",
    "redirect_loop": "TooManyRedirects",
    "redirect_without_place": "error 302",
    "redirect_to_nowhere": "TooManyRedirects",
    "redirect_to_empty_label": "not an https address",
    "redirect_to_long_label": "not an https address",
    "redirect_to_punycode": "not an address",
    "redirect_to_private": "not an https address",
    "redirect_to_file": "not an https address",
    "redirect_to_port": "ConnectError",
    "redirect_to_bracket": "Invalid URL in location header",
}
"""What comes of each behaviour."""


@pytest.mark.parametrize("name", ANSWERS)
def test_a_bad_answer_is_no_file_and_said(bad, tmp_path, monkeypatch, name):
    monkeypatch.setattr(_transfer, "UNANNOUNCED", 2e6, raising=False)
    path = tmp_path / "folder" / "a.bin"
    with pytest.raises(DownloadError, match=ANSWERS[name]):
        runtime.download(f"{bad.address}/{name}", path)
    assert not path.exists()
    assert not [each for each in path.parent.iterdir() if ".part" not in each.name]
    good = runtime.download(f"{bad.address}/good", path)
    assert good.read_bytes() == PICKLED
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["wrong_range", "more_than_announced", "range_without_span"])
def test_another_part_than_the_missing_one_is_refused(bad, tmp_path, name):
    path = tmp_path / "a.bin"
    with pytest.raises(DownloadError, match=r"broke after 1,000 of 5,122 bytes"):
        runtime.download(f"{bad.address}/{name}", path)
    with pytest.raises(DownloadError, match=r"answers with another part .* from byte 1000 on"):
        runtime.download(f"{bad.address}/{name}", path)
    assert not path.exists()
    assert runtime.download(f"{bad.address}/good", path).read_bytes() == PICKLED
    assert bad.headers[-1]["Range"] is None


def test_a_server_that_refuses_every_range_is_asked_anew_once(bad, tmp_path):
    for _ in range(2):
        with pytest.raises(DownloadError, match=r"broke after 1,000 of 5,122 bytes"):
            runtime.download(f"{bad.address}/never_the_range", tmp_path / "a.bin")
    assert [each["Range"] for each in bad.headers] == [None, "bytes=1000-", None]


@pytest.mark.parametrize("name", ["slow", "slow_head", "silent"])
def test_a_server_that_does_not_come_to_an_end_is_left(bad, tmp_path, name):
    late = pytest.raises(DownloadError, match=r"broke after [0-9]+ of|no whole answer within 0.5 s")
    with hostile.impatient(0.5), late:
        runtime.download(f"{bad.address}/{name}", tmp_path / "a.bin")


def test_a_long_file_has_more_time_for_every_megabyte(bad, tmp_path, monkeypatch):
    from biaslib.runtime import answers

    now = [0.0]

    def blocks():
        for _ in range(3):
            now[0] += 50
            yield bytes(answers.PACE)

    monkeypatch.setattr(answers, "monotonic", lambda: now[0])
    monkeypatch.setattr(answers.httpx.Response, "iter_raw", lambda response: blocks())
    with answers.Asker(lambda request: None) as ask:
        with ask(f"{bad.address}/good", 60) as response:
            assert sum(map(len, answers.blocks(response, pace=60))) == 3 * answers.PACE
        late = pytest.raises(answers.AnswerError, match="within 60 s")
        with late, ask(f"{bad.address}/good", 60) as response:
            list(answers.blocks(response))


@pytest.mark.parametrize(
    "name",
    ["login_page", "login_page_without_type", "login_page_as_image", "login_json", "login_text"],
)
def test_what_is_no_weights_enters_neither_cache_nor_lock(bad, tmp_path, name):
    source = f"url {bad.address}/{name}/a.bin"
    with pytest.raises(DownloadError, match=r"answers with .* in place of a.bin(.|\n)*by hand"):
        fetch(source)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert not (tmp_path / "lock.json").exists()
    assert fetch(f"url {bad.address}/good/a.bin").read_bytes() == PICKLED


def test_an_address_that_is_none(tmp_path):
    with pytest.raises(DownloadError, match="is not an address"):
        runtime.download("https://[::1", tmp_path / "a.bin")


# Several processes, several users, full and read-only disks


def test_two_revisions_recorded_at_once_are_not_mixed(tmp_path, monkeypatch):
    """What another process records while this one waits is not added to."""
    files = {name: tmp_path / name for name in ("one", "two")}
    for name, path in files.items():
        path.write_text(name)
    lock, real = Lock(tmp_path / "lock.json"), _lock.one_at_a_time

    @contextlib.contextmanager
    def after_another(path):
        monkeypatch.setattr(_lock, "one_at_a_time", real)
        lock.verify("hub a/b", "1" * 40, {"one": files["one"]})
        with real(path):
            yield

    monkeypatch.setattr(_lock, "one_at_a_time", after_another)
    with pytest.raises(ChecksumError, match=f"records revision {'1' * 40}"):
        lock.verify("hub a/b", "2" * 40, {"two": files["two"]})
    entry = lock.entries()["hub a/b"]
    assert (entry["revision"], set(entry["files"])) == ("1" * 40, {"one"})


def test_another_file_recorded_at_once_is_not_replaced(tmp_path, monkeypatch):
    path, other = tmp_path / "one", tmp_path / "other"
    path.write_text("one")
    other.write_text("other")
    lock, real = Lock(tmp_path / "lock.json"), _lock.one_at_a_time

    @contextlib.contextmanager
    def after_another(locked):
        monkeypatch.setattr(_lock, "one_at_a_time", real)
        lock.verify("url x", "", {"a": other})
        with real(locked):
            yield

    monkeypatch.setattr(_lock, "one_at_a_time", after_another)
    with pytest.raises(ChecksumError, match="expected SHA-256"):
        lock.verify("url x", "", {"a": path})
    assert lock.sha256("url x", "a") == file_sha256(other)


def test_a_lock_lies_beside_its_file_for_every_user_and_goes(tmp_path):
    with runtime.one_at_a_time(tmp_path / "a.bin"):
        (held,) = tmp_path.iterdir()
        assert held.name == ".a.bin.lock"
        assert held.stat().st_mode & 0o666 == 0o666
    assert list(tmp_path.iterdir()) == []
    with runtime.one_at_a_time(tmp_path / ("a" * 250)):
        assert len(list(tmp_path.iterdir())) == 1


def test_a_process_that_waits_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_lock, "PATIENCE", 0.05)
    held, done = threading.Event(), threading.Event()

    def hold():
        with runtime.one_at_a_time(tmp_path / "a.bin"):
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    threading.Timer(0.5, done.set).start()
    waits = pytest.warns(UserWarning, match=r"another process works on .*a\.bin: this one waits")
    with waits, runtime.one_at_a_time(tmp_path / "a.bin"):
        assert done.is_set()
    holder.join()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_takes_no_more_is_named_and_the_next_call_goes_on(
    bad, tmp_path, monkeypatch, number
):
    path = tmp_path / "folder" / "a.bin"
    with pytest.raises(DownloadError, match="1,000 bytes are kept"):
        runtime.download(f"{bad.address}/wrong_range", path)

    def full(*arguments, **named):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(_transfer, "open", full, raising=False)
        with pytest.raises(DownloadError) as caught:
            runtime.download(f"{bad.address}/good", path)
    assert f"{path.parent} cannot be written: {os.strerror(number)}" in str(caught.value)
    assert "set BIASLIB_CACHE" in str(caught.value)
    assert runtime.download(f"{bad.address}/good", path).read_bytes() == PICKLED
    assert bad.headers[-1]["Range"] == "bytes=1000-"


def test_a_lock_file_that_cannot_be_written_is_named_and_the_file_kept(bad, tmp_path, monkeypatch):
    source = f"url {bad.address}/good/a.bin"

    def read_only(path):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(_lock, "one_at_a_time", read_only)
        with pytest.raises(DownloadError, match=r"lock.json cannot be written.*set BIASLIB_LOCK"):
            fetch(source)
    asked = len(bad.requests)
    assert fetch(source).read_bytes() == PICKLED
    assert len(bad.requests) == asked
    assert Lock().sha256(source, "a.bin") == hashlib.sha256(PICKLED).hexdigest()
