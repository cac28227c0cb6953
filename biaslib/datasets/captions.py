r"""Caption corpora: how often a word stands in one caption with words of a group, at any size.

Hamidieh et al. (2023), section 5, take the captions of LAION-400M that hold a word and a gendered
pronoun, and report the proportion of each gender (Table 1). The paper prints neither its list of
pronouns, nor what counts as holding a word, nor where captions with pronouns of both genders go.
Here:

- **a word** is a run of letters, combining marks and digits; everything else, hyphens, apostrophes
  and underscores included, separates words. "nurse's" and "nurse-led" hold *nurse*; "nurses" and
  "wetnurse" do not;
- **case** does not matter: texts and words are compared in lower case. Nor do accents that are
  characters of their own, the final sigma, soft hyphens and other characters that nobody sees, and
  Latin letters and digits of full width. A zero-width space or joiner separates words of scripts
  other than Latin, Greek and Cyrillic, and is nothing in these;
- **an entry of several words** (*police officer*, *low-income*) is held where its words follow one
  another, whatever separates them;
- **pronouns** are those of :data:`biaslib.datasets.captions.PRONOUNS`;
  :data:`biaslib.datasets.captions.GENDER_WORDS` has common nouns as well;
- a caption that holds a word several times counts once; captions with pronouns of both groups are
  counted apart, and :func:`biaslib.datasets.proportions` says what becomes of them.

The query is one SQL text. DuckDB runs it on one machine (``biaslib[captions]``); Spark runs the
same on a cluster (``biaslib[spark]``, which needs Java) for a corpus that outgrows the machine.
"""

import collections
import contextlib
import functools
import itertools
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas

from biaslib.datasets._arguments import (
    require_path,
    require_table,
    require_text,
    require_texts,
)
from biaslib.datasets._parquet import parquet
from biaslib.datasets._problems import DataError, problems, require_sound
from biaslib.errors import InputError, brought_by
from biaslib.inference import proportion_interval
from biaslib.metrics.inputs import (
    between_0_and_1,
    flag,
    made_by,
    one_of,
    refused,
    whole_number,
    whole_numbers,
)
from biaslib.runtime import INVISIBLE, file_sha256, naming

