"""The loop that trains every family: staged, resumable after every epoch, the same every time."""

import math
from collections.abc import Iterator
from pathlib import Path

import torch

from biaslib.runtime import progress
from biaslib.training._recipe import Recipe, Stage

STATE = "training_state.pt"
BATCHES_SORTED_AT_ONCE = 16


def train(recipe: Recipe, folder: Path) -> torch.nn.Module:
    """Train a model, going on after the last whole epoch that the folder holds.

    One thread, so that the order of sums, and with it the result, does not depend on the machine's
    number of cores. AdamW with one cycle of learning rates over all stages.

    Parameters
    ----------
    recipe
        The family's recipe, holding its corpus.
    folder
        Where the state is kept between epochs; it is removed at the end.

    Returns
    -------
    torch.nn.Module
        The trained model.
    """
    torch.set_num_threads(1)
    torch.manual_seed(recipe.world.seed)
    model = recipe.build()
    epochs = [stage for stage in recipe.stages() for _ in range(stage.epochs)]
    optimizer, schedule = _optimizer(recipe, model, sum(map(_n_batches, epochs)))
    done = _resume(folder / STATE, model, optimizer, schedule)
    for number, stage in enumerate(epochs[done:], start=done):
        _train_epoch(recipe, stage, number, len(epochs), model, optimizer, schedule)
        _keep(folder / STATE, number + 1, model, optimizer, schedule)
    (folder / STATE).unlink(missing_ok=True)
    return model.eval()


def _train_epoch(recipe, stage, number, n_epochs, model, optimizer, schedule) -> None:
    model.train()
    generator = torch.Generator().manual_seed(1000 * recipe.world.seed + number)
    label = f"epoch {number + 1} of {n_epochs}"
    for rows in progress(_batches(recipe, stage, generator), label, _n_batches(stage)):
        optimizer.zero_grad()
        recipe.loss(model, rows, generator).backward()
        optimizer.step()
        schedule.step()


def _batches(recipe: Recipe, stage: Stage, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield batches in random order; rows of like length share a batch."""
    rows = torch.as_tensor(stage.rows)
    rows = rows[torch.randperm(len(rows), generator=generator)]
    rows = rows[: _n_batches(stage) * stage.batch_size]
    batches = []
    for chunk in rows.split(stage.batch_size * BATCHES_SORTED_AT_ONCE):
        batches += chunk[recipe.lengths()[chunk].argsort(stable=True)].split(stage.batch_size)
    for index in torch.randperm(len(batches), generator=generator).tolist():
        yield batches[index]


def _n_batches(stage: Stage) -> int:
    return len(stage.rows) // stage.batch_size


def _optimizer(recipe: Recipe, model: torch.nn.Module, n_steps: int):
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    vectors = [weight for weight in model.parameters() if weight.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.learning_rate, total_steps=n_steps, pct_start=recipe.warm_up
    )
    return optimizer, schedule


def _keep(path: Path, epochs_done: int, model, optimizer, schedule) -> None:
    """Write the state beside the old one, then put it in its place."""
    state = {
        "epochs_done": epochs_done,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": {key: value for key, value in schedule.state_dict().items() if _plain(value)},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    torch.save(state, fresh)
    fresh.replace(path)


def _resume(path: Path, model, optimizer, schedule) -> int:
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    return state["epochs_done"]


def _plain(value: object) -> bool:
    return isinstance(value, (int, float, str, list, bool)) and value is not math.nan
