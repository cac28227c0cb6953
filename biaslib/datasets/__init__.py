"""Data sets of the four papers as tables: what is shown, what is said, and what is wrong with them.

Nothing is downloaded unless asked for, and no data set is shipped: each reader takes the files that
its authors published, checks them, and says what it found.
"""

from biaslib.datasets import vlstereoset
from biaslib.datasets._problems import DataError, require_sound
from biaslib.datasets.entity_images import balanced_images, entity_balance, entity_images
from biaslib.datasets.grounded_images import (
    GroundedTest,
    balance,
    grounded_test,
    images_of,
    user_test,
)
from biaslib.datasets.links import coverage, download_images, read_links

__all__ = [
    "DataError",
    "GroundedTest",
    "balance",
    "balanced_images",
    "coverage",
    "download_images",
    "entity_balance",
    "entity_images",
    "grounded_test",
    "images_of",
    "read_links",
    "require_sound",
    "user_test",
    "vlstereoset",
]
