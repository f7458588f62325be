"""The parts of a script's own objects that the check can change by calling its code, and how to restore each.

Starting from the datasets, collators, functions and the Trainer, it follows attributes, closures and the globals that
functions name, to random generators, counters, caches, open streams and further models. All of these are saved before
the check and restored after it.
"""

from __future__ import annotations

import builtins
import dis
import functools
import itertools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from trainwright.seams.source.places import is_users
from trainwright.seams.state.snapshot import AttributeState, RandomState, is_generator, refill

# A script's own state is a few dozen objects; anything larger is data, which is only read.
MOST_OBJECTS = 20_000
LONGEST_CONTAINER = 100_000
LONGEST_WALKED_CONTAINER = 256
LARGEST_ARRAY = 1_000_000
# Framework classes whose attributes hold the user's objects.
_HOLDERS = ("torch.utils.data", "transformers.data", "torchmetrics", "evaluate")
_ATOMS = (str, bytes, int, float, complex, bool, type(None), types.ModuleType, types.CodeType)

Slot = tuple[Callable[[], Any], Callable[[Any], None]]
"""A variable: functions that read and set it."""


class ScriptState:
    """The state of all user objects reachable from some objects, as it was on creation.

    Args:
        roots: where to begin, the most important first.
        leave: objects (and what only they reach) that are restored elsewhere.
    """

    def __init__(self, roots: Iterable[Any], leave: Iterable[Any] = ()) -> None:
        self._reached = _Reached({id(v) for v in leave})
        self._reached.walk(roots)
        reached = self._reached
        self._attributes = AttributeState(reached.owners)
        self._containers = [(v, v.copy()) for v in reached.containers]
        self._arrays = [(v, v.copy() if isinstance(v, np.ndarray) else v.detach().clone()) for v in reached.arrays]
        self._variables = [(put, read()) for read, put in reached.variables]
        self._random = RandomState(reached.generators)
        self._files = [(f, f.tell()) for f in reached.files]
        self._streams = [_Recorded(read()) for read, _ in reached.streams]
        for (_, put), recorded in zip(reached.streams, self._streams):
            put(recorded)

    def put_back(self) -> None:
        """Restore everything; what was read from a stream is read from it again."""
        self._attributes.put_back()
        for value, content in self._containers:
            refill(value, content)
        for array, kept in self._arrays:
            _fill(array, kept)
        for put, value in self._variables:
            put(value)
        for file, position in self._files:
            file.seek(position)
        for (_, put), recorded in zip(self._reached.streams, self._streams):
            put(recorded.again())
        self._random.put_back()


