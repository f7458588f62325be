"""torch patches: modules, optimizers, schedules and loaders that a script builds, the calls of a training step, and the processes
that it starts, which are forked so that what they do is observed too."""

from __future__ import annotations

import difflib
import functools
import sys
import weakref
from typing import Any

from trainwright.seams.failures.blame import passed_on
from trainwright.seams.listening.checkpoint_names import unmatched_checkpoint
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.listening.seen import (
    Loading,
    WeakIdentityDictionary,
    active,
    builder_frame,
    keep_constructions,
    listener,
    looping,
    seen,
)
from trainwright.seams.source.places import place_of, places_on_the_way, user_frame

# difflib's ratio of require_grad, requires_grads, require_gradient, requires_gradient to requires_grad is 0.83 to 0.96.
LOOKS_LIKE = 0.8

_loaders: WeakIdentityDictionary[Any] = WeakIdentityDictionary()


def loader_of(iterator: Any) -> Any:
    """The loader that an iterator came from, or None."""
    return _loaders.get(iterator)


def begun_iterators() -> list[Any]:
    """The live iterators of loaders that were started."""
    return list(_loaders)


def patch_modules(module: Any) -> None:
    def init(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        go_on(self, *args, **kwargs)
        if active():
            frame = builder_frame(self)
            if frame is not None:
                seen().modules[self] = place_of(frame)
                seen().asked_at[self] = tuple(places_on_the_way(frame))

    watch_door(module.Module, "__init__", init)
    patch_state(module.Module)
    patch_modes(module.Module)
    patch_freezing(sys.modules["torch.nn.parameter"].Parameter, module.Module)


def patch_state(owner: Any) -> None:
    def load_state_dict(go_on: Any, self: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        result = go_on(self, state, *args, **kwargs)
        if active() and (frame := user_frame(sys._getframe(1))) is not None and self not in seen().loadings:
            unmatched = unmatched_checkpoint(self, state, result, place_of(frame))
            if unmatched is not None:
                seen().unmatched[self] = unmatched
                return result
            seen().unmatched.pop(self, None)
            fresh = frozenset(getattr(result, "missing_keys", ()))
            seen().loadings[self] = Loading(fresh=fresh).of(self)
        return result

    watch_door(owner, "load_state_dict", load_state_dict)


def patch_modes(owner: Any) -> None:
    def train(go_on: Any, self: Any, mode: bool = True) -> Any:
        if active():
            if mode:
                seen().stilled.pop(self, None)
            elif (frame := user_frame(sys._getframe(1))) is not None:
                seen().stilled[self] = place_of(frame)
        return passed_on(go_on, self, mode)

    watch_door(owner, "train", train)


def patch_freezing(parameter: Any, module: Any) -> None:
    """Record which line froze a parameter; a layer's `requires_grad` attribute and misspellings freeze nothing."""

    def parameter_setattr(go_on: Any, self: Any, name: str, value: Any) -> None:
        passed_on(go_on, self, name, value)
        if value is False and name.startswith("req") and active():
            _note_frozen(self, name)

    def requires_grad_(go_on: Any, self: Any, requires_grad: bool = True) -> Any:
        result = passed_on(go_on, self, requires_grad)
        if not requires_grad and active():
            _note_frozen(self, "requires_grad")
        return result

    def module_setattr(go_on: Any, self: Any, name: str, value: Any) -> None:
        passed_on(go_on, self, name, value)
        if value is False and name.startswith("req") and active():
            _note(self, name)

    watch_door(parameter, "__setattr__", parameter_setattr)
    watch_door(parameter, "requires_grad_", requires_grad_)
    watch_door(module, "__setattr__", module_setattr)


def _note_frozen(parameter: Any, name: str) -> None:
    frame = user_frame(sys._getframe(2))
    if name != "requires_grad":
        _note(parameter, name)
    elif frame is not None:
        seen().frozen[id(parameter)] = (weakref.ref(parameter), place_of(frame))


def _note(owner: Any, name: str) -> None:
    frame = user_frame(sys._getframe(2))
    if frame is not None and difflib.SequenceMatcher(None, name, "requires_grad").ratio() > LOOKS_LIKE:
        seen().misspelt.append((weakref.ref(owner), name, place_of(frame)))


def patch_optimizers(module: Any) -> None:
    keep_constructions(module.Optimizer, "optimizers")
    module.register_optimizer_step_pre_hook(_steps)


def _steps(optimizer: Any, *_: Any) -> None:
    """Handle a step with gradients that no backward pass may have made; one without any only moves a schedule."""
    if any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
        looping()


def patch_schedules(module: Any) -> None:
    keep_constructions(module.LRScheduler, "schedules")
    keep_constructions(module.ReduceLROnPlateau, "schedules")


def patch_loaders(module: Any) -> None:
    keep_constructions(module.DataLoader, "loaders", of=lambda loader: id(loader.dataset))

    def begun(go_on: Any, self: Any) -> Any:
        iterator = go_on(self)
        _loaders[iterator] = self
        return iterator

    watch_door(module.DataLoader, "__iter__", begun)


def patch_backward(module: Any) -> None:
    for name in ("backward", "grad"):
        watch_door(module, name, functools.partial(_note_backward, name == "backward"))


def _note_backward(is_backward: bool, go_on: Any, *args: Any, **kwargs: Any) -> Any:
    looping(backward=is_backward)
    return go_on(*args, **kwargs)


def patch_processes(module: Any) -> None:
    """Fork the processes that a script starts for training, so that their actions are observed too."""
    watch_door(module, "start_processes", _start_processes)


def _start_processes(
    go_on: Any,
    fn: Any,
    args: Any = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    if not active() or sys.modules["torch"].cuda.is_initialized():  # a process that uses a GPU cannot be forked
        return passed_on(go_on, fn, args, nprocs, join, daemon, start_method)
    context = passed_on(go_on, functools.partial(_work, fn), args, nprocs, False, daemon, "fork")
    context.join = functools.partial(_join, context.join)
    while join and not context.join():
        pass
    return None if join else context


def _join(original: Any, *args: Any, **kwargs: Any) -> Any:
    is_over = original(*args, **kwargs)
    listener().children_ended()  # a process that checked returns nothing, which launchers wait for in vain
    return is_over


def _work(fn: Any, rank: int, *args: Any) -> None:
    listener().in_child(functools.partial(fn, rank, *args))
