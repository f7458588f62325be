"""What a walk works with must not be too old for it."""

from __future__ import annotations

from typing import Any

from trainwright.errors import UnsupportedVersion
from trainwright.seams.requirements import shortfall


def require(*packages: str) -> None:
    """Make sure that what a walk works with is not too old for it.

    Raises:
        UnsupportedVersion: it says what must hold, what was found and what to do.
    """
    if why := shortfall(["numpy", *packages]):
        raise UnsupportedVersion(why)


def packages_of(built: Any) -> list[str]:
    """The packages of an object's classes, by the names that they are imported by."""
    return list(dict.fromkeys(k.__module__.partition(".")[0] for k in type(built).__mro__))
