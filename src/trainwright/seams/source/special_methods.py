"""Methods of the user's classes whose names are misspellings of those that a framework calls."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from trainwright.core.finding import Place
from trainwright.frameworks.special_methods import SPECIAL_METHODS
from trainwright.seams.source.places import is_users, show
from trainwright.stages.setup import MisspelledMethod

# A shorter name that differs in one letter is another word (cell, call).
_LONG_ENOUGH = 7


def user_scopes() -> Iterator[Mapping[str, Any]]:
    """The names of the script and of the user's own modules that are loaded."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and (name == "__main__" or is_users(file)):
            yield dict(vars(module))


def misspelled_methods(
    scopes: Iterable[Mapping[str, Any]], objects: Iterable[Any] = ()
) -> tuple[MisspelledMethod, ...]:
    """The misspelled methods of the user's classes in these scopes, and of those of these objects.

    Args:
        scopes: the names of the user's modules and functions, with their values.
    """
    scopes = list(scopes)
    values = [value for scope in scopes for value in scope.values()]
    files = {str(scope.get("__file__") or "") for scope in scopes}
    kinds = dict.fromkeys(value if isinstance(value, type) else type(value) for value in (*values, *objects))
    classes = dict.fromkeys(base for kind in kinds for base in kind.__mro__)
    found = [kind for kind in classes if _functions(kind)]
    files |= {f.__code__.co_filename for kind in found for f in _functions(kind)}
    mains = (s.get("__file__") for s in scopes if s.get("__name__") == "__main__")
    roots = {Path(file).resolve().parent for file in mains if isinstance(file, str)}
    texts = {file: "".join(linecache.getlines(file)) for file in files if file and is_users(file)}
    return tuple(one for kind in found for one in _of_class(kind, texts, roots))


def _functions(kind: type) -> list[FunctionType]:
    """The methods that the user wrote in a class."""
    try:
        members = list(vars(kind).values())
    except TypeError:
        return []
    return [m for m in members if isinstance(m, FunctionType) and is_users(m.__code__.co_filename)]


def _of_class(kind: type, texts: Mapping[str, str], roots: Collection[Path]) -> Iterator[MisspelledMethod]:
    bases = {f"{k.__module__}.{k.__qualname__}": k for k in kind.__mro__}
    known: set[str] = set()
    for base, (shown, special) in ((bases[n], SPECIAL_METHODS[n]) for n in bases if n in SPECIAL_METHODS):
        for method in _functions(kind):
            written = method.__code__.co_name
            if (
                written in special
                or written in known
                or _is_override(kind, written)
                or getattr(method, "__isabstractmethod__", False)
            ):
                continue
            meant = next((m for m in special if _is_misspelled(written, m)), None)
            if meant is not None and _is_inherited(kind, base, meant) and not _is_named(written, method, texts, roots):
                known.add(written)
                yield MisspelledMethod(
                    owner=kind.__name__,
                    base=shown,
                    written=written,
                    meant=meant,
                    inherited=hasattr(base, meant),
                    where=Place(show(method.__code__.co_filename), _line(method, written)),
                )


def _is_override(kind: type, name: str) -> bool:
    """Whether a class that this one is derived from has the method, and so may call it."""
    return any(name in vars(base) for base in kind.__mro__[1:])


def _is_inherited(kind: type, base: type, name: str) -> bool:
    """Whether a class has a method only from the framework's base class, or not at all."""
    return inspect.getattr_static(kind, name, None) is inspect.getattr_static(base, name, None)


def _is_named(name: str, method: FunctionType, texts: Mapping[str, str], roots: Collection[Path]) -> bool:
    """Whether the user's code mentions a method anywhere but in its own definition, as a call of it would.

    Args:
        roots: the folder of the script; what is neither below it nor below the class's own folder is another program's.
    """
    try:
        lines, first = inspect.getsourcelines(method)
    except (OSError, TypeError):  # without its source, a call of it cannot be ruled out
        return True
    folders = {*roots, Path(method.__code__.co_filename).resolve().parent}
    for file, text in texts.items():
        if roots and not any(Path(file).resolve().is_relative_to(folder) for folder in folders):
            continue
        if file == method.__code__.co_filename:
            kept = text.splitlines()
            del kept[first - 1 : first - 1 + len(lines)]
            text = "\n".join(kept)
        if re.search(rf"(?<!\w)(?<!def ){re.escape(name)}(?!\w)", text):
            return True
    return False


def _line(method: FunctionType, name: str) -> int:
    """The line of a method's `def`, below its decorators."""
    lines, first = inspect.getsourcelines(method)
    return next((n for n, line in enumerate(lines, first) if re.search(rf"\bdef\s+{name}\b", line)), first)


def _is_misspelled(written: str, meant: str) -> bool:
    """Whether a name differs from another only in underscores, capitals, or one missing, surplus or exchanged letter."""
    if written == meant:
        return False
    bare, wanted = (name.replace("_", "").lower() for name in (written, meant))
    if bare == wanted:
        return True
    longer, shorter = (bare, wanted) if len(bare) > len(wanted) else (wanted, bare)
    if len(longer) == len(shorter) + 1:
        return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    differing = [i for i, (a, b) in enumerate(zip(bare, wanted)) if a != b]
    if len(longer) != len(shorter) or len(differing) > 2:
        return False
    if len(differing) == 1:
        return len(wanted) >= _LONG_ENOUGH
    one, other = differing
    return other == one + 1 and bare[one] == wanted[other] and bare[other] == wanted[one]
