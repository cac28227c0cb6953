"""From tidy scores to what a person sees: style, tables, sentences and figures."""

from biaslib.display._figure import Figure, Folded, figure, fold
from biaslib.display._style import (
    COLOURS,
    GROUP_COLOURS,
    dots,
    marked,
    subplots,
    use_style,
    wide,
    words_alone,
)
from biaslib.display._tables import Table, one_line, problem_table, table
from biaslib.display._text import (
    counted,
    in_code,
    in_words,
    interval_text,
    interval_texts,
    listed,
    p_cell,
    p_text,
    say,
    signed,
)

__all__ = [
    "COLOURS",
    "GROUP_COLOURS",
    "Figure",
    "Folded",
    "Table",
    "counted",
    "dots",
    "figure",
    "fold",
    "in_code",
    "in_words",
    "interval_text",
    "interval_texts",
    "listed",
    "marked",
    "one_line",
    "p_cell",
    "p_text",
    "problem_table",
    "say",
    "signed",
    "subplots",
    "table",
    "use_style",
    "wide",
    "words_alone",
]
