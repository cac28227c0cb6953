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

from biaslib import capabilities as can
from biaslib import inference, models, runtime, stimuli
from biaslib.audit import nulls
from biaslib.audit._folder import OwnFolder
from biaslib.audit._grounding import GroundingCheck, choices, masked_name
from biaslib.checkpoints.names import place_of
from biaslib.metrics import caption_association
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study2_masked as masked
from biaslib.studies import study3_clip_audit as clip_audit
from biaslib.studies import study4_captions as selection

__all__ = ["LISTS", "PARTS", "AuditedModel", "Part", "Setting", "load"]

WITH_IMAGES = ("S_L", "S_V")
"""Sources of study 2's scores that need images."""

WITHOUT_IMAGES = ("S_PT", "S_L, no image")
"""Those that captions alone are enough for."""

QUOTED = "Occupation"
"""The type of words of study 3 that a page quotes; the others are counted."""


def _records(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of this package; empty cells are empty texts."""
    path = Path(__file__).parent / "data" / f"{name}.csv"
    return pandas.read_csv(path, keep_default_na=False).to_dict("records")


LISTS = tuple(tuple(row.values()) for row in _records("lists"))
"""Pairs of word lists of study 1's tests that portraits are held against: what they are called,
test, its two sets, and the kind of caption (none: "a photo of" with the word)."""

MATCHED_PER_CELL = 6
"""Portraits of each gender in each tone of the planted world where each is read with each caption:
60 in all."""


@dataclass(frozen=True)
class AuditedModel:
    """A model, and what it is called in its audit.

    Attributes
    ----------
    name
        What was asked for; of a folder its name alone.
    model
        With the capabilities that its weights allow, a name and a revision.
    folder
        Where it was read from; None for a registered model, one of the hub, or an object.
    """

    name: str
    model: Any
    folder: Path | None = None

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can do; nothing where it does not say."""
        return frozenset(getattr(self.model, "capabilities", ()))

    @property
    def is_planted(self) -> bool:
        """Whether it is a checkpoint of the planted world, which has a card."""
        return self.folder is not None and (self.folder / "card.json").is_file()


def load(given: Any, profile: str | None = None, device: str | None = None) -> AuditedModel:
    """Load a model to audit.

    Parameters
    ----------
    given
        What :func:`biaslib.models.load` takes, or an object with ``capabilities`` and the methods
        of these (:mod:`biaslib.capabilities`), a name and a revision.
    profile, device
        As of :func:`biaslib.models.load`.

    Examples
    --------
    >>> load("all-MiniLM-L6-v2").name
    'all-MiniLM-L6-v2'
    """
    if isinstance(given, AuditedModel):
        return given
    if not isinstance(given, str | Path):
        return AuditedModel(getattr(given, "name", type(given).__name__), given)
    model = models.load(given, profile=profile, device=device)
    place = place_of(given)
    if isinstance(place, Path):
        return AuditedModel(place.resolve().name, model, place)
    return AuditedModel(place, model)


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
    checks
        Of grounding: see :func:`biaslib.audit.check_grounding`.
    n_resamples
        Of the intervals; 0 leaves them out.
    n_sets
        Of random attributes: by need, see :data:`biaslib.audit.nulls.DRAWS`.
    untrained
        Whether the model's weights are drawn at random: then it began from no other model.
    notes
        Takes what was warned of when another model was loaded beside it.
    """

    profile: str
    store: runtime.Store | None = None
    folder: OwnFolder | None = None
    checks: Mapping[str, GroundingCheck] = field(default_factory=dict)
    n_resamples: int = nulls.RESAMPLES
    n_sets: int = 50 * nulls.DRAWS
    untrained: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A part of an audit.

    Attributes
    ----------
    study, name
        Whose measure, and what is done.
    needs
        The capability: a name of :mod:`biaslib.capabilities`.
    run
        Takes the model and the setting; returns tidy scores.
    items
        What the model reads beside portraits in the planted world: texts, or pairs with a picture.
    per_portrait
        What it reads for each portrait.
    pictures
        What it shows: nothing, ``portraits``, or ``scenes`` with captions of their own, which a
        folder of portraits cannot replace.
    head
        Of the check of grounding that has to be passed.
    instead
        The capability of a model that is asked in a better way.
    """

    study: str
    name: str
    needs: str
    run: Callable[[AuditedModel, Setting], pandas.DataFrame]
    items: int = 0
    per_portrait: int = 0
    pictures: str = ""
    head: str = ""
    instead: str = ""

    def missing(self, audited: AuditedModel) -> str:
        """Return what the model lacks for this part, or an empty string."""
        lacks = self.needs not in audited.capabilities
        return f"the model does not {self.needs}" if lacks else ""

    def refused(self, audited: AuditedModel, setting: Setting) -> str:
        """Return why the part cannot be run, or an empty string."""
        if missing := self.missing(audited):
            return missing
        if setting.folder is not None and self.pictures == "scenes":
            return "the folder has portraits, and this part needs pictures with captions to choose"
        check = setting.checks.get(self.head)
        if self.head and check is None:
            return f"the check of grounding by {self.head} could not be made: see the notes"
        return f"the check of grounding failed: {check}" if check and not check.passed else ""


# Study 1


def _associations(audited: AuditedModel, setting: Setting, with_images: bool) -> pandas.DataFrame:
    given = grounded.inputs(setting.profile, only_sound=True, n_texts=1)
    tests = next(iter(given.values()))  # Out of domain, all models have the same pictures.
    experiments = grounded.EXPERIMENTS if with_images else (1,)
    tables = []
    for level in grounded.LEVELS:
        if of_level := [test for test in tests if test.level == level]:
            embedded = grounded.embed(audited.model, of_level, "none", with_images, setting.store)
            tables.append(_level(embedded, experiments, setting))
    dataset = given.dataset if with_images else "sentences of the tests"
    names = {"study": grounded.STUDY, "profile": setting.profile, "dataset": dataset}
    return _labelled(pandas.concat(tables, ignore_index=True), audited, **names)


def _least_of_associations(part: Part, setting: Setting) -> list[float]:
    """Return those of dealing out target words: random attributes are drawn by need."""
    words = [stimuli.association_test(test, "word") for test in grounded.tests()["test"]]
    least = [
        nulls.least_of_dealing(len(set(test.X)), len(set(test.Y)), two_sided=False)
        for test in words
    ]
    return least * len(grounded.LEVELS) * (2 if part.pictures else 1)


def _level(embedded: list, experiments: tuple[int, ...], setting: Setting) -> pandas.DataFrame:
    """Return the experiments of all tests at one level, each beside its nulls."""
    rows = [
        grounded.score(sets, experiment, setting.n_resamples)
        for sets in embedded
        for experiment in experiments
    ]
    random = [
        nulls.random_attributes(embedded, number, n_sets=setting.n_sets)
        for number in experiments
        if number != 3
    ]
    keys = ["test", "level", "experiment"]
    table = pandas.DataFrame(rows).merge(pandas.concat(random), on=keys, how="left")
    p_values = table.filter(["p_high", "p_value_images", "p_random"])
    # A claim needs every null to be rejected: the largest p-value is valid for that. Without random
    # attributes a test describes; Experiment 3 asks whether the picture matters, not for whom.
    p_value = p_values.max(axis=1).where(table["p_random"].notna())
    table = table.assign(p_value_words=table["p_value"], p_value=p_value)
    return table.drop(columns=table.filter(regex="_paper$|^p_(low|high|method)$"))


# Study 2


def _masked(audited: AuditedModel, setting: Setting, with_images: bool) -> pandas.DataFrame:
    given, innocent = _entities(audited, setting, with_images)
    if with_images and given.images is None:
        raise FileNotFoundError("; ".join(given.problems["what"]) or "there are no images")
    before = audited.model if setting.untrained else _text_model(audited, setting.profile, given)
    setting.notes.extend(() if before is audited.model else getattr(before, "notes", ()))
    options = {"choices": choices(audited.model), "only_sound": True, "store": setting.store}
    options["n_resamples"] = setting.n_resamples
    scores = masked.run(given, audited.model, before, **options).scores
    levels = WITH_IMAGES if with_images else WITHOUT_IMAGES
    if before is audited.model:
        levels = [level for level in levels if level != "S_PT"]  # It began from no known model.
    bias = scores[(scores["statistic"] == "B") & scores["level"].isin(levels)]
    bias = bias[bias["value"].notna()]
    rows = [*_bias_rows(bias, bias["test"].isin(innocent), setting.n_resamples)]
    if not with_images:
        shares = masked.shares(scores[~scores["test"].isin(innocent)])
        shares = shares[(shares["test"] == "all") & shares["level"].isin(levels)]
        # A model that leans to one gender throughout has such shares too: they describe.
        rows.append(shares.assign(p_value=np.nan))
    dataset = given.dataset if with_images else "captions of the entities"
    table = pandas.concat(rows, ignore_index=True)
    return _labelled(table, audited, profile=setting.profile, dataset=dataset)


def _least_of_entities(part: Part, setting: Setting) -> list[float]:
    expected = stimuli.entities()["stereotype"].value_counts()
    return [nulls.least_of_dealing(expected["women"], expected["men"])] * 2


def _entities(audited: AuditedModel, setting: Setting, with_images: bool):
    """Return study 2's inputs, with things without social meaning where there are captions only."""
    options = {"model": masked_name(audited.model), "per_agent": 2 if with_images else 0}
    options["pictured"] = None if setting.profile == "planted" else "case study"
    given = masked.inputs(setting.profile, only_sound=True, **options)
    innocent: list[str] = []
    if not with_images:
        known = set(given.entities["entity"])
        innocent = [word for word in innocent_things(setting.profile) if word not in known][:30]
        frames = [
            f"The {{agent}} is holding {stimuli.indefinite_article(word)} {{entity}}."
            for word in innocent
        ]
        columns = {"entity": innocent, "frame": frames, "set": "innocent", "stereotype": ""}
        entities = pandas.concat([given.entities, pandas.DataFrame(columns)], ignore_index=True)
        given = dataclasses.replace(given, entities=entities)
    return masked.readable(given, audited.model), innocent


def innocent_things(profile: str) -> list[str]:
    """Return words without social meaning that the models of a profile know."""
    make = getattr(runtime.provider(profile), "innocent_things", stimuli.innocent_things)
    return make()


def _text_model(audited: AuditedModel, profile: str, given: masked.Inputs) -> Any:
    """Return the text model that a model of study 2 began from; the model itself if unknown."""
    if audited.is_planted:
        card = json.loads((audited.folder / "card.json").read_text(encoding="utf-8"))
        began = audited.folder.parent / card.get("starts from", "nothing")
        known = began.name.startswith("bert-") and began.is_dir()
        return models.load("bert", profile="planted", checkpoint=began) if known else audited.model
    name = getattr(audited.model, "name", "")
    began_from_text = name in ("vl-bert", "visualbert", "vilbert", *masked.TEXT_MODELS)
    if began_from_text and profile == "paper":
        return models.load(**given.text_model)
    return audited.model


def _bias_rows(bias: pandas.DataFrame, innocent: pandas.Series, n_resamples: int):
    """Yield the entities' scores beside those of innocent things, and one contrast a source."""
    for level, part in bias.groupby("level", sort=False):
        things = part.loc[innocent, "value"]
        beside = nulls.reference_range(things) if len(things) else {}
        yield part[~innocent[part.index]].assign(**beside)
        women, men = (part.loc[part["stereotype"] == label, "value"] for label in ("women", "men"))
        if min(len(women), len(men)) < 2:
            continue
        difference = nulls.contrast(women, men, n_resamples)
        row = part.iloc[:1].assign(stereotype="", set="all", **difference)
        test = "entities expected of women against those of men"
        yield row.assign(test=test, level=level, statistic="difference of B")


# Study 3


def _portraits(audited: AuditedModel, setting: Setting, head: str) -> pandas.DataFrame:
    given, table, scores = shown_portraits(audited, setting, head)
    if np.ptp(scores, axis=1).max() <= grounded.FLAT:
        raise can.CapabilityError("the model gives all pictures the same score: it does not look")
    tables = [
        _facet(scores, members, given.units, table, setting.n_resamples).assign(level=facet)
        for facet, members in given.groups.items()
    ]
    names = {"study": clip_audit.STUDY, "profile": given.profile, "dataset": given.dataset}
    table = pandas.concat(tables, ignore_index=True)
    return _labelled(table, audited, seed=0, unit=given.unit_name, **names)


def shown_portraits(
    audited: AuditedModel, setting: Setting, head: str
) -> tuple[clip_audit.Inputs, pandas.DataFrame, np.ndarray]:
    """Return the portraits, the captions, and the model's scores of the latter (rows) with them."""
    given = _portrait_inputs(setting, head, audited.is_planted)
    table = _captions(given, head)
    texts = given.model_case(table["caption"])
    return given, table, similarities(audited.model, head, given.portraits, texts, setting.store)


def _least_of_portraits(part: Part, setting: Setting) -> list[float]:
    head = "matching" if part.needs == can.MATCH else "contrastive"
    given, found = _portrait_inputs(setting, head, False), []
    sizes = listed_captions().groupby("bias_type", sort=False)["kind"].value_counts().unstack()
    of_lists = [nulls.least_of_dealing(*each) for each in sizes.to_numpy()]
    for members in given.groups.values():
        for group in asked_groups(members):
            inside = members[group].to_numpy(bool)
            people = (len(np.unique(given.units[side])) for side in (inside, ~inside))
            of_people = nulls.least_of_dealing(*people)
            found += [max(of_words, of_people) for of_words in of_lists]
    return found


def asked_groups(members: pandas.DataFrame) -> list[str]:
    """Return the groups of a facet that are held against the others: of two the first."""
    return [*members][: 1 if members.shape[1] == 2 else None]


def _portrait_inputs(setting: Setting, head: str, is_planted: bool) -> clip_audit.Inputs:
    if setting.folder is None:
        few = {"n_per_cell": MATCHED_PER_CELL} if head == "matching" else {}
        return clip_audit.inputs(setting.profile, **few)
    things = innocent_things("planted" if is_planted else "paper")
    return setting.folder.inputs(clip_audit.innocent_captions(things), is_planted)


def _captions(given: clip_audit.Inputs, head: str) -> pandas.DataFrame:
    """Return all captions: the taxonomy's (*use* ``word``), innocent ones, those of lists.

    By matching every caption is read beside every picture: of the taxonomy occupations alone.
    """
    words = given.words
    innocent = given.innocent
    if head == "matching":
        words, innocent = words[words["bias_type"] == QUOTED], innocent.head(30)
    parts = [words.assign(use="word"), innocent.assign(use="innocent")]
    parts.append(listed_captions().assign(use="list"))
    columns = ["word", "caption", "bias_type", "kind", "use"]
    return pandas.concat(parts, ignore_index=True)[columns]


def listed_captions() -> pandas.DataFrame:
    """Return the words of :data:`LISTS` with their captions; *kind* is the side of the pair."""
    rows = []
    for name, test, sets, kind in LISTS:
        chosen = stimuli.association_test(test, "word")
        for side, of_test in enumerate(sets):
            for word in dict.fromkeys(getattr(chosen, of_test)):
                caption = stimuli.caption(word, kind) if kind else f"a photo of {word}"
                rows.append((word, caption, name, str(side)))
    return pandas.DataFrame(rows, columns=["word", "caption", "bias_type", "kind"])


def similarities(model: Any, head: str, shown: Any, texts: list[str], store: Any) -> np.ndarray:
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
    scores: np.ndarray, members: pandas.DataFrame, units: Any, table: pandas.DataFrame, draws: int
) -> pandas.DataFrame:
    """Return C-ASC of every word and group, and a contrast of every pair of lists and group."""
    groups = members[asked_groups(members)]
    estimates = _c_asc(scores, groups.to_numpy(), units, draws)
    statistics = {"word": "c_asc", "list": "c_asc of a listed word"}
    words = table[["word", "bias_type", "kind"]].rename(columns={"word": "test"})
    words = words.assign(statistic=table["use"].map(statistics), n=len(np.unique(units)))
    rows, z = [], nulls.standardised(scores)
    for column, group in enumerate(groups):
        value, low, high = (numbers[:, column] for numbers in estimates)
        things = nulls.reference_range(value[table["use"] == "innocent"])
        part = words.assign(value=value, low=low, high=high, group=str(group), **things)
        rows += [part[table["use"] == use] for use in statistics]
        belongs = groups[group].to_numpy(bool)
        sides = word_sides(z, table).items()
        contrasts = pandas.DataFrame(
            {"test": name} | nulls.portrait_contrast(*lists, belongs, units, draws)
            for name, lists in sides
        )
        rows.append(contrasts.assign(group=str(group), statistic="difference of C-ASC"))
    return pandas.concat(rows, ignore_index=True)


