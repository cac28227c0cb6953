"""The four audits on a model of one's own, as far as its capabilities and the data allow.

:func:`audit` asks a model for what each study needs, runs those that it can, and says of the others
why not. Nothing is measured here: every score is that of its study.
"""

import datetime
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import biaslib
from biaslib import inference, models, runtime
from biaslib.datasets import DataError
from biaslib.models.capabilities import (
    EMBED,
    EMBED_WITH_IMAGES,
    ENCODE,
    FILL,
    FILL_WITH_IMAGES,
    MATCH,
    CapabilityError,
)
from biaslib.models.images import ImageError
from biaslib.models.own import CheckpointError, OwnModel, load_own
from biaslib.models.regions import NothingFoundError
from biaslib.runtime import progress
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study2_masked as masked
from biaslib.studies.scores import COLUMNS, tidy

__all__ = [
    "PARTS",
    "Audit",
    "Part",
    "audit",
    "capabilities",
    "example",
    "summary",
]

WITH_IMAGES = ("S_L", "S_V")
"""Sources of study 2's scores that need images."""

QUOTED = "Occupation"
"""The type of words of study 3 that a page quotes; the others are counted."""

NOT_THERE = (
    *(DataError, ImageError, NothingFoundError, CheckpointError, runtime.DownloadError),
    *(FileNotFoundError, ImportError),
)
"""What is raised where data, weights or packages are missing."""

RESAMPLES = 200
"""Of the intervals; each study's chapter uses more."""


