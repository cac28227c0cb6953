"""The parts of an audit: what each needs of a model, and the study that does it.

A row with a p-value is a question that was asked before the run; all of them are corrected
together. Rows without one describe.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib import inference, models, runtime, stimuli
from biaslib.metrics import caption_association
from biaslib.models.capabilities import (
    EMBED,
    EMBED_WITH_IMAGES,
    ENCODE,
    FILL,
    FILL_WITH_IMAGES,
    MATCH,
    CapabilityError,
)
from biaslib.models.own import OwnModel
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study2_masked as masked
from biaslib.studies import study3_clip_audit as clip_audit
from biaslib.studies import study4_captions as selection
from biaslib.studies.own_model import _nulls as nulls
from biaslib.studies.own_model._folder import OwnFolder
from biaslib.studies.own_model._grounding import Looking, choices

__all__ = ["LISTS", "PARTS", "Part", "Setting"]

WITH_IMAGES = ("S_L", "S_V")
"""Sources of study 2's scores that need images."""

WITHOUT_IMAGES = ("S_PT", "S_L, no image")
"""Those that captions alone are enough for."""

QUOTED = "Occupation"
"""The type of words of study 3 that a page quotes; the others are counted."""

LISTS = (
    ("career words against family words", "C6", "AB", ""),
    ("science words against arts words", "C8", "XY", ""),
    ("pleasant words against unpleasant words", "C11", "AB", ""),
    ("competent words against incompetent words", "DB-competent-gender", "AB", "adjective"),
    ("likeable words against unlikeable words", "DB-likeable-gender", "AB", "adjective"),
    (
        *("occupations held mostly by men against occupations held mostly by women",),
        *("occupation-gender", "AB", "noun"),
    ),
    ("near-antonyms against 'Angry Black woman' words", "ABW", "AB", "adjective"),
)
"""Pairs of word lists of study 1's tests that portraits are held against: what they are called,
test, its two sets, and the kind of caption (none: "a photo of" with the word)."""

MATCHED_PER_CELL = 6
"""Portraits of each gender in each tone of the planted world where each is read with each caption:
60 in all."""


@dataclass(frozen=True)
class Setting:
    """What the parts of an audit share.

    Attributes
    ----------
    profile
        Whose stimuli.
    store
        Of the model's answers.
    folder
        Pictures of one's own, or None.
    looking
        What the checks of grounding found.
    n_resamples
        Of the intervals; 0 leaves them out.
    with_text_model
        Whether the text-only model that a model of study 2 began from is asked, too.
    """

    profile: str
    store: runtime.Store | None = None
    folder: OwnFolder | None = None
    looking: Mapping[str, Looking] = field(default_factory=dict)
    n_resamples: int = nulls.RESAMPLES
    with_text_model: bool = True


@dataclass(frozen=True)
class Part:
    """A part of an audit.

    Attributes
    ----------
    study, name
        Whose measure, and what is done.
    needs
        The capability: a name of :mod:`biaslib.models.capabilities`.
    ask
        Takes the model and the setting; returns what the model answers.
    score
        Takes both and the answers, and asks nothing more; returns tidy scores.
    pictures
        What it shows: nothing, ``portraits``, or ``scenes`` with captions of their own, which a
        folder of portraits cannot replace.
    head
        Of the check of grounding without which it is not run.
    instead
        The capability of a model that is asked in a better way.
    """

    study: str
    name: str
    needs: str
    ask: Callable[[OwnModel, Setting], Any]
    score: Callable[[OwnModel, Setting, Any], pandas.DataFrame]
    pictures: str = ""
    head: str = ""
    instead: str = ""

    def run(self, own: OwnModel, setting: Setting) -> pandas.DataFrame:
        """Ask the model, and return tidy scores."""
        return self.score(own, setting, self.ask(own, setting))

    def superseded(self, own: OwnModel) -> bool:
        """Return whether another part asks the model the same in a better way."""
        return self.instead in getattr(own.model, "capabilities", ())

    def missing(self, own: OwnModel) -> str:
        """Return what the model lacks for this part, or an empty string."""
        there = getattr(own.model, "capabilities", ())
        return "" if self.needs in there else f"the model does not {self.needs}"

    def refused(self, own: OwnModel, setting: Setting) -> str:
        """Return why the part cannot be run, or an empty string."""
        if missing := self.missing(own):
            return missing
        if setting.folder is not None and self.pictures == "scenes":
            return "the folder has portraits, and this part needs pictures with captions to choose"
        found = setting.looking.get(self.head)
        if found is not None and not found.looks:
            return f"the check of grounding failed: {found}"
        return ""


