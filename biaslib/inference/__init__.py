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
from biaslib.inference._proportions import (
    ProportionInterval,
    SelectionInterval,
    bootstrap_selection,
    proportion_interval,
)

__all__ = [
    "Interval",
    "PermutationResult",
    "ProportionInterval",
    "SelectionInterval",
    "adjust",
    "bootstrap_effect_size",
    "bootstrap_selection",
    "n_partitions",
    "permutation_p_values",
    "permutation_test",
    "proportion_interval",
    "relabelled_differences",
]
