"""Pictures as every model takes them: files, images, arrays, or a collection of another kind."""

import bisect
import collections
import contextlib
import functools
import hashlib
import itertools
import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas
from PIL import Image, ImageOps

from biaslib.errors import InputError
from biaslib.runtime import file_sha256, progress

if TYPE_CHECKING:
    from biaslib.pictures.regions import RegionFeatures, SharedRegions

__all__ = [
    "ImageError",
    "Pictures",
    "WithRegions",
    "Workers",
    "check_images",
    "chunks",
    "decoded",
    "open_image",
    "pictures",
    "prefetched",
    "reader_id",
    "with_shared_regions",
]

CHUNK = 16
"""Pictures that are drawn, or handed to a worker, at a time."""

FEW = 16
"""Up to so many batches of pictures, starting workers takes longer than they save."""

MOST_WORKERS = 16
"""Worker processes beyond which a card has long waited for something else."""

FOR_LOCKS = 1 << 20
"""Bytes of shared memory that the locks of all workers have room in."""

FORKS = sys.platform == "linux"
"""Whether workers are forked, which starts them fast and asks nothing of the calling script."""

SIXTEEN_BITS = ("I", "I;16", "I;16L", "I;16B", "I;16N")
ALPHA = ("LA", "PA", "RGBA")
OPAQUE = ("1", "L", "P", "RGB", "RGBX", "CMYK", "YCbCr", "HSV")
"""Pillow's names of the kinds of pixels that are understood, with :data:`SIXTEEN_BITS`."""

TO_EIGHT_BITS = {"L;2": 85, "L;4": 17, "RGB;16B": 1 / 256}
"""What Pillow multiplies PNG's numbers by as they are stored, but for the transparent colour."""

BITS, PHOTOMETRIC, SAMPLE_FORMAT, WHITE_IS_ZERO = 258, 262, 339, 0
"""Tags of TIFF, and a value of the second."""

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF")
"""What pictures come in, whatever a file is called; Pillow decodes each of them by itself.

Left to choose, it takes a ``.jpg`` for what its first bytes say, and starts Ghostscript on EPS.
"""


class ImageError(InputError):
    """An image that cannot be used; the message names it and says what to do."""


def open_image(path: str | os.PathLike) -> Image.Image:
    """Open an image file as a person sees it: upright, in RGB, the first of its frames or pages.

    Transparent parts are white. Deep grey is scaled to eight bits by the depth that the file
    states: 12 bits in a file of 16 look nearly black. Colours are converted without regard to a
    colour profile or a gamma, as the models' own processors do.

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
        of another kind than grey, palette, RGB, CMYK, YCbCr and HSV, or signed, or of a range
        that nothing tells (32 bits), or more pixels than Pillow opens; the message names it.

    Examples
    --------
    >>> open_image("missing.jpg")
    Traceback (most recent call last):
    biaslib.pictures.images.ImageError: missing.jpg is not there; check the path
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
    with _naming(str(path), path=path), path.open("rb") as stream:
        return decoded(stream, str(path), path=path)


def decoded(stream: IO[bytes], name: str, **where: Any) -> Image.Image:
    """Return the image of a file's bytes as :func:`open_image` does; every file comes this way.

    Raises
    ------
    ImageError
        With the name, and the fields ``where``.
    """
    Image.init()
    formats = [each for each in FORMATS if each in Image.OPEN]
    with _naming(name, **where), Image.open(stream, formats=formats) as image:
        return _as_seen(image)


@contextlib.contextmanager
def _naming(name: str, **where: Any) -> Iterator[None]:
    """Turn whatever goes wrong with an image into an ImageError with its name."""
    try:
        yield
    except (ImageError, MemoryError):
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
    opened = prefetched(ImageList(paths), lambda _: None, chunks(rows), collate=None)
    outcomes = itertools.chain.from_iterable(opened)
    problems = [
        {"row": row, "path": str(paths[row]), "problem": str(outcome)}
        for row, outcome in enumerate(progress(outcomes, "images", len(paths)))
        if isinstance(outcome, ImageError)
    ]
    return pandas.DataFrame(problems, columns=["row", "path", "problem"])


class Pictures(ABC):
    """A lazy sequence of pictures: ``len(pictures)``, and ``pictures[i]`` as uint8 (h, w, 3).

    Made by :func:`pictures`.
    """

    source = ""
    """What made of the pictures what a model reads, if not the model itself, for a store."""

    has_regions = False
    """Whether the pictures know their regions, and need no detector."""

    prepared_by: "tuple[Workers, Sequence[int]] | None" = None
    """The workers of a run of which these pictures are a part, and which of the run's they are."""

    @functools.cached_property
    def shared_regions(self) -> dict[str, "RegionFeatures"]:
        """Regions of all pictures, by what found them: see :func:`with_shared_regions`."""
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
        parts = map(self.part, chunks(range(len(self))))
        return [_pixels_hash(picture) for part in parts for picture in part]


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
    return ImageList(items)