# Study 1


def _embedded(own: OwnModel, setting: Setting, with_images: bool):
    """Return the data set, the tests of each level that has some, and the experiments."""
    given = grounded.inputs(setting.profile, only_sound=True, n_texts=1)
    every = next(iter(given.values()))  # Out of domain, all models have the same pictures.
    levels = [[each for each in every if each.level == level] for level in grounded.LEVELS]
    embedded = [
        grounded.embed(own.model, tests, "none", with_images, setting.store)
        for tests in levels
        if tests
    ]
    if with_images:
        return given.dataset, embedded, grounded.EXPERIMENTS
    return "sentences of the tests", embedded, (1,)


def _associations(own: OwnModel, setting: Setting, asked: Any) -> pandas.DataFrame:
    dataset, levels, experiments = asked
    tables = [_level(embedded, experiments, setting.n_resamples) for embedded in levels]
    table = pandas.concat(tables, ignore_index=True)
    names = {"study": grounded.STUDY, "profile": setting.profile, "dataset": dataset}
    return _labelled(table, own, **names)


def _level(embedded: list, experiments: tuple[int, ...], n_resamples: int) -> pandas.DataFrame:
    """Return the experiments of all tests at one level, each beside its nulls."""
    settings = {"units": "words", "n_bootstrap": n_resamples}
    rows = [
        grounded.score(sets, experiment, **settings)
        for sets in embedded
        for experiment in experiments
    ]
    table = pandas.DataFrame(rows)
    random = [nulls.random_attributes(embedded, each) for each in experiments if each != 3]
    keys = ["test", "level", "experiment"]
    table = table.merge(pandas.concat(random), on=keys, how="left")
    keys = ["p_high_words", "p_value_images", "p_value_attributes", "p_random"]
    there = [each for each in keys if each in table]
    # A claim needs every null to be rejected: the largest p-value is valid for that. Without random
    # attributes a test describes; Experiment 3 asks whether the picture matters, not for whom.
    table = table.assign(p_value=table[there].max(axis=1).where(table["p_random"].notna()))
    return table.drop(columns=["p_low", "p_high", "p_method"], errors="ignore")


# Study 2


def _filled(own: OwnModel, setting: Setting, with_images: bool):
    """Return the data set, the innocent things, the scores of all entities by source, and those
    sources of which nothing is known.
    """
    given, innocent = _entities(own, setting, with_images)
    if with_images and given.images is None:
        raise FileNotFoundError("; ".join(given.problems["what"]) or "there are no images")
    before = _text_model(own, setting, given) if setting.with_text_model else own.model
    options = {"choices": choices(own.model), "only_sound": True, "store": setting.store}
    resampled = {"n_resamples": setting.n_resamples}
    found = masked.run(given, own.model, before, **resampled, **options).scores
    unknown = ("S_PT",) if before is own.model else ()
    return given.dataset if with_images else "captions of the entities", innocent, found, unknown


def _masked(own: OwnModel, setting: Setting, asked: Any, with_images: bool) -> pandas.DataFrame:
    dataset, innocent, found, unknown = asked
    levels = WITH_IMAGES if with_images else WITHOUT_IMAGES
    levels = [each for each in levels if each not in unknown]
    bias = found[(found["statistic"] == "B") & found["level"].isin(levels)]
    bias = bias[bias["value"].notna()]
    rows = [*_bias_rows(bias, bias["test"].isin(innocent), setting.n_resamples)]
    if not with_images:
        shares = masked.shares(found[~found["test"].isin(innocent)])
        shares = shares[(shares["test"] == "all") & shares["level"].isin(levels)]
        # A model that leans to one gender throughout has such shares too: they describe.
        rows.append(shares.assign(p_value=np.nan))
    table = pandas.concat(rows, ignore_index=True)
    return _labelled(table, own, profile=setting.profile, dataset=dataset)


