"""A model's folder: where it is, which of its files are read, what it says of itself, its name.

Nothing of it is believed before it is checked: :func:`inspect` refuses what would be read as
another model, or would take more memory than any network does.
"""

import fnmatch
import functools
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from biaslib.models import _trial
from biaslib.models._entries import ENTRIES, Entry
from biaslib.models.errors import CheckpointError, refusal
from biaslib.runtime import file_sha256, first_few

# Paths and names

SITE = "https://huggingface.co"
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}(@[\w./-]+)?", re.ASCII)
HUB_PAGE = re.compile(r"((https?://)?(www\.)?(huggingface\.co|hf\.co)/|hf://|hf[-_]hub:)(models/)?")
PART_OF_PAGE = re.compile(r"(?<=.)/(tree|blob|resolve|commit)/(?P<revision>[^/?#]+).*|[?#].*")
WEIGHT_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")

# Files

TOKENIZERS = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt"),
)
"""Files of tokenizers of transformers."""

OF_IMAGES = ("preprocessor_config.json", "processor_config.json")

SETTINGS = (
    *("config.json", "config.yaml", "open_clip_config.json", *OF_IMAGES),
    *("video_preprocessor_config.json", "chat_template.jinja", "chat_template.json"),
    *(*TOKENIZERS, "*.model"),
)
"""What is read of a folder beside its weights; programs (``*.py``) never are."""

OF_SENTENCES = ("modules.json", "sentence_*_config.json", "config_sentence_transformers.json")
"""Settings that tell how a sentence encoder makes one vector of a text's tokens."""

LAYER = re.compile(
    r"[1-9]\d?_\w{1,30}/(config\.json|model\.safetensors|pytorch_model\.bin)", re.ASCII
)
"""Files of a sentence encoder's pooling and layers, each in a folder of its own."""

ADAPTERS = (
    *("adapter_config.json", "adapter_model.*", "pytorch_adapter.bin", "pytorch_lora_weights.*"),
    *("*[_.-]lora.safetensors", "lora.safetensors"),
)
"""Files of changes to a model's weights, which lie beside these."""