class ImageList(Pictures):
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
        return ImageList([self.items[row] for row in rows], [self.numbers[row] for row in rows])

    def name(self, row: int) -> str:
        item = self.items[row]
        return str(item) if _is_path(item) else f"image {self.numbers[row]} of the list"

    @functools.cached_property
    def ids(self) -> list[str]:
        return [
            _file_hash(item) if _is_path(item) else _pixels_hash(self[row])
            for row, item in enumerate(self.items)
        ]


class WithRegions(Pictures):
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
    ) -> None:
        self.whole, self.read, self.source = pictures(images), read, source

    def __len__(self) -> int:
        return len(self.whole)

    def __getitem__(self, row: int) -> np.ndarray:
        return self.whole[row]

    def part(self, rows: Sequence[int]) -> "WithRegions":
        """Return the pictures of some rows."""
        rows = list(rows)
        return WithRegions(
            self.whole.part(rows), lambda which: self.read([rows[at] for at in which]), self.source
        )

    def name(self, row: int) -> str:
        """Return what an error calls a picture."""
        return self.whole.name(row)

    @property
    def ids(self) -> list[str]:
        """What each picture is called in a store."""
        return self.whole.ids

    def regions(self) -> "RegionFeatures | SharedRegions":
        """Return the regions of all pictures."""
        return self.read(range(len(self)))


def with_shared_regions(model: Any, images: Any) -> Pictures:
    """Return pictures whose regions, if a model reads those, are found once for all their parts.

    They are kept with the pictures: another model that reads the same ones finds them there.

    Parameters
    ----------
    model
        Any; one that reads regions has ``regions_of``.
    images
        In any form of the package's.
    """
    whole = pictures(images)
    if not hasattr(model, "regions_of") or isinstance(whole, WithRegions):
        return whole
    source = reader_id(model, whole)

    def read(rows: Sequence[int]) -> "SharedRegions":
        from biaslib.pictures.regions import SharedRegions

        if source not in whole.shared_regions:
            whole.shared_regions[source] = model.regions_of(whole)
        return SharedRegions(whole.shared_regions[source], np.asarray(rows))

    return WithRegions(whole, read, source)


def reader_id(model: Any, images: Pictures) -> str:
    """Return what stands between pictures and a model: what drew them, or the model's detector."""
    if images.has_regions or not hasattr(model, "regions_of"):
        return images.source
    return f"{images.source}regions of {model.detector.revision}"


def prefetched(
    pictures: Pictures,
    prepare: Callable[[np.ndarray], Any],
    batches: Sequence[Sequence[int]],
    collate: Callable[[list], Any] | None = list,
) -> Iterator[Any]:
    """Yield batches of prepared pictures, made by worker processes ahead of time.

    There are one less than cores, up to 16; none for :data:`FEW` batches or fewer, where /dev/shm
    has no room for their locks, or where processes are not forked (macOS, Windows), since there a
    script must be guarded by ``if __name__ == "__main__":``.

    Parameters
    ----------
    pictures
        As :func:`pictures` returns them.
    prepare
        Picture, uint8 (h, w, 3) -> what the model takes of it.
    batches
        The numbers of the pictures of each batch, at best :func:`chunks`; each worker has two
        batches under way.
    collate
        What is made of the n prepared pictures of a batch. ``None`` leaves them as they are, with
        an :class:`ImageError` in place of each that cannot be opened or prepared.

    Raises
    ------
    ImageError
        If a picture cannot be opened or prepared, in a worker or not; the message names it.

    Examples
    --------
    >>> three = pictures(np.zeros((3, 4, 6, 3), np.uint8))
    >>> [batch.shape for batch in prefetched(three, np.transpose, [[2, 0], [1]], np.stack)]
    [(2, 3, 6, 4), (1, 3, 6, 4)]
    """
    workers, rows = pictures.prepared_by or (Workers(pictures), range(len(pictures)))
    batches = [[rows[row] for row in batch] for batch in batches]
    for batch in workers.prepared(_Preparing(workers.whole, prepare, collate), batches):
        if isinstance(batch, ImageError):
            raise batch
        yield batch


