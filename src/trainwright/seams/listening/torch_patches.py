"""torch patches: modules, optimizers, schedules and loaders that a script builds, the calls of a training step, and the processes
that it starts, which are forked so that what they do is observed too."""

from __future__ import annotations

import difflib
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trainwright.seams.failures.blame import passed_on
from trainwright.seams.listening.checkpoint_names import unmatched_checkpoint
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
from trainwright.seams.source.places import is_ours, place_of, places_on_the_way, user_frame
from trainwright.tensors.torch.transforms import within_transform

# difflib's ratio of require_grad, requires_grads, require_gradient, requires_gradient to requires_grad is 0.83 to 0.96.
LOOKS_LIKE = 0.8

_on_loader: list[Callable[[Any], None]] = []
_on_batch: list[Callable[[Any, Callable[[], Any]], Any]] = []


@contextmanager
def watching_loaders(begun: Callable[[Any], None], batch: Callable[[Any, Callable[[], Any]], Any]) -> Iterator[None]:
    """While the context lasts, report each loader that is started, and control its batches.

    Args:
        batch: takes the loader's iterator and a function that draws its next batch, and returns the batch to yield.
    """
    _on_loader.append(begun)
    _on_batch.append(batch)
    try:
        yield
    finally:
        _on_loader.pop()
        _on_batch.pop()


_loaders: WeakIdentityDictionary[Any] = WeakIdentityDictionary()


def loader_of(iterator: Any) -> Any:
    """The loader that an iterator came from, or None."""
    return _loaders.get(iterator)


def begun_iterators() -> list[Any]:
    """The live iterators of loaders that were started."""
    return list(_loaders)


def patch_modules(module: Any) -> None:
    original = module.Module.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if active():
            frame = builder_frame(self)
            if frame is not None:
                seen().modules[self] = place_of(frame)
                seen().asked_at[self] = tuple(places_on_the_way(frame))

    module.Module.__init__ = init
    patch_state(module.Module)
    patch_modes(module.Module)
    patch_freezing(sys.modules["torch.nn.parameter"].Parameter, module.Module)


def patch_state(owner: Any) -> None:
    original = owner.load_state_dict

    @functools.wraps(original)
    def load_state_dict(self: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, state, *args, **kwargs)
        if active() and (frame := user_frame(sys._getframe(1))) is not None and self not in seen().loadings:
            unmatched = unmatched_checkpoint(self, state, result, place_of(frame))
            if unmatched is not None:
                seen().unmatched[self] = unmatched
                return result
            seen().unmatched.pop(self, None)
            fresh = frozenset(getattr(result, "missing_keys", ()))
            seen().loadings[self] = Loading(fresh=fresh).of(self)
        return result

    owner.load_state_dict = load_state_dict


def patch_modes(owner: Any) -> None:
    original = owner.train

    @functools.wraps(original)
    def train(self: Any, mode: bool = True) -> Any:
        if active():
            if mode:
                seen().stilled.pop(self, None)
            elif (frame := user_frame(sys._getframe(1))) is not None:
                seen().stilled[self] = place_of(frame)
        return passed_on(original, self, mode)

    owner.train = train


def patch_freezing(parameter: Any, module: Any) -> None:
    """Record which line froze a parameter; a layer's `requires_grad` attribute and misspellings freeze nothing."""
    write, switch, set_member = parameter.__setattr__, parameter.requires_grad_, module.__setattr__

    def parameter_setattr(self: Any, name: str, value: Any) -> None:
        passed_on(write, self, name, value)
        if value is False and name.startswith("req") and active():
            _note_frozen(self, name)

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        result = passed_on(switch, self, requires_grad)
        if not requires_grad and active():
            _note_frozen(self, "requires_grad")
        return result

    @functools.wraps(set_member)
    def module_setattr(self: Any, name: str, value: Any) -> None:
        passed_on(set_member, self, name, value)
        if value is False and name.startswith("req") and active():
            _note(self, name)

    parameter.__setattr__, parameter.requires_grad_, module.__setattr__ = (
        parameter_setattr,
        functools.wraps(switch)(requires_grad_),
        module_setattr,
    )


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
    begin, draw = module.DataLoader.__iter__, module._BaseDataLoaderIter.__next__

    @functools.wraps(begin)
    def begun(self: Any) -> Any:
        for told in _on_loader:
            told(self)
        iterator = begin(self)
        _loaders[iterator] = self
        return iterator

    @functools.wraps(draw)
    def next_batch(self: Any) -> Any:
        if _on_batch:
            return _on_batch[-1](self, functools.partial(draw, self))
        return draw(self)

    module.DataLoader.__iter__ = begun
    module._BaseDataLoaderIter.__next__ = next_batch


def patch_backward(module: Any) -> None:
    for name in ("backward", "grad"):
        original = getattr(module, name)

        @functools.wraps(original)
        def call(*args: Any, _original: Any = original, **kwargs: Any) -> Any:
            # The graph is only being inspected, or this is torch.func's way to a gradient, inside a transform.
            if is_ours(sys._getframe(1).f_code.co_filename) or within_transform():
                return _original(*args, **kwargs)
            looping(backward=_original.__name__ == "backward")
            return _original(*args, **kwargs)

        setattr(module, name, call)


_on_clip: list[tuple[Callable[[], None], Callable[[Callable[[], Any]], None]]] = []


def watch_clips(begun: Callable[[], None], ended: Callable[[Callable[[], Any]], None]) -> None:
    """Report the beginning and end of each call of torch's gradient clipping, to the end of the process.

    Args:
        ended: is told how to clip again.
    """
    _on_clip.append((begun, ended))


def patch_clipping(module: Any) -> None:
    owners: list[Any] = [module, sys.modules.get("torch.nn.utils")]
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        watched = _watch_clip(getattr(module, name))
        for owner in (o for o in owners if o is not None):
            setattr(owner, name, watched)


def _watch_clip(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        given = _listed(parameters)
        for begun, _ in _on_clip:
            begun()
        answer = passed_on(original, given, *args, **kwargs)
        for _, ended in _on_clip:
            ended(functools.partial(original, given, *args, **kwargs))
        return answer

    return clip


def _listed(parameters: Any) -> list[Any]:
    return [parameters] if hasattr(parameters, "grad_fn") else list(parameters)


def patch_processes(module: Any) -> None:
    """Fork the processes that a script starts for training, so that their actions are observed too."""
    original = module.start_processes

    @functools.wraps(original)
    def start_processes(
        fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
    ) -> Any:
        if not active() or sys.modules["torch"].cuda.is_initialized():  # a process that uses a GPU cannot be forked
            return passed_on(original, fn, args, nprocs, join, daemon, start_method)
        context = passed_on(original, functools.partial(_work, fn), args, nprocs, False, daemon, "fork")
        context.join = functools.partial(_join, context.join)
        while join and not context.join():
            pass
        return None if join else context

    module.start_processes = start_processes


def _join(original: Any, *args: Any, **kwargs: Any) -> Any:
    is_over = original(*args, **kwargs)
    listener().children_ended()  # a process that checked returns nothing, which launchers wait for in vain
    return is_over


def _work(fn: Any, rank: int, *args: Any) -> None:
    listener().in_child(functools.partial(fn, rank, *args))
