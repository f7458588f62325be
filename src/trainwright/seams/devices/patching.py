"""Replaces attributes while a check goes on, and puts them back after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Patches:
    """What was replaced, to be put back in the other order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Give an object another attribute; one that it inherited is deleted again later."""
        if name in vars(owner):
            original = vars(owner)[name]
            self._undo.append(lambda: setattr(owner, name, original))
        else:
            self._undo.append(lambda: delattr(owner, name))
        setattr(owner, name, value)

    def later(self, undo: Callable[[], None]) -> None:
        """Do this, too, when all is put back."""
        self._undo.append(undo)

    def put_back(self) -> None:
        """Undo everything."""
        while self._undo:
            self._undo.pop()()