class Workers:
    """Processes that prepare pictures for all parts of a run, and are started once.

    Calculated, and measured on no card: an H100 at 400 TFLOP/s takes 0.84 ms for a picture of CLIP
    ViT-H/14 (334.6 GFLOP), and 15 workers, at 0.88 ms for one of 224 pixels, have a batch of 1,024
    ready after 0.06 s. Of the 3.4 s of a part, 4,096 pictures, the card waits so long, or 2%; and
    only at the run's first part where batches are in the order of ``wanted``. A picture of 480 x
    640 pixels takes a worker 6.5 ms: there the card waits, whatever is done here, for networks of
    less than 173 GFLOP a picture; the detector has 2,023.

    Parameters
    ----------
    whole
        All pictures of the run.
    wanted
        Returns which of them parts will ask for, in order: workers go on to those of the next.
    """

    def __init__(self, whole: Pictures, wanted: Callable[[], list[int]] = list) -> None:
        self.whole, self.wanted, self._free = whole, wanted, None

    @functools.cached_property
    def _to_come(self) -> list[int]:
        return self.wanted()

    def part(self, rows: Sequence[int]) -> Pictures:
        """Return some of the pictures, which these workers prepare when a model asks for them."""
        self._to_come = self._to_come[bisect.bisect(self._to_come, rows[-1]) :]
        part = self.whole.part(rows)
        part.prepared_by = self, rows
        return part

    def close(self) -> None:
        """End the processes."""
        self._free = None

    def prepared(self, work: "_Preparing", batches: list[Sequence[int]]) -> Iterator[Any]:
        """Yield what is made of each batch, by workers that are free or new; of few, by none."""
        # What is not read to its end, or read beside another, does not give its workers back.
        (known, tasks, handed, results), self._free = self._free or (None,) * 4, None
        if known != work:
            n_workers = _workers(len(batches))
            if not n_workers:
                yield from map(work.__getitem__, batches)
                return
            tasks, handed, results = collections.deque(), collections.deque(), None
        # What was handed out beyond the last part is right if this one begins, or goes on, so.
        guessed, n_wrong = [rows for rows in handed if rows], 0
        if guessed[: len(batches)] != batches[: len(guessed)]:
            guessed, n_wrong, self._to_come = [], len(handed), []
        tasks.clear()
        tasks.extend([*batches, *chunks(self._to_come, len(batches[0]))][len(guessed) :])
        results = _by_workers(work, tasks, handed, n_workers) if results is None else results
        for _ in range(n_wrong):
            next(results)
            handed.popleft()
        left = len(batches)
        while left:
            batch = next(results)
            if handed.popleft():
                left -= 1
                self._free = None if left else (work, tasks, handed, results)
                yield batch


def _by_workers(
    work: "_Preparing", tasks: collections.deque, handed: collections.deque, n_workers: int
) -> Iterator[Any]:
    """Return the results of the tasks that are handed out, one for each result that is read."""
    from torch.utils.data import DataLoader

    def hand() -> Sequence[int]:
        handed.append(tasks.popleft() if tasks else [])
        return handed[-1]

    options = {"num_workers": n_workers, "multiprocessing_context": "fork"}
    options |= {"sampler": iter(hand, None), "collate_fn": lambda batch: batch}
    with warnings.catch_warnings():
        # Python 3.12 and later warn of any fork beside threads, as in every notebook; the workers
        # use Pillow and NumPy, and PyTorch with a single thread.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        return iter(DataLoader(work, batch_size=None, **options))


@dataclass(frozen=True)
class _Preparing:
    """The data set of a DataLoader: its items are batches, prepared and collated.

    A picture that fails is returned as its error, so that its message arrives as it was written.
    """

    pictures: Pictures
    prepare: Callable
    collate: Callable | None

    def __getitem__(self, rows: list[int]) -> Any:
        if not rows:
            return None
        part = self.pictures.part(rows)
        outcomes = [self._outcome(part, place, row) for place, row in enumerate(rows)]
        errors = [outcome for outcome in outcomes if isinstance(outcome, ImageError)]
        if self.collate is None:
            return outcomes
        return errors[0] if errors else self.collate(outcomes)

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


