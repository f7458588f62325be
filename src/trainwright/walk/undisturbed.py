"""Keeps a walk's side effects away from the script and the report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from trainwright.seams.listening.hearing import silenced
from trainwright.seams.state.snapshot import RandomState


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Suppress framework warnings, and restore the random state in any case."""
    state = RandomState()
    try:
        with silenced():
            yield
    finally:
        state.put_back()
