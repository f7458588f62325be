"""Doors: the functions of frameworks at which a run is watched. Each is replaced once, however many stand there."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

# By the function that stands in a framework's place: the way through it, which begins at the outermost watcher.
_ways: dict[Any, list[Callable[..., Any]]] = {}
# When what comes now is taken away again; None: it stays.
_until: contextlib.ExitStack | None = None


@contextlib.contextmanager
def standing(until: contextlib.ExitStack | None) -> Iterator[None]:
    """Let what comes while the context lasts, watchers and values put in, stand until something closes; None: for ever."""
    global _until
    before, _until = _until, until
    try:
        yield
    finally:
        _until = before


def take_away(undo: Callable[[], object]) -> None:
    """Call this when what comes now is taken away."""
    if _until is not None:
        _until.callback(undo)


def put_in(owner: Any, name: str, value: Any, until: contextlib.ExitStack | None = None) -> None:
    """Put a value in the place of an attribute of a class, a module or an object.

    Args:
        until: takes it away when it closes; None: what takes away all that comes now.
    """
    own = vars(owner)
    was = functools.partial(setattr, owner, name, own[name]) if name in own else functools.partial(delattr, owner, name)
    (until.callback if until is not None else take_away)(was)
    setattr(owner, name, value)


@contextlib.contextmanager
def replaced(changes: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    """Put values in the places of attributes, each an owner, a name and a value, while the context lasts."""
    with contextlib.ExitStack() as until:
        for change in changes:
            put_in(*change, until)
        yield


def watch_door(owner: Any, name: str, watcher: Callable[..., Any], also: Iterable[Any] = ()) -> None:
    """Let a watcher stand at a function of a class or module, outside of those that stand there.

    Args:
        watcher: is given what goes on, and the call's arguments; returns the call's answer.
        also: further owners, which may know the same function under the same name.
    """
    way = _ways.get(vars(owner).get(name)) or _open_door(owner, name, also)
    take_away(functools.partial(way.__setitem__, 0, way[0]))
    way[0] = functools.partial(watcher, way[0])


def watch_classes(base: Any, name: str, watcher: Callable[..., Any]) -> None:
    """Let a watcher stand at a method of a class, and of each class below that has one of its own, those to come included."""

    own = vars(base).get("__init_subclass__")

    def begin(cls: Any, /, **kwargs: Any) -> None:
        known = super(base, cls).__init_subclass__ if own is None else own.__get__(None, cls)
        known(**kwargs)
        if name in vars(cls):
            watch_door(cls, name, watcher)

    watch_door(base, name, watcher)
    waiting = base.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if name in vars(kind):
            watch_door(kind, name, watcher)
    put_in(base, "__init_subclass__", classmethod(begin))


def calling_frame() -> FrameType:
    """The frame that has called the door at which the watcher stands that asks."""
    frame = sys._getframe(1)
    while frame.f_code is not _CODE:
        assert frame.f_back is not None
        frame = frame.f_back
    assert frame.f_back is not None
    return frame.f_back


def _open_door(owner: Any, name: str, also: Iterable[Any]) -> list[Callable[..., Any]]:
    original = getattr(owner, name)
    way = [original]
    door = functools.wraps(original)(_make_door(way))
    _ways[door] = way
    take_away(functools.partial(_ways.pop, door))
    for one in (owner, *also):
        if getattr(one, name, None) is original:
            put_in(one, name, door)
    return way


def _make_door(way: list[Callable[..., Any]]) -> Callable[..., Any]:
    def passed_on(*args: Any, **kwargs: Any) -> Any:  # inner watchers skip its frame
        return way[0](*args, **kwargs)

    return passed_on


_CODE = _make_door([]).__code__
