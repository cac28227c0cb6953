"""Files of the authors into safetensors with a configuration, and back.

``python -m biaslib.models.convert vl-bert vl-bert-base-prec.model folder`` writes
``model.safetensors``, ``config.json`` and the tokenizer that lies beside the file into the folder,
which ``biaslib.models.load("vl-bert", checkpoint="folder")`` takes. With the folder first and a
file after it, it goes back. The detector's files are a folder both ways.
"""

import argparse
import importlib
import shutil
from pathlib import Path

from biaslib.models._checkpoints import CheckpointError
from biaslib.models._own_networks import require_variant
from biaslib.models._registry import REGISTRY
from biaslib.models.downloads import TOKENIZERS
from biaslib.models.networks.files import load_converted, save_converted, save_official
from biaslib.runtime import unknown_name

__all__ = ["convert", "main"]

CONVERTED = tuple(
    name for name, entry in REGISTRY.items() if entry.variant or entry.family == "detector"
)
"""The models whose networks are written in this package."""


def convert(name: str, source: str | Path, target: str | Path) -> Path:
    """Convert the weights of a model that is written in this package.

    Parameters
    ----------
    name
        As of :func:`biaslib.models.load`.
    source
        A file of the authors, or a folder with ``config.json`` that was written from one; for the
        detector a folder with ``config.yaml`` or ``config.json``.
    target
        A folder, made if it is not there; or, back again, a file, called as the published one.

    Returns
    -------
    Path
        The target.

    Raises
    ------
    UnknownNameError
        If the model is none of those, or not registered.
    FileNotFoundError
        If the source is not there.
    CheckpointError
        If it is of another model or variant, damaged, or lacks weights or has others.
    """
    if name not in CONVERTED:
        raise unknown_name("model to convert", name, CONVERTED)
    entry, source, target = REGISTRY[name], Path(source), Path(target)
    if not source.exists():
        raise FileNotFoundError(f"{source} is not there; check the path")
    if entry.family == "detector":
        return _convert_detector(source, target)
    if source.is_dir():
        network = load_converted(source)
        require_variant(entry, network, source)
        return save_official(network, target)
    network = importlib.import_module(f"biaslib.models.networks.{entry.family}").load_official(
        source
    )
    require_variant(entry, network, source)
    save_converted(network, target)
    for file in TOKENIZERS:
        if (source.parent / file).is_file():
            shutil.copyfile(source.parent / file, target / file)
    return target


def _convert_detector(source: Path, target: Path) -> Path:
    from biaslib.models import detector

    published = (source / "config.yaml").is_file()
    (detector.to_safetensors if published else detector.to_official)(source, target)
    return target


def main(arguments: list[str] | None = None) -> None:
    """Convert what the command line says."""
    parser = argparse.ArgumentParser("python -m biaslib.models.convert", description=__doc__)
    parser.add_argument("name", choices=CONVERTED, help="the registered model")
    parser.add_argument("source", help="a file of the authors, or a folder made from one")
    parser.add_argument("target", help="the folder to write, or the file")
    chosen = parser.parse_args(arguments)
    try:
        written = convert(chosen.name, chosen.source, chosen.target)
    except (CheckpointError, FileNotFoundError) as error:
        parser.exit(1, f"{error}\n")
    print(f"{written}: written")


if __name__ == "__main__":
    main()
