"""Which models there are, where they come from, and how to load them."""

import contextlib
import dataclasses
import functools
import importlib.util
import warnings
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from biaslib import runtime
from biaslib.models._entries import ENTRIES, Entry
from biaslib.models._folders import inspect, place_of
from biaslib.runtime import unknown_name

if TYPE_CHECKING:
    import pandas

UNKNOWN_REVISION = "main, recorded at first download"

WITH_OPTIONS = ("detector", "generative")
"""Families whose models take options of their own."""

OF_MANY_KINDS = ("text", "bert", "clip", "generative")
"""Families that read whatever transformers has of their sort."""

SOURCES = ("hub ", "url ", "by hand ")
"""How a source begins as the registry writes it."""

BROUGHT_BY = {
    **dict.fromkeys(("torch", "transformers"), "models"),
    **dict.fromkeys(("torchvision", "yaml"), "regions"),
    "open_clip": "clip",
}
"""The extra of a package that a family imports."""

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
    rows = [dataclasses.asdict(each) | {"megabytes": each.megabytes} for each in entries]
    table = pandas.DataFrame(rows).assign(profiles=[_profiles(each) for each in entries])[columns]
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
        ``revision``, ``capabilities`` and the methods that :mod:`biaslib.models.capabilities` lists
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

    On CUDA devices the environment variable ``BIASLIB_PRECISION`` runs all models of a run but the
    detector in half precision: ``bfloat16``, ``float16``, or ``auto``, which takes float16 on cards
    that only emulate bfloat16 (T4, V100). The detector has an option of its own, ``precision=``.
    float32 means all of its digits: this call switches off for the process what shortens products
    and convolutions (TF32, and bfloat16 on processors), whatever was set before. Rows that a
    program computes after it switched that on again are stored under a key of their own.

    Parameters
    ----------
    name
        A folder, whose files tell what it is (:func:`biaslib.models.own.identify`); a name of
        :func:`available`; or a repository of the model hub, ``owner/name``. A folder that is there
        goes before a registered name, unless an option says that the planted model is meant.
    profile
        ``planted`` or ``paper``; ``None`` takes that of the run. In ``planted``, the models of
        which the planted world has tiny checkpoints are those. In ``paper``, weights are
        downloaded once and checked before every use (:mod:`biaslib.models.downloads`). A run that
        :func:`biaslib.runtime.start` began in one profile takes no model of the other, but for a
        planted one whose ``dose`` is named: what a measure is checked on.
    checkpoint
        What to use instead of the registered source; it must be of the kind that ``name`` is. A
        folder or a file; a repository of the model hub, ``owner/name`` or ``owner/name@revision``;
        a source as the registry writes it; for ``open-clip``, a name of OpenCLIP with its training
        data, such as ``ViT-B-32/laion2b_s34b_b79k``.
    device
        A torch device; ``None`` takes the best there is.
    **options
        Of what a profile provides: in ``planted`` the world, ``dose`` (by default 3), ``seed`` and
        ``planted_in`` (``both``, ``text`` or ``images``); released weights leave them out. Of
        ``detector``: those of :func:`biaslib.models.detector.load`; of generative models: ``score``
        and ``prompts`` of :func:`biaslib.models.generative.load`.

    Returns
    -------
    object
        With ``capabilities`` as the registry lists them or, of another checkpoint, as its heads
        allow; its class is in the module of ``biaslib.models`` that the registry calls its family.
        A model from a folder or a repository is called by its ``model_type`` where its family reads
        many kinds.

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
    if checkpoint is None and not _provided_options() & options.keys():
        given = place_of(name)
        if isinstance(given, Path) or "/" in given:
            from biaslib.models.own import identify

            return load_identified(*identify(name, profile), profile, device, **options)
    return _load(str(name), profile, checkpoint, device, options)


def load_identified(
    name: str,
    checkpoint: str | Path | None,
    profile: str | None = None,
    device: str | None = None,
    **options: Any,
) -> Any:
    """Load what :func:`biaslib.models.own.identify` found.

    Where the family that reads it reads many kinds, the model is called by its own: a LLaVA is no
    ``smolvlm``, although the family of that name reads it.

    Parameters
    ----------
    name, checkpoint
        The registered name, and what to load.
    profile, device, **options
        As of :func:`load`.
    """
    return _load(name, profile, checkpoint, device, options, identified=checkpoint is not None)


def _load(
    name: str,
    profile: str | None,
    checkpoint: str | Path | None,
    device: str | None,
    options: dict[str, Any],
    identified: bool = False,
) -> Any:
    _require_known_options(name, options)
    maker = _maker(name, profile) if checkpoint is None else None
    if maker is not None:
        runtime.note_model(name, maker.PROFILE, "dose" in options)
        given = maker.model(name, **options)
        if not isinstance(given, Path):
            return given
        checkpoint = given
    if name not in REGISTRY:
        raise unknown_model(name)
    entry = REGISTRY[name]
    options = {key: value for key, value in options.items() if key not in _provided_options()}
    path = _on_this_disk(entry, checkpoint, profile)
    family, chosen = module_of(entry), runtime.device(device)
    from biaslib.models._batches import full_float32, precision_name
    from biaslib.models._checkpoints import loading, reading, without_hub

    signature(family.load).bind(entry, path, chosen, **options)
    full_float32()
    whole = "float32" if entry.family == "detector" else None
    numbers = options.get("precision") or precision_name(chosen, whole)
    # A name of no option is the caller's fault, and none of the checkpoint.
    passing = (runtime.UnknownNameError,) if options else ()
    checked = loading(path, name, passing) if path else contextlib.nullcontext()
    with checked, reading(path), without_hub(path):
        _require_right_kind(entry, path)
        entry = _called_by_kind(entry, path) if identified else entry
        model = family.load(entry, path, chosen, **options)
    _say_what_is_lacking(model, entry)
    if hasattr(model, "device"):
        runtime.note_device(model.device, numbers)
    if hasattr(model, "find_detector"):
        found = functools.partial(load_identified, "detector", None, profile, device)
        model.find_detector = found
        model.other_detector = entry.other_detector
    return model


