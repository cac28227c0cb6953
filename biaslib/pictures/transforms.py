"""Pictures on their way into a network: resized by workers, normalised on the device."""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from PIL import Image
from torch.utils.data import get_worker_info

from biaslib.checkpoints.files import LOCAL
from biaslib.pictures.images import Pictures, chunks, prefetched, shared_room

__all__ = ["ImageBatch", "ImageTransform", "image_batches", "read_image_processor", "split"]

PIXELS, SIZES = "pixel_values", "sizes"
IN_FLIGHT = 64
"""Batches that shared memory must have room for before a worker passes a tensor through it."""

SAME = 1e-6
"""How far apart numbers near 1 may be in the two ways to normalise a picture."""


@dataclass(frozen=True)
class ImageTransform:
    """What a checkpoint's image processor does, in two steps.

    Parameters
    ----------
    resize
        Picture, uint8 (h, w, 3) -> arrays by name; ``pixel_values`` are uint8 (3, height, width),
        or float32 of any shape where the processor does not resize before it normalises.
    scale, shift
        Of each colour, (3,): what the uint8 numbers are multiplied by, and what is then added, on
        the device; ``None`` for numbers that are normalised already.
    """

    resize: Callable[[np.ndarray], dict[str, np.ndarray]]
    scale: tuple[float, ...] | None = None
    shift: tuple[float, ...] | None = None

    def normalised(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return a batch with its pixels as the network takes them, zero beside a picture."""
        if self.scale is None:
            return inputs
        pixels = inputs[PIXELS]
        scale, shift = (
            torch.tensor(numbers)[:, None, None].to(pixels.device, non_blocking=True)
            for numbers in (self.scale, self.shift)
        )
        pixels = pixels.float().mul_(scale).add_(shift)
        if SIZES in inputs:
            sizes = torch.as_tensor(inputs[SIZES]).to(pixels.device, non_blocking=True)
            height, width = sizes.T[..., None]
            rows, columns = (torch.arange(n, device=pixels.device) for n in pixels.shape[-2:])
            inside = (rows < height)[:, None, :, None] & (columns < width)[:, None, None]
            pixels.masked_fill_(~inside, 0)
        return inputs | {PIXELS: pixels}


class ImageBatch(NamedTuple):
    """What a network takes of some images: their numbers (n,), and tensors of n rows by name.

    ``sizes`` of pictures are an array: what is made of them is decided before the device is asked.
    What the network reads at a time goes to the ``device``, where ``transform`` normalises it.
    """

    images: np.ndarray
    inputs: dict[str, Any]
    device: str = "cpu"
    transform: ImageTransform | None = None

    def of(self, images: Sequence[int]) -> dict[str, Any]:
        """Return the rows of some images on the device, normalised."""
        place = {image: row for row, image in enumerate(self.images.tolist())}
        rows = selected(self.inputs, [place[image] for image in images], len(self.images))
        rows = {
            name: values.to(self.device, non_blocking=True) if torch.is_tensor(values) else values
            for name, values in rows.items()
        }
        return rows if self.transform is None else self.transform.normalised(rows)


def different(images: np.ndarray) -> np.ndarray:
    """Return each number once, in the order in which they come.

    Examples
    --------
    >>> different(np.array([7, 2, 7])).tolist()
    [7, 2]
    """
    return np.array(list(dict.fromkeys(images.tolist())))


def selected(inputs: dict[str, Any], rows: Sequence[int], n: int) -> dict[str, Any]:
    """Return some rows of tensors or arrays of n rows, gathered on the device of each.

    Examples
    --------
    >>> selected({"a": torch.tensor([5, 6])}, [1, 1, 0], 2)
    {'a': tensor([6, 6, 5])}
    """
    if list(rows) == list(range(n)):
        return inputs
    index = torch.as_tensor(rows)
    return {
        name: values[rows]
        if isinstance(values, np.ndarray)
        else values[index.to(values.device, non_blocking=True)]
        for name, values in inputs.items()
    }


def image_batches(
    images: Pictures,
    transform: ImageTransform,
    planned: Sequence[np.ndarray],
    device: str,
) -> Iterator[ImageBatch]:
    """Yield what a network takes of each batch of images, each image of a batch once.

    Workers resize, a few pictures at a time, so that all of them are at work on the batch that the
    network will read first.

    Parameters
    ----------
    images, transform
        The pictures and what is done to each.
    planned
        The numbers of the images of each batch, which may repeat.
    device
        Where the network runs.

    Raises
    ------
    ImageError
        If a picture cannot be opened or resized; the message names it.
    """
    numbers = [different(batch) for batch in planned]
    few_rows = [rows for batch in numbers for rows in chunks(batch)]
    resized = prefetched(images, transform.resize, few_rows, _of_pictures)
    for rows in numbers:
        parts = list(itertools.islice(resized, len(chunks(rows))))
        inputs = collated(parts, pinned=device.startswith("cuda"))
        yield ImageBatch(rows, inputs, device, transform)


def collated(parts: Sequence[dict[str, Any]], pinned: bool = False) -> dict[str, Any]:
    """Return batches of pictures as one: a tensor a name, and where they differ their ``sizes``.

    Smaller pictures lie at the upper left with zeros around; ``sizes`` (n, 2) are then the height
    and the width of each. From pinned memory a card reads while this process goes on.

    Examples
    --------
    >>> wide, tall = (np.ones(shape, np.uint8) for shape in ((1, 3, 1, 2), (1, 3, 2, 1)))
    >>> batch = collated([{"pixel_values": wide}, {"pixel_values": tall}])
    >>> batch["pixel_values"][:, 0].tolist(), batch["sizes"].tolist()
    ([[[1, 1], [0, 0]], [[1, 0], [1, 0]]], [[1, 2], [2, 1]])
    """
    batch = {
        name: _joined([torch.as_tensor(part[name]) for part in parts], pinned)
        for name in parts[0]
        if name != SIZES
    }
    sizes = [part.get(SIZES, [part[PIXELS].shape[-2:]] * len(part[PIXELS])) for part in parts]
    sizes = np.concatenate(sizes)
    return batch | {SIZES: sizes} if (sizes != sizes[0]).any() else batch


def _joined(tensors: list[torch.Tensor], pinned: bool) -> torch.Tensor:
    """Return tensors (n, ..., height, width) as one, zero beside the smaller ones."""
    counts = [len(tensor) for tensor in tensors]
    sides = [tensor.shape[1:][-2:] for tensor in tensors]
    shape = (sum(counts), *tensors[0].shape[1:-2], *np.max(sides, axis=0))
    joined = torch.zeros(shape, dtype=tensors[0].dtype, pin_memory=pinned)
    for rows, tensor, side in zip(joined.split(counts), tensors, sides, strict=True):
        rows[(..., *map(slice, side))] = tensor
    return joined


def _of_pictures(resized: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    """Return n resized pictures as a batch.

    Tensors leave a worker through shared memory, of which containers may have little; arrays
    through a pipe.
    """
    # Copied, since PyTorch takes no array that may not be written.
    batch = collated([{name: np.array([each]) for name, each in one.items()} for one in resized])
    needed = IN_FLIGHT * sum(values.nbytes for values in batch.values())
    if get_worker_info() and shared_room() <= needed:
        return {name: np.asarray(values) for name, values in batch.items()}
    return batch


def split(whole: Callable, resize: Callable) -> ImageTransform:
    """Return an image processor as a step for workers and one for the device.

    Parameters
    ----------
    whole, resize
        Picture -> arrays by name, as the network takes them, and before they are normalised. Where
        normalising is not the same for all pixels of a colour, or comes before the resizing,
        ``whole`` is left to the workers.
    """
    noise = np.random.default_rng(0).integers(0, 256, (48, 80, 3), dtype=np.uint8)
    pixels = resize(noise)[PIXELS]
    if pixels.dtype == np.uint8 and pixels.ndim == len(pixels) == 3:
        y, x = (side // 2 for side in pixels.shape[1:])
        black, white = (
            whole(np.full_like(noise, value))[PIXELS][:, y, x].astype(float) for value in (0, 255)
        )
        scale, shift = (white - black) / 255, black
        transform = ImageTransform(resize, tuple(scale.tolist()), tuple(shift.tolist()))
        ours = transform.normalised({PIXELS: torch.tensor(pixels[None])})[PIXELS][0].numpy()
        if np.allclose(ours, whole(noise)[PIXELS], rtol=SAME, atol=SAME):
            return transform
    return ImageTransform(whole)


def of_processor(processor: Any, names: Sequence[str] = (PIXELS,)) -> ImageTransform:
    """Return the steps of an image processor of transformers; ``names`` are kept, or all."""
    whole = functools.partial(_processed, processor, names)
    return split(whole, functools.partial(whole, do_rescale=False, do_normalize=False))


def _processed(
    processor: Any, names: Sequence[str], picture: np.ndarray, **options: bool
) -> dict[str, np.ndarray]:
    # Of an array 1, 3 or 4 pixels high a processor would take the rows for colours.
    inputs = processor(images=[Image.fromarray(picture)], return_tensors="np", **options)
    return {name: each[0] for name, each in inputs.items() if name in (names or inputs)}


def read_image_processor(folder: Path) -> Any:
    """Return the image processor of a folder, the one made with Pillow.

    The published models were trained and scored on pictures that Pillow made smaller; torchvision's
    resizing gives slightly other pixels. Models that write take what ``AutoProcessor`` of
    transformers takes, torchvision's where it is installed: its name is in their revision.
    """
    return transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", **LOCAL)
