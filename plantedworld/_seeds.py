"""Which world a seed names: one of the held-out test, or one that the seed itself draws."""

import functools
import hashlib
import importlib.resources
import json

N_WORLDS = 10
"""Worlds of the held-out test, which the seeds from 0 on name."""

FIRST_DRAWN = 2_000
"""Seeds from here on draw a world themselves."""


def world_seeds(commit: str, n: int = N_WORLDS) -> list[int]:
    """Return the numbers that draw the worlds of the held-out test, from the commit of its rules.

    The i-th is made of the first four bytes of the SHA-256 of the commit's 40 digits, a space and
    i, as a number; below 2,000, 2,000 is added.

    Examples
    --------
    >>> world_seeds("0" * 40, 2)
    [281598864, 3881128583]
    """
    digests = [hashlib.sha256(f"{commit} {i}".encode()).digest() for i in range(n)]
    numbers = [int.from_bytes(each[:4], "big") for each in digests]
    return [each + FIRST_DRAWN * (each < FIRST_DRAWN) for each in numbers]


@functools.cache
def held_out_seeds() -> tuple[int, ...]:
    """Return the numbers that draw the worlds of the held-out test.

    Examples
    --------
    >>> held_out_seeds()[:2]
    (1586215870, 2926244569)
    """
    file = importlib.resources.files("plantedworld") / "data" / "held_out" / "protocol.json"
    return tuple(world_seeds(json.loads(file.read_text(encoding="utf-8"))["commit"]))


def drawn_seed(seed: int) -> int | None:
    """Return the number that draws the world which a seed names, or None if nothing is drawn.

    Examples
    --------
    >>> drawn_seed(0), drawn_seed(1000), drawn_seed(5000)
    (1586215870, None, 5000)
    """
    if seed < N_WORLDS:
        return held_out_seeds()[seed]
    return seed if seed >= FIRST_DRAWN else None