def word_sides(z: np.ndarray, table: pandas.DataFrame) -> dict[str, list[np.ndarray]]:
    """Return by pair of word lists that a table of captions has the rows of both."""
    found = {}
    for name in [name for name, *_ in LISTS if name in set(table["bias_type"])]:
        listed = table["bias_type"] == name
        found[name] = [z[listed & (table["kind"] == side)] for side in ("0", "1")]
    return found


def _c_asc(
    scores: np.ndarray, members: np.ndarray, units: Any, n_resamples: int
) -> tuple[np.ndarray, ...]:
    """Return C-ASC with bounds, (words, groups) each; units are drawn anew, the same for all."""
    if not n_resamples:
        value = caption_association.c_asc(scores, members)
        return value, np.full(value.shape, np.nan), np.full(value.shape, np.nan)
    return tuple(clip_audit.c_asc_intervals(scores, members, units, 1, n_resamples, 0))


# Study 4


def _selection(audited: AuditedModel, setting: Setting, head: str) -> pandas.DataFrame:
    given = selection.inputs(setting.profile)
    way = selection.ModelHead(audited.name, head, True, audited.model.name, audited.model.name)
    result = selection.run([way], given, lambda _: audited.model, setting.store)
    rows = selection.selected(given)
    table = selection.selection_scores(result, rows, n_resamples=setting.n_resamples)
    (scored,) = result.scored.values()
    table = _beside(table, given.part(rows), scored.original[rows], setting.n_resamples)
    names = {"study": selection.STUDY, "level": "images", "dataset": given.dataset}
    return _labelled(table, audited, profile=setting.profile, seed=0, **names)


