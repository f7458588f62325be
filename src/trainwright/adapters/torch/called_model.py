"""A torch model and its inputs: calls it again with something changed, and leaves it unchanged."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from trainwright.frameworks.label_names import ARGUMENTS, find_label
from trainwright.probes.forward import move_values
from trainwright.seams.state.snapshot import AttributeState, RandomState, seed_everything
from trainwright.seams.torch.step_record import scores_of
from trainwright.seams.torch.trace import Trace, TracedResult
from trainwright.tensors.torch import objects as tensors


def accepted_names(model: Any) -> tuple[tuple[str, ...], bool]:
    """The arguments of a module's forward, and whether it takes **kwargs."""
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return (), True
    named = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    return named, any(p.kind == p.VAR_KEYWORD for p in parameters)


@dataclass(kw_only=True)
class CalledModel:
    """The model and its real inputs, for calling it again with something changed."""

    model: nn.Module
    inputs: dict[str, Any]
    """Keyword arguments, or "0", "1" for positional ones."""
    other: dict[str, Any] | None = None
    """Another batch."""
    vocabulary: int | None = None
    pad_id: int | None = None
    label_keys: tuple[str, ...] = ARGUMENTS
    met_rows: Mapping[str, tuple[int, bool]] = field(default_factory=dict)
    """Other batch sizes that training will have, by where they occur, and whether in training mode."""
    batch_size: int = 0
    """The loader's batch size; 0: there is no loader."""

    def call(self, inputs: Mapping[str, Any], *, training: bool = False, seed: int = 0) -> Any:
        """The model's output, in evaluation mode or its present modes; modes, buffers and random state are restored.

        Args:
            seed: of the random numbers; 0: as they are.
        """
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        positional = [_to(v, device) for k, v in inputs.items() if k.isdigit()]
        named = {k: _to(v, device) for k, v in inputs.items() if not k.isdigit()}
        with torch.no_grad(), (left_as_it_was if training else evaluating)(self.model):
            if seed:
                seed_everything(seed)
            return self.model(*positional, **named)

    def answer(self, inputs: Mapping[str, Any], *, training: bool = False, seed: int = 0) -> np.ndarray | None:
        """The model's scores (rows, …); None if it returns none."""
        found = scores_of(self.call(inputs, training=training, seed=seed))
        return tensors.to_numpy(found) if found is not None else None

    def all_answers(self, inputs: Mapping[str, Any]) -> list[np.ndarray]:
        """Every tensor in the output: scores, the loss if there is one, and anything else."""
        return [tensors.to_numpy(t) for t in tensors.tensors_in(self.call(inputs))]

    def chosen(self, inputs: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
        """The inputs, with these rows only."""
        return take_rows(inputs, rows)

    def exchanged(self, inputs: Mapping[str, Any], name: str) -> dict[str, Any] | None:
        """The inputs with one input's rows permuted; None if that changes nothing."""
        turned = inputs[name].roll(1, 0)
        return None if torch.equal(turned, inputs[name]) else {**inputs, name: turned}

    def change_rows(self, inputs: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any] | None:
        """The inputs with each array of them changed; None if an input is not made of real numbers."""
        given = {k: v for k, v in inputs.items() if k not in self.label_keys}
        rows = rows_of(given)
        if not all(isinstance(v, torch.Tensor) and v.is_floating_point() and v.dim() > 1 for v in given.values()):
            return None
        if rows < 2 or any(len(v) != rows for v in given.values()):
            return None
        return {**inputs, **{k: change(v) for k, v in given.items()}}

    @contextlib.contextmanager
    def moved_weights(self) -> Iterator[None]:
        """Perturb every weight slightly inside the context; they are restored at the end."""
        kept = [(p, p.detach().clone()) for p in self.model.parameters()]
        try:
            move_weights(self.model.parameters())
            yield
        finally:
            with torch.no_grad():
                for parameter, value in kept:
                    parameter.copy_(value)

    def trace(
        self, inputs: Mapping[str, Any], keep: Callable[[torch.Tensor], torch.Tensor | None]
    ) -> list[TracedResult]:
        """Every call's result in evaluation mode, as filtered by `keep`."""
        trace = Trace(keep)
        with trace:
            self.call(inputs)
        return trace.made


@torch.no_grad()
def move_weights(parameters: Iterable[nn.Parameter]) -> None:
    """Perturb weights slightly, always in the same way."""
    random = np.random.default_rng(0)
    for parameter in parameters:
        if parameter.is_floating_point():
            parameter.copy_(torch.as_tensor(move_values(tensors.to_numpy(parameter), random)))


@contextlib.contextmanager
def left_as_it_was(model: nn.Module) -> Iterator[None]:
    """Restore the model's modes, attributes and buffers, and all random state."""
    attributes = AttributeState(model.modules())
    modes = [(m, m.training) for m in model.modules()]
    buffers = [(b, b.detach().clone()) for b in model.buffers()]
    random = RandomState()
    try:
        yield
    finally:
        attributes.put_back()
        for module, training in modes:
            module.training = training
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        random.put_back()


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Ask a model in evaluation mode and without gradients; it is left as it was."""
    with left_as_it_was(model), torch.no_grad():
        for module in model.modules():
            module.training = False
        yield


def _to(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def rows_of(inputs: Mapping[str, Any]) -> int:
    """The number of rows: the size of the first tensor's first axis."""
    return next((len(v) for v in inputs.values() if isinstance(v, torch.Tensor) and v.dim()), 0)


def take_rows(inputs: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """These rows of every tensor with as many rows as the first, and of every list with one entry per row."""
    count = rows_of(inputs)
    chosen = torch.as_tensor(list(rows))

    def taken(value: Any) -> Any:
        if isinstance(value, list) and len(value) == count:
            return [value[row] for row in rows]
        if isinstance(value, torch.Tensor) and value.dim() and len(value) == count and value.layout == torch.strided:
            return value[chosen.to(value.device)]
        return value

    return {k: taken(v) for k, v in inputs.items()}


def label_name(inputs: Mapping[str, Any], targets: torch.Tensor | None) -> str | None:
    """The name under which the model itself received its labels: those of the loss, or a usual name."""
    given = {n: v for n, v in inputs.items() if isinstance(v, torch.Tensor)}
    usual = find_label(given)
    if targets is None or len(given) < 2 or any(v.is_meta for v in (targets, *given.values())):
        return usual  # tensors on the meta device have no values to compare
    flat = targets.detach().reshape(-1).double()
    same = [n for n, v in given.items() if v.numel() == flat.numel() and torch.equal(v.reshape(-1).double(), flat)]
    return usual if usual in same or not same else same[-1]
