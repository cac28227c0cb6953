"""Intervals of study 2: association and bias scores of an entity over its images.

Log ratios of captions, and log probabilities of images, are minus the exponential of normal
numbers: skewed, with a long way down. In a second condition log probabilities are normal and differ
by more from image to image, so that a few images carry their mean.
"""

import numpy as np
import pandas
from scipy import integrate, stats

from biaslib.studies import study2_masked as study
from tools.levels import coverage

CENTRE, SPREAD, ABOVE, BASE = 0.3, 0.5, -4.0, -5.0
RESAMPLES, AT_ONCE = 400, 250
FAR_APART, FAR_DOWN = 1.2, -20.0
"""Standard deviation and mean of the log probabilities of the second condition."""


def rows(seed: int, runs: int) -> list[dict]:
    found = []
    for n in (3, 6, 12, 25):
        rng = np.random.default_rng([seed, n])
        sizes = [min(AT_ONCE, runs - start) for start in range(0, runs, AT_ONCE)]
        draws = [_answers(n, size, rng) for size in sizes]
        tables = [
            study.scores(*each, n_resamples=RESAMPLES, seed=at) for at, each in enumerate(draws)
        ]
        scores = pandas.concat(tables).set_index(["level", "statistic"])
        for (level, statistic), truth in TRUTHS.items():
            part = scores.loc[(level, statistic)]
            name, images = f"study 2, {statistic} of {level}", f"{n} images a gender"
            settings = (name, "skewed log probabilities", images)
            found.append(coverage(*settings, part["low"], part["high"], truth, seed))
    for n in (6, 25, 100):
        found += _far_apart(n, runs, np.random.default_rng([seed, n, 1]), seed)
    return found


def _far_apart(n: int, runs: int, rng, seed: int) -> list[dict]:
    """Return the coverage of the scores of S_V where images differ by much."""
    sizes = [min(AT_ONCE, runs - start) for start in range(0, runs, AT_ONCE)]
    parts = []
    for at, size in enumerate(sizes):
        neutral = FAR_APART * rng.normal(size=(2, size, n)) + FAR_DOWN
        asked = _asked(neutral, _skewed(rng, 2, 2, size, n))
        parts.append(study.scores(*asked, n_resamples=RESAMPLES, seed=at))
    scores = pandas.concat(parts).set_index(["level", "statistic"]).loc["S_V"]
    found = []
    for statistic, truth in (("S(f)", FAR_APART**2 / 2 + FAR_DOWN - BASE), ("B", 0.0)):
        ends = (scores.loc[statistic, each] for each in ("low", "high"))
        of = (f"study 2, {statistic} of S_V", f"log probabilities with SD {FAR_APART}")
        found.append(coverage(*of, f"{n} images a gender", *ends, truth, seed))
    return found


def _skewed(rng, *shape):
    return -np.exp(rng.normal(CENTRE, SPREAD, shape))


def _mean_of(transform) -> float:
    normal = stats.norm(CENTRE, SPREAD)
    return integrate.quad(lambda z: transform(-np.exp(z)) * normal.pdf(z), -4.0, 5.0)[0]


TRUTHS = {
    ("S_L", "S(f)"): _mean_of(float),
    ("S_L", "B"): 0.0,
    ("S_V", "S(f)"): np.log(_mean_of(np.exp)) + ABOVE - BASE,
    ("S_V", "B"): 0.0,
}


def _answers(n: int, entities: int, rng):
    """Return what :func:`study.scores` takes for entities of n images a gender."""
    neutral = _skewed(rng, 2, entities, n) + ABOVE
    ratios = _skewed(rng, 2, 2, entities, n)  # agent, gender of the image
    return _asked(neutral, ratios)


def _asked(neutral, ratios):
    """Return tables of log probabilities, of images (gender, entity, image), and the entities."""
    _, entities, n = neutral.shape
    names = [f"entity {at}" for at in range(entities)]
    places = pandas.MultiIndex.from_product(
        [study.GENDERS, names, range(n)], names=["gender", "entity", "image"]
    )
    agents = {"person": neutral, **dict(zip(study.GENDERS, neutral + ratios, strict=True))}
    shown = [
        pandas.DataFrame({"log_p": log_p.ravel()}, places).reset_index().assign(agent=agent)
        for agent, log_p in agents.items()
    ]
    alone = [
        pandas.DataFrame(
            {"entity": names, "gender": "", "image": "", "log_p": BASE, "agent": agent}
        )
        for agent in agents
    ]
    before = pandas.concat(alone, ignore_index=True)
    asked = pandas.concat([*shown, before], ignore_index=True).astype({"image": str})
    both = [table.assign(candidate=table["entity"]) for table in (asked, before)]
    entities_ = pandas.DataFrame({"entity": names, "set": "all", "stereotype": ""})
    return *both, entities_
