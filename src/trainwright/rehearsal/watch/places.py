"""The script's line that a watcher was called from."""

from __future__ import annotations

from types import FrameType

from trainwright.core import Place
from trainwright.seams.source.places import is_users, place_of


def place(frame: FrameType | None) -> Place | None:
    """The nearest line of the user's on the stack; watchers and libraries are passed over."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return place_of(frame) if frame is not None else None