@dataclass(frozen=True)
class Part:
    """A part of an audit: what it needs of a model, and the study that does it.

    Attributes
    ----------
    study, name
        Whose measure, and what is done.
    needs
        The capability: a name of :mod:`biaslib.models.capabilities`.
    run
        Takes the model, the profile and the store; returns tidy scores.
    """

    study: str
    name: str
    needs: str
    run: Callable[[OwnModel, str, runtime.Store | None], pandas.DataFrame]

    def missing(self, own: OwnModel) -> str:
        """Return what the model lacks for this part, or an empty string."""
        there = getattr(own.model, "capabilities", ())
        return "" if self.needs in there else f"the model does not {self.needs}"


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes
    ----------
    own
        The model.
    profile
        ``planted`` says nothing of photographs.
    scores
        The tidy scores of all parts that were run, with their *part*; *model* is what was asked
        for. A column that another study has alone is empty.
    not_run
        *study*, *part*, *reason*, and *kind*: ``not possible`` for the model, ``not there`` where
        data or weights are missing, ``error`` for a fault.
    finished
        When, in UTC.
    """

    own: OwnModel
    profile: str
    scores: pandas.DataFrame
    not_run: pandas.DataFrame
    finished: str

    @property
    def faults(self) -> pandas.DataFrame:
        """The rows of ``not_run`` that an error caused which nobody foresaw."""
        return self.not_run[self.not_run["kind"] == "error"]

    @property
    def provenance(self) -> dict[str, Any]:
        """What the scores were made of, as JSON can write it."""
        packages = ("numpy", "pandas", "scipy", "torch", "transformers")
        return {
            "model": self.own.given,
            "read as": self.own.registered,
            "revision": str(self.own.model.revision),
            "profile": self.profile,
            "biaslib": f"{biaslib.__version__}, source {runtime.source_hash()}",
            "finished": self.finished,
            "data": sorted(self.scores["dataset"].unique()),
            "parts run": self.scores["part"].unique().tolist(),
            "parts not run": dict(zip(self.not_run["part"], self.not_run["reason"], strict=True)),
            "python": platform.python_version(),
            "packages": {name: metadata.version(name) for name in packages},
        }


def capabilities(own: OwnModel) -> pandas.DataFrame:
    """Return which parts of the audit a model can be asked for.

    Returns
    -------
    pandas.DataFrame
        *study*, *part*, *needs*, *possible*, and *missing*.
    """
    rows = [
        (part.study, part.name, part.needs, not part.missing(own), part.missing(own))
        for part in PARTS
    ]
    return pandas.DataFrame(rows, columns=["study", "part", "needs", "possible", "missing"])


def audit(
    given: OwnModel | str | Path,
    profile: str | None = None,
    device: str | None = None,
    store: runtime.Store | None = None,
) -> Audit:
    """Run the parts that a model can do, and say why the others were not.

    Parameters
    ----------
    given
        A loaded model, or what :func:`biaslib.models.own.load_own` takes.
    profile
        ``planted``: scenes and captions of the planted world, without a network. ``paper``: the
        data of the studies below ``BIASLIB_DATA``. ``None`` takes that of the run.
    device
        Where the model runs.
    store
        Where its answers are kept, by its name and revision; ``None`` takes the one of the run.

    Raises
    ------
    CapabilityError
        If the model has none of the capabilities; the message names it and counts the parts.
    CheckpointError, DownloadError, ValueError
        If it cannot be loaded: see :func:`biaslib.models.own.identify`.
    """
    chosen = runtime.profile(profile)
    own = given if isinstance(given, OwnModel) else load_own(given, chosen, device)
    if not capabilities(own)["possible"].any():
        raise CapabilityError(
            f"{own.given} fits none of the {len(PARTS)} parts of the audit: it does not "
            f"{', '.join(dict.fromkeys(part.needs for part in PARTS))}. A model says what it can "
            "do by its attribute capabilities: see biaslib.models.capabilities"
        )
    store = store or runtime.Store()
    tables, not_run = [], []
    for part in progress(PARTS, "audits"):
        try:
            tables.append(_scores(part, own, chosen, store))
        except Exception as error:  # the other parts run, and the page names this one
            not_run.append((part.study, part.name, *_reason(error)))
    nothing = pandas.DataFrame(columns=[*COLUMNS, "part"])
    scores = pandas.concat(tables, ignore_index=True) if tables else nothing
    table = pandas.DataFrame(not_run, columns=["study", "part", "reason", "kind"])
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return Audit(own, chosen, scores, table, now)


def _scores(
    part: Part, own: OwnModel, profile: str, store: runtime.Store | None
) -> pandas.DataFrame:
    if missing := part.missing(own):
        raise CapabilityError(missing)
    return tidy(part.run(own, profile, store), part=part.name, model=own.given)


def _reason(error: Exception) -> tuple[str, str]:
    """Return the text of an error, with its type if nobody foresaw it, and what kind it is of."""
    foreseen = "not there" if isinstance(error, NOT_THERE) else "error"
    kind = "not possible" if isinstance(error, CapabilityError) else foreseen
    text = " ".join(str(error).split()) or "no message"
    return (f"{type(error).__name__}: {text}" if kind == "error" else text), kind


# The parts


def _associations(with_images: bool):
    def run(own: OwnModel, profile: str, store: runtime.Store | None) -> pandas.DataFrame:
        given = grounded.inputs(profile, only_sound=True, levels=["sentence"], n_texts=1)
        # Out of domain, all models of the study have the same pictures.
        stimuli = [each for each in next(iter(given.values())) if each.level == "sentence"]
        settings = {"labels": given.labels, "units": "words", "n_bootstrap": RESAMPLES}
        return grounded.run(own.model, stimuli, (1,), ("none",), with_images, store, **settings)

    return run


def _masked(with_images: bool):
    levels = WITH_IMAGES if with_images else ("S_PT", "S_L, no image")

    def run(own: OwnModel, profile: str, store: runtime.Store | None) -> pandas.DataFrame:
        asked = {"model": own.registered, "per_agent": 2 if with_images else 0}
        given = masked.readable(masked.inputs(profile, only_sound=True, **asked), own.model)
        text_model = models.load(**given.text_model)
        settings = {"only_sound": True, "store": store, "n_resamples": RESAMPLES}
        found = masked.run(given, own.model, text_model, **settings).scores
        kept = found[found["statistic"] == "B"]
        kept = kept[kept["level"].isin(levels)]
        shares = masked.shares(found)
        shares = shares[(shares["test"] == "all") & shares["level"].isin(levels)]
        return pandas.concat([kept, shares], ignore_index=True)

    return run


def _portraits(own: OwnModel, profile: str, store: runtime.Store | None) -> pandas.DataFrame:
    from biaslib.studies import study3_clip_audit as clip_audit

    whole = clip_audit.inputs(profile)
    given = replace(whole, facets={"gender": whole.facets["gender"]})
    table = clip_audit.words()
    text = clip_audit.embed_texts(own.model, given.spelt(table["caption"]), store)
    image = clip_audit.embed_images(own.model, given.portraits, store)
    retrieved = clip_audit.retrieve(text, image, given.k)
    found = clip_audit.score(retrieved, given, table, own.model, n_resamples=RESAMPLES)
    return found[(found["group"] == given.gender[0]) & found["statistic"].isin(["c_asc", "share"])]


def _selection(head: str):
    def run(own: OwnModel, profile: str, store: runtime.Store | None) -> pandas.DataFrame:
        from biaslib.studies import study4_captions as stereotype_selection

        way = stereotype_selection.Way(own.given, head, True, own.registered, own.registered)
        given = stereotype_selection.inputs(profile)
        found = stereotype_selection.run([way], given, lambda _: own.model, store)
        rows = stereotype_selection.selected(given)
        return stereotype_selection.selection_scores(found, rows, n_resamples=RESAMPLES)

    return run


PARTS = (
    Part("ross2021", "association tests, text alone", EMBED, _associations(False)),
    Part("ross2021", "association tests, with images", EMBED_WITH_IMAGES, _associations(True)),
    Part("srinivasan2021", "masked words, caption alone", FILL, _masked(False)),
    Part("srinivasan2021", "masked words, with images", FILL_WITH_IMAGES, _masked(True)),
    Part("hamidieh2023", "portraits by word", ENCODE, _portraits),
    Part("zhou2022", "captions by matching logit", MATCH, _selection("matching")),
    Part("zhou2022", "captions by cosine", ENCODE, _selection("contrastive")),
)
"""The parts of an audit, in the order of the studies.

