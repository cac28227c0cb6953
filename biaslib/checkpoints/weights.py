"""Weights are read safely: no code in them is run, and they are whole and the network's own."""

import contextlib
import fnmatch
import math
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch

from biaslib.checkpoints.files import weight_files
from biaslib.errors import CapabilityError, CheckpointError, refusal
from biaslib.runtime import first_few

OLDEST_SAFE_TORCH = (2, 6)
"""Below it, ``torch.load`` can be made to run code even with ``weights_only`` (CVE-2025-32434)."""

OF_WORDS = re.compile(r"(word_embeddings|token_embedding|embed_tokens|wte)\.weight$")
"""What networks call the table with a row for each token."""

MOST_TOLD = 300
"""Characters of a library's message that an error repeats."""

PICKLED = (".bin", ".ckpt", ".pt", ".pth", ".th")
"""Endings of files that ``torch.save`` wrote."""

ADVICE = re.compile(
    r"(Weights only load failed\. )?In PyTorch 2\.6.*?(WeightsUnpickler error:|\Z)", re.DOTALL
)
"""What ``torch.load`` says of running the code in a file, which nobody should."""

MUCH = 10**9
"""Bytes of weights from which on it is told that they are read."""

FRACTIONS = ("F", "BF")
"""How safetensors and torch begin the names of types of fractions."""

BESIDE = (
    "argparse.Namespace",
    "easydict.EasyDict",
    "yacs.config.CfgNode",
    "pytorch_lightning.",
    "lightning.",
    "ruamel.yaml.",
    "ruamel_yaml.",
)
"""Classes, and packages of classes, of settings that training programs write beside weights.

An empty dictionary takes the place of each: the names are never looked up, and what the objects
held is not used.
"""


def require_readable(path: Path, open_clip: bool = False) -> None:
    """Refuse weights that this torch cannot read safely, or that libraries would take for others.

    Parameters
    ----------
    path
        A file of weights, or a folder.
    open_clip
        As of :func:`biaslib.checkpoints.files.weight_files`.

    Raises
    ------
    CheckpointError
        If the weights that are read are pickled and torch is older than 2.6; they are whole or
        complex numbers, which libraries take as they are; or they are not the folder's.

    Warns
    -----
    RuntimeWarning
        Of the memory that the weights will take, if it is more than :data:`MUCH`.
    """
    files = [path] if path.is_file() else weight_files(path, open_clip)
    for file in files:
        if file.suffix in PICKLED:
            require_safe_torch(file)
        for name, (_, kind) in _tensors_in(file).items():
            if name.endswith(("weight", "bias")) and not kind.startswith(FRACTIONS):
                problem = f"holds {name} of the type {kind}, without a scale to read it by"
                fix = "take the weights from before they were quantised"
                raise refusal(file, f"{problem}: {fix}", name)
    if (size := sum(file.stat().st_size for file in files)) > MUCH:
        # Of this machine and not of the model: no note of a report.
        told = f"{path}: {size / 1e9:.1f} GB of weights are read into memory"
        warnings.warn(told, RuntimeWarning, stacklevel=2)


def _tensors_in(path: Path) -> dict[str, tuple[Iterable[int], str]]:
    """Return the shape and the type of each tensor of a file; no memory is taken for them."""
    from safetensors import safe_open

    if path.suffix in PICKLED:
        found = unwrapped(_load_pickled(path, "meta"), str(path)).items()
        return {
            name: (each.shape, str(each.dtype)[len("torch.") :].upper()) for name, each in found
        }
    if path.suffix != ".safetensors":
        return {}
    with reading(path), safe_open(path, "pt") as file:
        found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        return {name: (each.get_shape(), each.get_dtype()) for name, each in found.items()}


def numbers_in(paths: Iterable[Path]) -> int:
    """Return how many numbers files of weights hold; no memory is taken for them.

    Raises
    ------
    CheckpointError
        If a file is damaged, or holds anything but tensors and plain values.

    Examples
    --------
    >>> from plantedworld.models.checkpoints import checkpoint
    >>> numbers_in(weight_files(checkpoint("bert", 3, 0)))
    87241
    """
    return sum(math.prod(shape) for path in paths for shape, _ in _tensors_in(path).values())


def require_numbers_for(build: Callable[[], torch.nn.Module], settings: Path, files: list) -> None:
    """Refuse a network of far more numbers than its weights, before memory is taken for them.

    A head that the files lack is smaller than what they hold. Weights of another shape are named
    when they are read.

    Raises
    ------
    CheckpointError
        If the network that is built by its settings is more than twice what the files hold.
    """
    try:
        with torch.device("meta"):
            built = build()
    except Exception:  # the reading that follows builds it too, and says what is wrong
        return
    needed, held = sum(each.numel() for each in built.parameters()), numbers_in(files)
    if 0 < 2 * held < needed:
        problem = f"asks for a network of {needed:,} numbers, and its weights are {held:,}"
        raise refusal(settings, f"{problem}: download it again, or correct it")


