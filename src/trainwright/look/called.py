"""Modules that a script calls, and their optimizers."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from trainwright.seams.listening.seen import seen
from trainwright.tensors.torch.objects import held_by

# Values of a model beyond which copies of weights and gradients take too much time; the share of a GPU's free memory for one.
MOST_VALUES, SHARE_OF_FREE = 300_000_000, 0.25


class Several(nn.Module):
    """Holds modules that a training calls one after the other."""


def find_outermost(module: nn.Module) -> nn.Module:
    """The module that holds this one and is held by none."""
    built = [m for m in seen().modules if vars(m).get("_modules")]
    around = [m for m in built if any(one is module for one in m.modules())]
    return max([module, *around], key=lambda m: sum(1 for _ in m.modules()))


def has_room(module: nn.Module) -> bool:
    """Whether a module's weights can be copied."""
    weights = [*module.parameters()]
    on_gpu = sum(p.numel() * p.element_size() for p in weights if p.is_cuda)
    is_free = not on_gpu or bool(on_gpu <= SHARE_OF_FREE * torch.cuda.mem_get_info()[0])
    return is_free and sum(p.numel() for p in weights) <= MOST_VALUES


def name_inputs(module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What a module is called with, by the names of its arguments; copies."""
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return {}
    names = [p.name for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD]
    found = {names[i] if i < len(names) else str(i): value for i, value in enumerate(args)} | dict(kwargs)
    found.pop("num_items_in_batch", None)
    return {name: v.detach().clone() if isinstance(v, torch.Tensor) else v for name, v in found.items()}


def is_same(one: Any, other: Any) -> bool:
    """Whether two optimizers are one, in what a library wrapped around it."""
    return getattr(one, "optimizer", one) is getattr(other, "optimizer", other)


def is_among(one: Any, others: list[Any]) -> bool:
    return any(is_same(one, other) for other in others)


def holds(optimizer: Any, model: nn.Module) -> bool:
    return not held_by(optimizer).isdisjoint(id(p) for p in model.parameters() if p.requires_grad)


class LiveOptimizers:
    """The script's optimizers, as long as it holds them."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[Any]] = []

    def list_live(self) -> list[Any]:
        """The innermost of those that libraries wrap; Keras's have no groups, and are not asked."""
        known = [o for ref in self._known if (o := ref()) is not None]
        self._known += [weakref.ref(o) for o in seen().optimizers if not is_among(o, known)]
        found = [o for ref in self._known if (o := ref()) is not None]
        found = [o for o in found if any(group["params"] for group in getattr(o, "param_groups", ()))]
        return [o for o in found if not any(o is getattr(around, "optimizer", None) for around in found)]

    def list_held(self) -> set[int]:
        """The identities of the parameters that they hold."""
        return held_by(*self.list_live())


def has_mode_on_top() -> bool:
    """Whether the script has opened a mode of torch's around the call: observers would not be the last in, first out."""
    mode = torch.overrides._get_current_function_mode()
    return mode is not None and mode is not getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)


def is_compiled(module: nn.Module) -> bool:
    return any(
        "_orig_mod" in m._modules or getattr(m, "_compiled_call_impl", None) is not None for m in module.modules()
    )


def note_trained(optimizer: Any) -> None:
    """Record an optimizer's parameters; of one that has kept something for some of them, only those."""
    groups = getattr(optimizer, "param_groups", ())
    stepped = [p for group in groups for p in group["params"] if p.requires_grad]
    state = getattr(optimizer, "state", {})
    for parameter in [p for p in stepped if p in state] or stepped:
        seen().trained_earlier[parameter] = True
