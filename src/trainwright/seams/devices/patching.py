"""Replaces attributes during a check and restores them afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Patches:
    """Replaced attributes, to be restored in reverse order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Replace an object's attribute; an inherited one is deleted again when restoring."""
        if name in vars(owner):
            original = vars(owner)[name]
            self._undo.append(lambda: setattr(owner, name, original))
        else:
            self._undo.append(lambda: delattr(owner, name))
        setattr(owner, name, value)

    def later(self, undo: Callable[[], None]) -> None:
        """Also call this when everything is restored."""
        self._undo.append(undo)

    def put_back(self) -> None:
        """Undo everything."""
        while self._undo:
            self._undo.pop()()
