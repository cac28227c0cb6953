r"""Caption corpora: how often a word stands in one caption with words of a group, at any size.

Hamidieh et al. (2023), section 5, take the captions of LAION-400M that hold a word and a gendered
pronoun, and report the proportion of each gender (Table 1). The paper prints neither its list of
pronouns, nor what counts as holding a word, nor where captions with pronouns of both genders go.
Here:

- **a word** is a run of letters, combining marks and digits; everything else, hyphens, apostrophes
  (U+02BC and its like, which Unicode counts as letters, too) and underscores included, separates
  words. "nurse's" and "nurse-led" hold *nurse*; "nurses" and "wetnurse" do not;
- **case** does not matter: texts and words are compared in lower case. Nor do accents that are
  characters of their own, the final sigma, soft hyphens and other characters that nobody sees, and
  other forms of letters and digits: ligatures, bold ones, those of full width or in a circle
  (Unicode's NFKC). Signs made of letters, such as the trade mark's, separate words. A zero-width
  space or joiner separates words of scripts other than Latin, Greek and Cyrillic, and is nothing in
  these;
- **an entry of several words** (*police officer*, *low-income*) is held where its words follow one
  another, whatever separates them;
- **pronouns** are those of :data:`biaslib.datasets.captions.PRONOUNS`;
  :data:`biaslib.datasets.captions.GENDER_WORDS` has common nouns as well;
- a caption that holds a word several times counts once; captions with pronouns of both groups are
  counted apart, and :func:`biaslib.datasets.proportions` says what becomes of them.

DuckDB counts on one machine (``biaslib[captions]``), in memory that does not grow with the corpus.
"""

import contextlib
import functools
import re
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas
from scipy import stats

from biaslib.datasets._parquet import parquet
from biaslib.datasets.problems import DataError, require_table
from biaslib.errors import InputError, brought_by
from biaslib.metrics.inputs import made_by, one_of, refused, texts, whole_number, whole_numbers
from biaslib.runtime import INVISIBLE, files_below

__all__ = [
    "GENDER_WORDS",
    "PRONOUNS",
    "caption_column",
    "caption_files",
    "group_counts",
    "normalised",
    "proportions",
]

MEMORY = "1500MB"
"""What DuckDB may take before it writes to the disk."""

PRONOUNS = {
    "female": ("she", "her", "hers", "herself"),
    "male": ("he", "him", "his", "himself"),
}
"""Gendered pronouns, third person singular. Ours: the paper prints no list.

:meta hide-value:
"""

GENDER_WORDS = {
    "female": (*PRONOUNS["female"], "woman", "women", "girl", "girls", "female", "lady", "ladies"),
    "male": (*PRONOUNS["male"], "man", "men", "boy", "boys", "male", "gentleman", "gentlemen"),
}
"""Pronouns and common nouns, to see whether the choice of pronouns alone matters.

:meta hide-value:
"""

COLUMNS = ("caption", "TEXT", "text", "Text", "Caption")
"""Columns that hold captions: img2dataset and re-LAION, LAION-400M and LAION-2B, others."""

SEPARATORS = "[^a-z0-9]+"
TEXT_TYPES = ("string", "large_string", "string_view", "binary", "large_binary")

UNSEEN = INVISIBLE.replace("\u200b", "") + "\u034f\ufe00-\ufe0f"
"""With what the eye does not see of an emoji, and which the pattern of words takes for a mark."""

JOINERS = "[\u200b-\u200d]+([\\x00-\u052f]|$)"
"""Zero-width spaces and joiners before Latin, Greek and Cyrillic; elsewhere they part words."""

TEXT = (
    # Each letter of ASCII is one byte; all else is Python's, which alone has NFKC.
    "concat(' ', CASE WHEN strlen({column}) = length({column}) "
    f"THEN regexp_replace(lower({{column}}), '{SEPARATORS}', ' ', 'g') "
    "ELSE normalised({column}) END, ' ')"
)
"""A caption as words are looked for in it, with a space before and after each word."""

