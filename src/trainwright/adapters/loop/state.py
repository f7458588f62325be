"""Everything that a step of a training loop changes, saved so that the next measurement starts where training does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from trainwright.adapters.loop.accelerate import scalers_of, wrapped_objects
from trainwright.adapters.loop.parts import unwrapped
from trainwright.seams.state.reachable import ScriptState
from trainwright.seams.state.snapshot import AttributeState, RandomState, loose_generators
from trainwright.seams.torch.state import ModelState, OptimizerState

# Framework objects whose attributes a step changes.
_FRAMEWORK_STATE = ("torch.amp", "torch.cuda.amp", "accelerate.", "torchmetrics", "lightning.", "pytorch_lightning.")


class LoopState:
    """The script's variables, models, optimizers, schedules and loss scales, as they were when this was created.

    Args:
        scope: the script's objects by name.
        further: trained modules that no name leads to.
    """

    def __init__(
        self,
        scope: Mapping[str, Any],
        optimizers: Sequence[Any],
        schedules: Sequence[Any],
        further: Sequence[nn.Module],
    ) -> None:
        self._values = [v for v in scope.values() if not isinstance(v, type)]
        self._held = [*optimizers, *schedules]
        self._optimizers = list(optimizers)
        self._random = RandomState(loose_generators(scope.values()))
        named = [v for v in self._values if isinstance(v, nn.Module)]
        self._script = self._script_given = ScriptState([*named, *self._values], leave=self._held)
        self.modules = _outermost([unwrapped(m) for m in (*named, *self._script.models, *further)])
        """The outermost reachable modules."""
        self.loose = _leaves(self._values)
        """Trained tensors outside any module."""
        self._loose = [(t, t.detach().clone()) for t in self.loose]
        self._schedules = [(s, dict(s.__dict__)) for s in schedules]
        self._scalers = [(v, v.state_dict()) for v in scalers_of(self._values)]
        self._models: list[ModelState] = []
        self._take()
        self._given = (self._attributes, self._models, self._optimizer_states)
        self._changed: list[AttributeState] = []

    def _take(self) -> None:
        inner = [m for top in self.modules for m in top.modules()]
        self._attributes = AttributeState([*inner, *_framework_state(self._values)])
        self._models = [ModelState(m, known=self._models) for m in self.modules]
        self._optimizer_states = [OptimizerState(o) for o in self._optimizers]

    def put_back(self) -> None:
        """Restore the state from which training starts, including the repairs taken in."""
        self._script.put_back()
        self._attributes.put_back()
        for model in self._models:
            model.put_back()
        self._put_back_rest()

    def before_change(self, owners: Iterable[Any]) -> None:
        """Save the attributes of objects that a repair is about to change, to restore them at the end."""
        self._changed.append(AttributeState(owners))

    def take_in(self) -> None:
        """Make the state after a repair the one from which training starts."""
        self._script = ScriptState([*self.modules, *self._values], leave=self._held)
        self._take()

    def end(self) -> None:
        """Undo everything, including repairs."""
        self._script.put_back()
        self._script_given.put_back()
        attributes, models, self._optimizer_states = self._given
        for kept in (*reversed(self._changed), attributes):
            kept.put_back()
        for model in models:
            model.put_back()
        self._put_back_rest()

    def end_random(self) -> None:
        """Restore the random state; last, because restoring other things may draw random numbers."""
        self._random.put_back()

    @torch.no_grad()
    def _put_back_rest(self) -> None:
        for tensor, value in self._loose:
            tensor.copy_(value)
            tensor.grad = None
        for optimizer in self._optimizer_states:
            optimizer.put_back()
        for schedule, attributes in self._schedules:
            schedule.__dict__.clear()
            schedule.__dict__.update(attributes)
        for scaler, state in self._scalers:
            scaler.load_state_dict(state)


def _outermost(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """The modules that are contained in none of the others, each once."""
    unique = list({id(m): m for m in modules}.values())
    inner = {id(c) for m in unique for c in m.modules() if c is not m}
    return [m for m in unique if id(m) not in inner]


def _leaves(values: Sequence[Any]) -> list[torch.Tensor]:
    """Trained tensors that are not part of a module."""
    found = [v for v in values if isinstance(v, torch.Tensor)]
    found += [t for v in values if isinstance(v, (list, tuple)) for t in v[:1000] if isinstance(t, torch.Tensor)]
    found += [t for v in values if isinstance(v, dict) for t in list(v.values())[:1000] if isinstance(t, torch.Tensor)]
    return [t for t in found if t.requires_grad and t.is_leaf and not isinstance(t, nn.Parameter)]


def _framework_state(values: Sequence[Any]) -> list[Any]:
    found = [v for v in values if type(v).__module__.startswith(_FRAMEWORK_STATE) and not isinstance(v, nn.Module)]
    found = list({id(v): v for v in [*found, *wrapped_objects(values), *scalers_of(values)]}.values())
    inner = [getattr(v, "gradient_state", None) for v in found]
    return [*found, *(v for v in inner if v is not None)]
