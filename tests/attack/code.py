"""Checkpoints and pictures that hold code, read where no program starts and no host is reached.

The confined process runs :func:`main`, which prints a line for each thing that was read, with what
came of it.
"""

import json
import os
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from support import confined

from attack import Outcome

FAMILIES = (
    *("bert", "clip", "visualbert", "lxmert", "vilt", "flava", "vl-bert", "vilbert", "albef"),
    "open-clip",
)
REFUSALS = ("CheckpointError", "ImageError", "DataError", "UnknownNameError")
EVIL = """
import pathlib
pathlib.Path({mark!r}).touch()
from transformers import *
class Evil: pass
EvilConfig = EvilTokenizer = EvilProcessor = Evil
"""
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"


class Command:
    """Touches a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


def pickled(name: str) -> Callable:
    """Put code in the place of the weights, as ``name`` or as OpenCLIP would call it."""

    def change(folder: Path, mark: Path) -> None:
        for weights in folder.glob("*.safetensors"):
            weights.unlink()
        of_open_clip = name.endswith(".bin") and (folder / "open_clip_config.json").exists()
        path = folder / ("open_clip_pytorch_model.bin" if of_open_clip else name)
        path.write_bytes(pickle.dumps({"model": Command(mark)}))

    return change


def settings(name: str, **entries) -> Callable:
    """Write entries into one of the folder's files of settings, and put the code that they name."""

    def change(folder: Path, mark: Path) -> None:
        path = folder / name
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        path.unlink(missing_ok=True)
        path.write_text(json.dumps(known | entries), encoding="utf-8")
        (folder / "evil.py").write_text(EVIL.format(mark=str(mark)), encoding="utf-8")

    return change


def of_open_clip(part: str, **entries) -> Callable:
    def change(folder: Path, mark: Path) -> None:
        known = json.loads((folder / "open_clip_config.json").read_text(encoding="utf-8"))
        known["model_cfg"][part] |= entries
        settings("open_clip_config.json", **known)(folder, mark)

    return change


def pickled_tokenizer(folder: Path, mark: Path) -> None:
    (folder / "tokenizer.json").unlink(missing_ok=True)
    (folder / "tokenizer.json").write_bytes(pickle.dumps(Command(mark)))


def index_elsewhere(folder: Path, mark: Path) -> None:
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    data = pickle.dumps({"a": Command(mark)})
    (folder.parent / "outside.bin").write_bytes(data)
    weight_map = {"weight_map": {"a": "../outside.bin"}, "metadata": {"total_size": 1}}
    for name in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        (folder / name).write_text(json.dumps(weight_map), encoding="utf-8")


MODULES = {
    "AutoConfig": "evil.EvilConfig",
    "AutoModel": "evil.Evil",
    "AutoModelForMaskedLM": "evil.Evil",
}
CHANGES = {
    "pickled .bin": pickled("pytorch_model.bin"),
    "pickled .pth": pickled("model.pth"),
    "a pickle named safetensors": pickled("model.safetensors"),
    "weights listed outside the folder": index_elsewhere,
    "code named by the configuration": settings("config.json", auto_map=MODULES),
    "code trusted by the configuration": settings(
        "config.json", auto_map=MODULES, trust_remote_code=True, model_type="evil"
    ),
    "code named by the tokenizer": settings(
        "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.EvilTokenizer", None]},
        tokenizer_class="EvilTokenizer", trust_remote_code=True,
    ),
    "a pickled tokenizer": pickled_tokenizer,
    "code named by the image processor": settings(
        "preprocessor_config.json", auto_map={"AutoImageProcessor": "evil.EvilProcessor"},
        image_processor_type="EvilProcessor", trust_remote_code=True,
    ),
    "another repository in the configuration": settings(
        "config.json", _name_or_path="owner/name", text_config={"_name_or_path": "owner/name"}
    ),
    "another repository for the tokenizer": settings(
        "tokenizer_config.json", name_or_path="owner/name", tokenizer_file="hf-hub:owner/name"
    ),
    "OpenCLIP trusting a tokenizer": of_open_clip(
        "text_cfg", hf_tokenizer_name=".", tokenizer_kwargs={"trust_remote_code": True}
    ),
    "OpenCLIP with another repository": of_open_clip("vision_cfg", timm_model_name="hf-hub:a/b"),
    "OpenCLIP with another text encoder": of_open_clip("text_cfg", hf_model_name="owner/name"),
}  # fmt: skip
EVERYWHERE = [name for name in CHANGES if not name.startswith("OpenCLIP")]


def checkpoints(folder: Path, mark: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield each family with each change: what it is, the family, the folder."""
    from plantedworld.models.checkpoints import checkpoint

    for family in FAMILIES:
        source = checkpoint(family.replace("-", "_"), 3, 0)
        for number, name in enumerate(CHANGES if family == "open-clip" else EVERYWHERE):
            target = folder / f"{family}-{number}" / "model"
            shutil.copytree(source, target)
            CHANGES[name](target, mark)
            yield f"{family}: {name}", family, target


def pictures(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield files that are named like pictures and hold PostScript, in several disguises."""
    for ending in ("jpg", "png", "img", "eps", "gif", "webp"):
        for name, start in {"plain": b"", "marked": b"\xef\xbb\xbf"}.items():
            path = folder / f"{name}.{ending}"
            path.write_bytes(start + POSTSCRIPT)
            yield f"PostScript as .{ending}, {name}", path


def main(folder: Path, mark: Path) -> None:
    """Read all of it, and print what came of each."""
    from biaslib import models
    from biaslib.pictures.images import open_image

    def ask(what: str, call: Callable) -> None:
        try:
            call()
            told = "read"
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        print(json.dumps([what, told, mark.exists()]), flush=True)
        mark.unlink(missing_ok=True)

    warnings.simplefilter("ignore")
    for what, family, path in checkpoints(folder, mark):
        ask(what, lambda family=family, path=path: models.load(family, checkpoint=path))
    for what, path in pictures(folder):
        ask(what, lambda path=path: open_image(path))


def hidden_code(families: tuple[str, ...] = FAMILIES) -> tuple[Outcome, list]:
    """Return what came of reading checkpoints and pictures that hold code, and each of them."""
    outcome = Outcome("checkpoints and pictures that hold code")
    with tempfile.TemporaryDirectory() as name:
        folder, mark = Path(name), Path(name) / "ran"
        code = (
            "from pathlib import Path; from attack import code; "
            f"code.FAMILIES = {families!r}; code.main(Path({str(folder)!r}), Path({str(mark)!r}))"
        )
        done = confined.run(code)
    seen = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    if done.returncode not in (0, confined.ATTEMPTED) or not seen:
        raise RuntimeError(done.stderr[-3000:])
    outcome.tried = len(seen)
    outcome.raw = sum(told != "read" and told.split(":")[0] not in REFUSALS for _, told, _ in seen)
    attempts = [line for line in done.stderr.splitlines() if line.split(" ")[0] in confined.REFUSED]
    outcome.run = sum(ran for *_, ran in seen) + len(attempts)
    return outcome, seen