QUERY = """
SELECT entry,
       count(*) AS captions,
       count(*) FILTER (a AND NOT b) AS only_a,
       count(*) FILTER (b AND NOT a) AS only_b,
       count(*) FILTER (a AND b) AS both
FROM (
  SELECT entry, regexp_matches(text, '{a}') AS a, regexp_matches(text, '{b}') AS b
  FROM (
    SELECT text, words, unnest(words) AS word, generate_subscripts(words, 1) AS place
    FROM (
      SELECT text, string_split(text, ' ') AS words
      FROM (SELECT {text} AS text FROM {source} WHERE {column} IS NOT NULL)
    )
  )
  JOIN entries ON word = first_word
  WHERE (phrase IS NULL OR contains(text, phrase)) AND list_position(words, word) = place
)
GROUP BY entry
"""
"""Words of every caption are joined to the entries by their first word; only those that match are
looked at again, for the rest of an entry, for the words of the two groups, and whether the caption
had the word before. Nothing is sorted, and the state is one row an entry: memory does not grow with
the corpus."""


@functools.cache
def _folded(letter: str) -> str:
    """Return a character as words are looked for: letters in lower case, else a blank."""
    plain, kind = unicodedata.normalize("NFKC", letter), unicodedata.category(letter)
    if kind[0] not in "LMN" and (kind != "So" or len(plain) > 1):  # a letter in a circle is one
        return " "
    # From U+02B9 to U+02FF stand apostrophes and accents that Unicode counts as letters.
    lower = plain.replace("İ", "i").lower().replace("ς", "σ")
    kept = (unicodedata.category(c)[0] in "LMN" and not "\u02b9" <= c <= "\u02ff" for c in lower)
    return "".join(c if keep else " " for c, keep in zip(lower, kept, strict=True))


def normalised(text: str) -> str:
    """Return a text as words are looked for in it: lower case, single spaces between words.

    Examples
    --------
    >>> normalised("The NURSE's low-income flat")
    'the nurse s low income flat'
    """
    seen = re.sub(JOINERS, r"\1", re.sub(f"[{UNSEEN}]", "", text))
    folded = "".join(map(_folded, unicodedata.normalize("NFC", seen)))
    return " ".join(unicodedata.normalize("NFC", folded).split())


def _all_normalised(texts: Any) -> Any:
    """Return an array of pyarrow with each text normalised."""
    import pyarrow

    return pyarrow.array([normalised(text) for text in texts.to_pylist()], pyarrow.string())


def caption_files(corpus: str | Path) -> list[Path]:
    """Return the parquet files of a corpus: the file itself, or those of a folder and below.

    Links to folders are followed; a file to which several links lead counts once. What lies below a
    name that begins with _ or a dot is left out: Spark and editors put unfinished files and copies
    there.

    Raises
    ------
    DataError
        If there are none; the message says what to put there.
    """
    corpus = Path(corpus)
    if corpus.is_file():
        return [corpus]
    if not corpus.exists():
        raise DataError(f"{corpus} is not there; check the path", path=corpus)
    below = [path for path in files_below(corpus) if path.suffix.lower() == ".parquet"]
    kept = [
        path
        for path in below
        if not any(re.match(r"\.|_(?!.*=)", part) for part in path.relative_to(corpus).parts)
    ]
    if not kept:
        left = f" but {below[0]}, whose name begins with _ or a dot" if below else ""
        raise DataError(
            f"{corpus} holds no parquet files{left}. Put the corpus there as LAION publishes it: "
            f"parquet files with a column of captions named {', '.join(COLUMNS)}",
            path=corpus,
        )
    return sorted({path.resolve(): path for path in reversed(kept)}.values())


def caption_column(files: Sequence[Path], column: str | None = None) -> str:
    """Return the column of captions, the same in all files.

    Parameters
    ----------
    files
        As of :func:`biaslib.datasets.captions.caption_files`.
    column
        Its name; None takes the first of ``COLUMNS`` that the first file has.

    Raises
    ------
    DataError
        If a file is no parquet, lacks the column, has columns that differ by case alone, or has
        something else than text in it; the message names the file and its columns.
    """
    for path in files:
        with parquet(path) as file:
            schema = file.schema_arrow
        name = column or next((each for each in COLUMNS if each in schema.names), None)
        if name not in schema.names:
            wanted = f"column {column!r}" if column else f"column named {', '.join(COLUMNS)}"
            raise DataError(
                f"{path} has no {wanted}; it has {', '.join(schema.names)}. Pass column= with the "
                "name of the captions' column",
                path=path,
                word=column,
            )
        kind = schema.field(name).type
        text = kind.value_type if str(kind).startswith("dictionary") else kind
        if str(text) not in TEXT_TYPES:
            remedy = "leave the file out" if str(kind) == "null" else "pass the name as column="
            raise DataError(
                f"{path}: the column {name!r} holds {kind}, and captions are text; {remedy}",
                path=path,
                word=name,
            )
        column = name
    return column


