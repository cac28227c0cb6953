"""Running the parts that a model can do, with one correction over everything that was asked."""

import contextlib
import datetime
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import ArrayLike

import biaslib
from biaslib import inference, runtime
from biaslib.audit import _parts
from biaslib.audit._folder import OwnFolder, read_folder
from biaslib.audit._grounding import GroundingCheck, check_grounding
from biaslib.audit._parts import AuditedModel, Part, Setting, load
from biaslib.audit.nulls import DRAWS, RESAMPLES
from biaslib.capabilities import CapabilityError
from biaslib.datasets import DataError
from biaslib.errors import CheckpointError
from biaslib.pictures.images import ImageError
from biaslib.pictures.regions import NothingFoundError
from biaslib.runtime import progress
from biaslib.studies.scores import COLUMNS, tidy

__all__ = [
    "LEVEL",
    "Audit",
    "capabilities",
    "chosen_data",
    "chosen_parts",
    "least_p_values",
    "out_of_reach",
    "run",
]

LEVEL = 0.05
"""Of the whole report: the probability that it claims anything where there is nothing."""

LABELS = ("part", "test", "level", "statistic", "experiment", "group", "bias_type", "kind")
"""Columns that tell the scores of an audit apart."""

MISSING = (
    DataError,
    ImageError,
    NothingFoundError,
    CheckpointError,
    FileNotFoundError,
    ImportError,
)
"""What is raised where data, weights or packages are missing."""


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes
    ----------
    audited
        The model.
    profile
        Whose stimuli: those of ``planted`` say nothing of photographs.
    scores
        The tidy scores of all parts that were run, with their *part*; *model* is what was asked
        for. Rows with a *p_value* are the questions that were asked; *p_least* is how small it
        could be. *p_holm* is corrected over all of them. *null_low* and *null_high*: where the null
        lies; *null_n*, of how many innocent things that is the range. A column that another study
        has alone is empty.
    not_run
        *study*, *part*, *reason*, and *kind*: ``not possible`` for the model, ``not there`` where
        data or weights are missing, ``not asked for``, ``error`` for a fault.
    finished
        When, in UTC.
    checks
        Of grounding, by what was asked.
    folder
        Pictures of one's own, or None.
    notes
        What was warned of when the model was loaded, what could not be checked, and what a reader
        has to know of the data.
    """

    audited: AuditedModel
    profile: str
    scores: pandas.DataFrame
    not_run: pandas.DataFrame
    finished: str
    checks: dict[str, GroundingCheck] = field(default_factory=dict)
    folder: OwnFolder | None = None
    notes: tuple[str, ...] = ()

    @property
    def faults(self) -> pandas.DataFrame:
        """The rows of ``not_run`` that an error caused which nobody foresaw."""
        return self.not_run[self.not_run["kind"] == "error"]

    @property
    def untrained(self) -> pandas.DataFrame:
        """The values of networks with random weights, in the rows of ``scores``, one column each.

        Three are no test: one more of the kind lies beyond all three in half of all cases.
        """
        return self.scores.filter(regex="^untrained ").astype(float)

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
        from biaslib.models.untrained import DRAWN

        packages = ("numpy", "pandas", "scipy", "torch", "transformers")
        return {
            "model": self.audited.name,
            "read as": self.audited.model.name,
            "revision": str(self.audited.model.revision),
            "profile": self.profile,
            "biaslib": f"{biaslib.__version__}, source {runtime.source_hash()}",
            "finished": self.finished,
            "data": sorted(self.scores["dataset"].unique()),
            "checks of grounding": [str(check) for check in self.checks.values()],
            "questions asked": len(self.asked),
            "correction": f"Holm over all questions, level {LEVEL}",
            "untrained": {"seeds": [*range(self.untrained.shape[1])], "weights": DRAWN},
            "parts run": self.scores["part"].unique().tolist(),
            "parts not run": dict(zip(self.not_run["part"], self.not_run["reason"], strict=True)),
            "notes": list(self.notes),
            "python": platform.python_version(),
            "packages": {name: metadata.version(name) for name in packages},
        }


def capabilities(audited: AuditedModel) -> pandas.DataFrame:
    """Return which parts of the audit a model can be asked for.

    A part that asks the model the same as another one, in a poorer way, is left out.

    Returns
    -------
    pandas.DataFrame
        *study*, *part*, *needs*, *possible*, and *missing*.
    """
    rows = [
        (part.study, part.name, part.needs, not part.missing(audited), part.missing(audited))
        for part in _parts.PARTS
        if part.instead not in audited.capabilities
    ]
    return pandas.DataFrame(rows, columns=["study", "part", "needs", "possible", "missing"])


def chosen_parts(names: Sequence[str] | None) -> list[Part]:
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
    if names is None:
        return list(_parts.PARTS)
    known = {part.name for part in _parts.PARTS} | {part.study for part in _parts.PARTS}
    for name in names:
        if name not in known:
            raise runtime.unknown_name("part of the audit", name, sorted(known))
    return [part for part in _parts.PARTS if {part.name, part.study} & set(names)]


def run(
    given: Any,
    profile: str | None = None,
    device: str | None = None,
    store: runtime.Store | None = None,
    data: OwnFolder | str | Path | None = None,
    parts: Sequence[str] | None = None,
    n_resamples: int = RESAMPLES,
    untrained: int = 0,
) -> Audit:
    """Run the parts that a model can do, and say why the others were not.

    First it is checked whether the model looks at pictures at all; a model that was not seen to
    look gets no score of chosen captions. The p-values of everything that was asked are corrected
    together (Holm): one wrong claim makes a wrong report, and Holm keeps the probability of any,
    however the questions depend on each other.

    Parameters
    ----------
    given
        What :func:`load` takes or returns.
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
    untrained
        How many networks with random weights (seeds 0, 1, ...) are asked the same beside the model:
        :func:`biaslib.models.untrained.untrained`. Each reads as much as the model does, so that
        three make four times the minutes; therefore none by itself.

    Raises
    ------
    CapabilityError
        If the model has none of the capabilities; the message names it and counts the parts.
    CheckpointError, ValueError
        If it cannot be loaded: see :func:`biaslib.models.load`.
    DataError
        If the folder is not sound: see :func:`read_folder`.
    """
    profile = runtime.profile(profile)
    stimuli, folder = chosen_data(data, profile)
    audited, store = load(given, profile, device), store or runtime.Store()
    _require_any(audited)
    fitting = [part for part in _parts.PARTS if part.instead not in audited.capabilities]
    named = chosen_parts(parts)
    wanted = [part for part in named if part in fitting]
    checks, notes = _checks(audited, Setting(stimuli, store, folder), wanted)
    setting = Setting(stimuli, store, folder, checks, n_resamples)
    planned = least_p_values([part for part in wanted if not part.missing(audited)], setting)
    setting = replace(setting, n_sets=DRAWS * max(50, len(planned)))
    tables, not_run, ran = [], [], []
    for part in progress(wanted, "audits"):
        try:
            tables.append(_scores(part, audited, setting))
            ran.append(part)
        except Exception as error:  # the other parts run, and the report names this one
            not_run.append((part.study, part.name, *_reason(error)))
    scores = corrected(tables)
    for seed in range(untrained):
        values, failed = _untrained(ran, audited, setting, seed)
        labels = [name for name in LABELS if name in scores]
        scores = scores.merge(values[[*labels, values.columns[-1]]], "left", labels, validate="1:1")
        not_run += [row for row in failed if row not in not_run]
    left = [part for part in fitting if part not in wanted]
    not_run += [(part.study, part.name, "not asked for", "not asked for") for part in left]
    for part in named if parts is not None else ():
        if part not in fitting:
            reason = f"the model does {part.instead}, and is asked by the part that needs it"
            not_run.append((part.study, part.name, reason, "not possible"))
    table = pandas.DataFrame(not_run, columns=["study", "part", "reason", "kind"])
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    detector = getattr(audited.model, "__dict__", {}).get("detector")  # if it was needed
    notes = [*getattr(audited.model, "notes", ()), *getattr(detector, "notes", ()), *notes]
    notes += [*setting.notes, *(folder.notes if folder is not None else ())]
    notes = tuple(dict.fromkeys(notes))
    return Audit(audited, stimuli, scores, table, now, checks, folder, notes)


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


def _require_any(audited: AuditedModel) -> None:
    if not capabilities(audited)["possible"].any():
        raise CapabilityError(
            f"{audited.name} fits none of the {len(_parts.PARTS)} parts of the audit: it does not "
            f"{', '.join(dict.fromkeys(part.needs for part in _parts.PARTS))}. A model says what "
            "it can do by its attribute capabilities: see biaslib.capabilities"
        )


def _checks(
    audited: AuditedModel, setting: Setting, wanted: Sequence[Part]
) -> tuple[dict[str, GroundingCheck], list[str]]:
    """Check whether the model looks, if a part shows it pictures; else say why not."""
    folder = setting.folder
    if not any(part.pictures and not part.missing(audited) for part in wanted):
        return {}, []
    if folder is not None and folder.captions is None:
        return {}, [
            "whether the model looks at these pictures was not checked: labels.csv has no column "
            "caption"
        ]
    failed: dict[str, Exception] = {}  # a model that cannot be checked is audited, and it is said
    checks = check_grounding(audited.model, setting.profile, setting.store, folder, failed)
    said = {head: _reason(error)[0] for head, error in failed.items()}
    return checks, [f"grounding was not checked by {head}: {why}" for head, why in said.items()]


def _scores(part: Part, audited: AuditedModel, setting: Setting) -> pandas.DataFrame:
    if refused := part.refused(audited, setting):
        raise CapabilityError(refused)
    scores = part.run(audited, setting)
    return tidy(scores, part=part.name, study=part.study, model=audited.name)


def _untrained(
    parts: Sequence[Part], audited: AuditedModel, setting: Setting, seed: int
) -> tuple[pandas.DataFrame, list[tuple[str, ...]]]:
    """Return the values of a network with random weights by what tells rows apart, and faults.

    It is asked what the model was asked, also where a check of the model went before.
    """
    from biaslib.models.untrained import untrained

    setting = replace(setting, n_resamples=0, n_sets=1, untrained=True)
    tables, failed = [], []
    try:
        with untrained(audited.model, seed) as twin:
            for part in parts:
                try:
                    scores = part.run(replace(audited, model=twin), setting)
                    tables.append(scores.assign(part=part.name))
                except Exception as error:
                    failed.append((part.study, f"{part.name}, untrained", *_reason(error)))
    except CapabilityError as error:
        failed.append(("all", "untrained networks", *_reason(error)))
    values = pandas.concat(tables) if tables else pandas.DataFrame({"part": []})
    values = values.reindex(columns=[*LABELS, "value"])
    return values.rename(columns={"value": f"untrained {seed}"}), failed


def corrected(tables: Sequence[pandas.DataFrame]) -> pandas.DataFrame:
    """Return all scores in one table, with p-values corrected over all questions."""
    nothing = pandas.DataFrame(columns=[*COLUMNS, "part", "null_low", "null_high"])
    scores = pandas.concat(tables, ignore_index=True) if tables else nothing
    asked = scores["p_value"].notna()
    adjusted = np.full(len(scores), np.nan)
    if asked.any():
        p_values = scores.loc[asked, "p_value"].to_numpy(dtype=float)
        adjusted[asked.to_numpy()] = inference.adjust(np.minimum(p_values, 1.0), "holm")
    return scores.assign(p_least=scores.get("p_least", np.nan), p_holm=adjusted)


def least_p_values(parts: Sequence[Part], setting: Setting) -> np.ndarray:
    """Return of the questions of some parts, before they are asked, how small p can be.

    Parts without their data, or with pictures that the folder does not have, have no questions.
    """
    found: list[float] = []
    for part in parts:
        if setting.folder is None or part.pictures != "scenes":
            with contextlib.suppress(*MISSING):
                found += _parts.LEAST[part.study](part, setting)
    return np.array(found)


def out_of_reach(least: ArrayLike, p_values: ArrayLike | None = None) -> np.ndarray:
    """Say which questions cannot be claimed, whatever the model does in them.

    Holm's method multiplies a p-value by the number of questions that were not claimed before it.
    A question is out of reach where even its least p-value stays at :data:`LEVEL` or above.

    Parameters
    ----------
    least
        Least p-values of all questions, (m,).
    p_values
        What the questions gave, (m,): each is judged beside the others as they are. None, before
        the run: as if no other one is claimed.

    Examples
    --------
    >>> eight_and_eight = 2 / 12_870
    >>> [int(out_of_reach([eight_and_eight] * m).sum()) for m in (321, 322)]
    [0, 322]
    >>> int(out_of_reach([1e-9] + [eight_and_eight] * 321, [1e-9] + [1.0] * 321).sum())
    0
    """
    least = np.asarray(least, dtype=float)
    p_values = np.ones(len(least)) if p_values is None else np.asarray(p_values, dtype=float)
    found = np.zeros(len(least), bool)
    for at, p_value in enumerate(least):
        instead = np.minimum(p_values, 1.0)
        instead[at] = p_value
        found[at] = inference.adjust(instead, "holm")[at] >= LEVEL
    return found


def _reason(error: Exception) -> tuple[str, str]:
    """Return the text of an error, with its type if nobody foresaw it, and what kind it is of."""
    foreseen = "not there" if isinstance(error, MISSING) else "error"
    kind = "not possible" if isinstance(error, CapabilityError) else foreseen
    text = " ".join(str(error).split()) or "no message"
    return (f"{type(error).__name__}: {text}" if kind == "error" else text), kind
