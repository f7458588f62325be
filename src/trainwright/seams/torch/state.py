"""Snapshots of the values of a model and of an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from trainwright.seams.state.reachable import is_expanded


class ModelState:
    """The values of a model's parameters and buffers, their requires_grad, and their gradients.

    The values of tensors on an accelerator are stored in host memory.

    Args:
        known: earlier snapshots; values that have not changed since are shared with them, not copied again.
    """

    def __init__(self, model: nn.Module, known: Sequence[ModelState] = ()) -> None:
        seen = [t for t in (*model.parameters(), *model.buffers()) if not t.is_meta and not is_expanded(t)]
        held = {id(t): value for state in known for t, value in state.host_values()}
        self._values = [(t, _same_value(t, held.get(id(t)))) for t in seen]
        """A model without data (on the meta device, as a skeleton for torch.func) has nothing to save."""
        self._needs = [(p, p.requires_grad) for p in model.parameters()]
        self._gradients = [(p, None if p.grad is None else p.grad.detach().clone()) for p in model.parameters()]
        self._training = [(m, m.training) for m in model.modules()]
        self._dropout = [(m, m.p) for m in model.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]

    def host_values(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Each parameter and buffer with its saved value, in host memory."""
        return self._values

    @torch.no_grad()
    def put_back(self) -> None:
        """Restore values, gradients and modes in place."""
        for tensor, value in self._values:
            tensor.copy_(value)
        for parameter, needed in self._needs:
            parameter.requires_grad_(needed)
        for parameter, gradient in self._gradients:
            parameter.grad = None if gradient is None else gradient.clone()
        for module, training in self._training:
            module.training = training
        for dropout, probability in self._dropout:
            dropout.p = probability


def _same_value(tensor: torch.Tensor, known: torch.Tensor | None) -> torch.Tensor:
    """A copy of a tensor in host memory: the known one, if it is the same."""
    value = tensor.detach()
    if known is not None and value.device.type == "cpu" and value.dtype == known.dtype and torch.equal(value, known):
        return known
    return value.to("cpu", copy=True)


class OptimizerState:
    """An optimizer's groups and its state for each parameter."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._groups = [dict(g, params=list(g["params"])) for g in optimizer.param_groups]
        self._hooks = [
            (h, h.copy())
            for n in ("_pre", "_post")
            if (h := getattr(optimizer, f"_optimizer_step{n}_hooks", None)) is not None
        ]
        self._state = {p: {k: _copied(v) for k, v in s.items()} for p, s in optimizer.state.items()}

    def put_back(self) -> None:
        """Restore groups, state and hooks."""
        for hooks, kept in self._hooks:
            hooks.clear()
            hooks.update(kept)
        groups = self._optimizer.param_groups
        del groups[len(self._groups) :]
        for group, kept in zip(groups, self._groups):
            group.clear()
            group.update(dict(kept, params=list(kept["params"])))
        self._optimizer.state.clear()
        for parameter, state in self._state.items():
            self._optimizer.state[parameter] = {k: _copied(v) for k, v in state.items()}


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