def group_counts(
    corpus: str | Path,
    words: Sequence[str],
    groups: Mapping[str, Sequence[str]] = PRONOUNS,
    column: str | None = None,
    *,
    threads: int | None = None,
    memory: str = MEMORY,
) -> pandas.DataFrame:
    """Count the captions that hold each word, and those that hold words of a group too: DuckDB.

    Parameters
    ----------
    corpus
        A parquet file, or a folder of them, of any size.
    words
        Words and entries of several words; see the module for what counts as holding one.
    groups
        Two groups by name, each with single words.
    column
        Of the captions; None finds it (:func:`biaslib.datasets.captions.caption_column`).
    threads, memory
        Limits for DuckDB; None takes all cores.

    Returns
    -------
    pandas.DataFrame
        One row a word, in the order given: *word*; *captions* that hold it; of these, those that
        hold a word of one group and none of the other, a column each, named as the groups; *both*.
        ``attrs`` has the *rows* of the corpus and its *nulls*, rows without a caption.

    Raises
    ------
    DataError
        If the corpus is missing or has no captions, or one that is not valid UTF-8: the message
        names the file.
    InputError
        If there are no words, one holds no letter, there are not two groups, or a group's word is
        not a single word.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "corpus.parquet"
    >>> texts = ["The nurse and her bag", "His nurse, her ward", "A police-officer: he waves", None]
    >>> pandas.DataFrame({"TEXT": texts}).to_parquet(path)
    >>> group_counts(path, ["nurse", "police officer"]).to_dict("list")["both"]
    [1, 0]
    """
    entries, patterns = _entries(words), _patterns(groups)
    with _corpus(corpus, column, threads, memory) as (connection, source, column):
        connection.register("entries", entries)
        a, b = patterns.values()
        text = TEXT.replace("{column}", column)
        query = QUERY.format(source=source, column=column, text=text, a=a, b=b)
        counted = connection.execute(query).df().set_index("entry")
        count = f"SELECT count(*), count({column}) FROM {source}"
        rows, captions = connection.execute(count).fetchone()
    spelling = entries.attrs["words"]
    counted = counted.set_axis(["captions", *patterns, "both"], axis="columns")
    table = counted.reindex(spelling.values()).fillna(0).astype(int).reset_index(drop=True)
    table.insert(0, "word", list(spelling))
    table.attrs = {"rows": int(rows), "nulls": int(rows - captions)}
    return table


def proportions(counts: pandas.DataFrame, both: str = "left out") -> pandas.DataFrame:
    """Return each word's share of the first group, with Clopper and Pearson's interval of 95%.

    Parameters
    ----------
    counts
        As of :func:`biaslib.datasets.group_counts`.
    both
        Captions with words of both groups are ``"left out"``, or ``"counted twice"``, once for
        each. The paper does not say; its two columns add up to 100% either way.

    Returns
    -------
    pandas.DataFrame
        *word*; *share* of the first group, with *low* and *high*; *n*, of how many captions. Words
        that no caption holds with either group have NaN and n = 0.

    Raises
    ------
    InputError
        If ``both`` is neither of the two.

    Examples
    --------
    >>> counts = pandas.DataFrame({"word": ["ceo"], "captions": 90, "female": 2, "male": 6})
    >>> proportions(counts.assign(both=2))[["share", "n"]].values.tolist()
    [[0.25, 8.0]]
    >>> proportions(counts.assign(both=2), both="counted twice")["share"].tolist()
    [0.3333333333333333]
    """
    one_of(both, "both", ("left out", "counted twice"))
    counts = require_table(counts, "counts", ["word", "both"]).reset_index(drop=True)
    names = [name for name in counts.columns if name not in ("word", "captions", "both")]
    first, second, mixed = (
        whole_numbers(counts[name], name, "one count a word", 1, 0, 2**53)
        for name in (*names, "both")
    )
    twice = mixed if both == "counted twice" else 0
    shares = counts[["word"]].assign(share=float("nan"), low=float("nan"), high=float("nan"))
    shares["n"] = first + second + 2 * twice
    for row, (k, n) in enumerate(zip(first + twice, shares["n"], strict=True)):
        if n:
            interval = stats.binomtest(int(k), int(n)).proportion_ci(0.95)
            shares.loc[row, ["share", "low", "high"]] = k / n, interval.low, interval.high
    return shares


