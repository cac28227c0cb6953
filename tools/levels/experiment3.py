"""Level, power and coverage of Experiment 3 of study 1 by simulation.

Embeddings are normal, with a direction that all share (the mean cosine). An attribute word has its
own embedding, each of its pictures adds noise, and each caption of a picture adds less. Under the
null the category of a picture says nothing, or shifts all words alike (``a category seen``). The
planted effect moves the cosines of the attributes A with the targets whose category they are seen
with by half of the standard deviation over the pictures of a set. For the coverage of intervals
pictures of A show their category more than those of B.
"""

from dataclasses import dataclass, replace

import numpy as np

from biaslib.inference import exchange_test, proportion_interval
from biaslib.metrics.grounded import GroundedResult, grounded
from biaslib.studies.study1_grounded import EmbeddedSets, score

DIMENSIONS = 64
EFFECT = 0.5
ROLES = ("X", "Y", "Ax", "Ay", "Bx", "By")


@dataclass(frozen=True)
class Design:
    """How many targets a set, attribute words a set, pictures a word and category, captions."""

    targets: int
    words: int
    pictures: int = 1
    captions: int = 1
    mean_cosine: float = 0.0
    category: float = 0.0
    effect: float = 0.0
    shift: float = 0.0

    @property
    def condition(self) -> str:
        """What is true, in words."""
        parts = ["planted effect" if self.effect or self.shift else "null"]
        parts += [f"mean cosine {self.mean_cosine:g}"]
        parts += ["a category seen"] if self.category else []
        parts += [f"A shows it by {self.shift:g} more"] if self.shift else []
        parts += [f"{self.captions} captions a picture"] if self.captions > 1 else []
        return ", ".join(parts)

    @property
    def n(self) -> str:
        """How many targets and pictures."""
        pictures = self.words * self.pictures
        return f"{self.targets}+{self.targets} targets, {pictures} pictures of {self.words} words"


NULLS = [
    *(Design(n, n, mean_cosine=c) for n in (8, 20) for c in (0.0, 0.3, 0.7)),
    *(Design(n, n, category=2.0, mean_cosine=0.3) for n in (8, 20)),
    Design(8, 8, pictures=2, captions=3, mean_cosine=0.3),
    Design(20, 10, pictures=2, captions=3, mean_cosine=0.7),
]
PLANTED = [
    *(Design(8, 8, pictures=k, mean_cosine=0.3, effect=EFFECT) for k in (1, 2)),
    *(Design(20, 20, pictures=k, mean_cosine=0.3, effect=EFFECT) for k in (1, 3)),
    Design(20, 20, pictures=3, mean_cosine=0.3, effect=EFFECT, category=2.0),
]
COVERED = [
    *(Design(n, n, mean_cosine=c) for n in (8, 20) for c in (0.0, 0.7)),
    Design(8, 8, mean_cosine=0.3, category=2.0),
    *(Design(n, n, mean_cosine=0.3, category=2.0, shift=b) for n in (8, 20) for b in (1.0, 3.0)),
]
MANY = 1_000
"""Draws from which a true effect size is taken."""


def drawn(design: Design, rng: np.random.Generator) -> EmbeddedSets:
    """Return six sets of embeddings, without the planted effect."""
    share = design.mean_cosine / (1 - design.mean_cosine)
    shared, seen = (_direction(rng) for _ in range(2))
    parts: dict[str, tuple] = {}
    for role in "XYAB":
        n = design.targets if role in "XY" else design.words
        own = rng.normal(size=(n, DIMENSIONS)) + np.sqrt(share) * shared
        for name in (each for each in ROLES if each[0] == role):
            side = 1.0 if "x" in name.lower() else -1.0
            size = design.category + design.shift * (role == "A")
            centre = own + side * size * seen / np.sqrt(DIMENSIONS)
            parts[name] = _pictured(name, centre, design, rng)
    columns = (dict(zip(parts, each, strict=True)) for each in zip(*parts.values(), strict=True))
    return EmbeddedSets("test", "word", "none", *columns)


