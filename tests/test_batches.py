"""Batches of like length: their order, their size, and what a lack of memory does to them."""

import numpy as np
import pytest
import torch

from biaslib.checkpoints.weights import loading
from biaslib.runtime import UnknownNameError
from biaslib.runtime.batches import (
    on_device,
    precision,
    rows_that_fit,
    run_in_batches,
)

LENGTHS = [3, 9, 1, 9, 5, 2, 7]


class Memory:
    """A model that has memory for so many rows, and notes the rows of each batch that it ran."""

    def __init__(self, room, error):
        self.room, self.error = room, error
        self.tried, self.ran = [], []

    def __call__(self, rows):
        self.tried.append(len(rows))
        if len(rows) > self.room:
            raise self.error
        self.ran.append(rows.tolist())
        return np.stack([rows, rows**2], axis=1).astype(np.float32)


@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_rows_come_back_in_order_whatever_the_batch_size(batch_size):
    model = Memory(100, None)
    found = run_in_batches(LENGTHS, model, batch_size)
    assert found.tolist() == [[row, row**2] for row in range(7)]
    assert found.dtype == np.float32
    assert len(model.ran) == -(-7 // batch_size)


def test_rows_of_like_length_run_together_the_longest_first():
    model = Memory(100, None)
    run_in_batches(LENGTHS, model, 2)
    assert model.ran == [[1, 3], [6, 4], [0, 5], [2]]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("MPS backend out of memory (MPS allocated: 18 GB)"),
        # QwenLM/Qwen3, issue 873
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        # pytorch/pytorch, issue 20123
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        # QwenLM/Qwen3-VL, issue 151
        RuntimeError("GET was unable to find an engine to execute this computation"),
        # marqo-ai/marqo, issue 101
        RuntimeError("Unable to find a valid cuDNN algorithm to run convolution"),
        # what accelerate.utils.memory.should_reduce_batch_size and Lightning take for it, too
        RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you ..."),
        # deepbeepmeep/Wan2GP, issue 1083: torch.AcceleratorError, a RuntimeError
        getattr(torch, "AcceleratorError", RuntimeError)("CUDA error: out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
)
def test_a_batch_that_finds_no_memory_is_halved_and_the_size_kept(error):
    model = Memory(2, error)
    with pytest.warns(UserWarning, match="words: 6 rows .* with 1. .*batch_size=1") as caught:
        found = run_in_batches(LENGTHS, model, 6, "words")
    assert found[:, 1].tolist() == [row**2 for row in range(7)]
    assert model.tried == [6, 3, *[1] * 7]
    assert len(caught) == 1


def test_weights_larger_than_what_a_card_has_free_are_no_damaged_files(monkeypatch, tmp_path):
    """Before any picture is opened: BERT-base's matrix of words alone has 0.09 GiB."""
    network = torch.nn.Embedding(30522, 768)
    monkeypatch.setattr("biaslib.runtime.batches.free_memory", lambda device: 2**26)
    sizes = r"weights of bert take 0\.1 GiB.*cuda:1 has 0\.1 GiB free.*larger card"
    with pytest.raises(MemoryError, match=sizes), loading(tmp_path, "bert"):
        on_device(network, "cuda:1", "bert")
    assert on_device(network, "cpu", "bert") is network


def test_parts_of_a_batch_are_given_what_was_loaded_for_the_whole():
    model, parts = Memory(2, MemoryError()), []

    def run(rows, loaded):
        parts.append((rows.tolist(), loaded))
        return torch.as_tensor(model(rows))

    def load(planned):
        return (batch.tolist() for batch in planned)

    with pytest.warns(UserWarning, match="went on with 2"):
        found = run_in_batches(LENGTHS, run, 4, load=load)
    assert found.tolist() == [[row, row**2] for row in range(7)]
    whole = [1, 3, 6, 4], [0, 5, 2]
    assert parts[1:] == [
        ([1, 3], whole[0]),
        ([6, 4], whole[0]),
        ([0, 5], whole[1]),
        ([2], whole[1]),
    ]


T4, V100, P100, A100, H100 = (7, 5), (7, 0), (6, 0), (8, 0), (9, 0)


@pytest.mark.parametrize(
    ("device", "wanted", "capability", "expected"),
    [
        ("cpu", None, None, torch.float32),
        ("cpu", "auto", None, torch.float32),
        ("mps", "auto", None, torch.float32),
        ("cuda", None, A100, torch.float32),
        ("cuda:1", "auto", A100, torch.bfloat16),
        ("cuda", "auto", H100, torch.bfloat16),
        ("cuda", "auto", T4, torch.float16),
        ("cuda", "auto", V100, torch.float16),
        ("cuda", "auto", P100, torch.float32),
        ("cuda", "bfloat16", A100, torch.bfloat16),
        ("cuda", "float16", T4, torch.float16),
        ("cuda", "float16", A100, torch.float16),
    ],
)
def test_precision(device, wanted, capability, expected):
    assert precision(device, wanted, capability) == expected


def test_what_overflows_in_half_precision_is_refused(monkeypatch):
    overflowed = np.array([[1.0], [np.inf]], dtype=np.float32)
    assert run_in_batches([1, 1], lambda rows: overflowed[rows], 2)[1, 0] == np.inf
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    with pytest.raises(FloatingPointError, match="float16 holds none beyond 65,504"):
        run_in_batches([1, 1], lambda rows: overflowed[rows], 2)


@pytest.mark.parametrize(
    ("device", "gib", "expected"),
    [("cpu", None, 64), ("cuda", 2, 64), ("cuda", 15, 128), ("cuda", 40, 512), ("cuda", 80, 1024)],
)
def test_the_rows_of_a_batch_grow_with_the_memory_of_the_card(device, gib, expected):
    assert rows_that_fit(device, 64, gib and gib * 2**30) == expected


def test_what_cannot_be_run_ends_the_run():
    for rows, error in ((2, MemoryError()), (2, RuntimeError("shapes cannot be multiplied"))):
        with pytest.raises(type(error)):
            run_in_batches([1] * rows, Memory(0, error), 2)
    for lengths, batch_size in (([], 2), ([1], 0)):
        with pytest.raises(ValueError):  # noqa: PT011
            run_in_batches(lengths, Memory(1, None), batch_size)


@pytest.mark.parametrize(
    ("device", "wanted", "error"),
    [
        ("cuda", "bfloat16", ValueError),
        ("cpu", "bfloat16", ValueError),
        ("cuda", "bfloat", UnknownNameError),
    ],
)
def test_precisions_that_a_device_does_not_have_are_refused(device, wanted, error):
    """A T4 only emulates bfloat16."""
    with pytest.raises(error):
        precision(device, wanted, T4)
