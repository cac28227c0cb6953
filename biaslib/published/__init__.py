"""The papers' printed tables and errata, as data files with their source.

>>> table("zhou2022", 1).head(2).to_dict("list")
{'category': ['gender', 'profession'], 'images': [486, 206]}
"""

from biaslib.published import counts, reexamination
from biaslib.published._errata import SETTLED, STANDINGS, errata
from biaslib.published._tables import (
    PAPERS,
    TableError,
    data_checksum,
    released_differences,
    table,
    tables,
)

__all__ = [
    "PAPERS",
    "SETTLED",
    "STANDINGS",
    "TableError",
    "counts",
    "data_checksum",
    "errata",
    "reexamination",
    "released_differences",
    "table",
    "tables",
]
