"""Outputs of models, cached in the store: what was computed once is not computed again."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from biaslib.pictures.images import Pictures, Workers, reader_id
from biaslib.runtime import Store, note_outputs

__all__ = ["cached_outputs", "store_key"]

ON_CUDA = 4096
"""Pictures that a card is given at a time, so that it seldom waits for the first of them."""


def store_key(model: Any, output: str, **options: Any) -> dict[str, Any]:
    """Return the key under which :class:`biaslib.runtime.Store` keeps rows of a model.

    Rows that half precision or TF32 made differ from those of float32 in their third digit. They
    have a key of their own, so that a run never mixes the two.

    Parameters
    ----------
    model
        With a ``name`` and a ``revision``; a ``device`` if it computes on one; and ``code``, a
        hash, if it answers by code and not by weights.
    output
        What the rows are.
    **options
        Whatever else they depend on, as JSON can write it.

    Returns
    -------
    dict
        ``model``, ``revision``, ``output``, the options, and ``precision`` where the model's
        device computes in another one than float32 (``BIASLIB_PRECISION``), or with fewer of its
        digits (TF32).

    Raises
    ------
    ValueError
        If half precision is asked for on a device other than CUDA.

    Examples
    --------
    >>> from biaslib import models
    >>> store_key(models.load("all-MiniLM-L6-v2"), "embeddings", level="word")["output"]
    'embeddings'
    """
    key = {"model": model.name, "revision": model.revision, "output": output, **options}
    key |= {"code": model.code} if hasattr(model, "code") else {}
    if getattr(model, "device", None) is None:
        return key
    from biaslib.runtime.batches import precision_of

    numbers = precision_of(model)
    return key if numbers == "float32" else key | {"precision": numbers}


def cached_outputs(
    model: Any,
    output: str,
    ask: Callable[[list[int], Pictures | None], np.ndarray],
    *,
    texts: Sequence[str] | None = None,
    images: Pictures | None = None,
    store: Store | None = None,
    shard_size: int = 256,
    **options: Any,
) -> np.ndarray:
    """Return a model's outputs, one row an item, and ask for those that are not cached yet.

    An item is a text, a picture, or one with the other. Its row is kept under the model, the
    output, the options and what made the pictures what the model reads, by the text itself and by
    the picture's content. A model whose detector finds the regions has the detector's revision in
    the key.

    Parameters
    ----------
    model
        As of :func:`store_key`.
    output
        What the rows are.
    ask
        Takes the places of m items and their pictures (``None`` without), and returns their rows,
        (m, ...).
    texts
        n texts, or whatever else tells the items apart.
    images
        n pictures.
    store
        ``None`` takes the usual one.
    shard_size
        Items that ``ask`` is given at a time, and of which a kill may lose those of two calls; on a
        CUDA device 4,096 or more, if they are pictures.
    **options
        Whatever else the rows depend on, as JSON can write it.

    Returns
    -------
    numpy.ndarray
        (n, ...).

    Examples
    --------
    >>> import tempfile
    >>> from biaslib import models
    >>> model, words = models.load("all-MiniLM-L6-v2"), ["apron", "suit"]
    >>> ask = lambda which, images: model.embed([words[at] for at in which], level="word")
    >>> cached_outputs(model, "words", ask, texts=words, store=Store(tempfile.mkdtemp())).shape
    (2, 384)
    """
    store = store or Store()
    made = {} if images is None else {"images": reader_id(model, images)}
    key = store_key(model, output, **made, **options)
    note_outputs(model.name, key.get("precision", "float32"))
    if images is None:
        return store.rows(key, list(texts), lambda which: ask(which, None), shard_size)
    ids = images.ids
    if texts is not None:
        ids = [f"{text}\x1f{image}" for text, image in zip(texts, ids, strict=True)]
    if not images.has_regions and str(getattr(model, "device", "")).startswith("cuda"):
        shard_size = max(shard_size, ON_CUDA)
    with contextlib.closing(Workers(images, lambda: store.missing(key, ids))) as workers:
        return store.rows(key, ids, lambda which: ask(which, workers.part(which)), shard_size)
