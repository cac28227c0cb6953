"""What every model of texts with images must show: batches change nothing but rounding."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Asked(NamedTuple):
    """Rows to ask a model about: texts of different lengths, with a word of each.

    ``masked`` are texts with a mask and ``candidates`` the words for it, some of several pieces;
    ``captions`` a row of them for each image, or None for a model that does not match.
    """

    texts: Sequence[str]
    words: Sequence[str]
    masked: Sequence[str]
    candidates: Sequence[str]
    captions: Sequence[Sequence[str]] | None

    def answers(self, model: Any, images: Any, rows: Sequence[int]) -> list[np.ndarray]:
        """Return all that the model says of some rows, in their order."""

        def taken(all_of_them: Any) -> Any:
            many = isinstance(all_of_them, (list, tuple))
            return [all_of_them[row] for row in rows] if many else all_of_them[list(rows)]

        shown = taken(images)
        found = [
            model.embed(taken(self.texts), shown),
            model.embed(taken(self.texts), shown, "contextual", taken(self.words)),
            model.mask_log_prob(taken(self.masked), self.candidates, shown),
        ]
        return (
            found if self.captions is None else [*found, model.match(shown, taken(self.captions))]
        )


def require_same_in_batches(
    model: Any, images: Any, asked: Asked, batch_size: int, set_attribute: Callable
) -> None:
    """Compare a model's answers one row after the other with those in batches and another order."""
    rows = range(len(asked.texts))
    alone = [asked.answers(model, images, [row]) for row in rows]
    expected = [np.concatenate(parts) for parts in zip(*alone, strict=True)]
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    set_attribute(model, "batch_size", batch_size)
    for found, whole in zip(asked.answers(model, images, order), expected, strict=True):
        np.testing.assert_allclose(found, whole[order], atol=1e-5, rtol=0)
        assert np.abs(whole - whole[0]).max() > 1e-3  # rows differ, so that order shows
