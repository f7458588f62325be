"""Watches torch's graph during one step: where tensors are detached, changed in place, or kept for later, and how
much memory graphs take while the script keeps them alive."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from trainwright.core import Call, Place, Repair, Seam
from trainwright.seams.failures.repair_log import apply_repair
from trainwright.seams.listening.doors import take_away
from trainwright.seams.source.places import is_users, show, user_place
from trainwright.seams.source.written import attribute_place, class_file
from trainwright.seams.torch.modes import Leaving, original
from trainwright.stages import CutOff, InPlace, KeptTensor, PlainList
from trainwright.tensors.torch import objects as tensors
from trainwright.tensors.torch.transforms import within_transform

_CUTS: dict[Any, str] = {
    torch.Tensor.detach: "detach()", torch.Tensor.detach_: "detach_()", torch.Tensor.data.__get__: ".data",
    torch.Tensor.item: "item()", torch.Tensor.numpy: "numpy()", torch.Tensor.tolist: "tolist()",
    torch.argmax: "argmax", torch.Tensor.argmax: "argmax", torch.round: "round", torch.Tensor.round: "round",
    torch.Tensor.long: "long()", torch.Tensor.int: "int()", torch.as_tensor: "as_tensor", torch.tensor: "tensor",
    torch.sign: "sign", torch.Tensor.sign: "sign",
}  # fmt: skip
_LOSSES = frozenset(f for n, f in vars(F).items() if n.endswith(("_loss", "entropy", "_with_logits", "kl_div")))
# Modules whose functions forward a call unchanged.
_BETWEEN = (
    "torch.",
    "trainwright.seams.devices.",
    "trainwright.seams.listening.",
    "trainwright.rehearsal.watch.",
    "trainwright.look.",
)
NO_GRAD = "no_grad"
# A model that detaches in a loop over its layers shows in fewer cuts than this; each costs a traversal of its graph.
MOST_CUTS = 32


@dataclass(kw_only=True)
class GraphRecord:
    """Observations of the graph during one step."""

    cuts: list[CutOff] = field(default_factory=list)
    in_place: list[InPlace] = field(default_factory=list)
    backwards: list[Place | None] = field(default_factory=list)
    """The user's line of each call of backward; None if the framework calls it."""
    loss_callers: list[bool] = field(default_factory=list)
    """For each call of a loss function: whether user code made it."""
    strays: list[nn.Module] = field(default_factory=list)
    """Modules that were called but are not registered in the model."""


class GraphWatch(Leaving):
    """Watches where user code detaches tensors or changes them in place; CUT repairs keep them attached."""

    def __init__(self, model: nn.Module, repairs: Sequence[Repair] = (), *, detail: bool = False) -> None:
        super().__init__()
        self.record = GraphRecord()
        self._model = model
        self._detail = detail
        self._repairs = [r for r in repairs if r.seam == Seam.CUT]
        self._names = {id(p): n for n, p in model.named_parameters()}
        self._registered = {id(m) for m in model.modules()}
        self._seen: set[tuple[str, Place | None]] = set()
        self._hooks: list[Any] = []
        self._enabled: list[tuple[nn.Module, bool]] = []
        self.updates: Callable[[], int] = lambda: 0
        """How many times an optimizer was to step so far."""

    def __enter__(self) -> GraphWatch:
        if self._detail or self._repairs:
            module_hooks = torch.nn.modules.module
            self._hooks = [
                module_hooks.register_module_forward_pre_hook(self._before),
                module_hooks.register_module_forward_hook(self._after, always_call=True),
            ]
        for hook in self._hooks:  # also where the step is interrupted
            take_away(hook.remove)
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        for hook in self._hooks:
            hook.remove()

    def join(self, model: nn.Module) -> None:
        """A further module is called, which this model holds with all before."""
        self._model, self._names = model, {id(p): n for n, p in model.named_parameters()}
        self._registered |= {id(m) for m in model.modules()}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func, kwargs = original(func), kwargs or {}
        if self.is_passive or within_transform():
            return func(*args, **kwargs)
        frame = sys._getframe(1)
        if func is torch.Tensor.backward and self._detail:
            self.record.backwards.append(user_place(frame))
        if func in _LOSSES:
            self.record.loss_callers.append(_called_by_user(frame))
        result = func(*args, **kwargs)
        if func in _CUTS and args and isinstance(args[0], torch.Tensor) and args[0].requires_grad:
            place = user_place(frame) if _called_by_user(frame) else None
            if place is not None:
                return self._cut(_CUTS[func], place, args[0], result)
        if self._detail and args and isinstance(args[0], torch.Tensor) and _in_place(func, kwargs):
            name = getattr(func, "__name__", "")
            if (place := user_place(frame)) is not None:
                self.record.in_place.append(InPlace(operation=name.strip("_"), shape=tuple(args[0].shape), where=place))
        return result

    def _cut(self, operation: str, place: Place, value: torch.Tensor, result: Any) -> Any:
        for repair in self._repairs:
            given = {"operation": operation, "where": place, "value": value, "result": result}
            result = apply_repair(repair, Call(seam=Seam.CUT, given=given, tensors=tensors))["result"]
        if self._detail and (operation, place) not in self._seen and len(self._seen) < MOST_CUTS:
            self._seen.add((operation, place))
            upstream = tuple(sorted(upstream_parameters(value, self._names)))
            self.record.cuts.append(
                CutOff(operation=operation, where=place, upstream=upstream, updates_before=self.updates())
            )
        return result

    def _before(self, module: nn.Module, args: Any) -> None:
        if id(module) not in self._registered:
            self.record.strays.append(module)
        if torch.is_grad_enabled() or not any(p.requires_grad for p in module.parameters()):
            return
        place = user_place(sys._getframe(1))
        for repair in self._repairs:
            given = {"operation": NO_GRAD, "where": place, "value": True, "result": False}
            if apply_repair(repair, Call(seam=Seam.CUT, given=given, tensors=tensors))["result"]:
                self._enabled.append((module, torch.is_grad_enabled()))
                torch.set_grad_enabled(True)
                return
        if self._detail and (NO_GRAD, place) not in self._seen:
            self._seen.add((NO_GRAD, place))
            names = tuple(self._names[id(p)] for p in module.parameters() if p.requires_grad and id(p) in self._names)
            self.record.cuts.append(
                CutOff(operation=NO_GRAD, where=place, upstream=names, updates_before=self.updates())
            )

    def _after(self, module: nn.Module, args: Any, output: Any) -> None:
        if self._enabled and self._enabled[-1][0] is module:
            torch.set_grad_enabled(self._enabled.pop()[1])