WEIGHTS = (
    *("model.safetensors", "model.safetensors.index.json"),
    *("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
"""Files of weights in the order of transformers; an index lists the others."""

OPEN_CLIP_WEIGHTS = (
    *("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors"),
    *("open_clip_pytorch_model.bin", "open_clip_pytorch_model.pth"),
)
"""Those of OpenCLIP, which it takes before the others."""

AT_THE_TOP = re.compile(r"[^./\\\x00-\x1f:][^/\\\x00-\x1f:]*")
"""A file's name without folders, drives or control characters, that does not begin with a dot."""

# What settings may say

QUANTISED = ("quantization_config", "compression_config")
"""Settings of a network whose weights are kept in fewer bits than they are calculated with."""

QUANTISED_FILES = ("quantize_config.json", "quant_config.json")

MOST_BYTES, MOST_OF_WORDS = 2**24, 2**27
"""Bytes of a file of settings, and of one that lists words or the names of weights."""

OF_WORDS = re.compile(r"(tokenizer|vocab|merges|added_tokens).*|.*(index\.json|\.model)")

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

POINTER = b"version https://git-lfs.github.com/spec/"
LISTED = 5
"""Kinds of models that an error lists."""


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
    biaslib.models.errors.CheckpointError: ./my-clip is not there, and no name of the model hub, \
which is owner/name: check the path
    """
    text = str(given).strip()
    path = _existing(given) if text else None
    if path and not (path.is_file() and any(entry.name == text for entry in ENTRIES)):
        return path
    if re.fullmatch(r"[^./~\\][^/\\]*", text) and not isinstance(given, Path):
        return text
    name = text.removeprefix(f"{os.environ.get('HF_ENDPOINT', SITE)}/")
    name = PART_OF_PAGE.sub(_revision_of_page, HUB_PAGE.sub("", name)).rstrip("/")
    is_file = name.endswith(WEIGHT_ENDINGS) or isinstance(given, Path)
    if is_file or not HUB_NAME.fullmatch(name):
        raise CheckpointError(
            f"{given} is not there, and no name of the model hub, which is owner/name: check the "
            "path",
            path=given if text and "://" not in text else None,
        )
    return name


def _existing(given: str | Path) -> Path | None:
    try:
        path = Path(given).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long; nobody's home; a null character
        return None


def _revision_of_page(found: re.Match) -> str:
    return f"@{found['revision']}" if found["revision"] else ""


def files_of(folder: Path) -> list[str]:
    """Return the names of a folder's files, and of those in folders of a sentence encoder's."""
    deep = folder.glob("[1-9]*_*/*") if (folder / "modules.json").is_file() else ()
    paths = [path for path in (*folder.glob("*"), *deep) if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that match, of files at the top of a folder, in order.

    A shell's ``*`` stands for slashes too, so that a listing could name a place outside the folder
    of the download; whoever serves it may not be the hub.
    """
    plain = [name for name in sorted(names) if AT_THE_TOP.fullmatch(name)]
    return [name for name in plain if any(fnmatch.fnmatchcase(name, each) for each in patterns)]


def files_read(names: Iterable[str], open_clip: bool = False) -> list[str]:
    """Return which of a repository's files are read, where OpenCLIP reads it or another library.

    Examples
    --------
    >>> files_read(["README.md", "config.json", "model.safetensors", "pytorch_model.bin"])
    ['config.json', 'model.safetensors']
    """
    names = sorted(names)
    read = matching(names, ("adapter_config.json", *SETTINGS)) + weights_among(names, open_clip)
    if "modules.json" in names:
        layers = [name for name in names if LAYER.fullmatch(name)]
        safe = {name.rpartition("/")[0] for name in layers if name.endswith(".safetensors")}
        twice = {f"{layer}/pytorch_model.bin" for layer in safe}
        read += matching(names, OF_SENTENCES) + [name for name in layers if name not in twice]
    return read


def weights_among(names: Iterable[str], open_clip: bool = False) -> list[str]:
    """Return the names of the weights among those of a repository, the first that are known."""
    kinds = (*OPEN_CLIP_WEIGHTS, *WEIGHTS) if open_clip else WEIGHTS
    for kind in kinds:
        if found := matching(names, [kind]):
            stem, _, rest = kind.partition(".")
            shards = [f"{stem}-*.{rest.removesuffix('.index.json')}"]
            return found + (matching(names, shards) if kind.endswith(".index.json") else [])
    return []


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
            _require_no_pointer(each)
        return
    _require_modest_files(path)
    names = files_of(path)
    for name in files_read(names, open_clip="open_clip_config.json" in names):
        _require_no_pointer(path / name)
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


def read_json(path: Path, kind: type = dict, default: Any = None) -> Any:
    """Return what a file of settings holds: the one way in which settings are read.

    Parameters
    ----------
    path
        The file.
    kind
        What it must hold.
    default
        What is returned if there is no file; None refuses that.

    Raises
    ------
    FileNotFoundError
        If there is none.
    CheckpointError
        If it is no plain file, too large, no JSON, or holds something else than the kind.
    """
    if default is not None and not path.exists():
        return default
    _require_plain(path)
    _require_no_pointer(path)
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise refusal(path, f"is not valid JSON ({error}); download it again") from None
    if not isinstance(settings, kind):
        needed = "list" if kind is list else "settings by name"
        raise refusal(path, f"holds {settings!r:.40}, and no {needed}; download it again")
    return settings


def _require_modest_files(folder: Path) -> None:
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        is_settings = path.suffix in (".json", ".txt", ".model", ".jinja")
        if is_settings or not (path.is_file() or path.is_dir()):
            _require_plain(path)
    for path in folder.glob("[!.]*.json"):
        if path.name.endswith(("index.json", "vocab.json")):
            continue
        settings = read_json(path, object)
        is_tokenizer = path.name == "tokenizer.json" and isinstance(settings, dict)
        _require_modest(settings | {"model": None} if is_tokenizer else settings, path)
        if is_tokenizer:
            steps = settings.get("normalizer"), settings.get("pre_tokenizer")
            _trial.require_quick_tokenizer([name for name, _ in _values(list(steps))], path)


def _require_plain(path: Path) -> None:
    """Refuse a file of settings that is none, or larger than any is."""
    if path.exists() and not path.is_file():
        raise refusal(path, "is no plain file: put a file there")
    most = MOST_OF_WORDS if OF_WORDS.fullmatch(path.name) else MOST_BYTES
    size = path.stat().st_size if path.exists() else 0
    if size > most:
        sizes = f"{size / 1e6:,.0f} MB, and such files have at most {most / 1e6:,.0f}"
        raise refusal(path, f"has {sizes}; download it again")


def _require_no_pointer(path: Path) -> None:
    """Refuse a pointer of Git LFS in place of a file."""
    with open(path, "rb") as stream:
        begun = stream.read(len(POINTER))
    if begun == POINTER:
        fix = "run `git lfs pull` in the folder, or give owner/name of the hub"
        raise refusal(path, f"is a pointer of Git LFS, and not the file itself: {fix}")


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


# Which family reads it


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
    from biaslib.models import _sentences

    if "MASKED_LM" in entry.kinds:
        _sentences.modules_of(folder)
        return
    kinds = {name.rpartition(".")[2] for name, _ in _sentences.listed(folder)}
    if unknown := sorted(kinds - {"CLIPModel", "Transformer", "Normalize"}):
        problem = f"adds {', '.join(unknown)} to the network, which {entry.name!r} does not apply"
        raise refusal(folder / "modules.json", problem, unknown[0])


# What names it


def weight_files(folder: Path, open_clip: bool = False) -> list[Path]:
    """Return the files of weights that are read of a folder: none where none has a known name.

    Parameters
    ----------
    folder
        Of a model.
    open_clip
        Whether OpenCLIP reads it, and not transformers.

    Raises
    ------
    CheckpointError
        If an index lists nothing, or one of the files is not there or lies outside the folder.

    Examples
    --------
    >>> from plantedworld.models.checkpoints import checkpoint
    >>> [path.name for path in weight_files(checkpoint("bert", 3, 0))]
    ['model.safetensors']
    """
    names = _open_clip_order(folder) if open_clip else WEIGHTS
    if not open_clip:
        named = read_json(folder / "config.json", default={}).get("transformers_weights")
        names = [str(named), *WEIGHTS] if named else WEIGHTS
    first = next((name for name in names if (folder / name).is_file()), "")
    if not first:
        return []
    listed = _listed(folder / first) if first.endswith(".index.json") else [first]
    for name in dict.fromkeys([first, *listed]):
        _require_inside(folder, name)
    return [folder / name for name in listed]


def _open_clip_order(folder: Path) -> list[str]:
    """Return the names under which OpenCLIP looks for weights; then whatever is of such a kind."""
    whole = (name for name in WEIGHTS if not name.endswith(".index.json"))
    others = [path.name for kind in ("bin", "pth") for path in folder.glob(f"*.{kind}")]
    safe = sorted(path.name for path in folder.glob("*.safetensors"))
    names = *OPEN_CLIP_WEIGHTS, *whole, "pytorch_model.pth", "model.pth"
    return [*names, *safe, *sorted(others)]


def _listed(index: Path) -> list[str]:
    """Return the files that an index of weights lists, in order."""
    of_weights = read_json(index).get("weight_map")
    names = of_weights.values() if isinstance(of_weights, dict) else []
    if not names or not all(isinstance(name, str) for name in names):
        problem = f"lists no files of weights under weight_map of {index.name}; download it again"
        raise refusal(index.parent, problem)
    return sorted(set(names))


def _require_inside(folder: Path, name: str) -> None:
    """Refuse weights that are not there or lie outside a folder.

    In the hub's own cache the files of a snapshot are links to the blobs of its repository, or of
    the whole cache; and so are files that huggingface_hub of before 2024 put into folders.
    """
    root, path = folder.resolve(), (folder / name).resolve()
    inside = path.is_relative_to(root) or "blobs" in path.parent.parts
    if ".." in Path(name).parts or Path(name).is_absolute() or not inside:
        raise refusal(
            folder,
            f"takes weights from {name!r}, which leads out of the folder to {path}: they could "
            "change unseen. Copy the file into the folder",
        )
    if not path.exists():
        raise refusal(folder, f"lacks {name}, which it names; download it again")


def revision_of(path: Path, open_clip: bool = False, beside: Iterable[Path] = ()) -> str:
    """Return what names a model: the name and the checksums of its folder or file.

    Parameters
    ----------
    path
        The folder or file.
    open_clip
        Whether OpenCLIP reads the folder, and not transformers.
    beside
        Settings that are read from elsewhere.

    Raises
    ------
    CheckpointError
        As :func:`weight_files`; or if there are no weights.
    """
    hashes = checksums(path, open_clip, [*beside, *_layers_of_sentences(path)])
    if not hashes:
        raise refusal(path, f"holds no weights under a name that is read: {', '.join(WEIGHTS)}")
    return f"{path.name}, {hashes}"


def checksums(path: str | Path, open_clip: bool = False, beside: Iterable[Path] = ()) -> str:
    """Return the SHA-256 of the weights that are read, and of the settings beside them.

    Settings are the configuration, the tokenizer and the preparation of pictures: the same weights
    give other numbers under others. Without weights the text is empty.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "model.safetensors").write_text("weights")
    >>> checksums(folder)
    'sha256 9a129038d9a0'
    >>> _ = (folder / "vocab.txt").write_text("words")
    >>> checksums(folder)
    'sha256 9a129038d9a0, settings f1c5c73f'
    """
    path = Path(path)
    folder = path.parent if path.is_file() else path
    weights = [path] if path.is_file() else weight_files(path, open_clip)
    if not weights:
        return ""
    one = len(weights) == 1
    of_weights = sha256_of(weights[0]) if one else _together(weights, folder)
    names = (*TOKENIZERS, *OF_IMAGES) if path.is_file() else SETTINGS
    settings = [*_files(folder, names), *beside]
    return (
        f"sha256 {'' if one else f'of {len(weights)} files '}{of_weights[:12]}"
        f"{f', settings {_together(settings, folder)[:8]}' if settings else ''}"
    )


def _layers_of_sentences(folder: Path) -> list[Path]:
    """Return what makes vectors of a network's states: pooling, and layers after it."""
    path = folder / "modules.json"
    if not path.is_file():
        return []
    places = [module.get("path") for module in read_json(path, list)]
    for place in places:
        if (folder / (place or ".")).exists():  # one without settings may be left out
            _require_inside(folder, place or ".")
    return _files(folder, [*OF_SENTENCES, *(f"{place}/*" for place in places if place)])


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the files of a folder under names that match, in order."""
    return sorted({path for each in patterns for path in folder.glob(each) if path.is_file()})


def _together(files: Iterable[Path], folder: Path) -> str:
    """Return one SHA-256 of the names below a folder and the contents of files."""
    digest = hashlib.sha256()
    for path in files:
        inside = path.is_relative_to(folder)
        name = path.relative_to(folder).as_posix() if inside else path.name
        digest.update(f"{name}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, which a process reads once as long as it does not change."""
    status = path.stat()
    return _sha256_as_of(path.resolve(), status.st_size, status.st_mtime_ns)


@functools.lru_cache(4096)
def _sha256_as_of(path: Path, size: int, changed: int) -> str:
    return file_sha256(path)