def _entries(words: Sequence[str]) -> pandas.DataFrame:
    """Return words as the query takes them: entry, first_word, phrase; ``attrs`` has the words."""
    given = list(dict.fromkeys(texts(words, "words")))
    entries = [normalised(word) for word in given]
    if not given:
        raise refused("words", "is empty: there is nothing to look for")
    empty = [word for word, entry in zip(given, entries, strict=True) if not entry]
    if empty:
        raise InputError(
            f"{empty[0]!r} holds neither letter nor digit: it cannot be looked for", word=empty[0]
        )
    unique = list(dict.fromkeys(entries))
    table = pandas.DataFrame({"entry": unique})
    table["first_word"] = [entry.split()[0] for entry in unique]
    table["phrase"] = [f" {entry} " if " " in entry else None for entry in unique]
    table.attrs["words"] = dict(zip(given, entries, strict=True))
    return table


def _patterns(groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the pattern of each of two groups, by name."""
    made_by(groups, "groups", Mapping, "two lists of words by name")
    if len(groups) != 2:
        raise refused("groups", f"has {len(groups)} groups of words, and two are compared")
    names = texts(list(groups), "groups")
    return {name: _pattern(texts(groups[name], "groups")) for name in names}


def _pattern(group: Sequence[str]) -> str:
    """Return the pattern that finds a word of the group in a text with spaces around words."""
    words = [normalised(word) for word in group]
    bad = [word for word, plain in zip(group, words, strict=True) if len(plain.split()) != 1]
    if bad or not words:
        wrong = (bad or [None])[0]
        raise InputError(f"a group holds single words, and not {wrong!r}", word=wrong)
    return f" ({'|'.join(words)}) "


@contextlib.contextmanager
def _corpus(corpus, column: str | None, threads: int | None = None, memory: str = MEMORY):
    """Yield a connection of DuckDB, what it reads, and the captions' column, quoted.

    DuckDB takes a name for a pattern, and the name of a folder such as ``TEXT=x`` for a column.
    What it cannot do to the corpus is a :class:`DataError`.
    """
    with brought_by("captions"):
        import duckdb
    files = caption_files(corpus)
    column = caption_column(files, column)
    quoted = '"' + column.replace('"', '""') + '"'
    # Characters of a pattern stand in brackets for themselves.
    names = (re.sub(r"([*?\[])", r"[\1]", str(path)).replace("'", "''") for path in files)
    listed = ", ".join(f"'{name}'" for name in names)
    source = f"read_parquet([{listed}], hive_partitioning = false, binary_as_string = true)"
    settings = {"memory_limit": memory, "preserve_insertion_order": False}
    settings |= {"threads": whole_number(threads, "threads", 1)} if threads is not None else {}
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            duckdb.connect(config=settings | {"temp_directory": folder}) as connection,
        ):
            connection.execute("SET enable_progress_bar = false")
            text = duckdb.sqltype("VARCHAR")
            connection.create_function("normalised", _all_normalised, [text], text, type="arrow")
            any_text = f"SELECT 1 FROM {source} WHERE {quoted} IS NOT NULL LIMIT 1"
            if not connection.execute(any_text).fetchall():
                raise DataError(
                    f"the column {column!r} of {files[0]} and all others is empty: "
                    "pass column= with the name of the captions'",
                    path=files[0],
                    word=column,
                )
            yield connection, source, quoted
    except (duckdb.Error, RuntimeError) as error:
        if re.search("KeyboardInterrupt|Query interrupted", str(error)):
            raise KeyboardInterrupt from error
        raise DataError(
            f"DuckDB cannot count the captions of {files[0]}, one of {len(files)} files: {error}. "
            f"If it lacks memory, give more than {memory!r} or fewer threads",
            path=files[0],
        ) from error
