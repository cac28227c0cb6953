"""Planted studies from end to end, through the store, on a device and on the processor."""

import functools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tools.benchmarks.gpu._machine import calculating_in
from tools.benchmarks.gpu._numerics import SIZES, empty_store
from tools.benchmarks.gpu._schedule import Step
from tools.benchmarks.loops import finish

HEADS = {"full": slice(None), "tiny": slice(3, 4)}
"""Models of studies 1 and 4 that are asked."""

RESAMPLES = 20


def steps(size: str, device: str) -> list[Step]:
    """Return a step for each study, in order of worth."""
    return [
        Step("studies", f"study {number}", 25, functools.partial(compared, study, size, device))
        for number, study in ((3, audit), (4, captions), (1, grounded), (2, masked))
    ]


def compared(study: Any, size: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield the seconds of a study on the device and again from its store, and on the processor.

    ``largest_difference`` is that of any score between device and processor.
    """
    scores, seconds = {}, {}
    with calculating_in("float32", device):
        for where in dict.fromkeys((device, "cpu")):
            with empty_store() as store:
                for name in (where, f"{where}, stored"):
                    started = time.perf_counter()
                    scores[name] = study(size, where, store)["value"].to_numpy(float)
                    finish()
                    seconds[name] = round(time.perf_counter() - started, 2)
    apart = [np.abs(each - scores["cpu"]) for each in scores.values()]
    yield {
        "scores": len(scores["cpu"]),
        "device_s": seconds[device],
        "stored_s": seconds[f"{device}, stored"],
        "cpu_s": seconds["cpu"],
        "largest_difference": float(np.nanmax(apart)),
    }


def audit(size: str, device: str, store: Any) -> Any:
    """Return the scores of study 3."""
    from biaslib import models
    from biaslib.studies import study3_clip_audit as study

    given = study.inputs("planted", n_per_cell=SIZES[size]["n_per_cell"])
    model = models.load(**given.model, device=device)
    return study.audit(given, model=model, n_resamples=RESAMPLES, store=store).scores


def captions(size: str, device: str, store: Any) -> Any:
    """Return the scores of study 4."""
    from biaslib import models
    from biaslib.studies import study4_captions as study

    given = study.inputs("planted", n_per_category=SIZES[size]["n_per_category"])

    def loader(head: study.ModelHead) -> Any:
        return models.load(head.planted, profile="planted", device=device)

    run = study.run(study.MODEL_HEADS[HEADS[size]], given, loader, store)
    return study.selection_scores(run, n_resamples=RESAMPLES)


def grounded(size: str, device: str, store: Any) -> Any:
    """Return the scores of study 1."""
    from biaslib import models
    from biaslib.studies import study1_grounded as study

    given = study.inputs("planted", names=["occupation-gender"])
    names = ["vl-bert"] if size == "tiny" else [each for each in given]
    asked = {each: models.load(each, profile="planted", device=device) for each in names}
    return study.run_each(asked, given, store=store, n_bootstrap=RESAMPLES)


def masked(size: str, device: str, store: Any) -> Any:
    """Return the scores of study 2."""
    from biaslib import models
    from biaslib.studies import study2_masked as study

    given = study.inputs("planted", per_agent=SIZES[size]["per_agent"])
    both = [models.load(**each, device=device) for each in (given.model, given.text_model)]
    return study.run(given, *both, store=store, n_resamples=RESAMPLES).scores
