"""Images of study 2: people with an entity, six of women and six of men for each.

Srinivasan and Bisk (2021) collected them for six entities and could not publish them. So this reads
what a user has gathered: ``<entity>/woman`` and ``<entity>/man`` with pictures in each.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pandas

from biaslib.datasets._image_files import images_in, readable, unused
from biaslib.datasets.problems import problems, require_table
from biaslib.metrics.inputs import texts, whole_number

__all__ = ["AGENTS", "balanced_images", "entity_balance", "entity_images"]

AGENTS = ("woman", "man")
"""Names of the folders; whom they show is for the people in the pictures to say."""

COLUMNS = ["entity", "gender", "image", "path"]


def entity_images(
    folder: str | Path, entities: Sequence[str], per_agent: int = 6
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Return the manifest of a folder of images, and what is wrong with the rest.

    Parameters
    ----------
    folder
        With ``<entity>/woman`` and ``<entity>/man``; an entity of two words has a folder with a
        space or an underscore.
    entities
        The entities that are wanted.
    per_agent
        Images of women, and of men, that an entity should have; the paper has 6.

    Returns
    -------
    manifest : pandas.DataFrame
        One row an image that can be used: *entity*, *gender* (``woman`` or ``man``), *image*,
        *path*, *sha256*.
    problems : pandas.DataFrame
        Errors: agents without an image; images that cannot be opened, or are there twice, for one
        agent or for both (then neither is used); entities with more images of one agent than of the
        other.
        Notes: another number than ``per_agent``, a picture that stands for two entities, folders
        and files that are not used.

    Examples
    --------
    >>> import tempfile
    >>> entity_images(tempfile.mkdtemp(), ["purse"])[1][["kind", "where"]].values.tolist()
    [['image is missing', 'purse, woman'], ['image is missing', 'purse, man']]
    """
    folder, entities = Path(folder), texts(entities, "entities")
    per_agent = whole_number(per_agent, "per_agent", 1)
    rows, wrong, places = [], [], set()
    for entity, agent in itertools.product(entities, AGENTS):
        names = dict.fromkeys([entity, entity.replace(" ", "_")])
        images = [path for name in names for path in images_in(folder / name / agent)]
        places |= {folder / name / agent for name in names}
        rows += [(entity, agent, path.relative_to(folder).as_posix(), path) for path in images]
        if not images:
            what = f"no picture in {folder / entity / agent}"
            wrong.append(("error", "image is missing", f"{entity}, {agent}", what))
    wrong += unused(folder, places, "not in the folder of an entity of the list and an agent")
    table = pandas.DataFrame(rows, columns=COLUMNS)
    sound, damaged = readable(table.assign(where=table["entity"] + ", " + table["gender"]), "where")
    sound, twice = _without_twins(sound)
    wrong += damaged + twice + _counts(sound, entities, per_agent)
    return sound[[*COLUMNS, "sha256"]].reset_index(drop=True), problems(wrong)


def entity_balance(manifest: pandas.DataFrame) -> pandas.DataFrame:
    """Return how many images of each agent every entity has: *entity*, *woman*, *man*.

    Examples
    --------
    >>> rows = pandas.DataFrame({"entity": ["tie", "tie"], "gender": ["man", "man"]})
    >>> entity_balance(rows).values.tolist()
    [['tie', 0, 2]]
    """
    manifest = require_table(manifest, "manifest", ["entity", "gender"])
    counts = manifest.groupby(["entity", "gender"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=list(AGENTS), fill_value=0)
    return counts.rename_axis(columns=None).reset_index()


def balanced_images(manifest: pandas.DataFrame) -> pandas.DataFrame:
    """Return as many images of women as of men for every entity: the first by name.

    An entity without images of one of them is left out.
    """
    if require_table(manifest, "manifest", ["entity", "gender"]).empty:
        return manifest
    fewest = entity_balance(manifest).set_index("entity")[list(AGENTS)].min(axis=1)
    rank = manifest.groupby(["entity", "gender"]).cumcount()
    kept = rank < manifest["entity"].map(fewest)
    return manifest[kept].reset_index(drop=True)


def _without_twins(sound: pandas.DataFrame) -> tuple[pandas.DataFrame, list[tuple]]:
    """Drop pictures that are there twice for an entity; both, where they stand for both agents."""
    found, dropped = [], []
    for (entity, _), rows in sound.groupby(["entity", "sha256"], sort=False):
        names = ", ".join(rows["image"])
        if rows["gender"].nunique() > 1:
            found.append(("error", "picture stands for both agents", entity, names))
            dropped += list(rows.index)
        elif len(rows) > 1:
            found.append(("error", "picture is there twice", rows["where"].iloc[0], names))
            dropped += list(rows.index[1:])
    left = sound.drop(index=dropped)
    for _, rows in left.groupby("sha256", sort=False):
        if len(rows) > 1:
            where = ", ".join(rows["entity"])
            found.append(("note", "picture is in two sets", where, rows["image"].iloc[0]))
    return left, found


def _counts(sound: pandas.DataFrame, entities: Sequence[str], per_agent: int) -> list[tuple]:
    """Return sets that are unbalanced, or of another size."""
    table = entity_balance(sound).set_index("entity").reindex(list(entities), fill_value=0)
    wrong = []
    for entity, woman, man in table[list(AGENTS)].itertuples():
        what = f"{woman} of women, {man} of men"
        if woman != man:
            wrong.append(("error", "set is unbalanced", entity, what))
        elif woman not in (0, per_agent):
            wrong.append(("note", "set has another size", entity, f"{what}; not {per_agent}"))
    return wrong
