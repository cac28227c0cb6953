"""The loop that trains every family, the same every time."""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from biaslib.runtime import progress
from plantedworld.training._recipe import Recipe, WithSideHeads

BATCHES_SORTED_AT_ONCE = 16
WARM_UP = 0.15
"""Share of the steps in which the learning rate rises."""


def train(recipe: Recipe) -> WithSideHeads:
    """Train a model.

    One thread, so that the order of sums, and with it the result, does not depend on the machine's
    number of cores. AdamW with one cycle of learning rates a round.

    Parameters
    ----------
    recipe
        The family's recipe, holding its corpus.

    Returns
    -------
    WithSideHeads
        The trained model, in evaluation mode.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(recipe.world.training_seed)
    model, before = recipe.build(), 0
    for epochs in recipe.stage.epochs:
        optimizer, schedule = _optimizer(recipe, model, epochs)
        for epoch in range(before, before + epochs):
            _train_epoch(recipe, epoch, model, optimizer, schedule)
        before += epochs
    torch.set_num_threads(threads)
    return model.eval()


def _train_epoch(recipe: Recipe, epoch: int, model: WithSideHeads, optimizer, schedule) -> None:
    model.train()
    generator = Generator().manual_seed(1000 * recipe.world.training_seed + epoch)
    label = f"{recipe.family}: epoch {epoch + 1} of {sum(recipe.stage.epochs)}"
    for rows in progress(_batches(recipe, generator), label, _n_batches(recipe)):
        optimizer.zero_grad()
        recipe.loss(model, rows, generator).backward()
        optimizer.step()
        schedule.step()


def _batches(recipe: Recipe, generator: Generator) -> Iterator[Tensor]:
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


def _optimizer(recipe: Recipe, model: WithSideHeads, epochs: int):
    weights = list(model.parameters())
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
    ]
    rate = recipe.stage.learning_rate
    optimizer = torch.optim.AdamW(groups, lr=rate, fused=True)
    n_steps = (recipe.scheduled_epochs or epochs) * _n_batches(recipe)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=n_steps + 1, pct_start=WARM_UP
    )
    return optimizer, schedule
