"""Which models there are, where they come from, which of them a folder is, and how to load them."""

import contextlib
import dataclasses
import functools
import importlib.util
import inspect
import itertools
import threading
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from biaslib import runtime
from biaslib.checkpoints import folders
from biaslib.checkpoints.entries import ENTRIES, Entry
from biaslib.checkpoints.names import place_of
from biaslib.errors import CheckpointError, brought_by, shown
from biaslib.runtime import unknown_name

if TYPE_CHECKING:
    import pandas

UNKNOWN_REVISION = "main, recorded at first download"

REGISTRY = {entry.name: entry for entry in ENTRIES}


def available() -> "pandas.DataFrame":
    """Return the registry as a table: one row a model.

    Returns
    -------
    pandas.DataFrame
        Columns name, papers, capabilities, source, mirrors, revision, sha256, licence, access,
        features, parameters, megabytes (of the weights in single precision), pooling, profiles
        and note.

    Examples
    --------
    >>> available().loc[0, "name"]
    'all-MiniLM-L6-v2'
    """
    import pandas

    columns = ["name", "papers", "capabilities", "source", "mirrors", "revision", "sha256"]
    columns += ["licence", "access", "features", "parameters", "megabytes", "pooling", "profiles"]
    columns += ["note"]
    entries = {**REGISTRY, **_provided()}.values()
    rows = [dataclasses.asdict(entry) | {"megabytes": entry.megabytes} for entry in entries]
    table = pandas.DataFrame(rows).assign(profiles=[*map(_profiles, entries)])[columns]
    table["mirrors"] = table["mirrors"].map(", ".join)
    table["capabilities"] = table["capabilities"].map("; ".join)
    unknown = table["source"].str.startswith("hub ") & (table["revision"] == "")
    table.loc[unknown, "revision"] = UNKNOWN_REVISION
    return table


def register(entry: Entry) -> None:
    """Add a model to the registry for as long as the program runs.

    Parameters
    ----------
    entry
        Its ``family`` is the full name of a module outside the package with
        ``load(entry, folder, device)``, which returns the model: an object with ``name``,
        ``revision``, ``capabilities`` and the methods that :mod:`biaslib.capabilities` lists
        for these.

    Raises
    ------
    ValueError
        If a model of that name is registered.
    TypeError
        If it is no :class:`Entry`.

    Examples
    --------
    >>> register(REGISTRY["bert"])
    Traceback (most recent call last):
    ValueError: a model is registered as 'bert'; choose another name
    """
    if not isinstance(entry, Entry):
        raise TypeError(f"{entry!r} is no biaslib.models.Entry: register(Entry(...))")
    if entry.name in REGISTRY:
        raise ValueError(f"a model is registered as {entry.name!r}; choose another name")
    REGISTRY[entry.name] = entry


