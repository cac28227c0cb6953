"""Forward passes in batches of like length, which survive a lack of memory."""

import itertools
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from biaslib.runtime import free_memory, note_batches, progress, unknown_name

MANY = 4
"""More batches than this have a progress bar."""

NO_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "status_alloc_failed",
    "device_allocation_failed",
    "cudnn_status_not_supported",
    "unable to find a valid cudnn algorithm",
    "unable to find an engine to execute",
)
"""What errors say, in lower case, when CUDA, its libraries, MPS or the CPU have no memory left.

cuBLAS and cuDNN take memory of their own, beside PyTorch's. Where cuDNN finds none for any of its
algorithms, it says that it has found no algorithm.
"""

PRECISIONS = ("float32", "bfloat16", "float16", "auto")

BFLOAT16_FROM, FLOAT16_FROM = (8, 0), (7, 0)
"""CUDA compute capabilities from which tensor cores take bfloat16, and float16."""

ROWS_A_GIB = 16
"""Rows a batch for each GiB of a card's memory, where a model's rows are a short text with at most
a few hundred places for an image: a row takes less than 20 MB at a base model's size."""

MOST = 1024
"""Rows beyond which a larger batch no longer fills a card better."""


def run_in_batches(
    lengths: Sequence[int] | np.ndarray,
    run: Callable[..., np.ndarray | torch.Tensor],
    batch_size: int,
    label: str = "",
    load: Callable[[list[np.ndarray]], Iterable[Any]] | None = None,
) -> np.ndarray:
    """Run a model over rows of like length together, and put the results back in order.

    The longest rows come first: if memory does not suffice, it shows at once. A batch that finds
    no memory is halved and tried again, and the smaller size is kept for the rest of the run; a
    warning says so at the end, and the stamp of a page prints it
    (:func:`biaslib.runtime.note_batches`).

    Parameters
    ----------
    lengths
        (n,), what each row costs, for example its number of tokens; all 1 where rows cost alike.
    run
        Takes the numbers of the rows of a batch, int (b,), and returns their results, (b, ...).
        Tensors leave their device while the next batch runs.
    batch_size
        Rows a batch, at most.
    label
        What the progress bar says; there is one for more than four batches.
    load
        Takes the rows of all batches, in order, and yields for each what ``run`` is given as its
        second argument, such as the pictures of its rows. Parts of a batch that is halved get that
        of the whole.

    Returns
    -------
    numpy.ndarray
        (n, ...), the results in the order of ``lengths``.

    Raises
    ------
    ValueError
        If there are no rows, or the batch size is less than 1.
    MemoryError
        If a single row does not fit in memory.
    FloatingPointError
        If ``BIASLIB_PRECISION`` asks for half precision and a result is not finite.

    Examples
    --------
    >>> texts = ["a long text", "one", "two"]
    >>> count = lambda rows: np.array([len(texts[row]) for row in rows])
    >>> run_in_batches([len(text) for text in texts], count, batch_size=2).tolist()
    [11, 3, 3]
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be 1 or more and is {batch_size}")
    if not len(lengths):
        raise ValueError("there are no rows to run: the set is empty")
    order = np.argsort(-np.asarray(lengths), kind="stable")  # the longest rows first
    batches = _Batches(order, run, batch_size, load)
    results = progress(batches, label, len(order)) if len(order) > MANY * batch_size else batches
    outputs = None
    for row, result in results:
        if outputs is None:
            outputs = np.empty((len(order), *result.shape), dtype=result.dtype)
        outputs[row] = result
    if batches.size < batch_size:
        note_batches(
            f"{label or 'a model'}: {len(order):,} rows, {batches.size} a batch "
            f"({batch_size} did not fit in memory)"
        )
        warnings.warn(
            f"{label or 'the model'}: {batch_size} rows a batch did not fit in memory; went on "
            f"with {batches.size}. To start there: batch_size={batches.size}",
            stacklevel=2,
        )
    return outputs


class _Batches:
    """Yields (row, result) batch by batch, in smaller batches once memory has run out."""

    def __init__(
        self, order: np.ndarray, run: Callable, batch_size: int, load: Callable | None
    ) -> None:
        self.order, self.run, self.load = order, run, load
        self.planned_size = self.size = batch_size

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        # The results of a batch leave the device while the next one runs.
        begun = ((rows, _leaving(result)) for rows, result in self._in_turn())
        for leaving, _ in itertools.pairwise(itertools.chain(begun, [None])):
            yield from _arrived(*leaving)

    def _in_turn(self) -> Iterator[tuple[np.ndarray, np.ndarray | torch.Tensor]]:
        """Yield the rows of each batch, or part of one, and their results where they are."""
        starts = range(0, len(self.order), self.planned_size)
        planned = [self.order[start : start + self.planned_size] for start in starts]
        inputs = ((part,) for part in self.load(planned)) if self.load else ((),) * len(planned)
        for batch, loaded in zip(planned, inputs, strict=True):
            start = 0
            while start < len(batch):
                rows = batch[start : start + self.size]
                result = self._result(rows, *loaded)
                if result is not None:
                    yield rows, result
                    start += len(rows)
                    continue
                self.size = len(rows) // 2
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()

    def _result(self, rows: np.ndarray, *loaded: Any) -> np.ndarray | torch.Tensor | None:
        """Return the results of a batch, or None if there was no memory for it.

        The error is let go before the next try: its traceback holds on to the tensors of the pass.
        """
        try:
            return self.run(rows, *loaded)
        except (MemoryError, RuntimeError) as error:
            if not says_no_memory(error):
                raise
            if len(rows) == 1:
                raise MemoryError(
                    "there is no memory for a single row: use a shorter text or a smaller picture, "
                    "a smaller model, or another device"
                ) from error
            return None


def at(states: torch.Tensor, rows: Sequence[int], places: Sequence[int]) -> torch.Tensor:
    """Return the states at q places of rows: (n, tokens, d) -> (q, d), without leaving the device.

    Examples
    --------
    >>> at(torch.arange(6).reshape(2, 3, 1), [0, 1], [2, 0]).tolist()
    [[2], [3]]
    """
    index = torch.as_tensor(np.stack([rows, places])).to(states.device, non_blocking=True)
    return states[index[0], index[1]]


def gather_log_probabilities(logits: torch.Tensor, pairs: np.ndarray) -> torch.Tensor:
    """Return the log-softmax of logits (m, vocabulary) at q pairs (q, 2) of row and piece: (q,).

    The gathering is done on the device of the logits, so that q numbers leave it and not all.

    Examples
    --------
    >>> gather_log_probabilities(torch.zeros(2, 4), np.array([[1, 3]])).round(decimals=2)
    tensor([-1.3900])
    """
    rows, pieces = torch.as_tensor(pairs.T).to(logits.device, non_blocking=True)
    return logits.float().log_softmax(-1)[rows, pieces]


def _leaving(result: np.ndarray | torch.Tensor) -> Callable[[], np.ndarray]:
    """Begin to copy a batch's results off its device, and return what waits for them alone.

    Copied when it is asked for, a batch would wait for the one that was begun after it, too.
    """
    if not isinstance(result, torch.Tensor):
        return lambda: result
    if result.device.type != "cuda":
        return lambda: result.cpu().numpy()
    copied, done = result.to("cpu", non_blocking=True), torch.cuda.Event()
    done.record(torch.cuda.current_stream(result.device))

    def wait() -> np.ndarray:
        done.synchronize()
        return copied.numpy()

    return wait


def _arrived(rows: np.ndarray, wait: Callable[[], np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each row with its result; refuse numbers of half precision that overflowed."""
    results, wanted = wait(), _wanted()
    if wanted != "float32" and not np.isfinite(results).all():
        raise FloatingPointError(
            f"the model gave numbers that are not finite with BIASLIB_PRECISION={wanted}: "
            "float16 holds none beyond 65,504. Set BIASLIB_PRECISION=float32, or bfloat16 on a "
            "card that has it"
        )
    yield from zip(rows, results, strict=True)