__all__ = [
    "GENDER_WORDS",
    "PRONOUNS",
    "caption_column",
    "caption_files",
    "caption_problems",
    "group_counts",
    "group_counts_on_spark",
    "matching_captions",
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

ADDRESSES = ("url", "URL")
SEPARATORS = r"[^\p{L}\p{M}\p{N}]+"
BATCH = 65_536

UNSEEN = INVISIBLE.replace("\u200b", "") + "\u034f\ufe00-\ufe0f"
"""With what the eye does not see of an emoji, and which the pattern of words takes for a mark."""

JOINERS = "[\u200b-\u200d]+([\\x00-\u052f]|$)"
"""Zero-width spaces and joiners before Latin, Greek and Cyrillic; elsewhere they part words."""

WIDE = "".join(map(chr, [*range(0xFF10, 0xFF1A), *range(0xFF41, 0xFF5B)])) + "ς"
NARROW = "0123456789abcdefghijklmnopqrstuvwxyzσ"
RARE = f"[{UNSEEN}\u200b-\u200dς\uff10-\uff5a]"

SEEN = f"regexp_replace(regexp_replace({{column}}, '[{UNSEEN}]', '', 'g'), '{JOINERS}', '\\1', 'g')"

DUCKDB = {
    # What takes time is not done to ASCII, of which each letter is one byte, nor without need.
    "replace": "regexp_replace(CASE WHEN strlen({column}) = length({column}) THEN lower({column}) "
    f"WHEN regexp_matches({{column}}, '{RARE}') "
    f"THEN translate(lower(nfc_normalize({SEEN})), '{WIDE}', '{NARROW}') "
    "ELSE lower(nfc_normalize({column})) END, "
    f"'{SEPARATORS}', ' ', 'g')",
    "words": "string_split(text, ' ')",
    "each": "unnest(words) AS word, generate_subscripts(words, 1) AS place",
    "first": "list_position(words, word) = place",
    "holds": "regexp_matches(text, '{pattern}')",
}
SPARK = {
    "replace": "regexp_replace(translate(lower({column}), 'ς', 'σ'), r'" + SEPARATORS + "', ' ')",
    "words": "split(text, ' ')",
    "each": "posexplode(words) AS (place, word)",
    "first": "array_position(words, word) = place + 1",
    "holds": "text rlike '{pattern}'",
}

QUERY = """
SELECT entry,
       count(*) AS captions,
       count(CASE WHEN a AND NOT b THEN 1 END) AS only_a,
       count(CASE WHEN b AND NOT a THEN 1 END) AS only_b,
       count(CASE WHEN a AND b THEN 1 END) AS both
FROM (
  SELECT entry, {holds_a} AS a, {holds_b} AS b
  FROM (
    SELECT text, words, {each}
    FROM (
      SELECT text, {words} AS words
      FROM (SELECT concat(' ', {replace}, ' ') AS text FROM {source} WHERE {column} IS NOT NULL) c
    ) s
  ) w
  JOIN entries ON w.word = entries.first_word
  WHERE (phrase IS NULL OR contains(text, phrase)) AND {first}
) f
GROUP BY entry
"""
"""Words of every caption are joined to the entries by their first word; only those that match are
looked at again, for the rest of an entry, for the words of the two groups, and whether the caption
had the word before. Nothing is sorted, and the state is one row an entry: memory does not grow with
the corpus."""


def normalised(text: str) -> str:
    """Return a text as words are looked for in it: lower case, single spaces between words.

    Examples
    --------
    >>> normalised("The NURSE's low-income flat")
    'the nurse s low income flat'
    """
    seen = re.sub(JOINERS, r"\1", re.sub(f"[{UNSEEN}]", "", text))
    lower = unicodedata.normalize("NFC", seen).replace("İ", "i").lower()
    narrow = lower.translate(str.maketrans(WIDE, NARROW))
    kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in narrow)
    return " ".join("".join(kept).split())


def caption_files(corpus: str | Path) -> list[Path]:
    """Return the parquet files of a corpus: the file itself, or those of a folder and below.

    Each once: not those below a name that begins with _ or a dot, as Spark and editors leave them,
    nor a second name or copy of a file.

    Raises
    ------
    DataError
        If there are none, or two versions of one, as a hub's cache keeps them; the message says
        what to put there.
    """
    return _files_of(Path(corpus))[0]


def _files_of(corpus: Path) -> tuple[list[Path], list[tuple]]:
    """Return the files that are counted, and notes on those that are not."""
    if corpus.is_file():
        return [corpus], []
    if not corpus.exists():
        raise DataError(f"{corpus} is not there; check the path", path=corpus)
    below = sorted(path for path in corpus.rglob("*.parquet") if not path.is_dir())
    hidden = [path for path in below if any(map(_is_hidden, path.relative_to(corpus).parts))]
    contents = _contents([path for path in below if path not in set(hidden)])
    if not contents:
        left = f" but {hidden[0]}, whose name begins with _ or a dot" if hidden else ""
        raise DataError(
            f"{corpus} holds no parquet files{left}. Put the corpus there as LAION publishes it: "
            f"parquet files with a column of captions named {', '.join(COLUMNS[:-1])} or "
            f"{COLUMNS[-1]}",
            path=corpus,
        )
    _require_one_version(contents)
    first = {content: path for path, content in reversed(contents.items())}
    again = {path: first[content] for path, content in contents.items() if first[content] != path}
    notes = [("note", "file is hidden", str(path), "left out") for path in hidden]
    notes += [
        ("note", "file is there twice", str(path), f"counted once, as {other}")
        for path, other in again.items()
    ]
    return sorted(first.values()), notes


