"""Study 2 where the answer is known: every score beside its truth, the oracle's and a checkpoint's.

The truth of a score is the oracle's: the posterior by exact inference, asked with the same captions
and the same images and put through the same formulas. The planted log-odds, which no posterior
enters, stand beside it.
"""

import numpy as np
import pandas
from scipy import stats

import plantedworld
from biaslib import models, stimuli
from biaslib.runtime import progress
from biaslib.studies import study2_masked as study
from plantedworld.inputs.study2_masked import default_model, inputs
from plantedworld.models import checkpoints as planted_checkpoints
from plantedworld.studies.measures import means_over_seeds

__all__ = [
    "APART",
    "beside_truth",
    "kept_apart",
    "over_seeds",
    "over_worlds",
    "planted_log_odds",
    "recovery",
    "worlds",
]

APART = {"text": "S_L", "images": "S_V"}
"""Where a world is planted, and the score that should show it; the other one should not."""

TEXT_ONLY = ("S_PT", "S_L, text model")
"""Sources that need a text-only model of the same world."""

KEYS = ["model", "planted_in", "dose", "seed", "level"]


def worlds(model: str) -> pandas.DataFrame:
    """Return the worlds for which a model and a BERT are shipped: dose, seed, planted_in."""
    shipped = planted_checkpoints.shipped(models.REGISTRY[model].family)
    text = planted_checkpoints.shipped("bert")[["dose", "seed"]]
    return shipped.merge(text, on=["dose", "seed"])[["dose", "seed", "planted_in"]]


def planted_log_odds(entities: list[str], world: plantedworld.World) -> pandas.DataFrame:
    """Return what was planted on entities, women against men: one column a source.

    ``S_L``: given the caption's gender; ``S_V``: given the picture's; ``S_L, text model``: in the
    text corpus; ``S_PT``: captions less text corpus.

    Examples
    --------
    >>> planted_log_odds(["purse"], plantedworld.world(1, 0))["S_L"].round(2).tolist()
    [-0.82]
    """
    said = world.truth.log_ratio(entities, given="caption")
    text = world.text_truth.log_ratio(entities, given="caption")
    columns = {
        "S_PT": said - text,
        "S_L": said,
        "S_V": world.truth.log_ratio(entities, given="picture"),
        "S_L, no image": said,
        "S_L, text model": text,
    }
    return pandas.DataFrame(columns, index=pandas.Index(entities, name="test"))


def beside_truth(
    model: str,
    dose: float = 3,
    seed: int = 0,
    planted_in: str = "both",
    per_agent: int = 6,
    entities: pandas.DataFrame | None = None,
) -> pandas.DataFrame:
    """Return the bias scores of a checkpoint beside the oracle's and the planted log-odds.

    Parameters
    ----------
    model
        A name of the registry.
    dose, seed, planted_in, per_agent, entities
        As of :func:`plantedworld.inputs.study2_masked.inputs`, with hidden entities.

    Returns
    -------
    pandas.DataFrame
        One row an entity and source: *model*, *planted_in*, *dose*, *seed*, *level*, *test*;
        *value*, the checkpoint's B, with *low* and *high*; *oracle*; *planted*, the log-odds. In a
        world that is planted in one place alone, ``S_PT`` and the text-only model are left out: no
        text-only model is trained on it.

    Examples
    --------
    >>> found = beside_truth("visualbert", entities=stimuli.entities().head(2), per_agent=0)
    >>> found["level"].unique().tolist()
    ['S_PT', 'S_L, no image', 'S_L, text model']
    """
    entities = stimuli.entities() if entities is None else entities
    asked = {"entities": entities, "dose": dose, "seed": seed, "planted_in": planted_in}
    asked |= {"view": "hidden", "per_agent": per_agent, "pictured": None}
    scores = _bias(inputs(model, **asked))
    # Where nothing is planted, all of the oracle's scores are 0.
    exact = scores[["test", "level"]].assign(oracle=0.0)
    if dose:
        exact = _bias(inputs("oracle", **asked)).rename(columns={"value": "oracle"})
        exact = exact[["test", "level", "oracle"]]
    table = scores.merge(exact, on=["test", "level"], validate="1:1")
    log_odds = planted_log_odds(
        entities["entity"].tolist(), plantedworld.world(dose, seed, planted_in)
    )
    planted_rows = log_odds.stack().rename("planted").rename_axis(["test", "level"]).reset_index()
    table = table.merge(planted_rows, on=["test", "level"], validate="1:1")
    if planted_in != "both":
        table = table[~table["level"].isin(TEXT_ONLY)]
    labels = {"model": model, "planted_in": planted_in, "dose": float(dose), "seed": seed}
    return table.assign(**labels)[[*KEYS, "test", "value", "low", "high", "oracle", "planted"]]


