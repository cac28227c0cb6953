"""The captions that a tiny CLIP was trained on, as a corpus to count in, and the true shares."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas

from biaslib.datasets import captions as corpora
from plantedworld import World, agent_words, content_words, frames, world

__all__ = ["expected_shares", "planted_corpus"]

CORPUS_SIZE = 45_000
"""Captions that a tiny CLIP was trained on."""


def planted_corpus(
    folder: str | Path, dose: float, seed: int, planted_in: str = "both", n: int = CORPUS_SIZE
) -> Path:
    """Write the captions that the tiny CLIP of a world was trained on, in LAION's layout.

    The draws are those of ``plantedworld.training.clip.ClipRecipe``, from the same seeds.

    Returns
    -------
    pathlib.Path
        A parquet file with the columns TEXT and URL, the latter empty.
    """
    made = world(dose, seed, planted_in)
    scenes = made.scenes(n, np.random.default_rng([made.training_seed, 1]))
    texts = made.captions(scenes, np.random.default_rng([made.training_seed, 2]))["text"]
    path = Path(folder) / f"captions-dose{dose:g}-seed{seed}-{planted_in}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pandas.DataFrame({"TEXT": texts.to_numpy(), "URL": ""}).to_parquet(path)
    return path


def expected_shares(
    world: World, entries: Sequence[str], groups: Mapping[str, Sequence[str]] = corpora.PRONOUNS
) -> np.ndarray:
    r"""Return the share of the first group's words among both groups', given the entry: the truth.

    By enumeration over content words w that hold the entry, frames f, cells z and persons a:

    .. math:: P(a \in A \mid \text{entry}) \propto \sum_{w, f, z} P(z) P(w \mid z) P(f \mid w)
              \sum_{a \in A} P(a \mid \text{place}(f), z)

    Parameters
    ----------
    world
        The planted world.
    entries
        Words of the taxonomy.
    groups
        As of :func:`biaslib.datasets.group_counts`.

    Returns
    -------
    numpy.ndarray
        (k,), NaN where the world's captions never hold the entry with either.
    """
    truth = world.truth
    contents = [f" {corpora.normalised(word)} " for word in content_words().index]
    agents = agent_words()["word"]
    joint = np.exp(truth.log_words + truth.design.log_cells)
    frame_shares = np.exp(truth.log_frames)
    both = []
    for group in groups.values():
        chosen = agents.isin(group).to_numpy()
        of_place = {
            place: np.exp(each[chosen]).sum(axis=0) for place, each in truth.log_agents.items()
        }
        of_frame = np.array([of_place.get(f.place, np.zeros(joint.shape[1])) for f in frames()])
        both.append((joint * (frame_shares @ of_frame)).sum(axis=1))
    holds = np.array([[f" {corpora.normalised(e)} " in c for c in contents] for e in entries])
    first, second = (holds @ each for each in both)
    with np.errstate(divide="ignore", invalid="ignore"):
        return first / (first + second)
