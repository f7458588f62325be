"""Data about objects that may be garbage-collected, keyed by identity, whatever their equality and hash."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class WeakIdentityDictionary(MutableMapping[Any, V], Generic[V]):
    """Values by object; an object's value is dropped with it.

    A torchmetrics metric's hash depends on its state, which is missing during construction and changes later; the
    script's objects may have any hash. None of their code runs here.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], V]] = {}

    def __getitem__(self, key: Any) -> V:
        reference, value = self._held[id(key)]
        if reference() is not key:
            raise KeyError(id(key))
        return value

    def __setitem__(self, key: Any, value: V) -> None:
        number, held = id(key), self._held

        def gone(reference: weakref.ref[Any]) -> None:
            if number in held and held[number][0] is reference:
                del held[number]

        held[number] = (weakref.ref(key, gone), value)

    def __delitem__(self, key: Any) -> None:
        self[key]
        del self._held[id(key)]

    def __contains__(self, key: object) -> bool:
        found = self._held.get(id(key))
        return found is not None and found[0]() is key

    def __iter__(self) -> Iterator[Any]:
        alive = (reference() for reference, _ in list(self._held.values()))
        yield from (key for key in alive if key is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
