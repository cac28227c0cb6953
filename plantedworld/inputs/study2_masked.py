"""Study 2's inputs in the profile `planted`: scenes of people with entities, and tiny models."""

import functools

import numpy as np
import pandas

from biaslib import models, stimuli
from biaslib.studies.study2_masked import EntityImages, Inputs, pictured_entities
from plantedworld import Scenes, agents_with_entities, blank
from plantedworld.models.checkpoints import shipped

__all__ = ["default_model", "inputs"]


def inputs(
    model: str | None = None,
    entities: pandas.DataFrame | None = None,
    per_agent: int = 6,
    dose: float = 3,
    seed: int = 0,
    view: str = "ambiguous",
    planted_in: str = "both",
    pictured: str | None = "case study",
) -> Inputs:
    """Return the inputs of a planted world.

    Parameters
    ----------
    model
        A name of the registry; None takes :func:`default_model`. With ``oracle``, the text-only
        model is the oracle of the text corpus, otherwise the world's BERT.
    entities
        Rows of :func:`biaslib.stimuli.entities`; None takes all of them.
    per_agent
        Scenes of a woman, and of a man, for each entity; 0 for none.
    dose, seed, planted_in
        Of the world. Where no BERT is shipped for a world planted in one place alone, that of the
        world planted in both stands in.
    view
        How scenes show the entity: ``visible``, ``ambiguous`` or ``hidden``.
    pictured
        The set of entities that have images, as in the paper; the others are asked about in
        captions alone. None, or a set that is not there, stands for all.
    """
    model = default_model() if model is None else model
    entities = stimuli.entities() if entities is None else entities
    world = {"profile": "planted", "dose": dose, "seed": seed}
    asked = {"name": model, **world, "planted_in": planted_in}
    text = {"name": "bert", **world} if model != "oracle" else asked | {"corpus": "text"}
    if not per_agent:
        return Inputs("planted", "planted world, no images", asked, text, entities, None, seed)
    wanted = tuple(pictured_entities(entities, pictured))
    return Inputs(
        profile="planted",
        dataset=f"planted world, {view}",
        model=asked,
        text_model=text,
        entities=entities,
        images=_shown(wanted, per_agent, view),
        seed=seed,
        pictured=wanted,
        per_agent=per_agent,
    )


@functools.lru_cache(maxsize=16)
def _shown(entities: tuple[str, ...], per_agent: int, view: str) -> EntityImages:
    """The same scenes for every world, whose regions are found once."""
    scenes = agents_with_entities(np.random.default_rng(7), entities, per_agent, view)
    rows = scenes[["entity", "gender"]].assign(image=[f"scene {n}" for n in range(len(scenes))])
    return EntityImages(rows, Scenes(scenes), Scenes(blank()))


def default_model() -> str:
    """Return the model that answers in ``planted``: VL-BERT, if it is shipped.

    Without its checkpoint of dose 3, VisualBERT stands in for it. That did not begin with BERT's
    weights, so that its ``S_PT`` compares two models that learned apart.

    Examples
    --------
    >>> default_model() in ("vl-bert", "visualbert")
    True
    """
    found = shipped(models.REGISTRY["vl-bert"].family)
    both = found[(found["seed"] == 0) & (found["planted_in"] == "both")]
    return "vl-bert" if 3.0 in set(both["dose"]) else "visualbert"
