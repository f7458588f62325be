"""The library name that a script asked for and that does not exist, read from the exception that ended the script."""

from __future__ import annotations

import difflib
import importlib.metadata
import re
import sys
import types
from functools import cache
from types import FrameType
from typing import Any

from trainwright.core import Failure
from trainwright.seams.failures.blame import frames_of
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import imported_name_place
from trainwright.stages import MissingName

_NOT_IMPORTED = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NO_ATTRIBUTE = re.compile(r"module '?([\w.]+)'? has no attribute '?(\w+)'?")
# difflib's ratio above which two names count as similar.
_KIN = 0.75
# The prefixes by which transformers named its models of other frameworks.
_PREFIXES = ("TF", "Flax")


def missing_name(error: BaseException, failure: Failure) -> MissingName | None:
    """The name that an installed library lacks; None for other errors and for names in the user's own code."""
    found = _asked_for(error)
    if found is None:
        return None
    owner, name, kind = found
    package = (kind or owner).split(".")[0]
    library = distribution(package)
    if not library or failure.where is None:
        return None
    return MissingName(
        owner=owner,
        name=name,
        of_class=bool(kind),
        package=package,
        library=library,
        near=tuple(_near(owner, name)) if not kind else (),
        wanted_by=_wanted_by(error, package),
        where=imported_name_place(failure.where, name) or failure.where,
    )


def _asked_for(error: BaseException) -> tuple[str, str, str] | None:
    """The owner (a module, or an object's classes), the requested name, and the class's module."""
    message = str(error)
    if isinstance(error, ModuleNotFoundError):
        found = _NO_MODULE.search(message)
        parent, _, name = found.group(1).rpartition(".") if found else ("", "", "")
        return (parent, name, "") if parent else None  # a package that is not installed has lost no name
    if isinstance(error, ImportError):
        found = _NOT_IMPORTED.search(message)
        if found:
            return found.group(2), found.group(1), ""
        gone = re.search(r"[`'](\w+)[`'] has been removed from ([\w-]+)", message)
        return ({"scikit-learn": "sklearn"}.get(gone.group(2), gone.group(2)), gone.group(1), "") if gone else None
    if not isinstance(error, AttributeError):
        return None
    if isinstance(error.obj, types.ModuleType) and error.name:
        return error.obj.__name__, error.name, ""
    found = _NO_ATTRIBUTE.search(message)
    if found and error.obj is None:
        return found.group(1), found.group(2), ""
    is_users_line = any(is_users(frame.f_code.co_filename) for frame in _asking_frames(error)[-1:])
    if error.obj is not None and error.name and not is_users_line:
        return None
    if error.obj is None or not error.name:
        return None
    kind = error.obj if isinstance(error.obj, type) else type(error.obj)
    return " ".join(k.__name__ for k in kind.__mro__ if k is not object), error.name, kind.__module__


def _asking_frames(error: BaseException) -> list[FrameType]:
    """The frames that asked, the innermost last, leaving out the object's own `__getattr__` frames."""
    return [frame for frame in frames_of(error) if frame.f_code.co_name != "__getattr__"]


def _near(owner: str, name: str) -> list[str]:
    """Names in the module that are similar to the missing one, the most similar first."""
    module: Any = sys.modules.get(owner)
    if module is None:
        return []
    names = [n for n in dir(module) if not n.startswith("_") and n.isidentifier()]
    bare = [name.removeprefix(p) for p in _PREFIXES if name.startswith(p) and name.removeprefix(p) in names]
    return bare or difflib.get_close_matches(name, names, n=2, cutoff=_KIN)


def _wanted_by(error: BaseException, package: str) -> str:
    """The library whose code asked, with its version; empty if it was the user's code."""
    frames = [frame for frame in _asking_frames(error) if not frame.f_code.co_filename.startswith("<")]
    if not frames or is_users(frames[-1].f_code.co_filename):
        return ""
    asker = str(frames[-1].f_globals.get("__name__", "")).split(".")[0]
    return "" if asker in ("", package, "importlib", "runpy") else distribution(asker)


@cache
def _packages() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


def distribution(package: str) -> str:
    """`transformers 5.23.0` for the package transformers; empty if it is not installed."""
    names = _packages().get(package)
    return f"{names[0]} {importlib.metadata.version(names[0])}" if names else ""
