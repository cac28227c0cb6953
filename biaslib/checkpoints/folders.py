"""What a model's folder is: of which family, and whether it is read as what it says of itself."""

import fnmatch
import functools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from biaslib.checkpoints import _trial
from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import (
    TOKENIZERS,
    files_of,
    files_read,
    read_json,
    require_no_pointer,
    require_plain,
)
from biaslib.checkpoints.sentences import listed, modules_of
from biaslib.errors import refusal
from biaslib.runtime import first_few

ADAPTERS = (
    *("adapter_config.json", "adapter_model.*", "pytorch_adapter.bin", "pytorch_lora_weights.*"),
    *("*[_.-]lora.safetensors", "lora.safetensors"),
)
"""Files of changes to a model's weights, which lie beside these."""

QUANTISED = ("quantization_config", "compression_config")
"""Settings of a network whose weights are kept in fewer bits than they are calculated with."""

QUANTISED_FILES = ("quantize_config.json", "quant_config.json")

MOST_ENTRIES, MOST_OF_TOKENIZER = 50_000, 20_000
"""Entries of one list of settings, such as labels; and of a tokenizer's, such as added tokens."""

LARGEST = (
    (r"(layers?|depths?|blocks|stages|hidden_groups|inner_group_num)$", 1_000),
    (r"(image_size|height|width)$", 2**12),
    (r"(heads|experts|labels|groups)$", 100_000),
    (r"(seq_len|seq_length|_tokens)$", 2**21),
    (r"(size|dim|channels|positions|embeddings)$", 2**25),
)
"""The largest numbers under names that end so: ten times those of any published network."""

LISTED = 5
"""Kinds of models that an error lists."""


def inspect(path: Path) -> None:
    """Refuse a folder, or a file of weights, that is not what it looks like.

    Parameters
    ----------
    path
        The folder or file.

    Raises
    ------
    CheckpointError
        If a file is a device, a pipe, a pointer of Git LFS or larger than such files are; a size or
        a list in a file of settings is absurd, or not a number (NaN); a tokenizer needs too long
        for a few words; weights of an adapter lie beside those of the model, or are quantised.
    """
    if path.is_file():
        beside = (path.with_name(name) for name in TOKENIZERS)
        for each in (path, *filter(Path.is_file, beside)):
            require_no_pointer(each)
        return
    _require_modest_files(path)
    names = files_of(path)
    for name in files_read(names, open_clip="open_clip_config.json" in names):
        require_no_pointer(path / name)
    for name in names:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in ADAPTERS):
            raise refusal(
                path / name,
                "is of an adapter, which is not applied here: merge the adapter first "
                "(merge_and_unload() of peft) and save the whole model",
            )
    if quantised := _quantised(path, names):
        raise refusal(
            path,
            f"holds quantised weights ({quantised}), and models are read in whole precision: take "
            "the weights from before, or wrap the model in a class of your own",
        )


def _quantised(folder: Path, names: list[str]) -> str:
    """Return what says that a folder's weights are quantised, or an empty string."""
    if beside := [name for name in QUANTISED_FILES if name in names]:
        return beside[0]
    config = read_json(folder / "config.json", default={})
    parts = [part for part in (config, *config.values()) if isinstance(part, dict)]
    settings = next(filter(None, (part.get(each) for part in parts for each in QUANTISED)), None)
    return str(settings.get("quant_method", QUANTISED[0])) if isinstance(settings, dict) else ""


def _require_modest_files(folder: Path) -> None:
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        is_settings = path.suffix in (".json", ".txt", ".model", ".jinja")
        if is_settings or not (path.is_file() or path.is_dir()):
            require_plain(path)
    for path in folder.glob("[!.]*.json"):
        if path.name.endswith(("index.json", "vocab.json")):
            continue
        settings = read_json(path, object)
        is_tokenizer = path.name == "tokenizer.json" and isinstance(settings, dict)
        _require_modest(settings | {"model": None} if is_tokenizer else settings, path)
        if is_tokenizer:
            steps = settings.get("normalizer"), settings.get("pre_tokenizer")
            _trial.require_quick_tokenizer([name for name, _ in _values(list(steps))], path)