def _workers(n_batches: int) -> int:
    if not FORKS or n_batches <= FEW or shared_room() <= FOR_LOCKS:
        return 0
    return min(len(os.sched_getaffinity(0)) - 1, MOST_WORKERS)


def shared_room() -> int:
    """Return how many bytes shared memory takes: none where it may not be written."""
    try:
        free = os.statvfs("/dev/shm")
    except OSError:
        return 0
    return free.f_bavail * free.f_frsize if os.access("/dev/shm", os.W_OK) else 0


def chunks(rows: Sequence[int], size: int = CHUNK) -> list[Sequence[int]]:
    """Return rows a few at a time: as many as are drawn, or handed to a worker, together."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _as_seen(image: Image.Image) -> Image.Image:
    """Return an image in RGB, upright, over white."""
    if image.mode not in (*SIXTEEN_BITS, *ALPHA, *OPAQUE):
        raise _UnknownPixelsError(f"has pixels of the kind {image.mode!r}")
    stored = image.tile[0][3] if image.format == "PNG" and image.tile else ""
    if image.format == "TIFF":
        most, negative = _tiff_grey(image)
    else:
        most, negative, image = 65535, False, ImageOps.exif_transpose(image)
    if stored in TO_EIGHT_BITS and "transparency" in image.info:
        clear = np.multiply(image.info["transparency"], TO_EIGHT_BITS[stored]).astype(int)
        image.info["transparency"] = tuple(clear.tolist()) if clear.ndim else int(clear)
    if image.mode in SIXTEEN_BITS:
        image = _eight_bits(image, most, negative)
    if image.mode in ALPHA or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")


class _UnknownPixelsError(ValueError):
    """Pixels whose colours cannot be told."""


def _tiff_grey(image: Any) -> tuple[int, bool]:
    """Load a TIFF, which turns it, and return its greatest number and whether 0 stays white.

    Pillow inverts such grey up to 8 bits by itself.
    """
    bits, kinds = image.tag_v2.get(BITS, (1,)), image.tag_v2.get(SAMPLE_FORMAT, (1,))
    if max(bits) > 16 or set(kinds) != {1}:
        raise _UnknownPixelsError("has signed or 32-bit pixels, whose range is unknown")
    # Pillow maps an uncompressed file by its name, with the size of the picture that is turned.
    name, image.filename = image.filename, ""
    image.load()
    image.filename = name
    return 2 ** max(bits) - 1, image.tag_v2.get(PHOTOMETRIC) == WHITE_IS_ZERO


def _eight_bits(image: Image.Image, most: int, negative: bool) -> Image.Image:
    """Return deep grey as 8-bit grey, which Pillow would cut off at 255."""
    values = np.asarray(image)
    if values.min() < 0 or values.max() > most:
        raise _UnknownPixelsError("has 32-bit pixels, whose range is unknown")
    grey = Image.fromarray((values * (255 / most)).round().astype(np.uint8))
    grey = ImageOps.invert(grey) if negative else grey
    if "transparency" in image.info:
        clear = values == image.info["transparency"]
        grey.putalpha(Image.fromarray(np.where(clear, 0, 255).astype(np.uint8)))
    return grey


def _problem(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "may not be read; make it readable"
    if isinstance(error, Image.UnidentifiedImageError):
        formats = ", ".join(FORMATS)
        return f"is not an image that Pillow reads as {formats}; remove it or save it as PNG"
    if isinstance(error, _UnknownPixelsError):
        return f"{error}; save it in RGB with 8 bits a channel"
    return f"cannot be decoded ({error}); download or copy it again, or save it smaller"


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


def _file_hash(path: str | os.PathLike) -> str:
    path = Path(path)
    if not path.is_file() or path.stat().st_size == 0:
        open_image(path)  # raises the error that says what is wrong
    status = path.stat()
    return _hash_as_of(path.resolve(), status.st_size, status.st_mtime_ns)


@functools.cache
def _hash_as_of(path: Path, size: int, changed: int) -> str:
    return file_sha256(path)


def _pixels_hash(picture: np.ndarray) -> str:
    digest = hashlib.sha256(repr(picture.shape).encode())
    digest.update(np.ascontiguousarray(picture))
    return digest.hexdigest()
