"""The observers of a step, around real updates: models may join, and nothing of the script's objects is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from trainwright.core import Repair
from trainwright.look.tape import Tape
from trainwright.seams.failures.blame import failure_of, frames_of
from trainwright.seams.listening.seen import seen
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.observer import Observer


def original(func: Any) -> Any:
    """The function itself, where a watcher of the run stands in its place."""
    return func if func is torch.Tensor.backward else getattr(func, "__wrapped__", func)


class Leaving(TorchFunctionMode):
    """A mode that can be left while another of the script's lies over it: it stays there without effect."""

    is_passive = False
    _hooks: list[Any]

    def retire(self) -> None:
        """Have no effect from now on."""
        self.is_passive = True
        for hook in self._hooks:
            hook.remove()


class RunObserver(Leaving, Observer):
    """Observes the forward pass and the loss of a real step."""

    def __init__(
        self,
        model: nn.Module,
        roots: Sequence[nn.Module],
        repairs: Sequence[Repair] = (),
        *,
        tape: Tape | None = None,
        detail: bool = False,
        keeps_losses: bool = False,
    ) -> None:
        super().__init__(
            model,
            repairs,
            roots=roots,
            detail=detail,
            trained_only=True,
            keeps_losses=keeps_losses,
            places=seen().modules.get,
            asked_at=seen().asked_at,
        )
        self._tape = tape
        """Where the calls outside of the model's modules are noted."""

    @property
    def roots(self) -> list[nn.Module]:
        """The modules that the training calls."""
        return self._roots

    def join(self, model: nn.Module, root: nn.Module) -> None:
        """A further module is called, with a model that holds it and all before."""
        self._model, self._names = model, {id(m): n for n, m in model.named_modules()}
        self._roots.append(root)
        for module in root.modules():
            self._hooks.append(module.register_forward_pre_hook(self._before, with_kwargs=True))
            self._hooks.append(module.register_forward_hook(self._after, with_kwargs=True))

    def forget(self) -> None:
        """Let go of the step's tensors, and of the graph that hangs on them."""
        record = self.record
        record.output = record.scores = record.loss_tensor = record.targets = None
        record.kept_losses, record.broadcasts = [], []
        self._normalised, self._activated = {}, {}

    def is_left_by(self, error: BaseException) -> bool:
        """Whether the step stands where an exception has left it: it may stand where an earlier one did, which was caught."""
        if self._stack:
            return any(frame.f_locals.get("self") is self._stack[-1][0] for frame in frames_of(error))
        last = self.record.loss_calls[-1].failure if self.record.loss_calls else None
        return last is None or last.is_same(failure_of(error))  # what the step has kept knows no line outside of it

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.is_passive:
            return func(*args, **(kwargs or {}))
        func, kwargs, tape = original(func), kwargs or {}, self._tape if not self._stack else None
        if tape is not None and func is torch.Tensor.backward:
            tape.end(args, kwargs)
        given = (func, types, args, kwargs)
        result = super().__torch_function__(*given)  # hands the call on: what it raises is the script's
        if tape is not None:
            tape.note(func, args, kwargs, result)
        return result

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        super()._after(module, args, kwargs, output)
        if self._tape is not None and not self._stack:
            self._tape.note(module, args, kwargs, output)


class RunGraphWatch(Leaving, GraphWatch):
    """Watches the graph of a real step."""

    def join(self, model: nn.Module) -> None:
        """A further module is called, which this model holds with all before."""
        self._model, self._names = model, {id(p): n for n, p in model.named_parameters()}
        self._registered |= {id(m) for m in model.modules()}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.is_passive:
            return func(*args, **(kwargs or {}))
        given = (original(func), types, args, kwargs)
        return super().__torch_function__(*given)  # hands the call on: what it raises is the script's
