"""Steps of measurement in order of worth, each with the seconds that it may take."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

SHARES = {
    "ceilings": 0.05,
    "numerics": 0.2,
    "speed": 0.5,
    "memory": 0.05,
    "syncs": 0.05,
    "studies": 0.15,
}
"""How the time is shared; what a section leaves goes to the next."""


class SkippedError(Exception):
    """A measure that this machine cannot take; the message says why."""


class Step(NamedTuple):
    """A measurement.

    ``needs`` are the seconds that it should take on an H100; ``run`` yields its records.
    """

    section: str
    task: str
    needs: float
    run: Callable[[], Iterable[dict[str, Any]]]
    precision: str | None = None

    @property
    def labels(self) -> dict[str, str]:
        """What its records say of themselves."""
        precision = {"precision": self.precision} if self.precision else {}
        return {"measure": self.section, "task": self.task} | precision


def in_time(
    steps: Iterable[Step], seconds: float, clock: Callable[[], float]
) -> Iterator[dict[str, Any]]:
    """Run steps while they fit, and yield their records; each step has one record or more.

    A step fits if what it needs, and what the longest before it of its task took, is left of its
    section's share. What does not fit is tried again at the end, in what is left of the whole.

    Parameters
    ----------
    steps
        In order of worth, section by section.
    seconds
        For all of them.
    clock
        Returns seconds.
    """
    started, share, ends = clock(), 0.0, {}
    for section, part in SHARES.items():
        share += part
        ends[section] = started + seconds * share
    longest: dict[tuple[str, str], float] = {}
    waiting = []

    def needs(step: Step) -> float:
        return max(step.needs, longest.get((step.section, step.task), 0))

    def done(step: Step) -> Iterator[dict[str, Any]]:
        began = clock()
        yield from records(step)
        taken = clock() - began
        longest[step.section, step.task] = max(taken, longest.get((step.section, step.task), 0))

    for step in steps:
        if clock() + needs(step) > ends[step.section]:
            waiting.append(step)
        else:
            yield from done(step)
    for step in waiting:
        left = started + seconds - clock()
        if needs(step) <= left:
            yield from done(step)
        else:
            reason = f"needs about {needs(step):.0f} s, and {max(left, 0):.0f} s are left"
            yield step.labels | {"skipped": reason}


def records(step: Step) -> Iterator[dict[str, Any]]:
    """Yield the records of a step, and one with the reason where it stops."""
    try:
        for record in step.run():
            yield step.labels | record
    except SkippedError as reason:
        yield step.labels | {"skipped": str(reason)}
    except ModuleNotFoundError as error:
        yield step.labels | {"skipped": " ".join(str(error).split())}
    except Exception:  # Whatever goes wrong with one step, the others have their turn.
        yield step.labels | {"failed": traceback.format_exc().splitlines()[-6:]}
