"""What names a model covers the files that its loader reads, and refuses what lies elsewhere."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from biaslib import models, runtime
from biaslib.checkpoints.files import checksums, revision_of, weight_files
from biaslib.errors import CheckpointError
from plantedworld.models.checkpoints import checkpoint


@pytest.fixture(scope="session")
def two_states():
    """The weights of two models of one kind."""
    return [load_file(checkpoint("clip", 3, seed) / "model.safetensors") for seed in (0, 1)]


@pytest.fixture
def folder(tmp_path):
    """A dual encoder without its weights."""
    ignored = shutil.ignore_patterns("model.safetensors")
    return shutil.copytree(checkpoint("clip", 3, 0), tmp_path / "mine", ignore=ignored)


def write(folder, name, state):
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    if name.endswith(".safetensors"):
        save_file(state, path, {"format": "pt"})
    else:
        torch.save(state, path)
    return path


def index(folder, state, name="shards/part.safetensors", of="model.safetensors"):
    weights = dict.fromkeys(state, name) if isinstance(name, str) else name
    found = {"metadata": {"total_size": 1}, "weight_map": weights}
    (folder / f"{of}.index.json").write_text(json.dumps(found))


def halves(state):
    """Names and files: every second weight in another folder."""
    names = sorted(state)
    return dict.fromkeys(names[::2], "a/1.safetensors") | dict.fromkeys(
        names[1::2], "b/2.safetensors"
    )


def in_subfolder(folder, state, other):
    write(folder, "shards/part.safetensors", state)
    write(folder, "shards/other.safetensors", other)
    index(folder, state)


def in_two_subfolders(folder, state, other):
    places = halves(state)
    for file in set(places.values()):
        write(folder, file, {name: state[name] for name in state if places[name] == file})
    index(folder, state, places)


def pickled_beside_another(folder, state, other):
    write(folder, "pytorch_model.bin", state)
    write(folder, "extra.safetensors", other)


def index_beside_pickled(folder, state, other):
    in_subfolder(folder, state, other)
    write(folder, "pytorch_model.bin", other)


def named_by_the_configuration(folder, state, other):
    write(folder, "weights/these.safetensors", state)
    write(folder, "model.safetensors", other)
    config = json.loads((folder / "config.json").read_text())
    config["transformers_weights"] = "weights/these.safetensors"
    (folder / "config.json").write_text(json.dumps(config))


LAYOUTS = [
    in_subfolder,
    in_two_subfolders,
    pickled_beside_another,
    index_beside_pickled,
    named_by_the_configuration,
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_revision_is_of_the_files_that_transformers_reads(folder, two_states, layout):
    """Exchange what is read: another name; exchange what is not: the same."""
    first, second = two_states
    layout(folder, first, second)
    loaded = transformers.AutoModel.from_pretrained(folder).state_dict()
    assert all(torch.equal(loaded[name], first[name]) for name in first)
    read = weight_files(folder)
    together = {}
    for path in read:
        kept = load_file(path) if path.suffix == ".safetensors" else torch.load(path)
        together |= kept
    assert all(torch.equal(together[name], first[name]) for name in first)
    before = revision_of(folder)
    layout(folder, first, first)
    assert revision_of(folder) == before
    layout(folder, second, first)
    assert revision_of(folder) != before


OPEN_CLIP = [
    ["model.safetensors", "open_clip_pytorch_model.bin"],
    ["b.bin", "a.pth"],
    ["a.bin", "b.safetensors", "c.safetensors"],
    ["pytorch_model.bin", "z.safetensors", "open_clip_model.safetensors"],
    ["model.pth", "a.safetensors"],
]


@pytest.mark.parametrize("names", OPEN_CLIP, ids=" ".join)
def test_the_order_of_open_clip_is_its_own(tmp_path, names):
    factory = pytest.importorskip("open_clip.factory")
    for name in names:
        (tmp_path / name).write_text(name)
    chosen = factory._find_checkpoint_in_dir(tmp_path)
    assert weight_files(tmp_path, open_clip=True) == [Path(chosen)]
    of_chosen = hashlib.sha256(Path(chosen).read_bytes()).hexdigest()
    assert checksums(tmp_path, open_clip=True) == f"sha256 {of_chosen[:12]}"


# What leads out of the folder, or nowhere


def outside(folder, state):
    write(folder.parent, "elsewhere/weights.safetensors", state)
    return folder.parent / "elsewhere" / "weights.safetensors"


def above(folder, state):
    outside(folder, state)
    index(folder, state, "../elsewhere/weights.safetensors")


def absolute(folder, state):
    index(folder, state, str(outside(folder, state)))


def linked(folder, state):
    (folder / "model.safetensors").symlink_to(outside(folder, state))


def linked_index(folder, state):
    index(folder, state, "model-1.safetensors")
    write(folder, "model-1.safetensors", state)
    moved = (folder / "model.safetensors.index.json").rename(folder.parent / "index.json")
    (folder / "model.safetensors.index.json").symlink_to(moved)


def lists_nothing(folder, state):
    index(folder, state, {})


def lists_what_is_missing(folder, state):
    index(folder, state, "model-00001-of-00002.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        above,
        absolute,
        linked,
        linked_index,
        lists_nothing,
        lists_what_is_missing,
    ],
)
def test_weights_outside_the_folder_or_nowhere_are_refused(folder, two_states, change):
    change(folder, two_states[0])
    for read in (revision_of, lambda path: models.load(path, device="cpu")):
        with pytest.raises(CheckpointError) as caught:
            read(folder)
        assert caught.value.path == folder


@pytest.mark.parametrize("shared", [False, True])
def test_the_links_of_the_hubs_own_cache_are_no_way_out(folder, two_states, tmp_path, shared):
    """A snapshot links to the blobs of its repository, and these to those of the whole cache."""
    repository = tmp_path / "models--owner--name"
    blob = repository / "blobs" / "abc"
    whole = write(
        tmp_path / "blobs" if shared else repository / "blobs", "x.safetensors", two_states[0]
    )
    blob.parent.mkdir(exist_ok=True, parents=True)
    if shared:
        blob.symlink_to(whole)
    else:
        whole.rename(blob)
    snapshot = repository / "snapshots" / ("f" * 40)
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    (snapshot / "model.safetensors").symlink_to(Path("../../blobs/abc"))
    found = models.load(snapshot, device="cpu")
    assert f"sha256 {runtime.file_sha256(blob)[:12]}" in found.revision


# What makes a sentence's vector


@pytest.mark.parametrize(
    "changed",
    ["modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors", "2_Dense/config.json"],
)
def test_what_pools_the_states_of_a_sentence_counts(tmp_path, changed):
    parts = [{"path": path} for path in ("", "1_Pooling", "2_Dense")]
    files = {
        "model.safetensors": "weights",
        "modules.json": json.dumps(parts),
        "1_Pooling/config.json": "{}",
        "2_Dense/config.json": "{}",
        "2_Dense/model.safetensors": "more weights",
        "onnx/model.onnx": "not read",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = revision_of(tmp_path)
    (tmp_path / "onnx/model.onnx").write_text("others")
    assert revision_of(tmp_path) == before
    (tmp_path / changed).write_text(files[changed] + " ")
    assert revision_of(tmp_path) != before


def test_parts_of_a_sentence_encoder_outside_its_folder_are_refused(tmp_path):
    folder = tmp_path / "mine"
    for name in ("mine/1_Pooling", "other"):
        (tmp_path / name).mkdir(parents=True)
    (folder / "model.safetensors").write_text("weights")
    (folder / "modules.json").write_text('[{"path": "../other"}]')
    with pytest.raises(CheckpointError) as caught:
        revision_of(folder)
    assert caught.value.path == folder
