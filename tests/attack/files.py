"""Every reader's good file, changed in every way: see :mod:`support.bad_files`."""

import os
import tempfile
from pathlib import Path

from support import bad_files

from attack import Outcome


def bad_files_read() -> Outcome:
    """Read each; root, who may read every file, is not asked about those that may not be read."""
    outcome = Outcome("bad files")
    with tempfile.TemporaryDirectory() as name:
        for number, (kind, damage) in enumerate(bad_files.cases()):
            if damage == "may not be read" and os.geteuid() == 0:
                continue
            folder = Path(name) / str(number)
            folder.mkdir()
            outcome.tried += 1
            told = bad_files.outcome(kind, damage, folder)
            outcome.raw += told.startswith(("raw", "without"))
            outcome.wrong += told.startswith(("wrong", "refused,"))
    return outcome
