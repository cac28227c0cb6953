"""Data sets of the four papers as tables: what is shown, what is said, and what is wrong with them.

Nothing is downloaded unless asked for, and no data set is shipped: each reader takes the files that
its authors published, checks them, and says what it found.
"""

from biaslib.datasets import ross2021, vlstereoset
from biaslib.datasets.captions import (
    GENDER_WORDS,
    PRONOUNS,
    group_counts,
    proportions,
)
from biaslib.datasets.entity_images import balanced_images, entity_balance, entity_images
from biaslib.datasets.fairface import membership, read_fairface
from biaslib.datasets.grounded_images import (
    GroundedTest,
    balance,
    grounded_test,
    images_of,
    user_test,
)
from biaslib.datasets.links import coverage, download_images, outcomes
from biaslib.datasets.problems import DataError, require_sound

__all__ = [
    "GENDER_WORDS",
    "PRONOUNS",
    "DataError",
    "GroundedTest",
    "balance",
    "balanced_images",
    "coverage",
    "download_images",
    "entity_balance",
    "entity_images",
    "grounded_test",
    "group_counts",
    "images_of",
    "membership",
    "outcomes",
    "proportions",
    "read_fairface",
    "require_sound",
    "ross2021",
    "user_test",
    "vlstereoset",
]
