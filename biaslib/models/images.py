"""Pictures as every model takes them: files, images, arrays, or a collection of another kind."""

import contextlib
import functools
import hashlib
import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas
from PIL import Image, ImageOps

from biaslib.errors import InputError
from biaslib.runtime import file_sha256, progress

if TYPE_CHECKING:
    from biaslib.models.regions import RegionFeatures, SharedRegions

__all__ = [
    "Ahead",
    "Decoded",
    "ImageError",
    "Pictures",
    "ReadAhead",
    "WithRegions",
    "check_images",
    "loaded",
    "open_image",
    "opened",
    "pictures",
]

CHUNK = 16
"""Pictures that are drawn, or handed to a worker, at a time."""

FEW = 256
"""Up to so many pictures, starting workers takes longer than they save."""

KEPT = 2 * 2**30
"""Bytes of decoded pictures that :class:`Decoded` keeps."""

FORKS = sys.platform == "linux"
"""Whether workers are forked, which starts them fast and asks nothing of the calling script."""

SIXTEEN_BITS = ("I", "I;16", "I;16L", "I;16B", "I;16N")
ALPHA = ("LA", "PA", "RGBA")
OPAQUE = ("1", "L", "P", "RGB", "RGBX", "CMYK", "YCbCr", "HSV")
"""Pillow's names of the kinds of pixels that are understood, with :data:`SIXTEEN_BITS`."""

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF")
"""What pictures come in, whatever a file is called; Pillow decodes each of them by itself.

Left to choose, it takes a ``.jpg`` for what its first bytes say, and starts Ghostscript on EPS.
"""


class ImageError(InputError):
    """An image that cannot be used; the message names it and says what to do."""


def open_image(path: str | os.PathLike) -> Image.Image:
    """Open an image file as a person sees it: upright, in RGB, the first frame of an animation.

    Transparent parts are white. Sixteen-bit grey is scaled to eight bits. Colours are converted
    without regard to a colour profile.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    PIL.Image.Image
        Mode RGB, decoded.

    Raises
    ------
    ImageError
        If the file is missing, a folder, empty, in none of :data:`FORMATS`, truncated, has pixels
        of another kind than grey, palette, RGB, CMYK, YCbCr and HSV, or more pixels than Pillow's
        limit against decompression bombs; the message names it.

    Examples
    --------
    >>> open_image("missing.jpg")
    Traceback (most recent call last):
    biaslib.models.images.ImageError: missing.jpg is not there; check the path
    """
    path = Path(path)
    if not path.exists():
        raise ImageError(f"{path} is not there; check the path", path=path)
    if path.is_dir():
        raise ImageError(
            f"{path} is a folder; pass its files, as sorted(folder.glob('*.jpg'))", path=path
        )
    if path.stat().st_size == 0:
        raise ImageError(f"{path} is empty (0 bytes); download or copy it again", path=path)
    with _naming(str(path), path=path), opened(path) as image:
        return _as_seen(image)


def opened(source: str | os.PathLike | IO[bytes]) -> Image.Image:
    """Return Pillow's image of a file in one of :data:`FORMATS`, which is decoded when it is used.

    Raises
    ------
    PIL.UnidentifiedImageError
        If it is in none of them.
    """
    Image.init()
    return Image.open(source, formats=[each for each in FORMATS if each in Image.OPEN])


