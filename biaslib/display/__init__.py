"""From tidy scores to what a person sees: style, tables, sentences and figures."""

from biaslib.display._figure import Figure, Folded, figure, fold
from biaslib.display._style import (
    COLOURS,
    DOSE_COLOURS,
    GROUP_COLOURS,
    dots,
    marked,
    subplots,
    use_style,
    words_alone,
)
from biaslib.display._tables import Table, availability_table, problem_table, require_paper, table
from biaslib.display._text import (
    counted,
    in_words,
    interval_text,
    interval_texts,
    listed,
    p_text,
    say,
    signed,
)

__all__ = [
    "COLOURS",
    "DOSE_COLOURS",
    "GROUP_COLOURS",
    "Figure",
    "Folded",
    "Table",
    "availability_table",
    "counted",
    "dots",
    "figure",
    "fold",
    "in_words",
    "interval_text",
    "interval_texts",
    "listed",
    "marked",
    "p_text",
    "problem_table",
    "require_paper",
    "say",
    "signed",
    "subplots",
    "table",
    "use_style",
    "words_alone",
]
