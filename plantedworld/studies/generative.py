r"""Which score of a generative model finds what is planted: studies 2 and 4 put to a tiny LLaVA.

A model that writes has no mask and no matching head. What it has is the probability of a text after
a picture and a prompt, and of that several scores can be made (:data:`SCORES`). Here each is put to
the same questions:

- study 2: how much more an entity goes with a woman than with a man, beside what is planted;
- study 4: how often the stereotypical caption of three is picked in an anti-stereotypical picture;
- what the prompt, the order of options and the lengths of captions do to the answers.

The statistics and the worlds of the verdict were set before a model of those worlds was trained:
see ``plantedworld/RECIPES.md``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import plantedworld
from biaslib import stimuli
from biaslib.metrics import caption_selection
from biaslib.models.generative import PROMPTS, Generative, Prompts
from biaslib.studies import study2_masked, study4_captions
from plantedworld import Scenes, agents_with_entities, blank
from plantedworld.models.prompts import ASKED
from plantedworld.studies import study4_captions as planted_captions
from plantedworld.studies.measures import mean_over_seeds
from plantedworld.studies.recovery import rank_within_signs

__all__ = [
    "SCORES",
    "VERDICT_WORLDS",
    "associations",
    "caption_scores",
    "everything",
    "finding",
    "lengths",
    "orders",
    "recorded",
    "recovery",
    "selection",
]

SCORES = {
    "total": "log-likelihood",
    "mean": "per token",
    "gain": "less no picture",
    "over grey": "less grey picture",
    "over white": "less white picture",
    "choice": "forced choice",
    "yes": "yes or no",
    "cloze": "completed sentence",
    "no picture": "no picture at all",
}
"""Scores of a caption, and what figures call them; the last is a stand-in that sees nothing."""

VERDICT_WORLDS = (2100, 2101, 2102)
"""Worlds of the verdict: nothing was tuned on them."""

DOSES = (0, 3)
PER_AGENT = 1
PICTURES = 30
DRAW = 2126
OPACITY = 0.5
"""How opaque the object of study 4 is drawn, as in the other models' verdict."""

RECORDED = Path(plantedworld.__file__).parent / "data" / "generative.parquet"
"""What the models of :data:`VERDICT_WORLDS` answered: see ``data/generative.md``."""


def caption_scores(
    model: Generative,
    images: Any,
    texts: Sequence[Sequence[str]],
    prompts: Prompts = PROMPTS,
    questions: bool = True,
) -> dict[str, np.ndarray]:
    """Return the scores of c captions of each of n images, (n, c) each.

    All of :data:`SCORES` but the completed sentence, which needs to be told where a word is.

    Parameters
    ----------
    model
        A generative model.
    images
        n images.
    texts
        n rows of c captions.
    prompts
        What the model is told.
    questions
        Whether it is asked for a choice and for yes or no.
    """
    asked = model.scored_by("total", prompts)
    seen = asked.log_likelihood(images, texts)
    said = sorted({text for row in texts for text in row})
    white = Scenes(blank())
    alone = {
        "no picture": asked.log_likelihood(white, [said], without="picture"),
        "over grey": asked.log_likelihood(white, [said], without="content"),
        "over white": asked.log_likelihood(white, [said]),
    }
    place = {text: at for at, text in enumerate(said)}
    rows = np.array([[place[text] for text in row] for row in texts])
    baseline = {name: found.total[0][rows] for name, found in alone.items()}
    found = {
        "total": seen.total,
        "mean": seen.mean,
        "gain": seen.total - baseline["no picture"],
        "over grey": seen.total - baseline["over grey"],
        "over white": seen.total - baseline["over white"],
        "no picture": baseline["no picture"],
    }
    if questions:
        found["choice"] = asked.choose(images, texts).log_p
        found["yes"] = asked.yes_no(images, texts)
    return found


# Study 2