def require_safe_torch(path: Path) -> None:
    """Refuse a pickled file if torch is older than :data:`OLDEST_SAFE_TORCH`."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < OLDEST_SAFE_TORCH:
        raise refusal(
            path,
            f"is a pickled file, and torch {torch.__version__} cannot read one safely "
            "(CVE-2025-32434): install torch 2.6 or later, or save the tensors as safetensors",
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
    from safetensors.torch import load_file

    path = Path(path)
    if path.suffix == ".safetensors":
        with reading(path):
            return unwrapped(load_file(path), str(path))
    require_safe_torch(path)
    return unwrapped(_load_pickled(path), str(path))


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
    weights = weights if isinstance(weights, Mapping) else {}
    for wrapper in ("state_dict", "model", "model_state_dict"):
        weights = weights[wrapper] if isinstance(weights.get(wrapper), Mapping) else weights
    tensors = {key: value for key, value in weights.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise CheckpointError(f"{source} holds no tensors by name; is it the right file?")
    return {key.removeprefix("module."): value for key, value in tensors.items()}


def _load_pickled(path: Path, device: str = "cpu") -> dict:
    """Read a pickled file with ``weights_only``, settings beside the weights as plain data."""
    names, allowed = set(), []
    while True:
        try:
            with torch.serialization.safe_globals(allowed):
                return torch.load(path, map_location=device, weights_only=True)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a damaged pickle fails in any way
            name = _refused(error)
            if "DefaultCPUAllocator" in str(error):
                raise
            if name in names or not _stand_ins(name):
                problem = (ADVICE.sub("", str(error)).strip().splitlines() or ["it ends early"])[0]
                if name:
                    problem = f"it names {name}. Pass a file that holds the weights alone"
                what = "is damaged, or holds objects and not only weights, which are never run"
                raise refusal(path, f"{what}: {problem:.{MOST_TOLD}}", name or None) from error
            names.add(name)
            allowed += _stand_ins(name)


def _refused(error: Exception) -> str:
    """Return the name that ``weights_only`` refused to look up, or an empty string."""
    named = re.search(r"GLOBAL (\S+) (was not an allowed|whose module)", str(error))
    return named.group(1) if named else ""


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
        If it is damaged.
    """
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        raise refusal(path, f"is damaged ({error}); download it again") from error


@contextlib.contextmanager
def loading(
    path: str | Path, name: str, passing: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Say of whatever is wrong with a checkpoint that the block reads which checkpoint it is.

    A lack of memory on a GPU, a capability that a model lacks and an interruption are none of its
    faults. No library asks the model hub in the block, whatever a configuration names.

    Parameters
    ----------
    path, name
        The checkpoint, and the model that was asked for; empty where only the checkpoint was named.
    passing
        Errors that are the caller's.

    Raises
    ------
    CheckpointError
        If it cannot be read, whatever the cause; with what a library said.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import OfflineModeIsEnabled

    passing = (*passing, CapabilityError, torch.cuda.OutOfMemoryError)
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        with reading(path):
            yield
    except CheckpointError as error:
        if error.path is not None:
            raise
        raise refusal(path, f"cannot be read: {error}", error.word) from error
    except OfflineModeIsEnabled as error:
        problem = f"asks for files of another repository ({error}), unchecked and unrecorded"
        raise refusal(path, f"{problem}: put them into that folder, and name them there") from error
    except PermissionError as error:
        problem = "may not be opened: change its rights, or use a copy of your own"
        raise refusal(error.filename or path, problem) from error
    except (*passing, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # A panic in Rust is no Exception.
        if "CUDA" in str(error):
            raise
        reason = " ".join(str(error).split())[:MOST_TOLD] or "no reason given"
        raise refusal(
            path,
            f"cannot be read{f' as {name!r}' if name else ''} ({type(error).__name__}: {reason}). "
            "Check that all its files are there, unchanged and of one model, or download it again",
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
    biaslib.errors.CheckpointError: the checkpoint of 'bert' lacks 1 weight that \
the model needs: bert.pooler.dense.bias. It may be damaged, or of another model; nothing was loaded
    """
    missing = _others(info["missing_keys"], allowed_missing)
    unexpected = _others(info["unexpected_keys"], allowed_unexpected)
    shapes = sorted(info.get("mismatched_keys") or [])
    misshapen = [f"{key} {tuple(has)} not {tuple(needs)}" for key, has, needs in shapes]
    added = [has[0] for key, has, needs in shapes if OF_WORDS.search(key) and has[0] > needs[0]]
    problems = [
        ("lacks {} that the model needs", missing),
        ("holds {} that the model does not know", unexpected),
        ("holds {} of another shape", misshapen),
    ]
    if any(keys for _, keys in problems):
        named = (f"{what.format(_count(k))}: {first_few(k)}" for what, k in problems if k)
        cause = "It may be damaged, or of another model"
        if added:
            cause = f"If tokens were added, set vocab_size to {added[0]} in config.json"
        raise CheckpointError(
            f"the checkpoint of {name!r} {'; it '.join(named)}. {cause}; nothing was loaded",
            word=shapes[0][0] if shapes else None,
        )


def require_same(
    held: Mapping[str, torch.Tensor],
    needed: Mapping[str, torch.Tensor],
    name: str,
    allowed_missing: Iterable[str] = (),
) -> None:
    """Refuse tensors that are not the model's: :func:`require_complete` for a plain file.

    Parameters
    ----------
    held, needed
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
    shapes = [(key, held[key].shape, needed[key].shape) for key in held.keys() & needed.keys()]
    info = {
        "missing_keys": needed.keys() - held.keys(),
        "unexpected_keys": held.keys() - needed.keys(),
        "mismatched_keys": [(key, has, needs) for key, has, needs in shapes if has != needs],
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
    for name, weights in network.named_parameters():
        if name not in missing and not torch.isfinite(weights.detach()).all():
            problem = f"has weights {name} that are no finite numbers: it is damaged, or training"
            raise refusal(folder, f"{problem} diverged; download it again", name)


def _others(keys: Iterable[str], allowed: Iterable[str]) -> list[str]:
    allowed = list(allowed)
    return sorted(k for k in keys if not any(fnmatch.fnmatchcase(k, one) for one in allowed))


def _count(keys: list[str]) -> str:
    return f"{len(keys)} weight{'' if len(keys) == 1 else 's'}"
