"""The papers' printed tables and errata, as data files with their source.

>>> table("zhou2022", 1).head(2).to_dict("list")
{'category': ['gender', 'profession'], 'images': [486, 206]}
"""

from biaslib.published._errata import STANDINGS, errata
from biaslib.published._tables import (
    PAPERS,
    casc_tables,
    data_checksum,
    released_counts,
    released_differences,
    released_sizes,
    stated,
    table,
    tables,
)

__all__ = [
    "PAPERS",
    "STANDINGS",
    "casc_tables",
    "data_checksum",
    "errata",
    "released_counts",
    "released_differences",
    "released_sizes",
    "stated",
    "table",
    "tables",
]