def _contents(paths: Sequence[Path]) -> dict[Path, Any]:
    """Return what tells the contents of files apart; only those of one size are read for it."""
    real = {path: path.resolve() for path in paths}
    sizes = {path: path.stat().st_size for path in set(real.values()) if path.is_file()}
    equal = collections.Counter(sizes.values())

    @functools.cache
    def content(path: Path) -> Any:
        if path not in sizes:
            return path
        with naming(path, DataError):
            return sizes[path] if equal[sizes[path]] == 1 else file_sha256(path)

    return {path: content(real[path]) for path in paths}


def _require_one_version(contents: Mapping[Path, Any]) -> None:
    """Refuse a hub's cache of two versions that each hold what the other one lacks."""
    caches: dict[Path, dict[Path, set]] = {}
    for path, content in contents.items():
        for version in path.parents[:-1]:
            if version.parent.name == "snapshots" and (version.parents[1] / "blobs").is_dir():
                versions = caches.setdefault(version.parent, {})
                versions.setdefault(version, set()).add(content)
    for versions in caches.values():
        largest = max(versions, key=lambda each: len(versions[each]))
        for version, held in versions.items():
            if not held <= versions[largest]:
                raise DataError(
                    f"{largest} and {version} are two versions of one corpus; give one of these "
                    "folders",
                    path=version,
                )


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
        If a file is no parquet, lacks the column, or has something else than text in it; the
        message names the file and its columns.
    """
    column = None if column is None else require_text(column, "column")
    for path in files:
        schema = _schema(path)
        found = column or next((name for name in COLUMNS if name in schema.names), None)
        if found not in schema.names:
            wanted = f"column {column!r}" if column else f"column named {', '.join(COLUMNS)}"
            raise DataError(
                f"{path} has no {wanted}; it has {', '.join(schema.names)}. Pass column= with the "
                "name of the captions' column",
                path=path,
                word=column,
            )
        kind = schema.field(found).type
        if not _is_text(kind):
            raise DataError(
                f"{path}: the column {found!r} holds {kind}, and captions are text. "
                f"{_way_out(found, kind, schema.names)}",
                path=path,
                word=found,
            )
        column = found
    return column


def _is_text(kind: Any) -> bool:
    """Tell whether a column holds text: by its name, as bytes, or as a category of either."""
    kind = kind.value_type if str(kind).startswith("dictionary") else kind
    return str(kind) in ("string", "large_string", "string_view", "binary", "large_binary")


def _way_out(column: str, kind: Any, names: Sequence[str]) -> str:
    if "list" in str(kind):
        return f"Write a row a caption, as pandas does by table.explode({column!r})"
    other = next((name for name in COLUMNS if name in names and name != column), None)
    return f"Pass column={other!r}" if other else "Pass column= with the name of one that has text"


def caption_problems(corpus: str | Path, column: str | None = None) -> pandas.DataFrame:
    """Return what is wrong with a corpus, file by file: nulls and captions that are not UTF-8.

    Parameters
    ----------
    corpus
        A parquet file, or a folder of them.
    column
        As of :func:`biaslib.datasets.captions.caption_column`.

    Returns
    -------
    pandas.DataFrame
        *severity* (nulls are a ``note``, they hold no word, and so is a file that is hidden or
        there twice; wrong encoding is an ``error``), *kind*, *where* (the file) and *what* (how
        many, and the first rows). ``attrs`` has all *nulls*.
    """
    files, notes = _files_of(Path(corpus))
    return _problems(files, caption_column(files, column), notes)


def _problems(files: Sequence[Path], column: str, notes: list[tuple]) -> pandas.DataFrame:
    rows = list(notes)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        counted = list(threads.map(_counted, files, itertools.repeat(column)))
    for path, (nulls, invalid) in zip(files, counted, strict=True):
        if nulls:
            rows.append(("note", "caption is null", str(path), f"{nulls:,} rows"))
        if invalid:
            first = ", ".join(str(row) for row in invalid[:3])
            what = f"{len(invalid):,} rows, the first: {first}"
            rows.append(("error", "caption is not valid UTF-8", str(path), what))
    found = problems(rows)
    found.attrs["nulls"] = sum(nulls for nulls, _ in counted)
    return found


def group_counts(
    corpus: str | Path,
    words: Sequence[str],
    groups: Mapping[str, Sequence[str]] = PRONOUNS,
    column: str | None = None,
    *,
    threads: int | None = None,
    memory: str = MEMORY,
    only_sound: bool = False,
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
    only_sound
        Go on without the captions that are not valid UTF-8.

    Returns
    -------
    pandas.DataFrame
        One row a word, in the order given: *word*; *captions* that hold it; of these, those that
        hold a word of one group and none of the other, a column each, named as the groups; *both*.
        ``attrs`` has the *rows* of the corpus, its *nulls*, and its *problems*: nulls file by
        file, and what was left out, files that are hidden or there twice among it.

    Raises
    ------
    DataError
        If the corpus is missing or has no captions, or captions that are not valid UTF-8, named
        and counted.
    ValueError
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
    entries, (a, b) = _entries(words), _two_groups(groups)
    threads = None if threads is None else whole_number(threads, "threads", 1)
    only_sound, memory = flag(only_sound, "only_sound"), require_text(memory, "memory")
    files, notes = _files_of(require_path(corpus, "corpus"))
    column = caption_column(files, column)
    found = _checked(corpus, files, column, only_sound, notes)
    with tempfile.TemporaryDirectory() as folder:
        files = [_without_invalid(path, column, found, Path(folder)) for path in files]
        source = _source(files)
        query = _query(DUCKDB, source, column, groups[a], groups[b])
        with _duckdb(corpus, threads, memory, folder) as connection:
            connection.register("entries", entries)
            counted = connection.execute(query).df()
            (n_rows,) = connection.execute(f"SELECT count(*) FROM {source}").fetchone()
    return _finished(counted, entries, a, b, n_rows, found.attrs["nulls"], found)


def group_counts_on_spark(
    session: Any,
    corpus: str | Path,
    words: Sequence[str],
    groups: Mapping[str, Sequence[str]] = PRONOUNS,
    column: str = "caption",
) -> pandas.DataFrame:
    """Count the same by Spark, for a corpus that one machine does not hold.

    Spark does not check the encoding: bytes that are no UTF-8 become replacement characters. It
    does not compose accents or look for copies of a file either, and leaves out what is hidden
    without a note.

    Parameters
    ----------
    session
        A ``pyspark.sql.SparkSession``.
    corpus
        Whatever the session reads as parquet: a file, a folder with all below it, a bucket's
        address. Names are no patterns, and those of folders no columns.
    words, groups
        As of :func:`biaslib.datasets.group_counts`.
    column
        Of the captions.

    Returns
    -------
    pandas.DataFrame
        As of :func:`biaslib.datasets.group_counts`.

    Raises
    ------
    DataError
        If the session cannot read the corpus, or it lacks the column or has something else than
        text in it.
    ValueError
        As of :func:`biaslib.datasets.group_counts`.
    """
    entries, (a, b) = _entries(words), _two_groups(groups)
    require_path(corpus, "corpus")
    table = _of_spark(session, corpus, require_text(column, "column"))
    table.createOrReplaceTempView("caption_corpus")
    # pandas writes a missing phrase as a number that is none, which Spark would take for text.
    records = entries.astype(object).where(entries.notna(), None).values.tolist()
    schema = "entry string, first_word string, phrase string"
    session.createDataFrame(records, schema).createOrReplaceTempView("entries")
    query = _query(SPARK, "caption_corpus", column, groups[a], groups[b], quote="`")
    counted = [row.asDict() for row in session.sql(query).collect()]
    counted = pandas.DataFrame(counted, columns=["entry", "captions", "only_a", "only_b", "both"])
    n_rows, n_texts = table.count(), table.where(f"`{column}` IS NOT NULL").count()
    return _finished(counted, entries, a, b, n_rows, n_rows - n_texts, problems([]))


def proportions(
    counts: pandas.DataFrame, both: str = "left out", confidence: float = 0.95
) -> pandas.DataFrame:
    """Return each word's share of the first group, with Clopper and Pearson's interval.

    Parameters
    ----------
    counts
        As of :func:`biaslib.datasets.group_counts`.
    both
        Captions with words of both groups are ``"left out"``, or ``"counted twice"``, once for
        each. The paper does not say; its two columns add up to 100% either way.
    confidence
        Level of the intervals.

    Returns
    -------
    pandas.DataFrame
        *word*; *share* of the first group, with *low* and *high*; *n*, of how many captions. Words
        that no caption holds with either group have NaN and n = 0.

    Raises
    ------
    ValueError
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
    first, second = (
        _counts_of(counts, column)
        for column in counts.columns
        if column not in ("word", "captions", "both")
    )
    twice = _counts_of(counts, "both") if both == "counted twice" else 0
    confidence = between_0_and_1(confidence, "confidence")
    shares = [
        _share(k, n, confidence)
        for k, n in zip(first + twice, first + second + 2 * twice, strict=True)
    ]
    return counts[["word"]].join(pandas.DataFrame(shares, columns=["share", "low", "high", "n"]))


