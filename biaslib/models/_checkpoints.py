"""Checks of a checkpoint before and after it is loaded: its kind, its files, its weights."""

import contextlib
import fnmatch
import pickle
import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch

from biaslib.models._entries import Entry
from biaslib.models._limits import read_json
from biaslib.models._revisions import weight_files
from biaslib.models.errors import CapabilityError, CheckpointError
from biaslib.runtime import first_few

LISTED = 5
"""Kinds of models that an error lists."""

OLDEST_SAFE_TORCH = (2, 6)
"""Below it, ``torch.load`` can be made to run code even with ``weights_only`` (CVE-2025-32434)."""


MOST_TOLD = 300
"""Characters of a library's message that an error repeats."""

PICKLED = (".bin", ".ckpt", ".pt", ".pth", ".th")
"""Endings of files that ``torch.save`` wrote."""

FRACTIONS = ("F", "BF")
"""How safetensors begins the names of types of fractions."""


def require_family(folder: str | Path, entry: Entry) -> None:
    """Refuse a folder that a model's family is not loaded from.

    OpenCLIP, the detector and families from outside look at their folders themselves.

    Raises
    ------
    CheckpointError
        If it is of another architecture; the message names it.
    """
    kinds = entry.kinds or _kinds_of_transformers(entry.family)
    if kinds:
        require_kind(folder, kinds, entry.name)


def _kinds_of_transformers(family: str) -> Collection[str]:
    """Return the kinds of which transformers has dual encoders, masked or generative models."""
    from transformers.models.auto import modeling_auto

    masked = modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    dual = modeling_auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES
    writing = modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    of_family = {"clip": dual, "bert": masked, "text": masked, "generative": writing}
    return of_family.get(family, ())


def require_kind(folder: str | Path, kinds: Collection[str], name: str) -> None:
    """Refuse a folder whose ``config.json`` is of another architecture.

    Parameters
    ----------
    folder
        A checkpoint in the layout of transformers.
    kinds
        Values of ``model_type`` that the model can be loaded from.
    name
        The model that was asked for, for the error.

    Raises
    ------
    CheckpointError
        If there is no ``config.json``, or it is not of one of the kinds; the message names the
        architecture that it is of.
    """
    found = read_config(Path(folder), name)
    if found.get("model_type") not in kinds:
        kind = found.get("model_type", "no kind")
        architectures = ", ".join(classes_of(found)) or "no architecture named"
        raise CheckpointError(
            f"{folder} is a checkpoint of {kind!r} ({architectures}), "
            f"and {name!r} is loaded from {_some(kinds)}. Pass another folder as checkpoint=, or "
            "load it under the name of its own family"
        )


def classes_of(config: dict) -> list[str]:
    """Return the classes that a configuration names, be it one or several.

    Examples
    --------
    >>> classes_of({"architectures": "CLIPModel"})
    ['CLIPModel']
    """
    named = config.get("architectures") or []
    return named if isinstance(named, list) else [named]


def _some(kinds: Collection[str]) -> str:
    names = sorted(kinds)
    return " or ".join(names[:LISTED]) + (" or another of its kind" if len(names) > LISTED else "")


def read_config(folder: Path, name: str) -> dict:
    """Return what a folder's ``config.json`` says.

    Raises
    ------
    CheckpointError
        If there is none, or it cannot be read.
    """
    try:
        found = read_json(folder / "config.json")
    except FileNotFoundError:
        names = sorted(each.name for each in folder.glob("*"))
        there = first_few(names) or "nothing"
        raise CheckpointError(
            f"{folder} is no checkpoint of {name}: it has no config.json, which is saved beside "
            f"the weights. It holds {there}",
            path=folder,
        ) from None
    named = [found.get("model_type", ""), *classes_of(found)]
    if not all(isinstance(each, str) for each in named):
        raise CheckpointError(
            f"{folder / 'config.json'} names its model_type and architectures {named}, which are "
            "no names; download it again",
            path=folder,
        )
    return found


