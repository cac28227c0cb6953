"""The first steps of a recipe's training, taken twice."""

import torch


def losses_of_the_same_steps(make, rows: torch.Tensor, rate: float = 3e-3):
    """Return the losses of four steps on the same rows, and the model.

    ``make`` gives the recipe. A second time, the losses are the same.
    """
    (first, model), (second, _) = (_steps(make(), rows, rate) for _ in range(2))
    assert first == second
    return first, model


def _steps(recipe, rows: torch.Tensor, rate: float):
    torch.manual_seed(3)
    model, losses = recipe.build(), []
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate)
    for _ in range(4):
        optimizer.zero_grad()
        loss = recipe.loss(model, rows, torch.Generator().manual_seed(4))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model
