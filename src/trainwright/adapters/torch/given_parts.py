"""A model, its data, loss and optimizer, passed separately: the plain loop that trains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from trainwright.adapters.torch.optimizer import peak_rates, set_rates
from trainwright.frameworks.label_names import USUAL, find_label
from trainwright.seams.failures.blame import of_pipeline

# Rounds over the loader: enough to see rows again, and too few to learn a small set by heart.
PASSES = 10
Given = Callable[[Any], tuple[tuple[Any, ...], Mapping[str, Any], Any]]


def train(
    model: Any,
    train_loader: Any,
    val_loader: Any,
    loss: Any,
    optimizer: Any,
    given: Given,
    told: Callable[[Any], Any],
    is_over: Callable[[], bool],
) -> None:
    """Train, and measure the evaluation loader's batches after each round. All calls of the objects stand in this function.

    Args:
        loss: takes the model's scores and the targets; None: the model takes the whole batch and returns its loss.
        given: the model's arguments and the targets in a batch.
        told: the scores in the model's output; without `loss`, the loss in it.
    """
    for _ in range(PASSES):
        for batch in train_loader:
            args, named, targets = given(batch)
            optimizer.zero_grad()
            output = told(model(*args, **named))
            (loss(output, targets) if loss is not None else output).backward()
            optimizer.step()
            if is_over():
                break
        modes = [(module, module.training) for module in model.modules()]
        model.eval()
        with torch.no_grad():
            for batch in val_loader:
                args, named, targets = given(batch)
                output = told(model(*args, **named))
                if loss is not None:
                    loss(output, targets)
        for module, mode in modes:
            module.training = mode
        if is_over():
            return


def begin_training(model: nn.Module, optimizer: Any) -> None:
    """Get ready as a loop would: the model trains, but for parts that are in evaluation mode by themselves; how often a schedule
    steps is not known, and so the rates are those that it multiplies."""
    if not model.training:
        model.train()
    set_rates(optimizer, peak_rates(optimizer))


def given_of(model: nn.Module, *, has_loss: bool) -> Given:
    """Splits a batch, on the model's device, into the model's arguments and the targets."""
    device = next((p.device for p in model.parameters()), None)

    def given(batch: Any) -> tuple[tuple[Any, ...], Mapping[str, Any], Any]:
        moved = _on(batch, device)
        inputs, targets = inputs_and_targets(moved) if has_loss else (moved, None)
        if isinstance(inputs, Mapping):
            return (), inputs, targets
        return (tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)), {}, targets

    return given


def inputs_and_targets(batch: Any) -> tuple[Any, Any]:
    """The model's input and the loss's target in a batch; a single tensor is both, as for an autoencoder."""
    if isinstance(batch, Mapping):
        name = find_label(batch)
        if name is None:
            raise of_pipeline(
                KeyError(
                    f"a batch that is a mapping must hold the targets under one of {', '.join(USUAL)}; "
                    f"it has {', '.join(map(str, batch))}. Rename them in the collate function."
                )
            )
        return {k: v for k, v in batch.items() if k != name}, batch[name]
    if isinstance(batch, (list, tuple)):
        if len(batch) > 2:
            return tuple(batch[:-1]), batch[-1]
        return batch[0], batch[-1]
    return batch, batch


def scores_in(output: Any) -> Any:
    """The scores in what a model returned."""
    logits = getattr(output, "logits", None)
    return output if logits is None else logits


def loss_in(output: Any) -> Any:
    """The loss in what a model returned."""
    if isinstance(output, torch.Tensor):
        return output
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if loss is None:
        raise of_pipeline(
            TypeError(
                f"without loss=, the model must return its loss for a batch; it returned {type(output).__name__} "
                "without one. Give loss= a function of (output, targets)."
            )
        )
    return loss


def _on(value: Any, device: torch.device | None) -> Any:
    """A batch with its tensors moved to a device."""
    if isinstance(value, torch.Tensor):
        return value if device is None or value.device == device else value.to(device)
    if isinstance(value, Mapping):
        return {k: _on(v, device) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_on(v, device) for v in value)
    return value