class _Recorded:
    """An iterator that can be consumed only once; keeps the items read from it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._read: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        item = next(self._stream)
        self._read.append(item)
        return item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def again(self) -> Any:
        """The original stream: items that were read come again."""
        return itertools.chain(self._read, self._stream) if self._read else self._stream


class _Reached:
    """Everything found on the way, in one list per way of restoring."""

    def __init__(self, leave: set[int]) -> None:
        self.generators: list[Any] = []
        self.owners: list[Any] = []
        self.containers: list[Any] = []
        self.arrays: list[Any] = []
        self.variables: list[Slot] = []
        self.streams: list[Slot] = []
        self.files: list[Any] = []
        self._seen = {*leave, id(vars(builtins))}  # which a script's globals include under a name
        self._slots: set[tuple[int, Any]] = set()
        self._queue: deque[Any] = deque()
        self._kept_alive: list[Any] = []

    def walk(self, roots: Iterable[Any]) -> None:
        self._queue.extend(roots)
        while self._queue and len(self._seen) < MOST_OBJECTS:
            value = self._queue.popleft()
            if isinstance(value, _ATOMS) or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._kept_alive.append(value)  # an id is valid only while its object lives
            self._visit(value)

    def _visit(self, value: Any) -> None:
        if is_generator(value):
            self.generators.append(value)
        elif isinstance(value, (list, dict, set, tuple, deque)):
            self._container(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._queue += [value.__self__, value.__func__]
        elif isinstance(value, functools.partial):
            self._queue += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, (staticmethod, classmethod)):
            self._queue.append(value.__func__)
        elif isinstance(value, property):
            self._queue += [f for f in (value.fget, value.fset) if f is not None]
        elif isinstance(value, type):
            self._class(value)
        elif _is_array(value):
            if 0 < (value.size if isinstance(value, np.ndarray) else value.numel()) <= LARGEST_ARRAY and _writable(
                value
            ):
                self.arrays.append(value)
        elif _is_file(value):
            self.files.append(value)
        else:
            self._object(value)

    def _container(self, value: Any) -> None:
        if not isinstance(value, tuple) and len(value) <= LONGEST_CONTAINER and not _is_frameworks(value):
            self.containers.append(value)
        if len(value) <= LONGEST_WALKED_CONTAINER:
            self._queue += list(value.values()) if isinstance(value, dict) else list(value)

    def _class(self, kind: type) -> None:
        if not _is_users_class(kind):
            return
        for name, value in list(vars(kind).items()):
            if type(value) in (int, float, bool, str, tuple, type(None)) and not name.startswith("__"):
                slot = functools.partial(getattr, kind, name), functools.partial(setattr, kind, name)
                self._variable(kind, name, slot, rebound=True)
            self._queue.append(value)

    def _function(self, function: types.FunctionType) -> None:
        if not is_users(function.__code__.co_filename):
            wrapped = getattr(function, "__wrapped__", None)
            self._queue += [wrapped] if wrapped is not None else []
            return
        self._queue += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        for cell in function.__closure__ or ():
            slot = functools.partial(_read_cell, cell), functools.partial(_fill_cell, cell)
            self._variable(cell, "", slot, rebound=True)
        names, stored = _names(function.__code__)
        scope = function.__globals__
        for name in names & scope.keys():
            self._variable(scope, name, _slot_of(scope, name), rebound=name in stored)

    def _object(self, value: Any) -> None:
        attributes = getattr(value, "__dict__", None)
        if not isinstance(attributes, dict) or _has_workers(value):
            return
        kind = type(value)
        if _is_users_class(kind):
            self._queue += [k for k in kind.__mro__ if _is_users_class(k)]
        elif not kind.__module__.startswith(_HOLDERS):
            checked = kind.__module__.startswith("datasets.iterable_dataset")
            transforms = list((attributes.get("_format_kwargs") or {}).values())
            self._queue += list(attributes.values()) if checked else transforms
            self._queue += [v for v in attributes.values() if is_generator(v)]
            return
        self.owners.append(value)
        for name in list(attributes):
            self._variable(value, name, _slot_of(attributes, name), rebound=False)

    def _variable(self, owner: Any, name: str, slot: Slot, *, rebound: bool) -> None:
        if (id(owner), name) in self._slots:
            return
        self._slots.add((id(owner), name))
        value = slot[0]()
        if _is_stream(value):
            self.streams.append(slot)
            return
        if rebound:
            self.variables.append(slot)
        self._queue.append(value)


def _slot_of(names: dict[str, Any], name: str) -> Slot:
    return functools.partial(names.get, name), functools.partial(names.__setitem__, name)


@functools.cache
def _names(code: types.CodeType) -> tuple[set[str], set[str]]:
    """The globals that a function and its nested functions name, and those that they assign to."""
    named = set(code.co_names)
    stored = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL"}
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more = _names(inner)
            named, stored = named | more[0], stored | more[1]
    return named, stored


def _is_users_class(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return bool(file) and is_users(file)


def _is_frameworks(value: Any) -> bool:
    """Containers of frameworks, which are not modified: dataset dictionaries, batches."""
    return type(value).__module__.split(".")[0] in ("datasets", "transformers", "torch")


def _is_stream(value: Any) -> bool:
    if isinstance(value, types.GeneratorType):
        return True
    module = type(value).__module__
    return hasattr(value, "__next__") and module in ("builtins", "itertools") and not _is_file(value)


def _has_workers(value: Any) -> bool:
    """Whether worker processes feed a loader's iterator.

    It only goes forward: with its counters put back, it would wait for batches that it has taken from the queue before.
    """
    return any(k.__name__ == "_MultiProcessingDataLoaderIter" for k in type(value).__mro__)


def _is_file(value: Any) -> bool:
    if type(value).__module__ not in ("_io", "io", "gzip", "bz2", "lzma") or getattr(value, "closed", True):
        return False
    if not value.seekable() or not value.readable() or value in (sys.stdin, sys.__stdin__):
        return False
    try:
        value.tell()
    except OSError:  # a text file in a `for` loop cannot tell its position
        return False
    return True


def _is_array(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def _writable(value: Any) -> bool:
    """Arrays that can be written in place; parameters and buffers are handled with their models."""
    if isinstance(value, np.ndarray):
        return bool(value.flags.writeable) and value.dtype != object
    if value.requires_grad or value.device.type == "meta" or str(value.layout) != "torch.strided":
        return False
    return not is_expanded(value)


def is_expanded(tensor: Any) -> bool:
    """Whether several elements of a tensor are one in memory: nothing can be written into it in place."""
    return any(size > 1 and step == 0 for size, step in zip(tensor.shape, tensor.stride()))


def _fill(array: Any, kept: Any) -> None:
    if isinstance(array, np.ndarray):
        array[...] = kept
        return
    if array.requires_grad and not array._is_view():  # a graph that a step wrote into it
        array.detach_()
    array.data.copy_(kept)


_EMPTY = object()


def _read_cell(cell: types.CellType) -> Any:
    """What a variable of an enclosing function holds, which may be set on another path only."""
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _fill_cell(cell: types.CellType, value: Any) -> None:
    if value is not _EMPTY:
        cell.cell_contents = value
    elif _read_cell(cell) is not _EMPTY:
        del cell.cell_contents
