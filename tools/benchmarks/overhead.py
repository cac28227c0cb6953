"""Time every family's public call beside a bare loop of its forward passes, on one CPU thread.

Run as ``python -m tools.benchmarks.overhead [family ...]``. Models have their published sizes and
random weights (``tools/benchmarks/full_size_models.py``; OpenCLIP is ViT-B/32 and not ViT-H/14,
which has the same loop). They read 96 texts of 3 to 16 words; 24 such texts with 36 regions each; 4
JPEG files of 640 x 480 pixels with two captions each; or 24 files; 8 rows a batch. Both loops take
turns; seconds are the processor's, of this process and of those that open files for it, so that
other programs disturb little. The detector has 50 layers, a quarter of the channels, 32 proposals
and pictures of 320 x 427 pixels, and reads 20 files. Prints one JSON record a line.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tools.benchmarks import loops
from tools.benchmarks.detector import SETTINGS
from tools.benchmarks.full_size import FAMILIES as FULL_SIZE
from tools.benchmarks.full_size import loaded
from tools.benchmarks.gpu._networks import detecting

N, BATCH, REPEATS = 24, 8, 5
PICTURES, TURNS = 20, 3


def processor() -> float:
    """Return the processor seconds of this process and of the children that it has waited for."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def embedded(model, folder: Path) -> loops.Loops:
    """Return the loops of embedding texts with regions."""
    images, said = loops.regions(N), loops.texts(N)
    return fusion(model, lambda: model.embed(said, images), lambda found: found.text[:, 0])


def matched(model, folder: Path) -> loops.Loops:
    """Return the loops of matching captions with files."""
    paths, said = loops.files(folder, BATCH // 2), loops.texts(BATCH)
    captions = [said[row : row + 2] for row in range(0, len(said), 2)]
    return fusion(model, lambda: model.match(paths, captions).ravel(), lambda found: found.match)


def fusion(model, public: Callable, rows: Callable) -> loops.Loops:
    """Return the loops of a fusion model."""
    model.batch_size = BATCH
    return loops.loops(model, "outputs", public, rows, torch.inference_mode)


def of_texts(model, folder: Path) -> loops.Loops:
    """Return the loops of embedding texts."""
    from biaslib.checkpoints.sentences import Pooling

    said = loops.texts(4 * N)

    def pooled(found) -> torch.Tensor:
        return found.last_hidden_state[:, 0]

    model.pool = Pooling(("cls",))
    public = lambda: model.embed(said, batch_size=BATCH)  # noqa: E731
    return loops.loops(model, "model", public, pooled, torch.inference_mode)


def of_files(model, folder: Path) -> loops.Loops:
    """Return the loops of encoding files."""
    paths = loops.files(folder, N)
    return loops.loops(
        model,
        "encode_batch_of_images",
        lambda: model.encode_image(paths, batch_size=BATCH),
        lambda found: torch.nn.functional.normalize(found, dim=-1),
        torch.inference_mode,
    )


FAMILIES: dict[str, tuple[str | None, Callable]] = {
    "text": (None, of_texts),
    "bert": ("bert-base", of_texts),
    "visualbert": ("visualbert", embedded),
    "lxmert": ("lxmert", embedded),
    "vilt": ("vilt-b32", matched),
    "clip": ("clip-vit-base-patch32", of_files),
    "open_clip": ("open-clip ViT-H-14", of_files),
    "flava": ("flava-full", matched),
    "vl_bert": ("vl-bert-base", embedded),
    "vilbert": ("vilbert", embedded),
    "albef": ("albef 256", matched),
}
"""By family: its row of full_size, of which the package carries that of ``text``, and its loops."""


def model_of(family: str, folder: Path):
    """Build a family's model and load it."""
    from tools.benchmarks import full_size_models

    row = FAMILIES[family][0]
    if row is None:
        from biaslib import models

        return models.load("all-MiniLM-L6-v2", device="cpu")
    name, builder, _ = FULL_SIZE[row]
    options = {"size": "ViT-B-32"} if family == "open_clip" else {}
    getattr(full_size_models, builder)(**options).write(folder)
    return loaded(name, folder)[0]


def measured(family: str) -> dict:
    """Return the record of a family."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        folder.mkdir()
        model = model_of(family, folder)
        both = FAMILIES[family][1](model, Path(name))
        found = loops.in_turns(both.public, both.bare, processor, REPEATS)
    size = {"measure": "families", "family": family}
    return size | {"passes": both.passes, "turns": REPEATS} | found


def small_settings() -> dict:
    """Return the settings of the shrunken detector."""
    settings = json.loads(json.dumps(SETTINGS))
    settings["input"] |= {"min_size_test": 320, "max_size_test": 533}
    settings["resnets"] |= {"depth": 50, "stem_out_channels": 32}
    settings["resnets"] |= {"width_per_group": 16, "res2_out_channels": 64}
    settings["rpn"]["post_nms_topk_test"] = 32
    return settings


def of_detector(settings: dict, paths: list[Path]) -> loops.Loops:
    """Return the loops of a detector of random weights."""
    asked = detecting(settings, "cpu")
    public = functools.partial(asked.public, paths)
    return loops.loops(asked.owner, asked.name, public, asked.rows, contextlib.nullcontext)


def detector() -> dict:
    """Return the record of the detector."""
    with tempfile.TemporaryDirectory() as name:
        both = of_detector(small_settings(), loops.files(Path(name), PICTURES))
        found = loops.in_turns(both.public, both.bare, processor, TURNS)
    counts = {"pictures": PICTURES, "passes": both.passes, "turns": TURNS}
    return {"measure": "detector"} | counts | found


def main(chosen: list[str]) -> None:
    """Print the records, each family's from a process of its own."""
    if len(chosen) == 1:
        torch.set_num_threads(1)
        found = detector() if chosen[0] == "detector" else measured(chosen[0])
        print(json.dumps(found), flush=True)
        return
    for family in chosen or [*FAMILIES, "detector"]:
        subprocess.run([sys.executable, "-m", "tools.benchmarks.overhead", family], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
