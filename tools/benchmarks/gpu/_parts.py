"""The parts, and a process of their own in which they are measured one after the other."""

import contextlib
import functools
import multiprocessing
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from tools.benchmarks.gpu import _machine, _numerics, _speed

BOX = 90
"""Seconds after which a part is given up, so that no part takes the time of all others."""

LEAST = 10
"""Seconds that must be left for a part to begin."""

Step = tuple[dict[str, str], Callable[[], Iterable[dict[str, Any]]]]
"""What records of a part say of themselves, and what yields them."""


def steps(size: str, device: str, ceilings: dict[str, float]) -> Iterator[Step]:
    """Yield all parts, those of most worth first; ``ceilings`` are in TFLOP/s by precision."""
    precisions = _machine.precisions(device)
    for precision in precisions:
        run = functools.partial(_machine.product, size, device, precision)
        yield {"measure": "ceilings", "task": "product", "precision": precision}, run
    run = functools.partial(_machine.copies, size, device)
    yield {"measure": "ceilings", "task": "copies"}, run
    for study, (_, families) in _numerics.STUDIES.items():
        for family in families.split():
            run = functools.partial(_numerics.measured, family, study, device)
            yield {"measure": "numerics", "task": family, "study": study}, run
    yield {"measure": "study", "task": "3"}, functools.partial(_numerics.study, device)
    for task in ("CLIP ViT-B/32", "VisualBERT"):
        run = functools.partial(_speed.out_of_memory, task, size, device)
        yield {"measure": "memory", "task": task}, run
    for task in _speed.TASKS:
        for precision in precisions[:2]:
            run = functools.partial(_speed.measured, task, precision, size, device, ceilings)
            yield {"measure": "speed", "task": task, "precision": precision}, run


def serve(asked: Connection, size: str, device: str) -> None:
    """Measure the parts that are asked for by number: records, then None, go back for each.

    The device is waited for at the end of each. Where an error has taken it away from this process,
    the process ends there, and with it the error.
    """
    warnings.simplefilter("ignore")
    _machine.finish()  # A device whose memory is asked for must have been used.
    ceilings: dict[str, float] = {}
    known = list(steps(size, device, ceilings))
    with contextlib.suppress(EOFError):  # There are no more parts.
        while True:
            number, found = asked.recv()
            ceilings.update(found)
            try:
                for record in known[number][1]():
                    asked.send(record)
            except Exception:  # Whatever goes wrong with one part, the others have their turn.
                asked.send({"failed": " | ".join(traceback.format_exc().splitlines()[-6:])})
            _machine.finish()
            asked.send(None)


class Apart:
    """A process that measures parts, started anew where the last one has ended or was ended."""

    def __init__(self, size: str, device: str, target: Callable = serve) -> None:
        self.settings, self.target, self.process = (size, device), target, None

    def records(self, asked: Any, seconds: float) -> Iterator[dict[str, Any]]:
        """Yield the records of a part, and why there are no more, if it does not end well."""
        ends = time.monotonic() + seconds
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.there, theirs = context.Pipe()
            self.process = context.Process(target=self.target, args=(theirs, *self.settings))
            self.process.start()
            theirs.close()
        try:
            self.there.send(asked)
            while (record := self._next(ends)) is not None:
                yield record
        except (EOFError, ConnectionError):
            yield {"failed": "its process ended"}
            self.end()
        except TimeoutError:
            yield {"failed": f"it took more than {seconds:.0f} s"}
            self.end()

    def _next(self, ends: float) -> dict[str, Any] | None:
        if not self.there.poll(max(0, ends - time.monotonic())):
            raise TimeoutError
        return self.there.recv()

    def end(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.there.close()
            self.process.join(2)
            self.process.kill()
            self.process = None


def in_time(
    planned: Iterable[tuple[Any, dict[str, str]]], seconds: float, apart: Apart
) -> Iterator[dict[str, Any]]:
    """Yield the records of parts, each measured apart, until so many seconds are over."""
    ends, ceilings = time.monotonic() + seconds, {}
    try:
        for number, labels in planned:
            left = ends - time.monotonic()
            if left < LEAST:
                yield labels | {"skipped": "no time was left"}
                continue
            began = time.monotonic()
            for record in apart.records((number, ceilings), min(BOX, left)):
                if labels["measure"] == "ceilings" and "tflop_a_second" in record:
                    ceilings[labels["precision"]] = record["tflop_a_second"]
                yield labels | record
            yield labels | {"part_s": round(time.monotonic() - began, 1)}
    finally:
        apart.end()