def load(
    name: str | Path,
    *,
    profile: str | None = None,
    checkpoint: str | Path | None = None,
    device: str | None = None,
    **options: Any,
) -> Any:
    """Load a model, in float32.

    On CUDA devices the environment variable ``BIASLIB_PRECISION`` runs all models of a run in half
    precision: ``bfloat16``, ``float16``, or ``auto``, which takes float16 on cards that only
    emulate bfloat16 (T4, V100). The detector takes float16 for either, which keeps its regions.
    float32 means all of its digits: this call switches off for the process what shortens products
    and convolutions (TF32, and bfloat16 on processors), whatever was set before. Rows that a
    program computes after it switched that on again are stored under a key of their own.

    Parameters
    ----------
    name
        A folder, whose files tell what it is (:func:`identify`); a name of
        :func:`available`; or a repository of the model hub, ``owner/name``. A folder that is there
        goes before a registered name, unless an option says that the planted model is meant.
    profile
        ``planted`` or ``paper``; ``None`` takes that of the run. In ``planted``, the models of
        which the planted world has tiny checkpoints are those. In ``paper``, weights are
        downloaded once and checked before every use (:mod:`biaslib.checkpoints.downloads`). A run
        that :func:`biaslib.runtime.start` began in one profile takes no model of the other, but for
        a planted one whose ``dose`` is named: what a measure is checked on.
    checkpoint
        What to use instead of the registered source; it must be of the kind that ``name`` is. A
        folder or a file; a repository of the model hub, ``owner/name`` or ``owner/name@revision``;
        for ``open-clip``, a name of OpenCLIP with its training data, such as
        ``ViT-B-32/laion2b_s34b_b79k``.
    device
        A torch device; ``None`` takes the best there is.
    **options
        Of what a profile provides: in ``planted`` the world, ``dose`` (by default 3), ``seed`` and
        ``planted_in`` (``both``, ``text`` or ``images``); released weights leave them out. Of
        ``detector``: those of :func:`biaslib.pictures.detector.load`; of generative models:
        ``score`` and ``prompts`` of :func:`biaslib.models.generative.load`.

    Returns
    -------
    object
        With ``capabilities`` as the registry lists them or, of another checkpoint, as its heads
        allow; ``notes``, a tuple of what was warned of or switched off at loading. Its class is in
        the module of ``biaslib.models`` that the registry calls its family. A model from a folder
        or a repository is called by its ``model_type`` where its family reads many kinds.

    Raises
    ------
    UnknownNameError
        If no such model is registered; the message gives the nearest names.
    FileNotFoundError
        If no planted checkpoint is shipped for the world; the message lists those that are, and
        gives the command that trains one.
    CheckpointError
        If a path is not there; if a checkpoint is of another architecture, damaged, lacks weights,
        a tokenizer or tokens, or has others, holds an adapter, quantised weights or pointers of Git
        LFS, or a library cannot load it; if it cannot be downloaded, or is not the file that was
        declared or recorded.
    ValueError
        If the model needs the hub and the profile is ``planted``, which never downloads.
    ProfileError
        If the model is of the other profile than the run.
    RuntimeError
        If pinned weights do not have the expected SHA-256.
    TypeError
        If the model does not take an option.

    Warns
    -----
    UserWarning
        If the weights lack a head for something that the registry lists for the model.

    Examples
    --------
    >>> load("all-MiniLM-L6-v2").embed(["apron"], level="word").shape
    (1, 384)
    >>> load("oracle", dose=1, seed=0).mask_log_prob(["the person is a [MASK]."], ["nurse"]).shape
    (1, 1)
    """
    with _noted() as notes:
        by_files = checkpoint is None and not _provided_options() & options.keys()
        if by_files:
            name, checkpoint = identify(name, profile)
        by_kind = by_files and checkpoint is not None
        model = _load(str(name), checkpoint, profile, device, by_kind, options)
    model.notes = tuple(dict.fromkeys(notes))
    return model


