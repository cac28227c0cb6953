"""The papers' printed tables and errata, as data files with their source.

>>> table("zhou2022", 1).head(2).to_dict("list")
{'category': ['gender', 'profession'], 'images': [486, 206]}
"""

from biaslib.published import counts
from biaslib.published._errata import SETTLED, STANDINGS, errata
from biaslib.published._tables import (
    PAPERS,
    data_checksum,
    released_differences,
    stated,
    table,
    tables,
)

__all__ = [
    "PAPERS",
    "SETTLED",
    "STANDINGS",
    "counts",
    "data_checksum",
    "errata",
    "released_differences",
    "stated",
    "table",
    "tables",
]