def unknown_model(name: str) -> runtime.UnknownNameError:
    """Return the error for a name that is neither registered nor a folder nor of the hub."""
    error = unknown_name("model", name, [*REGISTRY, *_provided()])
    told = f"{error} There is no folder {name} here; a model of the hub is owner/name"
    return runtime.UnknownNameError(told)


def _require_known_options(name: str, options: dict[str, Any]) -> None:
    """Refuse options of a registered model that neither it nor a profile's provider takes."""
    unknown = sorted(set(options) - _provided_options())
    if unknown and name in REGISTRY and REGISTRY[name].family not in WITH_OPTIONS:
        raise TypeError(
            f"the model {name!r} takes no option {unknown[0]!r}; leave it out"
            f"{' and set BIASLIB_PRECISION' if 'precision' in unknown else ''}"
        )


def _provided() -> dict[str, Entry]:
    """Return the models that profiles bring along and that are not registered here, by name."""
    return {each.name: each for one in runtime.providers().values() for each in one.ENTRIES}


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
    there = runtime.PROFILES if everywhere else [*makers, "paper"]
    return ", ".join(there)


def _called_by_kind(entry: Entry, path: Path | None) -> Entry:
    """Return an entry under the ``model_type`` of a folder, where its family reads many kinds."""
    if entry.family not in OF_MANY_KINDS or path is None or not path.is_dir():
        return entry
    from biaslib.models._checkpoints import read_config

    kind = read_config(path, entry.name).get("model_type")
    return dataclasses.replace(entry, name=kind) if kind else entry


def _say_what_is_lacking(model: Any, entry: Entry) -> None:
    """Warn of a model whose weights cannot do what the registry says of their kind."""
    lacking = [each for each in entry.capabilities if each not in model.capabilities]
    if lacking:
        warnings.warn(
            f"{model.name} ({model.revision}) cannot {' or '.join(lacking)}: these weights have no "
            "head for it",
            stacklevel=4,
        )


def module_of(entry: Entry) -> Any:
    """Return the module of a family; an error says what to install if it cannot be imported."""
    inside = f"biaslib.models.{entry.family}"
    is_inside = "." not in entry.family and importlib.util.find_spec(inside) is not None
    try:
        return importlib.import_module(inside if is_inside else entry.family)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in BROUGHT_BY:
            raise
        raise ModuleNotFoundError(
            f"the model {entry.name!r} needs the package {package}, which is not installed; "
            f"install it with: pip install 'biaslib[{BROUGHT_BY[package]}]' (torchvision must fit "
            "your torch)",
            name=error.name,
        ) from error


def _on_this_disk(entry: Entry, checkpoint: str | Path | None, profile: str | None) -> Path | None:
    """Return the folder or file of a checkpoint, downloaded if the profile allows it."""
    if checkpoint is None and entry.name_of_package:
        return None
    if checkpoint is not None and not str(checkpoint).startswith(SOURCES):
        checkpoint = place_of(checkpoint)
    if isinstance(checkpoint, Path):
        return checkpoint
    if runtime.profile(profile) != "paper":
        raise ValueError(
            f"{checkpoint or entry.name} comes from the model hub and the profile 'planted' never "
            "downloads. Begin the run with runtime.start('paper'), or pass checkpoint= with a "
            "folder"
        )
    runtime.note_model(entry.name, "paper")
    from biaslib.models.downloads import fetch

    if checkpoint is None:
        return fetch(entry)
    source, _, revision = _source(entry, str(checkpoint)).partition("@")
    given = {"source": source, "revision": revision}
    chosen = dataclasses.replace(entry, **given, sha256="", mirrors=(), command="")
    if not source.startswith("hub "):
        # Files of the authors come alone: the tokenizer is that of the registered source.
        chosen = dataclasses.replace(chosen, companion=entry.companion or entry.source)
    return fetch(chosen)


def _source(entry: Entry, checkpoint: str) -> str:
    """Return a checkpoint's source as the registry writes it."""
    if checkpoint.startswith(SOURCES):
        return checkpoint
    return f"hub {repository(entry, checkpoint)}"


def repository(entry: Entry, name: str) -> str:
    """Return the hub repository that a family means by a name: the name, if it has no others."""
    return getattr(module_of(entry), "repository", str)(name)


def _require_right_kind(entry: Entry, path: Path | None) -> None:
    """Refuse a folder that is of another architecture, or that cannot be read as what it is."""
    if path is None:
        return
    if not path.is_dir():
        inspect(path, entry)
        return
    from biaslib.models import _checkpoints
    from biaslib.models._limits import require_modest

    require_modest(path)
    inspect(path, entry)
    _checkpoints.require_family(path, entry)
    _checkpoints.require_readable(path, entry.family == "open_clip")
