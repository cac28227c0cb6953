"""VisoGender (Hall et al. 2023): 230 links to photographs of one person with an object of a job.

The photographs of study 2 were never released. These can take their place on objects of their own,
ten of each of 23 occupations, which share 16 objects; they are another study, and no printed number
is judged by them. The list is CC BY 4.0, to evaluate models and never to train them; each picture
has the licence of its own page. The authors take requests to remove one. Gender is what the
collectors perceived: nobody in the pictures was asked.
"""

import shutil
from pathlib import Path

import pandas

from biaslib.checkpoints.downloads import retrieve
from biaslib.datasets.links import HERE, download_images
from biaslib.datasets.problems import DataError
from biaslib.runtime import cleaned, naming

__all__ = ["ENTITIES", "SHA256", "URL", "fetch", "read"]

REPOSITORY = "https://github.com/oxai/visogender"
"""The authors' page."""

URL = (
    "https://raw.githubusercontent.com/oxai/visogender/ecf224b2d5c6dd9b113fef2a44ec1967c4cdaf1e"
    "/data/visogender_data/OO/OO_Visogender_10052025.tsv"
)
"""The authors' list of May 2025, at the commit that brought it.

:meta hide-value:
"""

SHA256 = "d5fcb91c6188ca9da147891912e5b60f5dfd07f155194fe49f9e455e7a9be003"
"""Checksum of the list, that of its file in the repository.

:meta hide-value:
"""

COLUMNS = {
    "IDX": "file",
    "Occupation": "occupation",
    "Object": "object",
    "URL type (Type NA if can't find)": "url",
    "Occupation_perceived_gender": "gender",
}
"""The columns that are read, and what they are here; who collected a picture is not among them."""

GENDERS = {"feminine": "woman", "masculine": "man"}

WITHOUT_ARTICLE = ("equipment", "paint", "scissors")

LISTED, DOWNLOADS, ENTITIES = "links.csv", ".links", "entities.csv"
"""Below the folder: the list without names, the pictures as they came, and the entities."""


def fetch(folder: str | Path, again: bool = False) -> pandas.DataFrame:
    """Fetch list and pictures, and lay them out for :func:`biaslib.studies.study2_masked.inputs`.

    Of every occupation as many pictures of women as of men are laid out, those that its links still
    give, five of each at most, in ``<object>/woman`` and ``<object>/man``. Objects that several
    occupations share are one entity. Eight links are thumbnails of a search engine, small and
    likely to die. Stopped, or called again, it goes on where it was.

    Parameters
    ----------
    folder
        Made if it is not there; its name is the data set's in scores.
    again
        Ask dead links again.

    Returns
    -------
    pandas.DataFrame
        One row a link: *file*, *occupation*, *object*, *gender*, *url*; *outcome* and the rest as
        of :func:`biaslib.datasets.download_images`; *used*, whether the picture is laid out.

    Raises
    ------
    InputError
        If the list cannot be had or is another one, or the folder cannot be written.

    Examples
    --------
    .. code-block:: python

        visogender.fetch("biaslib-data/visogender")
        given = study.inputs("paper", folder="biaslib-data/visogender", per_agent=5,
                             only_sound=True)
    """
    folder = Path(folder)
    links = download_images(_links(folder), folder / DOWNLOADS, again=again)
    here = links[links["outcome"] == HERE]
    # One photograph in two sizes is one, also where two occupations that share an object list it.
    photograph = here["url"].str.replace(r"(\.jpe?g)\?.*", r"\1", regex=True)
    here = here[~here.assign(url=photograph).duplicated(["object", "gender", "url"])]
    counts = here.groupby(["occupation", "gender"]).size().unstack(fill_value=0)
    fewest = counts.reindex(columns=[*GENDERS.values()], fill_value=0).min(axis=1)
    rank = here.groupby(["occupation", "gender"]).cumcount()
    links = links.assign(used=links.index.isin(here.index[rank < here["occupation"].map(fewest)]))
    for row in links.itertuples():
        path = folder / row.object / row.gender / row.file
        path.parent.mkdir(parents=True, exist_ok=True)
        if row.used:
            shutil.copyfile(folder / DOWNLOADS / row.file, path)
        else:
            path.unlink(missing_ok=True)
    _entities(links["object"]).to_csv(folder / ENTITIES, index=False)
    return links


def read(path: str | Path) -> pandas.DataFrame:
    """Read the authors' list, or one of its form.

    Parameters
    ----------
    path
        The file: values between tabs.

    Returns
    -------
    pandas.DataFrame
        One row a picture: *file*, a name for it; *occupation*; *object*; *url*; *gender*, that the
        collectors perceived, ``woman`` or ``man``. Nobody's name is kept.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column, or a row has no object or no gender of the two;
        the message names column or line.
    """
    path = Path(path)
    with naming(path, DataError):
        rows = pandas.read_csv(path, sep="\t", dtype=str, keep_default_na=False, usecols=COLUMNS)
    rows = rows.rename(columns=COLUMNS).map(cleaned)
    rows["object"] = rows["object"].str.replace("_", " ")
    unknown = ~rows["gender"].isin([*GENDERS]) | (rows["object"] == "")
    for at, row in rows[unknown].iterrows():
        raise DataError(
            f"{path.name}, line {at + 2}: the object is {row['object']!r} and the perceived gender "
            f"{row['gender']!r}, not one of {', '.join(GENDERS)}; mend the line or take it out",
            path=path,
            row=at + 2,
            word=row["gender"],
        )
    return rows.assign(gender=rows["gender"].map(GENDERS), file=rows["file"] + ".img")


def _links(folder: Path) -> pandas.DataFrame:
    """Return the list, downloaded if it is not there, of which no name of a person stays here."""
    kept, whole, part = folder / LISTED, folder / ".list.tsv", folder / ".list.csv"
    if not kept.is_file():
        retrieve([URL], whole, SHA256, REPOSITORY)
        read(whole).to_csv(part, index=False)
        whole.unlink()
        part.replace(kept)
    return pandas.read_csv(kept, dtype=str, keep_default_na=False)


def _entities(objects: pandas.Series) -> pandas.DataFrame:
    """Return objects as :func:`biaslib.stimuli.own_entities` reads them.

    In one frame for all, so that each is a candidate for every mask; "has", as the authors'
    captions say "the doctor and their stethoscope".

    Examples
    --------
    >>> _entities(pandas.Series(["paint", "animal", "desk"]))["frame"].str[16:].tolist()
    ['{entity}.', 'an {entity}.', 'a {entity}.']
    """
    names = objects.drop_duplicates()
    article = names.str.contains("^[aeiou]").map({True: "an ", False: "a "})
    article = article.mask(names.isin(WITHOUT_ARTICLE), "")
    frames = "The {agent} has " + article + "{entity}."
    about = {"set": "VisoGender", "source": "Hall et al. 2023"}
    return pandas.DataFrame({"entity": names, "frame": frames}).assign(**about)
