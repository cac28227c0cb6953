"""Tests that relabel, exchange or compare means: how often they reject what is true."""

import numpy as np
from scipy import stats

from biaslib import inference
from biaslib.audit.nulls import balanced_preference, contrast, portrait_contrast, standardised
from biaslib.metrics import caption_association
from biaslib.studies.study3_clip_audit import welch_p_values
from tools.levels import levels


def rows(seed: int, runs: int) -> list[dict]:
    found = []
    for place, (of, condition, n, quantity, draw) in enumerate(CASES):
        rng = np.random.default_rng([seed, place])
        p_values = np.concatenate([np.atleast_1d(p) for p in _drawn(draw, rng, runs)])[:runs]
        found += levels(of, condition, n, p_values, seed, quantity)
    return found


def _drawn(draw, rng, runs: int):
    """Yield p-values until there are enough; some draws give many at once."""
    n = 0
    while n < runs:
        p_values = draw(rng, runs)
        n += np.size(p_values)
        yield p_values


def _permuted(first, second, **settings):
    def draw(rng, runs):
        return inference.permutation_test(first(rng), second(rng), **settings, rng=rng).p_value

    return draw


def _normal(n, spread=1.0, mean=0.0):
    return lambda rng: rng.normal(mean, spread, n)


def _log_normal(n):
    return lambda rng: rng.lognormal(size=n)


def _side(rng):
    """Return the means of eight clusters of one to eight scores."""
    sizes = rng.integers(1, 9, 8)
    scores = np.repeat(rng.normal(size=8), sizes) + 0.3 * rng.normal(size=sizes.sum())
    return np.bincount(np.repeat(np.arange(8), sizes), scores) / sizes


def _clustered(rng, runs):
    return inference.permutation_test(_side(rng), _side(rng)).p_value


def _flipped(draw):
    return lambda rng, runs: inference.sign_flip_test(draw(rng), rng).p_value


def _random_attributes(rng, runs):
    targets = rng.normal(size=(16, 20))
    targets[:8] += 1.2 * rng.normal(size=20)
    near = _unit(targets) @ _unit(rng.normal(size=(60, 20))).T
    null = inference.random_attribute_null(near[:8], near[8:], 8, 8, 499, rng=rng)
    drawn = rng.choice(60, 16, replace=False)
    scores = near[:, drawn[:8]].mean(1) - near[:, drawn[8:]].mean(1)
    effect = (scores[:8].mean() - scores[8:].mean()) / scores.std(ddof=1)
    return null.p_value(effect)


def _unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _welch(n_in, n_out, spread):
    def draw(rng, runs):
        scores = rng.normal(size=(runs, n_in + n_out))
        scores[:, :n_in] *= spread
        return welch_p_values(scores, np.arange(n_in + n_out)[:, None] < n_in)[:, 0]

    return draw


def _hypergeometric(rng, runs):
    members = (np.arange(200) < 60)[:, None]
    top = caption_association.top_k(rng.normal(size=(runs, 200)), 20)
    composition = caption_association.top_k_composition(top, members)
    return caption_association.representation(composition).p_value[:, 0]


def _preference(rng, runs):
    """Return p where the pictures of one kind are few, and looking is strong."""
    kind = rng.random(60) < 0.2
    if not 0 < kind.sum() < 60:
        return 1.0
    triplets = np.arange(20).repeat(3)
    margins = rng.standard_t(4, 60) + np.where(kind, 2, -2) + rng.normal(size=20)[triplets]
    return balanced_preference(margins, kind, triplets, 0)["p_value"]


def _contrast(rng, runs):
    return contrast(rng.normal(size=10), rng.normal(size=15), 0)["p_value"]


def _portraits(rng, runs):
    """Return p where the scores of words go together, and the group is drawn at random."""
    shared = rng.normal(size=40)
    lists = [0.7 * by * shared + rng.normal(size=(8, 40)) for by in (1, -1)]
    inside = rng.permutation(40) < 20
    return portrait_contrast(*map(standardised, lists), inside, np.arange(40), 0)["p_value"]


def _binomial(rng, runs):
    counts = rng.binomial(30, 0.5, runs)
    return np.array([stats.binomtest(int(k), 30).pvalue for k in range(31)])[counts]


SAME, MEANS = "nothing tells the sets apart", "means are equal"
UNEQUAL = f"{MEANS}, standard deviations 3 to 1"
TWO_SIDED = {"alternative": "two-sided"}
CASES = [
    ("permutation_test", SAME, "8+8", "level", _permuted(_normal(8), _normal(8))),
    ("permutation_test", f"{SAME}, log-normal, two-sided", "5+30", "level",
     _permuted(_log_normal(5), _log_normal(30), **TWO_SIDED)),
    ("permutation_test", UNEQUAL, "8+8", "level", _permuted(_normal(8, 3), _normal(8))),
    ("permutation_test", UNEQUAL, "4+12", "level", _permuted(_normal(4, 3), _normal(12))),
    ("permutation_test", "clusters of 1 to 8, nothing tells them apart", "8+8 clusters", "level",
     _clustered),
    ("permutation_test", "means are a standard deviation apart", "8+8", "power",
     _permuted(_normal(8, mean=1.0), _normal(8))),
    ("permutation_test", "means are a standard deviation apart", "25+25", "power",
     _permuted(_normal(25, mean=1.0), _normal(25))),
    ("sign_flip_test", "signs could be others, Student with 3 degrees of freedom", "14", "level",
     _flipped(lambda rng: rng.standard_t(3, 14))),
    ("sign_flip_test", "mean 0, exponential", "14", "level",
     _flipped(lambda rng: rng.exponential(size=14) - 1)),
    ("sign_flip_test", "mean 0, exponential", "60", "level",
     _flipped(lambda rng: np.round(rng.exponential(size=60) - 1, 2))),
    ("sign_flip_test", "mean half a standard deviation", "14", "power",
     _flipped(lambda rng: rng.normal(0.5, 1, 14))),
    ("random_attribute_null", "targets in two clusters", "8+8 of 60 attributes", "level",
     _random_attributes),
    ("welch_p_values", MEANS, "8+8", "level", _welch(8, 8, 1)),
    ("welch_p_values", UNEQUAL, "4+12", "level", _welch(4, 12, 3)),
    ("representation", "retrieved at random", "20 of 200", "level", _hypergeometric),
    ("balanced_preference", "pictures of one kind are few", "20 triplets", "level", _preference),
    ("contrast", SAME, "10+15 words", "level", _contrast),
    ("portrait_contrast", "groups drawn at random, words go together", "40 people", "level",
     _portraits),
    ("binomial test of shares", "a share of one half", "30", "level", _binomial),
]  # fmt: skip
