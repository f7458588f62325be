"""Weights that are saved, copied and loaded."""

from __future__ import annotations

import copy
import os
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

from trainwright.core import Place
from trainwright.rehearsal.record_parts import KeptWeights, Loaded
from trainwright.rehearsal.watch.torch.samples import fingerprint, holder_of, state_in, weights_in
from trainwright.rehearsal.watch.torch.state import WatchState, unwrap_module, weights_fingerprint
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.listening.seen import WeakIdentityDictionary
from trainwright.seams.source.places import nearest_place

# Copies and files that are noted.
MOST_KEPT = 5000
# What functions that save call their first two arguments.
_SAVED = ("obj", "tensors", "model", "f", "filename")


class Files:
    """Notes weights that come and go."""

    def __init__(self, state: WatchState) -> None:
        self._state = state
        self._taken: WeakIdentityDictionary[tuple[int, int, Place | None]] = WeakIdentityDictionary()

    def keep(self, value: Any, how: str, path: Any = "") -> None:
        """Weights are saved or copied."""
        kept = self._state.recorder.record.kept
        if len(kept) >= MOST_KEPT:
            return
        weights = self._fingerprint(value)
        if weights is not None:
            shown = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
            where = nearest_place(sys._getframe(1))
            kept.append(
                KeptWeights(
                    update=self._state.update,
                    weights=weights[0],
                    how=how,
                    path=str(shown),
                    tensors=weights[1],
                    where=where,
                )
            )

    def _fingerprint(self, value: Any) -> tuple[float, int] | None:
        if isinstance(value, torch.nn.Module):
            if next(value.parameters(), None) is None:
                return None
            return weights_fingerprint(value), sum(1 for _ in value.parameters())
        found = state_in(value)
        return (fingerprint(weights_in(found)), len(found)) if found else None

    def before(self, module: Any) -> float:
        """The fingerprint of a model that weights are put into."""
        return weights_fingerprint(module)

    def take(self, module: Any, given: Any) -> None:
        """A model has given its weights, which go on with it unless they are copied."""
        if isinstance(given, OrderedDict) and self._state.update:
            self._taken[given] = (_count_changes(module), self._state.update, nearest_place(sys._getframe(1)))

    def find_taken(self, module: Any, given: Any) -> tuple[int, Place | None] | None:
        """After how many updates, and where, the model has given weights that are still its own, and were trained on since."""
        changes, update, where = self._taken.get(given, (0, 0, None))
        own = {name: p.data_ptr() for name, p in module.named_parameters()}
        is_own = bool(own) and all(getattr(given.get(name), "data_ptr", int)() == at for name, at in own.items())
        return (update, where) if update and is_own and changes != _count_changes(module) else None

    def load(self, module: Any, before: float | None, result: Any, taken: tuple[int, Place | None] | None) -> None:
        """Weights were put into a model."""
        loaded = self._state.recorder.record.loaded
        if before is None or len(loaded) >= MOST_KEPT:
            return
        update, where = taken or (None, None)
        loaded.append(
            Loaded(
                update=self._state.update,
                model=self._state.recorder.number_of(holder_of(unwrap_module(module))),
                before=before,
                after=weights_fingerprint(module),
                missing=len(getattr(result, "missing_keys", ())),
                tensors=sum(1 for _ in module.parameters()),
                where=nearest_place(sys._getframe(1)),
                taken=update,
                taken_at=where,
            )
        )


def _count_changes(module: Any) -> int:
    return sum(p._version for p in module.parameters())


def _saving(state: WatchState, keep: Callable[..., Any]) -> Callable[..., Any]:
    """Notes what a call has saved: its first argument, in the file that is its second."""

    def passed_on_save(go_on: Any, *args: Any, **kwargs: Any) -> Any:
        result = go_on(*args, **kwargs)
        given = [*args, *(kwargs[name] for name in _SAVED if name in kwargs)]
        if len(given) > 1 and not state.is_off():
            keep(given[0], "saved", given[1])
        return result

    return passed_on_save


def watch_files(state: WatchState) -> None:
    """Look at `torch.save`, `copy.deepcopy` and `load_state_dict`."""
    files = Files(state)
    watching = state.recorder.watching
    keep, before, load = watching(files.keep), watching(files.before), watching(files.load)
    take, find_taken = watching(files.take), watching(files.find_taken)

    def passed_on_copy(go_on: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs and isinstance(x, (dict, torch.nn.Module)) and state.update and not state.is_off():
            keep(x, "copied")
        return go_on(x, *args, **kwargs)

    def passed_on_load(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if state.is_off():
            return go_on(self, *args, **kwargs)
        earlier, taken = before(self), find_taken(self, args[0] if args else kwargs.get("state_dict"))
        result = go_on(self, *args, **kwargs)
        load(self, earlier, result, taken)
        return result

    def passed_on_state(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        result = go_on(self, *args, **kwargs)
        if not (args or kwargs or state.is_off()):  # of a part of the model, it is given what the whole one gives
            take(self, result)
        return result

    watch_door(copy, "deepcopy", passed_on_copy)
    watch_door(torch, "save", _saving(state, keep))
    watch_door(torch.nn.Module, "load_state_dict", passed_on_load)
    watch_door(torch.nn.Module, "state_dict", passed_on_state)


def watch_safetensors(watch: Any, module: Any) -> None:
    """Look at `safetensors.torch.save_file` and `save_model`."""
    state: WatchState = watch.state
    saving = _saving(state, state.recorder.watching(Files(state).keep))
    watch_door(module, "save_file", saving)
    watch_door(module, "save_model", saving)