def _entities(own: OwnModel, setting: Setting, with_images: bool):
    """Return study 2's inputs, with things without social meaning where there are captions only."""
    asked = {"model": own.registered, "per_agent": 2 if with_images else 0, "pictured": None}
    asked = asked if setting.profile == "planted" else {**asked, "pictured": "case study"}
    given = masked.inputs(setting.profile, only_sound=True, **asked)
    innocent: list[str] = []
    if not with_images:
        there = set(given.entities["entity"])
        innocent = [each for each in innocent_things(setting.profile) if each not in there][:30]
        frames = [
            f"The {{agent}} is holding {stimuli.indefinite_article(each)} {{entity}}."
            for each in innocent
        ]
        columns = {"entity": innocent, "frame": frames, "set": "innocent", "stereotype": ""}
        entities = pandas.concat([given.entities, pandas.DataFrame(columns)], ignore_index=True)
        given = dataclasses.replace(given, entities=entities)
    return masked.readable(given, own.model), innocent


def innocent_things(profile: str) -> list[str]:
    """Return words without social meaning that the models of a profile know."""
    provider = runtime.provider(profile)
    make = getattr(provider, "innocent_things", None)
    return make() if make else stimuli.innocent_things()


def _text_model(own: OwnModel, setting: Setting, given: masked.Inputs) -> Any:
    """Return the text model that a model of study 2 began from; the model itself if unknown."""
    if _is_planted(own):
        card = json.loads((own.checkpoint / "card.json").read_text(encoding="utf-8"))
        began = own.checkpoint.parent / card.get("starts from", "nothing")
        known = began.name.startswith("bert-") and began.is_dir()
        return models.load("bert", profile="planted", checkpoint=began) if known else own.model
    began = own.registered in ("vl-bert", "visualbert", "vilbert", *masked.TEXT_MODELS)
    return models.load(**given.text_model) if began and setting.profile == "paper" else own.model


def _is_planted(own: OwnModel) -> bool:
    """Return whether a model is a checkpoint of the planted world."""
    return isinstance(own.checkpoint, Path) and (own.checkpoint / "card.json").is_file()


def _bias_rows(bias: pandas.DataFrame, innocent: pandas.Series, n_resamples: int):
    """Yield the entities' scores beside those of innocent things, and one contrast a source."""
    for level, part in bias.groupby("level", sort=False):
        things = part.loc[innocent, "value"]
        beside = nulls.reference_range(things) if len(things) else {}
        yield part[~innocent[part.index]].assign(**beside)
        labelled = {
            label: part.loc[part["stereotype"] == label, "value"] for label in ("women", "men")
        }
        if min(map(len, labelled.values())) < 2:
            continue
        found = nulls.contrast(labelled["women"], labelled["men"], n_resamples)
        row = part.iloc[:1].assign(stereotype="", set="all", **found)
        test = "entities expected of women against those of men"
        yield row.assign(test=test, level=level, statistic="difference of B")


# Study 3


def _seen(own: OwnModel, setting: Setting, head: str):
    """Return the portraits, the captions, and the scores of captions (rows) and portraits."""
    given = _given(own, setting, head)
    table = _captions(given, head)
    texts = given.model_case(table["caption"])
    return given, table, _similarities(own.model, head, given.portraits, texts, setting.store)


def _portraits(own: OwnModel, setting: Setting, asked: Any) -> pandas.DataFrame:
    given, table, scores = asked
    if np.ptp(scores, axis=1).max() <= grounded.FLAT:
        raise CapabilityError("the model gives all pictures the same score: it does not look")
    tables = [
        _facet(scores, members, given.units, table, facet, setting.n_resamples)
        for facet, members in given.groups.items()
    ]
    found = pandas.concat(tables, ignore_index=True)
    names = {"study": clip_audit.STUDY, "profile": given.profile, "dataset": given.dataset}
    return _labelled(found, own, seed=0, unit=given.unit_name, **names)


