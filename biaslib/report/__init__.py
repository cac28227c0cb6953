"""From tidy scores to what a person sees: style, tables, sentences, plots and panels."""

from biaslib.report._style import use_style
from biaslib.report._tables import Table, table
from biaslib.report._text import p_text, say, signed

__all__ = ["Table", "p_text", "say", "signed", "table", "use_style"]