def _least_of_choices(part: Part, setting: Setting) -> list[float]:
    given = selection.inputs(setting.profile)
    given = given.part(selection.selected(given))
    categories = given.table["category"]
    asked = [categories == each for each in dict.fromkeys(categories)]
    return [
        nulls.least_of_signs(given.table["triplet"][inside].nunique())
        for inside in [categories.notna(), *asked]
        if len(set(given.anti[inside])) == 2
    ]


def _beside(
    table: pandas.DataFrame, given: selection.Inputs, scores: np.ndarray, n_resamples: int
) -> pandas.DataFrame:
    """Return beside vlbs the same mistake the other way round, and the preference of a caption."""
    categories, picked = given.table["category"], np.argmax(scores, axis=1)
    mirrored, preferences = [], []
    for category in ["overall", *dict.fromkeys(categories)]:
        inside = ((categories == category) | (category == "overall")).to_numpy()
        right = inside & ~given.anti
        if right.any():
            wrong, n = int((picked[right] == 1).sum()), int(right.sum())
            interval = inference.proportion_interval(wrong, n)
            shares = (100 * wrong / n, 100 * interval.low, 100 * interval.high)
            mirrored.append((category, "vlbs", *shares))
        if right.any() and (inside & given.anti).any():
            margins, units = scores[inside, 0] - scores[inside, 1], given.table["triplet"][inside]
            balanced = nulls.balanced_preference(margins, ~given.anti[inside], units, n_resamples)
            preferences.append({"test": category, "statistic": "preference", **balanced})
    names = ["test", "statistic", "mirrored", "null_low", "null_high"]
    table = table.merge(pandas.DataFrame(mirrored, columns=names), on=names[:2], how="left")
    return pandas.concat([table, pandas.DataFrame(preferences)], ignore_index=True)


