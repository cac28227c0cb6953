"""Statistics under the papers' metrics: permutation test, bootstrap, multiple comparisons."""

from biaslib.inference._adjust import adjust
from biaslib.inference._bootstrap import Interval, bootstrap_effect_size
from biaslib.inference._caption_bootstrap import (
    TableInterval,
    adjust_table,
    bootstrap_c_asc,
    bootstrap_top_k,
)
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
    "TableInterval",
    "adjust",
    "adjust_table",
    "bootstrap_c_asc",
    "bootstrap_effect_size",
    "bootstrap_top_k",
    "n_partitions",
    "permutation_p_values",
    "permutation_test",
    "relabelled_differences",
]
