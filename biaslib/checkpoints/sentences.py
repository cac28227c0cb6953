"""What the folder of a sentence encoder says of how one vector of a text is made."""

import re
from dataclasses import dataclass
from pathlib import Path

from biaslib.checkpoints.files import read_json
from biaslib.errors import CheckpointError

LEGACY = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Switches of older folders, in the order in which several are put together."""

ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid", "SiLU")
"""Activations of torch that a layer may have."""

THE_SENTENCE = (None, "sentence_embedding")


@dataclass(frozen=True)
class Dense:
    """A layer as its folder describes it."""

    folder: Path
    inputs: int
    outputs: int
    bias: bool
    activation: str


@dataclass(frozen=True)
class Modules:
    """What a sentence encoder's folder says.

    Attributes
    ----------
    modes
        Of its pooling.
    layers
        Behind it: layers with weights, or None for vectors of length 1.
    lower
        Whether texts are lowered first.
    limit
        Tokens that a text may have, or None.
    """

    modes: tuple[str, ...]
    layers: tuple[Dense | None, ...]
    lower: bool
    limit: int | None


def modules_of(folder: Path) -> Modules | None:
    """Return what a folder says of a sentence encoder; None if it is of none.

    Raises
    ------
    CheckpointError
        If it says something that is not done here; the message names it.
    """
    if not (folder / "modules.json").is_file():
        return None
    modes, layers = (), []
    for at, (kind, place) in enumerate(listed(folder)):
        name = kind.rpartition(".")[2]
        known = kind.startswith("sentence_transformers.")
        if known and at == 0 and (name, place) == ("Transformer", ""):
            continue
        settings = _settings(folder, place, required=name in ("Pooling", "Dense"))
        if known and at == 1 and name == "Pooling":
            modes = _modes(folder, settings)
        elif known and modes and name == "Dense":
            layers.append(_dense(folder / place, settings))
        elif known and modes and name == "Normalize":
            _require_plain(folder / place, settings)
            layers.append(None)
        elif not (known and modes and name == "Dropout"):
            where = f" in {place}" if place else ""
            raise _refused(folder / "modules.json", f"{kind} as module {at}{where}", name)
    if not modes:
        raise _refused(folder / "modules.json", "no module Pooling", "Pooling")
    beside = _beside(folder)
    limit = beside.get("max_seq_length")
    limit = limit if isinstance(limit, int) and limit > 0 else None
    return Modules(modes, tuple(layers), bool(beside.get("do_lower_case")), limit)


def listed(folder: Path) -> list[tuple[str, str]]:
    """Return the class and the folder of each module, in order."""
    path = folder / "modules.json"
    rows = read_json(path, list)
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise CheckpointError(f"{path} is no list of modules; download it again", path=path)
    modules = [(str(row.get("type")), str(row.get("path"))) for row in rows]
    for kind, place in modules:
        if not re.fullmatch(r"(\w+)?", place, re.ASCII):
            raise _refused(path, f"{kind} in {place}", place)
    return modules


def _refused(path: Path, what: str, word: str) -> CheckpointError:
    return CheckpointError(
        f"{path} says that the sentence encoder has {what}, which is not done here: it would be "
        "read as another model. Wrap it in a class with embed() of your own",
        path=path,
        word=word,
    )


def _settings(folder: Path, place: str, required: bool) -> dict:
    path = folder / place / "config.json"
    if required and not (place and path.is_file()):
        raise CheckpointError(
            f"{path} is not there or holds no settings, and modules.json names it", path=path
        )
    return read_json(path, default={}) if place else {}


def _modes(folder: Path, settings: dict) -> tuple[str, ...]:
    on = tuple(mode for switch, mode in LEGACY.items() if settings.get(switch))
    given = settings.get("pooling_mode", on or "mean")
    modes = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    for switch, value in settings.items():
        if switch.startswith("pooling_mode_") and switch not in LEGACY and value:
            raise _refused(folder / "modules.json", f"the pooling {switch}", switch)
    for mode in modes:
        if mode not in LEGACY.values():
            raise _refused(folder / "modules.json", f"the pooling {mode!r}", str(mode))
    return modes


def _require_plain(folder: Path, settings: dict) -> None:
    """Refuse a layer that reads or writes anything but the text's vector."""
    for end in ("module_input_name", "module_output_name"):
        if settings.get(end) not in THE_SENTENCE:
            raise _refused(folder, f"{end} {settings[end]!r}", str(settings[end]))


def _dense(folder: Path, settings: dict) -> Dense:
    _require_plain(folder, settings)
    if settings.get("use_residual"):
        raise _refused(folder, "a layer with use_residual", "use_residual")
    named = str(settings.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = named.rpartition(".")[2]
    if not named.startswith("torch.nn.") or activation not in ACTIVATIONS:
        raise _refused(folder, f"the activation {named}", named)
    sizes = settings.get("in_features"), settings.get("out_features")
    if not all(isinstance(size, int) and 0 < size < 1 << 20 for size in sizes):
        raise CheckpointError(f"{folder}/config.json has no sizes of its layer", path=folder)
    return Dense(folder, *sizes, bool(settings.get("bias", True)), activation)


def _beside(folder: Path) -> dict:
    """Return the settings of the network beside its configuration."""
    about = read_json(folder / "config_sentence_transformers.json", default={})
    prompts, name = about.get("prompts"), about.get("default_prompt_name")
    prompts = {"query": "", "document": ""} | (prompts if isinstance(prompts, dict) else {})
    changes = {
        str(name): name and prompts.get(str(name), "an unknown prompt"),
        "truncate_dim": about.get("truncate_dim"),
    }
    for word, change in changes.items():
        if change:
            path = folder / "config_sentence_transformers.json"
            raise _refused(path, f"{change!r} for every text ({word})", word)
    paths = sorted(folder.glob("sentence_*_config.json"))
    return read_json(paths[0]) if paths else {}