def _called_by_user(frame: Any) -> bool:
    """Whether the call came from the user's line, or from torch's own wrapper called there."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_BETWEEN):
        frame = frame.f_back
    return frame is not None and is_users(frame.f_code.co_filename)


def _in_place(func: Any, kwargs: Mapping[str, Any]) -> bool:
    name = getattr(func, "__name__", "")
    return (
        name == "__setitem__"
        or bool(kwargs.get("inplace"))
        or (
            name.endswith("_") and not name.endswith("__") and name not in ("requires_grad_", "retain_grad_", "detach_")
        )
        or func is F.relu_
    )


def leaves_behind(tensors: Sequence[torch.Tensor], most: float = math.inf) -> Iterator[torch.Tensor]:
    """The leaves that tensors were computed from, the nearest first.

    Args:
        most: operations of the graph that are looked at.
    """
    waiting = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    seen: set[Any] = set(waiting)  # nodes are objects only as long as somebody holds them
    for node in waiting:  # it grows as it is read: a search in breadth
        if (leaf := getattr(node, "variable", None)) is not None:
            yield leaf
        for following, _ in getattr(node, "next_functions", ()):
            if following is not None and following not in seen and len(seen) < most:
                seen.add(following)
                waiting.append(following)


def upstream_parameters(tensor: torch.Tensor, names: Mapping[int, str]) -> set[str]:
    """Names of the parameters that a tensor was computed from."""
    if id(tensor) in names:
        return {names[id(tensor)]}
    return {names[id(leaf)] for leaf in leaves_behind([tensor]) if id(leaf) in names}


def kept_tensors(owners: Mapping[str, Any]) -> list[KeptTensor]:
    """Attributes of these objects that still hold a part of a step's graph after the step."""
    found = []
    for name, owner in owners.items():
        for attribute, value in vars(owner).items():
            if attribute.startswith("_") and attribute in ("_parameters", "_buffers", "_modules"):
                value = None if attribute != "_buffers" else [(k, v) for k, v in value.items()]
                for key, one in value or ():
                    if _on_graph(one):
                        found.append(_kept(name, key, owner))
            elif any(_on_graph(v) for v in members(value)):
                found.append(_kept(name, attribute, owner))
    return found


def _kept(name: str, attribute: str, owner: Any) -> KeptTensor:
    return KeptTensor(
        name=f"{name}.{attribute}".lstrip("."), where=find_assignment(owner, attribute), of_trainer=name == "trainer"
    )


def find_assignment(owner: Any, attribute: str, *, made: bool = False) -> Place | None:
    """The last line of the object's own class that assigns the attribute (or creates it), outside its constructor."""
    for kind in type(owner).__mro__:
        file = class_file(kind)
        if file and is_users(file) and (place := attribute_place(file, kind.__name__, attribute, made=made)):
            return place
    return None


def _on_graph(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.grad_fn is not None


def members(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from members(one) if isinstance(one, (list, tuple)) and len(one) < 64 else (one,)
    else:
        yield value


def plain_lists(
    model: nn.Module, strays: Sequence[nn.Module], places: Callable[[nn.Module], Place | None], held: set[int]
) -> list[PlainList]:
    """Plain lists and dictionaries in the model whose unregistered modules were called and got a gradient."""
    called = {id(m) for m in strays}
    found = []
    for name, owner in model.named_modules():
        for attribute, value in vars(owner).items():
            if not isinstance(value, (list, tuple, dict)) or attribute.startswith("_"):
                continue
            inside = [m for m in members(value) if isinstance(m, nn.Module) and id(m) in called]
            lost = [p for m in inside for p in m.parameters() if p.grad is not None and id(p) not in held]
            if lost:
                found.append(
                    PlainList(
                        name=f"{name}.{attribute}".lstrip("."),
                        kind=type(value).__name__,
                        modules=len(inside),
                        parameters=sum(p.numel() for p in lost),
                        where=find_assignment(owner, attribute, made=True) or places(inside[0]),
                    )
                )
    return found


@contextmanager
def anomalies() -> Iterator[list[tuple[str, Place | None]]]:
    """While open: the forward calls whose backward failed or gave NaN, as (function, the user's line)."""
    found: list[tuple[str, Place | None]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with torch.autograd.detect_anomaly(check_nan=True):
                yield found
        finally:
            for warning in caught:
                text = str(warning.message)
                if (seen := re.search(r"Error detected in (\w+?)(?:Backward\d*)?\. Traceback", text)) is not None:
                    found.append((seen.group(1), _deepest(text)))


def _deepest(text: str) -> Place | None:
    lines = [(f, int(n)) for f, n in re.findall(r'File "(.+?)", line (\d+)', text) if is_users(f)]
    return Place(show(lines[-1][0]), lines[-1][1]) if lines else None
