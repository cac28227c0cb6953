"""Several processes that share one job, each with its own device: Accelerate's part, kept thin.

``accelerate launch -m ...`` starts the same program once a device (``biaslib[several-gpus]``).
Items are independent and the store takes writers at once, so that there is nothing to gather: each
process computes its share, all wait for one another, and whoever needs them reads all rows.
"""

import datetime
import os

from biaslib.errors import brought_by

__all__ = ["own_share", "wait_for_all", "which_process"]


PATIENCE = datetime.timedelta(days=1)
"""How long a process waits for the slowest; Accelerate's own ten minutes end a run of hours."""


def which_process() -> tuple[int, int]:
    """Return this process's number and how many there are; (0, 1) unless launched as several.

    Call it before a model is loaded: it also gives each process its own device, which is then the
    one that ``cuda`` means.

    Examples
    --------
    >>> which_process()
    (0, 1)
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return 0, 1
    state = _state()
    return state.process_index, state.num_processes


def own_share(n: int) -> range:
    """Return the items of this process among n: every process has as many, one more or less.

    Examples
    --------
    >>> own_share(5)
    range(0, 5)
    """
    number, processes = which_process()
    return range(n * number // processes, n * (number + 1) // processes)


def wait_for_all() -> None:
    """Wait until every process has come this far."""
    if which_process()[1] > 1:
        _state().wait_for_everyone()


def _state():
    import torch

    with brought_by("several-gpus"):
        from accelerate import PartialState
    return PartialState(cpu=not torch.cuda.is_available(), timeout=PATIENCE)
