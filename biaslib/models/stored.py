"""What the store is told of a model's rows: whose they are, and in which precision they came."""

from typing import Any

__all__ = ["store_key"]


def store_key(model: Any, output: str, **options: Any) -> dict[str, Any]:
    """Return the key under which :class:`biaslib.runtime.Store` keeps rows of a model.

    Rows that half precision made differ from those of float32 in their third digit. They have a
    key of their own, so that a run never mixes the two.

    Parameters
    ----------
    model
        With a ``name`` and a ``revision``, and a ``device`` if it computes on one.
    output
        What the rows are.
    **options
        Whatever else they depend on, as JSON can write it.

    Returns
    -------
    dict
        ``model``, ``revision``, ``output``, the options, and ``precision`` where the model's
        device computes in another one than float32 (``BIASLIB_PRECISION``).

    Raises
    ------
    ValueError
        If half precision is asked for on a device other than CUDA.

    Examples
    --------
    >>> from biaslib import models
    >>> store_key(models.load("oracle", dose=1), "caption scores", head="matching")["output"]
    'caption scores'
    """
    key = {"model": model.name, "revision": model.revision, "output": output, **options}
    device = getattr(model, "device", None)
    if device is None:
        return key
    from biaslib.models._batches import precision

    numbers = str(precision(str(device))).removeprefix("torch.")
    return key if numbers == "float32" else key | {"precision": numbers}
