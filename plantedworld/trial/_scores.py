"""What a model of the trial is asked: one row a word, test or picture, beside the truth."""

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import stats

import plantedworld
from biaslib import models, stimuli
from biaslib.studies import study1_grounded
from biaslib.studies.study4_captions import WAYS
from plantedworld import World
from plantedworld._words import counted
from plantedworld.inputs.study1_grounded import planted_signs, planted_stimuli
from plantedworld.models.checkpoints import checkpoint_name
from plantedworld.models.oracle import Oracle
from plantedworld.studies import measures, study2_masked, study4_captions
from plantedworld.trial._design import DRAW, LAYOUTS, OPACITY, PER_AGENT, PICTURES

SIMILARITIES = {"logit": "difference", "c_asc": "C-ASC", "top_k": "top k"}
"""The measures of study 3, by their keys in the study of measures."""

A_DRAWING = LAYOUTS * len(plantedworld.TONES)
"""Portraits of one drawing."""

COLUMNS = [
    *("measure", "model", "dose", "seed", "sample", "item", "slot", "value", "truth", "planted"),
    *("label", "sampled", "blind", "dealt", "p_portraits", "p_drawings"),
]
"""What every row has: see :func:`score`."""


def score(
    family: str, dose: float, seed: int, sample: int, folder: Path, split: str = "test"
) -> pandas.DataFrame:
    """Return what a trained model of the trial says.

    Parameters
    ----------
    family, dose, seed, sample
        Which model.
    folder
        Where its folder lies, and those of the models that it is scored with.
    split
        Whose drawings: ``"test"`` in the trial, and in nothing else.

    Returns
    -------
    pandas.DataFrame
        One row an item. *measure*; *model*, the family, or the name of a way of study 4; *dose*,
        *seed*, *sample*; *item*, a word, a test or a picture, and its *slot*; *value*; *truth*, and
        *planted*, that of dose 1; *label*, 1 or -1 where the papers' lists give the word to women
        or to men; *sampled*, the association in the model's own corpus; *blind*, the value without
        a picture, of S_PT that of the text-only model; *dealt*, that with the portraits' groups
        dealt anew; *p_portraits* and *p_drawings*, two-sided p-values of Welch's test of the
        similarities with portraits and with drawings as units. What a measure does not have is
        missing.
    """
    name = checkpoint_name(family, dose, seed, sample=sample)
    model = models.load(
        family.replace("_", "-"), profile="planted", checkpoint=folder / name, device="cpu"
    )
    world = plantedworld.world(dose, seed, sample=sample)
    tables = [ask(model, world, folder, split) for ask in ASKED[family]]
    table = pandas.concat(tables, ignore_index=True)
    labels = {"dose": float(dose), "seed": seed, "sample": sample}
    if "model" not in table:
        table["model"] = family
    table = table.assign(**labels, model=table["model"].fillna(family))
    return table.reindex(columns=COLUMNS)


def _masked(model: Any, world: World, folder: Path, split: str) -> pandas.DataFrame:
    """B(E) of study 2 without a picture."""
    table = measures.masked_scores(model, world.dose, world.seed)
    # Only here: a page that shows the trial does not depend on recipes.
    from plantedworld.training.bert import BertRecipe

    corpus = BertRecipe(world).captions.table
    agents = plantedworld.agent_words().set_index("word")["gender"]
    said = corpus["agent"].map(agents).fillna("")
    named = corpus[said != ""]
    found = _of_words(table, _counted_in(named["content"], said[said != ""]))
    control = _named_control(model)
    return pandas.concat([found, control], ignore_index=True).assign(measure="B(E)")


def _named_control(model: Any) -> pandas.DataFrame:
    """Return how much more "woman" follows names of women than of men, and "man" the other way.

    In every world, at every dose, the words for a person in one caption agree in gender.
    """
    agents = plantedworld.agent_words()
    names = agents[(agents["kind"] == "name") & (agents["gender"] != "")]
    texts = [f"{name} is a [MASK]." for name in names["word"]]
    log_p = model.mask_log_prob(texts, list(plantedworld.GENDERS))
    women = (names["gender"] == "woman").to_numpy()
    gaps = log_p[women].mean(axis=0) - log_p[~women].mean(axis=0)
    values = gaps * np.array([1.0, -1.0])
    return pandas.DataFrame({"item": plantedworld.GENDERS, "value": values, "slot": "control"})