_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect the warnings of a block, also those that were given before, and pass them on.

    Models are loaded one at a time: warnings, and what libraries are told meanwhile, are of the
    whole program.
    """
    notes: list[str] = []
    before, show = warnings.filters, warnings.showwarning

    def note(message: Warning, category: type[Warning], *place: Any, **_: Any) -> None:
        if issubclass(category, UserWarning):
            notes.append(str(message))
        with warnings.catch_warnings():
            warnings.filters, warnings.showwarning = before, show
            warnings.warn_explicit(message, category, *place[:2])

    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield notes


def _load(
    name: str,
    checkpoint: str | Path | None,
    profile: str | None,
    device: str | None,
    by_kind: bool,
    options: dict[str, Any],
) -> Any:
    """Load a registered model, or another checkpoint of its kind.

    With ``by_kind`` the model is called by the ``model_type`` of its folder where its family reads
    many kinds: a LLaVA is no ``smolvlm``, although the family of that name reads it.
    """
    entry, provided = REGISTRY.get(name), _provided_options()
    if entry is not None:
        _require_known_options(entry, {*options} - provided)
    maker = _maker(name, profile) if checkpoint is None else None
    if maker is not None:
        runtime.note_model(name, maker.PROFILE, "dose" in options)
        checkpoint = maker.model(name, **options)
        if not isinstance(checkpoint, Path):
            return checkpoint
    if entry is None:
        raise _unknown_model(name)
    options = {option: value for option, value in options.items() if option not in provided}
    path = _on_this_disk(entry, checkpoint, profile)
    model = _read(entry, path, runtime.device(device), by_kind, options)
    if hasattr(model, "find_detector"):
        model.find_detector = functools.partial(_shared_detector, profile, device)
        model.other_detector = entry.other_detector
    return model


_detectors: weakref.WeakValueDictionary[tuple[str, str], Any] = weakref.WeakValueDictionary()


def _shared_detector(profile: str | None, device: str | None) -> Any:
    """Return the detector on a device: one for all models that read regions, while any has it."""
    key = runtime.profile(profile), runtime.device(device)
    detector = _detectors.get(key)
    if detector is None:
        with _noted() as notes:
            detector = _load("detector", None, *key, False, {})
        detector.notes = tuple(dict.fromkeys(notes))
    _detectors[key] = detector
    return detector


def _read(entry: Entry, path: Path | None, device: str, by_kind: bool, options: dict) -> Any:
    """Return the model of a folder or file, checked; of a package if there is no path."""
    from biaslib.checkpoints.weights import loading, require_readable
    from biaslib.runtime.batches import full_float32, precision_of

    full_float32()
    # A name of no option is the caller's fault, and none of the checkpoint.
    passing = (runtime.UnknownNameError,) if options else ()
    named = "" if by_kind else entry.name  # else the family is our finding, and nobody's wish
    with loading(path, named, passing) if path else contextlib.nullcontext():
        if path is not None:
            folders.inspect(path)
            if path.is_dir():
                folders.require_family(path, entry)
            require_readable(path, entry.family == "open_clip")
        if by_kind and entry.reads_many_kinds and path.is_dir():
            kind = folders.read_config(path, entry.name).get("model_type")
            entry = dataclasses.replace(entry, name=kind or entry.name)
        model = module_of(entry).load(entry, path, device, **options)
        trial = importlib.import_module("biaslib.models.trial")
        trial.tried_out(model, path or entry.name)
    if lacking := [name for name in entry.capabilities if name not in model.capabilities]:
        warnings.warn(
            f"{model.name} ({model.revision}) cannot {' or '.join(lacking)}: these weights have no "
            "head for it",
            stacklevel=3,
        )
    if hasattr(model, "device"):
        runtime.note_device(model.device, precision_of(model))
    return model


def identify(given: str | Path, profile: str | None = None) -> tuple[str, str | Path | None]:
    """Return the registered name that reads a model, and what to load it from.

    Parameters
    ----------
    given
        A folder, also if a model is registered under its name; a registered name; ``owner/name``,
        ``owner/name@revision`` or the address of a page of the model hub; a name of OpenCLIP with
        its training data, such as ``ViT-B-32/laion2b_s34b_b79k``.
    profile
        ``planted`` never asks the hub; ``None`` takes that of the run.

    Raises
    ------
    CheckpointError
        If it is a path that is not there, or of an architecture that no family reads, or would be
        read as what it is not (:func:`biaslib.checkpoints.folders.inspect`); the message says what
        can be done; or if the hub does not have it.
    UnknownNameError
        If it is neither registered, nor there, nor ``owner/name``.
    ValueError
        If the hub would be needed in the profile ``planted``.

    Warns
    -----
    UserWarning
        If a model is registered under the name of the folder.

    Examples
    --------
    >>> from plantedworld.models.checkpoints import checkpoint
    >>> identify(checkpoint("flava", 3, 0))[0]
    'flava'
    >>> identify("lxmert")
    ('lxmert', None)
    """
    place = place_of(given)
    if isinstance(place, Path):
        return _family_of(place, given), place
    if "/" not in place:
        if place not in {**REGISTRY, **_provided()}:
            raise _unknown_model(place)
        return place, None
    _require_paper(place, profile)
    return _family_of(_from_hub(REGISTRY["open-clip"], place), place), place


def _family_of(folder: Path, given: str | Path) -> str:
    """Return the registered name whose family reads a folder, which may have come as a name."""
    from biaslib.checkpoints.weights import loading

    if folder.is_file():
        raise CheckpointError(
            f"{given} is a file, which does not tell its architecture: give the folder that it is "
            "in, or that an archive is unpacked to. Weights of the authors' alone are loaded by "
            "the name of their family, biaslib.models.load(name, checkpoint=...)",
            path=folder,
        )
    if given in REGISTRY:
        warnings.warn(
            f"{given} is a folder here, and is read; a model is registered as {given}, too: move "
            "or rename the folder if that one is meant",
            stacklevel=3,
        )
    with loading(folder, "", (ModuleNotFoundError,)):
        folders.inspect(folder)
        if (folder / "open_clip_config.json").is_file():
            return "open-clip"
        name = _reader_of(folder, given)
        folders.require_family(folder, REGISTRY[name])
        return name


def _reader_of(folder: Path, given: str | Path) -> str:
    config = folders.read_config(folder, "any model")
    kind, classes = config.get("model_type"), folders.classes_of(config)
    named = [entry.name for entry in REGISTRY.values() if kind in entry.kinds]
    # BLIP's name stands for dual encoders and for generative models alike: its class tells.
    writes = any(name.endswith("ForConditionalGeneration") for name in classes)
    tasks = ("smolvlm", "clip", "bert") if writes else ("clip", "bert", "smolvlm")
    sentences = ("all-MiniLM-L6-v2",) if (folder / "modules.json").is_file() else ()
    readers = (name for name in (*sentences, *tasks) if kind in folders.kinds_of(REGISTRY[name]))
    if name := next(itertools.chain(named, readers), None):
        return name
    if "auto_map" in config:
        raise CheckpointError(
            f"{given} is a checkpoint of {kind!r}, which needs Python code of its own. Code that "
            "comes with weights is never run: take a repository of the same weights for a class "
            "that transformers has, or wrap the model in a class of your own and audit that"
        )
    kinds = sorted({kind for entry in REGISTRY.values() for kind in entry.kinds})
    raise CheckpointError(
        f"{given} is a checkpoint of {folders.described(config)}, which no family here reads: "
        f"{', '.join(kinds)}. Register its family (biaslib.models.register), or wrap it in a class "
        "with capabilities and the methods that biaslib.capabilities lists for them, and "
        "audit an object of it"
    )


def _unknown_model(name: str) -> runtime.UnknownNameError:
    """Return the error for a name that is neither registered nor a folder nor of the hub."""
    error = unknown_name("model", name, [*REGISTRY, *_provided()])
    hint = f"{error} There is no folder {shown(name)} here; a model of the hub is owner/name"
    return runtime.UnknownNameError(hint)


def _require_known_options(entry: Entry, options: set[str]) -> None:
    """Refuse options that a model does not take."""
    known = inspect.signature(module_of(entry).load).parameters
    if unknown := sorted(options - known.keys()):
        raise TypeError(
            f"the model {entry.name!r} takes no option {unknown[0]!r}; leave it out"
            f"{' and set BIASLIB_PRECISION' if 'precision' in unknown else ''}"
        )


def _provided() -> dict[str, Entry]:
    """Return the models that profiles bring along and that are not registered here, by name."""
    return {entry.name: entry for one in runtime.providers().values() for entry in one.ENTRIES}


def _provided_options() -> set[str]:
    """Return the options of what profiles provide, of which released weights know nothing."""
    return {name for one in runtime.providers().values() for name in one.OPTIONS}


def _maker(name: str, profile: str | None) -> ModuleType | None:
    """Return what makes a model: the profile's provider, or the only one that knows the model."""
    own = runtime.providers().get(runtime.profile(profile))
    if own is not None and name in own.MODELS:
        return own
    makers = [one for one in runtime.providers().values() if name in one.MODELS]
    return makers[0] if makers and name not in REGISTRY else None


