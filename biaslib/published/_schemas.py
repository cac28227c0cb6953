"""What each data file must look like, and one clear error when it does not."""

from dataclasses import dataclass
from pathlib import Path

import pandas

from biaslib.runtime import unknown_name

KINDS = {
    "text": (str, "string", "some text", "C6"),
    "integer": (int, "Int64", "a whole number", "14"),
    "number": (float, "float64", "a decimal number", "0.57"),
}
"""For each kind of column: the type of a value and of the column, its name, and an example."""


class TableError(ValueError):
    """A data file that breaks its schema; the text names file, row, column and the fix."""


@dataclass(frozen=True)
class Column:
    """One column of a data file: its kind, the values allowed, the range, and emptiness."""

    name: str
    kind: str = "text"
    allowed: tuple[str, ...] = ()
    low: float = float("-inf")
    high: float = float("inf")
    empty: bool = False

    def value(self, text: str):
        """Return the cell's value; raise ``ValueError`` with the fix if it has none."""
        if text == "":
            return self._nothing()
        value = self._parsed(text)
        if self.allowed and text not in self.allowed:
            raise ValueError(f"{text!r} is not known; use one of {', '.join(self.allowed)}")
        if self.kind != "text" and not self.low <= value <= self.high:
            raise ValueError(f"{text} is out of range; use a value from {self.low} to {self.high}")
        return value

    def _nothing(self):
        if not self.empty:
            raise ValueError(f"the cell is empty; write {KINDS[self.kind][2]}")
        return "" if self.kind == "text" else None

    def _parsed(self, text: str):
        parse, _, wanted, example = KINDS[self.kind]
        try:
            return parse(text)
        except ValueError:
            hint = ", or leave the cell empty for a dash" if self.empty else ""
            raise ValueError(
                f"{text!r} is not {wanted}; write one such as {example}{hint}"
            ) from None

    def series(self, values: list) -> pandas.Series:
        """Return the column's values with the column's type."""
        dtype = "object" if self.kind == "text" else KINDS[self.kind][1]
        return pandas.Series(values, dtype=dtype).infer_objects()


def _one_of(name: str, *allowed: str) -> Column:
    return Column(name, allowed=allowed)


_SOURCE = _one_of("source", "google", "coco", "conceptual_captions", "pretraining")
_KIND = _one_of("kind", "gender", "race")
_LEVEL = _one_of("level", "W", "S", "C", "T", "I")
_GROUNDED = ("VisualBERT", "ViLBERT", "LXMERT", "VL-BERT")
_CATEGORIES = ("gender", "profession", "race", "religion")
_GROUPS = (
    *("Male", "Female", "White", "Black", "Latino/Hispanic", "Middle Eastern"),
    *("Southeast Asian", "East Asian", "Indian"),
)
_TYPES = (
    *("Appearance", "Behavioral", "Criminal justice", "Education and wealth", "Healthcare"),
    *("Occupation", "Political", "Portrayal in Media", "Religion"),
)
_PROBERS = ("VisualBERT", "LXMERT", "ViLT", "CLIP", "ALBEF", "FLAVA")


def _count(name: str, low: int = 0, **kwargs) -> Column:
    return Column(name, "integer", low=low, **kwargs)


