"""The sealed trial: measures judged in worlds that nobody tuned on, by rules that were set before.

``plantedworld/PROTOCOL.md`` says what is trained, scored and judged, and when a target counts as
reached. The seeds of the worlds are drawn from the commit that fixed it. From the command line:
``python -m plantedworld.trial --help``.
"""

from plantedworld._seeds import world_seeds
from plantedworld.trial._design import (
    OTHER_FAMILIES,
    RISES,
    SIGN_TARGETS,
    TARGETS,
    models_to_train,
)
from plantedworld.trial._judge import (
    attacks,
    found_without_bias,
    judge_all,
    judged,
    recoveries,
    rises,
    stand_in_means,
    two_nulls,
    verdicts,
)
from plantedworld.trial._run import TrialError, collected, other_starts, wanted_models
from plantedworld.trial._scores import oracle_scores, score

__all__ = [
    "OTHER_FAMILIES",
    "RISES",
    "SIGN_TARGETS",
    "TARGETS",
    "TrialError",
    "attacks",
    "collected",
    "found_without_bias",
    "judge_all",
    "judged",
    "models_to_train",
    "oracle_scores",
    "other_starts",
    "recoveries",
    "rises",
    "score",
    "stand_in_means",
    "two_nulls",
    "verdicts",
    "wanted_models",
    "world_seeds",
]
