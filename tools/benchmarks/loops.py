"""A model's public call beside a bare loop over the forward passes within it.

The passes are recorded in a first run: what the network was given, on its device, and what it said.
The bare loop gives it the same again, and its outputs must be those of the public call.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

WORDS = "the a an woman man is nurse pilot doctor old here carrying bag in street city"


class Loops(NamedTuple):
    """The public call, the bare loop over the same passes, and how many passes there are."""

    public: Callable[[], np.ndarray]
    bare: Callable[[], list]
    passes: int


@contextmanager
def watched(owner: Any, name: str, note: Callable[[tuple, dict], None]) -> Iterator[None]:
    """Call ``note`` with the arguments with which a function of an object is called, before it."""
    function = getattr(owner, name)

    def noting(*args, **kwargs):
        note(args, kwargs)
        return function(*args, **kwargs)

    if isinstance(function, torch.nn.Module):
        handle = function.register_forward_pre_hook(
            lambda module, args, kwargs: note(args, kwargs), with_kwargs=True
        )
        yield
        handle.remove()
    else:
        setattr(owner, name, noting)
        yield
        setattr(owner, name, function)


@contextmanager
def recorded(owner: Any, name: str) -> Iterator[list]:
    """Note the arguments with which a function of an object is called."""
    calls: list[tuple[tuple, dict]] = []
    with watched(owner, name, lambda args, kwargs: calls.append((args, kwargs))):
        yield calls


def loops(
    owner: Any, name: str, public: Callable[[], Any], rows: Callable[[Any], Any], context: Callable
) -> Loops:
    """Return both loops, if they say the same.

    Parameters
    ----------
    owner, name
        What holds the forward pass, and under which name.
    public
        The call of the public interface, which returns (n, ...).
    rows
        The output of one pass -> what the public call makes of it, (batch, ...).
    context
        Returns the context in which passes run, such as autocast.

    Raises
    ------
    ArithmeticError
        If the outputs are not the same rows, in whatever order.
    """
    with recorded(owner, name) as calls:
        expected = np.asarray(public())
    function = getattr(owner, name)

    @torch.inference_mode()
    def bare() -> list:
        with context():
            return [function(*args, **kwargs) for args, kwargs in calls]

    with torch.inference_mode(), context():
        found = np.concatenate([as_array(rows(output)) for output in bare()])
    require_same(found.reshape(len(expected), -1), expected.reshape(len(expected), -1))
    return Loops(public, bare, len(calls))


def as_array(found: Any) -> np.ndarray:
    """Return numbers as NumPy has them."""
    return found.float().cpu().numpy() if torch.is_tensor(found) else np.asarray(found)


def require_same(found: np.ndarray, expected: np.ndarray) -> None:
    """Refuse rows that are not those expected, in whatever order, up to rounding."""
    orders = [np.lexsort(np.round(each, 3).T[::-1]) for each in (found, expected)]
    largest = max(np.abs(expected).max(), 1e-9)
    apart = np.abs(found[orders[0]] - expected[orders[1]]).max() / largest
    if not apart < 1e-2:
        raise ArithmeticError(f"the bare loop says something else: {apart:.1e} of the largest")


def in_turns(first: Callable, second: Callable, clock: Callable[[], float], repeats: int) -> dict:
    """Time two functions that take turns, after a first turn each.

    Returns
    -------
    dict
        *public_s* and *bare_loop_s*, the least of each; *ratio* of these, and *median_ratio*, the
        median of each turn's ratio.
    """
    turns = [(seconds(first, clock), seconds(second, clock)) for _ in range(repeats + 1)][1:]
    public, bare = (min(each) for each in zip(*turns, strict=True))
    return {
        "public_s": round(public, 3),
        "bare_loop_s": round(bare, 3),
        "ratio": round(public / bare, 3),
        "median_ratio": round(statistics.median(one / other for one, other in turns), 3),
    }


def seconds(function: Callable, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of a call; a CUDA device has finished at either end."""
    finish()
    started = clock()
    function()
    finish()
    return clock() - started


def finish() -> None:
    """Wait for what CUDA devices still have to do."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def texts(n: int, longest: int = 16) -> list[str]:
    """Return texts of 3 to so many words, each another one."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, longest + 1, n)
    return [" ".join(rng.choice(WORDS.split(), size=length)) for length in lengths]


def files(folder: Path, n: int, height: int = 480, width: int = 640) -> list[Path]:
    """Write n photographs' likes as JPEG, upright and lying in turn, and return their paths."""
    from PIL import Image

    rng, paths = np.random.default_rng(0), []
    for number in range(n):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        image = coarse.resize((width, height), Image.Resampling.BICUBIC)
        paths.append(folder / f"{number}.jpg")
        (image if number % 2 else image.transpose(Image.Transpose.ROTATE_90)).save(paths[-1])
    return paths


def regions(n: int, width: int = 2048):
    """Return 36 regions of random features and boxes for each of n pictures."""
    from biaslib.pictures.regions import RegionFeatures

    rng, shape = np.random.default_rng(0), (n, 36)
    corners = np.concatenate([rng.random((*shape, 2)) / 2, 0.6 + rng.random((*shape, 2)) / 3], -1)
    real, nobody = np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool)
    features = rng.exponential(size=(*shape, width))
    return RegionFeatures(features, corners, real, nobody, np.full((n, 2), 640))
