"""Each anomaly of the printed tables, recomputed from the tables themselves.

A module for each paper, in it one small function per question; its docstring names the erratum (A1,
B3, ...) it concerns. :func:`computed` gathers the numbers of one erratum by name.
"""

from biaslib.published.reexamination._numbers import computed

__all__ = ["computed"]
