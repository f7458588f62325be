"""Whether a DataLoader's workers can start, where they are new processes that get their parts pickled.

The walk itself reads without workers. Nothing is started and nothing is kept: the pickle is thrown away while it is
made, and tensors, arrays and what multiprocessing sends in its own way are left out of it.
"""

from __future__ import annotations

import inspect
import io
import itertools
import multiprocessing
import sys
from collections.abc import Iterator, Mapping
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainwright.core.finding import Place
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.source.places import is_users, show
from trainwright.seams.source.written import attribute_place, class_file
from trainwright.stages.batch import SpawnedWorkers

# A data set of more Python objects is not pickled to the end; what cannot be pickled is nearly always near its top.
MOST_OBJECTS = 300_000
# How many parts of an object are tried to find the one that cannot be pickled, and how deep the search goes.
MOST_TRIED, DEEPEST = 200, 6
_SENT_OTHERWISE = ("multiprocessing.", "torch.multiprocessing", "torch._C", "torch.storage", "pyarrow.")


def workers_of_loader(loader: Any) -> SpawnedWorkers | None:
    """Why the workers of a DataLoader cannot start; None if they can, if it has none, or if they are forked."""
    names = ("dataset", "collate_fn", "worker_init_fn")
    parts = {name: getattr(loader, name, None) for name in names}
    return spawned_workers(getattr(loader, "num_workers", 0), getattr(loader, "multiprocessing_context", None), parts)


def spawned_workers(count: int, context: Any, parts: Mapping[str, Any]) -> SpawnedWorkers | None:
    """Why workers that get these parts cannot start.

    Args:
        context: the loader's multiprocessing context; None: the default one.
    """
    method = _method(context) if count else "fork"
    ours = any(type(part).__module__.startswith("trainwright.") for part in parts.values())
    if method == "fork" or ours:
        return None
    for name, part in parts.items():
        error = _refusal(part)
        if error:
            name, value, where = _culprit(name, part)
            kind, is_code = _kind(value)
            return SpawnedWorkers(
                count=count, method=method, part=name, kind=kind, is_code=is_code, error=error, where=where
            )
    return SpawnedWorkers(count=count, method=method, unguarded=True) if _trains_on_import() else None


def _method(context: Any) -> str:
    """The start method, without fixing the default one, as get_start_method() would."""
    if context is not None:
        return str(context.get_start_method())
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]


class _Enough(Exception):
    """So many objects could be pickled that the rest is not tried."""


class _Nowhere(io.RawIOBase):
    """A file that keeps nothing."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


class _Trial(ForkingPickler):
    """A pickler that leaves out what is large, or sent in another way."""

    def __init__(self) -> None:
        super().__init__(_Nowhere())
        self.left = MOST_OBJECTS

    def persistent_id(self, one: Any) -> Any:
        """A stand-in for an object that is not to be pickled; None for others."""
        self.left -= 1
        if self.left < 0:
            raise _Enough
        if isinstance(one, torch.Tensor) or (isinstance(one, np.ndarray) and one.dtype.kind != "O"):
            return "values"
        return "shared" if type(one).__module__.startswith(_SENT_OTHERWISE) else None


def _refusal(part: Any) -> str:
    """The error of pickling an object; empty if it can be pickled."""
    try:
        _Trial().dump(part)
    except _Enough:
        return ""
    except Exception as error:  # pickle raises whatever the object raises
        return f"{type(error).__name__}: {error}"
    return ""


def _culprit(name: str, value: Any) -> tuple[str, Any, Place | None]:
    """The innermost part that cannot be pickled: its expression, the part, and the user's line that made it."""
    where: Place | None = None
    for _ in range(DEEPEST):
        parts = itertools.islice(_inside(name, value), MOST_TRIED)
        found = next((part for part in parts if _refusal(part[1])), None)
        if found is None:
            break
        name, value, place = found
        where = place or where
    return name, value, _defined(value) or where


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any, Place | None]]:
    if inspect.isroutine(value) or isinstance(value, type):
        return
    if isinstance(value, Mapping):
        yield from ((f"{name}[{key!r}]", part, None) for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}[{number}]", part, None) for number, part in enumerate(value))
    else:
        for attribute, part in getattr(value, "__dict__", {}).items():
            yield f"{name}.{attribute}", part, _assigned(value, attribute)
        if hasattr(value, "func") and hasattr(value, "keywords"):  # functools.partial
            yield f"{name}.func", value.func, None


def _assigned(owner: Any, attribute: str) -> Place | None:
    for kind in type(owner).__mro__:
        file = class_file(kind)
        if file and is_users(file) and (place := attribute_place(file, kind.__name__, attribute)):
            return place
    return None


def _defined(value: Any) -> Place | None:
    """The user's line where a function begins, or the class of an object that is local to a function."""
    code = getattr(value, "__code__", None)
    if code is not None:
        return Place(show(code.co_filename), code.co_firstlineno) if is_users(code.co_filename) else None
    if "<locals>" in type(value).__qualname__:
        with tolerated():
            file, line = inspect.getsourcefile(type(value)), inspect.getsourcelines(type(value))[1]
            return Place(show(file), line) if file and is_users(file) else None
    return None


def _kind(value: Any) -> tuple[str, bool]:
    """What an object is, in words, and whether it is code that can be moved to the top level of a module."""
    name = getattr(value, "__qualname__", "")
    if name.endswith("<lambda>"):
        return "a lambda", True
    if "<locals>" in name:
        return f"{name.rpartition('.')[2]}, which is defined inside a function", True
    if "<locals>" in type(value).__qualname__:
        return f"an object of {type(value).__name__}, which is defined inside a function", True
    if inspect.isroutine(value) or isinstance(value, type):
        return f"{value.__name__}, which its module does not have under that name", True
    return f"an object of type {type(value).__module__}.{type(value).__name__}".replace("builtins.", ""), False


def _trains_on_import() -> bool:
    """Whether a process that imports the script again would train, too, because nothing in it looks at __name__."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if not file or not str(file).endswith(".py") or not is_users(str(file)):
        return False
    frame, at_top = sys._getframe(), False
    while frame is not None:
        at_top = at_top or (frame.f_code.co_filename == str(file) and frame.f_code.co_name == "<module>")
        frame = frame.f_back  # type: ignore[assignment]
    return at_top and "__name__" not in Path(file).read_text(encoding="utf-8", errors="replace")
