"""Files: hashes, and those that users bring, read whole or refused with name, line and remedy."""

import contextlib
import csv
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pandas

from biaslib.errors import InputError

PROGRAMS = (".", "@eaDir", "__MACOSX", "Thumbs.db", "desktop.ini")
"""How files and folders begin that a program put beside a person's."""


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def source_hash(folder: str | Path = Path(__file__).parents[1]) -> str:
    """Return 12 hexadecimal digits that change whenever a file of a folder changes.

    Code and data files count, in the order of their relative paths; byte code does not. Without a
    folder it is that of ``biaslib``.
    """
    listed = "".join(
        f"{path.relative_to(folder).as_posix()}\0{file_sha256(path)}\n"
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.relative_to(folder).parts
    )
    return hashlib.sha256(listed.encode()).hexdigest()[:12]


@contextlib.contextmanager
def naming(path: str | os.PathLike, error: type[InputError]) -> Iterator[None]:
    """Turn whatever goes wrong with a file into an error that names it and says what to do.

    Parameters
    ----------
    path
        The file.
    error
        What is raised; errors of this kind pass as they are.

    Examples
    --------
    >>> with naming("missing.csv", InputError):
    ...     open("missing.csv")
    Traceback (most recent call last):
    biaslib.errors.InputError: missing.csv is not there; check the path
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise error(
                f"{path} is no file but a folder or a device; pass the file itself", path=path
            )
        yield
    except error:
        raise
    except (FileNotFoundError, PermissionError) as cause:
        there = os.path.exists(path)
        what = "may not be read; make it readable" if there else "is not there; check the path"
        raise error(f"{path} {what}", path=path) from cause
    except Exception as cause:  # Libraries raise errors of many kinds on damaged bytes.
        said = str(cause) or type(cause).__name__
        raise error(
            f"{path} cannot be read: {said}. It is damaged or of another kind; get it again",
            path=path,
        ) from cause


def files_below(folder: str | os.PathLike, above: tuple[str, ...] = ()) -> list[Path]:
    """Return the files of a folder and of those below it, links to folders followed, in order.

    Examples
    --------
    >>> [path.name for path in files_below(Path(__file__).parents[1] / "pictures")][:1]
    ['__init__.py']
    """
    above, found = (*above, os.path.realpath(folder)), []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not entry.is_dir():
            found.append(Path(entry.path))
        elif os.path.realpath(entry.path) not in above:  # a link to where it comes from
            found += files_below(entry.path, above)
    return found


def is_hidden(path: Path) -> bool:
    """Tell whether a program put a picture there, and not a person: a copy, or one made smaller.

    Examples
    --------
    >>> [is_hidden(Path(name)) for name in ("._x.jpg", "@eaDir/x.jpg", "_DSC0001.jpg")]
    [True, True, False]
    """
    return any(part.startswith(PROGRAMS) for part in path.parts)


def read_text(path: str | os.PathLike, error: type[InputError]) -> str:
    """Return a file's text, UTF-8 with or without its mark, each line ended by ``\\n``.

    Raises
    ------
    error
        If the file cannot be read or is not UTF-8; the message names it and the line.
    """
    with naming(path, error):
        content = Path(path).read_bytes()
    place, reason = content.find(b"\0"), "a NUL, as in UTF-16"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        place, reason = cause.start, cause.reason
    if place >= 0:
        line = content.count(b"\n", 0, place) + 1
        raise error(
            f"{path} is not UTF-8 (byte {place}, line {line}: {reason}); save it as UTF-8",
            path=path,
            row=line,
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_rows(
    path: str | os.PathLike, error: type[InputError]
) -> tuple[dict[int, list[str]], dict[int, str]]:
    """Return the cells of a CSV file by line, and what is wrong with lines that cannot be parsed.

    Every line is a row of its own, so that a stray quotation mark takes no other row with it.
    Empty lines are left out.
    """
    rows, wrong = {}, {}
    for line, text in enumerate(read_text(path, error).split("\n"), start=1):
        try:
            cells = next(csv.reader([text], strict=True), [])
        except csv.Error as cause:
            wrong[line] = f"{cause}: a stray quotation mark, or a cell over several lines"
        else:
            rows |= {line: cells} if cells else {}
    return rows, wrong


def read_table(
    path: str | os.PathLike, error: type[InputError]
) -> tuple[pandas.DataFrame, dict[int, str]]:
    """Return a CSV file as a table of text, and what is wrong with lines that are no row of it.

    Returns
    -------
    pandas.DataFrame
        The cells, the index being the line of the file. A first line ``sep=,``, as spreadsheets
        write it, is no header.
    dict
        Line -> what is wrong: it cannot be parsed, or has more or fewer cells than the header.

    Raises
    ------
    error
        As :func:`read_text`, and if the file is empty, the header names a column twice, or no row
        is under it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "words.csv"
    >>> _ = path.write_text("word,kind\\ncat,noun\\n\\ndog\\n")
    >>> table, wrong = read_table(path, InputError)
    >>> table.to_dict("index"), wrong
    ({2: {'word': 'cat', 'kind': 'noun'}}, {4: '1 cells, and the header has 2'})
    """
    rows, wrong = read_rows(path, error)
    if not rows:
        raise error(f"{path} is empty; write a header and at least one row under it", path=path)
    first = min(rows)
    header = rows.pop(first)
    if header == ["sep=", ""] and rows:
        first = min(rows)
        header = rows.pop(first)
    twice = [name for name in header if name and header.count(name) > 1]
    if twice or min(wrong, default=first) < first:
        what = f"the column {twice[0]!r} twice" if twice else "a header that is no row"
        raise error(f"{path}, line {first} holds {what}; mend the header", path=path, row=first)
    wrong |= {
        line: f"{len(cells)} cells, and the header has {len(header)}"
        for line, cells in rows.items()
        if len(cells) != len(header)
    }
    kept = {line: cells for line, cells in rows.items() if line not in wrong}
    if not rows and not wrong:
        raise error(f"{path} has no row under its header; write at least one", path=path)
    table = pandas.DataFrame(kept.values(), index=list(kept), columns=header, dtype=str)
    return table, dict(sorted(wrong.items()))