def _profiles(entry: Entry) -> str:
    """Return the profiles in which a model can be loaded, as the table names them."""
    everywhere = entry.name_of_package or entry.name not in REGISTRY
    makers = [name for name, one in runtime.providers().items() if entry.name in one.MODELS]
    return ", ".join(runtime.PROFILES if everywhere else [*makers, "paper"])


def module_of(entry: Entry) -> ModuleType:
    """Return the module of a family; an error says what to install if it cannot be imported."""
    inside = f"biaslib.models.{entry.family}"
    ours = "." not in entry.family and importlib.util.find_spec(inside) is not None
    name = inside if ours else entry.family
    with brought_by(entry.extra) if name.startswith("biaslib.") else contextlib.nullcontext():
        return importlib.import_module(name)


def _on_this_disk(entry: Entry, checkpoint: str | Path | None, profile: str | None) -> Path | None:
    """Return the folder or file of a checkpoint, downloaded if the profile allows it."""
    if checkpoint is None and entry.name_of_package:
        return None
    place = None if checkpoint is None else place_of(checkpoint)
    if isinstance(place, Path):
        return place
    _require_paper(place or entry.name, profile)
    runtime.note_model(entry.name, "paper")
    if place is not None:
        return _from_hub(entry, place)
    from biaslib.checkpoints.downloads import fetch

    return fetch(entry)


def _from_hub(entry: Entry, name: str) -> Path:
    """Return the folder of ``owner/name`` or ``owner/name@revision``, as one of a family's."""
    from biaslib.checkpoints.downloads import fetch

    name, _, revision = name.partition("@")
    source = f"hub {repository(entry, name)}"
    unpinned = dataclasses.replace(entry, sha256="", mirrors=(), command="")
    return fetch(dataclasses.replace(unpinned, source=source, revision=revision))


def _require_paper(name: str, profile: str | None) -> None:
    if runtime.profile(profile) != "paper":
        raise ValueError(
            f"there is no folder {name} here, and the profile 'planted' never downloads: check "
            "the path, or begin the run with runtime.start('paper'), on the command line "
            "--profile paper"
        )


def repository(entry: Entry, name: str) -> str:
    """Return the hub repository that a family means by a name: the name, if it has no others."""
    return getattr(module_of(entry), "repository", str)(name)
