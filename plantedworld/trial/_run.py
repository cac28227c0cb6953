"""Train and score the trial's models, one after the other: resumable, a few at once."""

import concurrent.futures
import json
import multiprocessing
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pandas

from biaslib.runtime import file_sha256, note_files, progress
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint_name
from plantedworld.trial._design import SHARED, models_to_train, world_seeds

DATA = Path(__file__).parents[1] / "data" / "trial"
"""Where the collected scores lie, and ``protocol.json``: hashes, and the commit that drew them."""

PROTOCOL = DATA / "protocol.json"
SCORES, CARDS = "scores.parquet", "models.csv"
CARD = ["family", "dose", "seed", "sample", "sha256", "scores_sha256", "minutes", "torch", "start"]
"""Columns of the table of models; *start*, the weights of the BERT that a VL-BERT started from."""

DIGITS = 6


class TrialError(RuntimeError):
    """What the trial finds is not what its protocol fixed; the message says what."""


def check_shared(hashes: dict[str, str], folder: Path = CHECKPOINTS) -> None:
    """Check that the checkpoints that others start from are those of the protocol.

    Raises
    ------
    TrialError
        If one is missing, or has other weights.
    """
    for name in SHARED:
        files = sorted((folder / name).glob("*.safetensors"))
        if not files:
            raise TrialError(f"the trial needs {name}, which is not in {folder}")
        found = file_sha256(files[0])
        if found != hashes.get(name):
            raise TrialError(
                f"{name} has other weights than the protocol says: {found[:12]}, not "
                f"{str(hashes.get(name))[:12]}"
            )


def run(
    wanted: pandas.DataFrame, folder: Path, processes: int = 2, minutes: float | None = None
) -> None:
    """Train and score what is not there yet.

    Parameters
    ----------
    wanted
        Of :func:`plantedworld.trial.models_to_train`: a model stands after those that it starts
        from.
    folder
        Where checkpoints and scores go; an interrupted training goes on there.
    processes
        How many at once, one core each.
    minutes
        After these no further model is begun; None goes on to the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHARED:
        if not (folder / name).exists():
            shutil.copytree(CHECKPOINTS / name, folder / name)
    rows = [row for row in wanted.itertuples(index=False, name=None) if not _done(folder, row)]
    until = time.monotonic() + 60 * minutes if minutes is not None else None
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        tasks = [pool.submit(_one, row, folder, until) for row in rows]
        for task in progress(concurrent.futures.as_completed(tasks), "trial", len(tasks)):
            task.result()


def _one(row: tuple, folder: Path, until: float | None) -> None:
    """Train one model and write its scores."""
    import torch

    from plantedworld.training import make_checkpoint
    from plantedworld.trial._scores import score

    torch.set_num_threads(1)
    if until is not None and time.monotonic() > until:
        return
    family, dose, seed, sample = row
    for each in (("bert", *row[1:]), row) if family == "vl_bert" else (row,):
        path = folder / checkpoint_name(*each[:3], sample=each[3])
        if not (path / "card.json").is_file():
            make_checkpoint(*each[:3], folder=folder, sample=each[3])
    path = _scores_path(folder, row)
    path.parent.mkdir(exist_ok=True)
    found = score(family, dose, seed, sample, folder)
    numbers = found.select_dtypes("number").columns
    found[numbers] = found[numbers].round(DIGITS)
    fresh = path.with_suffix(".new")
    found.to_parquet(fresh, index=False)
    fresh.replace(path)


def _scores_path(folder: Path, row: Sequence) -> Path:
    family, dose, seed, sample = row
    return folder / "scores" / f"{checkpoint_name(family, dose, seed, sample=sample)}.parquet"


def _done(folder: Path, row: Sequence) -> bool:
    return _scores_path(folder, row).is_file()


def wanted_models() -> pandas.DataFrame:
    """Return the models of the trial: :func:`plantedworld.trial.models_to_train` of its worlds.

    Raises
    ------
    TrialError
        If the protocol names no commit yet, so that no world is drawn.
    """
    commit = json.loads(PROTOCOL.read_text(encoding="utf-8"))["commit"]
    if not commit:
        raise TrialError("the protocol names no commit yet, so that no world is drawn")
    return models_to_train(world_seeds(commit))


def collect(wanted: pandas.DataFrame, folder: Path, into: Path) -> tuple[int, int]:
    """Put the scores of all models that are there into one file, with a table of the models.

    Models that an earlier call collected stay as they are.

    Returns
    -------
    tuple of int
        How many models are collected, and how many are wanted.

    Raises
    ------
    TrialError
        If a model was collected before with other scores.
    """
    into.mkdir(parents=True, exist_ok=True)
    keys = ["family", "dose", "seed", "sample"]
    scores, cards = collected(into)
    known = {tuple(each) for each in cards[keys].itertuples(index=False)}
    tables, rows = [scores], [cards]
    for row in wanted.itertuples(index=False, name=None):
        path = _scores_path(folder, row)
        if not path.is_file():
            continue
        found = file_sha256(path)
        if row in known:
            before = cards.set_index(keys).loc[row, "scores_sha256"]
            if before != found:
                raise TrialError(f"{path.stem} was scored before, and otherwise: run it once")
            continue
        card = _card(folder, row)
        start = _card(folder, ("bert", *row[1:]))["sha256"] if row[0] == "vl_bert" else "-"
        told = (*row, card["sha256"], found, card["minutes"], card["torch"], start)
        rows.append(pandas.DataFrame([told], columns=CARD))
        tables.append(pandas.read_parquet(path).assign(family=row[0]))
    every = pandas.concat([each for each in rows if len(each)], ignore_index=True)
    pandas.concat([each for each in tables if len(each)], ignore_index=True).to_parquet(
        into / SCORES, index=False, compression="zstd"
    )
    every.astype({"dose": float}).to_csv(into / CARDS, index=False)
    return len(every), len(wanted)


def other_starts(cards: pandas.DataFrame) -> list[str]:
    """Return the VL-BERTs that did not start from the BERT whose scores were collected."""
    own = cards[cards["family"] == "bert"].set_index(["dose", "seed", "sample"])["sha256"]
    return [
        checkpoint_name(row.family, row.dose, row.seed, sample=row.sample)
        for row in cards[cards["family"] == "vl_bert"].itertuples()
        if own.get((row.dose, row.seed, row.sample), row.start) != row.start
    ]


def _card(folder: Path, row: Sequence) -> dict:
    path = folder / checkpoint_name(*row[:3], sample=row[3]) / "card.json"
    return json.loads(path.read_text(encoding="utf-8"))


def collected(into: Path = DATA) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Return the scores and the models that were collected, both empty before the first time.

    Scores: see :func:`plantedworld.trial.score`. Models: *family*, *dose*, *seed*, *sample*, hashes
    of weights and scores, *minutes*, *torch*.
    """
    note_files(into / "*")
    if not (into / CARDS).is_file():
        return pandas.DataFrame(), pandas.DataFrame(columns=CARD)
    return pandas.read_parquet(into / SCORES), pandas.read_csv(
        into / CARDS, converters={"start": str}
    )
