"""Level and power of Experiments 1 and 2 of study 1: the p that is starred, and the paper's own.

Embeddings are normal. A word has its own, each of its pictures adds noise, and each caption of a
picture adds less; all may share a direction. Under the null target words know nothing of the
attributes, so that any of them could as well stand in X. That says nothing of the attributes'
pictures: those of A may show their category. The planted effect moves the words of X along a
direction of the attributes A.
"""

from dataclasses import dataclass

import numpy as np

from biaslib.studies.study1_grounded import SETS, EmbeddedSets, score
from tools.levels import levels

DIMENSIONS, PICTURE, CAPTION = 40, 0.7, 0.2
TESTS = {"p_value": "words as units", "p_value_paper": "the paper's own test"}


@dataclass(frozen=True)
class Design:
    """Words of X, of Y and of each attribute set; most pictures a word; captions a picture.

    *shared* is the length of the direction that all share, *category* of that which pictures of A
    show, *effect* of the move of X: in lengths of a word's own embedding.
    """

    condition: str
    words: tuple[int, int, int] = (8, 8, 8)
    pictures: int = 1
    equal: bool = True
    captions: int = 1
    shared: float = 1.0
    category: float = 0.0
    effect: float = 0.0

    @property
    def n(self) -> str:
        """How many of each."""
        least = "" if self.equal else "1 to "
        pictures = f"{least}{self.pictures} picture{'s' * (self.pictures > 1)} a word"
        told = f"{self.words[0]}+{self.words[1]} words, {pictures}"
        return told + (f", {self.captions} captions a picture" if self.captions > 1 else "")


DESIGNS = [
    Design("words are exchangeable", shared=0.0),
    Design("words share a direction"),
    Design("words share a direction of three times their length", shared=3.0),
    Design("words share a direction", pictures=3),
    Design("words share a direction", pictures=6, equal=False),
    Design("words share a direction", words=(5, 12, 8), pictures=2),
    Design("words share a direction", pictures=2, captions=3),
    Design("words share a direction, pictures of A show whom they are of", category=1.0),
    Design("X is moved to A by .4 of a word's length", pictures=2, effect=0.4),
]


def drawn(design: Design, rng: np.random.Generator) -> EmbeddedSets:
    """Return six sets of embeddings."""
    shared, of_a, shown = (_direction(rng) for _ in range(3))
    own = {
        role: rng.normal(size=(n, DIMENSIONS)) + design.shared * shared
        for role, n in zip("XYAB", (*design.words, design.words[2]), strict=True)
    }
    own["A"] += of_a * bool(design.effect)
    own["X"] += design.effect * of_a
    parts = []
    for name in SETS:
        seen = {"Ax": 1.0, "Ay": -1.0}.get(name, 0.0)
        parts.append(_pictured(name, own[name[0]] + seen * design.category * shown, design, rng))
    columns = (dict(zip(SETS, each, strict=True)) for each in zip(*parts, strict=True))
    return EmbeddedSets("test", "word", "none", *columns)


def _direction(rng: np.random.Generator) -> np.ndarray:
    found = rng.normal(size=DIMENSIONS)
    return np.sqrt(DIMENSIONS) * found / np.linalg.norm(found)


def _pictured(name: str, centre: np.ndarray, design: Design, rng) -> tuple:
    """Return the embeddings of the captions of a set, and the word and picture of each."""
    least = design.pictures if design.equal else 1
    words = np.repeat(np.arange(len(centre)), rng.integers(least, design.pictures + 1, len(centre)))
    near = centre[words] + PICTURE * rng.normal(size=(len(words), DIMENSIONS))
    pictures = np.repeat(np.arange(len(words)), design.captions)
    vectors = near[pictures] + CAPTION * rng.normal(size=(len(pictures), DIMENSIONS))
    labels = [f"{name[0]}{word}" for word in words[pictures]]
    return vectors, np.array(labels), np.array([f"{name}{each}" for each in pictures])


def rows(seed: int, runs: int) -> list[dict]:
    """Return what was observed over twice as many runs: a level is to be told within .01."""
    found = []
    for place, design in enumerate(DESIGNS):
        rng = np.random.default_rng([seed, place])
        every = [_p_values(drawn(design, rng), at) for at in range(2 * runs)]
        quantity = "power" if design.effect else "level"
        for of in every[0]:
            p_values = [each[of] for each in every]
            found += levels(of, design.condition, design.n, p_values, seed, quantity)
    return found


def _p_values(sets: EmbeddedSets, seed: int) -> dict[str, float]:
    scores = {number: score(sets, number, n_bootstrap=0, seed=seed) for number in (1, 2)}
    return {
        f"Experiment {number}, {test}": row[column]
        for number, row in scores.items()
        for column, test in TESTS.items()
    }