def require_readable(folder: str | Path, open_clip: bool = False) -> None:
    """Refuse weights that this torch cannot read safely: pickled ones need torch 2.6 or later.

    Parameters
    ----------
    folder, open_clip
        As of :func:`biaslib.models._revisions.weight_files`.

    Raises
    ------
    CheckpointError
        If the weights that are read are pickled and torch is older; they are whole numbers; or
        they are not the folder's.
    """
    for path in weight_files(Path(folder), open_clip):
        if path.suffix in PICKLED:
            require_safe_torch(path)
        elif path.suffix == ".safetensors":
            _require_fractions(path)


def _require_fractions(path: Path) -> None:
    """Refuse weights that are kept as whole or complex numbers: libraries take them as they are."""
    from safetensors import safe_open

    with reading(path), safe_open(path, "pt") as file:
        kinds = {
            name: file.get_slice(name).get_dtype()
            for name in file.keys()  # noqa: SIM118
            if name.endswith(("weight", "bias"))
        }
    for name, kind in kinds.items():
        if not kind.startswith(FRACTIONS):
            raise CheckpointError(
                f"{path}: the weights {name} are of the type {kind}, without a scale to read them "
                "by: take the weights from before they were quantised",
                path=path,
                word=name,
            )


def require_safe_torch(path: Path) -> None:
    major, minor = torch.__version__.split(".")[:2]
    if (int(major), int(minor)) < OLDEST_SAFE_TORCH:
        raise CheckpointError(
            f"{path} is a pickled file, and torch {torch.__version__} cannot read one safely "
            "(CVE-2025-32434). Install torch 2.6 or later, or save the tensors as safetensors on "
            "a machine that has it"
        )


