"""Statistics under the papers' metrics: permutation test, bootstrap, multiple comparisons."""

from biaslib.inference._adjust import adjust
from biaslib.inference._bootstrap import Interval, bootstrap_effect_size
from biaslib.inference._permutation import (
    PermutationResult,
    n_partitions,
    permutation_p_values,
    permutation_test,
    relabelled_differences,
)

__all__ = [
    "Interval",
    "PermutationResult",
    "adjust",
    "bootstrap_effect_size",
    "n_partitions",
    "permutation_p_values",
    "permutation_test",
    "relabelled_differences",
]
