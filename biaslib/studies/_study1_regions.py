"""Regions of study 1's pictures from files, in place of those that the detector finds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from biaslib import runtime
from biaslib.datasets import DataError
from biaslib.models import region_files
from biaslib.models.images import Pictures, WithRegions
from biaslib.models.regions import RegionFeatures

ENDINGS = (".safetensors", ".tsv", "")
CLASSES = "objects_vocab.txt"
"""Names of the detector's classes, a line each, beside the files: masks go by them."""

Problem = tuple[str, str, str, str]
"""Severity, kind, where and what, as in the tables of problems."""


@dataclass(frozen=True)
class _Read:
    """Regions of pictures, read when rows are asked for."""

    path: Path
    names: tuple[str, ...]
    width: int
    classes: tuple[str, ...] | None

    def __call__(self, rows: Sequence[int]) -> RegionFeatures:
        from biaslib.models.released import PEOPLE

        names = [self.names[row] for row in rows]
        found = region_files.read(self.path, names, self.width)
        named = replace(found, class_names=self.classes or found.class_names)
        return replace(named, persons=named.persons | named.named(PEOPLE))


def file_of(folder: Path, name: str) -> Path | None:
    """Return a model's file of regions: its name with one of the endings, or a folder."""
    places = (folder / f"{name}{ending}" for ending in ENDINGS)
    return next((place for place in places if place.exists()), None)


def with_regions(every: Sequence, path: Path, width: int) -> tuple[list, list[Problem]]:
    """Return stimuli that are shown as a file's regions, and what is wrong with the file.

    Pictures are looked up by the names of their files, or ``folder/name`` where different pictures
    share a name, as the searches of several tests do. Rows whose picture has no sound regions are
    left out, and with them a test at a level at which a set has nothing left. A file of another
    width, which is one of another detector, leaves nothing.
    """
    images, where = every[0].images, f"{path.parent.name}/{path.name}"
    names = _names(images)
    try:
        lost = set(region_files.missing(path, names))
        there = [name for name in dict.fromkeys(names) if name not in lost]
        damaged = region_files.damaged(path, there, width) if there else {}
    except region_files.FeatureFileError as error:
        return [], [("error", "regions cannot be used", where, str(error))]
    if damaged and len(damaged) == len(there):
        return [], [("error", "regions cannot be used", where, damaged[there[0]])]
    problems = _missing(where, sorted(lost), len(set(names)))
    if damaged:
        what = f"{len(damaged)} of {len(there)} pictures, such as: {next(iter(damaged.values()))}"
        problems.append(("error", "regions are damaged", where, what))
    lost |= damaged.keys()
    vocabulary = path.parent / CLASSES
    text = runtime.read_text(vocabulary, DataError) if vocabulary.is_file() else None
    classes = None if text is None else tuple(line.strip() for line in text.splitlines())
    if classes is None and path.suffix != ".safetensors":
        what = f"without {CLASSES} beside the file no region is known to show a person, or hidden"
        problems.append(("note", "classes have no names", where, what))
    content = runtime.file_sha256 if path.is_file() else runtime.source_hash
    source = f"regions, {path.name}, sha256 {content(path)[:12]}, classes {_hash_of(classes)}"
    shown = WithRegions(images, _Read(path, names, width, classes), source)
    kept = []
    for sets in every:
        has = ~sets.rows["image"].map(lambda row: names[row] in lost).to_numpy(dtype=bool)
        rows = sets.rows[has].reset_index(drop=True)
        empty = [name for name in dict.fromkeys(sets.rows["set"]) if name not in set(rows["set"])]
        if empty:
            what = f"no regions at {sets.level}"
            problems.append(("note", "test is not run", f"{where}, {sets.test}", what))
        else:
            kept.append(replace(sets, rows=rows, images=shown))
    return kept, problems


def _names(images: Pictures) -> tuple[str, ...]:
    paths, pictures = [Path(images.name(row)) for row in range(len(images))], {}
    for path, content in zip(paths, images.ids, strict=True):
        pictures.setdefault(path.name, set()).add(content)
    return tuple(
        path.name if len(pictures[path.name]) == 1 else f"{path.parent.name}/{path.name}"
        for path in paths
    )


def _hash_of(classes: tuple[str, ...] | None) -> str:
    """Return what tells one list of names from another."""
    import hashlib

    return hashlib.sha256("\n".join(classes).encode()).hexdigest()[:8] if classes else "unnamed"


def _missing(where: str, names: list[str], n: int) -> list[Problem]:
    if not names:
        return []
    what = f"{len(names)} of {n} pictures: {runtime.first_few(names)}"
    return [("error", "picture has no regions", where, what)]
