"""What is given for a model, and what its folder says of itself: read, or refused by name."""

import fnmatch
import json
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from biaslib.models._entries import ENTRIES, Entry
from biaslib.models._limits import require_content
from biaslib.models.downloads import ADAPTERS, TOKENIZERS, files_of, wanted
from biaslib.models.errors import CheckpointError

QUANTISED = ("quantization_config", "compression_config")
"""Settings of a network whose weights are kept in fewer bits than they are calculated with."""

QUANTISED_FILES = ("quantize_config.json", "quant_config.json")

WITH_SENTENCES = ("text", "bert")
"""Families that make one vector of a text as a sentence encoder's folder says."""

NAMES = {entry.name for entry in ENTRIES}

OF_HUB = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}(@[\w./-]+)?", re.ASCII)
HUBS = ("huggingface.co", "www.huggingface.co", "hf.co")
REVISIONS = ("tree", "blob", "resolve", "commit")
WEIGHT_FILES = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")


def place_of(given: str | Path) -> Path | str:
    """Return the path that is there, or else the name that is meant; no hub is asked.

    A folder goes before a registered name, and a file does not.

    Parameters
    ----------
    given
        A folder, ``~`` and all; a registered name; ``owner/name`` or ``owner/name@revision`` of the
        model hub, as such, behind ``hf-hub:`` or as its page's address; a name of OpenCLIP.

    Raises
    ------
    CheckpointError
        If it is a path and not there, or an address of anything but a model on the hub.

    Examples
    --------
    >>> place_of("https://huggingface.co/openai/clip-vit-base-patch32/")
    'openai/clip-vit-base-patch32'
    >>> place_of("./my-clip")
    Traceback (most recent call last):
    biaslib.models.errors.CheckpointError: ./my-clip is not there; check the path
    """
    text = str(given).strip()
    if not text:
        raise CheckpointError("a model's name is empty: give a folder, a name or owner/name")
    path = _there(given)
    if path and not (path.is_file() and text in NAMES):
        return path
    name = _of_address(text) if "://" in text or text.startswith(HUBS) else text
    name = re.sub(r"^hf[-_]hub:", "", name)
    if isinstance(given, Path) or _is_path(name):
        raise CheckpointError(f"{given} is not there; check the path", path=given)
    name = name.rstrip("/")
    if "/" in name and not OF_HUB.fullmatch(name):
        raise CheckpointError(
            f"{given} is not there, and no name of the model hub: that is owner/name", word=name
        )
    return name


def _there(given: str | Path) -> Path | None:
    try:
        path = Path(given).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long; nobody's home; a null character
        return None


def _of_address(text: str) -> str:
    """Return the name of a model on the hub, with the revision if the address has one."""
    found = urlsplit(text if "://" in text else f"https://{text}")
    parts = [part for part in found.path.split("/") if part]
    if found.scheme == "hf":
        parts = [found.netloc, *parts]
    own = urlsplit(os.environ.get("HF_ENDPOINT", "")).netloc
    if not (found.scheme == "hf" or found.netloc in HUBS or (own and found.netloc == own)):
        raise CheckpointError(f"{text} is an address of no model hub; give owner/name", word=text)
    if parts[:1] == ["models"]:
        parts = parts[1:]
    if len(parts) < 2 or parts[0] in ("datasets", "spaces"):
        raise CheckpointError(f"{text} is not the page of a model; give owner/name", word=text)
    revision = f"@{parts[3]}" if len(parts) > 3 and parts[2] in REVISIONS else ""
    return f"{parts[0]}/{parts[1]}{revision}"


def _is_path(name: str) -> bool:
    """Tell whether a name is written as that of a file or folder."""
    plain = name.partition("@")[0].rstrip("/")
    if name.startswith((".", "/", "~")) or "\\" in name or re.match(r"[A-Za-z]:", name):
        return True
    if "/" not in plain:
        return name.endswith("/")
    return plain.count("/") > 1 or plain.endswith(WEIGHT_FILES)


def inspect(path: Path, entry: Entry | None = None) -> None:
    """Refuse a folder, or a file of weights, that would be read as what it is not.

    Parameters
    ----------
    path
        The folder or file.
    entry
        What it will be read as, where that is known.

    Raises
    ------
    CheckpointError
        If a file is a pointer of Git LFS; if weights of an adapter lie beside those of the model;
        if weights are quantised; if the folder is of a sentence encoder and its pooling or a
        layer is not known here.
    """
    if path.is_file():
        beside = (path.with_name(name) for name in TOKENIZERS)
        for each in (path, *filter(Path.is_file, beside)):
            require_content(each)
        return
    names = files_of(path)
    for name in wanted(names, open_clip="open_clip_config.json" in names):
        require_content(path / name)
    for name in names:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in ADAPTERS):
            raise CheckpointError(
                f"{path} holds an adapter ({name}), which is not applied here: merge the adapter "
                "first (merge_and_unload() of peft) and save the whole model",
                path=path / name,
            )
    if told := _quantised(path, names):
        raise CheckpointError(
            f"{path} holds quantised weights ({told}), and models are read in whole precision: "
            "take the weights from before, or wrap the model in a class of your own",
            path=path,
        )
    if entry is not None and "modules.json" in names:
        _require_known_modules(path, entry)


def _quantised(folder: Path, names: list[str]) -> str:
    """Return what says that a folder's weights are quantised, or an empty string."""
    if beside := [name for name in QUANTISED_FILES if name in names]:
        return beside[0]
    config = json_of(folder / "config.json")
    parts = [config, *config.values()] if isinstance(config, dict) else []
    settings = (part.get(each) for part in parts if isinstance(part, dict) for each in QUANTISED)
    found = next(filter(None, settings), None)
    return str(found.get("quant_method", QUANTISED[0])) if isinstance(found, dict) else ""


def json_of(path: Path) -> object:
    """Return what a small file of settings holds; None if there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _require_known_modules(folder: Path, entry: Entry) -> None:
    from biaslib.models import _sentences

    if entry.family in WITH_SENTENCES:
        _sentences.modules_of(folder)
        return
    kinds = {name.rpartition(".")[2] for name, _ in _sentences.listed(folder)}
    if unknown := sorted(kinds - {"CLIPModel", "Transformer", "Normalize"}):
        raise CheckpointError(
            f"{folder} adds {', '.join(unknown)} to its network (modules.json), which "
            f"{entry.name!r} does not apply",
            path=folder / "modules.json",
            word=unknown[0],
        )
