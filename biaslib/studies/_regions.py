"""Regions of pictures from files, in place of those that the detector finds: studies 1 and 2."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from biaslib import runtime
from biaslib.datasets import DataError
from biaslib.pictures import region_files
from biaslib.pictures.images import Pictures, WithRegions
from biaslib.pictures.regions import RegionFeatures

WIDTH = 2048
"""Numbers a region that the detector gives, and that the models of the studies read."""

ENDINGS = (".safetensors", ".tsv", "")
CLASSES = "objects_vocab.txt"
"""Names of the detector's classes, a line each, beside the files: masks go by them."""


def file_of(folder: Path, name: str) -> Path | None:
    """Return a file of regions: its name with one of the endings, or a folder."""
    places = (folder / f"{name}{ending}" for ending in ENDINGS)
    return next((place for place in places if place.exists()), None)


def names_of(images: Pictures) -> tuple[str, ...]:
    """Return the names by which pictures are looked up in a file of regions.

    Those of their files; where different pictures share a name, as the searches of several tests
    do, with the folder before it, or with two: ``name``, ``folder/name``, ``test/folder/name``.
    """
    paths, names = [Path(images.name(row)).parts for row in range(len(images))], {}
    for depth in (3, 2, 1):
        contents = {}
        for path, content in zip(paths, images.ids, strict=True):
            contents.setdefault("/".join(path[-depth:]), set()).add(content)
        for path in paths:
            short = "/".join(path[-depth:])
            if depth == 3 or len(contents[short]) == 1:
                names[path] = short
    return tuple(names[path] for path in paths)


def unusable(path: Path, names: Sequence[str], width: int = WIDTH) -> dict[str, str]:
    """Return why which pictures have no regions in a file; all of them, if it cannot be read."""
    names = list(dict.fromkeys(names))
    try:
        missing = dict.fromkeys(region_files.missing(path, names), f"no regions in {path.name}")
        held = [name for name in names if name not in missing]
        return missing | (region_files.damaged(path, held, width) if held else {})
    except region_files.FeatureFileError as error:
        return dict.fromkeys(names, str(error))


def unnamed_classes(path: Path) -> list[tuple[str, str, str, str]]:
    """Return a note where nothing names the classes of a file, in the form of a problem."""
    if path.suffix == ".safetensors" or (path.parent / CLASSES).is_file():
        return []
    what = f"without {CLASSES} beside the file no region is known to show a person, or hidden"
    return [("note", "classes have no names", f"{path.parent.name}/{path.name}", what)]


def with_regions(
    images: Pictures, path: Path, names: Sequence[str], width: int = WIDTH
) -> WithRegions:
    """Return pictures with the regions that a file has under some names."""
    vocabulary, classes = path.parent / CLASSES, None
    if vocabulary.is_file():
        lines = runtime.read_text(vocabulary, DataError).splitlines()
        classes = tuple(line.strip() for line in lines)
    content = (runtime.file_sha256 if path.is_file() else runtime.source_hash)(path)
    of_classes = runtime.file_sha256(vocabulary)[:8] if classes else "unnamed"
    source = f"regions, {path.name}, sha256 {content[:12]}, classes {of_classes}"
    return WithRegions(images, functools.partial(_read, path, names, width, classes), source)


def _read(path, names, width, classes, rows: Sequence[int]) -> RegionFeatures:
    from biaslib.models.study1_as_released import PEOPLE

    found = region_files.read(path, [names[row] for row in rows], width)
    named = replace(found, class_names=classes or found.class_names)
    return replace(named, persons=named.persons | named.named(PEOPLE))
