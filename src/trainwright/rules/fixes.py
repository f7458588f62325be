"""Fixes as rules write them, and the edits of a call's arguments."""

from __future__ import annotations

from trainwright.core import Edit, Fix, Place, Safety, SetKeyword


def safe(does: str, edits: tuple[Edit, ...] = ()) -> Fix:
    """A fix that is certainly what the author meant."""
    return Fix(does=does, safety=Safety.SAFE, edits=edits)


def unsafe(does: str, edits: tuple[Edit, ...] = ()) -> Fix:
    """A fix that changes what is trained: the author should look."""
    return Fix(does=does, safety=Safety.UNSAFE, edits=edits)


def set_keyword(
    place: Place | None, name: str, value: str, function: str = "", position: int | None = None
) -> tuple[SetKeyword, ...]:
    """The edit that sets an argument of the call at a place; none where the place is not known."""
    return (SetKeyword(place.file, place.line, name, value, function, position),) if place else ()
