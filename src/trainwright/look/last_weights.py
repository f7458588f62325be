"""Models that were trained are asked once more, with the weights that the run ends with, and with other tensors than it gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from trainwright.adapters.torch.called_model import CalledModel
from trainwright.adapters.torch.forward_probes import NoiseWatch, probe_last_weights
from trainwright.adapters.torch.words import LOOP
from trainwright.core import Place, Role
from trainwright.frameworks.label_names import ARGUMENTS
from trainwright.look.called import name_inputs
from trainwright.look.results import LookResult
from trainwright.probes.forward import LEAKS_BEYOND
from trainwright.seams.failures.blame import tolerated
from trainwright.stages import ForwardFacts, SetupFacts

# Rows of a call that are asked again, at most.
MOST_ROWS = 64


def ask_again(
    module: Any, args: Any, kwargs: Any, rows: int, *, is_shuffled: bool
) -> tuple[ForwardFacts | None, list[tuple[str, Place | None]]]:
    """What of the other rows and of the inputs reaches a model's answers, None if that cannot be asked; and the operations of
    training that are active in evaluation mode, with their lines.

    Args:
        args: of a call with so many rows, as `kwargs` are.
        is_shuffled: whether the first axis is that of rows, and not of time.
    """
    names = [f"inputs[{name}]" if name.isdigit() else name for name in name_inputs(module, args, {})]
    given = dict(zip(names, args)), kwargs
    inputs: dict[str, Any] = {}
    for part in given:
        _mapped("", part, inputs.setdefault)
    if any(not t.dim() or t.shape[0] != rows for t in inputs.values()):
        return None, []
    probe = CalledModel(
        model=_Refilled(module, *given),
        inputs=inputs,
        label_keys=(*ARGUMENTS, *(name for name in inputs if "label" in name)),
        batch_size=min(rows, MOST_ROWS) if is_shuffled else 0,
    )
    found: ForwardFacts | None = None
    with NoiseWatch() as noise, tolerated():
        probe.call(inputs)
    with tolerated():  # its rows may belong together, as a graph's
        found = probe_last_weights(replace(probe, inputs={name: tensor[:MOST_ROWS] for name, tensor in inputs.items()}))
    return found, list(noise.active)


def further_look(
    looks: Iterable[LookResult], training: int, where: Place | None, found: ForwardFacts
) -> LookResult | None:
    """A further look at a training, if the first one has not seen the same. It alone says which inputs are still ignored.

    Args:
        where: the line that built the model.
    """
    has_leaked = False
    for look in looks:
        if isinstance(facts := look.facts.get(ForwardFacts), ForwardFacts):
            has_leaked |= (facts.leaking_rows or 0.0) > LEAKS_BEYOND
            left = tuple(name for name in facts.ignored_inputs if name not in found.ignored_inputs)  # it is said once
            look.facts[ForwardFacts] = replace(facts, ignored_inputs=left)
    leaks = not has_leaked and (found.leaking_rows or 0.0) > LEAKS_BEYOND
    if not leaks and not found.ignored_inputs:
        return None
    setup = SetupFacts(words=LOOP, places={Role.MODEL: where} if where is not None else {})
    found = replace(found, leaking_rows=found.leaking_rows if leaks else None)
    return LookResult(training, {SetupFacts: setup, ForwardFacts: found})


class _Refilled(nn.Module):
    """A model that is called as it was, with other tensors."""

    def __init__(self, module: Any, args: Any, kwargs: Any) -> None:
        super().__init__()
        self.module, self._given = module, (args, kwargs)

    def forward(self, **tensors: Any) -> Any:
        args, kwargs = (_mapped("", part, lambda name, _: tensors[name]) for part in self._given)
        return self.module(*args.values(), **kwargs)


def _mapped(name: str, value: Any, change: Callable[[str, Any], Any]) -> Any:
    """The same value with its tensors changed, by their names."""
    if isinstance(value, torch.Tensor):
        return change(name, value)
    if type(value) is dict:
        return {key: _mapped(f"{name}.{key}" if name else str(key), inner, change) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_mapped(f"{name}[{index}]", inner, change) for index, inner in enumerate(value))
    return value
