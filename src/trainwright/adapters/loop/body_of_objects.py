"""A model, its data, loss and optimizer, passed separately, as the body of a training loop."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from trainwright.adapters.loop.words import WORDS
from trainwright.adapters.torch.plain_body import PlainBody
from trainwright.core.finding import Place
from trainwright.seams.failures.blame import of_pipeline, passed_on

_LABELS = ("labels", "label", "targets", "target", "y")


class ObjectsBody(PlainBody):
    """A plain training step: clear the gradients, forward, loss, backward, update.

    Args:
        loss: takes the model's scores and the targets; None: the model takes the whole batch and returns its loss.
        scope: the caller's objects by name.
    """

    framework = "torch"
    words = WORDS
    automatic_steps = False
    steps = True

    def __init__(
        self,
        *,
        model: nn.Module,
        loader: Any,
        loss: Callable[..., Any] | None,
        optimizer: Any,
        evaluation_loader: Any,
        where: Place | None,
        scope: Mapping[str, Any],
    ) -> None:
        self.where = where
        self.places: dict[str, Place] = {}
        self.drawn: dict[Any, Any] = {}
        self.modules: list[nn.Module] = [model]
        own = {
            "model": model,
            "train_loader": loader,
            "val_loader": evaluation_loader,
            "loss": loss,
            "optimizer": optimizer,
        }
        held = {id(v) for v in own.values()}
        self.scope = {k: v for k, v in own.items() if v is not None}
        self.scope |= {k: v for k, v in scope.items() if id(v) not in held and k not in own}
        self._model, self._loader, self._loss, self._optimizer = model, loader, loss, optimizer

    def items(self) -> Iterator[Any]:
        """The loader's batches, restarted."""
        yield from passed_on(iter, self._loader)

    def start_over(self) -> None:
        """Does nothing: a step changes nothing here."""

    def updates_planned(self, training: Any) -> int | None:
        """None: the length of the training is unknown."""
        return None

    def epochs(self) -> int | None:
        """None: the number of epochs is unknown."""
        return None

    def schedule_pace(self, training: Any) -> float:
        """0: how often the schedule steps is unknown."""
        return 0.0

    def run(self, item: Any, turn: int) -> None:
        """Make one update on a batch."""
        batch = _on(item, next((p.device for p in self._model.parameters()), None))
        self._optimizer.zero_grad()
        passed_on(operator.methodcaller("backward"), self._loss_of(batch))
        passed_on(self._optimizer.step)

    def _loss_of(self, batch: Any) -> Any:
        if self._loss is None:
            output = _called(self._model, batch)
            return output if isinstance(output, torch.Tensor) else _own_loss(output)
        inputs, targets = inputs_and_targets(batch)
        output = _called(self._model, inputs)
        logits = getattr(output, "logits", None)
        return passed_on(self._loss, output if logits is None else logits, targets)


def inputs_and_targets(batch: Any) -> tuple[Any, Any]:
    """The model's input and the loss's target in a batch; a single tensor is both, as for an autoencoder."""
    if isinstance(batch, Mapping):
        name = next((n for n in _LABELS if n in batch), None)
        if name is None:
            raise of_pipeline(
                KeyError(
                    f"a batch that is a mapping must hold the targets under one of {', '.join(_LABELS)}; "
                    f"it has {', '.join(map(str, batch))}. Rename them in the collate function."
                )
            )
        return {k: v for k, v in batch.items() if k != name}, batch[name]
    if isinstance(batch, (list, tuple)):
        if len(batch) > 2:
            return tuple(batch[:-1]), batch[-1]
        return batch[0], batch[-1]
    return batch, batch


def _called(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, (list, tuple)) else passed_on(model, inputs)


def _own_loss(output: Any) -> Any:
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
