"""What a model's folder is: of which family, and whether it is read as what it says of itself."""

import fnmatch
from pathlib import Path

from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import (
    OF_SENTENCES,
    TOKENIZERS,
    below,
    files_of,
    files_read,
    read_json,
    require_no_pointer,
)
from biaslib.checkpoints.sentences import listed, modules_of
from biaslib.errors import refusal
from biaslib.runtime import first_few

ADAPTERS = (
    "adapter_config.json",
    "adapter_model.*",
    "pytorch_adapter.bin",
    "pytorch_lora_weights.*",
    "*[_.-]lora.safetensors",
    "lora.safetensors",
)
"""Files of changes to a model's weights, which lie beside these."""

QUANTISED = ("quantization_config", "compression_config")
"""Settings of a network whose weights are kept in fewer bits than they are calculated with."""

QUANTISED_FILES = ("quantize_config.json", "quant_config.json")

OLD_NETWORK = "0_Transformer"
"""Where sentence encoders of 2020 keep their network."""

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
        If a file is a pointer of Git LFS or a link to nothing, weights of an adapter lie beside
        those of the model, the weights are quantised, or a sentence encoder is not whole.
    """
    if path.is_file():
        beside = (path.with_name(name) for name in TOKENIZERS)
        for file in (path, *filter(Path.is_file, beside)):
            require_no_pointer(file)
        return
    names = files_of(path)
    linked = [file.name for file in path.iterdir() if file.is_symlink() and not file.exists()]
    for name in files_read(linked, open_clip=True):
        raise refusal(path / name, "is a link to nothing: put the file itself there")
    for name in files_read(names, open_clip="open_clip_config.json" in names):
        require_no_pointer(path / name)
    _require_whole_sentence_encoder(path)
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


def _require_whole_sentence_encoder(folder: Path) -> None:
    """Refuse parts of a sentence encoder without the list of them, or in the layout of 2020.

    Its network alone would be read as another model: with the pooling of a plain one.
    """
    listed = (folder / "modules.json").is_file()
    for pattern in (OLD_NETWORK,) if listed else (OLD_NETWORK, "[1-9]*_Pooling", *OF_SENTENCES):
        for part in folder.glob(pattern):
            raise refusal(
                part,
                "is of a sentence encoder of which modules.json is missing or the network lies in "
                "a folder of its own: put modules.json there, and what SentenceTransformer saves",
            )


def _quantised(folder: Path, names: list[str]) -> str:
    """Return what says that a folder's weights are quantised, or an empty string."""
    if beside := [name for name in QUANTISED_FILES if name in names]:
        return beside[0]
    config = read_json(folder / "config.json", default={})
    parts = [part for part in (config, *config.values()) if isinstance(part, dict)]
    settings = next(filter(None, (part.get(name) for part in parts for name in QUANTISED)), None)
    return str(settings.get("quant_method", QUANTISED[0])) if isinstance(settings, dict) else ""


def read_config(folder: Path, name: str) -> dict:
    """Return what a folder's ``config.json`` says.

    Raises
    ------
    CheckpointError
        If there is none, or it cannot be read.
    """
    path = folder / "config.json"
    if not path.exists() and not path.is_symlink():
        names = first_few(sorted(path.name for path in folder.glob("*"))) or "nothing"
        needed = "it has no config.json (OpenCLIP: open_clip_config.json) beside weights"
        where = below(folder, "config.json", "open_clip_config.json")
        raise refusal(folder, f"is no checkpoint of {name}: {needed}{where}. It holds {names}")
    config = read_json(path)
    named = [config.get("model_type", ""), *classes_of(config)]
    if not all(isinstance(name, str) for name in named):
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
