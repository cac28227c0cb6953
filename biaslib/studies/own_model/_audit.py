"""Running the parts that a model can do, with one correction over everything that was asked."""

import datetime
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import biaslib
from biaslib import inference, runtime
from biaslib.datasets import DataError
from biaslib.models.capabilities import CapabilityError
from biaslib.models.images import ImageError
from biaslib.models.own import CheckpointError, OwnModel, load_own
from biaslib.models.regions import NothingFoundError
from biaslib.runtime import progress
from biaslib.studies.own_model import _grounding as grounding
from biaslib.studies.own_model import _parts
from biaslib.studies.own_model._folder import OwnFolder, read_folder
from biaslib.studies.own_model._nulls import RESAMPLES, outside_by_chance
from biaslib.studies.own_model._parts import Part, Setting
from biaslib.studies.scores import COLUMNS, tidy

__all__ = ["LEVEL", "Audit", "audit", "capabilities", "chosen_data", "chosen_parts", "summary"]

LEVEL = 0.05
"""Of the whole report: the probability that it claims anything where there is nothing."""

NOT_THERE = (
    *(DataError, ImageError, NothingFoundError, CheckpointError),
    *(FileNotFoundError, ImportError),
)
"""What is raised where data, weights or packages are missing."""


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes
    ----------
    own
        The model.
    profile
        Whose stimuli: those of ``planted`` say nothing of photographs.
    scores
        The tidy scores of all parts that were run, with their *part*; *model* is what was asked
        for. Rows with a *p_value* are the questions that were asked; where p is known by bounds it
        is the upper one, so that none is rejected that may stand. *p_holm* is corrected over all of
        them. *null_low* and *null_high*: where the null lies; *null_n*, of how many
        innocent things that is the range. A column that another study has
        alone is empty.
    not_run
        *study*, *part*, *reason*, and *kind*: ``not possible`` for the model, ``not there`` where
        data or weights are missing, ``not asked for``, ``error`` for a fault.
    finished
        When, in UTC.
    looking
        What the checks of grounding found.
    folder
        Pictures of one's own, or None.
    notes
        What could not be checked, and what a reader has to know of the data.
    """

    own: OwnModel
    profile: str
    scores: pandas.DataFrame
    not_run: pandas.DataFrame
    finished: str
    looking: dict[str, grounding.Looking] = field(default_factory=dict)
    folder: OwnFolder | None = None
    notes: tuple[str, ...] = ()

    @property
    def faults(self) -> pandas.DataFrame:
        """The rows of ``not_run`` that an error caused which nobody foresaw."""
        return self.not_run[self.not_run["kind"] == "error"]

    @property
    def asked(self) -> pandas.DataFrame:
        """The rows of ``scores`` that are questions: those with a p-value."""
        return self.scores[self.scores["p_value"].notna()]

    @property
    def claims(self) -> pandas.DataFrame:
        """The questions whose null is rejected after the correction."""
        return self.asked[self.asked["p_holm"] < LEVEL]

    @property
    def stimuli(self) -> str:
        """``planted``, ``paper``, or ``own``: what pictures the audit is about."""
        return self.profile if self.folder is None else "own"

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
            "checks of grounding": [str(each) for each in self.looking.values()],
            "questions asked": len(self.asked),
            "correction": f"Holm over all questions, level {LEVEL}",
            "parts run": self.scores["part"].unique().tolist(),
            "parts not run": dict(zip(self.not_run["part"], self.not_run["reason"], strict=True)),
            "notes": list(self.notes),
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
        for part in _parts.PARTS
        if not part.superseded(own)
    ]
    return pandas.DataFrame(rows, columns=["study", "part", "needs", "possible", "missing"])


def chosen_parts(wanted: Sequence[str] | None) -> list[Part]:
    """Return parts by name, or by the name of their study; None for all.

    Raises
    ------
    UnknownNameError
        If there is no such part.

    Examples
    --------
    >>> [part.name for part in chosen_parts(["zhou2022"])]
    ['captions by matching logit', 'captions by cosine']
    """
    if wanted is None:
        return list(_parts.PARTS)
    names = {part.name for part in _parts.PARTS} | {part.study for part in _parts.PARTS}
    for each in wanted:
        if each not in names:
            raise runtime.unknown_name("part of the audit", each, sorted(names))
    return [part for part in _parts.PARTS if {part.name, part.study} & set(wanted)]


def audit(
    given: OwnModel | str | Path,
    profile: str | None = None,
    device: str | None = None,
    store: runtime.Store | None = None,
    data: OwnFolder | str | Path | None = None,
    parts: Sequence[str] | None = None,
    n_resamples: int = RESAMPLES,
) -> Audit:
    """Run the parts that a model can do, and say why the others were not.

    First it is checked whether the model looks at pictures at all; a model that was not seen to
    look gets no score of chosen captions. The p-values of everything that was asked are corrected
    together (Holm): one wrong claim makes a wrong report, and Holm keeps the probability of any,
    however the questions depend on each other.

    Parameters
    ----------
    given
        A loaded model, or what :func:`biaslib.models.own.load_own` takes.
    profile
        ``planted`` never asks the hub for a model; ``paper`` does. ``None`` takes that of the run.
    device
        Where the model runs.
    store
        Where its answers are kept, by its name and revision; ``None`` takes the one of the run.
    data
        ``planted``: scenes of the planted world; ``released``: the data sets of the studies below
        ``BIASLIB_DATA``; else a folder of pictures of one's own (:func:`read_folder`), which study
        3 takes: of the other studies the parts without pictures are run. None takes the first in
        the profile ``planted``, and the second in ``paper``.
    parts
        Names of parts or studies; None for all.
    n_resamples
        Of the intervals; 0 leaves them out, and changes no p-value.

    Raises
    ------
    CapabilityError
        If the model has none of the capabilities; the message names it and counts the parts.
    CheckpointError, ValueError
        If it cannot be loaded: see :func:`biaslib.models.own.identify`.
    DataError
        If the folder is not sound: see :func:`read_folder`.
    """
    chosen = runtime.profile(profile)
    stimuli, folder = chosen_data(data, chosen)
    own = given if isinstance(given, OwnModel) else load_own(given, chosen, device)
    _require_any(own)
    store = store or runtime.Store()
    possible = [part for part in _parts.PARTS if not part.superseded(own)]
    wanted = [part for part in chosen_parts(parts) if part in possible]
    looking, notes = _looking(own, stimuli, store, folder, wanted)
    setting = Setting(stimuli, store, folder, looking, n_resamples)
    tables, not_run = [], []
    for part in progress(wanted, "audits"):
        try:
            tables.append(_scores(part, own, setting))
        except Exception as error:  # the other parts run, and the page names this one
            not_run.append((part.study, part.name, *_reason(error)))
    left = [part for part in possible if part not in wanted]
    not_run += [(part.study, part.name, "not asked for", "not asked for") for part in left]
    table = pandas.DataFrame(not_run, columns=["study", "part", "reason", "kind"])
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    notes += list(folder.notes) if folder is not None else []
    return Audit(own, stimuli, corrected(tables), table, now, looking, folder, tuple(notes))


def chosen_data(data: Any, profile: str) -> tuple[str, OwnFolder | None]:
    """Return the profile whose stimuli are taken, and the folder of one's own if there is one.

    With a folder, sentences are those of the tests, as the planted world has them too.
    """
    if data is None:
        return profile, None
    if isinstance(data, OwnFolder):
        return "planted", data
    named = {"planted": "planted", "released": "paper"}
    if str(data) in named:
        return named[str(data)], None
    return "planted", read_folder(data)


def _require_any(own: OwnModel) -> None:
    if not capabilities(own)["possible"].any():
        raise CapabilityError(
            f"{own.given} fits none of the {len(_parts.PARTS)} parts of the audit: it does not "
            f"{', '.join(dict.fromkeys(part.needs for part in _parts.PARTS))}. A model says what "
            "it can do by its attribute capabilities: see biaslib.models.capabilities"
        )


def _looking(
    own: OwnModel,
    profile: str,
    store: runtime.Store,
    folder: OwnFolder | None,
    wanted: Sequence[Part],
) -> tuple[dict[str, grounding.Looking], list[str]]:
    """Check whether the model looks, if a part shows it pictures; else say why not."""
    if not any(part.pictures and not part.missing(own) for part in wanted):
        return {}, []
    if folder is not None and folder.captions is None:
        return {}, [
            "whether the model looks at these pictures was not checked: labels.csv has no column "
            "caption"
        ]
    try:
        return grounding.looking(own, profile, store, folder), []
    except Exception as error:  # a model that cannot be checked is audited, and it is said
        return {}, [f"grounding was not checked: {_reason(error)[0]}"]


def _scores(part: Part, own: OwnModel, setting: Setting) -> pandas.DataFrame:
    if refused := part.refused(own, setting):
        raise CapabilityError(refused)
    return tidy(part.run(own, setting), part=part.name, study=part.study, model=own.given)


def corrected(tables: Sequence[pandas.DataFrame]) -> pandas.DataFrame:
    """Return all scores in one table, with p-values corrected over all questions."""
    nothing = pandas.DataFrame(columns=[*COLUMNS, "part", "null_low", "null_high"])
    scores = pandas.concat(tables, ignore_index=True) if tables else nothing
    asked = scores["p_value"].notna()
    adjusted = np.full(len(scores), np.nan)
    if asked.any():
        p_values = scores.loc[asked, "p_value"].to_numpy(dtype=float)
        adjusted[asked.to_numpy()] = inference.adjust(np.minimum(p_values, 1.0), "holm")
    return scores.assign(p_holm=adjusted)


def _reason(error: Exception) -> tuple[str, str]:
    """Return the text of an error, with its type if nobody foresaw it, and what kind it is of."""
    foreseen = "not there" if isinstance(error, NOT_THERE) else "error"
    kind = "not possible" if isinstance(error, CapabilityError) else foreseen
    text = " ".join(str(error).split()) or "no message"
    return (f"{type(error).__name__}: {text}" if kind == "error" else text), kind


# One page


def summary(found: Audit) -> pandas.DataFrame:
    """Return the results on one page: every family of questions, and what describes it.

    No row is chosen because it is large.

    Returns
    -------
    pandas.DataFrame
        *study*, *part*, *measured*, *value*, *low*, *high*, *null* (in words), *n*, *of* (what n
        counts).
    """
    rows = []
    for (study, part), scores in found.scores.groupby(["study", "part"], sort=False):
        rows += [{"study": study, "part": part} | row for row in SUMMARIES[study](scores)]
    columns = ["study", "part", "measured", "value", "low", "high", "null", "n", "of"]
    return pandas.DataFrame(rows, columns=columns)


def _count(measured: str, hits: Any, of: str, null: str) -> dict[str, Any]:
    """Return a count as a share with its interval."""
    hits = np.asarray(hits, dtype=bool)
    k, n = int(hits.sum()), len(hits)
    row = {"measured": measured, "value": k, "low": np.nan, "high": np.nan}
    return row | {"null": null, "n": n, "of": of}


def _claimed(scores: pandas.DataFrame, of: str) -> dict[str, Any]:
    """Return how many questions of a part are claimed."""
    asked = scores[scores["p_value"].notna()]
    null = f"0 expected; any at all in the whole report in at most {LEVEL:.0%} of reports"
    return _count("claimed after correction", asked["p_holm"] < LEVEL, of, null)


def _of_tests(scores: pandas.DataFrame) -> list[dict[str, Any]]:
    """How many tests are claimed, and how many effect sizes lie outside of random attributes."""
    rows = [_claimed(scores, "tests, levels and experiments")]
    beside = scores[scores["null_low"].notna() & scores["value"].notna()]
    if len(beside):
        what = "outside of 95% of random attribute words"
        null = f"{0.05 * len(beside):.1f} expected"
        rows.append(_count(what, _outside(beside), "tests, levels and experiments", null))
    return rows


def _by_chance(scores: pandas.DataFrame) -> float:
    """Return how many of the rows would lie outside if they were what the ranges are of."""
    return float(outside_by_chance(scores["null_n"]).sum())


def _outside(scores: pandas.DataFrame) -> pandas.Series:
    return (scores["value"] < scores["null_low"]) | (scores["value"] > scores["null_high"])


def _row(measured: str, row: Any, of: str, null: str) -> dict[str, Any]:
    bounds = {name: row[name] for name in ("value", "low", "high", "n")}
    return {"measured": measured, "of": of, "null": null} | bounds


def _null_text(row: Any, decimals: int = 2) -> str:
    low, high = row["null_low"], row["null_high"]
    if pandas.isna(low):
        return ""
    return f"{low:.{decimals}f} to {high:.{decimals}f}"


def _of_entities(scores: pandas.DataFrame) -> list[dict[str, Any]]:
    rows = [_claimed(scores, "sources")]
    for row in scores[scores["statistic"] == "difference of B"].to_dict("records"):
        what = f"B of entities expected of women less of men ({row['level']})"
        rows.append(_row(what, row, "entities", f"{_null_text(row)} (entities dealt out anew)"))
    for row in scores[scores["statistic"] == "agrees with the label"].to_dict("records"):
        what = f"share of entities: {row['statistic']} ({row['level']})"
        rows.append(_row(what, row, "entities", "0.50"))
    beside = scores[(scores["statistic"] == "B") & scores["null_low"].notna()]
    if len(beside):
        what = "entities with B outside of 95% of innocent things"
        null = f"{_by_chance(beside):.1f} if they were such things"
        rows.append(_count(what, _outside(beside), "entities and sources", null))
    return rows


def _of_words(scores: pandas.DataFrame) -> list[dict[str, Any]]:
    """By facet: what is claimed, and how many words lie outside of the innocent ones."""
    rows = []
    for facet, part in scores.groupby("level", sort=False):
        claimed = _claimed(part, "pairs of word lists and groups")
        rows.append(claimed | {"measured": f"{facet}: claimed after correction"})
        words = part[part["statistic"] == "c_asc"]
        what = f"{facet}: C-ASC outside of 95% of innocent words"
        null = f"{_by_chance(words):.1f} if they were such words"
        rows.append(_count(what, _outside(words), "words and groups", null))
    return rows


def _of_choices(scores: pandas.DataFrame) -> list[dict[str, Any]]:
    """The scores overall and by category."""
    rows = [_claimed(scores, "categories and overall")]
    for row in scores.to_dict("records"):
        null = {"vlrs": "66.67 by guessing", "ivlas": "66.67 by guessing"}.get(row["statistic"], "")
        if row["statistic"] == "vlbs":
            null = f"the other way round: {row.get('mirrored', np.nan):.2f} ({_null_text(row)})"
        if row["statistic"] == "preference":
            null = f"{_null_text(row)} (captions swapped)"
        of = "triplets" if row["statistic"] == "preference" else "images"
        rows.append(_row(f"{row['test']}: {row['statistic']}", row, of, null))
    return rows


SUMMARIES = {
    "ross2021": _of_tests,
    "srinivasan2021": _of_entities,
    "hamidieh2023": _of_words,
    "zhou2022": _of_choices,
}