def _similar(model: Any, world: World, folder: Path, split: str) -> pandas.DataFrame:
    """The measures of study 3, on portraits whose drawings nothing was chosen by."""
    scenes, drawing = portraits(split)
    words = measures.words()
    texts = model.encode_text(words["caption"].tolist()).astype(float)
    similarities = texts @ model.encode_image(plantedworld.Scenes(scenes)).T
    women = (scenes["gender"] == "woman").to_numpy()
    dealt = _dealt(women, drawing, world)
    found = measures.similarity_scores(similarities, model.scale, women)
    anew = measures.similarity_scores(similarities, model.scale, dealt)
    from plantedworld.training.clip import ClipRecipe

    recipe = ClipRecipe(world, folder)
    rng = np.random.default_rng([world.training_seed, 2])
    captions = world.captions(recipe.scenes, rng)
    base = measures._with_truth(words, world.dose, world.seed)
    names = model.encode_text([f"a photo of a {gender}" for gender in plantedworld.GENDERS])
    control = names.astype(float) @ model.encode_image(plantedworld.Scenes(scenes)).T
    sampled = _counted_in(captions["content"], recipe.scenes["gender"])
    tables = [_control(control, model.scale, women, dealt)]
    for key, name in SIMILARITIES.items():
        rows = base.assign(value=found[key], dealt=anew[key])
        if key == "logit":
            rows = rows.assign(**_p_values(similarities, women, drawing))
        tables.append(_of_words(rows, sampled).assign(measure=name))
    return pandas.concat(tables, ignore_index=True)


def _control(
    similarities: np.ndarray, scale: float, women: np.ndarray, dealt: np.ndarray
) -> pandas.DataFrame:
    """Return how much more "a photo of a woman" fits women, and "... a man" men: both above 0."""
    sides = np.array([1.0, -1.0])
    value, anew = (
        sides * measures.similarity_scores(similarities, scale, who)["logit"]
        for who in (women, dealt)
    )
    table = pandas.DataFrame({"item": plantedworld.GENDERS, "value": value, "dealt": anew})
    return table.assign(measure="difference", slot="control")


@functools.cache
def portraits(split: str) -> tuple[pandas.DataFrame, np.ndarray]:
    """Return the trial's portraits, all of adults, and the number of each one's drawing.

    A drawing is a look of one gender: its five tones are one drawing in other colours.
    """
    rows = itertools.product(
        plantedworld.looks(split), plantedworld.GENDERS, plantedworld.TONES, range(LAYOUTS)
    )
    table = pandas.DataFrame(rows, columns=["look", "gender", "tone", "layout"])
    drawing = np.arange(len(table)) // A_DRAWING
    layouts = np.random.default_rng(DRAW).integers(0, 2**31, size=len(table))
    fixed = {"person": True, "age": "adult", "role": "", "object": "", "role_shown": False}
    fixed |= {"gender_shown": True, "object_view": "hidden"}
    return table.assign(layout=layouts, **fixed), drawing


def _dealt(women: np.ndarray, drawing: np.ndarray, world: World) -> np.ndarray:
    """Deal the genders to the drawings anew: portraits of one drawing keep together."""
    rng = np.random.default_rng([world.training_seed, DRAW])
    return rng.permutation(women[::A_DRAWING])[drawing]


def _p_values(
    similarities: np.ndarray, women: np.ndarray, drawing: np.ndarray
) -> dict[str, np.ndarray]:
    """Welch's tests of women against men, with portraits and with drawings as units."""
    of_drawings = similarities.reshape(len(similarities), -1, A_DRAWING).mean(axis=2)
    units = {"p_portraits": (similarities, women), "p_drawings": (of_drawings, women[::A_DRAWING])}
    return {
        name: stats.ttest_ind(x[:, who], x[:, ~who], axis=1, equal_var=False).pvalue
        for name, (x, who) in units.items()
    }


def _of_words(table: pandas.DataFrame, sampled: pandas.Series) -> pandas.DataFrame:
    """Name the columns of a table of words, and leave out words that are the same in all worlds."""
    table = table[~table["word"].isin(counted().index)].drop(
        columns=["measure", "model"], errors="ignore"
    )
    found = table.rename(columns={"word": "item"})
    return found.assign(
        label=found["item"].map(labels_of_words()), sampled=found["item"].map(sampled)
    )


def _counted_in(words: pandas.Series, gender: pandas.Series) -> pandas.Series:
    """Return the log ratio of a word's counts with women and men, half a count added."""
    counts = pandas.crosstab(words.to_numpy(), gender.to_numpy()) + 0.5
    ratio = np.log(counts["woman"] / counts["man"])
    return ratio - np.log((gender == "woman").sum() / (gender == "man").sum())


@functools.cache
def labels_of_words() -> dict[str, float]:
    """Return whom the papers' lists give a word to: 1 women, -1 men."""
    entities = stimuli.entities()
    found = dict(
        zip(entities["entity"], 2.0 * (entities["stereotype"] == "women") - 1, strict=True)
    )
    sets = stimuli.word_frame().merge(plantedworld.planted_sets(), on="set")
    sets = sets[sets["gender"] != 0].drop_duplicates("word")
    return found | dict(zip(sets["word"].str.lower(), sets["gender"].astype(float), strict=True))


