"""Values of a report as plain data for JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainwright.core.finding import Place


def plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity, so they are written as strings."""
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    return value


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
