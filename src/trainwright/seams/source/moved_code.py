"""Code of ours that is run as if it stood at a line of the user's, and names that watchers have replaced since it took them."""

from __future__ import annotations
import __future__

import ast
import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, MutableMapping
from types import FrameType
from typing import Any, TypeVar

from trainwright.seams.source.places import is_users

F = TypeVar("F", bound=Callable[..., Any])
# Whose functions are replaced in their module, while a script may hold the original by a name of its own.
_REPLACED = ("torch.nn.functional", "sklearn.metrics")


def at_line_of(function: F, frame: FrameType) -> F:
    """A function whose calls stand at the line that a user's frame is at."""
    tree = ast.parse(inspect.getsource(function))
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = frame.f_lineno  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    known = {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
    names = {**known, "__name__": frame.f_globals.get("__name__", "__main__")}
    flags = __future__.annotations.compiler_flag
    exec(compile(tree, frame.f_code.co_filename, "exec", flags, dont_inherit=True), names)
    moved: F = names[function.__name__]
    return moved


def find_watcher(value: Any) -> Any:
    """What a watcher has put in the place of a function; the value itself where there is no such."""
    name = getattr(value, "__name__", None)
    modules = (sys.modules.get(module) for module in _REPLACED) if isinstance(name, str) else ()
    found = (getattr(module, str(name), None) for module in modules if callable(value))
    return next((one for one in found if one is not value and _stands_for(one, value)), value)


def _stands_for(one: Any, value: Any) -> bool:
    while one is not None and one is not value:
        one = getattr(one, "__wrapped__", None)
    return one is not None


@contextlib.contextmanager
def watched_names(scope: MutableMapping[str, Any]) -> Iterator[None]:
    """Put them in their place, too, where the names of a scope and of the user's modules stand for functions."""
    users = (vars(m) for m in list(sys.modules.values()) if is_users(getattr(m, "__file__", None) or "<"))
    changed = [
        (names, name, value, now)
        for names in (scope, *users)
        for name, value in list(names.items())
        if inspect.isroutine(value) and (now := find_watcher(value)) is not value
    ]
    for names, name, _, now in changed:
        names[name] = now
    try:
        yield
    finally:
        for names, name, value, now in changed:
            if names.get(name) is now:
                names[name] = value