def matching_captions(
    corpus: str | Path,
    word: str,
    group: Sequence[str],
    n: int = 20,
    seed: int = 0,
    column: str | None = None,
) -> pandas.DataFrame:
    """Return a random sample of captions that hold a word and a word of a group, to be looked at.

    The step behind the paper's Figure 3: does the caption speak of the person whom the pronoun
    means? Captions of web corpora name people and may be abusive: look at them yourself and do
    not publish them. No page of the book shows any.

    Parameters
    ----------
    corpus, column
        As of :func:`biaslib.datasets.group_counts`.
    word
        A word or entry of several words.
    group
        Single words, such as ``PRONOUNS["female"]``.
    n
        How many captions, at most.
    seed
        The same seed gives the same sample, whatever the order of rows.

    Returns
    -------
    pandas.DataFrame
        *caption*, and *url* where the corpus has one.

    Raises
    ------
    DataError, ValueError
        As of :func:`biaslib.datasets.group_counts`.
    """
    word, group = require_text(word, "word"), require_texts(group, "group")
    n, seed = whole_number(n, "n", 0), whole_number(seed, "seed")
    files = caption_files(require_path(corpus, "corpus"))
    column = caption_column(files, column)
    _checked(corpus, files, column, only_sound=False)
    entry = _entries([word]).iloc[0]["entry"]
    address = next((name for name in ADDRESSES if name in _schema(files[0]).names), None)
    kept = f", {_quoted(address)} AS url" if address else ""
    source, text = _source(files), DUCKDB["replace"].replace("{column}", _quoted(column))
    holds = DUCKDB["holds"].format(pattern=_pattern(group))
    query = (
        f"SELECT caption{', url' if address else ''} FROM (SELECT {_quoted(column)} AS caption, "
        f"concat(' ', {text}, ' ') AS text{kept} FROM {source}) "
        f"WHERE contains(text, ' {entry} ') AND {holds} "
        f"ORDER BY md5(concat({int(seed)}, caption)), caption LIMIT {int(n)}"
    )
    with _duckdb(corpus, None, MEMORY, None) as connection:
        return connection.execute(query).df()