def associations(
    model: Generative,
    seed: int,
    per_agent: int = PER_AGENT,
    prompts: Prompts = PROMPTS,
    split: str = "tune",
    questions: bool = True,
    completed: bool = True,
) -> pandas.DataFrame:
    r"""Return how much more each entity goes with women than with men, by every score.

    .. math:: B(E) = \overline{s(I_f, E_f) - s(I_f, N_f)} - \overline{s(I_m, E_m) - s(I_m, N_m)}

    with :math:`s(I_f, E_f)` the score of study 2's caption of a woman with the entity beside a
    picture of a woman that hides what she has, and N the entity of that world on which least is
    planted: a choice needs a second caption, and the other scores have it too.

    Returns
    -------
    pandas.DataFrame
        One row an entity and score: *item*, *score*, *value*; *planted*, the same of the exact
        log-probabilities of entities in the world of dose 3.
    """
    exact = _exact_log_odds(seed, split)
    neutral = exact.abs().idxmin()
    sentences = study2_masked.captions(stimuli.entities()).set_index("entity")["caption"]
    items = [each for each in exact.index if each != neutral]
    scenes = agents_with_entities(np.random.default_rng(DRAW), items, per_agent, "hidden", split)
    pairs = [
        [_filled(sentences[entity], gender, entity), _filled(sentences[neutral], gender, neutral)]
        for entity, gender in zip(scenes["entity"], scenes["gender"], strict=True)
    ]
    found = {
        name: each[:, 0] - each[:, 1]
        for name, each in caption_scores(model, scenes, pairs, prompts, questions).items()
    }
    if completed:
        asked = model.scored_by("total", prompts)
        found["cloze"] = _completed(asked, scenes, sentences, scenes["entity"]) - _completed(
            asked, scenes, sentences, [neutral] * len(scenes)
        )
    side = scenes["gender"].map({"woman": 1.0, "man": -1.0})
    rows = [
        pandas.DataFrame({"item": scenes["entity"], "score": name, "value": value * side})
        for name, value in found.items()
    ]
    table = pandas.concat(rows).groupby(["score", "item"], sort=False)["value"].mean() * 2
    planted = exact - exact[neutral]
    return table.reset_index().assign(planted=lambda each: each["item"].map(planted))


def _filled(sentence: str, agent: str, entity: str) -> str:
    return sentence.format(agent=agent).replace("[MASK]", entity)


def _completed(model: Generative, scenes, sentences, entities) -> np.ndarray:
    """Return the log-probability of each scene's entity and what follows, given what is before."""
    texts = [
        sentences[entity].format(agent=gender)
        for entity, gender in zip(entities, scenes["gender"], strict=True)
    ]
    shown = Scenes(scenes)
    return np.array(
        [
            model.mask_log_prob([text], [entity], shown.part([at]))[0, 0]
            for at, (text, entity) in enumerate(zip(texts, entities, strict=True))
        ]
    )


def _exact_log_odds(seed: int, split: str) -> pandas.Series:
    """Return log P(entity | woman) less log P(entity | man), both said and seen, at dose 3."""
    truth = plantedworld.world(3, seed).truth
    sentences = study2_masked.captions(stimuli.entities()).set_index("entity")["caption"]
    scenes = agents_with_entities(np.random.default_rng(DRAW), None, 1, "hidden", split)
    found = []
    for row, (entity, gender) in enumerate(zip(scenes["entity"], scenes["gender"], strict=True)):
        text = sentences[entity].format(agent=gender)
        found.append(truth.mask_log_prob([text], [entity], scenes.iloc[[row]])[0, 0])
    table = scenes[["entity", "gender"]].assign(log_p=found)
    wide = table.pivot(index="entity", columns="gender", values="log_p")
    return (wide["woman"] - wide["man"]).loc[stimuli.entities()["entity"]]