@contextlib.contextmanager
def _naming(name: str, **where: Any) -> Iterator[None]:
    """Turn whatever goes wrong with an image into an ImageError with its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            yield
        except MemoryError:
            raise
        except Exception as error:  # Pillow's decoders raise errors of many kinds on bad bytes.
            raise ImageError(f"{name} {_problem(error)}", **where) from error


def check_images(paths: Sequence[str | os.PathLike]) -> pandas.DataFrame:
    """Open every file once and return those that cannot be used, all at once.

    Parameters
    ----------
    paths
        Image files.

    Returns
    -------
    pandas.DataFrame
        One row a problem: *row* (its number in ``paths``), *path*, *problem*; no rows if all is
        well.

    Examples
    --------
    >>> check_images(["missing.jpg"])["problem"].tolist()
    ['missing.jpg is not there; check the path']
    """
    paths = [Path(path) for path in paths]
    rows = np.arange(len(paths))
    outcomes = _outcomes(_Files(paths), _nothing, rows)
    found = [
        {"row": row, "path": str(paths[row]), "problem": str(outcome)}
        for row, outcome in enumerate(progress(outcomes, "images", len(paths)))
        if isinstance(outcome, ImageError)
    ]
    return pandas.DataFrame(found, columns=["row", "path", "problem"])


class Pictures(ABC):
    """A lazy sequence of pictures: ``len(pictures)``, and ``pictures[i]`` as uint8 (h, w, 3).

    Made by :func:`pictures`.
    """

    source = ""
    """What made of the pictures what a model reads, if not the model itself, for a store."""

    read_ahead = True
    """Whether single pictures can be read ahead of a model, by workers."""

    has_regions = False
    """Whether the pictures know their regions, and need no detector."""

    @functools.cached_property
    def found(self) -> dict[str, "RegionFeatures"]:
        """Regions of all pictures, by what found them: see :func:`read_once`."""
        return {}

    @abstractmethod
    def __len__(self) -> int:
        """Return how many pictures there are."""

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    @abstractmethod
    def __getitem__(self, row: int) -> np.ndarray:
        """Return one picture, uint8 (h, w, 3)."""

    @abstractmethod
    def part(self, rows: Sequence[int]) -> "Pictures":
        """Return the pictures of some rows."""

    def regions(self) -> "RegionFeatures | SharedRegions":
        """Return the regions of all pictures, if :attr:`has_regions`."""
        raise ValueError(f"the regions of {type(self).__name__} are not known: use a detector")

    def name(self, row: int) -> str:
        """Return what an error calls a picture."""
        return f"picture {row}"

    @functools.cached_property
    def ids(self) -> list[str]:
        """What each picture is called in a store: 64 hexadecimal digits that its content gives.

        The SHA-256 of a file's bytes, else of the pixels. Reading a file to hash it costs little
        beside decoding it and running a model; its path, size and date would cost less, and would
        take another picture for the same, or the same for another, when files are moved or
        written anew. Within a process a file is hashed once, unless its size or date changes.
        """
        chunks = [range(i, min(i + CHUNK, len(self))) for i in range(0, len(self), CHUNK)]
        return [_pixels_hash(picture) for rows in chunks for picture in self.part(rows)]


@functools.singledispatch
def pictures(images: Any) -> Pictures:
    """Return images of any kind as a lazy sequence of RGB pictures.

    A package with pictures of another kind registers what makes a collection of them:
    ``pictures.register(its_type, its_collection)``.

    Parameters
    ----------
    images
        :class:`Pictures`; a uint8 array (n, h, w, 3); or a sequence of paths, PIL images and uint8
        arrays (h, w, 3).

    Raises
    ------
    TypeError
        If it is a single image, or an item is none of these; the message names its number.
    ValueError
        If an array has another shape, or numbers that are not uint8.

    Examples
    --------
    >>> pictures([np.zeros((4, 6, 3), np.uint8), Image.new("L", (2, 2), 255)])[1].tolist()
    [[[255, 255, 255], [255, 255, 255]], [[255, 255, 255], [255, 255, 255]]]
    """
    if isinstance(images, Pictures):
        return images
    if isinstance(images, str | os.PathLike | Image.Image):
        raise TypeError("images is a single image; pass a list with it: [image]")
    if isinstance(images, np.ndarray) and images.dtype != object and images.ndim != 4:
        raise ValueError(f"an array of images has the shape (n, h, w, 3), not {images.shape}")
    if not hasattr(images, "__iter__") or hasattr(images, "columns"):
        raise TypeError(
            f"images has the type {type(images).__name__}; pass paths, PIL images or uint8 arrays; "
            'of a table of files its column of paths, as images=table["path"]'
        )
    items = list(images)
    for row, item in enumerate(items):
        _check_item(row, item)
    return _Files(items)


class _Files(Pictures):
    """Paths, PIL images and arrays, in any mixture; files are opened when they are asked for."""

    def __init__(self, items: list, numbers: Sequence[int] | None = None) -> None:
        self.items = items
        self.numbers = range(len(items)) if numbers is None else numbers

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, row: int) -> np.ndarray:
        item = self.items[row]
        if isinstance(item, np.ndarray):
            return item
        if _is_path(item):
            return np.array(open_image(item))
        with _naming(self.name(row), row=self.numbers[row]):
            return np.array(_as_seen(item))

    def part(self, rows: Sequence[int]) -> Pictures:
        return _Files([self.items[row] for row in rows], [self.numbers[row] for row in rows])

    def name(self, row: int) -> str:
        item = self.items[row]
        return str(item) if _is_path(item) else f"image {self.numbers[row]} of the list"

    @functools.cached_property
    def ids(self) -> list[str]:
        return [
            _file_hash(item) if _is_path(item) else _pixels_hash(self[row])
            for row, item in enumerate(self.items)
        ]


class _Rows(Pictures):
    """Some rows of other pictures, which go on deciding how they are read."""

    def __init__(self, images: Any, rows: Sequence[int] | None = None) -> None:
        self.whole = pictures(images)
        self.rows = list(range(len(self.whole)) if rows is None else rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> np.ndarray:
        return self.whole[self.rows[row]]

    def part(self, rows: Sequence[int]) -> Pictures:
        return self.whole.part([self.rows[row] for row in rows])

    def name(self, row: int) -> str:
        return self.whole.name(self.rows[row])

    @functools.cached_property
    def ids(self) -> list[str]:
        return [self.whole.ids[row] for row in self.rows]


class WithRegions(_Rows):
    """Pictures whose regions are known: from a file, or found before.

    Parameters
    ----------
    images
        In any form of the package's.
    read
        Takes the places of n pictures, and returns their regions.
    source
        Whose the regions are, and where they come from.
    """

    has_regions = True

    def __init__(
        self,
        images: Any,
        read: Callable[[Sequence[int]], "RegionFeatures | SharedRegions"],
        source: str,
        rows: Sequence[int] | None = None,
    ) -> None:
        super().__init__(images, rows)
        self.read, self.source = read, source

    def part(self, rows: Sequence[int]) -> "WithRegions":
        """Return the pictures of some rows."""
        return WithRegions(self.whole, self.read, self.source, [self.rows[row] for row in rows])

    def regions(self) -> "RegionFeatures | SharedRegions":
        """Return the regions of all pictures."""
        return self.read(self.rows)


def read_once(model: Any, images: Any) -> Pictures:
    """Return pictures whose regions, if a model reads those, are found once for all their parts.

    They are kept with the pictures: another model that reads the same ones finds them there.

    Parameters
    ----------
    model
        Any; one that reads regions has ``regions_of``.
    images
        In any form of the package's.
    """
    shown = pictures(images)
    if not hasattr(model, "regions_of") or isinstance(shown, WithRegions):
        return shown
    source = read_by(model, shown)

    def read(rows: Sequence[int]) -> "SharedRegions":
        from biaslib.models.regions import SharedRegions

        if source not in shown.found:
            shown.found[source] = model.regions_of(shown)
        return SharedRegions(shown.found[source], np.asarray(rows))

    return WithRegions(shown, read, source)


def read_by(model: Any, images: Pictures) -> str:
    """Return what stands between pictures and a model: what drew them, or the model's detector."""
    if images.has_regions or not hasattr(model, "regions_of"):
        return images.source
    return f"{images.source}regions of {model.detector.revision}"