def _with_pictures(model: Any, world: World, folder: Path, split: str) -> pandas.DataFrame:
    """S_PT, S_L and S_V of study 2, with the object hidden."""
    before = folder / checkpoint_name("bert", world.dose, world.seed, sample=world.sample)
    text = models.load("bert", profile="planted", checkpoint=before, device="cpu")
    asked = {"view": "hidden", "per_agent": PER_AGENT, "split": split, "draw": DRAW}
    found = study2_masked.beside_truth(
        model.name, world.dose, world.seed, loaded=(model, text), **asked
    )
    unit = study2_masked.exact_scores(dose=1.0, seed=world.seed, pictured=None, **asked)
    unit = unit.rename(columns={"oracle": "unit"})
    table = found.merge(unit, on=["test", "level"], validate="1:1")
    scores = table.pivot(index="test", columns="level", values="value")
    blind = [
        scores.at[row.test, "S_L, text model" if row.level == "S_PT" else "S_L, no image"]
        for row in table.itertuples()
    ]
    return pandas.DataFrame(
        {
            "measure": table["level"],
            "item": table["test"],
            "slot": "object",
            "value": table["value"],
            "truth": table["oracle"],
            "planted": table["unit"],
            "label": table["test"].map(labels_of_words()),
            "blind": blind,
        }
    )


def _grounded(model: Any, world: World, folder: Path, split: str) -> pandas.DataFrame:
    """Effect sizes of Experiment 1, at three levels."""
    every = planted_stimuli(seed=DRAW, split=split)
    labels = {"profile": "planted", "dataset": "planted scenes"}
    rows = study1_grounded.run(model, every, (1,), labels=labels, n_bootstrap=0)
    signs = planted_signs(world.seed).set_index("test")["sign"].astype(float)
    planted = rows["test"].map(signs)
    return pandas.DataFrame(
        {
            "measure": "d, " + rows["level"],
            "item": rows["test"],
            "slot": "test",
            "value": rows["value"],
            "truth": planted * (world.dose > 0),
            "planted": planted,
            "label": 1.0,
            "p_portraits": rows["p_value"],
        }
    )


def _captions(model: Any, world: World, folder: Path, split: str) -> pandas.DataFrame:
    """vlbs and vlrs of study 4, picture by picture, with half transparent objects.

    Of stereotypical pictures, ``errors`` is the share of the anti-stereotype: how often a model is
    wrong there, where no bias draws it.
    """
    family = model.name.replace("-", "_")
    tables = []
    for way in (way for way in WAYS if way.planted == family and way.head != "unimodal"):
        for anti in (True, False):
            given, shown = _choices(world.seed, split, anti)
            found = study4_captions.picks(model, way.head, given, shown)
            asked = {"vlbs": "vlbs", "vlrs": "vlrs"} if anti else {"errors": "anti"}
            items = [f"picture {row}" for row in range(len(found))]
            tables += [
                pandas.DataFrame({"measure": name, "item": items, "slot": "picture"}).assign(
                    value=found[column], model=f"{way.label}, {way.head}"
                )
                for name, column in asked.items()
            ]
    return pandas.concat(tables, ignore_index=True)


@functools.lru_cache(maxsize=4)
def _choices(seed: int, split: str, anti: bool):
    return study4_captions.faded_choices(OPACITY, seed, PICTURES, DRAW, split, anti)


def oracle_scores(dose: float, seed: int, split: str = "test") -> pandas.DataFrame:
    """Return what the oracle says of one world, as rows of the models that it stands for.

    Parameters
    ----------
    dose, seed
        Of the world.
    split
        Whose drawings.
    """
    world = plantedworld.world(dose, seed)
    scenes, _ = portraits(split)
    words = measures.words()
    oracle = Oracle(world, scenes=scenes)
    exact = oracle.encode_text(words["caption"].tolist()) @ oracle.encode_image(scenes).T
    found = measures.similarity_scores(exact, 1.0, (scenes["gender"] == "woman").to_numpy())
    base = measures._with_truth(words, dose, seed)
    none = pandas.Series(dtype=float)
    tables = [
        _of_words(base.assign(value=found[key]), none).assign(measure=name, model="clip")
        for key, name in SIMILARITIES.items()
    ]
    masked = measures.masked_scores(Oracle(world, corpus="text"), dose, seed)
    tables.append(_of_words(masked, none).assign(measure="B(E)", model="bert"))
    table = pandas.concat(tables, ignore_index=True).assign(dose=float(dose), seed=seed, sample=0)
    return table.reindex(columns=COLUMNS)


ASKED: dict[str, tuple[Callable[[Any, World, Path, str], pandas.DataFrame], ...]] = {
    "bert": (_masked,),
    "clip": (_similar, _captions),
    "vl_bert": (_with_pictures, _grounded),
    "visualbert": (_grounded, _captions),
    "vilbert": (_grounded,),
    "lxmert": (_grounded, _captions),
    "vilt": (_captions,),
    "albef": (_captions,),
    "flava": (_captions,),
}
"""What each family is asked."""