def recovery(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return how each score recovers what is planted: one row a score, prompt, dose and world.

    Returns
    -------
    pandas.DataFrame
        The keys that the table has; *n* entities; *slope* of the least-squares line of values on
        what is planted at dose 3, whatever the model's own dose, and *rank within signs*.
    """
    keys = [name for name in ("score", "prompt", "dose", "seed") if name in found]
    rows = []
    for key, part in found.groupby(keys, sort=False):
        value, planted = part["value"].to_numpy(), part["planted"].to_numpy()
        rows.append(
            dict(zip(keys, key, strict=True))
            | {
                "n": len(part),
                "slope": float(np.polyfit(planted, value, 1)[0]),
                "rank within signs": rank_within_signs(value, planted),
            }
        )
    return pandas.DataFrame(rows)


# Study 4


def selection(model: Generative, seed: int) -> pandas.DataFrame:
    """Return what each score picks of three captions, in per cent.

    Returns
    -------
    pandas.DataFrame
        One row a score: *score*; *vlbs*, the share of the stereotype in anti-stereotypical
        pictures; *vlrs*, that of captions that are not irrelevant there; *errors*, the share of the
        anti-stereotype in stereotypical pictures; *n* pictures of either kind.
    """
    table = {}
    for anti in (True, False):
        given, shown = planted_captions.faded_choices(OPACITY, seed, PICTURES, DRAW, anti=anti)
        texts = given.table[study4_captions.CAPTIONS].to_numpy().tolist()
        for name, scores in caption_scores(model, shown, texts).items():
            picked = 100 * caption_selection.picks(scores, "split", study4_captions.TOLERANCE)
            share = picked.mean(axis=0)
            row = table.setdefault(name, {"score": name, "n": len(given.table)})
            if anti:
                row |= {"vlbs": share[0], "vlrs": 100 - share[2]}
            else:
                row |= {"errors": share[1]}
    return pandas.DataFrame(table.values())


# Order and length


def orders(model: Generative, seed: int) -> dict:
    """Return what the order of options does to a choice among study 4's three captions.

    Returns
    -------
    dict
        ``places``, the mean share of each letter, (3,); ``changed``, the share of pictures whose
        picked caption is not the same in all six orders, in per cent; ``vlbs``, of each order
        alone, (6,).
    """
    given, shown = planted_captions.faded_choices(OPACITY, seed, PICTURES, DRAW)
    texts = given.table[study4_captions.CAPTIONS].to_numpy().tolist()
    choice = model.scored_by("choice", PROMPTS).choose(shown, texts)
    picked = choice.by_order.argmax(axis=2)
    return {
        "places": choice.by_place.mean(axis=0),
        "changed": 100 * float((picked != picked[:, :1]).any(axis=1).mean()),
        "vlbs": 100 * (picked == 0).mean(axis=0),
    }


def lengths(model: Generative, seed: int, n: int = PICTURES) -> pandas.DataFrame:
    """Return how often the right one of two captions of unequal length has the higher score.

    The picture shows an object in full. One caption is long, of a woman or a man with an object;
    the other is short, a photo of an object; the object of one of them is in the picture.

    Returns
    -------
    pandas.DataFrame
        One row a score: *right is long* and *right is short*, per cent right; *n* pictures.
    """
    given = planted_captions.choices(seed, 2 * n, "visible", DRAW)
    table = given.table[given.table["category"] == "gender"]
    table = table.groupby("label").head(n // 2)
    pair = study4_captions.PAIR
    shown = table["label"].to_numpy() == pair[0]
    there, other = _words_of(table, shown), _words_of(table, ~shown)
    longer = table[pair].to_numpy()
    captions = (
        np.where(shown, longer[:, 0], longer[:, 1]),
        np.where(shown, longer[:, 1], longer[:, 0]),
    )
    short = next(f for f in plantedworld.frames() if f.text == "a photo of {phrase}")
    images = given.images.part(table.index)
    found: dict[str, dict] = {}
    for name, rows in {
        "right is long": zip(captions[0], map(short.write, other), strict=True),
        "right is short": zip(map(short.write, there), captions[1], strict=True),
    }.items():
        scores = caption_scores(model, images, [list(row) for row in rows])
        for score, each in scores.items():
            right = 100 * float((each[:, 0] > each[:, 1]).mean())
            found.setdefault(score, {"score": score, "n": len(table)})[name] = right
    return pandas.DataFrame(found.values())


def _words_of(table: pandas.DataFrame, first: np.ndarray) -> list[str]:
    one, two = (table[f"{name} word"].to_numpy() for name in study4_captions.PAIR)
    return np.where(first, one, two).tolist()


# All worlds


def everything(model: Generative, seed: int, dose: float) -> pandas.DataFrame:
    """Return all answers of a model as one long table: see ``data/generative.md``.

    The prompts that models learned with are put to every question, the others to study 2 alone,
    where something is planted, and without completed sentences.
    """
    tables = [associations(model, seed).assign(prompt="trained")]
    if dose:
        short, new = ASKED["trained, short"], ASKED["untrained"]
        two = associations(model, seed, prompts=short, questions=False, completed=False)
        tables.append(two.assign(prompt="trained, short"))
        two = associations(model, seed, prompts=new, completed=False)
        tables.append(two.assign(prompt="untrained"))
    tables = [each.assign(question="study 2") for each in tables]
    others = {
        "study 4": selection(model, seed).melt(["score", "n"], var_name="item"),
        "order": _order_rows(orders(model, seed)),
        "length": lengths(model, seed).melt(["score", "n"], var_name="item"),
    }
    tables += [each.assign(question=name, prompt="trained") for name, each in others.items()]
    return pandas.concat(tables, ignore_index=True).assign(dose=float(dose), seed=seed)


def _order_rows(found: dict) -> pandas.DataFrame:
    items = {
        f"share of {letter}": each for letter, each in zip("ABC", found["places"], strict=True)
    }
    items |= {f"vlbs, order {at}": each for at, each in enumerate(found["vlbs"])}
    items["changed"] = found["changed"]
    return pandas.DataFrame({"item": items.keys(), "value": items.values(), "score": "choice"})


def recorded() -> pandas.DataFrame:
    """Return what the models of :data:`VERDICT_WORLDS` answered, as :func:`everything` has it.

    With *dose* and *seed*. Models of the first of them are shipped.
    """
    return pandas.read_parquet(RECORDED)


def finding(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return which scores find what is planted, by the statistics that were set before.

    Parameters
    ----------
    found
        Of :func:`recorded`.

    Returns
    -------
    pandas.DataFrame
        One row a score, of the prompts that models learned with. Of study 2: *slope*, *slope at
        dose 0*, their difference *more*, and *rank* within signs; of study 4: *rise*, vlbs at
        dose 3 less dose 0, less the same of errors. Each but the second with *low* and *high*,
        Student's interval of 95% over worlds. *finds*, *finds, study 4*: the verdicts.
    """
    trained = found[found["prompt"] == "trained"]
    two = recovery(trained[trained["question"] == "study 2"])
    four = trained[trained["question"] == "study 4"]
    rows = []
    for score in SCORES:
        of_score = two[two["score"] == score].pivot(
            index="seed", columns="dose", values=["slope", "rank within signs"]
        )
        slope, rank = of_score["slope"], of_score["rank within signs"][3]
        more = mean_over_seeds(slope[3] - slope[0])
        row = {"score": score, "slope at dose 0": slope[0].mean()}
        row |= _with_bounds("slope", mean_over_seeds(slope[3])) | _with_bounds("more", more)
        row |= _with_bounds("rank", mean_over_seeds(rank))
        row["finds"] = bool(row["more low"] > 0 and row["rank low"] > 0)
        picked = four[four["score"] == score]
        if len(picked):
            wide = picked.pivot(index="seed", columns=["item", "dose"], values="value")
            rise = wide["vlbs"][3] - wide["vlbs"][0] - (wide["errors"][3] - wide["errors"][0])
            row |= _with_bounds("rise", mean_over_seeds(rise))
            row["finds, study 4"] = bool(row["rise low"] > 0)
        rows.append(row)
    return pandas.DataFrame(rows)


def _with_bounds(name: str, found: dict[str, float]) -> dict[str, float]:
    return {name: found["mean"], f"{name} low": found["low"], f"{name} high": found["high"]}
