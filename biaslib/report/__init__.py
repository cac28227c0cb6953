"""From tidy scores to what a person sees: style, tables, sentences, plots, panels and checks."""

from biaslib.report._check import Check, judge
from biaslib.report._drawing import Drawing, picture
from biaslib.report._explorer import Panel
from biaslib.report._figure import Figure, Folded, figure, fold
from biaslib.report._style import use_style
from biaslib.report._tables import Table, problem_table, table, there_table
from biaslib.report._text import p_text, say, signed

__all__ = [
    "Check",
    "Drawing",
    "Figure",
    "Folded",
    "Panel",
    "Table",
    "figure",
    "fold",
    "judge",
    "p_text",
    "picture",
    "problem_table",
    "say",
    "signed",
    "table",
    "there_table",
    "use_style",
]