def _bias(given: study.Inputs) -> pandas.DataFrame:
    results = study.run(given, *study.load_models(given), n_resamples=0)
    bias = results.scores.query("statistic == 'B'")
    return bias[["test", "level", "value", "low", "high"]]


def over_worlds(model: str | None = None, **settings) -> pandas.DataFrame:
    """Return :func:`beside_truth` of every checkpoint that is shipped, one below the other.

    Without a name: :func:`plantedworld.inputs.study2_masked.default_model`.

    Raises
    ------
    FileNotFoundError
        If no checkpoint of the model is shipped.
    """
    model = default_model() if model is None else model
    tables = [
        beside_truth(model, row.dose, row.seed, row.planted_in, **settings)
        for row in progress(list(worlds(model).itertuples()), f"worlds of {model}")
    ]
    if not tables:
        raise FileNotFoundError(
            f"no planted checkpoint of {model} is shipped; to train one, in a clone: python -m "
            f"plantedworld.training {models.REGISTRY[model].family} --dose 3 --seed 0"
        )
    return pandas.concat(tables, ignore_index=True)


def recovery(beside: pandas.DataFrame) -> pandas.DataFrame:
    """Return how a checkpoint recovers the truth: one row a world and source.

    Returns
    -------
    pandas.DataFrame
        The keys; *n* entities; *rank*, Spearman's correlation with the oracle's scores, and
        *slope*, that of the least-squares line on them (both empty where the oracle's are all the
        same, as at dose 0); *planted rank* and *planted slope*, the same with the planted log-odds;
        *signs*, the share with the oracle's sign; *spread* and *oracle spread*, root mean squares.
    """
    rows = [
        dict(zip(KEYS, key, strict=True)) | _recovered(group)
        for key, group in beside.groupby(KEYS, sort=False)
    ]
    return pandas.DataFrame(rows)


def _recovered(group: pandas.DataFrame) -> dict[str, float]:
    value, oracle, log_odds = (group[name].to_numpy() for name in ("value", "oracle", "planted"))
    rank, slope = _line(value, oracle)
    planted_rank, planted_slope = _line(value, log_odds)
    return {
        "n": len(group),
        "rank": rank,
        "slope": slope,
        "planted rank": planted_rank,
        "planted slope": planted_slope,
        "signs": float(np.mean(np.sign(value) == np.sign(oracle))) if rank == rank else np.nan,
        "spread": float(np.sqrt(np.mean(value**2))),
        "oracle spread": float(np.sqrt(np.mean(oracle**2))),
    }


def _line(value: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return rank correlation and slope; neither where the truth does not vary."""
    if min(np.ptp(truth), np.ptp(value)) < 1e-6:
        return np.nan, np.nan
    return float(stats.spearmanr(value, truth).statistic), float(np.polyfit(truth, value, 1)[0])


def over_seeds(recovered: pandas.DataFrame, dose: float = 3) -> pandas.DataFrame:
    """Return rank correlation and slope of every score: means over seeds with 95% intervals.

    Returns
    -------
    pandas.DataFrame
        One row a score: *level*; *mean*, *low*, *high* of the rank correlation over *n* seeds;
        *slope* with *slope low* and *slope high*.
    """
    both = recovered[(recovered["planted_in"] == "both") & (recovered["dose"] == dose)]
    table, slopes = (means_over_seeds(both, ["level"], name) for name in ("rank", "slope"))
    table[["slope", "slope low", "slope high"]] = slopes[["mean", "low", "high"]]
    return table


def kept_apart(recovered: pandas.DataFrame, dose: float = 3) -> pandas.DataFrame:
    """Return how large each score is in worlds planted in one place alone, and what it should be.

    Returns
    -------
    pandas.DataFrame
        One row a world and score of ``S_L``, ``S_V``: *planted_in*, *level*, *seed*; *spread* and
        *oracle spread*; *rank* and *slope*, where the oracle's scores vary; *leak*, the spread as a
        share of the spread of the score that should show it.
    """
    whole = recovered[(recovered["dose"] == dose) & recovered["level"].isin(APART.values())]
    kept = whole[whole["planted_in"].isin(APART)]
    shown = kept[kept["level"] == kept["planted_in"].map(APART)]
    size = shown.set_index(["planted_in", "seed"])["spread"]
    keys = pandas.MultiIndex.from_frame(kept[["planted_in", "seed"]])
    columns = ["planted_in", "level", "seed", "n", "spread", "oracle spread", "rank", "slope"]
    return kept[columns].assign(leak=kept["spread"].to_numpy() / size.reindex(keys).to_numpy())