def read_weights(path: str | Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a weights file, by name; no code in it is run.

    Files of training programs that keep the weights under another name, and names that begin with
    ``module.``, are unwrapped: see :func:`unwrapped`.

    Parameters
    ----------
    path
        A ``.safetensors`` file, or one that ``torch.save`` wrote.

    Raises
    ------
    CheckpointError
        If the file is damaged, or holds anything but tensors and plain values.

    Examples
    --------
    >>> from plantedworld.models.checkpoints import checkpoint
    >>> weights = read_weights(checkpoint("bert", 3, 0) / "model.safetensors")
    >>> weights["cls.predictions.transform.dense.bias"].shape
    torch.Size([48])
    """
    path = Path(path)
    return unwrapped(_read(path), str(path))


def unwrapped(weights: Mapping, source: str = "the mapping") -> dict[str, torch.Tensor]:
    """Return the tensors in what a training program saved, by name.

    Parameters
    ----------
    weights
        Tensors by name, alone or under ``state_dict``, ``model`` or ``model_state_dict``.
    source
        What an error calls them.

    Raises
    ------
    CheckpointError
        If there are none.

    Examples
    --------
    >>> list(unwrapped({"state_dict": {"module.bias": torch.zeros(2)}, "epoch": 3}))
    ['bias']
    """
    for wrapper in ("state_dict", "model", "model_state_dict"):
        weights = weights[wrapper] if isinstance(weights.get(wrapper), Mapping) else weights
    tensors = {key: value for key, value in weights.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise CheckpointError(f"{source} holds no tensors; is it the right file?")
    return {key.removeprefix("module."): value for key, value in tensors.items()}


def _read(path: Path) -> dict:
    from safetensors.torch import load_file

    with reading(path):
        if path.suffix == ".safetensors":
            return load_file(path)
        require_safe_torch(path)
        return _load_pickled(path)


BESIDE = (
    *("argparse.Namespace", "easydict.EasyDict", "yacs.config.CfgNode"),
    *("pytorch_lightning.", "lightning.", "ruamel.yaml.", "ruamel_yaml."),
)
"""Classes, and packages of classes, of settings that training programs write beside weights.

An empty dictionary takes the place of each: the names are never looked up, and what the objects
held is not used.
"""


def _load_pickled(path: Path) -> dict:
    """Read a pickled file with ``weights_only``, settings beside the weights as plain data."""
    allowed: dict[str, list] = {}
    while True:
        everything = [each for some in allowed.values() for each in some]
        try:
            with torch.serialization.safe_globals(everything):
                return torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            name = _refused(error)
            if name in allowed or not (stand_ins := _stand_ins(name)):
                raise
            allowed[name] = stand_ins


def _refused(error: Exception) -> str:
    """Return the name that ``weights_only`` refused to look up, or an empty string."""
    found = re.search(r"GLOBAL (\S+) was not an allowed", str(error))
    return found.group(1) if found else ""


def _stand_ins(name: str) -> list:
    """Return what a refused name may stand for: plain data of settings, a number of NumPy."""
    if name.endswith("core.multiarray.scalar"):
        numbers = [type(np.dtype(kind)) for kind in "?bBhHiIlLqQefd"]
        return [(np.float64(0).__reduce__()[0], name), np.dtype, *numbers]
    if name.startswith("pathlib."):
        return [(_joined, name)]
    return [(OrderedDict, name)] if name.startswith(BESIDE) else []


def _joined(*parts: str) -> str:
    return "/".join(parts)


@contextlib.contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Say of a file or folder that is read in the block what is wrong with its weights.

    Raises
    ------
    CheckpointError
        If it is damaged, or holds anything but tensors and plain values.
    """
    from safetensors import SafetensorError

    try:
        yield
    except pickle.UnpicklingError as error:
        told = str(error).splitlines()[0]
        if name := _refused(error):
            told = f"it names {name}. Pass a file that holds the weights alone"
        raise CheckpointError(
            f"{path} is damaged, or holds objects and not only weights, which are never run: {told}"
        ) from error
    except (SafetensorError, EOFError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "PytorchStreamReader" not in str(error):
            raise
        raise CheckpointError(f"{path} is damaged ({error}); download it again") from error


@contextlib.contextmanager
def loading(
    path: str | Path, name: str, passing: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Say of whatever is wrong with a checkpoint that the block reads which checkpoint it is.

    A lack of memory on a GPU, a capability that a model lacks and an interruption are none of its
    faults.

    Parameters
    ----------
    path, name
        The checkpoint, and the model that was asked for.
    passing
        Errors that are the caller's.

    Raises
    ------
    CheckpointError
        If it cannot be read, whatever the cause; with what a library said.
    """
    try:
        yield
    except CheckpointError as error:
        error.path = error.path or Path(path)
        raise
    except (*passing, CapabilityError, torch.cuda.OutOfMemoryError):
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # A panic in Rust is no Exception.
        if "CUDA" in str(error):
            raise
        told = " ".join(str(error).split())[:MOST_TOLD] or "no reason given"
        raise CheckpointError(
            f"{path} cannot be read as {name!r} ({type(error).__name__}: {told}). Check that all "
            "its files are there, unchanged and of that model, or download it again",
            path=path,
        ) from error


@contextlib.contextmanager
def without_hub(path: str | Path) -> Iterator[None]:
    """Let no library ask the model hub in the block, whatever a configuration names.

    Raises
    ------
    CheckpointError
        If one tried to.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import OfflineModeIsEnabled

    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    except OfflineModeIsEnabled as error:
        raise CheckpointError(
            f"{path} asks for files of another repository ({error}), unchecked and unrecorded. "
            "Put them into that folder, and name them there"
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = before


def require_complete(
    info: dict,
    name: str = "the model",
    allowed_missing: Iterable[str] = (),
    allowed_unexpected: Iterable[str] = (),
) -> None:
    """Refuse a checkpoint of which weights were missing or left over.

    transformers fills in what is missing with random numbers and only warns.

    Parameters
    ----------
    info
        What ``from_pretrained(..., output_loading_info=True)`` returns beside the model.
    name
        The model that was asked for, for the error.
    allowed_missing, allowed_unexpected
        Patterns, as of a shell, of weights that may be missing or left over: a pooler that nothing
        reads, the head of another task.

    Raises
    ------
    CheckpointError
        If others were; the message names them.

    Examples
    --------
    >>> info = {"missing_keys": {"bert.pooler.dense.bias"}, "unexpected_keys": set()}
    >>> require_complete(info, "bert", allowed_missing=["*.pooler.*"])
    >>> require_complete(info, "bert")
    Traceback (most recent call last):
        ...
    biaslib.models.errors.CheckpointError: the checkpoint of 'bert' lacks 1 weight that \
the model needs: bert.pooler.dense.bias. It may be damaged, or of another model; nothing was loaded
    """
    missing = _others(info["missing_keys"], allowed_missing)
    unexpected = _others(info["unexpected_keys"], allowed_unexpected)
    other_shape = [
        f"{key} {tuple(there)} not {tuple(needed)}"
        for key, there, needed in sorted(info.get("mismatched_keys") or [])
    ]
    problems = [
        (f"lacks {_count(missing)} that the model needs", missing),
        (f"holds {_count(unexpected)} that the model does not know", unexpected),
        (f"holds {_count(other_shape)} of another shape", other_shape),
    ]
    told = "; it ".join(f"{what}: {first_few(keys)}" for what, keys in problems if keys)
    if told:
        raise CheckpointError(
            f"the checkpoint of {name!r} {told}. It may be damaged, or of another model; nothing "
            "was loaded"
        )


def require_same(
    found: Mapping[str, torch.Tensor],
    needed: Mapping[str, torch.Tensor],
    name: str,
    allowed_missing: Iterable[str] = (),
) -> None:
    """Refuse tensors that are not the model's: :func:`require_complete` for a plain file.

    Parameters
    ----------
    found, needed
        Tensors by their names in the file, and in the model's ``state_dict``.
    name, allowed_missing
        As of :func:`require_complete`.

    Raises
    ------
    CheckpointError
        If tensors are missing, left over or of another shape; the message names them.

    Examples
    --------
    >>> one = torch.zeros(1)
    >>> require_same({"a": one}, {"a": one, "itm_score.bias": one}, "vilt", ["itm_score.*"])
    """
    both = found.keys() & needed.keys()
    shapes = [(key, found[key].shape, needed[key].shape) for key in both]
    info = {
        "missing_keys": needed.keys() - found.keys(),
        "unexpected_keys": found.keys() - needed.keys(),
        "mismatched_keys": [each for each in shapes if each[1] != each[2]],
    }
    require_complete(info, name, allowed_missing)


def require_finite(
    network: torch.nn.Module, folder: str | Path, missing: Collection[str] = ()
) -> None:
    """Refuse weights that are no numbers, or infinite: what they give is no number either.

    Parameters
    ----------
    network
        Loaded.
    folder
        It came from.
    missing
        Weights that did not, and that nothing reads.

    Raises
    ------
    CheckpointError
        If there are any; the message names the first tensor.
    """
    for name, each in network.named_parameters():
        if name not in missing and not torch.isfinite(each.detach()).all():
            raise CheckpointError(
                f"{folder}: the weights {name} hold what is no finite number. The file is damaged, "
                "or the training diverged; download it again",
                path=folder,
                word=name,
            )


def require_told_apart(vectors: np.ndarray, folder: str | Path, settings: str) -> None:
    """Refuse a model that gives what is no number, or the same for all that it is tried out with.

    Parameters
    ----------
    vectors
        One a text or picture, (n, d); the texts or pictures differ.
    folder, settings
        Where it came from, and the name of a file there that may be at fault.

    Raises
    ------
    CheckpointError
        If it does.
    """
    if np.isfinite(vectors).all() and (vectors != vectors[0]).any():
        return
    raise CheckpointError(
        f"{folder} gives what is no number, or the same for whatever it reads: its weights or "
        f"its {settings} are damaged; download them again",
        path=folder,
    )


def _others(keys: Iterable[str], allowed: Iterable[str]) -> list[str]:
    allowed = list(allowed)
    return sorted(k for k in keys if not any(fnmatch.fnmatchcase(k, each) for each in allowed))


def _count(keys: list[str]) -> str:
    return f"{len(keys)} weight{'' if len(keys) == 1 else 's'}"
