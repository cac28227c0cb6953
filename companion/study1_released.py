"""Study 1 as the released code of Ross, Katz and Barbu (2021) runs it.

States, lengths, masks and regions are those of :mod:`biaslib.models.study1_as_released`, the
statistics those below; :func:`biaslib.published.released_differences` lists what differs from the
paper. File and line are of candacelax/bias-in-vision-and-language, commit 1622980.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas

from biaslib import inference, runtime
from biaslib.metrics.grounded import GroundedResult
from biaslib.models import study1_as_released as released
from biaslib.studies import study1_grounded as study
from biaslib.studies.scores import tidy

__all__ = ["WEIGHTS", "embed", "load_name", "run_each", "score"]

WEIGHTS = {name: reading.checkpoint for name, reading in released.RELEASED.items()}
"""The registered names of the weights that the code points to, by the models of the study.

:meta hide-value:
"""

SAMPLED_ABOVE = 20
"""Targets of X up to which the code means to count every partition (weat_images_union.py:140)."""

SAMPLES = 100_000
"""Of its configurations: one less is drawn, and one is added to both counts (:146)."""


def load_name(name: str, profile: str | None = None) -> str:
    """Return the registered name of the weights that a model of the study has.

    Examples
    --------
    >>> load_name("vilbert", "paper"), load_name("vilbert", "planted")
    ('vilbert-beta', 'vilbert')
    """
    return WEIGHTS[name] if runtime.profile(profile) == "paper" else name


class _Reader:
    """A model that reads as the released code does, with the arguments that the study passes."""

    def __init__(self, model: Any) -> None:
        self.model = released.reader(model)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def embed(self, texts, images=None, level="sentence", words=(), mask=None, test_words=()):
        masking = "none" if mask is None else "persons" if mask.persons else "words"
        return self.model.embed(texts, images, level, test_words, masking)


def embed(
    model: Any,
    every: Sequence[study.GroundedStimuli],
    masking: str = "none",
    store: runtime.Store | None = None,
) -> list[study.EmbeddedSets]:
    """Embed the sets of tests as :func:`biaslib.studies.study1_grounded.embed` does.

    The released code needs all words of a test to find the place of one, and labels to mask.

    Raises
    ------
    CapabilityError
        If the released code does not read the model.
    """
    reader, groups = _Reader(model), {}
    for at, sets in enumerate(every):
        needed = masking != "none" or sets.level == "contextual"
        groups.setdefault(sets.hidden if needed else (), []).append(at)
    embedded = {}
    for words, places in groups.items():
        chosen = [every[at] for at in places]
        found = study.embed(reader, chosen, masking, store=store, test_words=list(words))
        embedded |= dict(zip(places, found, strict=True))
    return [embedded[at] for at in range(len(every))]


def run_each(
    models: Mapping[str, Any],
    given: study.Inputs,
    levels: Sequence[str] = study.LEVELS,
    domain: str = study.DOMAINS[0],
    store: runtime.Store | None = None,
    **settings: Any,
) -> pandas.DataFrame:
    """Score the tests of each model as the code does: tidy scores, with *variant* ``released``.

    With masks it runs Experiment 1 (bias_test.py:270), on sentences; the paper says that the masked
    runs are those of Experiment 2. VisualBERT, whose regions it never masks, has no rows with
    hidden persons.

    Parameters
    ----------
    models
        By name, with the weights of :func:`load_name`.
    given
        The tests of each, as of :func:`biaslib.studies.study1_grounded.inputs`.
    levels, domain
        Those of the tests, and what the scores say of their images.
    store
        Where embeddings are kept; ``None`` takes the usual one.
    **settings
        As of :func:`score`.
    """
    tables = []
    for name in [name for name in given if name in models]:
        reader, rows = released.reader(models[name]), []
        for masking in study.MASKINGS:
            if masking == "persons" and not reader.reading.labels:
                continue
            kept = levels if masking == "none" else ["sentence"]
            every = [sets for sets in given[name] if sets.level in kept and sets.level in levels]
            experiments = study.EXPERIMENTS if masking == "none" else (1,)
            embedded = embed(models[name], every, masking, store)
            rows += score(list(itertools.product(embedded, experiments)), **settings)
        labels = {"study": study.STUDY, "model": name, "revision": reader.revision}
        labels |= given.labels | {"images": "with", "variant": "released"}
        tables.append(tidy(rows, **labels, domain=domain))
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame()


def score(
    cases: Sequence[tuple[study.EmbeddedSets, int]],
    seed: int = 0,
    p_values: bool = True,
    n_bootstrap: int = 0,
) -> list[dict[str, object]]:
    """Return the rows of scores of some experiments as the released code computes them.

    One row each; of Experiment 3 two, a signed effect size for each target set in place of half the
    sum of absolute values that the paper prints (weat_images_intra_targ.py:180), named in the
    column *statistic*. *p_value_paper* is one-sided and counts texts with an image, as does *n*.

    Parameters
    ----------
    cases
        Sets with an experiment.
    seed
        Of the shuffles, of which the released code has none, and of the resamples.
    p_values
        Whether they are wanted.
    n_bootstrap
        Resamples of pictures for *low_pictures* and *high_pictures*, which the released code does
        not have, as of :func:`biaslib.studies.study1_grounded.score`. Not of Experiment 3.
    """
    results = [study.defined_result(sets, experiment) for sets, experiment in cases]
    defined = [result for result in results if result is not None]
    tests = iter(_p_values(defined, seed) if p_values else [{} for _ in defined])
    rows = []
    for (sets, experiment), result in zip(cases, results, strict=True):
        row = study.described(sets, experiment, seed)
        row |= {"n": row["n_texts"], "p_value_paper": np.nan}
        if result is None:
            rows.append(row | {"value": np.nan})
            continue
        row |= next(tests)
        if experiment == 3:
            halves = {"X": result.x_effect, "Y": result.y_effect}
            rows += [
                row | {"statistic": f"effect size of {target}", "value": value}
                for target, value in halves.items()
            ]
            continue
        if n_bootstrap:
            row |= study.interval_of_pictures(sets, experiment, n_bootstrap, seed)
        rows.append(row | {"value": result.effect_size})
    return rows


def _p_values(results: Sequence[GroundedResult], seed: int) -> list[dict[str, Any]]:
    """Return the one-sided p-value of each result over items, ties counted.

    Above 20 targets it is sampled, all tests of one size with the same shuffles; up to 20 it is
    that of all partitions, where the code stops with an error. The longer target set is cut to the
    length of the shorter (weat_images_union.py:97), in Experiment 2 too, where the code stops.
    Experiment 3's is 1 whatever the data, since the sampled statistic is never compared with the
    observed one (weat_images_intra_targ.py:111-139).
    """
    never = {"p_value_paper": 1.0, "p_method_paper": "never evaluated"}
    tests: list[dict[str, Any]] = [never for _ in results]
    sizes = [min(len(result.x_scores), len(result.y_scores)) for result in results]
    for n in set(sizes):
        places = [at for at, size in enumerate(sizes) if size == n and results[at].experiment < 3]
        cut = [(results[at].x_scores[:n], results[at].y_scores[:n]) for at in places]
        if n > SAMPLED_ABOVE and cut:
            tested = _sampled(cut, seed)
        else:
            found = (inference.permutation_test(x, y, rng=seed) for x, y in cut)
            tested = [study.described_test(test, "_paper") for test in found]
        for at, test in zip(places, tested, strict=True):
            tests[at] = test
    return tests


def _sampled(tests: Sequence[tuple[np.ndarray, np.ndarray]], seed: int) -> list[dict[str, Any]]:
    x, y = (np.stack(scores) for scores in zip(*tests, strict=True))
    p_values = inference.permutation_p_values(x, y, n_resamples=SAMPLES, rng=seed)
    rows = []
    for p in p_values:
        drawn = inference.proportion_interval(round(p * SAMPLES) - 1, SAMPLES - 1)
        bounds = {"p_low_paper": drawn.low, "p_high_paper": drawn.high}
        rows.append({"p_value_paper": float(p), **bounds, "p_method_paper": "sampled"})
    return rows
