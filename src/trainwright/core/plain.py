"""Values of a report as plain data for JSON, and back."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

from trainwright.core.finding import Place


def plain(value: Any, digits: int | None = None) -> Any:
    """A value of a report as JSON holds it, with its parts under their names.

    JSON has neither NaN nor infinity, so they are written as strings.

    Args:
        digits: of a number that is no integer; None: all.
    """
    if isinstance(value, Place):
        return place(value)
    if dataclasses.is_dataclass(value) or isinstance(value, types.SimpleNamespace):
        return {name: plain(held, digits) for name, held in vars(value).items()}
    if isinstance(value, (tuple, list)):
        return [plain(one, digits) for one in value]
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, float):
        rounded = value if digits is None else float(f"{value:.{digits}g}")
        return str(rounded) if rounded != rounded or abs(rounded) == float("inf") else rounded
    return value


def read(kind: Any, data: Any) -> Any:
    """The value of this type that `plain` wrote; fields that this version does not know are left out."""
    origin, inner = get_origin(kind), get_args(kind)
    if data is None or kind is Any:
        return data
    if origin in (Union, types.UnionType):
        return read(inner[0], data)
    if origin is tuple:
        return tuple(read(inner[0], one) for one in data)
    if kind is Place:
        return read_place(data)
    if dataclasses.is_dataclass(kind):
        known = get_type_hints(kind)
        return kind(**{name: read(known[name], value) for name, value in data.items() if name in known})  # type: ignore[operator]
    return kind(data) if kind is float or (isinstance(kind, type) and issubclass(kind, StrEnum)) else data


def place(found: Place | None) -> dict[str, Any] | None:
    """A place; in a notebook with its cell, and the line counted within it."""
    if found is None:
        return None
    shown = found.in_cell()
    cell = {} if shown.cell is None else {"cell": shown.cell}
    return {"file": shown.file, "line": shown.line, **cell}


def read_place(data: Mapping[str, Any] | None) -> Place | None:
    """The place that `place` wrote."""
    return Place(data["file"], data["line"], data.get("cell")) if data else None
