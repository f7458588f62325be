"""Tensors of weights: held by an optimizer, reached by gradients, moved."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trainwright.rehearsal.record import Parameter
from trainwright.rehearsal.watch.torch.samples import is_plain, sample
from trainwright.rehearsal.watch.torch.state import Model, WatchState, unwrap_module

# Values of a tensor whose movement is followed.
FOLLOWED = 256
# A gradient below this share of the whole gradient's norm is rounding: a key's bias in attention has 1e-8 of it.
ROUNDING, ROUNDING_OF_HALVES = 1e-6, 1e-4
# Tensors that are followed.
MOST_TENSORS = 5000
# Steps after which movement is looked at, for tensors that are gone at the end; then every thousandth.
LOOKED_AT = frozenset({1, 3, 10, 30, 100, 300})


@dataclass(eq=False)
class FollowedTensor:
    """A tensor of weights."""

    ref: weakref.ref[Any]
    shape: tuple[int, ...]
    before: Any
    size_before: float
    name: str = ""
    model: int = 0
    is_held: bool = False
    is_trainable: bool = True
    had_gradient: bool = False
    has_moved: bool = False
    size_after: float = 0.0
    steps: int = 0
    still_share: float = 0.0
    frozen: Any = None
    """A sample of its values at the beginning of the last training, if it was frozen then."""
    left: int = 0
    """How often it was seen there to be unfrozen, to have a gradient, and to be as it was."""


class Parameters:
    """Follows the weights of models that are trained."""

    def __init__(self, state: WatchState) -> None:
        self._state = state
        self._known: dict[int, FollowedTensor] = {}
        self._gone: list[FollowedTensor] = []
        self._of: weakref.WeakKeyDictionary[Any, list[FollowedTensor]] = weakref.WeakKeyDictionary()
        self._counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._named: dict[tuple[int, int], Model] = {}

    def name_model(self, model: Model) -> None:
        """Follow the weights of a model that is called with gradients; in each training, as layers may be replaced."""
        module, key = model.ref(), (id(model), len(self._state.recorder.record.trainings))
        if key in self._named or module is None:
            return
        self._named[key] = model
        for one, parameter in self._follow_weights(model, module):
            one.frozen = None if parameter.requires_grad else sample(parameter, FOLLOWED)

    def _follow_weights(self, model: Model, module: Any) -> list[tuple[FollowedTensor, Any]]:
        named = [(n, p) for n, p in unwrap_module(module).named_parameters() if p.is_floating_point()]
        found = [(n, p, one) for n, p in named[:MOST_TENSORS] if (one := self._follow(p)) is not None]
        for name, _, one in found:
            if not one.name:
                one.name, one.model = name, model.number
        self._measure([p for _, p in named])
        return [(one, p) for _, p, one in found]

    def _follow(self, parameter: Any) -> FollowedTensor | None:
        known = self._known.get(id(parameter))
        if known is not None and known.ref() is parameter:
            return known
        if known is not None:
            self._gone.append(known)
        if not is_plain(parameter) or not parameter.numel() or len(self._known) + len(self._gone) > MOST_TENSORS:
            return None
        one = FollowedTensor(weakref.ref(parameter), tuple(parameter.shape), sample(parameter, FOLLOWED), -1.0)
        self._known[id(parameter)] = one
        return one

    def _measure(self, parameters: list[Any]) -> None:
        """Read the sizes of what is newly followed: all at once."""
        new = [one for p in parameters if (one := self._known.get(id(p))) is not None and one.size_before < 0]
        for one, size in zip(new, _sizes([one.before for one in new])):
            one.size_before = one.size_after = size

    def before_step(self, optimizer: Any, due: bool) -> float | None:
        """Note what the optimizer holds, and the gradients, if this step is looked at: their norm."""
        count = self._counts.get(optimizer, 0)
        if due or count == 0:
            self._hold(optimizer)
        self._counts[optimizer] = count + 1
        return self._look_at_gradients(optimizer) if due else None

    def _hold(self, optimizer: Any) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if len(parameters) == len(self._of.get(optimizer, ())):
            return
        held = [one for p in parameters if p.is_floating_point() and (one := self._follow(p)) is not None]
        self._measure(parameters)
        for one in held:
            one.is_held = True
        self._of[optimizer] = held
        self._state.held.update(id(p) for p in parameters)

    def hold_by_hand(self, tensors: list[Any], count: int) -> None:
        """Weights that the script has changed itself are held by it; at the first of its updates and now and then."""
        if count not in LOOKED_AT and count % 1000:
            return
        found = [one for t in tensors if (one := self._known.get(id(t))) is not None and one.ref() is t]
        self._look_at_movement(found)
        for one in found:
            if one.has_moved:
                one.is_held = one.had_gradient = True
                one.steps = count

    def _look_at_gradients(self, optimizer: Any) -> float | None:
        held = [(one, p.grad) for one in self._of.get(optimizer, ()) if (p := one.ref()) is not None]
        with_gradient = [(one, g.coalesce().values() if g.is_sparse else g) for one, g in held if g is not None]
        if not with_gradient:
            return None
        with torch.no_grad():
            norms = torch._foreach_norm([g.detach() for _, g in with_gradient])
            devices = {n.device for n in norms}
            stacked = torch.stack([n.float() if len(devices) == 1 else n.float().cpu() for n in norms])
        values = stacked.cpu().numpy().astype(np.float64)
        total = float(np.sqrt((values**2).sum()))
        for (one, gradient), norm in zip(with_gradient, values):
            limit = ROUNDING if gradient.dtype in (torch.float32, torch.float64) else ROUNDING_OF_HALVES
            one.had_gradient = one.had_gradient or not norm <= limit * total
        return total

    def after_step(self, optimizer: Any) -> None:
        """Now and then look what has moved."""
        count = self._counts.get(optimizer, 0)
        if count in LOOKED_AT or count % 1000 == 0:
            left = self._list_left()
            for one, parameter in left:
                one.had_gradient = one.had_gradient or parameter.grad is not None
            self._look_at_movement([*self._of.get(optimizer, []), *(one for one, _ in left)])
        if count in LOOKED_AT or count % 100 == 0:
            self._look_at_unfrozen()
            self._follow_replaced()
        self._steps_of(optimizer, count)

    def _look_at_unfrozen(self) -> None:
        for one in self._known.values():
            parameter = one.ref() if one.frozen is not None else None
            if parameter is not None and parameter.requires_grad and parameter.grad is not None:
                one.left += torch.equal(sample(parameter, FOLLOWED), one.frozen)

    def _follow_replaced(self) -> None:
        """Layers may be replaced within a training."""
        for model in {id(one): one for one in self._named.values()}.values():
            if (module := model.ref()) is not None:
                self._follow_weights(model, module)

    def _list_left(self) -> list[tuple[FollowedTensor, Any]]:
        """What no optimizer holds, as far as is known."""
        known = [one for one in self._known.values() if not one.is_held]
        return [(one, parameter) for one in known if (parameter := one.ref()) is not None]

    def _steps_of(self, optimizer: Any, count: int) -> None:
        held = self._of.get(optimizer)
        if held and held[0].steps < count:
            for one in held if count in LOOKED_AT or count % 100 == 0 else held[:1]:
                one.steps = max(one.steps, count)

    def _look_at_movement(self, many: list[FollowedTensor]) -> None:
        alive = [(one, p) for one in many if (p := one.ref()) is not None and is_plain(p)]
        now = [sample(p, FOLLOWED) for _, p in alive]
        fitting = [(one, p, n) for (one, p), n in zip(alive, now) if n.shape == one.before.shape]
        if not fitting:
            return
        still = [(n == one.before.to(n.device)).float().mean() for one, _, n in fitting]
        devices = {s.device for s in still}
        stacked = torch.stack([s if len(devices) == 1 else s.cpu() for s in still]).tolist()
        for (one, parameter, _), share, size in zip(fitting, stacked, _sizes([n for _, _, n in fitting])):
            one.has_moved, one.size_after, one.still_share = one.has_moved or share < 1, size, share
            one.is_trainable = bool(parameter.requires_grad)

    def finish(self) -> None:
        """Write all of them into the record."""
        for optimizer, held in list(self._of.items()):
            for one in held:
                one.steps = max(one.steps, self._counts.get(optimizer, 0))
        every = [*self._gone, *self._known.values()]
        for one, parameter in self._list_left():
            one.had_gradient = one.had_gradient or parameter.grad is not None
        self._look_at_movement(every)
        self._look_at_unfrozen()
        record = self._state.recorder.record
        if record.parameters:  # Keras's, which trains the weights of its layers on torch itself
            every = [one for one in every if one.steps or not one.name.startswith("_torch_params.")]
        record.parameters += [
            Parameter(
                name=one.name,
                shape=one.shape,
                is_trainable=one.is_trainable,
                is_held=one.is_held,
                had_gradient=one.had_gradient,
                has_moved=one.has_moved,
                steps=one.steps,
                size_before=one.size_before,
                size_after=one.size_after,
                model=one.model,
                is_left_unfrozen=one.left >= 2,
                rounded_share=one.still_share if one.before.dtype in (torch.float16, torch.bfloat16) else None,
            )
            for one in every
        ]


def _sizes(samples: list[Any]) -> list[float]:
    """The root mean square of each."""
    if not samples:
        return []
    values = [s.float().pow(2).mean().sqrt() for s in samples]
    devices = {v.device for v in values}
    found: list[float] = torch.stack([v if len(devices) == 1 else v.cpu() for v in values]).tolist()
    return found