def _direction(rng: np.random.Generator) -> np.ndarray:
    found = rng.normal(size=DIMENSIONS)
    return np.sqrt(DIMENSIONS) * found / np.linalg.norm(found)


def _pictured(name: str, centre: np.ndarray, design: Design, rng) -> tuple:
    k, m = (1, 1) if name in "XY" else (design.pictures, design.captions)
    word = np.repeat(np.arange(len(centre)), k * m)
    picture = np.repeat(np.arange(len(centre) * k), m)
    noise = 0.5 * rng.normal(size=(len(centre) * k, DIMENSIONS))
    vectors = centre[word] + noise[picture]
    if m > 1:
        vectors += 0.2 * rng.normal(size=vectors.shape)
    return (
        vectors,
        np.array([f"{name[0]}{each}" for each in word]),
        np.array([f"{name}{each}" for each in picture]),
    )


def result_of(sets: EmbeddedSets, effect: float) -> GroundedResult:
    """Return Experiment 3, with the effect added to the cosines of the attributes A."""
    result = grounded(*(sets.embeddings[name] for name in ROLES), experiment=3)
    moved = {name: each.copy() for name, each in result.attributes.items()}
    for at, name in enumerate(("Ax", "Ay")):
        moved[name][:, at] += effect * moved[name][:, at].std(ddof=1)
    return replace(result, attributes=moved)


def p_values(design: Design, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Return the p-value of each of many draws: (runs,)."""
    found = []
    for _ in range(runs):
        sets = drawn(design, rng)
        test = exchange_test(
            result_of(sets, design.effect), sets.words, sets.images, n_resamples=2_000, rng=rng
        )
        found.append(test.p_value)
    return np.array(found)


def true_size(design: Design, rng: np.random.Generator) -> float:
    """Return half the sum of the absolute mean shifts, in standard deviations, of many draws."""
    if not design.shift:
        return 0.0
    shifts = []
    for _ in range(MANY):
        found = drawn(design, rng).grounded(3)
        both = found.x_scores - found.x_other, found.y_scores - found.y_other
        every = [found.x_scores, found.y_scores, found.x_other, found.y_other]
        shifts.append([each.mean() / np.concatenate(every).std(ddof=1) for each in both])
    return float(0.5 * np.abs(np.mean(shifts, axis=0)).sum())


def covered(design: Design, true: float, runs: int, rng: np.random.Generator) -> int:
    """Return how often the interval of the effect size holds the true one."""
    settings = {"n_bootstrap": 300, "p_values": False}
    rows = [
        score(drawn(design, rng), 3, seed=int(rng.integers(2**31)), **settings) for _ in range(runs)
    ]
    return sum(row["low"] <= true <= row["high"] for row in rows)


def rows(seed: int, runs: int) -> list[dict]:
    """Return what was observed: a row a condition, size and nominal level."""
    rng, found = np.random.default_rng(seed), []

    def add(design: Design, quantity: str, nominal: float, count: int) -> None:
        interval = proportion_interval(count, runs)
        of = "score" if quantity == "coverage" else "exchange_test"
        row = {"of": of, "condition": design.condition, "n": design.n}
        row |= {"quantity": quantity, "nominal": nominal, "observed": round(count / runs, 4)}
        row |= {"low": round(interval.low, 4), "high": round(interval.high, 4)}
        found.append(row | {"runs": runs, "seed": seed})

    for design in NULLS + PLANTED:
        p = p_values(design, runs, rng)
        for nominal in (0.05, 0.01):
            quantity = "power" if design.effect else "level"
            add(design, quantity, nominal, int((p <= nominal).sum()))
    for design in COVERED:
        add(design, "coverage", 0.95, covered(design, true_size(design, rng), runs, rng))
    return found
