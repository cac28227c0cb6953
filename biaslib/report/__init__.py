"""From tidy scores to what a person sees: style, tables, sentences, plots, panels and checks."""

from biaslib.report._check import Check, judge, judge_function, judge_list
from biaslib.report._drawing import Drawing, picture
from biaslib.report._explorer import Panel
from biaslib.report._figure import Figure, Folded, figure, fold
from biaslib.report._style import (
    COLOURS,
    DOSE_COLOURS,
    GROUP_COLOURS,
    dots,
    marked,
    subplots,
    use_style,
    words_alone,
)
from biaslib.report._tables import Table, problem_table, require_paper, table, there_table
from biaslib.report._text import (
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
    "Check",
    "Drawing",
    "Figure",
    "Folded",
    "Panel",
    "Table",
    "counted",
    "dots",
    "figure",
    "fold",
    "in_words",
    "interval_text",
    "interval_texts",
    "judge",
    "judge_function",
    "judge_list",
    "listed",
    "marked",
    "p_text",
    "picture",
    "problem_table",
    "require_paper",
    "say",
    "signed",
    "subplots",
    "table",
    "there_table",
    "use_style",
    "words_alone",
]