class Decoded(_Rows):
    """Pictures that are kept once they have been decoded, up to :data:`KEPT` bytes of them.

    They are kept where :class:`ReadAhead` reads them: several models, or several sets of captions,
    then share one decoding. Their ids stay those of the files.

    Parameters
    ----------
    images
        In any form of the package's.
    """

    def __init__(self, images: Any) -> None:
        super().__init__(images)
        self.kept: dict[int, np.ndarray] = {}
        self.n_bytes = 0

    def __getitem__(self, row: int) -> np.ndarray:
        return self.kept[row] if row in self.kept else self.whole[row]

    def part(self, rows: Sequence[int]) -> Pictures:
        """Return the pictures of some rows."""
        return _Rows(self, rows)

    def keep(self, row: int, picture: np.ndarray) -> None:
        """Keep a picture, if there is room for it."""
        if row not in self.kept and self.n_bytes + picture.nbytes <= KEPT:
            self.kept[row] = picture
            self.n_bytes += picture.nbytes


ENDED = object()
"""What a stream gives that has ended."""


class ReadAhead(_Rows):
    """Pictures that are asked for part by part, and made ahead of the next part by workers.

    What :func:`loaded` gives of the parts comes from one stream over all rows, so that a model
    which stores its results shard by shard does not wait at the start of each.

    Parameters
    ----------
    images
        In any form of the package's.
    order
        The rows in the order in which parts will ask for them. Other rows, and rows asked for again
        or with another ``prepare``, are read when they are asked for.

    Examples
    --------
    >>> ahead = ReadAhead(np.arange(12, dtype=np.uint8).reshape(4, 1, 1, 3), order=[0, 2, 3])
    >>> for rows in ([0, 2], [3], [1]):
    ...     part = ahead.part(rows)
    ...     print([int(each) for each in loaded(part, np.min, range(len(part)))])
    [0, 6]
    [9]
    [3]
    """

    def __init__(self, images: Any, order: Sequence[int]) -> None:
        super().__init__(images)
        self.coming, self.begun = list(dict.fromkeys(order)), 0
        self.places = {row: at for at, row in enumerate(self.coming)}
        self.stream: Iterator[Any] | None = None
        self.prepare: Callable | None = None
        self.waiting: dict[int, Any] = {}

    def part(self, rows: Sequence[int]) -> Pictures:
        """Return the pictures of some rows."""
        return _Rows(self, rows)

    def outcomes(self, prepare: Callable, rows: Sequence[int], **how: Any) -> Iterator[Any]:
        """Yield what comes of some rows, as :func:`_outcomes` does; ``how`` of the first call."""
        if self.stream is None:
            self.prepare, keeps = prepare, isinstance(self.whole, Decoded)
            made = functools.partial(_with_picture, prepare) if keeps else prepare
            self.stream = _outcomes(self.whole, made, self.coming, **how)
        wanted = set(rows)
        for row in rows:
            ours = prepare == self.prepare
            if ours:
                self._read_up_to(row, wanted)
            if ours and row in self.waiting:
                yield self.waiting.pop(row)
            else:
                yield from _outcomes(self.whole, prepare, [row], n_workers=0)

    def _read_up_to(self, row: int, wanted: set[int]) -> None:
        """Read the stream as far as a row, and keep what the same part wants."""
        while self.begun <= self.places.get(row, -1):
            number, outcome = self.coming[self.begun], next(self.stream, ENDED)
            if outcome is ENDED:  # by an error that was raised before
                self.begun = len(self.coming)
                return
            self.begun += 1
            if isinstance(self.whole, Decoded) and not isinstance(outcome, ImageError):
                picture, outcome = outcome
                self.whole.keep(number, picture)
            if number in wanted:
                self.waiting[number] = outcome


