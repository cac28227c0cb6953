"""Statistics under the metrics: permutation test, bootstrap, multiple comparisons, power."""

from biaslib.inference._adjust import adjust
from biaslib.inference._bootstrap import (
    Interval,
    bootstrap,
    bootstrap_effect_size,
    largest_effect_size,
    share_between,
    stratified_bootstrap,
)
from biaslib.inference._caption_bootstrap import bootstrap_c_asc, bootstrap_top_k
from biaslib.inference._correlation import rank_correlation_interval
from biaslib.inference._exchange import (
    exchange_test,
    exchanged_statistics,
    grounded_permutation_test,
)
from biaslib.inference._permutation import (
    PermutationResult,
    n_partitions,
    permutation_p_values,
    permutation_test,
    relabelled_differences,
)
from biaslib.inference._power import minimum_detectable_effect, power
from biaslib.inference._proportions import bootstrap_selection, proportion_interval
from biaslib.inference._random_attributes import RandomAttributeNull, random_attribute_null
from biaslib.inference._sign_flip import sign_flip_test

__all__ = [
    "Interval",
    "PermutationResult",
    "RandomAttributeNull",
    "adjust",
    "bootstrap",
    "bootstrap_c_asc",
    "bootstrap_effect_size",
    "bootstrap_selection",
    "bootstrap_top_k",
    "exchange_test",
    "exchanged_statistics",
    "grounded_permutation_test",
    "largest_effect_size",
    "minimum_detectable_effect",
    "n_partitions",
    "permutation_p_values",
    "permutation_test",
    "power",
    "proportion_interval",
    "random_attribute_null",
    "rank_correlation_interval",
    "relabelled_differences",
    "share_between",
    "sign_flip_test",
    "stratified_bootstrap",
]
