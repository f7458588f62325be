"""Checks that the frameworks are not too old for a walk."""

from __future__ import annotations

from typing import Any

from trainwright.errors import UnsupportedVersion
from trainwright.seams.requirements import shortfall


def require(*packages: str) -> None:
    """Check that these packages are not too old for a walk.

    Raises:
        UnsupportedVersion: with the required version, the installed one and what to do.
    """
    if why := shortfall(["numpy", *packages]):
        raise UnsupportedVersion(why)


def packages_of(built: Any) -> list[str]:
    """The packages of an object's classes, by the names that they are imported by."""
    return list(dict.fromkeys(k.__module__.partition(".")[0] for k in type(built).__mro__))