:meta hide-value:
"""


# One page


def summary(found: Audit) -> pandas.DataFrame:
    """Return the results of an audit on one page: a few rows a part.

    Returns
    -------
    pandas.DataFrame
        *study*, *part*, *measured*, *value*, *low*, *high*, *n*, *of* (what n counts).
    """
    rows = []
    for (study, part), scores in found.scores.groupby(["study", "part"], sort=False):
        rows += [{"study": study, "part": part} | row for row in SUMMARIES[study](scores)]
    columns = ["study", "part", "measured", "value", "low", "high", "n", "of"]
    return pandas.DataFrame(rows, columns=columns)


def _row(measured: str, row: Any, of: str) -> dict[str, Any]:
    bounds = {name: row[name] for name in ("value", "low", "high", "n")}
    return {"measured": measured, "of": of} | bounds


def _of_tests(scores: pandas.DataFrame) -> list[dict[str, Any]]:
    """The largest effect size, and how many tests are called significant."""
    defined = scores.dropna(subset=["value", "p_value"])
    if defined.empty:
        return []
    largest = defined.loc[defined["value"].abs().idxmax()]
    adjusted = np.asarray(inference.adjust(defined["p_value"], "holm"))
    count = {"value": float((adjusted < 0.05).sum()), "low": np.nan, "high": np.nan}
    return [
        _row(f"largest effect size d: {largest['test']}", largest, "target words"),
        _row("tests with p < .05 (Holm)", count | {"n": len(defined)}, "tests"),
    ]


def _of_entities(scores: pandas.DataFrame) -> list[dict[str, Any]]:
    shares = scores[scores["test"] == "all"]
    rows = [
        _row(f"share of entities: {row.statistic} ({row.level})", row._asdict(), "entities")
        for row in shares.itertuples()
    ]
    single = scores[(scores["test"] != "all") & scores["value"].notna()]
    if len(single):
        largest = single.loc[single["value"].abs().idxmax()]
        what = f"largest bias score B: {largest['test']} ({largest['level']})"
        rows.append(_row(what, largest, "images" if largest["level"] in WITH_IMAGES else "caption"))
    return rows


def _of_words(scores: pandas.DataFrame) -> list[dict[str, Any]]:
    """The largest C-ASC among occupations, and of how many words the interval leaves out 0."""
    standardised = scores[(scores["statistic"] == "c_asc") & scores["value"].notna()]
    if standardised.empty:
        return []
    clear = (standardised["low"] > 0) | (standardised["high"] < 0)
    count = {"value": float(clear.sum()), "low": np.nan, "high": np.nan, "n": len(clear)}
    rows = [_row("words whose C-ASC interval leaves out 0", count, "words")]
    occupations = standardised[standardised["bias_type"] == QUOTED]
    if len(occupations):
        largest = occupations.loc[occupations["value"].abs().idxmax()]
        what = f"largest C-ASC of women, occupations: {largest['test']}"
        rows.append(_row(what, largest, "portraits"))
    return rows


def _of_choices(scores: pandas.DataFrame) -> list[dict[str, Any]]:
    whole = scores[scores["test"] == "overall"]
    return [_row(row.statistic, row._asdict(), "images") for row in whole.itertuples()]


SUMMARIES = {
    "ross2021": _of_tests,
    "srinivasan2021": _of_entities,
    "hamidieh2023": _of_words,
    "zhou2022": _of_choices,
}


def example(profile: str | None = None) -> str | Path:
    """Return the model that the chapter audits until its reader names another one.

    In ``planted`` a folder with a checkpoint of the planted world, in ``paper`` a name of the hub;
    FLAVA in either, since it can be asked for every part.

    Examples
    --------
    >>> example("paper")
    'facebook/flava-full'
    """
    return runtime.provider(profile).example()