def _require_modest(settings: Any, path: Path) -> None:
    entries = MOST_OF_TOKENIZER if "token" in path.name else MOST_ENTRIES
    for name, value in _values(settings):
        if isinstance(value, (list, dict)) and len(value) > entries:
            problem = f"has {len(value):,} entries, at most {entries:,} are read"
        elif isinstance(value, float) and math.isnan(value):
            problem = "is not a number"
        elif isinstance(value, (int, float)) and value > _largest(name):
            problem = f"is {value:,}, at most {_largest(name):,} is read"
        else:
            continue
        problem = f"cannot be used: {name or 'it'} {problem}; download it again, or correct it"
        raise refusal(path, problem, name or None)


def _values(settings: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all lists, settings and values, each with the name that it stands under."""
    yield name, settings
    if isinstance(settings, dict):
        # The side of a picture; beside a longest edge it counts pixels.
        alone = list(settings) == ["shortest_edge"]
        for key, value in settings.items():
            yield from _values(value, "height" if alone else key)
    elif isinstance(settings, list):
        for value in settings:
            yield from _values(value, name)


@functools.lru_cache(1024)
def _largest(name: str) -> float:
    return next((most for pattern, most in LARGEST if re.search(pattern, name)), math.inf)


def read_config(folder: Path, name: str) -> dict:
    """Return what a folder's ``config.json`` says.

    Raises
    ------
    CheckpointError
        If there is none, or it cannot be read.
    """
    path = folder / "config.json"
    if not path.exists() and not path.is_symlink():
        names = first_few(sorted(each.name for each in folder.glob("*"))) or "nothing"
        needed = f"it has no config.json, which is saved beside the weights. It holds {names}"
        raise refusal(folder, f"is no checkpoint of {name}: {needed}")
    config = read_json(path)
    named = [config.get("model_type", ""), *classes_of(config)]
    if not all(isinstance(each, str) for each in named):
        raise refusal(path, f"has {named} for model_type and architectures, which are no names")
    return config


def classes_of(config: dict) -> list[str]:
    """Return the classes that a configuration names, be it one or several.

    Examples
    --------
    >>> classes_of({"architectures": "CLIPModel"})
    ['CLIPModel']
    """
    named = config.get("architectures") or []
    return named if isinstance(named, list) else [named]


def described(config: dict) -> str:
    """Return the kind and the classes of a configuration in words."""
    classes = ", ".join(classes_of(config)) or "no architecture named"
    return f"{config.get('model_type', 'no kind')!r} ({classes})"


def kinds_of(entry: Entry) -> set[str]:
    """Return each ``model_type`` that an entry's family reads, those of its tasks written out."""
    from transformers.models.auto import modeling_auto

    tasks = {kind for kind in entry.kinds if kind.isupper()}
    lists = [getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES") for task in tasks]
    return {*entry.kinds} - tasks | {kind for names in lists for kind in names}


def require_family(folder: Path, entry: Entry) -> None:
    """Refuse a folder that a model's family is not loaded from, or would read as another model.

    OpenCLIP, the detector and families from outside look at their folders themselves.

    Raises
    ------
    CheckpointError
        If it is of another architecture, which the message names; or it is of a sentence encoder
        and its pooling or a layer is not known here.
    """
    kinds = kinds_of(entry)
    config = read_config(folder, entry.name) if kinds else {}
    if kinds and config.get("model_type") not in kinds:
        names = sorted(kinds)
        some = " or ".join(names[:LISTED]) + (" or another of its kind" * (len(names) > LISTED))
        raise refusal(
            folder,
            f"is a checkpoint of {described(config)}, and {entry.name!r} is loaded from {some}. "
            "Pass another folder as checkpoint=, or load it under the name of its own family",
        )
    if (folder / "modules.json").is_file():
        _require_known_modules(folder, entry)


def _require_known_modules(folder: Path, entry: Entry) -> None:
    if "MASKED_LM" in entry.kinds:
        modules_of(folder)
        return
    kinds = {name.rpartition(".")[2] for name, _ in listed(folder)}
    if unknown := sorted(kinds - {"CLIPModel", "Transformer", "Normalize"}):
        problem = f"adds {', '.join(unknown)} to the network, which {entry.name!r} does not apply"
        raise refusal(folder / "modules.json", problem, unknown[0])