def _entries(words: Sequence[str]) -> pandas.DataFrame:
    """Return words as the query takes them: entry, first_word, phrase; ``attrs`` has the words."""
    given = list(dict.fromkeys(require_texts(words, "words")))
    entries = [normalised(word) for word in given]
    if not given:
        raise ValueError("there are no words to look for")
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


def _two_groups(groups: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    made_by(groups, "groups", Mapping, "two lists of words by name")
    if len(groups) != 2:
        raise refused("groups", f"has {len(groups)} groups of words, and two are compared")
    for group in groups.values():
        require_texts(group, "groups")
    return tuple(require_texts(groups.keys(), "groups"))


def _counts_of(counts: pandas.DataFrame, column: str) -> Any:
    """Return a column of a table of counts."""
    largest = 2**53  # beyond, a float64 skips whole numbers
    return whole_numbers(counts[column], column, "one count a word", 1, 0, largest)


def _pattern(group: Sequence[str]) -> str:
    """Return the pattern that finds a word of the group in a text with spaces around words."""
    words = [normalised(word) for word in group]
    bad = [word for word, found in zip(group, words, strict=True) if not found or " " in found]
    if bad or not words:
        wrong = (bad or [None])[0]
        raise InputError(f"a group holds single words, and not {wrong!r}", word=wrong)
    return f" ({'|'.join(words)}) "


def _query(dialect: dict, source: str, column: str, a, b, quote: str = '"') -> str:
    column = _quoted(column, quote)
    return QUERY.format(
        source=source,
        column=column,
        **{part: dialect[part] for part in ("words", "each", "first")},
        replace=dialect["replace"].replace("{column}", column),
        holds_a=dialect["holds"].format(pattern=_pattern(a)),
        holds_b=dialect["holds"].format(pattern=_pattern(b)),
    )


def _finished(counted, entries, a: str, b: str, n_rows, n_nulls, found) -> pandas.DataFrame:
    counted = counted.set_index("entry").rename(columns={"only_a": a, "only_b": b})
    words = entries.attrs["words"]
    table = counted.reindex(words.values()).fillna(0).astype(int)
    table.insert(0, "word", list(words))
    table = table.reset_index(drop=True)
    table.attrs = {"rows": int(n_rows), "nulls": int(n_nulls), "problems": found.to_dict("records")}
    return table


def _share(k: int, n: int, confidence: float) -> tuple[float, float, float, int]:
    if not n:
        return float("nan"), float("nan"), float("nan"), 0
    found = proportion_interval(k, n, confidence)
    return found.proportion, found.low, found.high, int(n)


@contextlib.contextmanager
def _duckdb(corpus: str | Path, threads: int | None, memory: str, folder: str | None):
    """Yield a connection; what DuckDB cannot do to a corpus is a :class:`DataError`."""
    with brought_by("captions"):
        import duckdb
    settings = {"memory_limit": memory, "preserve_insertion_order": False}
    settings |= {"threads": threads} if threads else {}
    settings |= {"temp_directory": folder} if folder else {}
    try:
        with duckdb.connect(config=settings) as connection:
            connection.execute("SET enable_progress_bar = false")
            yield connection
    except duckdb.Error as error:
        said = str(error).partition("\n")[0]
        raise DataError(
            f"DuckDB cannot count {corpus} with memory={memory!r}: {said}. Give it more memory or "
            "fewer threads, or room in the folder for temporary files",
            path=corpus,
        ) from error


def _source(files: Sequence[Path]) -> str:
    """Return what DuckDB reads: these files, whose names are no patterns, and their columns alone.

    DuckDB takes a name for a pattern, and the name of a folder such as ``TEXT=x`` for a column.
    """
    names = (re.sub(r"([*?\[])", r"[\1]", str(path)).replace("'", "''") for path in files)
    listed = ", ".join(f"'{name}'" for name in names)
    return f"read_parquet([{listed}], hive_partitioning = false, binary_as_string = true)"


def _of_spark(session: Any, corpus: str | Path, column: str) -> Any:
    """Return a corpus as Spark's table, its name taken as it is and not as a pattern of Hadoop."""
    from pyspark.errors import PySparkException

    name = re.sub(r"([*?\[\]{}\\])", r"\\\1", str(corpus))
    try:
        table = session.read.option("recursiveFileLookup", True).parquet(name)
    except PySparkException as error:
        raise DataError(
            f"{corpus} cannot be read by Spark: {error}. Check the path", path=corpus
        ) from error
    kinds = dict(table.dtypes)
    if kinds.get(column) != "string":
        there = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        raise DataError(
            f"{corpus} has no column {column!r} of text; it has {there}. Pass column= with the "
            "name of the captions' column",
            path=corpus,
            word=column,
        )
    return table


def _is_hidden(name: str) -> bool:
    """Tell whether Spark leaves out files below such a name, which it writes itself."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _quoted(column: str, quote: str = '"') -> str:
    return quote + column.replace(quote, 2 * quote) + quote


def _schema(path: Path):
    with parquet(path) as file:
        return file.schema_arrow


def _batches(path: Path, column: str) -> Iterator[Any]:
    with parquet(path) as file:
        for batch in file.iter_batches(BATCH, columns=[column]):
            texts = batch.column(0)
            if hasattr(texts, "dictionary_decode"):
                texts = texts.dictionary_decode()
            if str(texts.type).endswith("binary"):
                texts = texts.view(str(texts.type).replace("binary", "string"))
            yield texts


def _is_valid(texts) -> bool:
    import pyarrow

    try:
        texts.validate(full=True)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _checked(
    corpus: str | Path,
    files: Sequence[Path],
    column: str,
    only_sound: bool,
    notes: Sequence[tuple] = (),
) -> pandas.DataFrame:
    """Return what is wrong with a corpus, or raise an error if it cannot be counted."""
    found = _problems(files, column, list(notes))
    require_sound(found, f"the corpus {corpus}", only_sound)
    if not any(texts.null_count < len(texts) for path in files for texts in _batches(path, column)):
        names = _schema(files[0]).names
        other = [name for name in COLUMNS if name in names and name != column]
        way = f"If {other[0]!r} has them, pass column={other[0]!r}" if other else "Put them there"
        raise DataError(
            f"the corpus {corpus} has no captions: the column {column!r} is empty in all of its "
            f"{len(files)} files, {files[0].name} the first. {way}",
            path=corpus,
            word=column,
        )
    return found


def _counted(path: Path, column: str) -> tuple[int, list[int]]:
    """Return the number of nulls, and the rows whose bytes are no UTF-8."""
    nulls, invalid, first = 0, [], 0
    for texts in _batches(path, column):
        nulls += texts.null_count
        if not _is_valid(texts):
            invalid += [first + row for row in _invalid_rows(texts)]
        first += len(texts)
    return nulls, invalid


def _invalid_rows(texts) -> list[int]:
    import pyarrow

    large = str(texts.type) == "large_string"
    values = texts.cast(pyarrow.large_binary() if large else pyarrow.binary()).to_pylist()
    return [row for row, value in enumerate(values) if value is not None and not _decodes(value)]


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_invalid(path: Path, column: str, found: pandas.DataFrame, folder: Path) -> Path:
    """Return the file, or a copy of its captions that leaves out what is no UTF-8."""
    import pyarrow
    import pyarrow.parquet

    broken = found["severity"].eq("error") & found["where"].eq(str(path))
    if not broken.any():
        return path
    kept = []
    for texts in _batches(path, column):
        bad = set() if _is_valid(texts) else set(_invalid_rows(texts))
        mask = pyarrow.array([row not in bad for row in range(len(texts))])
        kept.append(texts.filter(mask))
    copy = Path(tempfile.mkdtemp(dir=folder)) / path.name
    pyarrow.parquet.write_table(pyarrow.table({column: pyarrow.chunked_array(kept)}), copy)
    return copy
