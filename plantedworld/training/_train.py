"""The loop that trains every family: staged, resumable after every epoch, the same every time."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch

from biaslib.runtime import progress
from plantedworld.training._recipe import Recipe, WithSideHeads

STATE = "training_state.pt"
BATCHES_SORTED_AT_ONCE = 16


def train(recipe: Recipe, folder: Path) -> WithSideHeads:
    """Train a model, going on after the last whole epoch whose state the folder holds.

    One thread, so that the order of sums, and with it the result, does not depend on the machine's
    number of cores. AdamW with one cycle of learning rates.

    Parameters
    ----------
    recipe
        The family's recipe, holding its corpus.
    folder
        Where the state is kept between epochs.

    Returns
    -------
    WithSideHeads
        The trained model, in evaluation mode.
    """
    with _one_thread():
        torch.manual_seed(recipe.world.training_seed)
        model = recipe.build()
        optimizer, schedule = _optimizer(recipe, model)
        for epoch in range(_resume(folder / STATE, model, optimizer, schedule), recipe.epochs):
            _train_epoch(recipe, epoch, model, optimizer, schedule)
            _keep(folder / STATE, epoch + 1, model, optimizer, schedule)
    return model.eval()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _train_epoch(recipe: Recipe, epoch: int, model: WithSideHeads, optimizer, schedule) -> None:
    model.train()
    generator = torch.Generator().manual_seed(1000 * recipe.world.training_seed + epoch)
    label = f"{recipe.family}: epoch {epoch + 1} of {recipe.epochs}"
    for rows in progress(_batches(recipe, generator), label, _n_batches(recipe)):
        optimizer.zero_grad()
        recipe.loss(model, rows, generator).backward()
        optimizer.step()
        schedule.step()


def _batches(recipe: Recipe, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield batches in random order; rows of like length share a batch."""
    rows = torch.randperm(len(recipe.lengths), generator=generator)
    rows = rows[: _n_batches(recipe) * recipe.batch_size]
    batches = []
    for chunk in rows.split(recipe.batch_size * BATCHES_SORTED_AT_ONCE):
        batches += chunk[recipe.lengths[chunk].argsort(stable=True)].split(recipe.batch_size)
    for index in torch.randperm(len(batches), generator=generator).tolist():
        yield batches[index]


def _n_batches(recipe: Recipe) -> int:
    return len(recipe.lengths) // recipe.batch_size


def _optimizer(recipe: Recipe, model: WithSideHeads):
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    vectors = [weight for weight in model.parameters() if weight.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
    n_steps = recipe.scheduled_epochs * _n_batches(recipe)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.learning_rate, total_steps=n_steps + 1, pct_start=recipe.warm_up
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
    return isinstance(value, (int, float, str, list, bool))