def rows_that_fit(device: str, at_least: int, memory: int | None = None) -> int:
    """Return how many rows a batch a device is given, before any lack of memory halves them.

    Parameters
    ----------
    device
        As of :func:`biaslib.runtime.device`.
    at_least
        Rows on any other device than CUDA, and at least on that.
    memory
        Bytes of the CUDA device; None asks PyTorch.

    Examples
    --------
    >>> rows_that_fit("cpu", 64), rows_that_fit("cuda", 64, memory=15 * 2**30)
    (64, 128)
    """
    if not device.startswith("cuda"):
        return at_least
    memory = memory or torch.cuda.get_device_properties(device).total_memory
    rows = min(MOST, ROWS_A_GIB * memory // 2**30)
    return max(at_least, 2 ** int(np.log2(max(rows, 1))))


def on_device(network: torch.nn.Module, device: str, name: str) -> torch.nn.Module:
    """Return a network on a device, ready to run.

    Raises
    ------
    MemoryError
        If its weights are larger than the memory that a CUDA device has free; with both sizes.
    """
    if device.startswith("cuda"):
        size = sum(tensor.nbytes for tensor in (*network.parameters(), *network.buffers()))
        free = free_memory(device)
        if size > free:
            raise MemoryError(
                f"the weights of {name} take {size / 2**30:.1f} GiB, and the CUDA device {device} "
                f"has {free / 2**30:.1f} GiB free, whatever the batch size. Take a smaller model, "
                "a larger card, or device='cpu'; nvidia-smi lists what else is on the card"
            )
    return network.to(device).eval()


def says_no_memory(error: Exception) -> bool:
    """Tell whether an error means that a device has no memory left."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or any(words in message for words in NO_MEMORY)


def precision(
    device: str, wanted: str | None = None, capability: tuple[int, int] | None = None
) -> torch.dtype:
    """Return the type of number in which a model runs on a device.

    Only float32 carries the claim that results agree within 1e-5 whatever the batch size. float16
    holds no number beyond 65,504: what overflows is refused (:func:`run_in_batches`), and never
    passed on. bfloat16 has the range of float32 and three significant digits less than float16.

    Parameters
    ----------
    device
        As of :func:`biaslib.runtime.device`.
    wanted
        ``float32``; ``bfloat16`` or ``float16``, for CUDA alone; ``auto``: on a CUDA device
        bfloat16 from compute capability 8.0 on (A100, L4, H100), float16 from 7.0 on (V100, T4,
        which only emulate bfloat16), and float32 everywhere else. None takes the environment
        variable ``BIASLIB_PRECISION``, or float32.
    capability
        Of the CUDA device; None asks PyTorch.

    Raises
    ------
    UnknownNameError
        If there is no such precision.
    ValueError
        If half precision is wanted on a device other than CUDA, or bfloat16 on one that emulates
        it.

    Examples
    --------
    >>> precision("cpu", "auto"), precision("cuda", "auto", capability=(7, 5))
    (torch.float32, torch.float16)
    """
    wanted = wanted or _wanted()
    if wanted not in PRECISIONS:
        raise unknown_name("precision", wanted, PRECISIONS)
    on_cuda = device.startswith("cuda")
    if wanted in ("float32", "float16") and (on_cuda or wanted == "float32"):
        return getattr(torch, wanted)
    if not on_cuda:
        if wanted == "auto":
            return torch.float32
        raise ValueError(f"{wanted} is for CUDA devices; on {device} use precision float32 or auto")
    capability = capability or torch.cuda.get_device_capability(device)
    if capability >= BFLOAT16_FROM:
        return torch.bfloat16
    if wanted == "bfloat16":
        raise ValueError(
            f"{device} has compute capability {capability[0]}.{capability[1]} and only emulates "
            "bfloat16, slower than float32; use float16 or auto"
        )
    return torch.float16 if capability >= FLOAT16_FROM else torch.float32


SHORTENED = {
    "cuda": ("cuda.matmul", "cudnn.conv", "cudnn.rnn"),
    "cpu": ("mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn"),
}
"""By kind of device: where ``torch.backends`` says how many digits of float32 a product keeps."""


def full_float32() -> None:
    """Have products and convolutions calculate with all digits of float32, in this process.

    Examples
    --------
    >>> torch.set_float32_matmul_precision("medium")
    >>> precision_name("cuda")
    'tf32'
    >>> full_float32()
    >>> precision_name("cuda")
    'float32'
    """
    # By the names before torch 2.9 first: where the two disagree, reading the old ones fails.
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    for kind in SHORTENED:
        for setting in _of_float32(kind):
            setting.fp32_precision = "ieee"


def _of_float32(device: str) -> list[Any]:
    """Return the settings that decide over float32 on a device; none before torch 2.9."""
    names = SHORTENED.get(device.partition(":")[0], ())
    settings = [operator.attrgetter(name)(torch.backends) for name in names]
    return [setting for setting in settings if hasattr(setting, "fp32_precision")]


def precision_name(device: str) -> str:
    """Return the :func:`precision` in which a model runs, or what shortens its float32.

    Parameters
    ----------
    device
        As of :func:`precision`.

    Returns
    -------
    str
        Such as ``float32`` or ``float16``; ``tf32`` or ``bf16`` where float32 is shortened.
    """
    numbers = precision(device)
    if numbers != torch.float32:
        return str(numbers).removeprefix("torch.")
    settings = {setting.fp32_precision for setting in _of_float32(device)} - {"ieee", "none"}
    old = device.startswith("cuda") and not _of_float32(device)
    if old and (torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32):
        settings = {"tf32"}
    return " and ".join(sorted(settings)) or "float32"


def precision_of(model: Any) -> str:
    """Return in what a model calculates, as :func:`precision_name`: its own word for it, if any."""
    return getattr(model, "precision", None) or precision_name(str(model.device))


def _wanted() -> str:
    return os.environ.get("BIASLIB_PRECISION") or "float32"


def autocast(device: str, half: torch.dtype | None = None) -> torch.autocast:
    """Return the context in which a forward pass runs in the :func:`precision` of a device.

    Parameters
    ----------
    device
        As of :func:`biaslib.runtime.device`.
    half
        What half precision is for this pass, whichever of the two was asked for.

    Examples
    --------
    >>> with autocast("cpu"):
    ...     (torch.ones(1, 2) @ torch.ones(2, 1)).dtype
    torch.float32
    """
    number = precision(device)
    on = number != torch.float32
    return torch.autocast(device.split(":")[0], dtype=half or number if on else None, enabled=on)