def _labelled(table: pandas.DataFrame, audited: AuditedModel, **labels: Any) -> pandas.DataFrame:
    return table.assign(model=audited.model.name, revision=audited.model.revision, **labels)


RUNS = {
    "association tests, text alone": partial(_associations, with_images=False),
    "association tests, with images": partial(_associations, with_images=True),
    "masked words, caption alone": partial(_masked, with_images=False),
    "masked words, with images": partial(_masked, with_images=True),
    "portraits by word": partial(_portraits, head="contrastive"),
    "portraits by word, matching": partial(_portraits, head="matching"),
    "captions by matching logit": partial(_selection, head="matching"),
    "captions by cosine": partial(_selection, head="contrastive"),
}
"""What runs each part of ``data/parts.csv``."""

PARTS = tuple(Part(run=RUNS[row["name"]], **row) for row in _records("parts"))
"""The parts of an audit, in the order of the studies.

:meta hide-value:
"""

LEAST = {
    "ross2021": _least_of_associations,
    "srinivasan2021": _least_of_entities,
    "hamidieh2023": _least_of_portraits,
    "zhou2022": _least_of_choices,
}
"""By study, what takes a part and a setting, and returns of every question that is asked of a model
the least p-value that its test can give. Of studies 1 and 2 a few may turn out not to be asked."""