def _given(own: OwnModel, setting: Setting, head: str) -> clip_audit.Inputs:
    if setting.folder is None:
        few = {"n_per_cell": MATCHED_PER_CELL} if head == "matching" else {}
        return clip_audit.inputs(setting.profile, **few)
    planted = _is_planted(own)
    things = innocent_things("planted" if planted else "paper")
    return setting.folder.inputs(clip_audit.innocent_captions(things), planted)


def _captions(given: clip_audit.Inputs, head: str) -> pandas.DataFrame:
    """Return all captions: the taxonomy's (*use* ``word``), innocent ones, those of lists.

    By matching every caption is read beside every picture: of the taxonomy occupations alone.
    """
    words = given.words
    innocent = given.innocent
    if head == "matching":
        words, innocent = words[words["bias_type"] == QUOTED], innocent.head(30)
    parts = [words.assign(use="word"), innocent.assign(use="innocent")]
    for name, test, sets, kind in LISTS:
        chosen = stimuli.association_test(test, "word")
        for place, each in enumerate(sets):
            said = list(dict.fromkeys(getattr(chosen, each)))
            captions = [stimuli.caption(w, kind) if kind else f"a photo of {w}" for w in said]
            columns = {"word": said, "caption": captions, "bias_type": name, "kind": str(place)}
            parts.append(pandas.DataFrame(columns).assign(use="list"))
    columns = ["word", "caption", "bias_type", "kind", "use"]
    return pandas.concat(parts, ignore_index=True)[columns]


def _similarities(model: Any, head: str, shown: Any, texts: list[str], store: Any) -> np.ndarray:
    """Return the scores of captions (rows) and pictures."""
    unique = list(dict.fromkeys(texts))
    place = {text: at for at, text in enumerate(unique)}
    if head == "matching":
        rows = [unique] * len(shown)
        scores = selection.caption_scores(model, "matching", shown, rows, store).T
    else:
        text = clip_audit.embed_texts(model, unique, store)
        scores = text @ clip_audit.embed_images(model, shown, store).T
    return scores[[place[each] for each in texts]]


def _facet(
    scores, members: pandas.DataFrame, units, table, facet: str, n_resamples: int
) -> pandas.DataFrame:
    """Return C-ASC of every word and group, and a contrast of every pair of lists and group."""
    shown = members.iloc[:, :1] if members.shape[1] == 2 else members
    found = _c_asc(scores, shown.to_numpy(), units, n_resamples)
    n = len(np.unique(units))
    rows = []
    for column, group in enumerate(shown):
        value, low, high = (each[:, column] for each in found)
        things = nulls.reference_range(value[table["use"] == "innocent"])
        labels = {"level": facet, "group": str(group), "n": n, **things}
        for use, statistic in (("word", "c_asc"), ("list", "c_asc of a listed word")):
            words = table[table["use"] == use]
            at = words.index.to_numpy()
            columns = {"test": words["word"], "bias_type": words["bias_type"]}
            numbers = {"value": value[at], "low": low[at], "high": high[at]}
            part = pandas.DataFrame({**columns, "kind": words["kind"], **numbers})
            rows.append(part.assign(statistic=statistic, **labels))
        belongs = shown[group].to_numpy(bool)
        contrasts = pandas.DataFrame(_contrasts(scores, belongs, units, table, n_resamples))
        rows.append(contrasts.assign(level=facet, group=str(group)))
    return pandas.concat(rows, ignore_index=True)


def _contrasts(scores, belongs, units, table, n_resamples: int) -> list[dict[str, Any]]:
    rows = []
    for name, *_ in LISTS:
        sides = [
            scores[(table["bias_type"] == name) & (table["kind"] == side)] for side in ("0", "1")
        ]
        labels = {"test": name, "statistic": "difference of C-ASC"}
        rows.append(labels | nulls.portrait_contrast(*sides, belongs, units, n_resamples))
    return rows


def _c_asc(
    scores: np.ndarray, members: np.ndarray, units: Any, n_resamples: int
) -> tuple[np.ndarray, ...]:
    """Return C-ASC with bounds, (words, groups) each; units are drawn anew, the same for all."""
    if not n_resamples:
        value = caption_association.c_asc(scores, members)
        return value, np.full(value.shape, np.nan), np.full(value.shape, np.nan)
    return tuple(clip_audit.c_asc_intervals(scores, members, units, 1, n_resamples, 0))


