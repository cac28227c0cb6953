"""Train and score the trial's models, one after the other: resumable, a few at once."""

import concurrent.futures
import json
import multiprocessing
import platform
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pandas

from biaslib.runtime import file_sha256, note_files, progress
from plantedworld._seeds import world_seeds
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint_name
from plantedworld.trial._design import SHARED, models_to_train

DATA = Path(__file__).parents[1] / "data" / "trial"
"""Where the collected scores lie, and ``protocol.json``: hashes, and the commit that drew them."""

PROTOCOL = DATA / "protocol.json"
SCORES, CARDS = "scores.parquet", "models.csv"
CARD = [
    *("family", "dose", "seed", "sample", "sha256", "scores_sha256", "minutes", "torch"),
    *("resumed", "processor", "start"),
]
"""Columns of the table of models; *resumed*, whether its training broke off and went on; *start*,
the weights of the BERT that a VL-BERT started from."""

DIGITS = 6
UNIQUE = ["measure", "model", "dose", "seed", "sample", "item"]
ROOT = Path(__file__).parents[2]
CODE = ("biaslib", "plantedworld", ":!plantedworld/data/trial", ":!plantedworld/report")
"""What may not change between the draw and the run."""


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
    wanted: pandas.DataFrame,
    folder: Path,
    hashes: dict[str, str],
    processes: int = 2,
    minutes: float | None = None,
) -> list[str]:
    """Train and score what is not there yet; return what failed, a line a model.

    Parameters
    ----------
    wanted
        Of :func:`plantedworld.trial.models_to_train`: a model stands after those that it starts
        from.
    folder
        Where checkpoints and scores go; an interrupted training goes on there.
    hashes
        Of the shared checkpoints: see :func:`check_shared`.
    processes
        How many at once, one core each.
    minutes
        After these no further model is begun; None goes on to the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHARED:
        if not (folder / name).exists():
            fresh = folder / f"{name}.new"
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.copytree(CHECKPOINTS / name, fresh)
            fresh.rename(folder / name)
    check_shared(hashes, folder)
    rows = [row for row in wanted.itertuples(index=False, name=None) if not _done(folder, row)]
    until = time.monotonic() + 60 * minutes if minutes is not None else None
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        tasks = {pool.submit(_one, row, folder, until): row for row in rows}
        failed = []
        for task in progress(concurrent.futures.as_completed(tasks), "trial", len(tasks)):
            if error := task.exception():
                failed.append(f"{_name(tasks[task])}: {type(error).__name__}: {error}")
    return failed


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
        path = folder / _name(each)
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
    return folder / "scores" / f"{_name(row)}.parquet"


def _name(row: Sequence) -> str:
    """Return the name of a model's folder."""
    family, dose, seed, sample = row
    return checkpoint_name(family, dose, seed, sample=sample)


def _done(folder: Path, row: Sequence) -> bool:
    return _scores_path(folder, row).is_file()


def wanted_models() -> pandas.DataFrame | None:
    """Return the models of the trial: :func:`plantedworld.trial.models_to_train` of its worlds.

    None if the protocol names no commit yet, so that no world is drawn.
    """
    commit = json.loads(PROTOCOL.read_text(encoding="utf-8"))["commit"]
    return models_to_train(world_seeds(commit)) if commit else None


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
        told = (*row, card["sha256"], found, card["minutes"], card["torch"])
        told = (*told, card.get("resumed", False), processor(), start)
        rows.append(pandas.DataFrame([told], columns=CARD))
        tables.append(pandas.read_parquet(path).assign(family=row[0]))
    every = pandas.concat([each for each in rows if len(each)], ignore_index=True)
    every = every.astype({"dose": float})
    whole = pandas.concat([each for each in tables if len(each)], ignore_index=True)
    if whole.duplicated(["family", *UNIQUE]).any():
        raise TrialError(f"{into / SCORES} has a score twice: restore it, and {CARDS}")
    fresh = [(into / SCORES).with_suffix(".new"), (into / CARDS).with_suffix(".new")]
    whole.to_parquet(fresh[0], index=False, compression="zstd")
    every.to_csv(fresh[1], index=False)
    fresh[0].replace(into / SCORES)
    fresh[1].replace(into / CARDS)
    return len(every), len(wanted)


def processor() -> str:
    """Return what this machine calls its processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def check_code(commit: str, root: Path = ROOT) -> None:
    """Check that the code is that of the commit which drew the worlds.

    Raises
    ------
    TrialError
        If this is no checkout that knows the commit, or a file of the packages has changed since,
        other than data of the trial and what only shows them.
    """
    asked = ["git", "-C", str(root), "diff", "--name-only", commit, "--", *CODE]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    if found.returncode:
        raise TrialError(f"{root} is no checkout that knows {commit[:12]}: clone the repository")
    if changed := found.stdout.split():
        raise TrialError(
            f"{changed[0]} is not as {commit[:12]} had it: check out that commit, and put "
            f"{PROTOCOL.name} of now into it"
        )


def other_starts(cards: pandas.DataFrame) -> list[str]:
    """Return the VL-BERTs that did not start from the BERT whose scores were collected."""
    own = cards[cards["family"] == "bert"].set_index(["dose", "seed", "sample"])["sha256"]
    return [
        checkpoint_name(row.family, row.dose, row.seed, sample=row.sample)
        for row in cards[cards["family"] == "vl_bert"].itertuples()
        if own.get((row.dose, row.seed, row.sample), row.start) != row.start
    ]


def _card(folder: Path, row: Sequence) -> dict:
    return json.loads((folder / _name(row) / "card.json").read_text(encoding="utf-8"))


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
