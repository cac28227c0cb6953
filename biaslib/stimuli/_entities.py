"""Entities of the masked-word study, each with a sentence frame."""

import functools
import string
from pathlib import Path

import pandas

from biaslib.errors import InputError
from biaslib.runtime import cleaned, read_table
from biaslib.stimuli._data import read_csv

COLUMNS = ["entity", "verb", "frame", "set", "stereotype", "pictured", "source"]
STEREOTYPES = ("women", "men")
OWN_COLUMNS = ("entity", "frame")
"""What a list of one's own must have."""


def entities() -> pandas.DataFrame:
    """Return the entities of the masked-word study and the sentence frame of each.

    The set ``"case study"`` holds the six entities of Srinivasan and Bisk (2021), Table 2, with
    the verbs printed there. The paper's list of forty gendered entities is legible only in a
    figure, and only *cat* and *cigar* are named in its caption; so the set ``"gendered"`` holds
    forty of ours: twenty that stereotypes in common use give to women and twenty that they give
    to men, chosen for having a picture and, nearly all, for being one count noun. Nobody was
    asked about them: the column *stereotype* is our reading and no measurement.

    .. warning:: Content note. The list repeats stereotypes about women and men. It describes the
       stereotypes and not the people.

    Returns
    -------
    pandas.DataFrame
        One row per entity; in pairs, the stereotype about women first. Columns *entity*; *verb*;
        *frame*, a sentence with the places ``{agent}`` and ``{entity}``, its article fitting the
        entity; *set*; *stereotype*, ``"women"`` or ``"men"``; *pictured*, whether
        :func:`plantedworld.draw` can draw it; *source*.

    Examples
    --------
    >>> frame = entities().set_index("entity")
    >>> frame.loc["apron", "frame"].format(agent="person", entity="apron")
    'The person is wearing an apron.'
    >>> frame.loc["wine", "frame"]
    'The {agent} is drinking {entity}.'
    >>> entities().groupby("set").size().to_dict()
    {'case study': 6, 'gendered': 40}
    """
    return _entities().copy()


def own_entities(path: str | Path) -> pandas.DataFrame:
    """Return a list of entities of one's own, checked, with the columns of :func:`entities`.

    Parameters
    ----------
    path
        A CSV file with the columns *entity* and *frame*, a sentence with the places ``{agent}``
        and ``{entity}``; and, where they are known, *stereotype* (``women``, ``men`` or empty),
        *set* and *source*.

    Raises
    ------
    InputError
        If the file cannot be read, a line is no row, a column is missing, an entity is empty or
        stands twice, a frame has other places than the two or a stereotype is unknown; the message
        names the file, and the line or the entity.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.csv"
    ...     _ = path.write_text("entity,frame\\nkettle,The {agent} is holding a {entity}.\\n")
    ...     own_entities(path)[["entity", "verb", "stereotype"]].values.tolist()
    [['kettle', 'is holding', '']]
    """
    path = Path(path)
    rows, wrong = read_table(path, InputError)
    for line, what in wrong.items():
        raise InputError(f"{path.name}, line {line}: {what}; mend the line", path=path, row=line)
    rows = rows.rename(columns=cleaned).map(cleaned)
    for column in OWN_COLUMNS:
        if column not in rows:
            raise InputError(
                f"{path.name} lacks the column {column}; it has {', '.join(rows.columns)}",
                path=path,
                word=column,
            )
    for column, value in (("stereotype", ""), ("source", ""), ("set", "own")):
        if column not in rows:
            rows = rows.assign(**{column: value})
    _require_sound(rows, path)
    for entity, frame in zip(rows["entity"], rows["frame"], strict=True):
        if not entity or _places(frame) != ["agent", "entity"]:
            raise InputError(
                f"{path.name}: the frame of {entity!r}, {frame!r}, needs {{agent}} and {{entity}} "
                "once each and no other brace, and the entity a name",
                path=path,
                word=entity,
            )
    between = rows["frame"].str.extract(r"\{agent\} (.*?)(?: an?)? \{entity\}")[0]
    rows = rows.assign(verb=between.fillna(""), pictured=False)[COLUMNS]
    return rows.reset_index(drop=True)


def _places(frame: str) -> list[str]:
    """Return the names of a frame's places, sorted; none if its braces do not fit each other."""
    try:
        parts = list(string.Formatter().parse(frame))
    except ValueError:
        return []
    return sorted(f"{name}{spec}{conv or ''}" for _, name, spec, conv in parts if name is not None)


@functools.cache
def _entities() -> pandas.DataFrame:
    rows = read_csv("entities.csv")
    article = rows["article"].where(rows["article"] == "", rows["article"] + " ")
    rows["frame"] = "The {agent} " + rows["verb"] + " " + article + "{entity}."
    rows["pictured"] = rows["pictured"] == "yes"
    return rows[COLUMNS]


def _require_sound(rows: pandas.DataFrame, path: Path) -> None:
    """Check that no entity stands twice and that every stereotype is known, or none is given."""
    twice = rows.loc[rows["entity"].duplicated(), "entity"]
    if len(twice):
        word = twice.iloc[0]
        what = f"{path.name} holds the entity {word!r} twice; keep one of the rows"
        raise InputError(what, path=path, word=word)
    unknown = rows.loc[~rows["stereotype"].isin((*STEREOTYPES, ""))]
    if len(unknown):
        row = unknown.iloc[0]
        raise InputError(
            f"{path.name} gives {row['entity']!r} the stereotype {row['stereotype']!r}; "
            f"write one of {', '.join(STEREOTYPES)}",
            path=path,
            word=row["entity"],
        )