# Study 4


def _chosen(own: OwnModel, setting: Setting, head: str):
    way = selection.ModelHead(own.given, head, True, own.registered, own.registered)
    given = selection.inputs(setting.profile)
    return given, selection.run([way], given, lambda _: own.model, setting.store)


def _selection(own: OwnModel, setting: Setting, asked: Any) -> pandas.DataFrame:
    given, found = asked
    rows = selection.selected(given)
    table = selection.selection_scores(found, rows, n_resamples=setting.n_resamples)
    (scored,) = found.scored.values()
    extra = _of_categories(given.part(rows), scored.original[rows], setting.n_resamples)
    table = table.merge(extra["mirrored"], on=["test", "statistic"], how="left")
    both = pandas.concat([table, extra["preference"]], ignore_index=True)
    names = {"study": selection.STUDY, "level": "images", "dataset": given.dataset}
    return _labelled(both, own, profile=setting.profile, seed=0, **names)


def _of_categories(
    given: selection.Inputs, scores: np.ndarray, n_resamples: int
) -> dict[str, pandas.DataFrame]:
    """Return beside vlbs the same mistake the other way round, and the preference of a caption."""
    table, anti = given.table, given.anti
    picked = np.argmax(scores, axis=1)
    preferences, mirrored = [], []
    for category in ["overall", *dict.fromkeys(table["category"])]:
        here = np.ones(len(table), bool) if category == "overall" else table["category"] == category
        here = np.asarray(here)
        right = here & ~anti
        if right.any():
            wrong = int((picked[right] == 1).sum())
            interval = inference.proportion_interval(wrong, int(right.sum()))
            bounds = {"null_low": 100 * interval.low, "null_high": 100 * interval.high}
            value = 100 * wrong / right.sum()
            mirrored.append({"test": category, "statistic": "vlbs", "mirrored": value, **bounds})
        if right.any() and (here & anti).any():
            margins, units = scores[here, 0] - scores[here, 1], table["triplet"][here]
            found = nulls.balanced_preference(margins, ~anti[here], units, n_resamples)
            preferences.append({"test": category, "statistic": "preference", **found})
    columns = ["test", "statistic", "mirrored", "null_low", "null_high"]
    return {
        "mirrored": pandas.DataFrame(mirrored, columns=columns),
        "preference": pandas.DataFrame(preferences),
    }


def _labelled(table: pandas.DataFrame, own: OwnModel, **labels: Any) -> pandas.DataFrame:
    named = {"model": own.model.name, "revision": own.model.revision}
    return table.assign(**named, **labels)


PARTS = (
    Part(
        *("ross2021", "association tests, text alone", EMBED),
        *(partial(_embedded, with_images=False), _associations),
    ),
    Part(
        *("ross2021", "association tests, with images", EMBED_WITH_IMAGES),
        *(partial(_embedded, with_images=True), _associations, "scenes"),
    ),
    Part(
        *("srinivasan2021", "masked words, caption alone", FILL),
        *(partial(_filled, with_images=False), partial(_masked, with_images=False)),
    ),
    Part(
        *("srinivasan2021", "masked words, with images", FILL_WITH_IMAGES),
        *(partial(_filled, with_images=True), partial(_masked, with_images=True), "scenes"),
    ),
    Part(
        *("hamidieh2023", "portraits by word", ENCODE),
        *(partial(_seen, head="contrastive"), _portraits, "portraits"),
    ),
    Part(
        *("hamidieh2023", "portraits by word, matching", MATCH),
        *(partial(_seen, head="matching"), _portraits, "portraits"),
        instead=ENCODE,
    ),
    Part(
        *("zhou2022", "captions by matching logit", MATCH),
        *(partial(_chosen, head="matching"), _selection, "scenes", "matching"),
    ),
    Part(
        *("zhou2022", "captions by cosine", ENCODE),
        *(partial(_chosen, head="contrastive"), _selection, "scenes", "contrastive"),
    ),
)
"""The parts of an audit, in the order of the studies.

:meta hide-value:
"""
