"""Watchers: what a framework does while a script runs, written into the record."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import wrapt

from trainwright.look.ending import measure_end
from trainwright.look.results import LookResult
from trainwright.rehearsal.names import NameSeeker
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.numbers import watch_logging
from trainwright.seams.requirements import shortfall

_FOLDER = "trainwright.rehearsal.watch"


def watch(recorder: Recorder) -> None:
    """Watch the frameworks that the script imports, from when it imports them; nothing is imported for that."""
    watch_logging(recorder)
    recorder.on_begin.append(functools.partial(recorder.guard, NameSeeker(recorder.names)))
    found = _Frameworks(recorder)
    recorder.on_end.append(found.end)
    recorder.on_finish.append(found.finish)
    begins: dict[str, Callable[[Any], None]] = {
        "torch": found.begin_torch,
        "jax": lambda module: _part("jax.functions").watch_jax(recorder, module),
        "sklearn.metrics": lambda module: _part("sklearn").watch_sklearn(recorder, module),
        **dict.fromkeys(("keras", "tf_keras"), found.begin_keras),
        **{name: functools.partial(found.begin_after_torch, name) for name in _AFTER_TORCH},
    }
    for name, begin in begins.items():
        wrapt.register_post_import_hook(recorder.watching(begin), name)


def finish(recorder: Recorder) -> Record:
    """The record of the run, which is over."""
    for part in recorder.on_finish:
        recorder.guard(part)
    return recorder.finish()


def finish_behind(recorder: Recorder) -> Record:
    """The record with what is seen once it was written."""
    for part in recorder.on_written:
        recorder.guard(part)
    return recorder.finish()


# What needs the watchers of torch: the file and the function that watch it, by the module.
_AFTER_TORCH = {
    "torch.utils.data.dataloader": ("torch.loaders", "watch_loaders"),
    "safetensors.torch": ("torch.files", "watch_safetensors"),
    "transformers.trainer": ("torch.trainer", "watch_trainer"),
    "lightning.pytorch": ("torch.lightning", "watch_lightning"),
    "pytorch_lightning": ("torch.lightning", "watch_lightning"),
}


class _Frameworks:
    """Begins to watch each framework when it is imported; parts of torch are, while torch itself is on its way."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._torch: Any = None
        self._waiting: list[tuple[str, Any]] = []
        self._has_keras = False

    def begin_torch(self, module: Any) -> None:
        """Torch was imported."""
        self._torch = _part("torch.watch").watch_torch(self._recorder)
        for name, waiting in self._waiting:
            self.begin_after_torch(name, waiting)

    def begin_after_torch(self, name: str, module: Any) -> None:
        """A module was imported that needs the watchers of torch."""
        if self._torch is None:
            self._waiting.append((name, module))
            return
        file, function = _AFTER_TORCH[name]
        getattr(_part(file), function)(self._torch, module)

    def begin_keras(self, module: Any) -> None:
        """Keras was imported; one that is too old says so when it trains."""
        if shortfall([module.__name__]):
            return
        _part("keras.doors").watch_keras(self._recorder, module)
        self._has_keras = True

    def end(self, error: BaseException | None) -> None:
        """The script has ended, with this exception or without one; torch's look knows more of it."""
        if self._torch is None and isinstance(error, Exception):
            facts = self._recorder.watching(measure_end)(error, None)
            self._recorder.record.looks += [LookResult(0, facts, is_end=True)] if facts else []

    def finish(self) -> None:
        """The run is over."""
        if self._has_keras:
            self._recorder.guard(functools.partial(_part("keras.doors").finish_keras, self._recorder))
        if self._torch is not None:
            self._torch.finish()


def _part(name: str) -> Any:
    return importlib.import_module(f"{_FOLDER}.{name}")
