"""What a folder may say of itself, before a network, a tokenizer or a template is made of it."""

import functools
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from biaslib.models.errors import CheckpointError
from biaslib.runtime import file_sha256

MOST_BYTES, MOST_OF_WORDS = 2**24, 2**27
"""Bytes of a file of settings, and of one that lists words or the names of weights."""

OF_WORDS = re.compile(r"(tokenizer|vocab|merges|added_tokens).*|.*(index\.json|\.model)")

LONGEST_TEMPLATE = 2**18
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

SETTINGS = (".json", ".txt", ".model", ".jinja")
"""Endings of files of settings."""

OF_ITS_OWN = ("Regex", "content", "prepend")
"""What a tokenizer replaces, cuts at or adds, as it likes."""

OF_TEMPLATE, OF_TOKENIZER, WAITED = 4, 8, 60
"""Seconds of a processor that a trial may take, and by the clock where those are not counted."""

POINTER = b"version https://git-lfs.github.com/spec/"

TRIAL = Path(__file__).with_name("_trial.py")


def require_modest(folder: Path) -> None:
    """Refuse a folder whose files, or the numbers in them, are of sizes that no network has.

    Raises
    ------
    CheckpointError
        If a file is a device, a pipe or larger than such files are; a size or a list in a file of
        settings is absurd, or not a number (NaN); or a tokenizer needs longer than
        :data:`OF_TOKENIZER` seconds, or very much memory, for a few words.
    """
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        if path.suffix in SETTINGS or not (path.is_file() or path.is_dir()):
            _require_plain(path)
    for path in folder.glob("[!.]*.json"):
        if path.name.endswith(("index.json", "vocab.json")):
            continue
        settings = read_json(path, object)
        words = path.name == "tokenizer.json" and isinstance(settings, dict)
        _require_modest(settings | {"model": None} if words else settings, path)
        if words:
            _require_quick_tokenizer(settings, path)


def _require_plain(path: Path) -> None:
    """Refuse a file of settings that is none, or larger than any is."""
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path} is no plain file: put a file there", path=path)
    most = MOST_OF_WORDS if OF_WORDS.fullmatch(path.name) else MOST_BYTES
    size = path.stat().st_size if path.exists() else 0
    if size > most:
        raise CheckpointError(
            f"{path} has {size / 1e6:,.0f} MB, and such files have at most {most / 1e6:,.0f}; "
            "download it again",
            path=path,
        )


def require_content(path: Path) -> None:
    """Refuse a pointer of Git LFS in place of a file."""
    with open(path, "rb") as stream:
        begun = stream.read(len(POINTER))
    if begun == POINTER:
        raise CheckpointError(
            f"{path} is a pointer of Git LFS of {path.stat().st_size} bytes, and not the file "
            "itself: run `git lfs pull` in the folder, or give owner/name of the hub",
            path=path,
        )


def read_json(path: Path, kind: type = dict) -> Any:
    """Return what a file of settings holds.

    Raises
    ------
    FileNotFoundError
        If there is none.
    CheckpointError
        If it is no plain file, too large, no JSON, or holds something else than the kind.
    """
    _require_plain(path)
    require_content(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is not valid JSON ({error}); download it again", path=path
        ) from None
    if not isinstance(found, kind):
        raise CheckpointError(
            f"{path} holds {found!r:.40}, and no {'list' if kind is list else 'settings by name'}; "
            "download it again",
            path=path,
        )
    return found


def _require_modest(settings: Any, path: Path) -> None:
    entries = MOST_OF_TOKENIZER if "token" in path.name else MOST_ENTRIES
    for name, each in _entries(settings):
        if isinstance(each, (list, dict)) and len(each) > entries:
            told = f"has {len(each):,} entries, at most {entries:,} are read"
        elif isinstance(each, float) and math.isnan(each):
            told = "is not a number"
        elif isinstance(each, (int, float)) and each > _most(name):
            told = f"is {each:,}, at most {_most(name):,} is read"
        else:
            continue
        raise CheckpointError(
            f"{path}: {name or 'it'} {told}; download it again, or correct it",
            path=path,
            word=name or None,
        )


def _entries(found: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all lists, settings and values, each with the name that it stands under."""
    yield name, found
    if isinstance(found, dict):
        # The side of a picture; beside a longest edge it counts pixels.
        alone = list(found) == ["shortest_edge"]
        for key, each in found.items():
            yield from _entries(each, "height" if alone else key)
    elif isinstance(found, list):
        for each in found:
            yield from _entries(each, name)


@functools.lru_cache(1024)
def _most(name: str) -> float:
    return next((most for pattern, most in LARGEST if re.search(pattern, name)), math.inf)


def _require_quick_tokenizer(settings: dict, path: Path) -> None:
    """Refuse a tokenizer whose own replacements and patterns explode for a few words."""
    steps = [settings.get("normalizer"), settings.get("pre_tokenizer")]
    if any(name in OF_ITS_OWN for name, _ in _entries(steps)):
        asked = {"tokenizer": str(path.resolve())}
        _try(asked, file_sha256(path), OF_TOKENIZER, f"{path}: the tokenizer", path.parent)


def require_quick_template(template: Any, conversations: list, words: dict, folder: Path) -> None:
    """Refuse a chat template that takes too long, or writes too much, for a prompt.

    Parameters
    ----------
    template
        Of a processor: a text, or texts by name.
    conversations
        What it is given.
    words
        The tokenizer's special tokens, which templates name.
    folder
        It came from.

    Raises
    ------
    CheckpointError
        If a process of its own does not end within :data:`OF_TEMPLATE` seconds, or memory or text
        grow too large.
    """
    texts = list(template.values()) if isinstance(template, dict) else [template]
    if any(len(text) > LONGEST_TEMPLATE for text in texts):
        raise CheckpointError(
            f"{folder}: its chat template has more than {LONGEST_TEMPLATE:,} characters",
            path=folder,
        )
    asked = {"templates": texts, "conversations": conversations, "words": words}
    _try(asked, json.dumps(asked), OF_TEMPLATE, f"{folder}: its chat template", folder)


_survived: set[str] = set()


def _try(asked: dict, content: str, seconds: int, what: str, folder: Path) -> None:
    """Have a process of its own do what a folder asks for, once, and refuse what it dies of."""
    if content in _survived:
        return
    limits = {"paths": sys.path, "seconds": seconds}
    try:
        died = subprocess.run(
            [sys.executable, "-I", str(TRIAL)],
            input="\n".join(map(json.dumps, (limits, asked))),
            capture_output=True,
            encoding="utf-8",
            timeout=WAITED,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        died = True
    if died:
        raise CheckpointError(
            f"{what} did not end within {seconds} seconds and 2 GB of memory for a few words; "
            "download it again, or correct it",
            path=folder,
        )
    _survived.add(content)
