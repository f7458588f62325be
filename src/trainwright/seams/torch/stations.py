"""Records what a forward pass makes of each row: results of modules, and of the calls in the user's own code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from trainwright.probes.information import Result
from trainwright.seams.source.places import user_place
from trainwright.seams.torch.layers import is_users_own
from trainwright.tensors.torch import objects as tensors
from trainwright.tensors.torch.transforms import within_transform


@dataclass
class PassRecord(TorchFunctionMode):
    """One forward pass of a batch: what the outermost modules are given, and the results, in order.

    Args:
        model: the trained module, whose parts are named.
        rows: the number of rows of the batch.
        keep: shortens the rows of a result.
        chosen: the numbers of the results to keep; None: all.
    """

    model: nn.Module
    rows: int
    keep: Callable[[np.ndarray], np.ndarray]
    chosen: frozenset[int] | None = None
    given: dict[str, np.ndarray] = field(default_factory=dict)
    complete: bool = True
    """Whether `given` holds all that they are given: other objects, and tensors without an axis of rows, are left out."""
    results: list[Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._names = {id(module): name for name, module in self.model.named_modules()}
        self._inside: list[nn.Module] = []
        self._keeping = False
        self._derived: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()
        self._own = {id(m) for m in self.model.modules() if is_users_own(m)}

    @contextmanager
    def watching(self) -> Iterator[PassRecord]:
        """Record until the context ends."""
        with ExitStack() as stack:
            for module in self.model.modules():
                stack.callback(module.register_forward_pre_hook(self._enter, with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(self._leave).remove)
            stack.enter_context(self)
            yield self

    def _enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if not self._inside:
            for name, value in _flat({**{str(n): v for n, v in enumerate(args)}, **kwargs}):
                self._see_given(name, value)
        self._inside.append(module)

    def _see_given(self, name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.dim() and len(value) == self.rows:
            if value.layout == torch.strided:
                self.given.setdefault(name, tensors.to_numpy(value.detach()))
                self._derived[id(value)] = value
                return
        self.complete &= not isinstance(value, torch.Tensor) and isinstance(value, (int, float, str, type(None)))

    def _leave(self, module: nn.Module, args: Any, result: Any) -> None:
        while self._inside and self._inside.pop() is not module:
            pass  # a module that raised was left without its hook
        name = self._names[id(module)]
        if next(module.children(), None) is None or not self._inside:
            self._add(name or "the model", name, type(module).__name__, result)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self._inside or self._keeping or within_transform():
            return result
        name = getattr(func, "__name__", str(func))
        if any(self._derived.get(id(t)) is t for t in tensors.tensors_in((*args, *kwargs.values()))):
            for made in tensors.tensors_in([args[0] if name == "__setitem__" else result]):
                self._derived[id(made)] = made
            if name != "__get__" and id(self._inside[-1]) in self._own:
                self._add(name.strip("_"), self._names[id(self._inside[-1])], "", result)
        return result

    def _add(self, name: str, module: str, kind: str, result: Any) -> None:
        self._keeping = True  # what is done here is no part of the pass
        try:
            values = _rows_first(result, self.rows)
            if values is None:
                return
            taken = self.chosen is None or len(self.results) in self.chosen
            kept = self.keep(tensors.to_numpy(values)) if taken else None
            self.results.append(Result(name, module, kind, user_place(sys._getframe(2)), kept))
        finally:
            self._keeping = False


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arguments by name, with the members of mappings and lists by theirs."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat({f"{name}.{n}": v for n, v in value.items()})
        elif isinstance(value, (list, tuple)):
            yield from _flat({f"{name}.{n}": v for n, v in enumerate(value)})
        else:
            yield name, value


def _rows_first(result: Any, rows: int) -> torch.Tensor | None:
    """The first tensor of a result that has the rows as an axis, with that axis first; None if there is none."""
    members = result.values() if isinstance(result, Mapping) else result
    for seen in members if isinstance(members, Iterable) and not isinstance(members, torch.Tensor) else [members]:
        if not isinstance(seen, torch.Tensor) or not seen.is_floating_point() or not seen.dim():
            continue
        if seen.layout != torch.strided or seen.device.type == "meta":
            continue
        if len(seen) == rows:
            return seen.detach()
        if seen.dim() > 1 and seen.shape[1] == rows:
            return seen.detach().transpose(0, 1)
    return None
