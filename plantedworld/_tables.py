"""The joint distribution of the planted world: log-linear, with fixed margins, enumerable.

A cell says the gender in the picture g, the gender in the caption c, and the tone t: 2 x 2 x 5
cells, with P(c differs from g) known. The words of a slot and the cells have the joint
distribution

.. math:: \\log P(w, g, c, t) = u_w + u_{gct} + d \\,
          [\\beta_w x + \\gamma_w y + 2 \\delta_w x y]

where d is the dose, x = +-1/2 is the mean of the genders of picture and caption (each weighted as
world or word asks), y runs from -1/2 at tone 1 to +1/2 at tone 5, and the terms u are such that
every word keeps its frequency and every cell its probability at any dose (Deming and Stephan 1940).

A word without any association is independent of the cell, exactly: the terms :math:`u_{gct}` make
room among the words that have one.
"""

from dataclasses import dataclass

import numpy as np
import pandas

from plantedworld._logs import log_sum_exp
from plantedworld._words import NOTHING, Plan

GENDERS = ("woman", "man")
TONES = (1, 2, 3, 4, 5)
CELLS = [(picture, caption, tone) for picture in (0, 1) for caption in (0, 1) for tone in TONES]
"""Picture's gender, caption's gender (0 woman, 1 man) and tone of the 20 cells."""

PICTURE_GENDER, CAPTION_GENDER, TONE = (np.array(values) for values in zip(*CELLS, strict=True))
SIDE = np.array([0.5, -0.5])
"""x of a woman and of a man."""

TONE_AXIS = (TONE - 3) / 4
"""y of the cells, shape (20,)."""

IN_BOTH = 0.5
"""Share of an association that goes with the caption's gender, the rest with the picture's."""


@dataclass(frozen=True)
class Design:
    """What is planted: dose, where, and how often the caption's gender is wrong.

    ``caption_share`` is the share of the association that goes with the caption's gender: 0.5 in
    a world planted in both, where a seed draws one for each word; 1 in text only, 0 in images only.
    ``plan`` says what is planted on which word at dose 1.
    """

    dose: float
    plan: Plan = NOTHING
    caption_share: float = IN_BOTH
    wrong_gender: float = 0.1

    @property
    def log_cells(self) -> np.ndarray:
        """Log probability of the cells, shape (20,)."""
        agree = PICTURE_GENDER == CAPTION_GENDER
        return np.log(np.where(agree, 1 - self.wrong_gender, self.wrong_gender) / 2 / len(TONES))

    def gender_axis(self, share: np.ndarray) -> np.ndarray:
        """Return x of the cells, (n words, 20); *share*, that of the caption, has shape (n,)."""
        share = share[:, np.newaxis]
        caption, picture = SIDE[CAPTION_GENDER], SIDE[PICTURE_GENDER]
        return share * caption + (1 - share) * picture


def log_word_given_cell(
    design: Design,
    weights: np.ndarray,
    planted: pandas.DataFrame,
) -> np.ndarray:
    """Return log P(word | cell) of one slot, shape (n words, 20).

    ``weights`` are the words' frequencies up to a factor; ``planted`` has their log-odds at dose
    1 in the columns gender, tone and interaction, and in *share* how much of a word's association
    goes with the caption's gender in a world planted in both.
    """
    y, share = TONE_AXIS, np.full(len(planted), design.caption_share)
    if design.caption_share == IN_BOTH:
        share = planted["share"].to_numpy()
    strengths = planted[["gender", "tone", "interaction"]].to_numpy()
    log_words = np.log(weights) - np.log(weights.sum())
    log_table = np.repeat(log_words[:, np.newaxis], len(y), axis=1)
    has = (strengths != 0).any(axis=1)
    if has.any():
        together = log_sum_exp(log_words[has])
        x = design.gender_axis(share[has])
        gender, tone, both = (column[:, np.newaxis] for column in strengths[has].T)
        start = design.dose * (gender * x + tone * y + 2 * both * x * y)
        fitted = fit_margins(start, log_words[has], design.log_cells + together)
        log_table[has] = fitted - design.log_cells
    return log_table


def fit_margins(log_table: np.ndarray, log_rows: np.ndarray, log_columns: np.ndarray) -> np.ndarray:
    """Return the table with the same odds ratios and the given margins, all as logarithms.

    Iterative proportional fitting (Deming and Stephan 1940), until the rows are within 1e-12.

    Raises
    ------
    RuntimeError
        If 10,000 rounds do not bring the rows within 1e-12 of their margin.

    Examples
    --------
    >>> half = np.log([0.5, 0.5])
    >>> table = fit_margins(np.log([[2.0, 1.0], [1.0, 1.0]]), half, half)
    >>> np.exp(table).sum(axis=0).round(6).tolist()
    [0.5, 0.5]
    """
    for _ in range(10_000):
        log_table = log_table + (log_rows - log_sum_exp(log_table, axis=1))[:, np.newaxis]
        log_table = log_table + (log_columns - log_sum_exp(log_table, axis=0))
        if np.abs(log_sum_exp(log_table, axis=1) - log_rows).max() < 1e-12:
            return log_table
    raise RuntimeError("the margins did not converge; use weaker associations")