def _with_picture(prepare: Callable, picture: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return a picture itself and what another function prepares of it."""
    return picture, prepare(picture)


def loaded(
    pictures: Pictures,
    prepare: Callable[[np.ndarray], Any],
    rows: Sequence[int],
    n_workers: int | None = None,
    few: int = FEW,
    chunk: int = CHUNK,
) -> Iterator[Any]:
    """Yield prepared pictures in the order of ``rows``, made by worker processes ahead of time.

    Parameters
    ----------
    pictures
        As :func:`pictures` returns them.
    prepare
        Picture, uint8 (h, w, 3) -> what the model takes of it. NumPy arrays are best: tensors pass
        between processes through shared memory, of which containers have little. Where processes
        are spawned and not forked, it must be picklable: a function of a module, or an object.
    rows
        The numbers of the pictures wanted.
    n_workers
        Worker processes, no more than there are cores. None: as many as cores, up to 4; and none
        for ``few`` pictures or fewer, on a single core, or where processes are not forked (macOS,
        Windows), since there a script must be guarded by ``if __name__ == "__main__":``.
    few
        Up to so many pictures, starting workers takes longer than they save.
    chunk
        Pictures handed to a worker at a time; each worker has two such chunks under way.

    Raises
    ------
    ImageError
        If a picture cannot be opened or prepared, in a worker or not; the message names it.

    Examples
    --------
    >>> two = pictures(np.zeros((2, 4, 6, 3), np.uint8))
    >>> [each.shape for each in loaded(two, np.transpose, rows=[1, 0])]
    [(3, 6, 4), (3, 6, 4)]
    """
    how = {"n_workers": n_workers, "few": few, "chunk": chunk}
    if isinstance(pictures, _Rows) and isinstance(pictures.whole, ReadAhead):
        found = pictures.whole.outcomes(prepare, [pictures.rows[row] for row in rows], **how)
    else:
        found = _outcomes(pictures, prepare, rows, **how)
    for outcome in found:
        if isinstance(outcome, ImageError):
            raise outcome
        yield outcome


class Ahead:
    """Hands prepared pictures to batches, made by workers ahead of them in an order that is known.

    A picture that is asked for once more, as by a batch that found no memory, is prepared once
    more, unless it was among the last ones: two batches of pictures are kept.

    Parameters
    ----------
    images
        The pictures.
    prepare
        A picture, uint8 (h, w, 3) -> what the model takes of it.
    rows
        The rows in the order in which they are first asked for.

    Examples
    --------
    >>> images = pictures(np.arange(4, dtype=np.uint8)[:, None, None, None].repeat(3, axis=3))
    >>> ahead = Ahead(images, lambda picture: int(picture.max()), rows=np.array([3, 1, 0, 2]))
    >>> ahead([3, 1]), ahead([1, 0]), ahead([2, 3])
    ([3, 1], [1, 0], [2, 3])
    """

    def __init__(self, images: Pictures, prepare: Callable, rows: np.ndarray) -> None:
        self.images, self.prepare = images, prepare
        order = list(dict.fromkeys(rows.tolist()))
        self.coming = set(order)
        self.made = zip(order, loaded(images, prepare, order), strict=True)
        self.kept: dict[int, Any] = {}
        self.most = 0

    def __call__(self, rows: Sequence[int]) -> list:
        """Return the prepared pictures of some rows, each of another picture."""
        found = {row: self._one(row) for row in rows}
        self.most = max(self.most, len(rows))
        for row, one in found.items():
            self.kept.pop(row, None)
            self.kept[row] = one
        for row in list(self.kept)[: -2 * self.most]:
            del self.kept[row]
        return list(found.values())

    def _one(self, row: int) -> Any:
        while row in self.coming:
            number, prepared = next(self.made)
            self.kept[number] = prepared
            self.coming.remove(number)
        if row in self.kept:
            return self.kept[row]
        (again,) = loaded(self.images, self.prepare, [row])
        return again


class _Chunks:
    """The data set of a DataLoader: item i is the i-th chunk of rows, prepared.

    A picture that fails is returned as its error, so that its message arrives as it was written.
    """

    def __init__(
        self, pictures: Pictures, prepare: Callable, rows: Sequence[int], chunk: int
    ) -> None:
        self.pictures, self.prepare, self.rows, self.chunk = pictures, prepare, rows, chunk

    def __len__(self) -> int:
        return -(-len(self.rows) // self.chunk)

    def __getitem__(self, index: int) -> list:
        rows = self.rows[index * self.chunk : (index + 1) * self.chunk]
        part = self.pictures.part(rows)
        return [self._outcome(part, place, row) for place, row in enumerate(rows)]

    def _outcome(self, part: Pictures, place: int, row: int) -> Any:
        try:
            picture = part[place]
        except ImageError as error:
            return error
        try:
            return self.prepare(picture)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            problem = f"{self.pictures.name(row)}, shape {picture.shape}, could not be prepared"
            return ImageError(f"{problem}: {type(error).__name__}: {error}")


def _outcomes(
    pictures: Pictures,
    prepare: Callable,
    rows: Sequence[int],
    n_workers: int | None = None,
    few: int = FEW,
    chunk: int = CHUNK,
) -> Iterator[Any]:
    """Yield what comes of each row: the prepared picture, or an ImageError."""
    chunks = _Chunks(pictures, prepare, rows, chunk)
    n_workers = min(_workers(n_workers, len(rows), few), len(chunks))
    in_turn = (chunks[index] for index in range(len(chunks)))
    for chunk in _in_processes(chunks, n_workers) if n_workers else in_turn:
        yield from chunk


def _in_processes(chunks: _Chunks, n_workers: int) -> Iterator[list]:
    import torch
    from torch.utils.data import DataLoader

    with warnings.catch_warnings():
        # Python 3.12 and later warn of any fork beside threads, as in every notebook; the workers
        # use Pillow and NumPy, and PyTorch with a single thread.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        running = iter(
            DataLoader(
                chunks,
                batch_size=None,
                collate_fn=list,
                num_workers=n_workers,
                multiprocessing_context="fork" if FORKS else None,
                # Its thread takes in what workers send while the main one waits for the device.
                pin_memory=torch.cuda.is_available(),
            )
        )
    yield from running


def _workers(n_workers: int | None, n_pictures: int, few: int) -> int:
    known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    if n_workers is None:
        n_workers = 4 if FORKS and n_pictures > few and cores > 1 else 0
    return min(n_workers, cores)


def _as_seen(image: Image.Image) -> Image.Image:
    """Return an image in RGB, upright, over white."""
    if image.mode not in (*SIXTEEN_BITS, *ALPHA, *OPAQUE):
        raise _UnknownPixelsError(f"has pixels of the kind {image.mode!r}")
    if image.mode in SIXTEEN_BITS:
        image = _eight_bits(image)
    image = ImageOps.exif_transpose(image)
    if image.mode in ALPHA or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")


class _UnknownPixelsError(ValueError):
    """Pixels whose colours cannot be told."""


def _eight_bits(image: Image.Image) -> Image.Image:
    """Return 16-bit grey as 8-bit grey, which Pillow would cut off at 255."""
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 65535:
        raise _UnknownPixelsError("has 32-bit pixels, whose range is unknown")
    grey = Image.fromarray((values / 257).round().astype(np.uint8))
    grey.info = {"exif": image.info["exif"]} if "exif" in image.info else {}
    return grey


def _problem(error: Exception) -> str:
    if isinstance(error, Image.DecompressionBombWarning | Image.DecompressionBombError):
        return (
            f"is too large to be opened safely: {error} If you trust it, save it smaller, or raise "
            "PIL.Image.MAX_IMAGE_PIXELS"
        )
    if isinstance(error, PermissionError):
        return "may not be read; make it readable"
    if isinstance(error, Image.UnidentifiedImageError):
        formats = ", ".join(FORMATS)
        return f"is not an image that Pillow reads as {formats}; remove it or save it as PNG"
    if isinstance(error, _UnknownPixelsError):
        return f"{error}; save it in RGB with 8 bits a channel"
    return f"is truncated or damaged ({error}); download or copy it again"


def _check_item(row: int, item: Any) -> None:
    if isinstance(item, np.ndarray):
        if item.ndim != 3 or item.shape[2] != 3 or 0 in item.shape:
            raise ValueError(f"image {row} has the shape {item.shape}, not (height, width, 3)")
        if item.dtype != np.uint8:
            raise ValueError(f"image {row} holds {item.dtype}; convert it to uint8, 0 to 255")
    elif not (_is_path(item) or isinstance(item, Image.Image)):
        raise TypeError(
            f"image {row} has the type {type(item).__name__}; pass a path, a PIL image or a uint8 "
            "array"
        )


def _is_path(item: Any) -> bool:
    return isinstance(item, str | os.PathLike)


def _nothing(picture: np.ndarray) -> None:
    return None


def _file_hash(path: str | os.PathLike) -> str:
    path = Path(path)
    if not path.is_file() or path.stat().st_size == 0:
        open_image(path)  # raises the error that says what is wrong
    status = path.stat()
    return _hash_as_of(path.resolve(), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=200_000)
def _hash_as_of(path: Path, size: int, changed: int) -> str:
    return file_sha256(path)


def _pixels_hash(picture: np.ndarray) -> str:
    digest = hashlib.sha256(repr(picture.shape).encode())
    digest.update(np.ascontiguousarray(picture))
    return digest.hexdigest()