SCHEMAS: dict[str, tuple[Column, ...]] = {
    "ross2021_images": (_SOURCE, Column("test"), Column("label"), _count("images", 1)),
    "ross2021_effect_sizes": (
        Column("table", "integer", low=3, high=6),
        Column("experiment", "integer", low=1, high=3),
        *(_SOURCE, _KIND, Column("test"), Column("label"), _LEVEL),
        _one_of("model", *_GROUNDED),
        Column("effect_size", "number", low=-2, high=2, empty=True),
        Column("printed"),
    ),
    "ross2021_significant_counts": (
        Column("table", "integer", low=7, high=7),
        Column("experiment", "integer", low=1, high=3),
        *(_SOURCE, _KIND, _LEVEL),
        Column("column", "integer", low=1, high=4),
        _one_of("model_table4_order", *_GROUNDED),
        _one_of("model_inferred", *_GROUNDED),
        _count("significant", high=7, empty=True),
        _count("total", 6, high=7),
        Column("printed"),
    ),
    "srinivasan2021_methodology": (
        Column("source_x"),
        Column("visual_input", empty=True),
        *(Column("language_input"), Column("modified_component"), Column("new_value")),
        Column("association_score"),
    ),
    "srinivasan2021_case_study": (
        Column("table", "integer", low=2, high=3),
        *(Column("template", empty=True), Column("entity")),
        Column("image", "integer", low=1, high=2, empty=True),
        Column("probability", "number", low=0, high=1, empty=True),
        Column("mark", allowed=("✓", "✗"), empty=True),
    ),
    "hamidieh2023_laion_pronouns": (
        Column("word"),
        Column("male", "number", low=0, high=100),
        Column("female", "number", low=0, high=100),
        _count("images", 1),
    ),
    "hamidieh2023_taxonomy": (_one_of("bias_type", *_TYPES), Column("word")),
    "hamidieh2023_casc": (
        Column("table", "integer", low=3, high=18),
        _one_of("facet", "gender", "race"),
        _one_of("category", *_TYPES, "Activity"),
        _one_of("group", *_GROUPS),
        Column("rank", "integer", low=1, high=10),
        Column("word"),
        Column("casc", "number", low=-2, high=2),
    ),
    "zhou2022_images": (_one_of("category", *_CATEGORIES, "overall"), _count("images", 1)),
    "zhou2022_models": (
        _one_of("model", *_PROBERS),
        Column("year", "integer", low=2018, high=2022),
        *(Column("text_encoder"), Column("image_encoder"), Column("encoder_type")),
        *(Column("pretraining_objectives"), Column("model_printed")),
    ),
    "zhou2022_scores": (
        Column("table", "integer", low=3, high=4),
        _one_of("model", *_PROBERS, "IDM", "RAM", "BIM"),
        _one_of("category", *_CATEGORIES, "overall"),
        _one_of("metric", "vlrs", "vlbs", "ivlas"),
        Column("value", "number", low=0, high=100),
        Column("model_printed"),
    ),
    "zhou2022_released_counts": (
        _one_of("category", *_CATEGORIES),
        *(_count("label_0"), _count("label_1")),
    ),
}
"""The columns of every data file of this package, by the file's name without ``.csv``."""


def read_table(path: str | Path, schema: str | None = None) -> pandas.DataFrame:
    """Read a data file and check it against its schema.

    Parameters
    ----------
    path
        A CSV file.
    schema
        The schema's name. ``None`` takes the file's name without ``.csv``.

    Raises
    ------
    TableError
        At the first cell that breaks the schema, naming file, row, column and the fix.
    UnknownNameError
        If there is no such schema.
    """
    path = Path(path)
    name = schema or path.stem
    if name not in SCHEMAS:
        raise unknown_name("schema", name, SCHEMAS)
    raw = pandas.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    _check_columns(path, list(raw.columns), [column.name for column in SCHEMAS[name]])
    return pandas.DataFrame({each.name: _column(path, raw, each) for each in SCHEMAS[name]})


def _check_columns(path: Path, found: list[str], wanted: list[str]) -> None:
    for name in wanted:
        if name not in found:
            raise TableError(
                f"{path.name}, row 1 (the header), column {name!r}: the column is missing; "
                f"the header must hold {', '.join(wanted)}"
            )


def _column(path: Path, raw: pandas.DataFrame, column: Column) -> pandas.Series:
    values = []
    for line, text in enumerate(raw[column.name], start=2):
        try:
            values.append(column.value(text))
        except ValueError as error:
            raise TableError(f"{path.name}, row {line}, column {column.name!r}: {error}") from None
    return column.series(values)
